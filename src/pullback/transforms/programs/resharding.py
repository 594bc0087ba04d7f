"""``reshard``: arrays whose types say another sharding, over explicit axes of a mesh."""

from __future__ import annotations

from typing import Any, TypeVar

from pullback.backends.devices.meshes import AxisType, needed_mesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, names_in
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.array import as_array
from pullback.core.errors import OperandError, ShardingError
from pullback.core.naming import quoted
from pullback.primitives.explicit_shardings import resharded
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.placement import constrained, placements_of

T = TypeVar("T")


@api_boundary
def reshard(xs: T, out_shardings: PyTree) -> T:
    """Change the shardings of arrays, in their types too, over axes of a mesh of the type ``AxisType.Explicit``.

    Over axes of the type ``Auto`` it is the same as ``lax.with_sharding_constraint``.

    Args:
      xs: a tree of arrays.
      out_shardings: a sharding, a ``PartitionSpec`` for the mesh that ``set_mesh`` has set, or a prefix tree of ``xs``
        with these as leaves.

    Returns:
      A tree like ``xs``, of the same values. Their cotangents have the shardings of ``xs``.

    Raises:
      ShardingError: a sharding does not fit its array, or is no sharding (a ValueError).
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import P, make_mesh, set_mesh, typeof
    >>> from pullback.sharding import AxisType, reshard
    >>> with set_mesh(make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))):
    ...     print(typeof(reshard(jnp.ones(4), P("x"))))
    f32[4@x]
    """
    leaves, treedef, placements = placements_of(xs, out_shardings, "reshard")
    changed: T = tree.unflatten(treedef, [_resharded(x, s) for x, s in zip(leaves, placements, strict=True)])
    return changed


def _resharded(x: Any, sharding: Any) -> Any:
    if sharding is None:
        raise ShardingError("reshard: expected a NamedSharding or a PartitionSpec, got None")
    typed = explicit_sharding(sharding, "reshard")
    if typed is None:
        return constrained(x, sharding, "reshard")
    try:
        return resharded(as_array(x), typed)
    except OperandError as error:
        raise type(error)(f"reshard: {error}") from None


def explicit_sharding(sharding: Any, who: str) -> NamedSharding | None:
    """Convert a user's sharding to one over explicit axes of a mesh; None if its mesh has no such axes.

    ``who`` is the function, for error messages.

    Raises:
      ShardingError: it names an axis of another type, or is no sharding over a mesh (a TypeError and ValueError).
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError and ValueError).
    """
    if isinstance(sharding, PartitionSpec):
        sharding = NamedSharding(needed_mesh(who, repr(sharding), abstract=True), sharding)
    if not isinstance(sharding, NamedSharding):
        if isinstance(sharding, str) or not hasattr(sharding, "device_set"):
            raise ShardingError(f"{who}: expected a NamedSharding or a PartitionSpec, got {quoted(sharding)}")
        return None
    types, spec = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True)), sharding.spec
    if AxisType.Explicit not in types.values():
        return None
    for name in (*(n for entry in spec.partitions for n in names_in(entry)), *spec.unreduced, *spec.reduced):
        if types[name] is not AxisType.Explicit:
            raise ShardingError(
                f"PartitionSpec passed to {who} cannot contain axis names that are of type Auto or Manual: got {spec} "
                f"with the axis {name!r} of type {types[name]}"
            )
    if UNCONSTRAINED in spec.partitions:
        raise ShardingError(f"{who}: a sharding in a type leaves no axis to the compiler, got {spec}")
    return sharding
