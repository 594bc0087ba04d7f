"""``reshard``: arrays whose types say another sharding, over explicit axes of a mesh."""

from __future__ import annotations

from typing import Any, TypeVar

from pullback.backends.devices.meshes import AbstractMesh, current_mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.array import as_array
from pullback.core.errors import OperandError, ShardingError
from pullback.primitives.explicit_shardings import resharded, to_auto
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.placement import constrained, explicit_sharding, placements_of

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
    >>> from pullback.sharding import reshard
    >>> with set_mesh(make_mesh((1,), ("x",))):
    ...     print(typeof(reshard(jnp.ones(4), P("x"))))
    float32[4@x]
    """
    leaves, treedef, placements = placements_of(xs, out_shardings, "reshard")
    changed: T = tree.unflatten(treedef, [_resharded(x, s) for x, s in zip(leaves, placements, strict=True)])
    return changed


def _resharded(x: Any, sharding: Any) -> Any:
    if sharding is None:
        raise ShardingError("reshard: expected a NamedSharding or a PartitionSpec, got None")
    typed = explicit_sharding(sharding, "reshard")
    if typed is None:
        mesh = current_mesh()
        if isinstance(sharding, PartitionSpec) and isinstance(mesh, AbstractMesh):
            sharding, x = NamedSharding(mesh, sharding), to_auto(as_array(x))
        return constrained(x, sharding, "reshard")
    try:
        return resharded(as_array(x), typed)
    except OperandError as error:
        raise type(error)(f"reshard: {error}") from None
