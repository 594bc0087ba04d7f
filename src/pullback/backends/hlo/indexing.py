"""Gather, scatter and dynamic slices in StableHLO.

The compiler's gathers and slices clamp indices so that windows are inside the operand, and its scatters drop windows
that are not: this module adds the other modes. Like the compiler, it compares indices of any width without overflow.
Indices are converted to signed dtypes: the compiler reads constants of unsigned dtypes as signed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.hlo.builder import Builder, Constant, Value, integers
from pullback.backends.hlo.in_place import computed_first
from pullback.backends.hlo.sizes import shape_value
from pullback.core.dims import any_symbolic

Axes = tuple[int, ...]
Numbers = tuple[Axes, Axes, Axes, Axes, Axes]

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


# Dynamic slices ----------------------------------------------------------------------------------------------------


def dynamic_slice(hlo: Builder, x: Value, starts: Sequence[Value], sizes: Axes) -> Value:
    """Slice a block of ``x``.

    Args:
      hlo: the builder.
      x: the operand.
      starts: the index of the block's first element along each axis. It is clamped so that the block is inside ``x``.
      sizes: the shape of the block.
    """
    if sizes == x.shape:
        return x
    if 0 in sizes:
        return _empty(hlo, x, sizes)
    limits = [n - size for n, size in zip(x.shape, sizes, strict=True)]
    if any_symbolic(sizes):
        return _symbolic_slice(hlo, x, starts, limits, sizes)
    if all(type(s) is Constant for s in starts):
        first = [_clipped(s, limit) for s, limit in zip(starts, limits, strict=True)]
        return hlo.slice(x, first, [i + size for i, size in zip(first, sizes, strict=True)])
    indices = _of_one_dtype(hlo, starts, limits)
    return hlo.op("stablehlo.dynamic_slice", [x, *indices], sizes, x.dtype, f"slice_sizes = {integers(sizes)}")


def _symbolic_slice(hlo: Builder, x: Value, starts: Sequence[Value], limits: Sequence[int], sizes: Axes) -> Value:
    """Slice a block of ``x`` whose shape is symbolic: the operation for it does not clamp, and has all in arrays."""
    indices = [_signed(hlo, s) for s in starts]
    for k, i in enumerate(indices):
        if i.dtype == _INT64:
            least, most = hlo.number(0, _INT64), hlo.number(2**31 - 1, _INT64)
            indices[k] = hlo.op("stablehlo.clamp", [least, i, most], (), _INT64)
    first = hlo.concatenate([hlo.reshape(hlo.convert(i, _INT32), (1,)) for i in indices], 0)
    zeros, last = hlo.splat(0, first.shape, _INT32), shape_value(hlo, tuple(limits))
    first = hlo.op("stablehlo.clamp", [zeros, first, last], first.shape, _INT32)
    end = hlo.elementwise("stablehlo.add", first, shape_value(hlo, sizes))
    operands = [x, first, end, hlo.splat(1, first.shape, _INT32)]
    return hlo.op("stablehlo.real_dynamic_slice", operands, sizes, x.dtype)


def dynamic_update_slice(hlo: Builder, x: Value, update: Value, starts: Sequence[Value]) -> Value:
    """Replace a block of ``x`` with ``update``.

    Args:
      hlo: the builder.
      x: the operand.
      update: the new elements of the block.
      starts: the index of the block's first element along each axis. It is clamped so that the block is inside ``x``.
    """
    if update.shape == x.shape:
        return update
    if 0 in update.shape:
        return x
    limits = [n - size for n, size in zip(x.shape, update.shape, strict=True)]
    indices = _of_one_dtype(hlo, starts, limits)
    update = computed_first(hlo, x, update, indices)
    return hlo.op("stablehlo.dynamic_update_slice", [x, update, *indices], x.shape, x.dtype)


def _empty(hlo: Builder, x: Value, shape: Axes) -> Value:
    return hlo.splat(np.zeros((), x.dtype)[()], shape, x.dtype)


def _clipped(start: Any, limit: int) -> int:
    return min(max(int(start.number), 0), limit)


def _of_one_dtype(hlo: Builder, starts: Sequence[Value], limits: Sequence[int]) -> list[Value]:
    """Convert the start indices of a slice to one signed dtype, as the compiler requires.

    Constant indices are clamped to the range from 0 to ``limits``, the largest valid index along each axis.
    """
    signed = [s if type(s) is Constant else _signed(hlo, s) for s in starts]
    dtype = max((s.dtype for s in signed if type(s) is not Constant), key=lambda d: d.itemsize, default=_INT32)
    numbers = [_clipped(s, limit) for s, limit in zip(starts, limits, strict=True) if type(s) is Constant]
    if max(numbers, default=0) > np.iinfo(dtype).max:
        dtype = _INT64 if max(numbers) > np.iinfo(_INT32).max else _INT32
    rest = iter(numbers)
    return [hlo.number(next(rest), dtype) if type(s) is Constant else hlo.convert(s, dtype) for s in signed]


def _signed(hlo: Builder, indices: Value) -> Value:
    """Convert indices to a signed dtype. A uint64 value that exceeds int64 becomes the largest int64."""
    dtype = indices.dtype
    if dtype.kind == "i":
        return indices
    if dtype.itemsize < 4:
        return hlo.convert(indices, _INT32)
    if dtype == np.uint64:
        indices = hlo.elementwise("stablehlo.minimum", indices, hlo.splat(2**63 - 1, indices.shape, dtype))
    return hlo.convert(indices, _INT64)


# Gather and scatter ------------------------------------------------------------------------------------------------


def gather(hlo: Builder, x: Value, indices: Value, numbers: Numbers, sizes: Axes, fill: Any, sorted_: bool) -> Value:
    """Gather the windows of ``x`` at ``indices``.

    Args:
      hlo: the builder, whose current equation has the shape of the result.
      x: the operand.
      indices: integers, with index vectors along the last axis.
      numbers: the dimension numbers, see :func:`pullback.backends.host.indexing.layout`.
      sizes: the sizes of a window along the axes of the operand.
      fill: the value of all elements of a window that is not inside the operand; None to clamp its indices instead.
      sorted_: whether the index vectors are known to be in order.
    """
    shape = hlo.result.shape
    if 0 in shape:
        return _empty(hlo, x, shape)
    indices = _signed(hlo, indices)
    windows, collapsed, indexed, _, _ = numbers
    along, indices_along = _batching(numbers)
    attributes = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = {list(windows)}, "
        f"collapsed_slice_dims = {sorted(collapsed)}, operand_batching_dims = {along}, "
        f"start_indices_batching_dims = {indices_along}, start_index_map = {list(indexed)}, "
        f"index_vector_dim = {indices.ndim - 1}>, indices_are_sorted = {_flag(sorted_)}"
    )
    if any_symbolic(sizes):
        out = hlo.op("stablehlo.dynamic_gather", [x, indices, shape_value(hlo, sizes)], shape, x.dtype, attributes)
    else:
        attributes += f", slice_sizes = {integers(sizes)}"
        out = hlo.op("stablehlo.gather", [x, indices], shape, x.dtype, attributes)
    limits = [x.shape[d] - sizes[d] for d in indexed]
    if fill is None or _known_inside(hlo, indices, limits):
        return out
    inside = _inside(hlo, indices, limits)
    if inside.shape:
        batch = [i for i in range(len(shape)) if i not in windows]
        inside = inside if inside.shape == shape else hlo.broadcast_in_dim(inside, shape, batch)
    return hlo.select(inside, out, hlo.splat(fill, shape, x.dtype))


def scatter(
    hlo: Builder,
    x: Value,
    indices: Value,
    updates: Value,
    numbers: Numbers,
    sizes: Axes,
    combine: Callable[[Value, Value], Value],
    *,
    clip: bool,
    sorted_: bool,
    unique: bool,
) -> Value:
    """Combine the windows of ``x`` at ``indices`` with ``updates``.

    Args:
      hlo: the builder.
      x: the operand.
      indices: integers, with index vectors along the last axis.
      updates: the updates, in the shape of the result of a gather.
      numbers: the dimension numbers, see :func:`pullback.backends.host.indexing.layout`.
      sizes: the sizes of a window along the axes of the operand.
      combine: writes the combination of an old and a new element.
      clip: whether to clamp the indices of windows that are not inside the operand; otherwise such windows are dropped.
      sorted_: whether the index vectors are known to be in order.
      unique: whether the windows are known not to overlap.
    """
    if 0 in updates.shape or 0 in x.shape:
        return x
    indices = _signed(hlo, indices)
    windows, inserted, indexed, _, _ = numbers
    along, indices_along = _batching(numbers)
    if not indexed and not along and math.prod(updates.shape) == math.prod(x.shape):
        # The compiler rewrites such a scatter as an elementwise map, and crashes on a combination in reverse order.
        return combine(x, hlo.reshape(updates, x.shape))
    if clip:
        indices = _clamped_inside(hlo, indices, [x.shape[d] - sizes[d] for d in indexed])
    attributes = (
        f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {list(windows)}, "
        f"inserted_window_dims = {sorted(inserted)}, input_batching_dims = {along}, "
        f"scatter_indices_batching_dims = {indices_along}, scatter_dims_to_operand_dims = {list(indexed)}, "
        f"index_vector_dim = {indices.ndim - 1}>, indices_are_sorted = {_flag(sorted_)}, "
        f"unique_indices = {_flag(unique)}"
    )
    element = ((), x.dtype)
    body = hlo.region([element, element], lambda old, new: [combine(old, new)])
    updates = computed_first(hlo, x, updates, [indices])
    return hlo.multi_result("stablehlo.scatter", [x, indices, updates], [(x.shape, x.dtype)], attributes, [body])[0]


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _batching(numbers: Numbers) -> tuple[list[int], list[int]]:
    """The batching axes in dimension numbers of a gather or scatter.

    Returns:
      The batching axes of the operand, sorted as the compiler requires, and the matching axes of the indices.
    """
    pairs = sorted(zip(numbers[3], numbers[4], strict=True))
    return [d for d, _ in pairs], [i for _, i in pairs]


# Indices out of bounds ---------------------------------------------------------------------------------------------


def _limit(hlo: Builder, indices: Value, limits: Sequence[int], dtype: np.dtype[Any]) -> Value:
    """Broadcast the largest valid indices to the shape of ``indices``.

    Args:
      hlo: the builder.
      indices: integers, with index vectors along the last axis.
      limits: the largest valid index for each component of an index vector. A limit above the maximum of the indices'
        dtype becomes this maximum.
      dtype: the dtype of the result.
    """
    most = int(np.iinfo(indices.dtype).max)
    if any_symbolic(limits):
        sizes = shape_value(hlo, tuple(limits))
        if most < np.iinfo(_INT32).max:
            sizes = hlo.elementwise("stablehlo.minimum", sizes, hlo.splat(most, sizes.shape, _INT32))
        return hlo.broadcast_in_dim(hlo.convert(sizes, dtype), indices.shape, [indices.ndim - 1])
    values = np.array([min(n, most) for n in limits], dtype)
    return hlo.broadcast(hlo.array(values if len(set(limits)) > 1 else values[0]), indices.shape)


def _known_inside(hlo: Builder, indices: Value, limits: Sequence[int]) -> bool:
    """Whether all indices are constants from 0 to their limits, so that all windows are inside the operand."""
    if not limits:
        return True
    known = None if any_symbolic(limits) else hlo.known_integers(indices)
    return known is not None and bool(((known >= 0) & (known <= np.array(limits, np.int64))).all())


def _clamped_inside(hlo: Builder, indices: Value, limits: Sequence[int]) -> Value:
    """Clamp each component of the index vectors from 0 to its limit: the windows are then inside the operand."""
    if _known_inside(hlo, indices, limits):
        return indices
    zero = hlo.splat(0, indices.shape, indices.dtype)
    return hlo.elementwise("stablehlo.clamp", zero, indices, _limit(hlo, indices, limits, indices.dtype))


def _inside(hlo: Builder, indices: Value, limits: Sequence[int]) -> Value:
    """For each index vector, whether all components are from 0 to their limits: its window is then inside the operand.

    The comparison is unsigned: as an unsigned integer, a negative index exceeds every limit.
    """
    unsigned = np.dtype(f"u{indices.dtype.itemsize}")
    large = hlo.bitcast(indices, indices.shape, unsigned)
    inside = hlo.compare(large, _limit(hlo, indices, limits, unsigned), "LE")
    if len(limits) == 1:
        return hlo.reshape(inside, inside.shape[:-1])
    return hlo.reduce("stablehlo.and", inside, True, [inside.ndim - 1])
