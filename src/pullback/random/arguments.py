"""What the arguments of random functions mean: dtypes, shapes and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.types import Shape
from pullback.numpy.promotion import known_int, operand, shape_tuple
from pullback.primitives.elementwise import convert_element_type

DType = np.dtype[Any]


def float_dtype(name: str, dtype: Any) -> DType:
    """The floating-point dtype that is asked for; None asks for the default."""
    if dtype is None:
        return dtypes.default_float()
    found = dtypes.requested_dtype(dtype, f"random.{name}")
    if not dtypes.is_float(found):
        raise ArgumentError(f"{name} returns floats: its dtype must be floating-point, got {dtypes.short_name(found)}")
    return found


def integer_dtype(name: str, dtype: Any) -> DType:
    """The integer dtype that is asked for; None asks for the default."""
    if dtype is None:
        return dtypes.default_int()
    found = dtypes.requested_dtype(dtype, f"random.{name}")
    if not dtypes.is_integer(found):
        raise ArgumentError(f"{name} returns integers: its dtype must be one of them, got {dtypes.short_name(found)}")
    return found


def parameter(name: str, what: str, x: Any, dtype: DType) -> Array:
    """A parameter of a distribution, as an array of ``dtype``."""
    array = operand(f"{name}: {what}", x)
    if not (dtypes.is_float(array.dtype) or dtypes.is_integer(array.dtype) or dtypes.is_bool(array.dtype)):
        raise DtypeError(f"{name}: {what} must be a real number, got {dtypes.short_name(array.dtype)}")
    return convert_element_type(array, dtype)


def drawn_shape(name: str, shape: Any, **parameters: Shape) -> Shape:
    """The shape of what is drawn: that which is asked for, or if that is None, that of the parameters together.

    Raises:
      ShapeError: the parameters do not broadcast to it.
    """
    try:
        together = np.broadcast_shapes(*parameters.values())
    except ValueError:
        together = None
    if shape is None and together is not None:
        return together
    asked = None if shape is None else shape_tuple(shape, name)
    try:
        fits = together is not None and asked is not None and np.broadcast_shapes(asked, together) == asked
    except ValueError:
        fits = False
    if not fits or asked is None:
        shown = ", ".join(f"{what} of shape {s}" for what, s in parameters.items())
        raise ShapeError(f"{name}: {shown} must broadcast to the shape of the result, which is {asked or 'not given'}")
    return asked


def size_of(name: str, what: str, n: Any) -> int:
    """A size that is known in Python."""
    size = known_int(name, what, n)
    if size < 0:
        raise ArgumentError(f"{name}: {what} must not be negative, got {size}")
    return size
