"""Abstract values, and the symbolic zero."""

from __future__ import annotations

import operator
from typing import Any, Final, NamedTuple

import numpy as np

from pullback.core.dtypes import (
    VOID,
    KeyDtype,
    canonicalize_dtype,
    dtype_name,
    interned,
    short_name,
    shown,
    tangent_dtype,
)

Shape = tuple[int, ...]
_NOWHERE: Final[frozenset[Any]] = frozenset()


class AbstractValue:
    """What is known of a value before it is computed; the type of arrays is :class:`ShapedArray`."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """What is known of an array before it is computed.

    Attributes:
      shape: the size of each axis.
      dtype: the type of an element.
      weak_type: whether the type gives way to that of other operands, as a Python number's does.
      varying: the named axes along which the value varies.
    """

    __slots__ = ("dtype", "shape", "varying", "weak_type")

    def __init__(
        self,
        shape: Shape,
        dtype: np.dtype[Any],
        weak_type: bool = False,
        varying: frozenset[Any] = _NOWHERE,
        *,
        sharding: Any = None,
    ) -> None:
        """The type of an array.

        Args:
          shape: the size of each axis.
          dtype: the type of an element.
          weak_type: whether the type gives way to that of other operands.
          varying: the named axes along which the value varies.
          sharding: is taken for JAX's sake; where an array is, is no part of its type here.
        """
        if not isinstance(dtype, np.dtype):
            if type(dtype) is not KeyDtype:
                shape, dtype = tuple(map(operator.index, shape)), canonicalize_dtype(dtype)
        elif dtype.num == VOID:
            dtype = shown(dtype)
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.varying = varying

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    def batched(self, axis: MappedAxis, dim: int | None = 0) -> ShapedArray:
        """The type of a batch of values of this type, whose mapped axis is at ``dim``: it varies along that no more."""
        shape = self.shape if dim is None else (*self.shape[:dim], axis.size, *self.shape[dim:])
        return self.update(shape=shape, varying=self.varying - {axis.key})

    def update(self, **changes: Any) -> ShapedArray:
        """The same abstract value with some attributes replaced."""
        get = changes.get
        return ShapedArray(
            get("shape", self.shape), get("dtype", self.dtype), get("weak_type", self.weak_type),
            get("varying", self.varying),
        )  # fmt: skip

    @property
    def sharding(self) -> None:
        """None: where an array is, is no part of its type."""

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type as text, ``float32[3]``, or ``f32[3]`` with ``short_dtypes``."""
        name = short_name(self.dtype) if short_dtypes else dtype_name(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]"

    def to_tangent_aval(self) -> ShapedArray:
        """The type of its tangents; those of integers and booleans are ``float0``."""
        return self.update(dtype=tangent_dtype(self.dtype))

    def to_ct_aval(self) -> ShapedArray:
        """The type of its cotangents."""
        return self.to_tangent_aval()

    def strip_weak_type(self) -> ShapedArray:
        """The same type, not weak."""
        return self.update(weak_type=False)

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        """The same type, weak or not."""
        return self.update(weak_type=weak_type)

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.weak_type, self.varying)

    def __reduce__(self) -> Any:
        return _unpickled, self._key()

    def __eq__(self, other: object) -> bool:
        return type(other) is ShapedArray and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        axes = f"{{V:{','.join(sorted(map(str, self.varying)))}}}" if self.varying else ""
        return f"{short_name(self.dtype)}[{','.join(map(str, self.shape))}]{axes}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self}{weak})"


def _unpickled(shape: Shape, dtype: np.dtype[Any], weak_type: bool, varying: frozenset[Any]) -> ShapedArray:
    return ShapedArray(shape, interned(dtype), weak_type, varying)


class MappedAxis(NamedTuple):
    """The axis over which a function is mapped.

    Attributes:
      name: its name, None if it has none.
      size: its size.
      mapped_by: what maps it, for error messages.
      reduced: whether reverse mode, which is at work, sums cotangents over it, of values that do not vary along it.
      checked: whether it always does, as in ``shard_map``, whose results are checked not to vary where they must not.
      level: how many axes of the same name are in scope outside of it.
      spmd_name: the axis of a mesh, or axes, that it is to be divided among in constraints within.
    """

    name: Any
    size: int
    mapped_by: str = "vmap"
    reduced: bool = False
    checked: bool = False
    level: int = 0
    spmd_name: Any = None

    @property
    def key(self) -> Any:
        """What stands for the axis in types: its name, but for one that hides an axis of the same name."""
        return (self.name, self.level) if self.level else self.name


class SymbolicZero:
    """A tangent or cotangent known to be zero. It has no shape: that of the value it belongs to is at hand."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"


ZERO: Final = SymbolicZero()
