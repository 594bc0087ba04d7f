"""Collectives: operations along named axes, over the values that the same program has at each index.

Where ``vmap`` maps an axis, its trace holds the values at all indices in one array, and a collective becomes an
ordinary operation along the mapped axis of that array. Each primitive has the names in its parameter ``axes``; a
batching rule removes the name of the mapped axis and binds the primitive again for the others. Types record along which
axes a value varies.

In reverse mode, the transpose of a sum over an axis depends on the kind of the axis. Over a ``reduced`` axis, the
cotangents of values that do not vary are summed already, and the transpose returns them unchanged. Over any other axis,
each index has its own cotangent, and the transpose sums these.

``groups`` divides the indices of one axis, such as ``((0, 1), (2, 3))``: each group acts as a separate axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.hlo import collectives as hlo_collectives
from pullback.core.array import ArrayImpl
from pullback.core.axes import axis_in_scope, is_reduced
from pullback.core.errors import ArgumentError, UnboundAxisNameError, UnsupportedArgumentError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.gather import gather
from pullback.primitives.arrays.indexing import dynamic_slice
from pullback.primitives.arrays.slicing import concatenate, iota
from pullback.primitives.arrays.windows import GatherDimensionNumbers
from pullback.primitives.axis_maps import front
from pullback.primitives.explicit_shardings import entries_of
from pullback.primitives.linalg.contraction import Dims, batched_numbers, dot_general_p, transpose_by
from pullback.primitives.reductions import is_extreme, reduce_max_p, reduce_min_p
from pullback.primitives.rules import jvp_linear, jvp_zero, sharding_rule
from pullback.primitives.sums import reduce_sum

Names = tuple[Any, ...]
Groups = tuple[tuple[int, ...], ...] | None


class HiddenAxis(NamedTuple):
    """A stand-in for the name of a named axis, used where an inner axis of the same name shadows this axis.

    Attributes:
      key: the key of the outer axis, which identifies it in types.
      name: the name of both axes.
    """

    key: Any
    name: Any

    def __repr__(self) -> str:
        return f"the outer {self.name!r}"


def _names(params: dict[str, Any]) -> frozenset[Any]:
    return frozenset([axis.name if isinstance(axis, HiddenAxis) else axis for axis in params["axes"]])


def _key(name: Any) -> Any:
    """Return the key that identifies the named axis ``name`` in types; the name itself if no axis in scope has it."""
    if isinstance(name, HiddenAxis):
        return name.key
    return state.axes[name].key if name in state.axes else name


def keys_of(names: Sequence[Any]) -> frozenset[Any]:
    """Return the keys that identify named axes in types."""
    return frozenset(map(_key, names))


def collective(name: str, keeps_weak_type: bool = True, **traits: Any) -> Primitive:
    """Make the primitive of a collective operation, along the named axes in its parameter ``axes``."""
    p = Primitive(name, keeps_weak_type=keeps_weak_type, **traits)
    p.axes(_names)
    p.impl(_not_mapped)
    return p


def _not_mapped(args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Raise the error for a collective that is evaluated although no transformation maps its axes."""
    for name in params["axes"]:
        axis_in_scope(name)
    raise UnboundAxisNameError(f"the axes {params['axes']} are in scope, but are not mapped: a traced value leaked")


def rows(x: Any, table: Any) -> Any:
    """Gather the rows of ``x`` at the indices in ``table``; the result has the shape ``table.shape + x.shape[1:]``."""
    if isinstance(table, np.ndarray):
        table = ArrayImpl(table.astype(np.int32))
    rest = x.shape[1:]
    start = len(table.shape)
    numbers = GatherDimensionNumbers(tuple(range(start, start + len(rest))), (0,), (0,))
    return gather(x, shapes.expand_dims(table, (start,)), numbers, (1, *rest), mode="promise_in_bounds")


def _in_groups(x: Any, groups: Sequence[Sequence[int]]) -> Any:
    """Gather the rows of ``x`` by group; return an array of shape (groups, size of a group, ...).

    ``groups`` lists the indices of the rows in each group.
    """
    return rows(x, np.array(groups))


def _out_of_groups(x: Any, groups: Sequence[Sequence[int]]) -> Any:
    """Invert :func:`_in_groups`: reshape (groups, size of a group, ...) to rows in the order of their indices.

    ``groups`` lists the indices of the rows in each group.
    """
    flat = shapes.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    return rows(flat, np.argsort(np.concatenate(groups)))


