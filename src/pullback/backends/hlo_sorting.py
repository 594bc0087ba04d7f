"""Sorting and searching along an axis in StableHLO.

The compiler sorts integers in their own order several times as fast as anything in the order of a comparison that it is
given, and one operand faster than two. So a key of up to 32 bits, as an integer in the order of its elements, becomes
the upper half of a word that has the element's position in its lower half: words are never equal, all operands are then
taken by the positions, and the whole is stable. Where keys have more bits, or are several, they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends import hlo_indexing
from pullback.backends.hlo import Builder, Value
from pullback.core import dtypes

_INT32, _INT64, _FLOAT32 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32)


def sort(hlo: Builder, operands: Sequence[Value], *, dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    """All operands in the order of the first ``num_keys`` of them along an axis; NaN is the largest number.

    Args:
      hlo: the function that is being written; its results have the shape of the operands.
      operands: of one shape.
      dimension: the axis.
      is_stable: whether equal elements stay in order.
      num_keys: how many operands are compared, the first most significant.
    """
    key = operands[0]
    count = key.shape[dimension]
    if count < 2 or 0 in key.shape:
        return list(operands)
    if len(operands) == 1 and not dtypes.is_inexact(key.dtype):
        return _sorted(hlo, operands, dimension, False, 1)
    if num_keys == 1 and not dtypes.is_complex(key.dtype) and key.dtype.itemsize <= 4 and count < 2**31:
        positions = _order(hlo, key, dimension)
        return [take_along_axis(hlo, x, positions, dimension) for x in operands]
    return _sorted(hlo, operands, dimension, is_stable, num_keys)


def _order(hlo: Builder, key: Value, dimension: int) -> Value:
    """Where the elements are that come first, second, ... along an axis."""
    shape = key.shape
    upper = hlo.same("stablehlo.shift_left", _ranked(hlo, key), hlo.splat(32, shape, _INT64))
    words = hlo.same("stablehlo.or", upper, hlo.iota(shape, dimension, _INT64))
    return hlo.convert(_sorted(hlo, [words], dimension, False, 1)[0], _INT32)


def _ranked(hlo: Builder, x: Value) -> Value:
    """Numbers of 32 bits, as integers of 64, in the order of the elements."""
    if x.dtype == np.uint32:  # what the shift leaves of it would be negative
        return hlo.same("stablehlo.subtract", hlo.convert(x, _INT64), hlo.splat(2**31, x.shape, _INT64))
    if not dtypes.is_float(x.dtype):
        return hlo.convert(x, _INT64)
    x = hlo.convert(x, _FLOAT32)
    bits = hlo.bitcast(x, x.shape, _INT32)
    least, most = (hlo.splat(n, x.shape, _INT32) for n in (-(2**31), 2**31 - 1))
    # Negative numbers grow as their bits decrease; minus zero becomes zero.
    mirrored = hlo.same("stablehlo.subtract", least, bits)
    ordered = hlo.select(hlo.compare(bits, hlo.splat(0, x.shape, _INT32), "LT"), mirrored, bits)
    return hlo.convert(hlo.select(hlo.compare(x, x, "NE"), most, ordered), _INT64)


def _sorted(hlo: Builder, operands: Sequence[Value], dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    """All operands in the order of comparisons."""
    results = [(x.shape, x.dtype) for x in operands]

    def body(*pairs: Value) -> list[Value]:
        keys = [parts for i in range(num_keys) for parts in _comparable_parts(hlo, pairs[2 * i], pairs[2 * i + 1])]
        below = less(hlo, *keys[-1])
        for a, b in reversed(keys[:-1]):
            tied = hlo.same("stablehlo.and", _equal(hlo, a, b), below)
            below = hlo.same("stablehlo.or", less(hlo, a, b), tied)
        return [below]

    region = hlo.region([((), x.dtype) for x in operands for _ in range(2)], body)
    attributes = f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}"
    return hlo.many("stablehlo.sort", operands, results, attributes, [region])


def _comparable_parts(hlo: Builder, a: Value, b: Value) -> list[tuple[Value, Value]]:
    """The pairs that are compared one after another: real parts and imaginary parts."""
    if not dtypes.is_complex(a.dtype):
        return [(a, b)]
    part = np.dtype(f"f{a.dtype.itemsize // 2}")
    (ar, ai), (br, bi) = (
        [hlo.op(f"stablehlo.{name}", [x], x.shape, part) for name in ("real", "imag")] for x in (a, b)
    )
    return [(ar, br), (ai, bi)]


def less(hlo: Builder, a: Value, b: Value) -> Value:
    """Whether ``a < b``; all numbers are below NaN."""
    below = hlo.compare(a, b, "LT")
    if not dtypes.is_float(a.dtype):
        return below
    into_nan = hlo.same("stablehlo.and", hlo.compare(a, a, "EQ"), hlo.compare(b, b, "NE"))
    return hlo.same("stablehlo.or", below, into_nan)


def _equal(hlo: Builder, a: Value, b: Value) -> Value:
    """Whether ``a == b``, as NaN and NaN are."""
    same = hlo.compare(a, b, "EQ")
    if not dtypes.is_float(a.dtype):
        return same
    both_nan = hlo.same("stablehlo.and", hlo.compare(a, a, "NE"), hlo.compare(b, b, "NE"))
    return hlo.same("stablehlo.or", same, both_nan)


# Positions along an axis ---------------------------------------------------------------------------------------------


def take_along_axis(hlo: Builder, x: Value, indices: Value, axis: int) -> Value:
    """The elements of ``x`` at ``indices`` along an axis, in the shape of the result that is being written."""
    numbers, sizes, kept = _along_axis(x.shape, indices.shape, axis)
    if 0 in hlo.result.shape:
        return hlo.splat(np.zeros((), x.dtype)[()], hlo.result.shape, x.dtype)
    indices = hlo.reshape(indices, (*(indices.shape[i] for i in kept), 1))
    return hlo_indexing.gather(hlo, x, indices, numbers, sizes, None, False)


def add_along_axis(hlo: Builder, x: Value, indices: Value, axis: int, unique: bool) -> Value:
    """Zeros, in the shape of the result, to which the elements of ``x`` are added at ``indices`` along an axis."""
    shape, dtype = hlo.result.shape, x.dtype
    carried = dtype if unique or not dtypes.is_float(dtype) or dtype.itemsize >= 4 else _FLOAT32
    zeros = hlo.splat(0, shape, carried)
    numbers, sizes, kept = _along_axis(shape, indices.shape, axis)
    updates = hlo.spread(hlo.convert(x, carried), (*shape[:axis], indices.shape[axis], *shape[axis + 1 :]))
    indices = hlo.reshape(indices, (*(indices.shape[i] for i in kept), 1))

    def add(a: Value, b: Value) -> Value:
        return hlo.same("stablehlo.add", a, b)

    out = hlo_indexing.scatter(
        hlo, zeros, indices, updates, numbers, sizes, add, clip=False, sorted_=False, unique=unique
    )
    return hlo.convert(out, dtype)


def _along_axis(
    x: tuple[int, ...], indices: tuple[int, ...], axis: int
) -> tuple[hlo_indexing.Numbers, tuple[int, ...], list[int]]:
    """Dimension numbers of a gather, the sizes of its windows, and those axes of the indices that it looks at.

    Along an axis in which the indices have size one, windows are as wide as the operand; an axis in which the operand has
    size one is collapsed.
    """
    others = [i for i in range(len(x)) if i != axis]
    whole = [i for i in others if indices[i] == 1]
    kept = [i for i in range(len(x)) if i not in whole]
    shared = [i for i in others if i not in whole and x[i] != 1]
    collapsed = [i for i in range(len(x)) if i not in whole and i not in shared]
    numbers = (tuple(whole), tuple(collapsed), (axis,), tuple(shared), tuple(kept.index(i) for i in shared))
    return numbers, tuple(n if i in whole else 1 for i, n in enumerate(x)), kept


# Searching -----------------------------------------------------------------------------------------------------------


def searchsorted(hlo: Builder, x: Value, values: Value, side: str) -> Value:
    """How many elements of each row of ``x`` are below (``left``) or not above (``right``) the values of the same row.

    Halving: of 2**k elements that are next, all are counted if the last of them is.
    """
    shape, count = values.shape, x.shape[-1]
    zero = hlo.splat(0, shape, _INT32)
    if count == 0 or 0 in shape:
        return zero
    size = hlo.splat(count, shape, _INT32)
    types = [((), _INT32), (shape, _INT32), (x.shape, x.dtype), (shape, values.dtype)]

    def body(step: Value, found: Value, x: Value, values: Value) -> list[Value]:
        candidate = hlo.same("stablehlo.add", found, hlo.spread(step, shape))
        last = hlo.same("stablehlo.subtract", candidate, hlo.splat(1, shape, _INT32))
        probe = take_along_axis(hlo, x, last, x.ndim - 1)
        counted = _precedes(hlo, probe, values, side)
        counted = hlo.same("stablehlo.and", counted, hlo.compare(candidate, size, "LE"))
        half = hlo.same("stablehlo.shift_right_logical", step, hlo.number(1, _INT32))
        return [half, hlo.select(counted, candidate, found), x, values]

    first = hlo.number(1 << (count.bit_length() - 1), _INT32)
    going = hlo.region(types, lambda step, *_: [hlo.compare(step, hlo.number(0, _INT32), "GT")])
    return hlo.many("stablehlo.while", [first, zero, x, values], types, "", [going, hlo.region(types, body)])[1]


def _precedes(hlo: Builder, probe: Value, values: Value, side: str) -> Value:
    """Whether an element is counted for a value."""
    pairs = _comparable_parts(hlo, probe, values)
    below = less(hlo, *pairs[-1]) if side == "left" else _not_above(hlo, *pairs[-1])
    for a, b in reversed(pairs[:-1]):
        below = hlo.same("stablehlo.or", less(hlo, a, b), hlo.same("stablehlo.and", _equal(hlo, a, b), below))
    return below


def _not_above(hlo: Builder, a: Value, b: Value) -> Value:
    return hlo.same("stablehlo.not", less(hlo, b, a))
