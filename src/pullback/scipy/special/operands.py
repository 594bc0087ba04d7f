"""Operands of special functions."""

from __future__ import annotations

from typing import Any

from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.trace import Primitive
from pullback.numpy.promotion import inexact_operand, promote_all
from pullback.primitives.checks import FLOAT, check_dtype
from pullback.primitives.elementwise import convert_element_type


def real_operand(name: str, x: Any) -> Array:
    """An operand as an array of floats."""
    x = inexact_operand(name, x)
    check_dtype(name, FLOAT, x.dtype)
    return x


def real_operands(name: str, *xs: Any) -> list[Array]:
    """Operands as arrays of their common dtype of floats; integers are converted."""
    arrays = promote_all(name, xs)
    dtype = dtypes.to_inexact(arrays[0].dtype)
    check_dtype(name, FLOAT, dtype)
    return [x if x.dtype == dtype else convert_element_type(x, dtype, x.weak_type) for x in arrays]


def apply(name: str, primitive: Primitive, *xs: Any) -> Any:
    """An operation of floats, applied to its promoted operands.

    Raises:
      OperandError: an operand that is no array (a TypeError).
      DtypeError: complex operands (a TypeError).
    """
    if len(xs) == 1:
        return primitive.bind(real_operand(name, xs[0]))
    return primitive.bind(*real_operands(name, *xs))
