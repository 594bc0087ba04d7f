"""Operations that take parts of arrays at places that are values: gathers, and slices at computed places.

The dimension numbers are XLA's (the operation semantics of ``gather`` and ``scatter`` in the documentation of
StableHLO), with the index vector along the last axis of the indices. Scatters are in ``primitives.scatter``.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.backends import host_indexing
from pullback.core import dtypes
from pullback.core.array import SCALARS, ArrayImpl
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives import shapes, slicing
from pullback.primitives.declare import same_dtype

# Modes and dimension numbers ---------------------------------------------------------------------------------------


class GatherScatterMode(enum.Enum):
    """What becomes of windows that are not inside the operand.

    ``CLIP`` moves them inside. ``FILL_OR_DROP`` fills what is gathered with a value, and drops updates.
    ``PROMISE_IN_BOUNDS`` says that there are none: a gather moves them inside all the same, a scatter drops them.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()

    @staticmethod
    def from_any(mode: GatherScatterMode | str | None) -> GatherScatterMode:
        """A mode from its name: ``clip``, ``fill``, ``drop`` or ``promise_in_bounds``; None is ``FILL_OR_DROP``.

        Raises:
          ArgumentError: there is no such mode (a ValueError).

        >>> GatherScatterMode.from_any("drop")
        <GatherScatterMode.FILL_OR_DROP: 2>
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode in _MODES:
            return _MODES[mode]
        names = ", ".join(repr(name) for name in _MODES if name is not None)
        raise ArgumentError(f"the mode for indices out of range must be one of {names}, got {mode!r}")

    def __str__(self) -> str:
        return self.name


_MODES: dict[Any, GatherScatterMode] = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class GatherDimensionNumbers(NamedTuple):
    """How the axes of a gather's operand, indices and result belong together.

    Attributes:
      offset_dims: the positions of the window's axes in the result; the others are those of the indices.
      collapsed_slice_dims: the axes of the operand, with windows of size 1, that the result lacks.
      start_index_map: the axis of the operand that each component of an index vector indexes.
      operand_batching_dims: axes of the operand that go along with axes of the indices.
      start_indices_batching_dims: these axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


def batched_numbers(numbers: Any, operand: bool, indices: bool) -> Any:
    """The dimension numbers for an operand, or indices, or both, with one more axis in front, as the result has."""
    windows, dropped, indexed, operand_batching, indices_batching = numbers
    window = (0,) if operand and not indices else ()
    along = (0,) if operand and indices else ()
    return type(numbers)(
        window + _shifted(windows, 1),
        _shifted(dropped, operand),
        _shifted(indexed, operand),
        along + _shifted(operand_batching, operand),
        along + _shifted(indices_batching, indices),
    )


def _shifted(axes: Sequence[int], by: int) -> tuple[int, ...]:
    return tuple(a + by for a in axes)


