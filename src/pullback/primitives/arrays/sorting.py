"""Sorting, searches in sorted arrays, and elements by index along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import sorting as host
from pullback.core import dtypes
from pullback.core.errors import AxisError, DtypeError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import iota
from pullback.primitives.axis_maps import mapped_first, works_along
from pullback.primitives.checks import INTEGER, ORDERED, broadcast_shape, check_dtype, check_positions, same_dtype
from pullback.primitives.rules import jvp_linear_in, jvp_zero
from pullback.primitives.sums import sum_to

# Sorting -----------------------------------------------------------------------------------------------------------


def sort(operands: Sequence[Any], dimension: int, is_stable: bool = True, num_keys: int = 1) -> list[Any]:
    """Sort several arrays by the same order along ``dimension``; return the sorted arrays.

    The first ``num_keys`` operands are the keys. The first key is the most significant.
    """
    out: list[Any] = sort_p.bind(*operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    return out


def argsort(keys: Sequence[Any], axis: int, index_dtype: Any) -> list[Any]:
    """Return the sorted ``keys``, and an array of the indices along ``axis`` where their elements were before.

    The keys are sorted by the same order along ``axis``; the first key is the most significant.
    """
    check_positions("argsort", keys[0].shape[axis] - 1, np.dtype(index_dtype))
    positions = iota(index_dtype, keys[0].shape, axis)
    return sort([*keys, positions], axis, num_keys=len(keys))


sort_p = Primitive("sort", multiple_results=True, cost=Cost.SPECIAL, passes_nan=True)
works_along(sort_p, "dimension")
sort_p.host_rule = host.sort


@sort_p.abstract_eval
def _sort_abstract_eval(*operands: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if not 0 < num_keys <= len(operands):
        raise ShapeError(f"sort: num_keys={num_keys} must be from 1 to the number of operands, {len(operands)}")
    if len({x.shape for x in operands}) > 1:
        raise ShapeError(f"sort takes operands of one shape, got {', '.join(str(x.shape) for x in operands)}")
    if not 0 <= dimension < operands[0].ndim:
        raise AxisError(f"sort: axis {dimension} is out of bounds for an array of shape {operands[0].shape}")
    for x in operands[:num_keys]:
        if dtypes.is_key(x.dtype):
            raise DtypeError(f"sort: {dtypes.short_name(x.dtype)} has no order")
    return [ShapedArray(x.shape, x.dtype) for x in operands]


@sort_p.jvp
def _sort_jvp(primals: Any, tangents: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    if all(t is ZERO for t in tangents):
        outs = sort(primals, dimension, is_stable, num_keys)
        return outs, [ZERO] * len(outs)
    positions = np.int32 if primals[0].shape[dimension] <= 2**31 else np.int64
    *outs, order = sort([*primals, iota(positions, primals[0].shape, dimension)], dimension, is_stable, num_keys)
    return outs, [t if t is ZERO else take_along_axis(t, order, dimension, unique=True) for t in tangents]


@sort_p.lowering
def _sort_lowering(hlo: Any, *operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    from pullback.backends.hlo import sorting as hlo_sorting

    return hlo_sorting.sort(hlo, operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys)


# The largest elements ----------------------------------------------------------------------------------------------


def top_k(x: Any, k: int, axis: int) -> list[Any]:
    """Return the ``k`` largest elements along an axis, in descending order, and their indices (int32).

    Equal elements keep their order; NaN is above all numbers, and 0 above -0.
    """
    out: list[Any] = top_k_p.bind(x, k=k, axis=axis)
    return out


_INT32 = np.dtype(np.int32)
top_k_p = Primitive("top_k", multiple_results=True, keeps_weak_type=False, cost=Cost.SPECIAL, passes_nan=True)
works_along(top_k_p, "axis")


@top_k_p.host
def _top_k_host(x: Any, *, k: int, axis: int) -> Any:
    check_positions("top_k", x.shape[axis] - 1, _INT32)
    return host.top_k(x, k=k, axis=axis)


@top_k_p.abstract_eval
def _top_k_abstract_eval(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    check_dtype("top_k", ORDERED, x.dtype)
    if not 0 <= axis < x.ndim:
        raise AxisError(f"top_k: axis {axis} is out of bounds for an array of shape {x.shape}")
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"top_k: k={k} must be from 0 to {x.shape[axis]}, the size of axis {axis} of shape {x.shape}")
    check_positions("top_k", x.shape[axis] - 1, _INT32)
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [ShapedArray(shape, x.dtype), ShapedArray(shape, np.dtype(np.int32))]


@top_k_p.jvp
def _top_k_jvp(primals: Any, tangents: Any, *, k: int, axis: int) -> Any:
    (x,), (t,) = primals, tangents
    values, indices = top_k(x, k, axis)
    return [values, indices], [take_along_axis(t, indices, axis, unique=True), ZERO]


@top_k_p.lowering
def _top_k_lowering(hlo: Any, x: Any, *, k: int, axis: int) -> list[Any]:
    """Emit the compiler's ``top_k``; since it works on the last axis only, move ``axis`` there and back."""
    order = [*(i for i in range(x.ndim) if i != axis), axis]
    inverse = sorted(range(x.ndim), key=order.__getitem__)
    x_bytes = hlo.at_least_one_byte(x)
    last = hlo.transpose(x_bytes, order) if axis < x.ndim - 1 else x_bytes
    shape = (*last.shape[:-1], k)
    results = [(shape, last.dtype), (shape, np.dtype(np.int32))]
    outs: list[Any] = hlo.multi_result("chlo.top_k", [last], results, f"k = {k} : i64")
    values, indices = [hlo.transpose(out, inverse) for out in outs] if last is not x_bytes else outs
    return [hlo.convert(values, x.dtype), indices]


