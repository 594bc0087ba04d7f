"""Programs that may not end, as a loop of an unknown number of steps: they run beside the main thread.

The runtime runs a small program on the thread that starts it, in C++, where no signal handler of Python runs: Ctrl-C
would have no effect before the program's end. So another thread starts such a program, while the main thread waits
where handlers run. If a handler raises, as Ctrl-C does, the program is left running on its thread, and later programs
get another thread: the runtime runs those of one thread in order. Other threads have no signal handlers, and start
programs themselves.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from pullback.backends.host.memory import large_heaps_for_new_threads
from pullback.backends.processes import ending
from pullback.core import source
from pullback.core.errors import LeftRunningWarning
from pullback.core.locks import renewed

SECONDS = 0.2
"""After how long handlers run in any case: some interrupts, as those of debuggers, do not wake a thread that waits."""
_idle: list[_Runner] = []
_left: list[_Runner] = []
"""Runners that were left behind, perhaps with a program that runs."""
for _name in ("_idle", "_left"):
    renewed(globals(), _name, list)


class _Runner:
    """A thread that starts programs for the main thread, one at a time."""

    __slots__ = ("_jobs", "_outcomes", "thread")

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[Any], Any], Any] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name="pullback-loops", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                outcome: tuple[Any, BaseException | None] = job[0](job[1]), None
            except BaseException as error:
                outcome = None, error
            del job  # with it the buffers
            self._outcomes.put(outcome)
            del outcome

    def run(self, execute: Callable[[Any], Any], buffers: Any) -> tuple[Any, BaseException | None]:
        """Return the result of ``execute(buffers)``, called on the runner's thread, and its error, one of them None."""
        self._jobs.put((execute, buffers))
        while True:
            with suppress(Empty):
                return self._outcomes.get(True, SECONDS)

    def end(self) -> None:
        """End the thread, once the program that it may be running has ended."""
        self._jobs.put(None)


def started(execute: Callable[[Any], Any], buffers: Any) -> Any:
    """Return ``execute(buffers)``, which starts a program; in the main thread, signal handlers run meanwhile.

    Raises:
      BaseException: the error of a signal handler, such as KeyboardInterrupt; the program is then left running.
        Otherwise the error of ``execute``.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return execute(buffers)
    try:
        runner = _idle.pop() if _idle else _new()
    except RuntimeError:  # there are too many threads, or the interpreter is about to end
        return execute(buffers)
    try:
        result, error = runner.run(execute, buffers)
    except BaseException:  # of a signal handler
        _leave(runner)
        raise
    _idle.append(runner)
    if error is None:
        return result
    try:
        raise error
    finally:
        del error  # whose traceback refers to this frame


def leave() -> None:
    """Have later programs started by new threads, since a wait for a program's results was interrupted.

    The runtime would run them after that program, which goes on. Only the main thread has its programs started.
    """
    while _idle and threading.get_ident() == threading.main_thread().ident:
        _leave(_idle.pop())


def _new() -> _Runner:
    _prepare()
    with large_heaps_for_new_threads():
        return _Runner()


def _leave(runner: _Runner) -> None:
    runner.end()
    _left[:] = [r for r in _left if r.thread.is_alive()] + [runner]
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
    idle, _idle[:] = _idle[:], []
    for runner in idle:
        runner.end()
    for runner in idle:
        runner.thread.join(1)
    return [runner.thread for runner in [*_left, *idle] if runner.thread.is_alive()]
