"""Types for annotations.

``ArrayLike`` is what functions of ``pullback.numpy`` take: arrays, NumPy's arrays and scalars, Python numbers.
``DTypeLike`` is what they take for a dtype.
"""

from typing import Any, Protocol

import numpy as np

from pullback.core.array import Array as Array


class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

DTypeLike = str | type[Any] | np.dtype[Any] | SupportsDType

__all__ = ["Array", "ArrayLike", "DTypeLike"]
