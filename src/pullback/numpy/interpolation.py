"""Interpolation between points, and unwrapping of periodic values."""

from __future__ import annotations

import math
from typing import Any

from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.numpy import logic, reductions, sorting, ufuncs
from pullback.numpy.creation import array
from pullback.numpy.promotion import axis_index, inexact_operand, inexact_operands, named, operand, promote_all
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing


@named
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The piecewise linear function through the points ``(xp, fp)``, at ``x``; differentiable in all three.

    Args:
      x: where to evaluate it.
      xp: the abscissae, a vector that increases (in any order with ``period``).
      fp: the ordinates, a vector of the same size.
      left: the value to the left of ``xp[0]``; ``fp[0]`` by default. ``"extrapolate"`` continues the first line.
      right: the value to the right of ``xp[-1]``; ``fp[-1]`` by default. ``"extrapolate"`` continues the last line.
      period: the period of the function, if it has one; ``left`` and ``right`` are then ignored.

    Returns:
      An array of the shape of ``x``, of floats or, with complex ``fp``, of complex numbers.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: ``xp`` and ``fp`` are not vectors of one size, or are empty (a TypeError and a ValueError).
      DtypeError: ``x`` or ``xp`` is complex (a TypeError).
      ArgumentError: ``left`` or ``right`` is another string (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.interp(0.25, jnp.array([0.0, 1.0]), jnp.array([0.0, 8.0])))
    2.0
    """
    for side, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ArgumentError(f"interp: {side} must be a number or 'extrapolate', got {value!r}")
    x, xp = inexact_operands("interp", x, _vector(xp))
    fp = inexact_operand("interp", _vector(fp))
    if len(xp.shape) != 1 or xp.shape != fp.shape or not xp.shape[0]:
        raise ShapeError(f"interp takes two non-empty vectors of one size, got shapes {xp.shape} and {fp.shape}")
    if dtypes.is_complex(x.dtype):
        raise DtypeError("interp takes real points, got complex ones")
    dtype, weak = dtypes.result_type(fp, x, xp, return_weak_type_flag=True)
    fp = ops.convert_element_type(fp, dtype, weak)
    if period is not None:
        x, xp, fp = _unrolled(x, xp, fp, period)
        left = right = None
    return _between(x, xp, fp, left, right)


def _vector(x: Any) -> Any:
    return array(x) if isinstance(x, (list, tuple)) else x


def _unrolled(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Map the arguments of a periodic interpolation into one period, so that ``interp`` needs no period.

    The points ``xp`` are sorted. The last point, one period earlier, is added before the first; the first point, one
    period later, is added after the last. Return the new ``x``, ``xp`` and ``fp``.
    """
    period = ops.abs(ops.convert_element_type(inexact_operand("interp", period), x.dtype))
    x, xp = ufuncs.remainder(x, period), ufuncs.remainder(xp, period)
    order = sorting.argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = slicing.concatenate([ops.sub(xp[-1:], period), xp, ops.add(xp[:1], period)], 0)
    return x, xp, slicing.concatenate([fp[-1:], fp, fp[:1]], 0)


def _between(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    last = xp.shape[0] - 1
    tiny = float(dtypes.finfo(x.dtype).tiny)
    point, points = _normal(x, tiny), _normal(xp, tiny)
    after = ops.clamp_p.bind(min(1, last), sorting.searchsorted(points, point, side="right"), last)
    before = ops.sub(after, 1) if last else after
    x0, f0 = xp[before], fp[before]
    width = ops.sub(xp[after], x0)
    flat = ops.lt(ops.abs(width), tiny)
    fraction = ops.div(ops.sub(x, x0), ops.where(flat, 1, width))
    out = ops.where(flat, f0, f0 + _as(fraction, f0) * (fp[after] - f0))
    for i, value, outside in ((0, left, ops.lt(point, points[0])), (-1, right, ops.gt(point, points[-1]))):
        if not isinstance(value, str):  # a string continues the line of the nearest interval
            end = fp[i] if value is None else _as(inexact_operand("interp", value), fp)
            out = ops.where(outside, end, out)
    return out


def _normal(x: Any, tiny: float) -> Any:
    """Replace subnormal numbers, whose modulus is less than ``tiny``, by 0.

    Compiled programs do this too. So eager and compiled calls choose the same interval.
    """
    return ops.where(ops.lt(ops.abs(x), tiny), 0, x)


def _as(x: Any, like: Any) -> Any:
    return ops.convert_element_type(x, like.dtype, x.weak_type)


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi) -> Array:
    """Add multiples of the period to ``p``, so that no two neighbours along an axis differ by more than half of it.

    Args:
      p: angles, for example. Integers with an integer period keep their dtype.
      discont: differences up to this size are kept too; half the period by default.
      axis: the axis.
      period: the period, a number; differentiable too.

    Returns:
      An array of the shape of ``p``.

    Raises:
      OperandError: ``p`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.unwrap(jnp.array([0.0, 3.0, 6.0, 1.0]), period=6.0))
    [0. 3. 6. 7.]
    """
    p, period = promote_all("unwrap", (p, period))
    if dtypes.is_bool(p.dtype):
        p, period = inexact_operands("unwrap", p, period)
    if dtypes.is_unsigned(p.dtype):  # whose differences may be negative
        signed = [ops.convert_element_type(x, dtypes.default_int()) for x in (p, period)]
        return ops.convert_element_type(unwrap(signed[0], discont, axis, signed[1]), p.dtype)
    i = axis_index(axis, len(p.shape), "unwrap")
    size = p.shape[i]
    if size < 2:
        return p
    steps = ops.sub(slicing.slice_in_dim(p, 1, size, i), slicing.slice_in_dim(p, 0, size - 1, i))
    integral = dtypes.is_integer(p.dtype)
    half = ufuncs.floor_divide(period, 2) if integral else ops.div(period, 2)
    wrapped = ops.sub(ufuncs.remainder(ops.add(steps, half), period), half)
    at_edge = ops.and_p.bind(ops.eq(wrapped, ops.neg(half)), ops.gt(steps, 0))
    if integral:
        at_edge = ops.and_p.bind(at_edge, ops.eq(ops.mul(half, 2), period))
    wrapped = ops.where(at_edge, half, wrapped)
    correction = ops.sub(wrapped, steps)
    if integral:
        small = logic.less(ops.mul(ops.abs(steps), 2), period if discont is None else ufuncs.multiply(discont, 2))
    else:
        limit = half if discont is None else _as(operand("unwrap", discont), steps)
        small = ops.lt(ops.abs(steps), limit)
    correction = ops.where(small, 0, correction)
    shifts = reductions.cumsum(correction, i)
    first = slicing.slice_in_dim(p, 0, 1, i)
    return slicing.concatenate([first, ops.add(slicing.slice_in_dim(p, 1, size, i), shifts)], i)


__all__ = ["interp", "unwrap"]
