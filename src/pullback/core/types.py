"""Abstract values, and the symbolic zero."""

from __future__ import annotations

import math
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
from pullback.core.manual_axes import AbstractValue as AbstractValue
from pullback.core.runtime import runtime
from pullback.core.value_protocol import ArrayProtocol

Shape = tuple[int, ...]
_NOWHERE: Final[frozenset[Any]] = frozenset()


class ShapedArray(ArrayProtocol):
    """The type of an array, known before its elements are computed.

    Attributes:
      shape: the size of each axis.
      dtype: the type of an element.
      weak_type: whether the type is weak, as that of a Python number: in promotion, other types prevail.
      varying: the named axes along which the value varies.
      explicit: the sharding over the explicit axes of a mesh; None if the type says nothing of a mesh.
    """

    __slots__ = ("dtype", "explicit", "shape", "varying", "weak_type")

    def __init__(
        self,
        shape: Shape,
        dtype: np.dtype[Any],
        weak_type: bool = False,
        varying: frozenset[Any] = _NOWHERE,
        *,
        sharding: Any = None,
    ) -> None:
        """Make the type of an array.

        Args:
          shape: the size of each axis.
          dtype: the type of an element.
          weak_type: whether the type is weak: in promotion, other types prevail.
          varying: the named axes along which the value varies.
          sharding: a sharding over a mesh. The type contains its explicit axes; a mesh without any leaves no trace.
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
        self.explicit = None
        if sharding is not None:
            self.explicit = sharding.in_types(shape)
            runtime.has_explicit_types = runtime.has_explicit_types or self.explicit is not None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def batched(self, axis: MappedAxis, dim: int | None = 0) -> ShapedArray:
        """Return the type of a batch of such arrays, with ``axis`` at ``dim`` unless None, and not in ``varying``."""
        varying = self.varying - {axis.key}
        return self.update(varying=varying) if dim is None else self.with_axis(dim, axis.size, axis.spmd_name, varying)

    def with_axis(self, dim: int, size: int, entry: Any = None, varying: frozenset[Any] | None = None) -> ShapedArray:
        """Return the type with a new axis at ``dim``, which the mesh axes ``entry`` divide."""
        sharding = None if self.explicit is None else self.explicit.with_axis(dim, entry)
        shape = (*self.shape[:dim], size, *self.shape[dim:])
        return self.update(shape=shape, varying=self.varying if varying is None else varying, sharding=sharding)

    def without_axis(self, dim: int) -> ShapedArray:
        """Return the type without the axis ``dim``: the type of one example of a batch."""
        sharding = None if self.explicit is None else self.explicit.without_axis(dim)
        return self.update(shape=self.shape[:dim] + self.shape[dim + 1 :], sharding=sharding)

    def update(self, **changes: Any) -> ShapedArray:
        """Return a copy with the attributes ``changes``; another ``shape`` removes a sharding that is not given."""
        get, shape = changes.get, changes.get("shape", self.shape)
        return ShapedArray(
            shape, get("dtype", self.dtype), get("weak_type", self.weak_type), get("varying", self.varying),
            sharding=get("sharding", self.explicit if shape == self.shape else None),
        )  # fmt: skip

    @property
    def sharding(self) -> Any:
        """The sharding over the explicit axes of a mesh; other types are not divided, over the mesh that is set."""
        return runtime.undivided(self.shape) if self.explicit is None else self.explicit

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """Return the type as text: ``float32[3]``, ``float32[8@x,3]`` if sharded; ``f32[3]`` if ``short_dtypes``."""
        name = short_name(self.dtype) if short_dtypes else dtype_name(self.dtype)
        types = f"({self.sharding.mesh.names_by_type})" if mesh_axis_types else ""
        return f"{name}{self._shown_shape()}{types}"

    def _shown_shape(self) -> str:
        """The shape as text, with the mesh axes that divide it, and those along which the value varies: ``[8@x,3]``."""
        if self.explicit is None and not self.varying:
            return f"[{','.join(map(str, self.shape))}]"
        entries, marks = ([""] * len(self.shape), []) if self.explicit is None else self.explicit.shown()
        if self.varying:
            marks = [f"V:{','.join(sorted(map(str, self.varying)))}", *marks]
        sizes = [f"{n}{entry}" for n, entry in zip(self.shape, entries, strict=True)]
        return f"[{','.join(sizes)}]" + (f"{{{', '.join(marks)}}}" if marks else "")

    def to_tangent_aval(self) -> ShapedArray:
        """Return the type of tangents of such arrays: for integers and booleans its dtype is ``float0``."""
        return self.update(dtype=tangent_dtype(self.dtype))

    def to_ct_aval(self) -> ShapedArray:
        """Return the type of cotangents: that of tangents, but reduced over the axes where arrays are unreduced."""
        aval = self.to_tangent_aval()
        return aval if self.explicit is None else aval.update(sharding=self.explicit.of_cotangents())

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.weak_type, self.varying, self.explicit)

    def __reduce__(self) -> Any:
        return _unpickled, self._key()

    def __eq__(self, other: object) -> bool:
        return type(other) is ShapedArray and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    __str__ = str_short

    def __format__(self, spec: str) -> str:  # as programs and messages show it
        return format(self.str_short(short_dtypes=True), spec)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self!s}{weak})"


def _unpickled(
    shape: Shape, dtype: np.dtype[Any], weak_type: bool, varying: frozenset[Any], explicit: Any = None
) -> ShapedArray:
    return ShapedArray(shape, interned(dtype), weak_type, varying, sharding=explicit)


class MappedAxis(NamedTuple):
    """An axis over which a function is mapped, by ``vmap`` or ``shard_map``.

    Attributes:
      name: the name of the axis; None if it has none.
      size: the size of the axis.
      mapped_by: the mapping transformation, for error messages.
      reduced: whether reverse mode now sums cotangents over this axis, for values that do not vary along it.
      checked: whether reverse mode always does so, as for an axis of ``shard_map``.
      level: the number of outer axes of the same name in scope.
      spmd_name: the mesh axis, or axes, over which sharding constraints within the function spread this axis.
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
        """The key of the axis in ``varying``: its name, or (name, level) if an outer axis has the same name."""
        return (self.name, self.level) if self.level else self.name


class SymbolicZero:
    """The class of ``ZERO``, a tangent or cotangent that is known to be zero, without shape or dtype."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"


ZERO: Final = SymbolicZero()
