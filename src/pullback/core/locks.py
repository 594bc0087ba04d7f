"""Locks in processes that are forked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def renewed(namespace: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
    """Give each forked child a lock of its own: a thread that is not in the child may hold the parent's, for ever.

    Args:
      namespace: of the module that has the lock: its ``globals()``.
      name: the name of the lock there.
      make: makes a new one.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: namespace.__setitem__(name, make()))
