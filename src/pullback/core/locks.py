"""Locks and other state that each forked child process makes anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def lock(namespace: dict[str, Any], name: str, reentrant: bool = False) -> Any:
    """Return a lock that each forked child replaces by a new one: in the child, no thread would release a held lock.

    It is a lock of ``threading``: a class of Python's could be interrupted within its ``__enter__``.

    Args:
      namespace: the owner's ``globals()`` or ``vars(self)``, which is kept alive.
      name: the name of the lock in ``namespace``.
      reentrant: whether the thread that holds it may acquire it again, as a signal handler would.

    >>> _guard = lock(globals(), "_guard")
    >>> with _guard:
    ...     pass
    """
    make: Callable[[], Any] = threading.RLock if reentrant else threading.Lock
    renewed(namespace, name, make)
    return make()


def renewed(namespace: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
    """Have each forked child replace an object that refers to threads, since it lacks its parent's threads.

    Args:
      namespace: the owner's ``globals()`` or ``vars(self)``.
      name: its name there.
      make: makes a new one.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: namespace.__setitem__(name, make()))
