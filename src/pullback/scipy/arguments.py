"""Check and convert arguments for several modules of ``pullback.scipy``: lists of numbers, and points of functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, as_array, host_value, is_on_host
from pullback.core.errors import (
    ArgumentError,
    DtypeError,
    OperandError,
    PullbackError,
    ShapeError,
    UnsupportedArgumentError,
)
from pullback.core.trace import Tracer
from pullback.numpy.promotion import inexact_operand
from pullback.primitives import elementwise as ops


def known(x: Any) -> Any:
    """Return the elements of ``x`` as a NumPy array, or None if they are traced."""
    value = x.concrete() if isinstance(x, Tracer) else x
    return None if value is None else np.asarray(value)


def on_host(*arrays: Any) -> list[np.ndarray[Any, Any]] | None:
    """Return the elements of arrays that are all concrete and on the host, else None.

    Where they are, no derivative is being taken and nothing is traced: SciPy may compute the result.
    """
    return [host_value(x) for x in arrays] if all(map(is_on_host, arrays)) else None


def of_own_memory(x: np.ndarray[Any, Any]) -> Array:
    """Convert an array that nobody else holds, as ``as_array`` does, without a copy if its dtype stays."""
    if x.ndim and x.base is None and x.flags.c_contiguous and x.dtype is dtypes.canonicalize_dtype(x.dtype):
        return ArrayImpl(x)
    return as_array(x)


def inexact(name: str, x: Any) -> Array:
    """Convert an operand, or a list of numbers, to an array of floats or complex numbers."""
    if isinstance(x, (list, tuple)) and x:
        try:
            x = pnp.asarray(x)
        except PullbackError as error:
            raise OperandError(f"{name}: {error}") from None
    return inexact_operand(name, x)


def floats(name: str, x: Any) -> Array:
    """Convert an operand as :func:`inexact` does, and to single or double precision."""
    x = inexact(name, x)
    return x if x.dtype.char in "fdFD" else ops.convert_element_type(x, np.dtype(np.float32))


def real_floats(name: str, x: Any, what: str) -> Array:
    """Convert real numbers to an array of single or double precision; ``what`` names them in errors."""
    if isinstance(x, Array) and x.dtype.char in "fd":
        return x
    x = floats(name, x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"{name}: {what} must be real numbers, got {dtypes.short_name(x.dtype)}")
    return x


def abscissas(name: str, x: Any, what: str, least: int) -> Any:
    """Convert ``x`` to a vector of at least ``least`` real numbers; ``what`` names them in errors."""
    x = real_floats(name, x, what)
    if len(x.shape) != 1 or x.shape[0] < least:
        raise ShapeError(f"{name}: {what} must be a vector of at least {least} elements, got shape {x.shape}")
    return x


def check_increasing(name: str, x: Any, what: str) -> None:
    """Raise if points, where they are known, do not increase strictly."""
    values = known(x)
    if values is None or (np.diff(values) > 0).all():
        return
    i = int(np.flatnonzero(~(np.diff(values) > 0))[0])
    raise ArgumentError(
        f"{name}: {what} must increase strictly, got {values[i]} and then {values[i + 1]} at positions {i} and {i + 1}"
    )


def check_inside(name: str, x: Any, low: Any, high: Any, what: str, strict: bool) -> None:
    """Raise if points are outside [low, high]; traced points raise only if ``strict``."""
    values, lowest, highest = known(x), known(low), known(high)
    if values is None or lowest is None or highest is None:
        if strict:
            raise UnsupportedArgumentError(
                f"{name}: with bounds_error=True the points must be concrete, but they are traced; pass "
                f"bounds_error=False and a fill_value"
            )
        return
    outside = (values < lowest) | (values > highest)
    if outside.any():
        raise ArgumentError(
            f"{name}: {what} {values[outside].flat[0]} is out of bounds, from {lowest} to {highest}; pass "
            f"bounds_error=False with a fill_value, or extrapolate"
        )


def constant(x: np.ndarray[Any, Any], like: Any) -> ArrayImpl:
    return ArrayImpl(x.astype(like.dtype))
