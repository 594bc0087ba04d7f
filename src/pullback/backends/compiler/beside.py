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
from contextlib import AbstractContextManager, suppress
from typing import Any

from pullback.backends.host.memory import large_heaps_for_new_threads
from pullback.backends.processes import ending
from pullback.backends.processes.calls import Call, Callers
from pullback.core import source
from pullback.core.errors import LeftRunningWarning
from pullback.core.locks import renewed

SECONDS = 0.2
"""After how long handlers run in any case: some interrupts, as those of debuggers, do not wake a thread that waits."""


def _none() -> Callers:
    return Callers("pullback-loops", _starting)


def _starting() -> AbstractContextManager[None]:
    """A context manager within which a thread is started."""
    _prepare()
    return large_heaps_for_new_threads()


_callers = _none()
renewed(globals(), "_callers", _none)


def started(execute: Callable[[Any], Any], buffers: Any) -> Any:
    """Return ``execute(buffers)``, which starts a program; in the main thread, signal handlers run meanwhile.

    Raises:
      BaseException: the error of a signal handler, such as KeyboardInterrupt; the program is then left running.
        Otherwise the error of ``execute``.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return execute(buffers)
    call = Call(functools.partial(execute, buffers))
    try:
        with suppress(RuntimeError):  # there are too many threads, or the interpreter is about to end
            _callers.begin(call)
        while call.queued and not call.wait(SECONDS):
            pass
    except BaseException:  # of a signal handler
        _callers.leave(call)
        _warn()
        raise
    if not call.queued:
        return execute(buffers)
    _callers.give_back(call)
    return call.result()


def leave() -> None:
    """Have later programs started by new threads, since a wait for a program's results was interrupted.

    The runtime would run them after that program, which goes on. Only the main thread has its programs started.
    """
    if threading.get_ident() == threading.main_thread().ident and _callers.leave_idle():
        _warn()


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
