"""Weak registries: list all living objects of a kind without keeping any alive."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from pullback.core.locks import lock

T = TypeVar("T")


class Registry(Generic[T]):
    """A thread-safe weak set: unlike a ``WeakSet``, it may be listed while another thread adds to it."""

    def __init__(self) -> None:
        self._lock = lock(vars(self), "_lock")
        self._objects: weakref.WeakSet[T] = weakref.WeakSet()

    def add(self, x: T) -> None:
        """Add an object; the registry does not keep it alive."""
        with self._lock:
            self._objects.add(x)

    def living(self) -> list[T]:
        """Return a list of the added objects that are still alive."""
        with self._lock:
            return list(self._objects)


class OwnsPrograms:
    """The base class of this library's callables, as from ``jit``, whose attributes may hold compiled programs."""
