"""``in_shardings`` and ``out_shardings`` of ``jit``: trees of places, hashable, and the place of each leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.devices import Device
from pullback.backends.devices.layouts import Format, without_layout
from pullback.backends.devices.meshes import needed_mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from pullback.core import tree
from pullback.core.errors import ShardingError
from pullback.core.naming import quoted


def is_placement(x: Any) -> bool:
    """Whether an entry of a tree of places is one, not a tree of such."""
    return x is None or isinstance(x, (Sharding, PartitionSpec, Format, Device))


class PlacementTree:
    """A tree of places, hashable.

    Args:
      given: a tree of shardings, specifications, devices and None.
      who: what it was given for, for errors.

    Raises:
      ShardingError: a leaf is none of these (a ValueError and TypeError).
    """

    __slots__ = ("leaves", "treedef")

    def __init__(self, given: Any, who: str) -> None:
        leaves, self.treedef = tree.flatten(given, is_leaf=is_placement)
        for leaf in leaves:
            if not is_placement(leaf):
                raise ShardingError(
                    f"{who}: expected shardings such as NamedSharding(mesh, P('x')), specifications P('x') or None, "
                    f"got {quoted(leaf)} of type {type(leaf).__name__}"
                )
        self.leaves = tuple(leaves)

    def of(self, full: Any, who: str, what: str) -> list[Any]:
        """For each leaf of a tree its place: a device, a sharding over several, or None.

        Args:
          full: the tree of which this one is a prefix.
          who: for errors, what has it.
          what: for errors, what the tree is.

        Raises:
          ShardingError: this is no prefix of the tree (a ValueError).
          MeshContextError: a specification has no mesh, and none is set (a RuntimeError).
        """
        prefix = tree.unflatten(self.treedef, self.leaves)
        try:
            found = tree.broadcast_prefix(prefix, full, is_leaf=is_placement)
        except (TypeError, ValueError) as error:
            raise ShardingError(
                f"{who}: {prefix!r} is no prefix of the tree of {what}: {error}. Give one sharding for all, or a tree "
                "with one for each."
            ) from None
        return [placement_of(placement, who) for placement in found]

    def __eq__(self, other: object) -> bool:
        return type(other) is PlacementTree and self.leaves == other.leaves and self.treedef == other.treedef

    def __hash__(self) -> int:
        return hash(self.leaves)

    def __reduce__(self) -> Any:
        return PlacementTree, (tree.unflatten(self.treedef, self.leaves), "jit")


def placement_of(given: Any, who: str) -> Any:
    """A place as arrays have it: a device, a sharding over several, or None where nobody asks.

    Raises:
      MeshContextError: a specification has no mesh, and none is set (a RuntimeError).
    """
    given = without_layout(given, who)
    if isinstance(given, PartitionSpec):
        return NamedSharding(needed_mesh(who, repr(given)), given)
    if isinstance(given, SingleDeviceSharding):
        return next(iter(given.device_set))
    return given


def check_fits(placement: Any, shape: Sequence[int], who: str) -> None:
    """Refuse a sharding that does not fit an array.

    Raises:
      ShardingError: its specification is too long (a ValueError).
      IndivisibleError: it does not divide an axis evenly (a ValueError).
    """
    if isinstance(placement, NamedSharding):
        try:
            placement.shard_shape(shape)
        except ShardingError as error:
            raise type(error)(f"{who}: {error}") from None