def _one_axis(p: Primitive, axes: Names, groups: Groups) -> None:
    """Raise if ``groups`` divide the indices of several named axes, one of which is mapped by ``vmap``."""
    if groups and len(axes) > 1:
        raise UnsupportedArgumentError(
            f"lax.{p.name}: axis_index_groups over several axes, {axes}, need all of them mapped by shard_map, and one "
            "is mapped by vmap"
        )


# Sums and extremes ---------------------------------------------------------------------------------------------------


def psum(x: Any, names: Names, groups: Groups = None) -> Any:
    """Return the sum of ``x`` over the named axes ``names``; with ``groups``, the sum within each group of indices."""
    return psum_p.bind(x, axes=tuple(names), groups=groups) if names else x


def _across(
    name: str, along: Callable[[Any, int], Any], repeated: Callable[[Any, int], Any], **traits: Any
) -> Primitive:
    """Declare a reduction over named axes.

    Args:
      name: the name of the primitive.
      along: ``along(x, axis)`` reduces an array along one of its axes.
      repeated: ``repeated(x, size)`` reduces ``size`` copies of an unmapped value.
      **traits: further traits of the primitive.
    """
    p = collective(name, **traits)

    @p.abstract_eval
    def abstract_eval(x: ShapedArray, *, axes: Names, groups: Groups) -> ShapedArray:
        return x.update(varying=x.varying if groups else x.varying - keys_of(axes))

    @p.batch
    def batch(axis: MappedAxis, args: Any, dims: Any, *, axes: Names, groups: Groups) -> Any:
        (x,), (dim,) = args, dims
        if axis.name not in axes:
            return p.bind(x, axes=axes, groups=groups), dim
        _one_axis(p, axes, groups)
        if groups:
            x = front(x, dim, axis)
            results = [along(rows(x, np.array(group)), 0) for group in groups]
            table = np.empty(axis.size, int)
            for i, group in enumerate(groups):
                table[list(group)] = i
            return rows(concatenate([shapes.expand_dims(result, (0,)) for result in results], 0), table), 0
        x = repeated(x, axis.size) if dim is None else along(x, dim)
        rest = tuple([name for name in axes if name != axis.name])
        return (p.bind(x, axes=rest, groups=None) if rest else x), None

    return p


def _itself(x: Any, n: int) -> Any:
    return x


psum_p = _across("psum", lambda x, d: reduce_sum(x, (d,)), ops.mul)
pmax_p = _across("pmax", lambda x, d: reduce_max_p.bind(x, axes=(d,)), _itself, passes_nan=True)
pmin_p = _across("pmin", lambda x, d: reduce_min_p.bind(x, axes=(d,)), _itself, passes_nan=True)
psum_p.jvp_rule = jvp_linear(psum_p)
psum_p.lowering(hlo_collectives.all_reduce("add"))
pmax_p.lowering(hlo_collectives.all_reduce("maximum"))
pmin_p.lowering(hlo_collectives.all_reduce("minimum"))


@psum_p.transpose
def _psum_transpose(ct: Any, x: LinearVar, *, axes: Names, groups: Groups) -> Any:
    if groups:
        return (psum(ct, axes, groups),)
    return (psum(ct, tuple([name for name in axes if not is_reduced(name)])),)


def _extreme_jvp(p: Primitive) -> Callable[..., Any]:
    def rule(primals: Any, tangents: Any, *, axes: Names, groups: Groups) -> Any:
        """Return the maximum or minimum over the named axes, and its tangent.

        The tangent is the mean of the tangents of those elements that equal the maximum or minimum.
        """
        (x,), (t,) = primals, tangents
        x = ops.materialized(x)
        ans = p.bind(x, axes=axes, groups=groups)
        hit = is_extreme(x, ans)
        return ans, ops.div(psum(ops.mul(t, hit), axes, groups), psum(hit, axes, groups))

    return rule


pmax_p.jvp_rule = _extreme_jvp(pmax_p)
pmin_p.jvp_rule = _extreme_jvp(pmin_p)


# Varying, and the index ----------------------------------------------------------------------------------------------

pvary_p = collective("pvary", moves=True)
pvary_p.jvp_rule = jvp_linear(pvary_p)
pvary_p.lowering(lambda hlo, x, *, axes: x)


@pvary_p.abstract_eval
def _pvary_abstract_eval(x: ShapedArray, *, axes: Names) -> ShapedArray:
    return x.update(varying=x.varying | keys_of(axes))


