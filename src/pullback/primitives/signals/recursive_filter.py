"""Recursive filters, as in ``scipy.signal.lfilter``: each element of the result depends on earlier results.

On the host it is SciPy's loop in C. When compiled, it is a loop whose body touches few bytes, which the compiler fuses
to one kernel. The derivatives are recursive filters too: of the tangent, and in reverse of the cotangent.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from pullback.core.errors import ShapeError
from pullback.core.interrupts import imported
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape, same_dtype
from pullback.primitives.masked import masked_by_amending
from pullback.primitives.reductions import cumsum, linear_recurrence, reduce_sum, shift
from pullback.primitives.sums import sum_to


def recursive_filter(a: Any, x: Any, reverse: bool = False) -> Any:
    """Return y with ``y[n] = x[n] - a[0] y[n-1] - a[1] y[n-2] - ...`` along the last axis.

    Elements of y before the first are zero. If ``reverse``, the filter runs from the last element to the first.

    Args:
      a: coefficients, (..., p), p at least 1.
      x: the signal, (..., n), of the same dtype; the leading axes broadcast against the leading axes of ``a``.
      reverse: whether to run backwards.
    """
    return recursive_filter_p.bind(a, x, reverse=reverse)


recursive_filter_p = Primitive("recursive_filter", keeps_weak_type=False, cost=Cost.SPECIAL)


def moving_sum(b: Any, x: Any, start: int = 0, reverse: bool = False) -> Any:
    """Return y with ``y[n] = b[0] x[n-start] + b[1] x[n-start-1] + ...`` along the last axis.

    Elements outside of ``x`` are zero. If ``reverse``, y is ``y[n] = b[0] x[n+start] + b[1] x[n+start+1] + ...``.
    """
    taps, last, n, rank = b.shape[-1], len(b.shape) - 1, x.shape[-1], len(x.shape)
    first = min(start, n)
    low, high = (-first, taps - 1 + first) if reverse else (taps - 1 + first, -first)
    padded = slicing.pad(x, 0, [*[(0, 0, 0)] * (rank - 1), (low, high, 0)])
    terms = []
    for k in range(taps):
        start_of_tap = k if reverse else taps - 1 - k
        shifted = slicing.slice_in_dim(padded, start_of_tap, start_of_tap + n, rank - 1)
        terms.append(ops.mul(slicing.slice_in_dim(b, k, k + 1, last), shifted))
    return reduce(ops.add, terms)


@recursive_filter_p.host
def _host(a: Any, x: Any, *, reverse: bool) -> Any:
    signal = imported("scipy.signal")
    shape = (*np.broadcast_shapes(a.shape[:-1], x.shape[:-1]), x.shape[-1])
    if math.prod(shape) == 0:
        return np.zeros(shape, x.dtype)
    samples = x[..., ::-1] if reverse else x
    one = np.ones(1, x.dtype)
    if a.ndim == 1 or math.prod(a.shape[:-1]) == 1:
        out = signal.lfilter(one, np.concatenate([one, a.reshape(-1)]), samples).reshape(shape)
    else:
        filters = np.broadcast_to(a, (*shape[:-1], a.shape[-1]))
        samples = np.broadcast_to(samples, shape)
        out = np.empty(shape, x.dtype)
        for i in np.ndindex(*shape[:-1]):
            out[i] = signal.lfilter(one, np.concatenate([one, filters[i]]), samples[i])
    return np.ascontiguousarray(out[..., ::-1]) if reverse else out


@recursive_filter_p.abstract_eval
def _abstract_eval(a: ShapedArray, x: ShapedArray, *, reverse: bool) -> ShapedArray:
    dtype = same_dtype("recursive_filter", [a, x])
    if not a.shape or not x.shape or a.shape[-1] < 1:
        raise ShapeError(f"recursive_filter: coefficients {a.shape} and a signal {x.shape} need an axis with elements")
    return ShapedArray((*broadcast_shape("recursive_filter", [a.shape[:-1], x.shape[:-1]]), x.shape[-1]), dtype)


@recursive_filter_p.jvp
def _jvp(primals: Any, tangents: Any, *, reverse: bool) -> Any:
    (a, x), (ta, tx) = primals, tangents
    y = recursive_filter(a, x, reverse)
    if ta is not ZERO:
        by_a = ops.neg(moving_sum(ta, y, 1, reverse))
        tx = by_a if tx is ZERO else ops.add(tx, by_a)
    return y, recursive_filter(a, tx, reverse)


@partial(recursive_filter_p.transpose, linear_in=(1,))
def _transpose(ct: Any, a: Any, x: LinearVar, *, reverse: bool) -> Any:
    return None, sum_to(recursive_filter(a, ct, not reverse), x)


def _signal_at_first(base: Primitive, out: Any, a: Any, x: Any, *, zeros: tuple[bool, ...], reverse: bool) -> Any:
    """Replace the results ``out`` of the filter by ``x`` at each position up to the first nonzero element of ``x``.

    So the results before this element are exactly zero, even if coefficients ``a`` are infinite or NaN. ``base`` and
    ``zeros`` are ignored. With ``reverse`` positions are counted from the end.
    """
    last = len(x.shape) - 1
    some = ops.convert_element_type(ops.ne_p.bind(x, 0), np.dtype(np.int32))
    return ops.where(ops.eq(shift(cumsum(some, last, reverse), last, 0, reverse), 0), x, out)


masked_recursive_filter_p = masked_by_amending(recursive_filter_p, _signal_at_first)


@recursive_filter_p.batch
def _batch(axis: MappedAxis, args: Any, dims: Any, *, reverse: bool) -> Any:
    rank = max(len(x.shape) - (d is not None) for x, d in zip(args, dims, strict=True))
    a, x = (x if d is None else shapes.front_aligned(x, d, rank) for x, d in zip(args, dims, strict=True))
    return recursive_filter(a, x, reverse), 0


# Compilation -------------------------------------------------------------------------------------------------------

_MOST_SEPARATE = 16
"""The most earlier results that the loop carries as separate values, so that a step is a few scalar operations."""


@recursive_filter_p.lowering
def _lowering(hlo: Any, a: Any, x: Any, *, reverse: bool) -> Any:
    shape, p = hlo.result.shape, a.shape[-1]
    if 0 in shape:
        return hlo.splat(0, shape, x.dtype)
    if p == 1:
        return hlo.inline(partial(_first_order, shape=shape, reverse=reverse), a, x)
    batch, n, last = math.prod(shape[:-1]), shape[-1], len(shape) - 1
    rows = hlo.reshape(hlo.transpose(hlo.broadcast(x, shape), (last, *range(last))), (n, batch))
    spread = hlo.reshape(hlo.transpose(_with_batch(hlo, a, (*shape[:-1], p)), (last, *range(last))), (p, batch))
    out = _loop(hlo, spread, rows, reverse)
    return hlo.transpose(hlo.reshape(out, (n, *shape[:-1])), (*range(1, last + 1), 0))


def _with_batch(hlo: Any, a: Any, shape: Shape) -> Any:
    return (
        hlo.broadcast_in_dim(a, shape, range(len(shape) - 1, len(shape)))
        if len(a.shape) == 1
        else (hlo.broadcast(a, shape))
    )


def _first_order(a: Any, x: Any, shape: Shape, reverse: bool) -> Any:
    wide = shapes.broadcast_to(x, shape)
    return linear_recurrence(ops.neg(shapes.broadcast_to(a, shape)), wide, len(shape) - 1, reverse)


def _loop(hlo: Any, a: Any, x: Any, reverse: bool) -> Any:
    """Emit the recursive filter as a loop over the first axis of ``x``, (n, batch); return the result, (n, batch).

    ``a`` holds the coefficients, (p, batch). With ``reverse`` the loop runs from the last element to the first.
    """
    (n, batch), p, dtype = x.shape, a.shape[0], x.dtype
    index, row = np.dtype(np.int64), (1, batch)
    separate = p <= _MOST_SEPARATE
    taps = [hlo.slice(a, (k, 0), (k + 1, batch)) for k in range(p)] if separate else [a]
    states = [(row, dtype)] * p if separate else [((p, batch), dtype)]

    def body(i: Any, out: Any, *before: Any) -> list[Any]:
        position = hlo.elementwise("stablehlo.subtract", hlo.number(n - 1, index), i) if reverse else i
        starts = [position, hlo.number(0, index)]
        y = hlo.op("stablehlo.dynamic_slice", [x, *starts], row, dtype, f"slice_sizes = array<i64: 1, {batch}>")
        if separate:
            for tap, value in zip(taps, before, strict=True):
                y = hlo.elementwise("stablehlo.subtract", y, hlo.elementwise("stablehlo.multiply", tap, value))
            after = [y, *before[:-1]]
        else:
            y = hlo.inline(_less_sum, y, taps[0], before[0])
            after = [hlo.concatenate([y, hlo.slice(before[0], (0, 0), (p - 1, batch))], 0)]
        out = hlo.op("stablehlo.dynamic_update_slice", [out, y, *starts], out.shape, dtype)
        return [hlo.elementwise("stablehlo.add", i, hlo.number(1, index)), out, *after]

    types = [((), index), ((n, batch), dtype), *states]
    going = hlo.region(types, lambda i, *_: [hlo.compare(i, hlo.number(n, index), "LT")])
    start = [hlo.number(0, index), hlo.splat(0, (n, batch), dtype), *(hlo.splat(0, *state) for state in states)]
    return hlo.multi_result("stablehlo.while", start, types, regions=[going, hlo.region(types, body)])[1]


def _less_sum(y: Any, a: Any, before: Any) -> Any:
    return ops.sub(y, shapes.reshape(reduce_sum(ops.mul(a, before), (0,)), y.shape))
