"""``in_shardings`` and ``out_shardings`` of ``jit``: hashable trees of placements, and the placement of each leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.devices import Device
from pullback.backends.devices.layouts import Format, without_layout
from pullback.backends.devices.meshes import Mesh, needed_mesh
from pullback.backends.devices.shardings import (
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)
from pullback.core import tree
from pullback.core.errors import ShardingError
from pullback.core.naming import quoted


def is_placement(x: Any) -> bool:
    """Whether ``x`` is a single placement, not a tree of placements."""
    return x is None or isinstance(x, (Sharding, PartitionSpec, Format, Device))


class PlacementTree:
    """A hashable tree of placements.

    Args:
      placements: a tree of shardings, specifications, devices and None.
      who: the function and the option that has the placements, for error messages.

    Raises:
      ShardingError: a leaf is none of these (a ValueError and TypeError).
    """

    __slots__ = ("leaves", "treedef")

    def __init__(self, placements: Any, who: str) -> None:
        leaves, self.treedef = tree.flatten(placements, is_leaf=is_placement)
        for leaf in leaves:
            if not is_placement(leaf):
                raise ShardingError(
                    f"{who}: expected shardings such as NamedSharding(mesh, P('x')), specifications P('x') or None, "
                    f"got {quoted(leaf)} of type {type(leaf).__name__}"
                )
            spec = leaf.spec if isinstance(leaf, NamedSharding) and isinstance(leaf.mesh, Mesh) else leaf
            if isinstance(spec, PartitionSpec) and UNCONSTRAINED in spec.partitions:
                raise ShardingError(
                    f"{who}: unconstrained axes are not allowed, got {spec!r}: write None for an axis that is not "
                    f"divided; with_sharding_constraint takes UNCONSTRAINED"
                )
        self.leaves = tuple(leaves)

    def of(self, full: Any, who: str, what: str) -> list[Any]:
        """Broadcast the placements to the tree ``full``; return a device, a sharding, or None for each of its leaves.

        Args:
          full: the tree; the tree of placements is a prefix of it.
          who: the function and the option, for error messages.
          what: describes ``full``, for error messages.

        Raises:
          ShardingError: the placements are no prefix of ``full`` (a ValueError).
          MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError).
        """
        prefix = tree.unflatten(self.treedef, self.leaves)
        try:
            found = tree.broadcast_prefix(prefix, full, is_leaf=is_placement)
        except (TypeError, ValueError) as error:
            raise ShardingError(
                f"{who}: {prefix!r} is not a prefix of the tree of {what}: {error}. Pass one sharding for all, or a "
                f"tree with one for each."
            ) from None
        return [placement_of(placement, who) for placement in found]

    def __eq__(self, other: object) -> bool:
        return type(other) is PlacementTree and self.leaves == other.leaves and self.treedef == other.treedef

    def __hash__(self) -> int:
        return hash(self.leaves)

    def __reduce__(self) -> Any:
        return PlacementTree, (tree.unflatten(self.treedef, self.leaves), "jit")


def placement_of(x: Any, who: str) -> Any:
    """Convert a user's placement to a device, or to a sharding over several devices; None stays None.

    ``who`` is the function and the option, for error messages.

    Raises:
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError).
    """
    x = without_layout(x, who)
    if isinstance(x, PartitionSpec):
        return NamedSharding(needed_mesh(who, repr(x)), x)
    if isinstance(x, SingleDeviceSharding):
        return x.placement
    return x


def check_fits(placement: Any, shape: Sequence[int], who: str) -> None:
    """Raise if ``placement`` is a sharding that does not fit arrays of the shape ``shape``.

    Raises:
      ShardingError: the sharding's specification has more entries than there are axes (a ValueError).
      IndivisibleError: the sharding does not divide an axis evenly (a ValueError).
    """
    if isinstance(placement, NamedSharding):
        try:
            placement.shard_shape(shape)
        except ShardingError as error:
            raise type(error)(f"{who}: {error}") from None