@pvary_p.transpose
def _pvary_transpose(ct: Any, x: LinearVar, *, axes: Names) -> Any:
    keys = keys_of(axes)
    return (psum(ct, tuple([name for name, axis in state.axes.items() if axis.key in keys and axis.reduced])),)


@pvary_p.batch
def _pvary_batch(axis: MappedAxis, args: Any, dims: Any, *, axes: Names) -> Any:
    (x,), (dim,) = args, dims
    rest = tuple([name for name in axes if _key(name) != axis.key])
    if len(rest) < len(axes) and dim is None:
        x, dim = front(x, None, axis), 0
    return (pvary_p.bind(x, axes=rest) if rest else x), dim


axis_index_p = collective("axis_index", keeps_weak_type=False)
axis_index_p.lowering(hlo_collectives.axis_index)
axis_index_p.jvp_rule = jvp_zero(axis_index_p)


@axis_index_p.abstract_eval
def _axis_index_abstract_eval(*, axes: Names) -> ShapedArray:
    return ShapedArray((), np.dtype(np.int32), False, keys_of(axes))


@axis_index_p.batch
def _axis_index_batch(axis: MappedAxis, args: Any, dims: Any, *, axes: Names) -> Any:
    return iota(np.int32, (axis.size,), 0), 0


# Gathering and scattering --------------------------------------------------------------------------------------------


def _merged(x: Any, axis: int) -> Any:
    """Reshape ``x`` to merge ``axis`` with the axis after it."""
    return shapes.reshape(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _divided(x: Any, axis: int, count: int) -> Any:
    """Reshape ``x`` to split ``axis`` in two axes: the first has size ``count``."""
    return shapes.reshape(x, (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :]))


def gathered_shape(shape: Shape, dimension: int, count: int, tiled: bool) -> Shape:
    """Return the shape of ``count`` arrays of a shape, joined along an axis, or along a new one unless ``tiled``."""
    if tiled:
        return (*shape[:dimension], shape[dimension] * count, *shape[dimension + 1 :])
    return (*shape[:dimension], count, *shape[dimension:])