def zeros(shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Zeros to scatter into: memory of their own when they are computed at once, an operation when they are traced."""
    if shape and state.trace.quick:
        return ArrayImpl(np.zeros(shape, dtype))
    zero = shapes.full((), 0, dtype)
    return shapes.broadcast_in_dim(zero, shape, ()) if shape else zero


def counting(start: int, stop: int, dtype: np.dtype[Any]) -> ArrayImpl:
    """``start``, ``start + 1``, ... as a constant."""
    return ArrayImpl(np.arange(start, stop, dtype=dtype))


def scalar_indices(start_indices: Sequence[Any]) -> list[Any]:
    """Positions, with Python ints as arrays."""
    return [ArrayImpl(np.int32(i)) if type(i) in SCALARS else i for i in start_indices]


def index_vector(start_indices: Sequence[Any], dims: Sequence[int | None], size: int) -> Any:
    """Batches of positions, some of them not mapped, as index vectors of shape ``(size, count)``."""
    dtype = np.dtype(np.int64 if any(i.dtype.itemsize > 4 for i in start_indices) else np.int32)
    from pullback.primitives.elementwise import convert_element_type

    columns = []
    for i, d in zip(start_indices, dims, strict=True):
        i = convert_element_type(i, dtype)
        columns.append(shapes.reshape(i, (size, 1)) if d is not None else shapes.broadcast_in_dim(i, (size, 1), ()))
    return slicing.concatenate(columns, 1)


def check_indices(name: str, indices: Any) -> None:
    """Refuse indices that are no integers."""
    if not dtypes.is_integer(indices.dtype):
        got = f"{dtypes.short_name(indices.dtype)}[{','.join(map(str, indices.shape))}]"
        raise DtypeError(f"{name} takes integers as indices, got {got}")


def host_indices(name: str, indices: Any) -> Any:
    """Indices of a dtype other than signed integers' for NumPy, which would take the largest for negative ones."""
    check_indices(name, indices)
    return np.minimum(indices, _LARGEST) if indices.dtype == np.uint64 else indices


_LARGEST = np.uint64(2**63 - 1)


# Slices at computed places -----------------------------------------------------------------------------------------


def dynamic_slice(x: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """A block of ``x`` from ``start_indices``, one scalar an axis, moved inside where it is not."""
    return dynamic_slice_p.bind(x, *scalar_indices(start_indices), slice_sizes=tuple(slice_sizes))


def dynamic_update_slice(x: Any, update: Any, start_indices: Sequence[Any]) -> Any:
    """``x`` with the block from ``start_indices`` replaced; the block is moved inside where it is not."""
    return dynamic_update_slice_p.bind(x, update, *scalar_indices(start_indices))


dynamic_slice_p = Primitive("dynamic_slice", keeps_weak_type=False)
dynamic_update_slice_p = Primitive("dynamic_update_slice", keeps_weak_type=False)


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
        raise ShapeError(f"{name}: a block of shape {sizes} does not fit into an array of shape {x.shape}")


@dynamic_slice_p.host
def _dynamic_slice_host(x: Any, *starts: Any, slice_sizes: Shape) -> Any:
    out = x[_clamped_block(x.shape, slice_sizes, starts)]
    if out.shape != slice_sizes:
        raise ValueError("a block that does not fit")
    return out


@dynamic_slice_p.abstract_eval
def _dynamic_slice_shape(x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> ShapedArray:
    _check_block("dynamic_slice", x, slice_sizes, starts)
    return ShapedArray(slice_sizes, x.dtype)


@dynamic_slice_p.lowering
def _dynamic_slice_xla(hlo: Any, x: Any, *starts: Any, slice_sizes: Shape) -> Any:
    from pullback.backends import hlo_indexing

    return hlo_indexing.dynamic_slice(hlo, x, starts, slice_sizes)


@dynamic_slice_p.jvp
def _dynamic_slice_jvp(primals: Any, tangents: Any, *, slice_sizes: Shape) -> Any:
    x, *starts = primals
    t = tangents[0]
    ans = dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes)
    return ans, ZERO if t is ZERO else dynamic_slice_p.bind(t, *starts, slice_sizes=slice_sizes)


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
    return _gather_batch(
        axis, (x, vectors), (dx, 0), dimension_numbers=numbers, slice_sizes=slice_sizes, indices_are_sorted=True,
        unique_indices=True, mode=GatherScatterMode.CLIP, fill_value=None,
    )  # fmt: skip


@dynamic_update_slice_p.host
def _dynamic_update_slice_host(x: Any, update: Any, *starts: Any) -> Any:
    out = np.array(x, order="C")
    block = _clamped_block(x.shape, update.shape, starts)
    if out[block].shape != update.shape:
        raise ValueError("a block that does not fit")
    out[block] = update
    return out[()]


@dynamic_update_slice_p.abstract_eval
def _dynamic_update_slice_shape(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    dtype = same_dtype("dynamic_update_slice", [x, update])
    _check_block("dynamic_update_slice", x, update.shape, starts)
    return ShapedArray(x.shape, dtype)


@dynamic_update_slice_p.lowering
def _dynamic_update_slice_xla(hlo: Any, x: Any, update: Any, *starts: Any) -> Any:
    from pullback.backends import hlo_indexing

    return hlo_indexing.dynamic_update_slice(hlo, x, update, starts)


@dynamic_update_slice_p.jvp
def _dynamic_update_slice_jvp(primals: Any, tangents: Any) -> Any:
    x, update, *starts = primals
    tx, tu = tangents[:2]
    ans = dynamic_update_slice_p.bind(x, update, *starts)
    if tx is ZERO and tu is ZERO:
        return ans, ZERO
    tx = zeros(x.shape, x.dtype) if tx is ZERO else tx
    tu = zeros(update.shape, x.dtype) if tu is ZERO else tu
    return ans, dynamic_update_slice_p.bind(tx, tu, *starts)


@partial(dynamic_update_slice_p.transpose, linear_in=(0, 1))
def _dynamic_update_slice_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> Any:
    rest = dynamic_update_slice(ct, zeros(update.shape, ct.dtype), starts) if type(x) is LinearVar else None
    part = dynamic_slice(ct, starts, update.shape) if type(update) is LinearVar else None
    return rest, part, *(None for _ in starts)


@dynamic_update_slice_p.batch
def _dynamic_update_slice_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    from pullback.primitives import scatter

    (x, update, *starts), (dx, du, *ds) = args, dims
    if all(d is None for d in ds):
        x, update = slicing.front(x, dx, axis), slicing.front(update, du, axis)
        return dynamic_update_slice(x, update, [0, *starts]), 0
    rank = len(starts)
    numbers = scatter.ScatterDimensionNumbers(tuple(range(rank)), (), tuple(range(rank)))
    vectors = index_vector(starts, ds, axis.size)
    return scatter.batch(
        scatter.scatter_p, axis, (x, vectors, update), (dx, 0, du), dimension_numbers=numbers,
        indices_are_sorted=True, unique_indices=True, mode=GatherScatterMode.CLIP,
    )  # fmt: skip


# Gather ------------------------------------------------------------------------------------------------------------


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
      dimension_numbers: how the axes belong together.
      slice_sizes: the size of a window along each axis of ``x``.
      unique_indices: a promise that the windows do not overlap.
      indices_are_sorted: a promise that the index vectors are in order.
      mode: what becomes of windows that are not inside.
      fill_value: what they hold with ``FILL_OR_DROP``; by default NaN, or the least signed, the greatest unsigned
        integer, or True.

    Returns:
      The windows, in an array with the batch axes of the indices and the axes of a window.

    >>> import pullback.numpy as pnp
    >>> numbers = GatherDimensionNumbers((1,), (0,), (0,))
    >>> print(gather(pnp.arange(6.0).reshape(3, 2), pnp.array([[2], [0]]), numbers, (1, 2)))
    [[4. 5.]
     [0. 1.]]
    """
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=tuple(slice_sizes),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=GatherScatterMode.from_any(mode),
        fill_value=fill_value,
    )


gather_p = Primitive("gather", keeps_weak_type=False)


def default_fill(dtype: np.dtype[Any]) -> Any:
    """What stands for an element that is not there."""
    if dtypes.is_inexact(dtype):
        return dtype.type(np.nan)
    if dtypes.is_bool(dtype):
        return np.True_
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return dtype.type(info.max if info.min == 0 else info.min)
    return np.zeros((), dtype)[()]


@functools.lru_cache(maxsize=4096)
def gather_plan(
    shape: Shape, indices_shape: Shape, numbers: GatherDimensionNumbers, sizes: Shape
) -> host_indexing.Layout:
    """What a gather does on the host; refuses what does not fit."""
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
    """What windows hold that are not inside the operand; None if they are moved inside."""
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return None
    return default_fill(dtype) if fill_value is None else fill_value


@gather_p.abstract_eval
def _gather_shape(
    x: ShapedArray, indices: ShapedArray, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, fill_value: Any,
) -> ShapedArray:  # fmt: skip
    check_indices("gather", indices)
    return ShapedArray(_check_gather(x.shape, indices.shape, dimension_numbers, slice_sizes), x.dtype)


@gather_p.lowering
def _gather_xla(
    hlo: Any, x: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, fill_value: Any,
) -> Any:  # fmt: skip
    from pullback.backends import hlo_indexing

    fill = _fill(x.dtype, mode, fill_value)
    if fill is not None:
        fill = np.full((), fill, x.dtype)[()]
    return hlo_indexing.gather(hlo, x, indices, dimension_numbers, slice_sizes, fill, indices_are_sorted)


def _check_gather(shape: Shape, indices_shape: Shape, numbers: GatherDimensionNumbers, sizes: Shape) -> Shape:
    """The shape of the result of a gather; refuses what does not fit."""
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


def check_numbers(name: str, numbers: Any, shape: Shape, indices_shape: Shape) -> None:
    """Refuse dimension numbers, of a gather or a scatter, that contradict the shapes or themselves."""
    _, collapsed, indexed, operand_batching, indices_batching = numbers
    if not indices_shape or len(indexed) != indices_shape[-1]:
        raise ShapeError(
            f"{name}: the last axis of the indices, of shape {indices_shape}, is the index vector; it needs "
            f"{len(indexed)} components, one for each of the axes {indexed} that are indexed"
        )
    rank, batch = len(shape), len(indices_shape) - 1
    for axes, bound in (
        ((*collapsed, *operand_batching), rank), ((*indexed, *operand_batching), rank), (indices_batching, batch)
    ):  # fmt: skip
        if len(set(axes)) != len(axes) or any(not 0 <= a < bound for a in axes):
            raise ShapeError(f"{name}: the axes {axes} are not distinct, or not in range({bound}), in {numbers}")
    if [shape[d] for d in operand_batching] != [indices_shape[d] for d in indices_batching]:
        raise ShapeError(
            f"{name}: the batching axes {operand_batching} of the operand, of shape {shape}, and {indices_batching} of "
            f"the indices, of shape {indices_shape}, must be of the same sizes"
        )


def check_windows(what: str, axes: Shape, count: int, rank: int) -> None:
    """Refuse positions of the windows' axes that are not ``count`` increasing axes of a result of ``rank``."""
    if len(axes) != count or list(axes) != sorted(set(axes)) or any(not 0 <= a < rank for a in axes):
        raise ShapeError(f"{what} must be {count} increasing axes of a result with {rank} axes, got {axes}")


@gather_p.jvp
def _gather_jvp(primals: Any, tangents: Any, *, fill_value: Any, **params: Any) -> Any:
    x, indices = primals
    ans = gather_p.bind(x, indices, fill_value=fill_value, **params)
    t = tangents[0]
    return ans, ZERO if t is ZERO else gather_p.bind(t, indices, fill_value=0, **params)


@partial(gather_p.transpose, linear_in=(0,))
def _gather_transpose(
    ct: Any, x: LinearVar, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, fill_value: Any,
) -> Any:  # fmt: skip
    from pullback.primitives import scatter

    # A gather moves windows inside even if it was promised that there is no need; so must its transpose.
    drop = mode is GatherScatterMode.FILL_OR_DROP
    out = scatter.scatter_add(
        zeros(x.shape, ct.dtype),
        indices,
        ct,
        scatter.ScatterDimensionNumbers(*dimension_numbers),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode if drop else GatherScatterMode.CLIP,
    )
    return out, None


@gather_p.batch
def _gather_batch(
    axis: MappedAxis, args: Any, dims: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    **params: Any,
) -> Any:  # fmt: skip
    (x, indices), (dx, di) = args, dims
    numbers = batched_numbers(dimension_numbers, dx is not None, di is not None)
    if dx is not None:
        x = shapes.moveaxis(x, dx, 0)
        slice_sizes = (axis.size if di is None else min(axis.size, 1), *slice_sizes)
    if di is not None:
        indices = shapes.moveaxis(indices, di, 0)
        # What holds for the indices of one example need not hold for those of all, in one operand.
        params["indices_are_sorted"] = False
        params["unique_indices"] = params["unique_indices"] and dx is not None
    return gather_p.bind(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params), 0
