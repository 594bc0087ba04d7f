"""Locks, and other state, that a forked child has anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def lock(namespace: dict[str, Any], name: str, reentrant: bool = False) -> Any:
    """A lock, of which each forked child gets one of its own: a thread that is not there may hold the parent's.

    It is one of Python's, since an interrupt may come while a method that is written in Python takes it.

    Args:
      namespace: of the module, or the object, that has it: its ``globals()`` or ``vars(self)``, which is kept alive.
      name: its name there.
      reentrant: whether the thread that holds it may take it again, as a signal handler of the user's would.

    >>> _guard = lock(globals(), "_guard")
    >>> with _guard:
    ...     pass
    """
    make: Callable[[], Any] = threading.RLock if reentrant else threading.Lock
    renewed(namespace, name, make)
    return make()


def renewed(namespace: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
    """Give each forked child something of its own for what refers to threads, which are not there.

    Args:
      namespace: of the module, or the object, that has it.
      name: its name there.
      make: makes a new one.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: namespace.__setitem__(name, make()))