def scattered_shape(shape: Shape, dimension: int, count: int, tiled: bool) -> Shape:
    """Return the shape of one of ``count`` blocks along an axis, which is removed unless ``tiled``."""
    rest = (shape[dimension] // count,) if tiled else ()
    return (*shape[:dimension], *rest, *shape[dimension + 1 :])


def shifted(axis: int, dim: int | None, grows: bool = False) -> int:
    """Return the position, in a batch, of the axis that is axis ``axis`` of an example.

    Args:
      axis: an axis of the example.
      dim: the position of the mapped axis in the batch; None if there is no mapped axis.
      grows: whether ``axis`` is a new axis that is inserted; it goes before a mapped axis at the same position.
    """
    return axis + (dim is not None and (dim < axis if grows else dim <= axis))


all_gather_p = collective("all_gather", moves=True)
all_gather_invariant_p = collective("all_gather_invariant", moves=True)
"""``all_gather`` whose result counts as the same at all indices."""
for _p in (all_gather_p, all_gather_invariant_p):
    _p.jvp_rule = jvp_linear(_p)
    _p.lowering(hlo_collectives.all_gather)
reduce_scatter_p = collective("reduce_scatter")
reduce_scatter_p.jvp_rule = jvp_linear(reduce_scatter_p)
reduce_scatter_p.lowering(hlo_collectives.reduce_scatter)


def _check_size(axes: Names, size: int, groups: Groups) -> None:
    """Raise if the product of the sizes of the named axes differs from the one that the program records.

    With ``groups``, ``size`` is the number of indices in one group. Nothing is checked if an axis is not in scope.
    """
    found = [state.axes[name].size for name in axes if name in state.axes]
    if len(found) == len(axes) and math.prod(found) != size * (len(groups) if groups else 1):
        of = f"{len(groups)} groups of " if groups else ""
        raise ArgumentError(f"it is for {of}{size} indices along {axes}, which have {math.prod(found)} here")


def _changes_dimension(p: Primitive, changed: Callable[[Shape, int, int, bool], Shape], varies: bool = True) -> None:
    """Register the abstract evaluation of ``p``, a collective that changes the size of an array axis.

    ``changed(shape, dimension, axis_size, tiled)`` returns the shape of the result. ``dimension`` is the array axis,
    ``axis_size`` the size of the named axes. With ``tiled`` the array axis stays; otherwise it is added or removed.
    ``varies`` says whether the result varies along the named axes.
    """

    @p.abstract_eval
    def abstract_eval(
        x: ShapedArray, *, axes: Names, axis_size: int, dimension: int, groups: Groups, tiled: bool
    ) -> ShapedArray:
        _check_size(axes, axis_size, groups)
        keys = keys_of(axes)
        varying = x.varying | keys if varies else x.varying - keys
        return x.update(shape=changed(x.shape, dimension, axis_size, tiled), varying=varying)


_changes_dimension(all_gather_p, gathered_shape)
_changes_dimension(all_gather_invariant_p, gathered_shape, varies=False)
_changes_dimension(reduce_scatter_p, scattered_shape)


@all_gather_p.transpose
def _all_gather_transpose(ct: Any, x: LinearVar, **params: Any) -> Any:
    return (reduce_scatter_p.bind(ct, **params),)


@all_gather_invariant_p.transpose
def _all_gather_invariant_transpose(
    ct: Any, x: LinearVar, *, axes: Names, axis_size: int, dimension: int, groups: Groups, tiled: bool
) -> Any:
    if not is_reduced(axes[0]):
        params: dict[str, Any] = {"axis_size": axis_size, "dimension": dimension, "groups": groups, "tiled": tiled}
        return (reduce_scatter_p.bind(ct, axes=axes, **params),)
    index = axis_index_p.bind(axes=axes)  # the cotangent is the same at all indices: each has its own block of it
    sizes = list(ct.shape)
    sizes[dimension] //= axis_size
    starts = [ops.mul(index, sizes[dimension]) if i == dimension else 0 for i in range(len(sizes))]
    block = dynamic_slice(ct, starts, sizes)
    return (block if tiled else shapes.squeeze(block, (dimension,)),)


def _all_gather_batch(
    p: Primitive, axis: MappedAxis, args: Any, dims: Any, *, axes: Names, dimension: int, tiled: bool, groups: Groups,
    **params: Any,
) -> Any:  # fmt: skip
    (x,), (dim,) = args, dims
    if axis.name not in axes:
        position = shifted(dimension, dim, grows=not tiled)
        out = p.bind(x, axes=axes, dimension=position, tiled=tiled, groups=groups, **params)
        return out, dim if tiled or dim is None else dim + (position <= dim)
    _one_axis(p, axes, groups)
    x = front(x, dim, axis)
    if groups is None:
        x = shapes.moveaxis(x, 0, dimension)
        return (_merged(x, dimension) if tiled else x), None
    of_group = np.empty(axis.size, int)
    for i, group in enumerate(groups):
        of_group[list(group)] = i
    x = shapes.moveaxis(rows(x, np.array(groups)[of_group]), 1, dimension + 1)
    return (_merged(x, dimension + 1) if tiled else x), 0


for _p in (all_gather_p, all_gather_invariant_p):
    _p.batch(partial(_all_gather_batch, _p))


@reduce_scatter_p.transpose
def _reduce_scatter_transpose(ct: Any, x: LinearVar, **params: Any) -> Any:
    return (all_gather_p.bind(ct, **params),)


@reduce_scatter_p.batch
def _reduce_scatter_batch(
    axis: MappedAxis, args: Any, dims: Any, *, axes: Names, axis_size: int, dimension: int, tiled: bool, groups: Groups
) -> Any:
    (x,), (dim,) = args, dims
    if axis.name not in axes:
        position = shifted(dimension, dim)
        out = reduce_scatter_p.bind(x, axes=axes, axis_size=axis_size, dimension=position, tiled=tiled, groups=groups)
        return out, dim if tiled or dim is None else dim - (position < dim)
    _one_axis(reduce_scatter_p, axes, groups)
    if tiled:
        at = shifted(dimension, dim)
        x = _divided(x, at, axis_size)
        dim = dim if dim is None or dim < at else dim + 1
    if groups is None:
        x = ops.mul(x, axis.size) if dim is None else reduce_sum(x, (dim,))
        return x, dimension
    x = reduce_sum(_in_groups(front(x, dim, axis), groups), (1,))
    return _out_of_groups(shapes.moveaxis(x, dimension + 1, 1), groups), 0


all_to_all_p = collective("all_to_all", moves=True)
all_to_all_p.jvp_rule = jvp_linear(all_to_all_p)
all_to_all_p.lowering(hlo_collectives.all_to_all)


@all_to_all_p.abstract_eval
def _all_to_all_abstract_eval(
    x: ShapedArray, *, axes: Names, axis_size: int, split_axis: int, concat_axis: int, groups: Groups, tiled: bool
) -> ShapedArray:
    _check_size(axes, axis_size, groups)
    shape = scattered_shape(x.shape, split_axis, axis_size, tiled)
    shape = gathered_shape(shape, concat_axis, axis_size, tiled)
    return x.update(shape=shape, varying=x.varying | keys_of(axes))


@all_to_all_p.transpose
def _all_to_all_transpose(ct: Any, x: LinearVar, *, split_axis: int, concat_axis: int, **params: Any) -> Any:
    return (all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params),)


