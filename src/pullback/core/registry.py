"""Weak registries: list all living objects of a kind without keeping any alive."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from pullback.core.locks import lock

T = TypeVar("T")


class Registry(Generic[T]):
    """A thread-safe weak set: threads may add objects while another lists them, which a ``WeakSet`` forbids."""

    def __init__(self) -> None:
        self._lock = lock(vars(self), "_lock")
        self._objects: weakref.WeakSet[T] = weakref.WeakSet()

    def add(self, x: T) -> None:
        """Add an object, without keeping it alive."""
        with self._lock:
            self._objects.add(x)

    def living(self) -> list[T]:
        """Return the objects that are alive."""
        with self._lock:
            return list(self._objects)


class OwnsPrograms:
    """The base class of this library's callables that may store compiled programs in attributes, as functions may."""
