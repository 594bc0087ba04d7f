"""Run work to its end even if a signal handler raises meanwhile, as Ctrl-C does.

The call that waits for the compiler checks for signals. If a handler raises, the call ends and frees memory that the
compiler still uses: a segmentation fault. The interrupted import of a C++ module that is begun again crashes too.
Handlers raise in the main thread only. So another thread makes the call; the main thread waits for it and raises
afterwards.
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
    """Return the result of ``work()``, which runs to its end even if a signal such as Ctrl-C arrives meanwhile.

    In the main thread, ``work`` runs in a new thread, since signal handlers interrupt only the main thread. Starting
    the thread takes some 50 us, much less than compiling.

    Args:
      work: a function without arguments. It must not run user code, which may depend on the thread.

    Raises:
      BaseException: the first error that a signal handler raised, such as KeyboardInterrupt; otherwise the error of
        ``work``.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    outcome: list[tuple[Any, BaseException | None]] = []
    first = _thread.allocate_lock()  # the thread that gets it does the work
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
            if not first.locked() and no_threads:  # too many threads, or the interpreter is about to end
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
    """Import the module ``name`` and return it; signals such as Ctrl-C take effect only after the import.

    If the import of a C++ module is interrupted, importing it again crashes.

    Raises:
      ImportError: the module is not installed.
    """
    return uninterrupted(lambda: importlib.import_module(name))
