"""Slices whose start indices are values: ``dynamic_slice`` and ``dynamic_update_slice``.

Gathers and scatters have files of their own, and are re-exported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import moves
from pullback.core import dtypes
from pullback.core.array import SCALARS, as_array, scalar_array
from pullback.core.check_rules import Failure, checks
from pullback.core.dims import Dim
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives.arrays import gather as gathers
from pullback.primitives.arrays import scatter, shapes, slicing
from pullback.primitives.arrays.gather import as_weak_as
from pullback.primitives.arrays.gather import gather as gather
from pullback.primitives.arrays.gather import gather_p as gather_p
from pullback.primitives.arrays.windows import GatherDimensionNumbers as GatherDimensionNumbers
from pullback.primitives.arrays.windows import GatherScatterMode as GatherScatterMode
from pullback.primitives.arrays.windows import ScatterDimensionNumbers, check_indices, out_of_bounds
from pullback.primitives.arrays.windows import zeros as zeros
from pullback.primitives.axis_maps import front
from pullback.primitives.checks import same_dtype
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.rules import axis_divided, axis_kept, jvp_linear_in, stays


def scalar_indices(start_indices: Sequence[Any]) -> list[Any]:
    """Return the start indices, with Python ints converted to arrays."""
    return [scalar_array(np.int32(i)) if type(i) in SCALARS else i for i in start_indices]


def wide_enough(positions: Any, size: Any) -> Any:
    """Convert indices to an integer dtype that can hold ``size``; a dtype that can hold it already stays.

    The caller adds ``size``, the size of the axis, to negative indices, which must not overflow.
    """
    if isinstance(size, Dim):
        return convert_element_type(positions, np.dtype(np.int32)) if positions.dtype.itemsize < 4 else positions
    dtype = positions.dtype
    bits = 8 * dtype.itemsize - (dtype.kind == "i")  # `iinfo` takes as long as three operations on a few numbers
    if size <= ((1 << bits) - 1 if dtype.isbuiltin == 1 else int(dtypes.iinfo(dtype).max)):
        return positions
    return convert_element_type(positions, np.dtype(np.int32 if size < 2**31 else np.int64))


def index_vector(start_indices: Sequence[Any], dims: Sequence[int | None], size: int) -> Any:
    """Return the index vectors of a batch of blocks, of shape (``size``, number of array axes).

    Args:
      start_indices: the start index along each array axis: a vector of ``size`` elements, or a scalar if unmapped.
      dims: for each start index the position of its mapped axis, or None if unmapped.
      size: the size of the mapped axis.
    """
    dtype = np.dtype(np.int64 if any(i.dtype.itemsize > 4 for i in start_indices) else np.int32)
    columns = []
    for i, d in zip(start_indices, dims, strict=True):
        i = convert_element_type(i, dtype)
        columns.append(shapes.reshape(i, (size, 1)) if d is not None else shapes.broadcast_in_dim(i, (size, 1), ()))
    return slicing.concatenate(columns, 1)


# Slices at start indices that are values ---------------------------------------------------------------------------


def dynamic_slice(x: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """Slice a block of ``slice_sizes`` from ``x``, which starts at ``start_indices``, a scalar for each axis.

    If the block would be out of bounds, it moves inside.
    """
    return as_weak_as(x, dynamic_slice_p.bind(x, *scalar_indices(start_indices), slice_sizes=tuple(slice_sizes)))


def dynamic_update_slice(x: Any, update: Any, start_indices: Sequence[Any]) -> Any:
    """Return ``x`` with ``update`` in place of the block that starts at ``start_indices``, a scalar for each axis.

    If the block would be out of bounds, it moves inside.
    """
    return dynamic_update_slice_p.bind(x, update, *scalar_indices(start_indices))


dynamic_slice_p = Primitive("dynamic_slice", keeps_weak_type=False, cost=Cost.SIMPLE, moves=True)
dynamic_slice_p.jvp_rule = jvp_linear_in(dynamic_slice_p, 0)
dynamic_update_slice_p = Primitive("dynamic_update_slice", keeps_weak_type=False, cost=Cost.SIMPLE, moves=True)
dynamic_update_slice_p.jvp_rule = jvp_linear_in(dynamic_update_slice_p, 0, 1)


@axis_kept(dynamic_slice_p)
def _slice_keeps(axis: int, operand: int, x: Shape, *starts: Shape, slice_sizes: Shape) -> int | None:
    return axis if slice_sizes[axis] == x[axis] else None


axis_divided(dynamic_slice_p)(stays)


@axis_kept(dynamic_update_slice_p)
def _update_keeps(axis: int, operand: int, x: Shape, update: Shape, *starts: Shape) -> int | None:
    return axis if update[axis] == x[axis] else None


axis_divided(dynamic_update_slice_p)(stays)


def _clamped_block(shape: Shape, sizes: Shape, starts: Sequence[Any]) -> tuple[slice, ...]:
    block = []
    for n, size, start in zip(shape, sizes, starts, strict=True):
        first = min(max(int(start), 0), n - size)
        block.append(slice(first, first + size))
    return tuple(block)


def _check_block(name: str, x: ShapedArray, sizes: Shape, starts: Sequence[ShapedArray]) -> None:
    if len(starts) != x.ndim or any(s.ndim for s in starts):
        shown = ", ".join(map(str, starts))
        raise ShapeError(f"{name} of an array of shape {x.shape} needs {x.ndim} scalar start indices, got ({shown})")
    for s in starts:
        check_indices(name, s)
    if len(sizes) != x.ndim or any(not 0 <= size <= n for size, n in zip(sizes, x.shape, strict=True)):
        raise ShapeError(f"{name}: a block of shape {sizes} is too large for an array of shape {x.shape}")


@dynamic_slice_p.host
def _dynamic_slice_host(x: Any, *starts: Any, slice_sizes: Shape) -> Any:
    out = x[_clamped_block(x.shape, slice_sizes, starts)]
    if out.shape != slice_sizes:
        raise ValueError("a block that does not fit")
    return out


@dynamic_slice_p.abstract_eval
def _dynamic_slice_abstract_eval(x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> ShapedArray:
    _check_block("dynamic_slice", x, slice_sizes, starts)
    return ShapedArray(slice_sizes, x.dtype)


@dynamic_slice_p.lowering
def _dynamic_slice_lowering(hlo: Any, x: Any, *starts: Any, slice_sizes: Shape) -> Any:
    from pullback.backends.hlo import indexing as hlo_indexing

    return hlo_indexing.dynamic_slice(hlo, x, starts, slice_sizes)


@partial(dynamic_slice_p.transpose, linear_in=(0,))
def _dynamic_slice_transpose(ct: Any, x: LinearVar, *starts: Any, slice_sizes: Shape) -> Any:
    return dynamic_update_slice(zeros(x.shape, ct.dtype), ct, starts), *(None for _ in starts)


@dynamic_slice_p.batch
def _dynamic_slice_batch(axis: MappedAxis, args: Any, dims: Any, *, slice_sizes: Shape) -> Any:
    (x, *starts), (dx, *ds) = args, dims
    if all(d is None for d in ds):
        starts.insert(dx, 0)
        return dynamic_slice(x, starts, (*slice_sizes[:dx], axis.size, *slice_sizes[dx:])), dx
    rank = len(slice_sizes)
    numbers = GatherDimensionNumbers(tuple(range(rank)), (), tuple(range(rank)))
    vectors = index_vector(starts, ds, axis.size)
    return gathers.batch(
        axis, (x, vectors), (dx, 0), dimension_numbers=numbers, slice_sizes=slice_sizes, indices_are_sorted=True,
        unique_indices=True, mode=GatherScatterMode.CLIP, fill_value=None,
    )  # fmt: skip


@dynamic_update_slice_p.host
def _dynamic_update_slice_host(x: Any, update: Any, *starts: Any) -> Any:
    out = moves.copied(x)
    block = _clamped_block(x.shape, update.shape, starts)
    if out[block].shape != update.shape:
        raise ValueError("a block that does not fit")
    out[block] = update
    return out[()]


@dynamic_update_slice_p.abstract_eval
def _dynamic_update_slice_abstract_eval(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    dtype = same_dtype("dynamic_update_slice", [x, update])
    _check_block("dynamic_update_slice", x, update.shape, starts)
    return ShapedArray(x.shape, dtype)


@dynamic_update_slice_p.lowering
def _dynamic_update_slice_lowering(hlo: Any, x: Any, update: Any, *starts: Any) -> Any:
    from pullback.backends.hlo import indexing as hlo_indexing

    return hlo_indexing.dynamic_update_slice(hlo, x, update, starts)


@partial(dynamic_update_slice_p.transpose, linear_in=(0, 1))
def _dynamic_update_slice_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> Any:
    rest = dynamic_update_slice(ct, zeros(update.shape, ct.dtype), starts) if type(x) is LinearVar else None
    by_update = dynamic_slice(ct, starts, update.shape) if type(update) is LinearVar else None
    return rest, by_update, *(None for _ in starts)


@dynamic_update_slice_p.batch
def _dynamic_update_slice_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    (x, update, *starts), (dx, du, *ds) = args, dims
    if all(d is None for d in ds):
        x, update = front(x, dx, axis), front(update, du, axis)
        return dynamic_update_slice(x, update, [0, *starts]), 0
    rank = len(starts)
    numbers = ScatterDimensionNumbers(tuple(range(rank)), (), tuple(range(rank)))
    vectors = index_vector(starts, ds, axis.size)
    return scatter.batch(
        scatter.scatter_p, axis, (x, vectors, update), (dx, 0, du), dimension_numbers=numbers,
        indices_are_sorted=True, unique_indices=True, mode=GatherScatterMode.CLIP,
    )  # fmt: skip


# Checks ------------------------------------------------------------------------------------------------------------


def _block_checks(shape: Shape, sizes: Sequence[int], starts: Sequence[Any]) -> list[Failure]:
    if not starts:
        return []
    vector = index_vector(list(map(as_array, starts)), [None] * len(starts), 1)
    return out_of_bounds(shape, vector, range(len(shape)), sizes)


checks(dynamic_slice_p)(lambda ans, x, *starts, slice_sizes: _block_checks(x.shape, slice_sizes, starts))
checks(dynamic_update_slice_p)(lambda ans, x, update, *starts: _block_checks(x.shape, update.shape, starts))
