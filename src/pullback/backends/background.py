"""Work that goes on in other threads while the caller does something else: programs that are compiled.

As many threads as there are processors take what is waiting, in order, and end when nothing is. They are daemons, since
a compiler at work cannot be stopped, and the process has to be able to end. What that takes is in :func:`_leave`.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from pullback.backends import forks
from pullback.backends.parts import cores
from pullback.core.config import config
from pullback.core.locks import renewed

T = TypeVar("T")


class Job(Generic[T]):
    """Work for another thread, which has the switches of the one that asked for it.

    Attributes:
      done: whether it has ended.
      result: what it returned; None if it raised an exception, which whoever does the work again will see.
    """

    __slots__ = ("__weakref__", "_switches", "_work", "done", "result")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._switches = dict(vars(config))
        self.done = False
        self.result: T | None = None

    def run(self) -> None:
        """Do the work, in this thread, which has no other use."""
        work = self._work
        assert work is not None
        switches = vars(config)
        switches.clear()
        switches.update(self._switches)
        with suppress(BaseException):
            self.result = work()
        self._work = None
        self.done = True


_guard = threading.RLock()  # a signal handler of the user's, which may compile, runs while it is held
_waiting: deque[weakref.ref[Job[Any]]] = deque()
_threads: set[threading.Thread] = set()
_closing = False
for _name, _make in (("_guard", threading.RLock), ("_waiting", deque), ("_threads", set)):
    renewed(globals(), _name, _make)


def submit(job: Job[Any]) -> bool:
    """Have a job done by another thread, unless nobody refers to it any more when its turn comes.

    Returns:
      Whether it will be: not while the process ends, nor where no thread can be started.
    """
    _prepare()
    with _guard:
        if _closing or forks.in_child:
            return False
        _waiting.append(weakref.ref(job))
        if len(_threads) >= cores():
            return True
        thread = threading.Thread(target=_take_turns, name="pullback-compiler", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many, or the interpreter is about to end
            return bool(_threads)
        finally:
            if thread.ident is not None:
                _threads.add(thread)
    return True


@functools.cache
def _prepare() -> None:
    forks.used.append("background")  # a child that is forked from now on is without the threads
    atexit.register(_leave)


def _take_turns() -> None:
    """Do what is waiting, until nothing is."""
    while True:
        with _guard:
            job = None
            while _waiting and job is None:
                job = _waiting.popleft()()
            if job is None or _closing:
                _threads.discard(threading.current_thread())
                return
        job.run()


def _leave() -> None:
    """Let the process end although threads are at work, which cannot be told to stop.

    Waiting for the compiler would take its time. Not waiting has three dangers. While Python is torn down, up to 3.13,
    it ends a thread that comes back from C++, which C++ takes for a fatal error: such a thread is put to sleep instead,
    as later releases do. When Python is gone, a thread that comes back is a crash: see :class:`_Asleep`. And the C
    library runs the destructors of what the compiler still uses: so the process ends before them, with the status that
    it has. What ends it has to be registered last, as the last runs first, and the compiler at work registers
    destructors of what it uses for the first time. So it is registered when the exit has begun, by a destructor of this
    thread's variables: the C library runs these before all others.
    """
    global _closing
    with _guard:
        _closing = True
        _waiting.clear()
        threads = list(_threads)
    if not threads:
        return
    try:
        libc = ctypes.CDLL(None)
        register, at_exit = libc.__cxa_thread_atexit_impl, libc.on_exit
        asleep = _Asleep(threads)
        if sys.version_info < (3, 14):
            ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(libc.pause)
    except (AttributeError, KeyError, OSError, TypeError):  # another system: there is no other way
        for thread in threads:
            thread.join()
        return
    vars(sys)["_pullback_threads"] = asleep
    # The function, its first argument, and something of the library that it belongs to. The second one is ignored.
    register(at_exit, libc._exit, libc._exit)
    libc.fflush(None)


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
        self._awake: list[Any] = []
        self._pause = _PAUSE[os.uname().machine]
        for thread in threads:
            self._awake.append(open(f"/proc/self/task/{thread.native_id}/syscall", "rb", buffering=0))  # noqa: SIM115

    def __del__(self, now: Any = time.monotonic, sleep: Any = time.sleep) -> None:  # other names of the module are gone
        end = now() + 1
        while self._awake and now() < end:
            file = self._awake[-1]
            try:
                file.seek(0)
                sleeps = file.read().startswith(self._pause)
            except OSError:  # the thread has ended
                sleeps = True
            if sleeps:
                self._awake.pop().close()
            else:
                sleep(0.001)
