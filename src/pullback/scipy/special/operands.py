"""Check and promote the operands of special functions."""

from __future__ import annotations

from typing import Any

from pullback.core.array import Array
from pullback.core.trace import Primitive
from pullback.numpy.promotion import inexact_operand, inexact_operands
from pullback.primitives.checks import FLOAT, check_dtype


def real_operand(name: str, x: Any) -> Array:
    """Convert an operand to an array of floats; raise if it is complex."""
    x = inexact_operand(name, x)
    check_dtype(name, FLOAT, x.dtype)
    return x


def real_operands(name: str, *xs: Any) -> list[Array]:
    """Promote operands to arrays of a common float dtype; integers are converted."""
    arrays = inexact_operands(name, *xs)
    check_dtype(name, FLOAT, arrays[0].dtype)
    return arrays


def apply(name: str, primitive: Primitive, *xs: Any) -> Any:
    """Apply a primitive of floats to its promoted operands.

    Raises:
      OperandError: an operand that is no array (a TypeError).
      DtypeError: complex operands (a TypeError).
    """
    if len(xs) == 1:
        return primitive.bind(real_operand(name, xs[0]))
    return primitive.bind(*real_operands(name, *xs))
