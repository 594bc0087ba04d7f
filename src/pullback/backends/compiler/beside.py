"""Programs that may not end, as a loop of an unknown number of steps: they run beside the main thread.

The runtime runs a program on the thread that starts it, in C++, where no signal handler of Python runs: Ctrl-C would
have no effect before the program's end. So another thread runs such a program to its end, while the main thread waits
where handlers run. Other threads have no signal handlers, and run programs themselves.

If a handler raises, as Ctrl-C does, nobody gets the results any more, and the program is told to stop. Its loops over
large arrays ask after each step whether they are to go on (``host/foreign.h``); its Python functions are not called any
more. Loops over small arrays cannot ask, since the compiler makes one function of them: such a program is left running
on its thread, and later programs get another one.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from pullback.backends.host import calls, own
from pullback.backends.host.memory import large_heaps_for_new_threads
from pullback.backends.processes import ending
from pullback.backends.processes.calls import Call, Callers
from pullback.core import source
from pullback.core.errors import ExecutionError, LeftRunningWarning
from pullback.core.locks import renewed

SECONDS = 0.2
"""After how long handlers run in any case: some interrupts, as those of debuggers, do not wake a thread that waits."""
TO_STOP = 1.0
"""How many seconds an interrupt waits for the end of a program that was told to stop."""
AT_MOST = 10.0
"""How many seconds a later program waits for it."""


def _none() -> Callers:
    return Callers("pullback-loops", _starting)


def _starting() -> AbstractContextManager[None]:
    """A context manager within which a thread is started."""
    _prepare()
    return large_heaps_for_new_threads()


_callers = _none()
renewed(globals(), "_callers", _none)


class _Stoppable:
    """Counts the programs at work that can be stopped. All would stop at once, so that only a single one is told to."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.running = 0
        self.stopping = False

    def __enter__(self) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: not self.stopping, AT_MOST):
                self._go_on()  # the one that does not stop is left running
            self.running += 1

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.running -= 1
            if self.stopping:
                self._go_on()

    def stop(self) -> bool:
        """Tell the only program at work to stop, and those that begin meanwhile to wait; return whether it was told."""
        with self.changed:
            if self.running != 1 or self.stopping:
                return False
            self.stopping = True
            own.loops.loops_go_on(False)
            return True

    def _go_on(self) -> None:
        own.loops.loops_go_on(True)
        self.stopping = False
        self.changed.notify_all()


_stoppable = _Stoppable()
renewed(globals(), "_stoppable", _Stoppable)


class Program:
    """A program that may not end.

    Args:
      run: ``run(buffers)`` runs the program to its end.
      asks: whether some of its loops ask whether they are to go on.
      functions: the Python functions that it calls.
      left: ``left(call)`` is called when the program is left running.
    """

    __slots__ = ("_asks", "_calls", "_functions", "_left", "_run")

    def __init__(
        self,
        run: Callable[[Any], Any],
        asks: bool = False,
        functions: Sequence[Callable[..., Any]] = (),
        left: Callable[[Call[Any]], None] | None = None,
    ) -> None:
        self._run, self._asks, self._functions, self._left = run, asks, functions, left
        self._calls: list[Call[Any]] = []  # those that have not ended, if it calls functions

    def run(self, buffers: Any) -> Any:
        """Run the program to its end; in the main thread, signal handlers run meanwhile.

        Raises:
          BaseException: the error of a signal handler, such as KeyboardInterrupt; the program is then stopped, or left
            running with a warning. Otherwise the error of the program.
        """
        call = Call(functools.partial(self._counted, buffers))
        if self._functions:
            self._begin(call)
        if threading.get_ident() != threading.main_thread().ident:
            call.run()
            return call.result()
        try:
            with suppress(RuntimeError):  # there are too many threads, or the interpreter is about to end
                _callers.begin(call)
            while call.queued and not call.wait(SECONDS):
                pass
        except BaseException:  # of a signal handler
            _callers.leave(call)
            if not (self._stop() and call.wait(TO_STOP)):
                if self._left is not None:
                    self._left(call)
                _warn()
            raise
        if call.queued:
            _callers.give_back(call)
        else:
            call.run()
        return call.result()

    def _counted(self, buffers: Any) -> Any:
        if not self._asks:
            return self._run(buffers)
        with _stoppable:
            return self._run(buffers)

    def _begin(self, call: Call[Any]) -> None:
        """Note a call of a program that calls functions. After an interrupt, wait for the end of the call before.

        Raises:
          ExecutionError: that call does not end (a RuntimeError).
        """
        self._calls = [x for x in self._calls if not x.wait(0)]
        if calls.are_refused(self._functions):
            if not all(x.wait(AT_MOST) for x in self._calls):
                raise ExecutionError(
                    "a compiled program that calls Python functions was interrupted, and does not end, so that it "
                    "cannot run again: begin a new process"
                )
            calls.accept(self._functions)
        self._calls.append(call)

    def _stop(self) -> bool:
        """Tell the program to stop; return whether it was told."""
        refused = len(self._calls) == 1  # another thread's call would be refused too
        if refused:
            calls.refuse(self._functions)
        return (self._asks and _stoppable.stop()) or refused


def _warn() -> None:
    with suppress(Warning):  # the interrupt is raised also where warnings are errors
        source.warn(
            "the compiled program that was interrupted goes on in the background until it ends, and keeps a core busy; "
            "its results are lost. The same loop outside jit ends when it is interrupted.",
            LeftRunningWarning,
        )


@functools.cache
def _prepare() -> None:
    ending.before_leaving(_close)


def _close() -> list[threading.Thread]:
    """End the threads that run nothing, and return those that may run programs."""
    for thread in _callers.leave_idle():
        thread.join(1)
    return _callers.threads()
