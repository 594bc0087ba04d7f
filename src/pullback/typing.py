"""Types for annotations.

``ArrayLike`` is what functions of ``pullback.numpy`` take: arrays, NumPy's arrays and scalars, Python numbers.
``DTypeLike`` is what stands for a dtype: one of NumPy's, its name, or a type such as ``pullback.numpy.float32``.
"""

from typing import Any, Protocol

import numpy as np

from pullback.core.array import Array as Array
from pullback.core.array import ArrayLike as ArrayLike
from pullback.core.faces import face


class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


DTypeLike = str | type[Any] | np.dtype[Any] | SupportsDType

__all__ = ["Array", "ArrayLike", "DTypeLike"]
face(globals())
