"""Check and convert the arguments of random functions: dtypes, shapes and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import is_listed
from pullback.core.array import Array
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.types import Shape
from pullback.numpy.promotion import operand, shape_tuple
from pullback.numpy.promotion import size_of as size_of
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.elementwise import convert_element_type

DType = np.dtype[Any]


def float_dtype(name: str, dtype: Any) -> DType:
    """Return ``dtype`` as a floating-point dtype; None stands for the default one."""
    if dtype is None:
        return dtypes.default_float()
    found = dtypes.requested_dtype(dtype, f"random.{name}")
    if not dtypes.is_float(found):
        raise ArgumentError(f"{name} returns floats: its dtype must be floating-point, got {dtypes.short_name(found)}")
    return found


def integer_dtype(name: str, dtype: Any) -> DType:
    """Return ``dtype`` as an integer dtype; None stands for the default one."""
    if dtype is None:
        return dtypes.default_int()
    found = dtypes.requested_dtype(dtype, f"random.{name}")
    if not dtypes.is_integer(found):
        raise ArgumentError(f"{name} returns integers: its dtype must be integer, got {dtypes.short_name(found)}")
    return found


def parameter(name: str, what: str, x: Any, dtype: DType) -> Array:
    """Convert a parameter of a distribution, a real number or array, to an array of ``dtype``."""
    array = operand(f"{name}: {what}", x)
    if not (dtypes.is_float(array.dtype) or dtypes.is_integer(array.dtype) or dtypes.is_bool(array.dtype)):
        raise DtypeError(f"{name}: {what} must be a real number, got {dtypes.short_name(array.dtype)}")
    return convert_element_type(array, dtype)


def sample_shape(name: str, shape: Any, **parameters: Shape) -> Shape:
    """Return the shape of a sample: ``shape``, or the broadcast shape of the parameters if ``shape`` is None.

    Raises:
      ShapeError: the parameters do not broadcast to ``shape``.
    """
    try:
        common = broadcast_shape(name, tuple(parameters.values()))
    except ValueError:
        common = None
    if shape is None and common is not None:
        return common
    target = None if shape is None else shape_tuple(shape, name)
    try:
        fits = common is not None and target is not None and broadcast_shape(name, (target, common)) == target
    except ValueError:
        fits = False
    if not fits or target is None:
        shown = ", ".join(f"{what} of shape {s}" for what, s in parameters.items())
        raise ShapeError(f"{name}: {shown} must broadcast to the shape of the result, which is {target or 'not given'}")
    return target


def check_method(name: str, method: Any) -> None:
    """Raise unless ``method`` names a way in which JAX draws numbers; here both are the exact one.

    Raises:
      ArgumentError: another value (a ValueError).
    """
    if not is_listed(method, ("exact", "approximate")):
        raise ArgumentError(f"{name}: method must be 'exact' or 'approximate', got {method!r}")