@all_to_all_p.batch
def _all_to_all_batch(
    axis: MappedAxis, args: Any, dims: Any, *, axes: Names, axis_size: int, split_axis: int, concat_axis: int,
    groups: Groups, tiled: bool,
) -> Any:  # fmt: skip
    (x,), (dim,) = args, dims
    params: dict[str, Any] = {"axes": axes, "axis_size": axis_size, "groups": groups, "tiled": tiled}
    if axis.name not in axes:
        x = front(x, dim, axis)
        return all_to_all_p.bind(x, split_axis=split_axis + 1, concat_axis=concat_axis + 1, **params), 0
    _one_axis(all_to_all_p, axes, groups)
    x = front(x, dim, axis)
    if tiled:
        x = _divided(x, split_axis + 1, axis_size)
    # From [source, ..., destination, ...] to [destination, ..., source, ...].
    if groups is None:
        x = shapes.moveaxis(shapes.moveaxis(x, split_axis + 1, 0), 1, concat_axis + 1)
    else:
        x = shapes.moveaxis(_in_groups(x, groups), split_axis + 2, 1)
        x = shapes.moveaxis(_out_of_groups(x, groups), 1, concat_axis + 1)
    return (_merged(x, concat_axis + 1) if tiled else x), 0


ppermute_p = collective("ppermute", passes_nan=True)
ppermute_p.jvp_rule = jvp_linear(ppermute_p)
ppermute_p.lowering(hlo_collectives.ppermute)


@ppermute_p.abstract_eval
def _ppermute_abstract_eval(x: ShapedArray, *, axes: Names, perm: Any) -> ShapedArray:
    return x.update(varying=x.varying | keys_of(axes))


@ppermute_p.transpose
def _ppermute_transpose(ct: Any, x: LinearVar, *, axes: Names, perm: Any) -> Any:
    return (ppermute_p.bind(ct, axes=axes, perm=tuple([(target, source) for source, target in perm])),)


@ppermute_p.batch
def _ppermute_batch(axis: MappedAxis, args: Any, dims: Any, *, axes: Names, perm: Any) -> Any:
    (x,), (dim,) = args, dims
    if axis.name not in axes:
        return ppermute_p.bind(x, axes=axes, perm=perm), dim
    x = front(x, dim, axis)
    others = [axis_in_scope(name) for name in axes if name != axis.name]
    targets: Any = ArrayImpl(np.arange(axis.size, dtype=np.int32))
    if others:
        # All values, from [others..., own, ...]; and the index of each own value among all, from the other indices.
        for other in reversed(others):
            x = all_gather_p.bind(x, axes=(other.name,), axis_size=other.size, dimension=0, tiled=False, groups=None)
        position = axes.index(axis.name)
        x = shapes.moveaxis(x, len(others), position)
        sizes = x.shape[: len(axes)]
        x = shapes.reshape(x, (math.prod(sizes), *x.shape[len(axes) :]))
        steps = dict(zip(axes, [math.prod(sizes[k + 1 :]) for k in range(len(sizes))], strict=True))
        targets = ops.mul(targets, steps[axis.name])
        for other in others:
            here = ops.mul(axis_index_p.bind(axes=(other.name,)), steps[other.name])
            targets = ops.add(targets, shapes.broadcast_in_dim(here, targets.shape, ()))
    source_of = np.zeros(x.shape[0], np.int32)
    has_source = np.zeros(x.shape[0], bool)
    for source, target in perm:
        source_of[target], has_source[target] = source, True
    out = rows(x, rows(ArrayImpl(source_of), targets))
    if not has_source.all():
        mask = shapes.broadcast_in_dim(rows(ArrayImpl(has_source), targets), out.shape, (0,))
        out = ops.select_n(mask, shapes.zeros_like(out), out)
    return out, 0


# Shardings over the explicit axes of a mesh ---------------------------------------------------------------------------


def _as_operand(avals: Sequence[ShapedArray], results: Any, **params: Any) -> list[list[Any]]:
    return [list(entries_of(avals[0]))]


