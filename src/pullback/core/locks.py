"""Locks and other state that each forked child process makes anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def lock(namespace: dict[str, Any], name: str, reentrant: bool = False) -> Any:
    """Return a lock of ``threading``, which each forked child process replaces by a new one.

    In the child, a lock that another thread of the parent held would never be released.

    Args:
      namespace: the ``globals()`` or ``vars(self)`` in which the caller stores the lock; it is kept alive forever.
      name: the name of the lock in ``namespace``.
      reentrant: whether the thread that holds the lock may acquire it again, as a signal handler would.

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
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: namespace.__setitem__(name, make()))
