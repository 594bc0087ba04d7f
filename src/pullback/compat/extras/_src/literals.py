"""``jax._src.literals``: classes that Equinox and jaxtyping treat as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.types import ShapedArray


class TypedNdArray(np.ndarray[Any, Any]):
    """A NumPy array with a flag for weak types; Pullback treats it as any other array and never returns one.

    >>> import numpy as np
    >>> from pullback.compat.extras._src.literals import TypedNdArray
    >>> x = TypedNdArray(np.float32([1, 2]), weak_type=True)
    >>> x.aval, x.weak_type, (x + 1).weak_type
    (ShapedArray(float32[2], weak_type=True), True, False)
    """

    weak_type: bool = False

    def __new__(cls, val: Any, weak_type: bool = False) -> TypedNdArray:
        """An array with the elements of another one."""
        array = np.asarray(val).view(cls)
        array.weak_type = weak_type
        return array

    def __array_finalize__(self, other: Any) -> None:
        self.weak_type = False  # results are not weakly typed

    @property
    def aval(self) -> ShapedArray:
        """Its type."""
        return ShapedArray(self.shape, self.dtype, self.weak_type)

    @property
    def val(self) -> np.ndarray[Any, Any]:
        """The array without its type."""
        return self.view(np.ndarray)


LiteralArray = TypedNdArray
"""The name in earlier releases, which jaxtyping and Equinox try first."""


class _Typed:
    """A Python number with a dtype, for Quax; Pullback treats it as any other number and never returns one."""

    dtype: np.dtype[Any]

    def __new__(cls, value: Any, dtype: np.dtype[Any]) -> Any:
        self: Any = cls.__mro__[2].__new__(cls, value)  # type: ignore[arg-type]
        self.dtype = np.dtype(dtype)
        return self

    @property
    def aval(self) -> ShapedArray:
        """The type of the number: a weakly typed scalar of its dtype."""
        return ShapedArray((), self.dtype, True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()}, dtype={self.dtype.name})"

    def __getnewargs__(self) -> tuple[Any, np.dtype[Any]]:
        return type(self).__mro__[2](self), self.dtype  # type: ignore[call-arg]


class TypedInt(_Typed, int):  # type: ignore[misc]
    """An integer of a dtype.

    >>> import numpy as np
    >>> from pullback.compat.extras._src.literals import TypedInt
    >>> TypedInt(2, np.dtype("int32")), TypedInt(2, np.dtype("int32")).aval
    (TypedInt(2, dtype=int32), ShapedArray(int32[], weak_type=True))
    """


class TypedFloat(_Typed, float):  # type: ignore[misc]
    """A float of a dtype."""


class TypedComplex(_Typed, complex):
    """A complex number of a dtype."""
