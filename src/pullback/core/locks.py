"""Forks while other threads run: state that each child process makes anew, and imports that are awaited.

A forked child has only the thread that forked. It would wait for ever for a lock that another thread held, and for a
module that another thread was importing.
"""

from __future__ import annotations

import _imp
import functools
import importlib
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from pullback.core import systems

T = TypeVar("T")


def lock(namespace: dict[str, Any], name: str, reentrant: bool = False) -> Any:
    """Return a lock of ``threading``, which each forked child process replaces by a new one.

    In the child, a lock that another thread of the parent held would never be released.

    Args:
      namespace: the ``globals()`` or ``vars(self)`` in which the caller stores the lock; it is kept alive forever.
      name: the name of the lock in ``namespace``.
      reentrant: whether the thread that holds the lock may acquire it again, as a signal handler would.

    >>> from pullback.core.locks import lock
    >>> _guard = lock(globals(), "_guard")
    >>> with _guard:
    ...     pass
    """
    make: Callable[[], Any] = threading.RLock if reentrant else threading.Lock
    renewed(namespace, name, make)
    return make()


def renewed(namespace: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
    """Arrange that each forked child process sets ``namespace[name] = make()``.

    This is for an object that refers to threads, as a lock or a queue does: the child lacks its parent's threads.

    Args:
      namespace: the ``globals()`` or ``vars(self)`` in which the object is stored; it is kept alive forever.
      name: the name of the object in ``namespace``.
      make: takes no arguments and returns a new object.
    """
    systems.at_fork(in_child=lambda: namespace.__setitem__(name, make()))


class cached_property(functools.cached_property[T]):
    """``functools.cached_property``, whose lock (Python 3.11 has one) each forked child process makes anew."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if "lock" in vars(self):
            self.lock = lock(vars(self), "lock", reentrant=True)


SECONDS = 10.0
"""How long a fork waits for imports: they might wait for a lock of the thread that forks."""
_AWAITED = {"jaxlib", "ml_dtypes", "numpy", "opt_einsum", "optree", "pullback", "scipy", *sys.stdlib_module_names}
"""The packages whose imports are awaited. The import of another may be a program that runs for hours."""
_FORKS_HOLD = {"logging": "_lock", "concurrent.futures.thread": "_global_shutdown_lock"}
"""Modules of Python that have forks hold a lock of theirs, and its name. What they import later may need the lock."""
_after_us = _FORKS_HOLD.keys() - sys.modules.keys()
"""Those of these modules that registered after this one, so that a fork acquires their locks before it comes here."""


def _hold_imports() -> None:
    """Wait for imports by other threads, and hold Python's import lock, so that none begins before the fork."""
    _imp.acquire_lock()
    if not _others_import():
        return
    for held in _held_by_forks():
        with suppress(RuntimeError):  # the module has just registered, or is about to, so that the lock is not held
            held.release()
    end = time.monotonic() + SECONDS
    while _others_import() and time.monotonic() < end:
        _imp.release_lock()
        time.sleep(0.001)
        _imp.acquire_lock()
    for held in _held_by_forks():  # also of modules that are new, for what they registered releases it after the fork
        held.acquire()


def _held_by_forks() -> list[Any]:
    held = [getattr(sys.modules.get(name), _FORKS_HOLD[name], None) for name in _after_us]
    return [lock for lock in held if lock is not None]


def _others_import() -> bool:
    """Whether another thread is importing a module, and holds the lock that Python has for it."""
    locks = [(name, found()) for name, found in list(_module_locks.items())]
    own = threading.get_ident()
    return any(lock and lock.owner != own and name.partition(".")[0] in _AWAITED for name, lock in locks)


def _release_imports() -> None:
    with suppress(RuntimeError):  # a signal handler raised before the lock was held
        _imp.release_lock()


_module_locks: dict[str, Callable[[], Any]] = vars(importlib)["_bootstrap"]._module_locks
systems.at_fork(before=_hold_imports, in_parent=_release_imports, in_child=_release_imports)
