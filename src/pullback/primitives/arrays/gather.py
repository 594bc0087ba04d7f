"""Gathers: one window of an array for each index vector, where the indices are values.

The transpose is a scatter, in ``arrays.scatter``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.host import indexing as host_indexing
from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.check_rules import Failure, checks
from pullback.core.dims import smallest
from pullback.core.errors import ShapeError
from pullback.core.linearity import homogeneous
from pullback.core.trace import Primitive, Tracer
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    batched_numbers,
    check_indices,
    check_numbers,
    check_windows,
    host_indices,
    out_of_bounds,
)
from pullback.primitives.elementwise import convert_element_type, where
from pullback.primitives.explicit_shardings import by_axes, entries_of, put_entry, refused
from pullback.primitives.rules import axis_kept, sharding_rule


def gather(
    x: Any,
    indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: Any = None,
) -> Any:
    """One window of ``x`` for each index vector; see XLA's operation semantics.

    Args:
      x: the operand.
      indices: integers; the last axis is the index vector, the position where a window starts.
      dimension_numbers: how the axes of operand, indices and result correspond.
      slice_sizes: the size of a window along each axis of ``x``.
      unique_indices: a promise that the windows do not overlap.
      indices_are_sorted: a promise that the index vectors are in order.
      mode: how to treat windows that are out of bounds.
      fill_value: the value of windows out of bounds with ``FILL_OR_DROP``, a number or an array without axes; by
        default NaN, the least signed or greatest unsigned integer, or True.

    Returns:
      The windows, in an array with the batch axes of the indices and the axes of a window.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> from pullback.primitives.arrays.gather import gather
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> print(gather(jnp.arange(6.0).reshape(3, 2), jnp.array([[2], [0]]), numbers, (1, 2)))
    [[4. 5.]
     [0. 1.]]
    """
    sizes = tuple(slice_sizes)
    params = {
        "dimension_numbers": dimension_numbers,
        "slice_sizes": sizes,
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": (mode := GatherScatterMode.from_any(mode)),
    }
    if 0 in indices.shape[:-1] and any(n > m for n, m in zip(sizes, x.shape, strict=False)):
        room = tuple(map(max, x.shape, sizes))  # there are no windows, so sizes do not matter
        return shapes.full(_check_gather(room, indices.shape, dimension_numbers, sizes), 0, x.dtype)
    if isinstance(fill_value, Array) and mode is GatherScatterMode.FILL_OR_DROP:
        return as_weak_as(x, _filled(x, indices, fill_value, params))
    return as_weak_as(x, gather_p.bind(x, indices, fill_value=fill_value, **params))


def as_weak_as(x: Any, read: Any) -> Any:
    """Return ``read``, an array of elements gathered from ``x``; make it weakly typed if ``x`` is."""
    return convert_element_type(read, read.dtype, True) if x.weak_type and not read.weak_type else read


def _filled(x: Any, indices: Any, fill_value: Any, params: dict[str, Any]) -> Any:
    """Gather windows of ``x``, with an array without axes as the fill value.

    If the fill value is a tracer, a selection inserts it into the windows out of bounds, so that it has derivatives.
    """
    if fill_value.shape:
        raise ShapeError(f"gather: fill_value must be a number, got an array of shape {fill_value.shape}")
    if not isinstance(fill_value, Tracer):
        return gather_p.bind(x, indices, fill_value=fill_value._value.item(), **params)  # type: ignore[attr-defined]
    inside = gather_p.bind(shapes.full(x.shape, True, np.dtype(bool)), indices, fill_value=False, **params)
    found = gather_p.bind(x, indices, fill_value=0, **params)
    return where(inside, found, convert_element_type(fill_value, found.dtype, found.weak_type))


gather_p = Primitive("gather", keeps_weak_type=False, cost=Cost.SIMPLE, moves=True)


@axis_kept(gather_p)
def _gather_keeps(
    axis: int, operand: int, x: Shape, indices: Shape, *, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape, **rest: Any,
) -> int | None:  # fmt: skip
    """Return the result axis that corresponds to axis ``axis`` of the gathered array, of shape ``x``.

    Only a batching axis, or an axis that every window covers entirely, has such a result axis; for others the function
    returns None. ``operand``, the position of the operand, is not used.
    """
    numbers = dimension_numbers
    if axis in numbers.operand_batching_dims:
        rank = len(indices) - 1 + len(numbers.offset_dims)
        others = [i for i in range(rank) if i not in numbers.offset_dims]
        return others[numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(axis)]]
    if axis in numbers.start_index_map or axis in numbers.collapsed_slice_dims or slice_sizes[axis] != x[axis]:
        return None
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    return numbers.offset_dims[axis - sum(d < axis for d in dropped)]


@sharding_rule(gather_p)
def _gather_sharding(operands: Any, results: Any, **params: Any) -> Any:
    """Return the entries of the result's sharding: along the axes of windows those of the array, along the others those
    of the indices."""
    x, indices = operands
    (found,) = by_axes(gather_p, [x, indices.update(sharding=None)], params, results)
    others = [i for i in range(len(found)) if i not in params["dimension_numbers"].offset_dims]
    for axis, entry in enumerate(entries_of(indices)):
        if entry is not None:
            if axis == len(others):
                raise refused(gather_p, operands, 1, axis)
            put_entry(gather_p, operands, found, others[axis], entry)
    return [found]


def default_fill(dtype: np.dtype[Any]) -> Any:
    """Return the default fill value of a dtype.

    It is NaN for floats and complex numbers, True for booleans, the least value for signed and the greatest for
    unsigned integers, and so for the words of random keys.
    """
    if dtypes.is_inexact(dtype):
        return dtype.type(np.nan)
    if dtypes.is_bool(dtype):
        return np.True_
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return dtype.type(info.max if info.min == 0 else info.min)
    out = np.zeros((), dtype)
    if dtypes.is_key(dtype):
        out[dtypes.key_field(dtype)] = np.iinfo(np.uint32).max
    return out[()]


@functools.lru_cache(maxsize=4096)
def gather_plan(
    shape: Shape, indices_shape: Shape, numbers: GatherDimensionNumbers, sizes: Shape
) -> host_indexing.IndexLayout:
    """Check shapes and dimension numbers of a gather; return the cached index layout that NumPy evaluation needs."""
    _check_gather(shape, indices_shape, numbers, sizes)
    return host_indexing.layout(shape, indices_shape, sizes, numbers)


@gather_p.host
def _gather_host(
    x: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, fill_value: Any,
) -> Any:  # fmt: skip
    if indices.dtype.kind != "i":
        indices = host_indices("gather", indices)
    plan = gather_plan(x.shape, indices.shape, dimension_numbers, slice_sizes)
    return host_indexing.gather(x, indices, plan, _fill(x.dtype, mode, fill_value))


def _fill(dtype: np.dtype[Any], mode: GatherScatterMode, fill_value: Any) -> Any:
    """Return the value for windows out of bounds; None if ``mode`` is not ``FILL_OR_DROP``.

    If ``fill_value`` is None, the value is the default of ``dtype``.
    """
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return None
    return default_fill(dtype) if fill_value is None else fill_value


@gather_p.abstract_eval
def _gather_abstract_eval(
    x: ShapedArray, indices: ShapedArray, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, fill_value: Any,
) -> ShapedArray:  # fmt: skip
    check_indices("gather", indices)
    return ShapedArray(_check_gather(x.shape, indices.shape, dimension_numbers, slice_sizes), x.dtype)


@gather_p.lowering
def _gather_lowering(
    hlo: Any, x: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, fill_value: Any,
) -> Any:  # fmt: skip
    from pullback.backends.hlo import indexing as hlo_indexing

    fill = _fill(x.dtype, mode, fill_value)
    if fill is not None:
        fill = np.full((), fill, x.dtype)[()]
    return hlo_indexing.gather(hlo, x, indices, dimension_numbers, slice_sizes, fill, indices_are_sorted)


def _check_gather(shape: Shape, indices_shape: Shape, numbers: GatherDimensionNumbers, sizes: Shape) -> Shape:
    """Return the shape of the result of a gather; raise if shapes and dimension numbers do not fit."""
    rank = len(shape)
    if len(sizes) != rank or any(not 0 <= s <= n for s, n in zip(sizes, shape, strict=True)):
        raise ShapeError(f"gather: windows of slice_sizes {sizes} do not fit into an operand of shape {shape}")
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    check_numbers("gather", numbers, shape, indices_shape)
    if any(sizes[d] > 1 for d in dropped):
        raise ShapeError(f"gather: slice_sizes must be 1 along the collapsed and batching axes {dropped}, got {sizes}")
    windows = [sizes[d] for d in range(rank) if d not in dropped]
    out_rank = len(indices_shape) - 1 + len(windows)
    check_windows("gather: offset_dims", numbers.offset_dims, len(windows), out_rank)
    batch_sizes, window_sizes = iter(indices_shape), iter(windows)
    return tuple(next(window_sizes) if i in numbers.offset_dims else next(batch_sizes) for i in range(out_rank))


@homogeneous(gather_p)
def _without_fill(*, fill_value: Any, **params: Any) -> dict[str, Any]:
    return {"fill_value": 0, **params}


@gather_p.jvp
def _gather_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices = primals
    ans = gather_p.bind(x, indices, **params)
    t = tangents[0]
    return ans, ZERO if t is ZERO else gather_p.bind(t, indices, **_without_fill(**params))


@gather_p.batch
def batch(
    axis: MappedAxis, args: Any, dims: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    **params: Any,
) -> Any:  # fmt: skip
    (x, indices), (dx, di) = args, dims
    numbers = batched_numbers(dimension_numbers, dx is not None, di is not None)
    if dx is not None:
        x = shapes.moveaxis(x, dx, 0)
        slice_sizes = (axis.size if di is None else smallest(axis.size, 1), *slice_sizes)
    if di is not None:
        indices = shapes.moveaxis(indices, di, 0)
        # A promise about the indices of one example need not hold for all examples in one operand.
        params["indices_are_sorted"] = False
        params["unique_indices"] = params["unique_indices"] and dx is not None
    return gather_p.bind(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params), 0


@checks(gather_p)
def _gather_checks(
    ans: Any, x: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    mode: GatherScatterMode, **params: Any,
) -> list[Failure]:  # fmt: skip
    if mode is GatherScatterMode.CLIP:
        return []
    axes = dimension_numbers.start_index_map
    return out_of_bounds(x.shape, indices, axes, [slice_sizes[a] for a in axes], mode)
