"""Types for annotations.

``ArrayLike`` is an operand of ``pullback.numpy``: an array, a NumPy array or scalar, or a Python number.
``DTypeLike`` is a dtype of NumPy's, its name, or a type such as ``pullback.numpy.float32``.
"""

from typing import Any, Protocol

import numpy as np

from pullback.core.array import Array as Array
from pullback.core.array import ArrayLike as ArrayLike
from pullback.core.faces import face


class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


DTypeLike = str | type[Any] | np.dtype[Any] | SupportsDType

__all__ = ["Array", "ArrayLike", "DTypeLike"]
face(globals())
