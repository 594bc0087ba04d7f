"""Registries of objects that are alive: for what must reach all of a kind, and must keep none of them alive."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from pullback.core.locks import lock

T = TypeVar("T")


class Registry(Generic[T]):
    """The living objects of a kind. Threads may add to it while another one lists them, which a ``WeakSet`` forbids."""

    def __init__(self) -> None:
        self._lock = lock(vars(self), "_lock")
        self._objects: weakref.WeakSet[T] = weakref.WeakSet()

    def add(self, x: T) -> None:
        """Remember an object as long as it lives."""
        with self._lock:
            self._objects.add(x)

    def living(self) -> list[T]:
        """The objects that are alive."""
        with self._lock:
            return list(self._objects)


class OwnsPrograms:
    """A callable of this library, which may have what was compiled of it among its attributes, as functions may."""
