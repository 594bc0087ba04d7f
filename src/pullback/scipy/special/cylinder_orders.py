"""Functions of the parabolic cylinder for derivatives by the order, of any order, in forward mode.

For positive x the function U is an integral (DLMF 12.5.1) about the largest value of its integrand, for orders of at
least 2; others follow by the recurrence in the order (12.8.1), downwards, which is stable. The functions V and W are
Taylor polynomials of their differential equation, in steps from 0: V grows faster than any other solution. Negative x
follow by connection formulas (12.2.15 and 12.2.16).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.control import loops
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.special import complex_gamma
from pullback.scipy.special.bessel_orders import _between, _cos_pi, _exp_less, _full, _sin_pi, _sums, _times
from pullback.scipy.special.composed_functions import rgamma
from pullback.scipy.special.differentiated import by_forward_mode

from pullback.primitives.formulas import (  # isort: skip
    complex, exp, expm1, floor, formula, lgamma, lifted, log, log1p, maximum, minimum, real, sqrt, square,
    stop_gradient, where,
)  # fmt: skip

while_loop, reduce_max = lifted(loops.while_loop), lifted(reductions.reduce_max)
expand_dims = lifted(shapes.expand_dims)
_rgamma = lifted(rgamma)
_loggamma = lifted(lambda z: complex_gamma.loggamma_p.bind(z, orders=(0,)))

_BELOW = 38.0  # exp(-38) is below the rounding error
_LEAST = 2.0
"""The least order of the integral, whose integrand falls slowly towards minus infinity for smaller ones."""
_LARGEST, _FARTHEST = 2000.0, 60.0
"""The largest size of an order, and of x: beyond, the functions overflow or vanish, or SciPy has no values either."""
_FOR_W = 5.0
"""The largest size of an order and of x for which SciPy has values of W."""
Both = tuple[Any, Any]
"""A function and its derivative by x."""


def _stack(arrays: Any) -> Any:
    return lifted(slicing.concatenate)([expand_dims(x, (0,)) for x in arrays], 0)


def _unstack(array: Any) -> list[Any]:
    return lifted(lambda x: tuple(slicing.unstack(x, 0)))(array)


def _largest(x: Any) -> Any:
    return reduce_max(x, tuple(range(len(x.shape))))


def _integral(a: Any, x: Any) -> Any:
    """Evaluate U(a, x) for an order of at least 2 and x >= 0.

    It is ``exp(-x**2 / 4) / Γ(a + 1/2)`` times the integral of ``t**(a - 1/2) exp(-t**2 / 2 - x t)``. With the largest
    value at s, t is ``s exp(y)``.
    """
    fixed = stop_gradient(a)
    power = fixed + 0.5
    s = 2 * power / (x + sqrt(square(x) + 4 * power))
    slow, fast = x * s, square(s) * 0.5
    size = slow + 4 * fast  # the second derivative of the exponent at its largest value
    c = _BELOW / size
    right = sqrt(2 * c)
    for _ in range(4):
        right = log1p(right + c)
    left = c + sqrt(c * (c + 2))

    def integrand(y: Any, change: Any, slow: Any, fast: Any, centre: Any) -> Any:
        distance = abs(y)
        fallen = expm1(-distance)
        twice = fallen * (2 + fallen)
        down = fast * _exp_less(2 * distance, twice) + slow * _exp_less(distance, fallen)
        grown = minimum(distance, 20)
        once = expm1(grown)
        up = fast * _exp_more(2 * grown, once * (2 + once)) + slow * _exp_more(grown, once)
        return exp(change * (centre + y) - where(y < 0, down, up)), None

    ends = _between(-left, left * -0.25, _full(0, x), right)
    total, _ = _sums(integrand, *ends, a - fixed, slow, fast, log(s))
    growth = power * log(s) - fast - slow - square(x) * 0.25
    return total * exp(growth - lgamma(a + 0.5))


def _exp_more(size: Any, grown: Any) -> Any:
    """Return ``exp(size) - 1 - size`` of a positive ``size``, where ``grown`` is ``exp(size) - 1``."""
    near = size <= 0.5
    small = where(near, size, 0)
    total = _full(0, size)
    for k in range(14, 1, -1):
        total = (total + 1) * small * (1 / k)
    return where(near, total * small, grown - size)


def _u(a: Any, x: Any) -> Both:
    """Evaluate U(a, x) and its derivative by x for x >= 0, by the recurrence from orders of at least 2."""
    fixed = stop_gradient(a)
    count = maximum(floor(_LEAST + 1 - fixed), 0)
    start = a + count
    above, value = _integral(start + 1, x), _integral(start, x)

    @formula
    def body(carry: Any) -> Any:
        k, above, value = carry
        following = x * value + (start - k + 0.5) * above
        going = k < count
        return k + 1, where(going, value, above), where(going, following, value)

    most = _largest(count)
    first = shapes.full((), 0.0, x.dtype), above, value
    _, above, value = while_loop(formula(lambda carry: carry[0] < most), body, first)
    return value, -(x * value * 0.5 + (a + 0.5) * above)


_TERMS = 22


def _by_steps(a: Any, x: Any, value: Any, slope: Any, sign: int) -> Both:
    """Continue a solution of ``w'' = (a + sign x**2 / 4) w`` from 0 to x, by Taylor polynomials.

    Within a step the phase or growth is at most one.
    """
    turns = abs(x) * maximum(sqrt(square(x) * 0.25 + abs(stop_gradient(a))), 1)
    count = floor(_largest(turns)) + 1
    h = x / count
    square_h = square(h)

    @formula
    def body(carry: Any) -> Any:
        k, value, slope = carry
        at = h * k
        zeroth = square_h * (a + square(at) * (0.25 * sign))
        first, second = square_h * h * at * (0.5 * sign), square(square_h) * (0.25 * sign)
        terms = [value, slope * h]
        for n in range(_TERMS - 2):
            total = zeroth * terms[n]
            total = total + first * terms[n - 1] if n > 0 else total
            total = total + second * terms[n - 2] if n > 1 else total
            terms.append(total * (1 / ((n + 1) * (n + 2))))
        value, slope = terms[-1], terms[-1] * (_TERMS - 1)
        for n in range(_TERMS - 2, -1, -1):
            value = value + terms[n]
            slope = slope + terms[n] * n if n else slope
        return k + 1, value, slope / where(h == 0, 1, h)

    first = shapes.full((), 0.0, x.dtype), value, slope
    _, last, turned = while_loop(formula(lambda carry: carry[0] < count), body, first)
    return where(x == 0, value, last), where(x == 0, slope, turned)


def _v(a: Any, x: Any) -> Both:
    """Evaluate V(a, x) and its derivative by x for x >= 0, from its values at 0 (DLMF 12.2.8 and 12.2.9)."""
    half = a * 0.5
    b, c, d, e = _unstack(_rgamma(_stack([0.75 - half, 0.25 - half, 0.25 + half, 0.75 + half])))
    power = exp(a * (0.5 * math.log(2))) * math.pi
    value, slope = power * 2**0.25 * square(b) * d, power * 2**0.75 * square(c) * e
    return _by_steps(a, x, value, slope, 1)


def _within(a: Any, x: Any, most: float, farthest: float, of: Callable[[Any, Any], Both]) -> Both:
    """Evaluate functions where the order and x are of moderate size; elsewhere they are NaN."""
    fixed, given = stop_gradient(a), stop_gradient(x)
    inside = (abs(fixed) <= most) & (abs(given) <= farthest)
    value, slope = of(where(inside, a, 1), where(inside, given, 1))
    return where(inside, value, math.nan), where(inside, slope, math.nan)


def _d_both(v: Any, x: Any) -> Both:
    """Evaluate D of order v, and its derivative by x: U(a, x) with a = -v - 1/2."""

    def of(a: Any, x: Any) -> Both:
        size = abs(x)
        value, slope = _u(a, size)
        grown, rise = _v(a, where(x < 0, size, 1))
        sine, share = _sin_pi(a), _rgamma(a + 0.5) * math.pi
        left = _times(share, grown) - sine * value
        return where(x < 0, left, value), where(x < 0, sine * slope - _times(share, rise), slope)

    return _within(-0.5 - v, x, _LARGEST, _FARTHEST, of)


def _v_both(v: Any, x: Any) -> Both:
    """Evaluate V of order v, and its derivative by x: V(a, x) with a = -v - 1/2."""

    def of(a: Any, x: Any) -> Both:
        size = abs(x)
        value, slope = _v(a, size)
        fallen, fall = _u(a, where(x < 0, size, 1))
        sine, share = _sin_pi(a), _cos_pi(a) * _rgamma(0.5 - a)
        left = _times(share, fallen) + sine * value
        return where(x < 0, left, value), where(x < 0, -(_times(share, fall) + sine * slope), slope)

    return _within(-0.5 - v, x, _LARGEST, _FARTHEST, of)


def _w_both(a: Any, x: Any) -> Both:
    """Evaluate W(a, x) and its derivative by x, from its values at 0 (DLMF 12.14.2 and 12.14.3)."""

    def of(a: Any, x: Any) -> Both:
        half = a * 0.5
        low, high = (real(_loggamma(complex(_full(part, a), half))) for part in (0.25, 0.75))
        ratio = exp((low - high) * 0.5)
        return _by_steps(a, x, ratio * 2**-0.75, -(2**-0.25) / ratio, -1)

    return _within(a, x, _FOR_W, _FOR_W, of)


def _weber(name: str, both: Callable[[Any, Any], Both], sign: int, factor: int, shift: float) -> tuple[Any, Any]:
    """Declare a function and its derivative by x, differentiated by the order in forward mode.

    By x they are differentiated by their equation ``w'' = (factor v + shift + sign x**2 / 4) w``.
    """
    zeroth, first = formula(lambda v, x: both(v, x)[0]), formula(lambda v, x: both(v, x)[1])

    def of_value(t: Any, v: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
        return ops.mul(t, slope_p.bind(v, x, orders=orders))

    def of_slope(t: Any, v: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
        quarter = ops.mul(ops.mul(x, x), 0.25 * sign)
        of_order = ops.add(ops.mul(v, factor), shift)
        coefficient = ops.add(quarter, of_order)
        second = ops.mul(coefficient, value_p.bind(v, x, orders=orders))
        if orders[0]:
            lower = value_p.bind(v, x, orders=(orders[0] - 1, *orders[1:]))
            second = ops.add(second, ops.mul(lower, factor * orders[0]))
        return ops.mul(t, second)

    value_p: Primitive = by_forward_mode(f"{name}_by_order", zeroth, arity=2, integrals=True, slopes=(None, of_value))
    slope_p: Primitive = by_forward_mode(
        f"{name}_slope_by_order", first, arity=2, integrals=True, slopes=(None, of_slope)
    )
    return value_p, slope_p


pbdv_p, pbdv_slope_p = _weber("pbdv", _d_both, 1, -1, -0.5)
pbvv_p, pbvv_slope_p = _weber("pbvv", _v_both, 1, -1, -0.5)
pbwa_p, pbwa_slope_p = _weber("pbwa", _w_both, -1, 1, 0.0)
