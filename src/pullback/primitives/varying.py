"""What types say along the axes of ``shard_map``: casts between the four states of a value, and reverse mode.

Along each axis of ``shard_map`` a value is in one of four states, which its type says (``typeof(x).mat``):

* *varying*: each device has its own value;
* *invarying*: all devices have the same value;
* *unreduced*: each device has a term, and the value is their sum;
* *reduced*: all devices have the same value, and its cotangent is unreduced.

The cotangent of an unreduced value is reduced, and that of any other value has its state. Casts move no data. The two
collectives that compute with terms are sums, and reduced values come from gathering, its transpose. Along the axes
of ``vmap`` values are varying or invarying.

``unreduced`` and ``reduced`` are a part of the sharding in a type (``ShapedArray.explicit``), over the axes of a mesh
that have the type ``Manual``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.devices.meshes import current_mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec
from pullback.backends.hlo import collectives as hlo_collectives
from pullback.core.array import typeof
from pullback.core.errors import ShardingTypeError
from pullback.core.linear import LinearVar
from pullback.core.runtime import provides
from pullback.core.trace import Primitive, RuleKind, state
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.collectives import (
    HiddenAxis,
    Names,
    axis_index_p,
    collective,
    gathered_shape,
    keys_of,
    psum,
    psum_dot_general_p,
    pvary_p,
    scattered_shape,
    shifted,
)
from pullback.primitives.discrete import and_p
from pullback.primitives.linalg.contraction import dot_general_p, transpose_by
from pullback.primitives.rules import as_moved, jvp_linear, sharding_rule


def vary(x: Any, keys: frozenset[Any]) -> Any:
    """Return ``x`` with ``keys`` added, in its type, to the named axes along which the value may differ."""
    if not keys:
        return x
    aval = typeof(x)
    missing = keys - aval.varying
    names = [name for name, axis in state.axes.items() if axis.key in missing]
    for name, axis in state.axes.items():
        outer = [axis._replace(level=level).key for level in range(axis.level)]
        names += [HiddenAxis(key, name) for key in outer if key in missing]
    if not names:
        return x
    if aval.explicit is not None and aval.explicit.spec.reduced:
        reduced = tuple([name for name in names if name in aval.mat.reduced])
        x = reduced_vary_cast_p.bind(x, axes=reduced) if reduced else x
        names = [name for name in names if name not in reduced]
    return pvary_p.bind(x, axes=tuple(names)) if names else x


# Terms of sums --------------------------------------------------------------------------------------------------------


def with_states(
    aval: ShapedArray, shape: Shape, *, varying: Names = (), unreduced: Names = (), reduced: Names = (), no: Names = ()
) -> ShapedArray:
    """Return a type of another shape, that along some axes has another state.

    Args:
      aval: the type.
      shape: the shape.
      varying, unreduced, reduced: the axes that get this state.
      no: further axes that lose their state: they become invarying.
    """
    changed = frozenset((*varying, *unreduced, *reduced, *no))
    mesh = current_mesh() if aval.explicit is None else aval.explicit.mesh
    spec = PartitionSpec() if aval.explicit is None else aval.explicit.spec
    assert mesh is not None
    spec = PartitionSpec(unreduced=spec.unreduced - changed | {*unreduced}, reduced=spec.reduced - changed | {*reduced})
    keys = aval.varying - keys_of(tuple(changed)) | keys_of(varying)
    return aval.update(shape=shape, varying=keys, sharding=NamedSharding(mesh.abstract_mesh, spec))


def _of_shards(name: str) -> Primitive:
    """Make the primitive of a cast or a collective between states, along the axes of ``shard_map`` in ``axes``."""
    p = collective(name)
    p.jvp_rule = jvp_linear(p)
    sharding_rule(p)(as_moved)
    return p


def _cast(name: str, becomes: str) -> Primitive:
    """Declare an operation without communication, whose result has the state ``becomes`` along its axes."""
    p = _of_shards(name)
    p.abstract_eval(lambda x, *, axes: with_states(x, x.shape, **{becomes: axes}))
    p.lowering(lambda hlo, x, *, axes: x)
    p.batch(partial(_batch_of_elements, p))
    return p


def _batch_of_elements(p: Primitive, axis: MappedAxis, args: Any, dims: Any, *, axes: Names) -> Any:
    return p.bind(*args, axes=axes), dims[0]


vary_unreduced_cast_p = _cast("vary_unreduced_cast", "unreduced")
reduced_vary_cast_p = _cast("reduced_vary_cast", "varying")
preduced_p = _cast("preduced", "reduced")
unreduced_psum_p = _cast("unreduced_psum", "no")
unreduced_psum_p.lowering(lambda hlo, x, *, axes: hlo_collectives.all_reduce("add")(hlo, x, axes=axes, groups=None))

vary_unreduced_cast_p.transpose(lambda ct, x, *, axes: (vary(ct, keys_of(axes)),))
reduced_vary_cast_p.transpose(lambda ct, x, *, axes: (vary_unreduced_cast_p.bind(ct, axes=axes),))
preduced_p.transpose(lambda ct, x, *, axes: (unreduced_psum_p.bind(ct, axes=axes),))
unreduced_psum_p.transpose(lambda ct, x, *, axes: (preduced_p.bind(ct, axes=axes),))


def _between_shapes(name: str, changed: Callable[..., Shape], grows: bool, becomes: str, rule: Any) -> Primitive:
    """Declare a collective that changes the size of an axis of arrays, and their state to ``becomes``.

    Args:
      name: the name of the primitive.
      changed: takes a shape, an axis, the size of the named axes, and whether the axis stays; returns the new shape.
      grows: whether the result has the axis that the operand may lack.
      becomes: the state of the result.
      rule: the lowering rule of the collective.
    """
    p = _of_shards(name)

    @p.abstract_eval
    def abstract_eval(x: ShapedArray, *, axes: Names, axis_size: int, dimension: int, tiled: bool) -> ShapedArray:
        return with_states(x, changed(x.shape, dimension, axis_size, tiled), **{becomes: axes})

    @p.batch
    def batch(axis: MappedAxis, args: Any, dims: Any, *, dimension: int, tiled: bool, **params: Any) -> Any:
        (x,), (dim,) = args, dims
        at = shifted(dimension, dim, grows=grows and not tiled)
        out = p.bind(x, dimension=at, tiled=tiled, **params)
        return out, dim if tiled or dim is None else dim + (at <= dim) if grows else dim - (at < dim)

    p.lowering(lambda hlo, x, **params: rule(hlo, x, groups=None, **params))
    return p


all_gather_reduced_p = _between_shapes(
    "all_gather_reduced", gathered_shape, True, "reduced", hlo_collectives.all_gather
)
unreduced_reduce_scatter_p = _between_shapes(
    "unreduced_reduce_scatter", scattered_shape, False, "varying", hlo_collectives.reduce_scatter
)
all_gather_reduced_p.transpose(lambda ct, x, **params: (unreduced_reduce_scatter_p.bind(ct, **params),))
unreduced_reduce_scatter_p.transpose(lambda ct, x, **params: (all_gather_reduced_p.bind(ct, **params),))


def as_terms(x: Any, names: Names) -> Any:
    """Return ``x``, which is varying or the same on all devices, as an unreduced value, a sum over ``names``.

    Where it varies, the values of the devices are the terms. Where it does not, the first device has the only term that
    is not zero.
    """
    same = [name for name in names if name not in typeof(x).varying]
    if same:
        first = [ops.eq(axis_index_p.bind(axes=(name,)), np.int32(0)) for name in same]
        mask = first[0]
        for other in first[1:]:
            mask = and_p.bind(mask, other)
        x = vary(x, keys_of(tuple(same)))
        x = ops.select_n(shapes.broadcast_in_dim(mask, x.shape, ()), shapes.zeros_like(x), x)
    return vary_unreduced_cast_p.bind(x, axes=names)


@provides
def in_states(x: Any, aval: ShapedArray, names: frozenset[Any]) -> Any:
    """Return ``x`` with the states, along the axes ``names`` of ``shard_map``, of values of the type ``aval``.

    Varying values become invarying by a sum over the axes, and so do unreduced ones.

    Raises:
      ShardingTypeError: an unreduced value would become varying or reduced; or a varying one reduced (a TypeError and
        ValueError).
    """
    have, wanted = typeof(x).mat, aval.mat
    wrong = names & (have.unreduced & (wanted.varying | wanted.reduced) | (have.varying & wanted.reduced))
    if wrong:
        raise ShardingTypeError(
            f"shard_map: along the axes {sorted(map(str, wrong))} a value of the type {typeof(x)} is used as one of "
            f"the type {aval}, for example as a cotangent. Sum it over the devices, with lax.psum"
        )
    plain = names - wanted.unreduced - wanted.reduced - wanted.varying
    for bind, axes in [
        (lambda x, axes: vary(x, keys_of(axes)), have.reduced & wanted.varying),
        (as_terms, (wanted.unreduced - have.unreduced)),
        (lambda x, axes: preduced_p.bind(x, axes=axes), wanted.reduced - have.reduced),
        (psum, have.varying & plain),
        (lambda x, axes: unreduced_psum_p.bind(x, axes=axes), have.unreduced & plain),
    ]:
        found = tuple([name for name in state.axes if name in axes and name in names])
        x = bind(x, found) if found else x
    return x


# Reverse mode --------------------------------------------------------------------------------------------------------


@provides
def sum_over(ct: Any, aval: ShapedArray, reduced: Sequence[MappedAxis]) -> Any:
    """Return the cotangent ``ct`` of an operand, summed over the named axes along which the operand has equal values.

    Args:
      ct: the cotangent; an axis along which it has equal values too is not summed.
      aval: the type of the operand. If it is reduced, the cotangent becomes unreduced.
      reduced: the axes to consider.
    """
    have = typeof(ct)
    if have.explicit is not None or aval.explicit is not None:
        names = frozenset([a.name for a in reduced if a.mapped_by == "shard_map"])
        if aval.mat.reduced & names or aval.mat.unreduced & names or have.mat.unreduced or have.mat.reduced:
            ct = in_states(ct, aval.to_ct_aval(), names)
    varying = typeof(ct).varying
    return psum(ct, tuple([a.name for a in reduced if a.key in varying - aval.varying])) if varying else ct


summed_transpose = RuleKind(
    "summed_transpose", "a cotangent is computed for each index of a named axis, and then summed"
)
"""``rule(reduced, ct, *operands, **params) -> cotangents``, each summed over the ``reduced`` axes along which its
operand does not vary; None if no sum is needed."""


@summed_transpose(dot_general_p)
def _contracted(
    reduced: Sequence[MappedAxis], ct: Any, x: Any, y: Any, *, dimension_numbers: Any, **precision: Any
) -> Any:
    """Transpose ``dot_general`` for its linear operand, ``x`` or ``y``, and sum the cotangent over named axes.

    The sum is over the axes in ``reduced`` along which the linear operand has equal values. One contraction computes
    products and sums, and stores no product for each index.

    Returns:
      The cotangents of ``x`` and ``y``; or None instead of the pair if there are no axes to sum over.
    """
    operand, other = (x, y) if type(x) is LinearVar else (y, x)
    if operand.aval.explicit is not None and operand.aval.explicit.has_reductions:
        return None
    varying = typeof(ct).varying | typeof(other).varying
    names = tuple([a.name for a in reduced if a.key in varying and a.key not in operand.aval.varying])
    if not names:
        return None
    return transpose_by(partial(psum_dot_general_p.bind, axes=names, **precision), ct, x, y, dimension_numbers)


@provides
def transpose_over(node: LinearVar, ct: Any, reduced: Sequence[MappedAxis]) -> Any:
    """Transpose the operation ``node``: return the cotangent of each operand, given ``ct`` of the result.

    Each cotangent is summed over the axes in ``reduced`` along which its operand does not vary. A value varies along a
    named axis if its type says that it may differ between indices: each index then has a cotangent of its own.
    """
    primitive, args, params = node.primitive, node.args, node.params
    assert primitive is not None
    assert primitive.transpose_rule is not None
    if node.results is None:
        ct = _vary_as(ct, node, reduced)
    else:
        ct = [c if c is ZERO else _vary_as(c, var, reduced) for c, var in zip(ct, node.results, strict=True)]
    rule = summed_transpose.of(primitive)
    found = None if rule is None else rule(reduced, ct, *args, **params)
    return found or [
        c if type(x) is not LinearVar or c is None or c is ZERO else sum_over(c, x.aval, reduced)
        for x, c in zip(args, primitive.transpose_rule(ct, *args, **params))
    ]


def _vary_as(ct: Any, var: LinearVar, reduced: Sequence[MappedAxis]) -> Any:
    """Return ``ct``, with a type that varies along the axes in ``reduced`` along which ``var`` varies.

    A value varies along a named axis if it may differ between the indices of the axis.
    """
    wanted = var.aval.varying
    return vary(ct, wanted.intersection([a.key for a in reduced])) if wanted else ct
