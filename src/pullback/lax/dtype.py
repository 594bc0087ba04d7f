"""The dtype of a value, or of an object that denotes a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, HasShapeAndDtype
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError


def dtype(x: ArrayLike | DTypeLike | HasShapeAndDtype) -> np.dtype[Any]:
    """The dtype of an array or a number, or of an object that denotes a dtype.

    Args:
      x: an array, a number, or a dtype: an object, a name or a type.

    Returns:
      The dtype that arrays of this kind have, of 32 bits unless 64 are enabled.

    Raises:
      ArgumentError: it is None (a ValueError).
      OperandError: it is not one of these (a TypeError).

    >>> from pullback import lax
    >>> lax.dtype(1.0), lax.dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if x is None:
        raise ArgumentError("lax.dtype: expected an array, a number or a dtype, got None")
    if isinstance(x, (str, type, np.dtype)):
        return dtypes.canonicalize_dtype(x)
    return dtypes.canonicalize_dtype(getattr(x, "dtype", None) or dtypes.dtype_of(x))
