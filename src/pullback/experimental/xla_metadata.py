"""Advice for XLA's fusion of operations: ``jax.experimental.xla_metadata``. On CPUs it has no effect."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from pullback.core.errors import ArgumentError
from pullback.core.faces import face

__all__ = ["fuse_limit", "must_fuse_call", "set_xla_metadata"]
face(globals())

F = TypeVar("F", bound=Callable[..., Any])


class _Marks(nullcontext[None]):
    """A context that has no effect, and a decorator that returns the function itself."""

    def __call__(self, f: F) -> F:
        return f


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Mark operations with words for the compiler; without effect, since XLA reads none on CPUs.

    Args:
      x: the value whose operation is marked, or a function; without it, a context is returned, for all operations in
        it, which decorates functions too.
      kwargs: the words, and their values.

    Returns:
      ``x``, or the context.

    >>> from pullback.experimental.xla_metadata import set_xla_metadata
    >>> with set_xla_metadata(stage="loss"):
    ...     pass
    """
    return _Marks() if x is None else x


def fuse_limit() -> AbstractContextManager[None]:
    """Return a context beyond which operations are not fused; without effect on CPUs.

    Returns:
      A context manager.

    >>> from pullback.experimental.xla_metadata import fuse_limit
    >>> with fuse_limit():
    ...     pass
    """
    return nullcontext()


def must_fuse_call(identifier: str) -> Callable[[F], F]:
    """Return a decorator of functions whose operations the compiler must fuse; without effect on CPUs.

    Args:
      identifier: the name of the group of operations, a string of digits.

    Returns:
      A decorator that returns the function.

    Raises:
      ArgumentError: ``identifier`` is no such string (a TypeError and a ValueError).

    >>> from pullback.experimental.xla_metadata import must_fuse_call
    >>> must_fuse_call("1")(lambda x: 2 * x)(3)
    6
    """
    if not isinstance(identifier, str) or not identifier.isdigit():
        raise ArgumentError(f"must_fuse_call takes a string of digits, got {identifier!r}")
    return lambda f: f
