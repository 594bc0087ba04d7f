"""Sorting and searching along an axis in StableHLO.

The compiler sorts integers in their natural order several times as fast as by any other comparison, and one operand
faster than two. So a key of up to 32 bits, as an integer that orders the elements, becomes the upper half of a word,
and the element's position the lower half. Words are never equal, so the sort is stable; all operands are then gathered
by the positions. Longer keys, and several keys, are sorted by their least significant 32 bits first (a radix sort), or
by comparison where elements are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.hlo import indexing as hlo_indexing
from pullback.backends.hlo.builder import Builder, Value
from pullback.core import dtypes
from pullback.core.dims import any_symbolic

_INT8, _INT32, _INT64 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.int64)
_FLOAT32 = np.dtype(np.float32)

_MANY = {1: 1 << 9, 2: 1 << 16}
"""The least elements for a radix sort, by the number of 32-bit digits in a key; comparison compiles faster."""


def sort(hlo: Builder, operands: Sequence[Value], *, dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    """Sort all operands along an axis, by the first ``num_keys`` operands; NaN is the largest number.

    Args:
      hlo: the builder, whose current equation has results of the operands' shape.
      operands: the operands, of one shape.
      dimension: the axis.
      is_stable: whether equal elements stay in order.
      num_keys: how many operands are keys, the first the most significant.
    """
    key = operands[0]
    count = key.shape[dimension]
    if not any_symbolic(key.shape) and (count < 2 or 0 in key.shape):
        return list(operands)
    if len(operands) == 1 and not dtypes.is_inexact(key.dtype):
        return _sorted(hlo, operands, dimension, False, 1)
    keys = operands[:num_keys]
    many = _MANY.get(sum(_digit_count(x.dtype) for x in keys))
    if many is None or any_symbolic(key.shape) or math.prod(key.shape) < many or count >= 2**31:
        return _sorted(hlo, operands, dimension, is_stable, num_keys)
    digits = [digit for x in reversed(keys) for digit in _digits(hlo, x)]
    positions = _order(hlo, digits, dimension)
    return [take_along_axis(hlo, x, positions, dimension) for x in operands]


def _digit_count(dtype: np.dtype[Any]) -> int:
    return 2 * dtype.itemsize // 8 if dtypes.is_complex(dtype) else 1 if dtype.itemsize <= 4 else 2


def _digits(hlo: Builder, x: Value) -> list[Value]:
    """Convert elements to integers of the same order, and split these into digits of 32 bits for a radix sort.

    Returns:
      The signed digits of all elements, as arrays of int64, the least significant first.
    """
    if dtypes.is_complex(x.dtype):
        return [digit for component in reversed(_components(hlo, x)) for digit in _digits(hlo, component)]
    key = ordered(hlo, x)
    middle = hlo.splat(2**31, x.shape, _INT64)
    if key.dtype.itemsize < 8:
        wide = hlo.convert(key, _INT64)
        return [hlo.elementwise("stablehlo.subtract", wide, middle) if key.dtype == np.uint32 else wide]
    if key.dtype.kind == "u":  # inverting the highest bit makes unsigned order signed
        key = hlo.elementwise("stablehlo.xor", hlo.bitcast(key, x.shape, _INT64), hlo.splat(-(2**63), x.shape, _INT64))
    low = hlo.elementwise("stablehlo.and", key, hlo.splat(2**32 - 1, x.shape, _INT64))
    high = hlo.elementwise("stablehlo.shift_right_arithmetic", key, hlo.splat(32, x.shape, _INT64))
    return [hlo.elementwise("stablehlo.subtract", low, middle), high]


def _order(hlo: Builder, digits: Sequence[Value], dimension: int) -> Value:
    """Find the indices that sort elements along an axis (argsort), by radix sort.

    Args:
      hlo: the builder.
      digits: the digits of the elements, the least significant first, as returned by :func:`_digits`.
      dimension: the axis.
    """
    shape = digits[0].shape
    positions = hlo.iota(shape, dimension, _INT64)
    order: Value | None = None
    for digit in digits:
        upper = digit if order is None else take_along_axis(hlo, digit, order, dimension)
        upper = hlo.elementwise("stablehlo.shift_left", upper, hlo.splat(32, shape, _INT64))
        (words,) = _sorted(hlo, [hlo.elementwise("stablehlo.or", upper, positions)], dimension, False, 1)
        local = hlo.convert(words, _INT32)
        order = local if order is None else take_along_axis(hlo, order, local, dimension)
    assert order is not None
    return order


def ordered(hlo: Builder, x: Value, nan_last: bool = True) -> Value:
    """Map real numbers or booleans to integers of the same order.

    Args:
      hlo: the builder.
      x: the elements; -0 and 0 become the same integer.
      nan_last: whether NaN becomes the largest integer; otherwise it becomes the smallest.
    """
    if dtypes.is_bool(x.dtype):
        return hlo.convert(x, _INT8)
    if not dtypes.is_float(x.dtype):
        return hlo.at_least_one_byte(x)
    x = x if x.dtype.itemsize == 8 else hlo.convert(x, _FLOAT32)
    integer = _INT64 if x.dtype.itemsize == 8 else _INT32
    info = np.iinfo(integer)
    bits = hlo.bitcast(x, x.shape, integer)
    zero, least, most = (hlo.splat(n, x.shape, integer) for n in (0, info.min, info.max))
    # Negative numbers increase as their bits decrease; the bits of -0 are the least integer.
    mirrored = hlo.select(hlo.compare(bits, zero, "LT"), hlo.elementwise("stablehlo.subtract", least, bits), bits)
    return hlo.select(hlo.compare(x, x, "NE"), most if nan_last else least, mirrored)


def _sorted(hlo: Builder, operands: Sequence[Value], dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    """Sort all operands along an axis, by comparing the first ``num_keys`` operands, the first the most significant."""
    results = [(x.shape, x.dtype) for x in operands]

    def body(*pairs: Value) -> list[Value]:
        keys = [pair for i in range(num_keys) for pair in _comparable(hlo, pairs[2 * i], pairs[2 * i + 1])]
        below = less(hlo, *keys[-1])
        for a, b in reversed(keys[:-1]):
            tied = hlo.elementwise("stablehlo.and", _equal(hlo, a, b), below)
            below = hlo.elementwise("stablehlo.or", less(hlo, a, b), tied)
        return [below]

    region = hlo.region([((), x.dtype) for x in operands for _ in range(2)], body)
    attributes = f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}"
    return hlo.multi_result("stablehlo.sort", operands, results, attributes, [region])


def _comparable(hlo: Builder, a: Value, b: Value) -> list[tuple[Value, Value]]:
    """Split a comparison of two values into comparisons of real numbers, the most significant first.

    Returns:
      Pairs of values: the real parts and the imaginary parts of complex values, or the two real values.
    """
    return list(zip(_components(hlo, a), _components(hlo, b), strict=True))


def _components(hlo: Builder, x: Value) -> list[Value]:
    """The real part and the imaginary part of a complex value; for a real value, only the value."""
    if not dtypes.is_complex(x.dtype):
        return [x]
    component = np.dtype(f"f{x.dtype.itemsize // 2}")
    return [hlo.op(f"stablehlo.{name}", [x], x.shape, component) for name in ("real", "imag")]


def less(hlo: Builder, a: Value, b: Value) -> Value:
    """Whether ``a < b``, where NaN is above all numbers."""
    below = hlo.compare(a, b, "LT")
    if not dtypes.is_float(a.dtype):
        return below
    into_nan = hlo.elementwise("stablehlo.and", hlo.compare(a, a, "EQ"), hlo.compare(b, b, "NE"))
    return hlo.elementwise("stablehlo.or", below, into_nan)


def _equal(hlo: Builder, a: Value, b: Value) -> Value:
    """Whether ``a == b``, where NaN equals NaN."""
    same = hlo.compare(a, b, "EQ")
    if not dtypes.is_float(a.dtype):
        return same
    both_nan = hlo.elementwise("stablehlo.and", hlo.compare(a, a, "NE"), hlo.compare(b, b, "NE"))
    return hlo.elementwise("stablehlo.or", same, both_nan)


# Positions along an axis ---------------------------------------------------------------------------------------------


def take_along_axis(hlo: Builder, x: Value, indices: Value, axis: int) -> Value:
    """Gather the elements of ``x`` at ``indices`` along an axis, in the shape of the current equation's result.

    Indices that are out of range are clamped.
    """
    numbers, sizes, used = _along_axis(x.shape, indices.shape, axis)
    if 0 in hlo.result.shape:
        return hlo.splat(np.zeros((), x.dtype)[()], hlo.result.shape, x.dtype)
    indices = hlo.reshape(indices, (*(indices.shape[i] for i in used), 1))
    return hlo_indexing.gather(hlo, x, indices, numbers, sizes, None, False)


def add_along_axis(hlo: Builder, x: Value, indices: Value, axis: int, unique: bool) -> Value:
    """Add the elements of ``x`` along an axis to zeros, each at its index: the transpose of :func:`take_along_axis`.

    Args:
      hlo: the builder, whose current equation has the shape of the result.
      x: the elements.
      indices: their indices in the result along the axis.
      axis: the axis.
      unique: whether no index occurs twice. Otherwise narrow floats are accumulated in float32.
    """
    shape, dtype = hlo.result.shape, x.dtype
    carried = dtype if unique or not dtypes.is_float(dtype) or dtype.itemsize >= 4 else _FLOAT32
    zeros = hlo.splat(0, shape, carried)
    numbers, sizes, used = _along_axis(shape, indices.shape, axis)
    updates = hlo.broadcast(hlo.convert(x, carried), (*shape[:axis], indices.shape[axis], *shape[axis + 1 :]))
    indices = hlo.reshape(indices, (*(indices.shape[i] for i in used), 1))

    def add(a: Value, b: Value) -> Value:
        return hlo.elementwise("stablehlo.add", a, b)

    out = hlo_indexing.scatter(
        hlo, zeros, indices, updates, numbers, sizes, add, clip=False, sorted_=False, unique=unique
    )
    return hlo.convert(out, dtype)


def _along_axis(
    x: tuple[int, ...], indices: tuple[int, ...], axis: int
) -> tuple[hlo_indexing.Numbers, tuple[int, ...], list[int]]:
    """Plan a gather along ``axis``, whose operand and indices broadcast along all other axes.

    Where ``indices`` has size 1 along another axis, a window contains the whole of this axis, and the axis is removed
    from the indices.

    Args:
      x: the shape of the operand.
      indices: the shape of the indices.
      axis: the axis.

    Returns:
      The dimension numbers of the gather, the sizes of the windows, and the axes of the indices that remain.
    """
    others = [i for i in range(len(x)) if i != axis]
    full = [i for i in others if indices[i] == 1]
    used = [i for i in range(len(x)) if i not in full]
    shared = [i for i in others if i not in full and x[i] != 1]
    collapsed = [i for i in range(len(x)) if i not in full and i not in shared]
    numbers = (tuple(full), tuple(collapsed), (axis,), tuple(shared), tuple(used.index(i) for i in shared))
    return numbers, tuple(n if i in full else 1 for i, n in enumerate(x)), used


# Searching -----------------------------------------------------------------------------------------------------------


def searchsorted(hlo: Builder, x: Value, values: Value, side: str) -> Value:
    """Find where each value belongs in the sorted elements of ``x`` along the last axis, by binary search.

    Args:
      hlo: the builder.
      x: the sorted elements.
      values: the values, along the last axis; other axes are those of ``x``.
      side: ``left`` to count, for each value, the elements below it; ``right`` to count the elements not above it.

    Returns:
      The counts, as int32.
    """
    shape, count = values.shape, x.shape[-1]
    zero = hlo.splat(0, shape, _INT32)
    if count == 0 or 0 in shape:
        return zero
    size = hlo.splat(count, shape, _INT32)
    types = [((), _INT32), (shape, _INT32), (x.shape, x.dtype), (shape, values.dtype)]

    def body(step: Value, found: Value, x: Value, values: Value) -> list[Value]:
        candidate = hlo.elementwise("stablehlo.add", found, hlo.broadcast(step, shape))
        last = hlo.elementwise("stablehlo.subtract", candidate, hlo.splat(1, shape, _INT32))
        probe = take_along_axis(hlo, x, last, x.ndim - 1)
        counted = _precedes(hlo, probe, values, side)
        counted = hlo.elementwise("stablehlo.and", counted, hlo.compare(candidate, size, "LE"))
        half = hlo.elementwise("stablehlo.shift_right_logical", step, hlo.number(1, _INT32))
        return [half, hlo.select(counted, candidate, found), x, values]

    first = hlo.number(1 << (count.bit_length() - 1), _INT32)
    going = hlo.region(types, lambda step, *_: [hlo.compare(step, hlo.number(0, _INT32), "GT")])
    return hlo.multi_result("stablehlo.while", [first, zero, x, values], types, "", [going, hlo.region(types, body)])[1]


def _precedes(hlo: Builder, probe: Value, values: Value, side: str) -> Value:
    """Whether each element of ``probe`` is below the value at the same index, or not above it.

    Args:
      hlo: the builder.
      probe: the elements.
      values: the values.
      side: ``left`` for "below", ``right`` for "not above".
    """
    pairs = _comparable(hlo, probe, values)
    below = less(hlo, *pairs[-1]) if side == "left" else _not_above(hlo, *pairs[-1])
    for a, b in reversed(pairs[:-1]):
        below = hlo.elementwise(
            "stablehlo.or", less(hlo, a, b), hlo.elementwise("stablehlo.and", _equal(hlo, a, b), below)
        )
    return below


def _not_above(hlo: Builder, a: Value, b: Value) -> Value:
    return hlo.elementwise("stablehlo.not", less(hlo, b, a))
