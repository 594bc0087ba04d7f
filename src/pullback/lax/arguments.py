"""Checks of arguments of ``pullback.lax`` that are shapes or axes."""

from __future__ import annotations

from typing import Any

from pullback.core.dims import as_size
from pullback.core.errors import AxisError
from pullback.core.types import Shape


def ints(values: Any) -> Shape:
    """Convert a sequence of ints to a tuple."""
    return tuple(map(as_size, values))


def axis_position(name: str, axis: int, rank: int) -> int:
    """Convert an axis that may count from the end to a position from the start."""
    if not -rank <= axis < rank:
        raise AxisError(f"lax.{name}: axis {axis} is out of bounds for an array of {rank} axes")
    return axis % rank
