"""Types for annotations.

``ArrayLike`` is what functions of ``pullback.numpy`` take: arrays, NumPy's arrays and scalars, Python numbers.
"""

import numpy as np

from pullback.core.array import Array as Array

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

__all__ = ["Array", "ArrayLike"]