# Searching ---------------------------------------------------------------------------------------------------------


def searchsorted(x: Any, values: Any, side: str, index_dtype: Any) -> Any:
    """Count, for each value, elements of the sorted ``x`` below it (``side="left"``), or not above it (``"right"``).

    ``x`` and ``values`` have the same leading axes: the values in a row are compared with the same row of ``x``. The
    counts have the dtype ``index_dtype``.
    """
    check_positions("searchsorted", x.shape[-1], index_dtype := np.dtype(index_dtype))
    return searchsorted_p.bind(x, values, side=side, index_dtype=index_dtype)


searchsorted_p = Primitive("searchsorted", keeps_weak_type=False, cost=Cost.SPECIAL)
searchsorted_p.host_rule = host.searchsorted
searchsorted_p.jvp_rule = jvp_zero(searchsorted_p)


@searchsorted_p.abstract_eval
def _searchsorted_abstract_eval(
    x: ShapedArray, values: ShapedArray, *, side: str, index_dtype: np.dtype[Any]
) -> ShapedArray:
    same_dtype("searchsorted", [x, values])
    if x.ndim < 1 or values.ndim != x.ndim or x.shape[:-1] != values.shape[:-1]:
        raise ShapeError(f"searchsorted: the rows of shapes {x.shape} and {values.shape} do not correspond")
    check_positions("searchsorted", x.shape[-1], index_dtype)
    return ShapedArray(values.shape, index_dtype)


@searchsorted_p.batch
def _searchsorted_batch(axis: MappedAxis, args: Any, dims: Any, *, side: str, index_dtype: np.dtype[Any]) -> Any:
    (x, values), (dx, dv) = args, dims
    if dx is None and len(x.shape) == 1:
        moved = shapes.moveaxis(values, dv, 0)
        flat = searchsorted(x, shapes.reshape(moved, (axis.size * moved.shape[1],)), side, index_dtype)
        return shapes.reshape(flat, moved.shape), 0
    x, values = (shapes.broadcast_to(v, (axis.size, *v.shape[1:])) for v in mapped_first((x, values), (dx, dv)))
    return searchsorted(x, values, side, index_dtype), 0


@searchsorted_p.lowering
def _searchsorted_lowering(hlo: Any, x: Any, values: Any, *, side: str, index_dtype: np.dtype[Any]) -> Any:
    from pullback.backends.hlo import sorting as hlo_sorting

    return hlo.convert(hlo_sorting.searchsorted(hlo, x, values, side), index_dtype)


# Elements by index along an axis -----------------------------------------------------------------------------------


def take_along_axis(x: Any, indices: Any, axis: int, unique: bool = False) -> Any:
    """Take the elements of ``x`` at ``indices`` along an axis; the other axes broadcast.

    Args:
      x: an array.
      indices: integers of the same rank, within bounds and not negative.
      axis: the axis, not negative.
      unique: a promise that no index occurs twice, which makes the derivative cheaper.
    """
    return take_along_axis_p.bind(x, indices, axis=axis, unique=unique)


