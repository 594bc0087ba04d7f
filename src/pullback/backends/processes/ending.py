"""The end of a process while other threads are within the compiler or the runtime.

Daemon threads of the user's may be there, and those of ``backends/compiler/background.py``. While Python is torn down,
up to 3.13, it ends a thread that comes back from C++ by unwinding its stack, which C++ takes for a fatal error. So
:func:`leave` first asks the threads that are within calls of ours to end, by an exception, and waits for them a bounded
time. A thread elsewhere is ended by Python before it gets into C++: ``import pullback`` registers this with ``atexit``
as early as it can, so that it runs late.

Nothing is counted when a thread enters the runtime: calls cost what they did.
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
from typing import Any

from pullback.core.errors import PullbackError

SECONDS = 1.0
"""How long threads that are asked to end are waited for."""
_closers: list[Callable[[], list[threading.Thread]]] = []
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@functools.cache
def prepare() -> None:
    """Have nobody hear of what daemon threads raise in calls of ours while the process ends, and libraries with it."""
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
    """Have a function take no more work at the end, and return the threads that are at work and cannot be asked."""
    _closers.append(close)


def leave() -> None:
    """Let the process end although threads are within the compiler or the runtime.

    A thread that runs Python, or comes back to it, ends by a ``SystemExit``, of which nobody hears. What is left after
    ``SECONDS`` waits for C++. Waiting for it would take its time. Not waiting has three dangers. Python would end it,
    as above: it is put to sleep instead, as later releases of Python do. When Python is gone, a thread that comes back
    is a crash: see :class:`_Asleep`. And the C library runs the destructors of what C++ still uses: so the process ends
    before them, with the status that it has. What ends it has to be registered last, as the last runs first, and the
    compiler at work registers destructors of what it uses for the first time. So it is registered when the exit has
    begun, by a destructor of this thread's variables: the C library runs these before all others.
    """
    working = [thread for close in _closers for thread in close()]
    if len(sys._current_frames()) == 1:
        return
    threads = [*working, *_asked_to_end({thread.ident for thread in working})]
    if not threads:
        return
    try:
        libc = ctypes.CDLL(None)
        register, at_exit = libc.__cxa_thread_atexit_impl, libc.on_exit
        asleep = _Asleep(threads)
        if sys.version_info < (3, 14):
            ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(libc.pause)
    except (AttributeError, KeyError, OSError, TypeError):  # another system: there is no other way
        sys.setswitchinterval(0.005)
        for thread in working:
            thread.join()
        return
    vars(sys)["_pullback_threads"] = asleep
    # The function, its first argument, and something of the library that it belongs to. The second one is ignored.
    register(at_exit, libc._exit, libc._exit)
    libc.fflush(None)


def _asked_to_end(others: set[int | None]) -> list[threading.Thread]:
    """Ask the threads that are within calls of ours to end; those that have not after a while, or may get there yet.

    Afterwards nobody else gets the interpreter's lock for a second, and with it into C++, unless this thread waits for
    something. A thread that waits for the lock asks for it once more, after the interval that held when it began to
    wait: it is given that time before the last look.
    """
    end = time.monotonic() + SECONDS
    ask = ctypes.pythonapi.PyThreadState_SetAsyncExc
    known = others | {threading.get_ident()}
    asked: set[int] = set()
    interval = min(sys.getswitchinterval(), 0.05)
    looks = 0
    while True:
        sys.setswitchinterval(interval)
        time.sleep(0.001)
        sys.setswitchinterval(1)
        once_more = time.monotonic() + interval + 0.001
        while time.monotonic() < once_more:
            pass
        looks += 1
        frames = {i: frame for i, frame in sys._current_frames().items() if i not in known}
        within = {i for i, frame in frames.items() if i in asked or _is_ours(frame)}  # results are freed in C++ too
        at_work = {t.ident for t in threading.enumerate() if t.ident in frames and not _rests(t)}
        if time.monotonic() > end or (not within and looks >= (_LOOKS_AT_WORK if at_work else _LOOKS)):
            left = within | at_work
            return [thread for thread in threading.enumerate() if thread.ident in left]
        for i in within - asked:
            ask(ctypes.c_ulong(i), ctypes.py_object(SystemExit))
        asked |= within


_LOOKS = 3
"""How often threads are looked for if there are any: one may be between two calls, and free the result of the first."""
_LOOKS_AT_WORK = 10
"""How often, if some are at work: each look may find a thread between two calls. On a busy machine all of them may."""
_FUTEX = {"x86_64": b"202", "aarch64": b"98"}
"""The number of the system call by which threads wait for locks."""


def _rests(thread: threading.Thread) -> bool:
    """Whether a thread waits for something else than the interpreter's lock, for which threads wait a bounded time.

    Where the system does not say, it counts as resting. It is asked by functions that keep that lock: what Python does
    with files gives it away, and the thread would be elsewhere by then.
    """
    libc, text = ctypes.PyDLL(None), ctypes.create_string_buffer(200)
    file = libc.open(f"/proc/self/task/{thread.native_id}/syscall".encode(), os.O_RDONLY | os.O_CLOEXEC)
    if file < 0:
        return True
    libc.read(file, text, len(text) - 1)
    libc.close(file)
    call, *arguments = text.value.split() or [b""]
    if call == b"running" or call != _FUTEX.get(os.uname().machine):
        return call != b"running"
    return int(arguments[3], 16) == 0


def _is_ours(frame: FrameType | None) -> bool:
    """Whether a stack has a call of ours, which may be within the compiler or the runtime."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_HERE):
            return True
        frame = frame.f_back
    return False


_PAUSE = {"x86_64": b"34 ", "aarch64": b"73 "}  # the number of the system call by which a thread sleeps for good


class _Asleep:
    """Threads of which none is awake when this object is deleted, which Python does when it clears ``sys``.

    jaxlib waits for its compiler in steps of 0.2 s. After each it takes the lock of the interpreter, to see whether the
    user interrupts it. While Python is torn down, that puts the thread to sleep; a moment later, when Python has
    forgotten its threads, it would read from address 0.

    Raises:
      OSError: the system does not say what threads do.
      KeyError: nor does the table, for this processor.
    """

    def __init__(self, threads: list[threading.Thread]) -> None:
        self._awake: list[int] = []  # descriptors: Python would warn of files that are never closed
        self._pause = _PAUSE[os.uname().machine]
        for thread in threads:
            self._awake.append(os.open(f"/proc/self/task/{thread.native_id}/syscall", os.O_RDONLY | os.O_CLOEXEC))

    def __del__(self, now: Any = time.monotonic, sleep: Any = time.sleep, read: Any = os.pread) -> None:
        end = now() + 1  # other names of the module are gone by now
        while self._awake and now() < end:
            try:
                sleeps = read(self._awake[-1], 100, 0).startswith(self._pause)
            except OSError:  # the thread has ended
                sleeps = True
            if sleeps:
                self._awake.pop()  # the descriptor ends with the process
            else:
                sleep(0.001)
