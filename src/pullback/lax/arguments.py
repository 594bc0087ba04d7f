"""Checks of arguments of ``pullback.lax`` that are shapes or axes."""

from __future__ import annotations

from typing import Any

from pullback.core.arguments import typed
from pullback.core.dims import as_size, is_symbolic
from pullback.core.errors import AxisError, PullbackError, ShapeError
from pullback.core.source import by_name
from pullback.core.types import Shape
from pullback.primitives.checks import known_int


def ints(values: Any) -> Shape:
    """Convert a sequence of ints to a tuple.

    Raises:
      ShapeError: it is no sequence, or holds something else (a TypeError and a ValueError).
    """
    try:
        return tuple(map(as_size, values))
    except TypeError as error:
        if isinstance(error, PullbackError):
            raise
        raise ShapeError(by_name(f"expected a sequence of ints, a shape or axes, got {typed(values)}")) from None


def size(name: str, what: str, value: Any) -> Any:
    """Convert an argument to a size: an int, or a symbolic size. It raises what ``known_int`` does."""
    return value if is_symbolic(value) else known_int(f"lax.{name}", what, value)


def axis_position(name: str, axis: int, rank: int) -> int:
    """Convert an axis that may count from the end to a position from the start."""
    if type(axis) is not int:
        axis = known_int(f"lax.{name}", "an axis", axis)
    if not -rank <= axis < rank:
        raise AxisError(f"lax.{name}: axis {axis} is out of bounds for an array of {rank} axes")
    return axis % rank