def add_along_axis(x: Any, indices: Any, axis: int, size: int, unique: bool = False) -> Any:
    """Scatter along ``axis`` into zeros: add each element of ``x`` to the result element that ``indices`` says.

    The result has size ``size`` along ``axis``. The operation is the transpose of ``take_along_axis``: the other axes
    of ``x`` and ``indices`` broadcast. ``unique`` promises that no index occurs twice.
    """
    return add_along_axis_p.bind(x, indices, axis=axis, size=size, unique=unique)


def _along_axis_shape(name: str, x: ShapedArray, indices: ShapedArray, axis: int) -> Shape:
    """Return the common shape of ``x`` and ``indices``: axes except ``axis`` broadcast, ``axis`` is from the indices.

    It raises if the ranks differ or the axes do not broadcast; ``name`` is the operation in the error.
    """
    check_dtype(f"{name} at indices", INTEGER, indices.dtype)
    if x.ndim != indices.ndim or not 0 <= axis < x.ndim:
        raise ShapeError(f"{name}: {x.shape} and indices of shape {indices.shape} do not fit along axis {axis}")
    rest = broadcast_shape(name, [(*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (x, indices)])
    return (*rest[:axis], indices.shape[axis], *rest[axis + 1 :])


take_along_axis_p = Primitive("take_along_axis", keeps_weak_type=False, cost=Cost.SIMPLE, moves=True)
take_along_axis_p.jvp_rule = jvp_linear_in(take_along_axis_p, 0)
works_along(take_along_axis_p, "axis", broadcasts=True)


@take_along_axis_p.host
def _take_host(x: Any, indices: Any, *, axis: int, unique: bool) -> Any:
    return host.take_along_axis(x, indices, axis=axis)


@take_along_axis_p.abstract_eval
def _take_abstract_eval(x: ShapedArray, indices: ShapedArray, *, axis: int, unique: bool) -> ShapedArray:
    return ShapedArray(_along_axis_shape("take_along_axis", x, indices, axis), x.dtype)


@partial(take_along_axis_p.transpose, linear_in=(0,))
def _take_transpose(ct: Any, x: LinearVar, indices: Any, *, axis: int, unique: bool) -> Any:
    return sum_to(add_along_axis(ct, indices, axis, x.shape[axis], unique), x), None


@take_along_axis_p.lowering
def _take_lowering(hlo: Any, x: Any, indices: Any, *, axis: int, unique: bool) -> Any:
    from pullback.backends.hlo import sorting as hlo_sorting

    return hlo_sorting.take_along_axis(hlo, x, indices, axis)


add_along_axis_p = Primitive("add_along_axis", keeps_weak_type=False, cost=Cost.SIMPLE)
add_along_axis_p.jvp_rule = jvp_linear_in(add_along_axis_p, 0)
works_along(add_along_axis_p, "axis", broadcasts=True)
add_along_axis_p.host_rule = host.add_along_axis


@add_along_axis_p.abstract_eval
def _add_abstract_eval(x: ShapedArray, indices: ShapedArray, *, axis: int, size: int, unique: bool) -> ShapedArray:
    shape = _along_axis_shape("add_along_axis", x, indices, axis)
    if x.shape[axis] != indices.shape[axis]:
        raise ShapeError(f"add_along_axis: {x.shape} and indices of shape {indices.shape} differ along axis {axis}")
    if x.dtype == np.bool_:
        raise DtypeError("add_along_axis takes numbers, got bool")
    return ShapedArray((*shape[:axis], size, *shape[axis + 1 :]), x.dtype)


@partial(add_along_axis_p.transpose, linear_in=(0,))
def _add_transpose(ct: Any, x: LinearVar, indices: Any, *, axis: int, size: int, unique: bool) -> Any:
    return sum_to(take_along_axis(ct, indices, axis, unique), x), None


@add_along_axis_p.lowering
def _add_lowering(hlo: Any, x: Any, indices: Any, *, axis: int, size: int, unique: bool) -> Any:
    from pullback.backends.hlo import sorting as hlo_sorting

    return hlo_sorting.add_along_axis(hlo, x, indices, axis, unique)


def clip_indices(indices: Any, size: int) -> Any:
    """Clip indices to the bounds of an axis of size ``size``."""
    return ops.clamp_p.bind(0, indices, max(size - 1, 0))
