"""What transformations ask of the type of a value that is part of a user's value, answered for arrays.

``core.user_types`` has the same methods for types of users' values; theirs call those of the types of the parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.manual_axes import AbstractValue, ManualAxisType
from pullback.core.runtime import runtime


class ArrayProtocol(AbstractValue):
    """The methods of types of arrays that users' types call for their parts."""

    __slots__ = ()

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    explicit: Any

    @property
    def mat(self) -> ManualAxisType:
        """The named axes along which the value varies, and those of ``shard_map`` with its other states."""
        explicit = self.explicit
        if explicit is None or not explicit.has_reductions:
            return ManualAxisType(self.varying)
        manual, spec = frozenset(explicit.mesh.manual_axes), explicit.spec
        return ManualAxisType(self.varying, spec.unreduced & manual, spec.reduced & manual)

    manual_axis_type = mat

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that a value consists of: an array is one."""
        return [self]

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """Return the arrays of a value: the array itself."""
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value that consists of these arrays: the only one."""
        (x,) = lo_vals
        return x

    def vspace_zero(self) -> Any:
        """Return zeros of this type."""
        return runtime.zeros_of(self)

    def vspace_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two arrays."""
        return runtime.sum_of_two(x, y)

    def dec_rank(self, size: int | None, spec: Any) -> Any:
        """Return the type of an element of a batch; ``spec`` is the position of the mapped axis, or None."""
        return self if spec is None else self.without_axis(spec)

    def inc_rank(self, size: int | None, spec: Any) -> Any:
        """Return the type of a batch; ``spec`` is the position of the mapped axis, or None."""
        return self if spec is None else self.with_axis(spec, size)

    def leading_axis_spec(self) -> Any:
        """Return the position of the axis over which ``scan`` goes."""
        return 0

    def shard(self, mesh: Any, manual_axes: frozenset[Any], check_vma: bool, spec: Any) -> Any:
        """Return the type of the shard of an array on a device, whose axes are divided as ``spec`` says."""
        entries = [_names(e) for e in spec]
        sizes = [n // _size(mesh, names) for n, names in zip(self.shape, entries, strict=False)]
        shard = self.update(shape=(*sizes, *self.shape[len(sizes) :]))
        return shard.update(varying=shard.varying | {n for names in entries for n in names}) if check_vma else shard

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> Any:
        """Return the type of the array whose shards, divided as ``spec`` says, have this type."""
        entries = [_names(e) for e in spec]
        sizes = [n * _size(mesh, names) for n, names in zip(self.shape, entries, strict=False)]
        return self.update(shape=(*sizes, *self.shape[len(sizes) :]), varying=frozenset())

    def normalize(self) -> Any:
        """Return this type."""
        return self

    def strip_weak_type(self) -> Any:
        """Return the type with ``weak_type`` set to False."""
        return self.update(weak_type=False)

    def update_weak_type(self, weak_type: bool) -> Any:
        """Return the type with this ``weak_type``."""
        return self.update(weak_type=weak_type)

    def update(self, **changes: Any) -> Any:
        """Return a copy of the type with some attributes replaced."""
        raise NotImplementedError

    def with_axis(self, dim: int, size: Any) -> Any:
        """Return the type with a new axis at ``dim``."""
        raise NotImplementedError

    def without_axis(self, dim: int) -> Any:
        """Return the type without the axis ``dim``."""
        raise NotImplementedError


def _names(entry: Any) -> tuple[Any, ...]:
    """Return the mesh axes of an entry of a partition spec."""
    return () if entry is None else tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)


def _size(mesh: Any, names: tuple[Any, ...]) -> int:
    """Return the number of shards that some mesh axes divide an axis into."""
    size = 1
    for name in names:
        size *= mesh.shape[name]
    return size