def _with_new_axis(
    avals: Sequence[ShapedArray], results: Any, *, dimension: int, tiled: bool, **params: Any
) -> list[list[Any]]:
    entries = list(entries_of(avals[0]))
    return [entries if tiled else [*entries[:dimension], None, *entries[dimension:]]]


def _without_axis(
    avals: Sequence[ShapedArray], results: Any, *, dimension: int, tiled: bool, **params: Any
) -> list[list[Any]]:
    entries = list(entries_of(avals[0]))
    return [entries if tiled else entries[:dimension] + entries[dimension + 1 :]]


def _with_moved_axis(
    avals: Sequence[ShapedArray], results: Any, *, split_axis: int, concat_axis: int, tiled: bool, **params: Any
) -> list[list[Any]]:
    entries = list(entries_of(avals[0]))
    rest = entries[:split_axis] + entries[split_axis + 1 :]
    return [entries if tiled else [*rest[:concat_axis], None, *rest[concat_axis:]]]


for _p in (psum_p, pmax_p, pmin_p, pvary_p, ppermute_p):
    sharding_rule(_p)(_as_operand)
for _p in (all_gather_p, all_gather_invariant_p):
    sharding_rule(_p)(_with_new_axis)
sharding_rule(reduce_scatter_p)(_without_axis)
sharding_rule(all_to_all_p)(_with_moved_axis)


# Contraction over named axes -----------------------------------------------------------------------------------------

psum_dot_general_p = collective("psum_dot_general")
"""The sum over named axes of ``dot_general``: one contraction where the axes are mapped, without an array of
products."""


@psum_dot_general_p.decomposition
def _psum_of_dot(x: Any, y: Any, *, axes: Names, **params: Any) -> Any:
    return psum(dot_general_p.bind(x, y, **params), axes)


def _contraction(x: Any, y: Any, dimension_numbers: Dims, axes: Names, **precision: Any) -> Any:
    if not axes:
        return dot_general_p.bind(x, y, dimension_numbers=dimension_numbers, **precision)
    return psum_dot_general_p.bind(x, y, dimension_numbers=dimension_numbers, axes=axes, **precision)


@psum_dot_general_p.abstract_eval
def _psum_dot_abstract_eval(x: ShapedArray, y: ShapedArray, *, axes: Names, **params: Any) -> ShapedArray:
    out: ShapedArray = dot_general_p.abstract_eval_rule(x, y, **params)  # type: ignore[misc]
    return out.update(varying=(x.varying | y.varying) - keys_of(axes))


@psum_dot_general_p.jvp
def _psum_dot_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    apply: Callable[..., Any] = partial(_contraction, **params)
    terms = [apply(tx, y)] if tx is not ZERO else []
    if ty is not ZERO:
        terms.append(apply(x, ty))
    return apply(x, y), terms[0] if len(terms) == 1 else ops.add_any(*terms)


@partial(psum_dot_general_p.transpose, linear_in="each")
def _psum_dot_transpose(ct: Any, x: Any, y: Any, *, dimension_numbers: Dims, axes: Names, **precision: Any) -> Any:
    ct = psum(ct, tuple([name for name in axes if not is_reduced(name)]))
    return transpose_by(partial(dot_general_p.bind, **precision), ct, x, y, dimension_numbers)


@psum_dot_general_p.batch
def _psum_dot_batch(
    axis: MappedAxis, args: Any, dims: Any, *, dimension_numbers: Dims, axes: Names, **precision: Any
) -> Any:
    (x, y), (dx, dy) = args, dims
    contraction: Callable[..., Any] = partial(_contraction, **precision)
    if axis.name not in axes:
        numbers, dim = batched_numbers(len(x.shape), len(y.shape), dx, dy, dimension_numbers)
        return contraction(x, y, numbers, axes), dim
    rest = tuple([name for name in axes if name != axis.name])
    if dx is None and dy is None:
        return ops.mul(contraction(x, y, dimension_numbers, rest), axis.size), None
    if dx is None or dy is None:
        x, y = (v if d is None else reduce_sum(v, (d,)) for v, d in ((x, dx), (y, dy)))
        return contraction(x, y, dimension_numbers, rest), None
    numbers, _ = batched_numbers(len(x.shape), len(y.shape), dx, dy, dimension_numbers)
    (xc, yc), (xb, yb) = numbers  # the mapped axes are the first batch axes
    return contraction(x, y, ((((xb[0], *xc), (yb[0], *yc))), (xb[1:], yb[1:])), rest), None
