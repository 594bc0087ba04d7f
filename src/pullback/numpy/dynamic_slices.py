"""``ds``: an index that selects a block of a fixed size, whose start may be traced."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, IndexKindError

_LEFT_OUT: Any = object()


@dataclass(frozen=True)
class Slice:
    """The block of ``size`` elements from ``start`` on, ``stride`` apart: an index that :func:`ds` makes.

    Attributes:
      start: the position of the first element: an int, or an array of integers without axes.
      size: the number of elements, an int.
      stride: the distance between the positions of elements, an int.
    """

    start: int | Array
    size: int
    stride: int = 1

    def static(self) -> slice | None:
        """Return the Python slice with the same elements, or None if the start is an array."""
        return slice(self.start, self.start + self.size * self.stride, self.stride) if type(self.start) is int else None


def ds(start: int | ArrayLike | None, size: int = _LEFT_OUT, stride: int | None = None) -> slice | Slice:
    """Make an index that selects ``size`` elements from ``start`` on, where ``start`` may be traced.

    ``x[ds(i, 2)]`` is ``x[i : i + 2]``. If ``i`` is a Python int, the block ends where the array ends, as any slice
    does. If it is an array, traced or not, the block has ``size`` elements in any case: it is moved inside an array
    where it would reach beyond an end, and an update there has no effect (``x.at[...]`` takes ``mode``).

    Args:
      start: the first position: an int, or an array of integers without axes; a negative one counts from the end. None
        without ``size`` is the slice of everything, and ``ds(n)`` is ``ds(0, n)``.
      size: the number of elements, an int that is known when a function is traced.
      stride: the distance between elements, an int from 1 on; by default 1.

    Returns:
      An index for arrays and references, alone or in a tuple with others.

    Raises:
      ArgumentError: ``size`` or ``stride`` is no such int (a TypeError and a ValueError).
      IndexKindError: ``start`` is no integer (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ds, jit
    >>> block = jit(lambda x, i: x[ds(i, 2)])
    >>> print(block(jnp.arange(10), 4), block(jnp.arange(10), 9))
    [4 5] [8 9]
    """
    if size is _LEFT_OUT:
        if start is None:
            return slice(None)
        start, size = 0, _integer("size", start, 0)
    if not isinstance(start, Array):
        try:
            start = operator.index(start)  # type: ignore[arg-type]
        except TypeError:
            raise IndexKindError(f"ds: start must be an int or an array of integers, got {start!r}") from None
    elif start.shape or not dtypes.is_integer(start.dtype):
        kind = f"{dtypes.short_name(start.dtype)} of shape {start.shape}"
        raise IndexKindError(f"ds: start must be a scalar integer, got {kind}")
    return Slice(start, _integer("size", size, 0), 1 if stride is None else _integer("stride", stride, 1))


def _integer(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"ds: {name} must be an int that is known when a function is traced, got {value!r}"
        ) from None
    if number < least:
        raise ArgumentError(f"ds: {name} must be at least {least}, got {number}")
    return number
