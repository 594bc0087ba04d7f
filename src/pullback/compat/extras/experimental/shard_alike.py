"""``jax.experimental.shard_alike``: two arrays of a program that the compiler shards in the same way."""

from __future__ import annotations

from typing import Any

from pullback.core.array import CommittedArray, as_array
from pullback.core.errors import ShapeError
from pullback.core.trace import Primitive, Tracer
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives.axis_maps import front
from pullback.primitives.rules import as_moved, sharding_rule
from pullback.transforms.programs.transfer import device_put

shard_alike_p = Primitive("shard_alike", multiple_results=True)
sharding_rule(shard_alike_p)(as_moved)


def shard_alike(x: Any, y: Any) -> Any:
    """Return two arrays of equal shape that are sharded in the same way.

    In a compiled function the compiler chooses the sharding. Concrete arrays get that of ``x``, or else that of ``y``.

    Args:
      x: an array.
      y: another one.

    Returns:
      The pair ``x, y``.

    Raises:
      ShapeError: they differ in shape (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> from pullback.compat.extras.experimental.shard_alike import shard_alike
    >>> print(jit(lambda x: shard_alike(x, 2 * x)[1])(jnp.ones(2)))
    [2. 2.]
    """
    x, y = as_array(x), as_array(y)
    if x.shape != y.shape:
        raise ShapeError(f"shard_alike: the arrays must have equal shapes, got {x.shape} and {y.shape}")
    if not isinstance(x, Tracer) and not isinstance(y, Tracer):
        model = next((a for a in (x, y) if isinstance(a, CommittedArray)), None)
        return (x, y) if model is None else tuple(device_put((x, y), model.sharding))
    return tuple(shard_alike_p.bind(x, y))


@shard_alike_p.abstract_eval
def _abstract_eval(x: ShapedArray, y: ShapedArray) -> list[ShapedArray]:
    return [x, y]


@shard_alike_p.jvp
def _jvp(primals: Any, tangents: Any) -> Any:
    if any(t is ZERO for t in tangents):
        return shard_alike_p.bind(*primals), list(tangents)
    return shard_alike_p.bind(*primals), shard_alike_p.bind(*tangents)


shard_alike_p.transpose(lambda cts, x, y: [None if c is ZERO else c for c in cts])


@shard_alike_p.batch
def _batch(axis: Any, args: Any, dims: Any) -> Any:
    return shard_alike_p.bind(*[front(x, d, axis) for x, d in zip(args, dims, strict=True)]), [0, 0]


@shard_alike_p.lowering
def _lowering(hlo: Any, x: Any, y: Any) -> list[Any]:
    hlo.module.unique("alike")
    if hlo.module.meshes:
        for value in (x, y):  # the number of names is another one for each pair
            hlo.lines.append(f"sdy.sharding_group {value.name} group_id={len(hlo.module.names)} : {value.type}")
    return [x, y]
