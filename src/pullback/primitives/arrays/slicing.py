"""Static slices, padding, concatenation, stacks, reversal and counting."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.host import moves
from pullback.core.array import ArrayImpl
from pullback.core.errors import AllocationError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.axis_maps import front, mapped_to_front, works_along
from pullback.primitives.checks import same_dtype
from pullback.primitives.elementwise import sub, where
from pullback.primitives.rules import axis_divided, axis_kept, jvp_linear, jvp_linear_in, stays
from pullback.primitives.sums import reduce_sum

_slice = builtins.slice

# Slices ------------------------------------------------------------------------------------------------------------


def slice(x: Any, start: Sequence[int], limit: Sequence[int], strides: Sequence[int] | None = None) -> Any:
    """Slice ``x`` from ``start`` to before ``limit`` along each axis, in steps of ``strides``."""
    steps = tuple(strides) if strides is not None else (1,) * len(x.shape)
    return slice_p.bind(x, start_indices=tuple(start), limit_indices=tuple(limit), strides=steps)


def slice_in_dim(x: Any, start: int, limit: int, axis: int, stride: int = 1) -> Any:
    """Slice ``x`` from ``start`` to before ``limit`` along one axis."""
    rank = len(x.shape)
    starts, limits, steps = [0] * rank, list(x.shape), [1] * rank
    starts[axis], limits[axis], steps[axis] = start, limit, stride
    return slice(x, starts, limits, steps)


slice_p = Primitive("slice", cost=Cost.LIGHT, moves=True)
slice_p.jvp_rule = jvp_linear(slice_p)
slice_p.lowering(
    lambda hlo, x, *, start_indices, limit_indices, strides: hlo.slice(x, start_indices, limit_indices, strides)
)


@slice_p.host
def _slice_host(x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape) -> Any:
    return x[tuple(map(_slice, start_indices, limit_indices, strides))]


@slice_p.abstract_eval
def _slice_abstract_eval(x: ShapedArray, *, start_indices: Shape, limit_indices: Shape, strides: Shape) -> ShapedArray:
    if not len(start_indices) == len(limit_indices) == len(strides) == x.ndim:
        raise ShapeError(
            f"slice of an array of shape {x.shape} needs {x.ndim} starts, limits and strides, got {start_indices}, "
            f"{limit_indices} and {strides}"
        )
    out = []
    for n, start, limit, step in zip(x.shape, start_indices, limit_indices, strides, strict=True):
        if not 0 <= start <= limit <= n or step < 1:
            raise ShapeError(
                f"slice of an array of shape {x.shape}: starts {start_indices}, limits {limit_indices} and strides "
                f"{strides} do not fit; they must satisfy 0 <= start <= limit <= size and stride >= 1"
            )
        out.append(-(-(limit - start) // step))
    return ShapedArray(tuple(out), x.dtype)


@slice_p.transpose
def _slice_transpose(ct: Any, x: LinearVar, *, start_indices: Shape, limit_indices: Shape, strides: Shape) -> Any:
    config = []
    for n, size, start, step in zip(x.shape, ct.shape, start_indices, strides, strict=True):
        reached = start + (size if step == 1 else 1 + step * (size - 1) if size else 0)
        config.append((start, n - reached, step - 1))
    return (pad(ct, 0, config),)


@slice_p.batch
def _slice_batch(
    axis: MappedAxis, args: Any, dims: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape
) -> Any:
    (x,), (d,) = args, dims

    def insert(values: Shape, value: int) -> Shape:
        return (*values[:d], value, *values[d:])

    return slice(x, insert(start_indices, 0), insert(limit_indices, x.shape[d]), insert(strides, 1)), d


@axis_kept(slice_p)
def _slice_keeps(
    axis: int, operand: int, x: Shape, *, start_indices: Shape, limit_indices: Shape, strides: Shape
) -> int | None:
    is_full = (start_indices[axis], limit_indices[axis], strides[axis]) == (0, x[axis], 1)
    return axis if is_full else None


axis_divided(slice_p)(stays)


# Padding -----------------------------------------------------------------------------------------------------------

PaddingConfig = tuple[tuple[int, int, int], ...]
"""For each axis the numbers of elements to insert before, after, and between; negative numbers remove elements."""


def pad(x: Any, value: Any, config: Sequence[tuple[int, int, int]]) -> Any:
    """Pad ``x`` with the scalar ``value``.

    ``config`` has three numbers for each axis: how many elements to insert before, after, and between the elements.
    """
    config = tuple(tuple(c) for c in config)  # type: ignore[misc]
    return x if not any(any(c) for c in config) else pad_p.bind(x, value, padding_config=config)


def _padded_shape(shape: Shape, config: PaddingConfig) -> Shape:
    return tuple(
        lo + hi + n + (max(n - 1, 0) * inner if inner else 0) for n, (lo, hi, inner) in zip(shape, config, strict=True)
    )


pad_p = Primitive("pad", cost=Cost.LIGHT, moves=True)
axis_kept(pad_p)(lambda axis, operand, *shapes, padding_config: None if operand or any(padding_config[axis]) else axis)
axis_divided(pad_p)(stays)


@pad_p.host
def _pad_host(x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
    shape = _padded_shape(x.shape, padding_config)
    sources, targets = [], []
    for n, size, (lo, _, inner) in zip(x.shape, shape, padding_config, strict=True):
        step = inner + 1
        first = max(0, -(lo // step))  # the first element at a nonnegative position
        stop = min(n, -((lo - size) // step))  # the first element at a position beyond the end
        if first >= stop:
            return np.full(shape, value, x.dtype)
        sources.append(_slice(first, stop))
        targets.append(_slice(lo + first * step, lo + (stop - 1) * step + 1, step))
    return moves.padded(x, value, shape, targets, sources)


@pad_p.abstract_eval
def _pad_abstract_eval(x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig) -> ShapedArray:
    dtype = same_dtype("pad", [x, value])
    if value.ndim:
        raise ShapeError(f"pad: the padding value must be a scalar, got shape {value.shape}")
    if len(padding_config) != x.ndim or any(inner < 0 for _, _, inner in padding_config):
        raise ShapeError(
            f"pad of an array of shape {x.shape} needs {x.ndim} triples (low, high, interior) with interior >= 0, got "
            f"{padding_config}"
        )
    shape = _padded_shape(x.shape, padding_config)
    if any(n < 0 for n in shape):
        raise ShapeError(f"pad of an array of shape {x.shape} by {padding_config} would return the shape {shape}")
    return ShapedArray(shape, dtype)


@pad_p.jvp
def _pad_jvp(primals: Any, tangents: Any, *, padding_config: PaddingConfig) -> Any:
    x, value = primals
    tx, tv = tangents
    ans = pad_p.bind(x, value, padding_config=padding_config)
    tx = shapes.zeros_like(x) if tx is ZERO else tx
    return ans, pad_p.bind(tx, 0 if tv is ZERO else tv, padding_config=padding_config)


@pad_p.transpose
def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:

    cut = pad(ct, 0, [(-lo, -hi, 0) for lo, hi, _ in padding_config])
    by_x = slice(cut, (0,) * len(cut.shape), cut.shape, [inner + 1 for _, _, inner in padding_config])
    axes = range(len(ct.shape))
    by_value = sub(reduce_sum(ct, axes), reduce_sum(by_x, axes)) if type(value) is LinearVar else None
    return by_x if type(x) is LinearVar else None, by_value


@pad_p.batch
def _pad_batch(axis: MappedAxis, args: Any, dims: Any, *, padding_config: PaddingConfig) -> Any:

    (x, value), (dx, dv) = args, dims
    if dx is None:
        x, dx = front(x, None, axis), 0
    config = (*padding_config[:dx], (0, 0, 0), *padding_config[dx:])
    if dv is None:
        return pad(x, value, config), dx
    mask = pad(shapes.full(x.shape, True, np.dtype(bool)), False, config)
    padded = pad(x, 0, config)
    fill = shapes.broadcast_in_dim(value, padded.shape, (dx,))
    return where(mask, padded, fill), dx


@pad_p.lowering
def _pad_lowering(hlo: Any, x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
    from pullback.backends.hlo import padding as hlo_padding

    return hlo_padding.pad(hlo, x, value, padding_config, hlo.result.shape)


# Concatenation -----------------------------------------------------------------------------------------------------


def concatenate(xs: Sequence[Any], axis: int) -> Any:
    """Concatenate arrays along an axis."""
    return xs[0] if len(xs) == 1 else concatenate_p.bind(*xs, dimension=axis)


concatenate_p = Primitive("concatenate", cost=Cost.LIGHT, moves=True)
concatenate_p.jvp_rule = jvp_linear_in(concatenate_p)
concatenate_p.host_rule = lambda *xs, dimension: moves.concatenated(xs, dimension)
concatenate_p.lowering(lambda hlo, *xs, dimension: hlo.concatenate(xs, dimension))


@concatenate_p.abstract_eval
def _concatenate_abstract_eval(*xs: ShapedArray, dimension: int) -> ShapedArray:
    dtype = same_dtype("concatenate", xs)
    first = xs[0].shape
    rest = first[:dimension] + first[dimension + 1 :]
    if not 0 <= dimension < len(first):
        raise ShapeError(f"concatenate: axis {dimension} does not exist in shape {first}")
    for x in xs:
        if x.ndim != len(first) or x.shape[:dimension] + x.shape[dimension + 1 :] != rest:
            shown = ", ".join(str(x.shape) for x in xs)
            raise ShapeError(f"concatenate: shapes must agree in every axis but axis {dimension}, got {shown}")
    return ShapedArray((*first[:dimension], sum(x.shape[dimension] for x in xs), *first[dimension + 1 :]), dtype)


works_along(concatenate_p, "dimension")
axis_divided(concatenate_p)(stays)


@concatenate_p.transpose
def _concatenate_transpose(ct: Any, *xs: Any, dimension: int) -> Any:
    cts = []
    start = 0
    for x in xs:
        stop = start + x.shape[dimension]
        cts.append(slice_in_dim(ct, start, stop, dimension) if type(x) is LinearVar else None)
        start = stop
    return cts


# Stacks ------------------------------------------------------------------------------------------------------------


def stack(xs: Sequence[Any], axis: int) -> Any:
    """Stack arrays of the same shape along a new axis."""
    return stack_p.bind(*xs, dimension=axis)


def unstack(x: Any, axis: int) -> list[Any]:
    """Split ``x`` along an axis into arrays without that axis."""
    return unstack_p.bind(x, dimension=axis)  # type: ignore[no-any-return]


stack_p = Primitive("stack", cost=Cost.SIMPLE, moves=True)
stack_p.jvp_rule = jvp_linear_in(stack_p)
unstack_p = Primitive("unstack", multiple_results=True, cost=Cost.SIMPLE, moves=True)
axis_kept(stack_p)(lambda axis, operand, *xs, dimension: axis + (axis >= dimension))
axis_kept(unstack_p)(lambda axis, operand, x, *, dimension: None if axis == dimension else axis - (axis > dimension))


@stack_p.host
def _stack_host(*xs: Any, dimension: int) -> Any:
    first = xs[0]
    if first.ndim == 0 and first.dtype.kind != "V":
        return np.array(xs, first.dtype)
    return moves.concatenated([x.reshape(*x.shape[:dimension], 1, *x.shape[dimension:]) for x in xs], dimension)


@stack_p.abstract_eval
def _stack_abstract_eval(*xs: ShapedArray, dimension: int) -> ShapedArray:
    dtype = same_dtype("stack", xs)
    shape = xs[0].shape
    if any(x.shape != shape for x in xs):
        raise ShapeError(f"stack: the arrays must have one shape, got {', '.join(str(x.shape) for x in xs)}")
    if not 0 <= dimension <= len(shape):
        raise ShapeError(f"stack: a new axis {dimension} is out of bounds for shape {shape}")
    return ShapedArray((*shape[:dimension], len(xs), *shape[dimension:]), dtype)


@stack_p.transpose
def _stack_transpose(ct: Any, *xs: Any, dimension: int) -> Any:
    return [part if type(x) is LinearVar else None for part, x in zip(unstack(ct, dimension), xs, strict=True)]


@stack_p.batch
def _stack_batch(axis: MappedAxis, args: Any, dims: Any, *, dimension: int) -> Any:
    return stack(mapped_to_front(axis, args, dims), dimension + 1), 0


@stack_p.lowering
def _stack_lowering(hlo: Any, *xs: Any, dimension: int) -> Any:
    shape = (*xs[0].shape[:dimension], 1, *xs[0].shape[dimension:])
    return hlo.concatenate([hlo.reshape(x, shape) if x.shape else hlo.broadcast(x, shape) for x in xs], dimension)


@unstack_p.host
def _unstack_host(x: Any, *, dimension: int) -> list[Any]:
    return list(x) if dimension == 0 else list(np.moveaxis(x, dimension, 0))


@unstack_p.abstract_eval
def _unstack_abstract_eval(x: ShapedArray, *, dimension: int) -> list[ShapedArray]:
    if not 0 <= dimension < x.ndim:
        raise ShapeError(f"unstack: axis {dimension} does not exist in shape {x.shape}")
    shape = x.shape[:dimension] + x.shape[dimension + 1 :]
    return [ShapedArray(shape, x.dtype) for _ in range(x.shape[dimension])]


unstack_p.jvp_rule = jvp_linear(unstack_p)


@unstack_p.transpose
def _unstack_transpose(cts: Any, x: LinearVar, *, dimension: int) -> Any:
    zero = None
    instantiated = []
    for ct in cts:
        if ct is ZERO:
            zero = shapes.full(x.shape[:dimension] + x.shape[dimension + 1 :], 0, x.dtype) if zero is None else zero
            ct = zero
        instantiated.append(ct)
    return (stack(instantiated, dimension),)


@unstack_p.batch
def _unstack_batch(axis: MappedAxis, args: Any, dims: Any, *, dimension: int) -> Any:
    (d,) = dims
    shifted = dimension + (dimension >= d)
    outs = unstack(args[0], shifted)
    return outs, [d - (shifted < d)] * len(outs)


@unstack_p.lowering
def _unstack_lowering(hlo: Any, x: Any, *, dimension: int) -> list[Any]:
    slices = []
    for i in range(x.shape[dimension]):
        start, limit = [0] * x.ndim, list(x.shape)
        start[dimension], limit[dimension] = i, i + 1
        slices.append(hlo.reshape(hlo.slice(x, start, limit), hlo.result.shape))
    return slices


# Reversal ----------------------------------------------------------------------------------------------------------


def rev(x: Any, axes: Sequence[int]) -> Any:
    """Reverse the order of the elements of ``x`` along ``axes``."""
    return rev_p.bind(x, dimensions=tuple(axes)) if axes else x


rev_p = Primitive("rev", cost=Cost.SIMPLE, moves=True)
works_along(rev_p, "dimensions", several=True)
axis_divided(rev_p)(stays)
rev_p.jvp_rule = jvp_linear(rev_p)
rev_p.transpose(lambda ct, x, *, dimensions: (rev(ct, dimensions),))
rev_p.lowering(
    lambda hlo, x, *, dimensions: hlo.op(
        "stablehlo.reverse", [x], x.shape, x.dtype, f"dimensions = {hlo.integers(dimensions)}"
    )
)


@rev_p.host
def _rev_host(x: Any, *, dimensions: Shape) -> Any:
    return x[tuple(_slice(None, None, -1 if i in dimensions else 1) for i in range(x.ndim))]


@rev_p.abstract_eval
def _rev_abstract_eval(x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
    if any(not 0 <= d < x.ndim for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ShapeError(f"rev: {dimensions} are not distinct axes of an array of shape {x.shape}")
    return ShapedArray(x.shape, x.dtype)


# Rolling -----------------------------------------------------------------------------------------------------------


def roll(x: Any, shift: int, axis: int) -> Any:
    """Move the elements of ``x`` along an axis by ``shift``; those beyond the end come first."""
    shift = shift % x.shape[axis] if x.shape[axis] else 0
    return roll_p.bind(x, shift=shift, dimension=axis) if shift else x


roll_p = Primitive("roll", cost=Cost.SIMPLE, moves=True)
works_along(roll_p, "dimension")
axis_divided(roll_p)(stays)
roll_p.jvp_rule = jvp_linear(roll_p)
roll_p.host_rule = lambda x, *, shift, dimension: moves.rolled(x, shift, dimension)
roll_p.transpose(lambda ct, x, *, shift, dimension: (roll(ct, -shift, dimension),))


@roll_p.abstract_eval
def _roll_abstract_eval(x: ShapedArray, *, shift: int, dimension: int) -> ShapedArray:
    if not 0 <= dimension < x.ndim or not 0 <= shift <= x.shape[dimension]:
        raise ShapeError(f"roll: no shift by {shift} along axis {dimension} of an array of shape {x.shape}")
    return ShapedArray(x.shape, x.dtype)


@roll_p.lowering
def _roll_lowering(hlo: Any, x: Any, *, shift: int, dimension: int) -> Any:
    low, high = [0] * x.ndim, list(x.shape)
    low[dimension] = high[dimension] = x.shape[dimension] - shift
    return hlo.concatenate([hlo.slice(x, low, x.shape), hlo.slice(x, [0] * x.ndim, high)], dimension)


# Counting ----------------------------------------------------------------------------------------------------------


def iota(dtype: Any, shape: Shape, dimension: int) -> Any:
    """An array of ``shape`` that counts 0, 1, 2, ... along the axis ``dimension``."""
    if state.trace.quick:
        try:
            return ArrayImpl(_iota_host(dtype=np.dtype(dtype), shape=tuple(shape), dimension=dimension))
        except (MemoryError, ValueError) as error:
            raise AllocationError(f"no memory for an array of shape {tuple(shape)}: {error}") from None
    return iota_p.bind(dtype=np.dtype(dtype), shape=tuple(shape), dimension=dimension)


iota_p = Primitive("iota", keeps_weak_type=False, cost=Cost.LIGHT)


@iota_p.host
def _iota_host(*, dtype: np.dtype[Any], shape: Shape, dimension: int) -> Any:
    n = shape[dimension]
    try:
        line = np.arange(n, dtype=np.int64 if dtype.kind in "Vc" else dtype).astype(dtype, copy=False)
    except ValueError as error:
        raise AllocationError(f"no memory for an array of shape {tuple(shape)}: {error}") from None
    if len(shape) == 1:
        return line
    line = line.reshape([n if i == dimension else 1 for i in range(len(shape))])
    return line if line.shape == shape else shapes.repeated(line, shape)


@iota_p.abstract_eval
def _iota_abstract_eval(*, dtype: np.dtype[Any], shape: Shape, dimension: int) -> ShapedArray:
    if not 0 <= dimension < len(shape):
        raise ShapeError(f"iota: axis {dimension} does not exist in shape {shape}")
    return ShapedArray(shape, dtype)


@iota_p.lowering
def _iota_lowering(hlo: Any, *, dtype: np.dtype[Any], shape: Shape, dimension: int) -> Any:
    if dtype.kind != "b":
        return hlo.iota(shape, dimension, dtype)
    byte = np.dtype(np.uint8)
    return hlo.compare(hlo.iota(shape, dimension, byte), hlo.splat(0, shape, byte), "NE")
