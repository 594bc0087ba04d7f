"""Work that an interrupt may not end half-way.

While the compiler works, the call that waits for it looks for signals. If one raises, as Ctrl-C does, the call is over,
and frees what the compiler still uses: the process ends with a segmentation fault. So it does when the import of a
module in C++ is interrupted, and begun again. Signals raise in the main thread only. So another thread makes the call,
and the main one waits for it, and raises afterwards.
"""

from __future__ import annotations

import _thread
import functools
import importlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def uninterrupted(work: Callable[[], T]) -> T:
    """The result of a function, which runs to its end, whatever signals come meanwhile.

    Starting the thread takes some 50 us, which is little beside what compiling takes.

    Args:
      work: a function without arguments. It must not run user code, which may depend on the thread.

    Raises:
      BaseException: what a signal handler raised meanwhile, KeyboardInterrupt for example (the first one, if there were
        several), else what the function raises.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    outcome: list[tuple[Any, BaseException | None]] = []
    first = _thread.allocate_lock()  # for the one thread that does the work
    running = _thread.allocate_lock()
    running.acquire()

    def run() -> None:
        if not first.acquire(blocking=False):
            return
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))
        running.release()

    signalled: BaseException | None = None
    while not outcome:
        try:
            if not first.locked():  # a signal may come just before the thread starts, or just after
                _thread.start_new_thread(run, ())
            running.acquire()
        except BaseException as error:
            no_threads = isinstance(error, RuntimeError) and "new thread" in str(error)
            if not first.locked() and no_threads:  # there are too many, or the interpreter is about to end
                return work()
            signalled = signalled or error
    result, failure = outcome.pop()
    try:
        if signalled is not None:
            raise signalled
        if failure is not None:
            raise failure
    finally:
        del signalled, failure  # whose tracebacks refer to this frame
    return result  # type: ignore[no-any-return]


@functools.cache
def imported(name: str) -> Any:
    """A module that is, or needs, one in C or C++, imported when it is first needed.

    Raises:
      ImportError: it is not installed.
    """
    return uninterrupted(lambda: importlib.import_module(name))
