"""Types for annotations.

``ArrayLike`` is what functions of ``pullback.numpy`` take: arrays, NumPy's arrays and scalars, Python numbers.
``DTypeLike`` is what stands for a dtype: one of NumPy's, its name, or a type such as ``pullback.numpy.float32``.
"""

from typing import Any

from numpy.typing import DTypeLike as _NumpyDTypeLike

from pullback.core.array import Array as Array
from pullback.core.array import ArrayLike as ArrayLike

DTypeLike = _NumpyDTypeLike | Any

__all__ = ["Array", "ArrayLike", "DTypeLike"]
