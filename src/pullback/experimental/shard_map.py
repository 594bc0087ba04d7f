"""``shard_map`` under its older name and options; see :func:`pullback.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.faces import face
from pullback.spmd.shard_map import shard_map as _shard_map


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Any:
    """Map a function over shards of arrays; see :func:`pullback.shard_map`.

    Args:
      f: takes and returns trees of arrays, which are shards.
      mesh: the devices, and the names of their axes.
      in_specs: the partition specs of the arguments.
      out_specs: the partition specs of the result.
      check_rep: the option ``check_vma`` of ``pullback.shard_map``.
      auto: the mesh axes that the compiler partitions; ``axis_names`` of ``pullback.shard_map`` has the others.

    Returns:
      A function of the same arguments, as whole arrays, that returns whole arrays.

    Raises:
      ShardMapError: specifications that do not fit (a ValueError and TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, make_mesh
    >>> from pullback.experimental.shard_map import shard_map
    >>> from pullback.sharding import PartitionSpec as P
    >>> mesh = make_mesh((1,), ("i",))
    >>> print(shard_map(lambda x: lax.psum(x.sum(), "i"), mesh, P("i"), P())(jnp.arange(4.0)))
    6.0
    """
    manual = [name for name in mesh.axis_names if name not in auto]
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=manual, check_vma=check_rep)


__all__ = ["shard_map"]
face(globals())
