"""Abstract values, and the symbolic zero."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pullback.core.dtypes import interned, short_name

Shape = tuple[int, ...]


class ShapedArray:
    """What is known of an array before it is computed.

    Attributes:
      shape: the size of each axis.
      dtype: the type of an element.
      weak_type: whether the type gives way to that of other operands, as a Python number's does.
    """

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], weak_type: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    def update(self, **changes: Any) -> ShapedArray:
        """The same abstract value with some attributes replaced."""
        get = changes.get
        return ShapedArray(get("shape", self.shape), get("dtype", self.dtype), get("weak_type", self.weak_type))

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.weak_type)

    def __reduce__(self) -> Any:
        return _unpickled, self._key()

    def __eq__(self, other: object) -> bool:
        return type(other) is ShapedArray and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return f"{short_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self}{weak})"


def _unpickled(shape: Shape, dtype: np.dtype[Any], weak_type: bool) -> ShapedArray:
    return ShapedArray(shape, interned(dtype), weak_type)


class MappedAxis:
    """The axis over which a function is mapped: its name (or None) and its size."""

    __slots__ = ("name", "size")

    def __init__(self, name: Any, size: int) -> None:
        self.name = name
        self.size = size


class SymbolicZero:
    """A tangent or cotangent known to be zero. It has no shape: that of the value it belongs to is at hand."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"


ZERO: Final = SymbolicZero()
