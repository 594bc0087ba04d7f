"""The base class of types, and what types say of the manual axes of a mesh, those of ``shard_map``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NO_AXES: frozenset[Any] = frozenset()


@dataclass(frozen=True)
class ManualAxisType:
    """What a type says of the axes of ``shard_map``; ``typeof(x).mat``.

    Attributes:
      varying: the axes along which the value may differ between devices.
      unreduced: the axes over which the value is still to be summed.
      reduced: the axes over which its cotangent is still to be summed.
    """

    varying: frozenset[Any] = NO_AXES
    unreduced: frozenset[Any] = NO_AXES
    reduced: frozenset[Any] = NO_AXES

    def invarying(self, mesh: Any) -> frozenset[Any]:
        """Return the manual axes of a mesh along which the value is the same on all devices."""
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced


class AbstractValue:
    """The base class of the types of traced values; :class:`ShapedArray` is the type of arrays."""

    __slots__ = ()
    varying: frozenset[Any]

    @property
    def mat(self) -> ManualAxisType:
        """What the type says of the axes of ``shard_map``."""
        return ManualAxisType(self.varying)

    manual_axis_type = mat
