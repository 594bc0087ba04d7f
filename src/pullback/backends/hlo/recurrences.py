"""Recurrences along an axis in StableHLO: cumulative operations, and linear recurrences.

On CPUs all except the shortest are loops over the elements. The compiler makes one function of a loop whose body
touches few bytes, so that a step costs a nanosecond or two; the usual alternatives, windows and trees, take two to
eight times as long from 100 elements on, longer to compile, and round in another order than the host. On other devices,
where each step would launch kernels, they are windows and trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.hlo.builder import Builder, Value, dense, integers
from pullback.core import dtypes
from pullback.core.dims import any_symbolic
from pullback.core.errors import UnsupportedExportError

DType = np.dtype[Any]
Operation = Callable[[Builder, Value, Value], Value]

LONG = 256
"""Sums of more elements than this are accumulated with twice the precision, as on the host."""
_DOUBLED = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}

_SHORT, _SMALL = 16, 4096
"""The most elements along the axis, and in the array, for windows, which are as fast as loops and compile faster.

Complex arrays use loops: windows multiply by the identity 1 + 0i, which makes NaN of infinite numbers.
"""


def carried_dtype(dtype: DType) -> DType:
    """The dtype in which elements of ``dtype`` are accumulated: float32 for narrower floats, else ``dtype``."""
    return np.dtype(np.float32) if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


# Cumulative operations -----------------------------------------------------------------------------------------------


def cumulate(
    hlo: Builder, x: Value, operation: Operation, start: Any, *, axis: int, reverse: bool, sums: bool
) -> Value:
    """Accumulate a binary operation along an axis, as ``cumsum`` does with addition.

    Args:
      hlo: the builder.
      x: the operand.
      operation: writes the binary operation on two values.
      start: the identity of the operation, in ``x``'s dtype.
      axis: the axis.
      reverse: whether to go from the last element to the first.
      sums: whether rounding errors of the operation add up. Long chains are then accumulated with twice the precision.
    """
    if 0 in x.shape or x.shape[axis] == 1:
        return x
    carried = carried_dtype(x.dtype)
    if any_symbolic(x.shape):
        raise UnsupportedExportError(
            f"export: cumulative operations cannot be exported for the symbolic shape {x.shape}; pass numbers as sizes"
        )
    short = x.shape[axis] <= _SHORT and math.prod(x.shape) <= _SMALL and not dtypes.is_complex(x.dtype)
    if short or hlo.module.platform != "cpu":
        wide = hlo.convert(x, carried)
        return hlo.convert(_windows(hlo, wide, operation, start, axis, reverse), x.dtype)
    if sums and x.shape[axis] > LONG:
        carried = _DOUBLED.get(x.dtype.char, carried)
    return _loop(hlo, [x], axis, reverse, carried, lambda v: v, lambda y, v: operation(hlo, y, v))


def _windows(hlo: Builder, x: Value, operation: Operation, start: Any, axis: int, reverse: bool) -> Value:
    """Accumulate a binary operation along an axis by one ``reduce_window``.

    The result at each index is the reduction, from ``start``, of all elements up to this index; if ``reverse``, of all
    elements from this index on.
    """
    ones, size = [1] * x.ndim, [1] * x.ndim
    padding = [[0, 0] for _ in x.shape]
    size[axis] = x.shape[axis]
    padding[axis] = [0, size[axis] - 1] if reverse else [size[axis] - 1, 0]
    attributes = (
        f"window_dimensions = {integers(size)}, window_strides = {integers(ones)}, "
        f"base_dilations = {integers(ones)}, window_dilations = {integers(ones)}, padding = {dense(padding)}"
    )
    scalar = ((), x.dtype)
    body = hlo.region([scalar, scalar], lambda a, b: [operation(hlo, a, b)])
    operands = [x, hlo.number(x.dtype.type(start), x.dtype)]
    return hlo.multi_result("stablehlo.reduce_window", operands, [(x.shape, x.dtype)], attributes, [body])[0]


# Linear recurrences --------------------------------------------------------------------------------------------------


def linear_recurrence(hlo: Builder, a: Value, b: Value, *, axis: int, reverse: bool) -> Value:
    """Solve ``y[0] = b[0]``, ``y[k] = a[k] y[k-1] + b[k]`` along an axis.

    Args:
      hlo: the builder.
      a, b: the coefficients, of one shape.
      axis: the axis.
      reverse: whether the recurrence goes from the last element to the first.
    """
    if 0 in b.shape or b.shape[axis] == 1:
        return b
    carried = carried_dtype(b.dtype)
    if hlo.module.platform != "cpu":
        return hlo.convert(_ladder(hlo, hlo.convert(a, carried), hlo.convert(b, carried), axis, reverse), b.dtype)

    def step(y: Value, a: Value, b: Value) -> Value:
        return hlo.elementwise("stablehlo.add", hlo.elementwise("stablehlo.multiply", a, y), b)

    return _loop(hlo, [a, b], axis, reverse, carried, lambda a, b: b, step)


def _ladder(hlo: Builder, a: Value, b: Value, axis: int, reverse: bool) -> Value:
    """Solve ``y[k] = a[k] y[k-1] + b[k]`` along an axis, by doubling.

    Each element stands for a map ``y -> a y + b``. Step i composes the map of each element with the map of the element
    2**i before it; if ``reverse``, after it.

    Hillis and Steele, *Data parallel algorithms*, Communications of the ACM 29 (1986).
    """
    zero = hlo.splat(0, b.shape, b.dtype)
    distance = 1
    while distance < b.shape[axis]:
        earlier = _shifted(hlo, b, axis, -distance if reverse else distance)
        # The product of many factors may overflow while the value that it multiplies is zero: 0 * inf must be 0 here.
        carried = hlo.select(hlo.compare(earlier, zero, "EQ"), zero, hlo.elementwise("stablehlo.multiply", a, earlier))
        b = hlo.elementwise("stablehlo.add", carried, b)
        a = hlo.elementwise("stablehlo.multiply", a, _shifted(hlo, a, axis, -distance if reverse else distance))
        distance *= 2
    return b


def _shifted(hlo: Builder, x: Value, axis: int, shift: int) -> Value:
    """Shift ``x`` by ``shift`` elements along an axis, to larger indices if positive, and fill the gap with zeros."""
    low = [shift if i == axis else 0 for i in range(x.ndim)]
    attributes = (
        f"edge_padding_low = {integers(low)}, edge_padding_high = {integers([-n for n in low])}, "
        f"interior_padding = {integers([0] * x.ndim)}"
    )
    return hlo.op("stablehlo.pad", [x, hlo.number(0, x.dtype)], x.shape, x.dtype, attributes)


# Loops ---------------------------------------------------------------------------------------------------------------

_ROW = 128
"""The most bytes of a contiguous row that a step handles on its own; longer rows are handled with all axes before."""
_STEP, _UNROLLED = 64, 8
"""The most bytes of all operands, and the most rows, that one step of the loop handles."""


class _Recurrence(NamedTuple):
    """The plan of a loop that computes a recurrence over a reshaped array.

    A row is those elements of the array that one step of the recurrence computes together.

    Attributes:
      shape: the shape that the array is reshaped to.
      axis: the axis of that shape along which the loop goes.
      row: the shape of a row, and of the carry.
      length: the size of a row along the axis.
      rows: how many rows the body of the loop computes, unrolled.
      period: the length along the axis after which the recurrence starts anew.
    """

    shape: tuple[int, ...]
    axis: int
    row: tuple[int, ...]
    length: int
    rows: int
    period: int


def _walk(shape: tuple[int, ...], axis: int, itemsize: int, carried_itemsize: int, operands: int) -> _Recurrence:
    count, before, after = shape[axis], math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if after * carried_itemsize > _ROW:
        return _Recurrence((before, count, after), 1, (before, 1, after), 1, 1, count)
    most = min(_UNROLLED, max(1, _STEP // (after * itemsize * operands)))
    rows = max(k for k in range(1, most + 1) if count % k == 0)
    return _Recurrence((before * count * after,), 0, (after,), after, rows, count * after)


def _loop(
    hlo: Builder,
    operands: Sequence[Value],
    axis: int,
    reverse: bool,
    carried: DType,
    first: Callable[..., Value],
    step: Callable[..., Value],
) -> Value:
    """Write a loop for ``y[0] = first(x[0], ...)``, ``y[k] = step(y[k-1], x[k], ...)`` along an axis, and return ``y``.

    Args:
      hlo: the builder.
      operands: the arrays ``x, ...``, of one shape and dtype.
      axis: the axis.
      reverse: whether the recurrence goes from the last element to the first.
      carried: the dtype in which the loop carries ``y[k-1]``.
      first: takes the elements of each operand at the first index, and returns those of ``y``.
      step: takes the previous elements of ``y``, and those of each operand, and returns the elements of ``y``.
    """
    shape, dtype = operands[0].shape, operands[0].dtype
    walk = _walk(shape, axis, dtype.itemsize, carried.itemsize, len(operands))
    total, block = walk.shape[walk.axis], walk.length * walk.rows
    index = np.dtype(np.int32 if total < 2**31 - block else np.int64)
    sizes = [block if i == walk.axis else n for i, n in enumerate(walk.shape)]

    def row(x: Value, k: int) -> Value:
        if walk.rows == 1:
            return x
        return hlo.slice(x, [k * walk.length], [(k + 1) * walk.length])

    def body(i: Value, y: Value, *arrays: Value) -> list[Value]:
        *inputs, out = arrays
        position = hlo.elementwise("stablehlo.subtract", hlo.number(total - block, index), i) if reverse else i
        starts = [position if k == walk.axis else hlo.number(0, index) for k in range(len(sizes))]
        attributes = f"slice_sizes = {integers(sizes)}"
        blocks = [hlo.op("stablehlo.dynamic_slice", [x, *starts], tuple(sizes), dtype, attributes) for x in inputs]
        passed = hlo.elementwise("stablehlo.remainder", i, hlo.number(walk.period, index)) if total > walk.period else i
        begins = hlo.compare(passed, hlo.number(0, index), "EQ")
        results: list[Value] = []
        for k in reversed(range(walk.rows)) if reverse else range(walk.rows):
            elements = [hlo.convert(row(x, k), carried) for x in blocks]
            following = step(y, *elements)
            y = following if results else hlo.select(begins, first(*elements), following)
            results.append(hlo.convert(y, dtype))
        update = hlo.concatenate(results[::-1] if reverse else results, walk.axis) if walk.rows > 1 else results[0]
        out = hlo.op("stablehlo.dynamic_update_slice", [out, update, *starts], walk.shape, dtype)
        return [hlo.elementwise("stablehlo.add", i, hlo.number(block, index)), y, *inputs, out]

    array = (walk.shape, dtype)
    types = [((), index), (walk.row, carried), *[array] * len(operands), array]
    begin = [hlo.number(0, index), hlo.splat(0, walk.row, carried), *(hlo.reshape(x, walk.shape) for x in operands)]
    condition = hlo.region(types, lambda i, *_: [hlo.compare(i, hlo.number(total, index), "LT")])
    regions = [condition, hlo.region(types, body)]
    out = hlo.multi_result("stablehlo.while", [*begin, hlo.splat(0, *array)], types, "", regions)[-1]
    return hlo.reshape(out, shape)
