"""``jax._src.literals``: Equinox and jaxtyping count these among the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.types import ShapedArray


class TypedNdArray(np.ndarray[Any, Any]):
    """An array of NumPy's that knows whether its type is weak; Pullback takes it as any other and makes none.

    >>> x = TypedNdArray(np.float32([1, 2]), weak_type=True)
    >>> x.aval, x.weak_type, (x + 1).weak_type
    (ShapedArray(f32[2], weak_type=True), True, False)
    """

    weak_type: bool = False

    def __new__(cls, val: Any, weak_type: bool = False) -> TypedNdArray:
        """An array with the elements of another one."""
        array = np.asarray(val).view(cls)
        array.weak_type = weak_type
        return array

    def __array_finalize__(self, other: Any) -> None:
        self.weak_type = False  # what is computed of it is not

    @property
    def aval(self) -> ShapedArray:
        """Its type."""
        return ShapedArray(self.shape, self.dtype, self.weak_type)

    @property
    def val(self) -> np.ndarray[Any, Any]:
        """The array without its type."""
        return self.view(np.ndarray)


LiteralArray = TypedNdArray
"""The name in earlier releases, which jaxtyping and Equinox ask for first."""
