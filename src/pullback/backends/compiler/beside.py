"""Programs that may not end, as a loop of an unknown number of steps: they run beside the main thread.

The runtime may run a program on the thread that starts it, in C++, where no signal handler of Python runs: Ctrl-C would
have no effect before the program's end. So another thread runs such a program to its end (``host/runner.h``), while the
main thread waits where handlers run. Other threads have no signal handlers, and run programs themselves.

If a handler raises, as Ctrl-C does, nobody gets the results any more, and the program is told to stop. Its large loops
ask from time to time whether they are to go on (``host/foreign.h``); its Python functions are not called any more.
Small loops do not ask, since the compiler makes one function of them: such a program is left running on its thread, and
later programs get another one.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pullback.backends.host import calls, own
from pullback.backends.host.memory import large_heaps_for_new_threads
from pullback.backends.host.parallel import cores
from pullback.backends.processes import ending
from pullback.backends.processes.calls import Call
from pullback.core import source
from pullback.core.errors import ExecutionError, LeftRunningWarning
from pullback.core.locks import renewed

SPIN = 2e-3, 2e-4
"""For how many seconds the caller spins until a program ends, and the thread until the next one, before they sleep.

To wake them takes 20 to 50 us, a fortieth of the longest program for which the caller spins. On a single core they
sleep at once."""
SECONDS = 0.2
"""After how long handlers run in any case: some interrupts, as those of debuggers, do not wake a thread that waits."""
TO_STOP = 1.0
"""How many seconds an interrupt waits for the end of a program that was told to stop."""
AT_MOST = 10.0
"""How many seconds a later program waits for it."""


class Runner:
    """Makes calls on the thread that serves it: in Python, where the module in C is not installed.

    Attributes:
      runs: whether a call was begun whose outcome nobody has.
    """

    def __init__(self, *_: float) -> None:
        self._calls: queue.SimpleQueue[Call[Any] | None] = queue.SimpleQueue()
        self._begun: Call[Any] | None = None

    @property
    def runs(self) -> bool:
        return self._begun is not None

    def call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """Let the thread call a function; return its result. What a signal handler raises is raised meanwhile."""
        self._begun = call = Call(functools.partial(function, argument))
        self._calls.put(call)
        while not call.wait(SECONDS):
            pass
        self._begun = None
        return call.result()

    def serve(self) -> None:
        """Make the calls, until the thread is to leave."""
        while (call := self._calls.get()) is not None:
            call.run()
            del call  # its arguments and results are the caller's

    def wait(self, seconds: float) -> bool:
        """Wait for the end of a call that was left, and return whether it has ended."""
        return self._begun is None or self._begun.wait(seconds)

    def leave(self) -> None:
        """Let the thread end, after the call that it makes."""
        self._calls.put(None)


new_runner: Callable[..., Any] = Runner if own.loops is None else own.loops.Runner


class _Threads:
    """The threads that run programs, each with its runner."""

    def __init__(self) -> None:
        self.idle: list[Any] = []
        self.all: dict[Any, threading.Thread] = {}

    def take(self) -> Any:
        """Return a runner that is idle, of a new thread if there is none; None if no thread can be started."""
        with suppress(IndexError):
            return self.idle.pop()
        _prepare()
        runner = new_runner(*(SPIN if cores() > 1 else (0.0, 0.0)), SECONDS)
        thread = threading.Thread(target=runner.serve, name="pullback-loops", daemon=True)
        try:
            with large_heaps_for_new_threads():
                thread.start()
        except RuntimeError:  # there are too many threads, or the interpreter is about to end
            return None
        self.all = {runner: thread for runner, thread in self.all.items() if thread.is_alive()}
        self.all[runner] = thread
        return runner

    def close(self) -> list[threading.Thread]:
        """End the threads that run nothing, and return those that may run programs."""
        while self.idle:
            runner = self.idle.pop()
            runner.leave()
            self.all.pop(runner).join(1)
        return [thread for thread in self.all.values() if thread.is_alive()]


_threads = _Threads()
renewed(globals(), "_threads", _Threads)


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
      left: ``left(runner)`` is called when the program is left running.
    """

    __slots__ = ("_asks", "_functions", "_interrupted", "_left", "_run", "_runs")

    def __init__(
        self,
        run: Callable[[Any], Any],
        asks: bool = False,
        functions: Sequence[Callable[..., Any]] = (),
        left: Callable[[Any], None] | None = None,
    ) -> None:
        self._run = functools.partial(_counted, run) if asks else run
        self._asks, self._functions, self._left = asks, functions, left
        self._runs: list[None] = []  # one for each run, if the program calls functions
        self._interrupted: list[Any] = []  # the runners of those that were interrupted

    def run(self, buffers: Any) -> Any:
        """Run the program to its end; in the main thread, signal handlers run meanwhile.

        Raises:
          BaseException: the error of a signal handler, such as KeyboardInterrupt; the program is then stopped, or left
            running with a warning. Otherwise the error of the program.
        """
        if not self._functions:
            return self._run_beside(buffers)
        self._wait_for_interrupted()
        self._runs.append(None)
        try:
            return self._run_beside(buffers)
        finally:
            self._runs.pop()

    def _run_beside(self, buffers: Any) -> Any:
        runner = _threads.take() if threading.get_ident() == threading.main_thread().ident else None
        if runner is None:
            return self._run(buffers)
        try:
            return runner.call(self._run, buffers)
        finally:
            if runner.runs:  # a signal handler raised an exception
                self._leave(runner)
            else:
                _threads.idle.append(runner)

    def _leave(self, runner: Any) -> None:
        """Stop the program that a thread runs, or leave it running."""
        runner.leave()
        refused = bool(self._functions) and len(self._runs) == 1  # another thread's run would be refused too
        if refused:
            self._interrupted.append(runner)
            calls.refuse(self._functions)
        will_end = (self._asks and _stoppable.stop()) or refused
        if not (will_end and runner.wait(TO_STOP)):
            if self._left is not None:
                self._left(runner)
            _warn()

    def _wait_for_interrupted(self) -> None:
        """If an interrupted run of a program that calls functions has not ended, wait for its end.

        Raises:
          ExecutionError: that run does not end (a RuntimeError).
        """
        if calls.are_refused(self._functions):
            if not all(x.wait(AT_MOST) for x in self._interrupted):
                raise ExecutionError(
                    "a compiled program that calls Python functions was interrupted and is still running, so it "
                    "cannot run again: start a new process"
                )
            self._interrupted.clear()
            calls.accept(self._functions)


def _counted(run: Callable[[Any], Any], buffers: Any) -> Any:
    with _stoppable:
        return run(buffers)


def _warn() -> None:
    with suppress(Warning):  # the interrupt is raised also where warnings are errors
        source.warn(
            "the interrupted program goes on in the background until it ends, and keeps a core busy; its results "
            "are lost. Outside jit, Ctrl-C ends the same loop.",
            LeftRunningWarning,
        )


@functools.cache
def _prepare() -> None:
    ending.before_leaving(lambda: _threads.close())
