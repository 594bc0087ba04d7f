"""The end of a process while other threads are within the compiler or the runtime.

These are the user's daemon threads, and those of ``backends/compiler/background.py``. During its shutdown, Python up to
3.13 ends a thread that returns from C++ by unwinding its stack, which C++ treats as a fatal error. So :func:`leave`
first raises an exception in the threads that are within Pullback's calls, and waits for their end for a bounded time.
Python ends all other threads before they enter C++. ``import pullback`` registers :func:`leave` with ``atexit`` as
early as it can, so that it runs late.

No bookkeeping is needed when a thread enters the runtime, so calls cost no more.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

from pullback.core import systems
from pullback.core.errors import PullbackError

SECONDS = 1.0
"""How long :func:`leave` waits for threads in which it raised an exception."""
_closers: list[Callable[[], list[threading.Thread]]] = []
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@functools.cache
def prepare() -> None:
    """While the process ends, do not report exceptions that daemon threads raise in calls of Pullback."""
    atexit.register(_be_quiet)


def _be_quiet() -> None:
    hook = threading.excepthook

    def quiet(args: threading.ExceptHookArgs) -> None:
        steps = traceback.walk_tb(args.exc_traceback)
        ours = isinstance(args.exc_value, PullbackError) or any(_is_ours(frame) for frame, _ in steps)
        if not ours or args.thread is None or not args.thread.daemon:
            hook(args)

    threading.excepthook = quiet


def before_leaving(close: Callable[[], list[threading.Thread]]) -> None:
    """Register the function ``close``, to be called when the process ends.

    ``close()`` must refuse further work, and return the threads that still run.
    """
    _closers.append(close)


def leave() -> None:
    """Let the process end although some threads are within the compiler or the runtime.

    A thread that runs Python, or returns to Python, ends by a silent ``SystemExit``. Threads that remain after
    ``SECONDS`` are in C++, where they may stay long. The process does not wait for these, but ends before they can
    crash, where the system offers that: see :func:`pullback.core.systems.end_before_destructors`.
    """
    working = [thread for close in _closers for thread in close()]
    if len(sys._current_frames()) == 1:
        return
    threads = [*working, *_interrupted({thread.ident for thread in working})]
    if not threads:
        return
    if not systems.end_before_destructors(threads):  # there is no alternative to waiting
        sys.setswitchinterval(0.005)
        for thread in working:
            thread.join()


def _interrupted(others: set[int | None]) -> list[threading.Thread]:
    """Raise ``SystemExit`` in the threads that are within calls of Pullback; return the threads that still run.

    ``others`` are the identifiers of threads to leave alone. Python's switch interval, after which a waiting thread
    requests the GIL, is set to one second, so that other threads run only while this thread sleeps. A thread that
    already waits uses the old interval, so this thread lets the old interval pass before it looks at the threads.
    """
    end = time.monotonic() + SECONDS
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    known = others | {threading.get_ident()}
    interrupted: set[int] = set()
    interval = min(sys.getswitchinterval(), 0.05)
    checks = 0
    while True:
        sys.setswitchinterval(interval)
        time.sleep(0.001)
        sys.setswitchinterval(1)
        requested_again = time.monotonic() + interval + 0.001
        while time.monotonic() < requested_again:
            pass
        checks += 1
        frames = {i: frame for i, frame in sys._current_frames().items() if i not in known}
        # An interrupted thread counts until it has ended: freeing its results runs C++ too.
        within = {i for i, frame in frames.items() if i in interrupted or _is_ours(frame)}
        busy = {t.ident for t in threading.enumerate() if t.ident in frames and not systems.rests(t)}
        if time.monotonic() > end or (not within and checks >= (_CHECKS_IF_BUSY if busy else _CHECKS)):
            remaining = within | busy
            return [thread for thread in threading.enumerate() if thread.ident in remaining]
        for i in within - interrupted:
            raise_in(ctypes.c_ulong(i), ctypes.py_object(SystemExit))
        interrupted |= within


_CHECKS = 3
"""How often to check for threads within calls: a thread may be between two calls, and free the result of the first."""
_CHECKS_IF_BUSY = 10
"""How often to check if some threads are busy: a check may find each of them between two calls."""


def _is_ours(frame: FrameType | None) -> bool:
    """Whether ``frame`` or a frame that called it is in Pullback's code; the thread may then be in the compiler."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_HERE):
            return True
        frame = frame.f_back
    return False
