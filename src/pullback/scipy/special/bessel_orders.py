"""Bessel functions of real order, with derivatives of any order by the order and by the variable.

Compiled they are integrals along paths of steepest descent, on which the integrand is positive and nothing cancels
(G. N. Watson, *A Treatise on the Theory of Bessel Functions*, 1922, chapter 8; Gil, Segura and Temme, *Numerical
Methods for Special Functions*, 2007, chapter 5); near zero those of the first kind are power series. Derivatives by the
order are taken under the integral: the path is the same for all of them. Those by the variable are differences of
neighbours (DLMF 10.6.1, 10.29.1).

Each formula is of an order and a variable that are not negative; the functions of negative orders follow by reflection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backends import host
from pullback.control.loops import while_loop
from pullback.core.array import ArrayImpl
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.elementwise import (
    abs,
    add,
    cos,
    div,
    eq,
    exp,
    gt,
    log,
    lt,
    mul,
    neg,
    pow,
    sin,
    sqrt,
    square,
    sub,
)
from pullback.primitives.gamma_functions import _gamma as gamma
from pullback.primitives.operands import stop_gradient
from pullback.primitives.quadrature import rule
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.slicing import concatenate
from pullback.scipy.special.bessel_series import by_equations
from pullback.scipy.special.differentiated import by_forward_mode

_asinh, _acosh, _atan2, _sinh, _cosh = (p.bind for p in (ops.asinh_p, ops.acosh_p, ops.atan2_p, ops.sinh_p, ops.cosh_p))
_maximum, _minimum = ops.max_p.bind, ops.min_p.bind
_and, _or, _ge = ops.and_p.bind, ops.or_p.bind, ops.ge_p.bind
_where = ops.where

_BELOW = 38.0
_LEAST = 2.3e-308
"""The smallest number that the compiler's programs do not take for zero."""


def _full(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, like.dtype)


Pair = tuple[Any, Any]


# Pieces of exponents, without cancellation ---------------------------------------------------------------------------


def _sinh_less(d: Any) -> Any:
    """sinh(d) - d."""
    near = lt(abs(d), 1)
    small = _where(near, d, 0)
    series = mul(
        mul(small, square(small)), ops.polynomial(square(small), [1 / math.factorial(k) for k in range(19, 2, -2)])
    )
    return _where(near, series, sub(_sinh(_where(near, 1, d)), _where(near, 1, d)))


def _less_sin(v: Any) -> Any:
    """v - sin(v)."""
    near = lt(abs(v), 1)
    small = _where(near, v, 0)
    terms = [(-1) ** ((k - 3) // 2) / math.factorial(k) for k in range(19, 2, -2)]
    return _where(near, mul(mul(small, square(small)), ops.polynomial(square(small), terms)), sub(v, sin(v)))


def _fall(d: Any, v: Any, even: Any, odd: Any) -> Any:
    """The real part of even (cosh(w) - 1) + odd (sinh(w) - w) at w = d + i v."""
    swing = mul(2, square(sin(mul(v, 0.5))))
    first = sub(mul(mul(2, square(_sinh(mul(d, 0.5)))), cos(v)), swing)
    second = sub(mul(_sinh_less(d), cos(v)), mul(d, swing))
    return add(mul(even, first), mul(odd, second))


def _acosh1p(x: Any) -> Any:
    """acosh(1 + x)."""
    return mul(2, _asinh(sqrt(mul(x, 0.5))))


def _sums(integrand: Callable[..., Pair], low: Any, high: Any, *operands: Any) -> Pair:
    """The integrals of two functions, which are computed together, over panels, whose ends are along a last axis."""
    rank = len(operands[0].shape)
    nodes, weights = rule()
    wide = [shapes.expand_dims(x, (rank, rank + 1)) for x in operands]
    low, high = shapes.expand_dims(low, (rank + 1,)), shapes.expand_dims(high, (rank + 1,))
    width = sub(high, low)
    first, second = integrand(add(low, mul(width, nodes)), *wide)
    scale = mul(width, weights)
    total = reduce_sum(ops.complex(mul(first, scale), mul(second, scale)), (rank, rank + 1))
    return ops.real(total), ops.imag(total)


def _between(*breaks: Any) -> Pair:
    """The panels between points that follow each other."""
    axis = len(breaks[-1].shape)
    columns = [shapes.expand_dims(v, (axis,)) for v in breaks]
    return concatenate(columns[:-1], axis), concatenate(columns[1:], axis)


_WIDTHS = (0.0, 8.0, 24.0, 60.0, 150.0, 350.0, math.inf)


def _panels(high: Any) -> Pair:
    """The interval from zero in parts, each twice as long as the one before, from its end.

    There the integrand falls like exp(-exp(y)), and towards zero it is nearly exponential.
    """
    near, far = (ArrayImpl(np.array(w)) for w in (_WIDTHS[:-1], _WIDTHS[1:]))
    wide = shapes.expand_dims(high, (len(high.shape),))
    return _maximum(sub(wide, far), 0), _maximum(sub(wide, near), 0)


# The modified functions ----------------------------------------------------------------------------------------------


def _kve(nu: Any, x: Any) -> Any:
    """exp(x) K: the integral of exp(-x (cosh(t) - 1)) cosh(nu t) from 0 (DLMF 10.32.9).

    Of orders from 2 on it is half that of exp(nu t - x (cosh(t) - 1)) over all t, about its largest value.
    """
    fixed = stop_gradient(nu)
    safe = _minimum(_maximum(stop_gradient(x), _LEAST), 1e290)
    high = _ge(fixed, 2)
    below = add(mul(_minimum(fixed, 2), add(_reach(_full(_BELOW, x), safe), 4)), _BELOW)
    end = _where(lt(safe, 1e-3), add(_reach(below, safe), 0.01), _acosh1p(div(below, _maximum(safe, 1e-3))))

    def whole(t: Any, nu: Any, x: Any) -> Pair:
        value = exp(mul(mul(x, -2), square(_sinh(mul(t, 0.5)))))
        return mul(value, _cosh(mul(nu, t))), mul(t, 0)

    low, _ = _sums(whole, *_panels(end), _where(high, 1, nu), safe)
    value = _where(high, _kve_about_largest(_where(high, nu, 2), _maximum(safe, 1e-160)), low)
    return _where(eq(x, 0), math.inf, _where(_ge(x, 0), value, math.nan))


def _kve_about_largest(nu: Any, x: Any) -> Any:
    fixed = stop_gradient(nu)
    first = div(fixed, x)
    centre, size = _asinh(first), ops.hypot_p.bind(x, fixed)
    excess = div(square(x), add(size, fixed))  # size - nu
    c = div(_BELOW, fixed)
    left = _minimum(mul(add(c, sqrt(mul(c, add(c, 8)))), 0.5), _acosh1p(div(_BELOW, excess)))

    def integrand(y: Any, nu: Any, fixed: Any, excess: Any, centre: Any) -> Pair:
        # size (cosh(y) - 1) + nu (sinh(y) - y): of negative y as (size - nu) (cosh(y) - 1) + nu (exp(y) - 1 - y).
        depth = mul(2, square(_sinh(mul(y, 0.5))))
        tail = mul(fixed, _where(lt(y, 0), _exp_less(neg(abs(y))), add(depth, _sinh_less(_maximum(y, 0)))))
        value = exp(neg(add(mul(excess, depth), tail)))
        return mul(value, exp(mul(sub(nu, fixed), add(centre, y)))), mul(y, 0)

    ends = _between(neg(left), mul(left, -0.25), _full(0, x), _acosh1p(div(_BELOW, size)))
    total, _ = _sums(integrand, *ends, nu, fixed, excess, centre)
    growth = sub(mul(fixed, centre), mul(fixed, div(fixed, add(size, x))))
    half = exp(mul(growth, 0.5))
    return mul(mul(mul(total, 0.5), half), half)


def _exp_less(y: Any) -> Any:
    """exp(y) - 1 - y of numbers that are not positive."""
    near = _ge(y, -0.5)
    small = _where(near, y, 0)
    series = mul(square(small), ops.polynomial(small, [1 / math.factorial(k) for k in range(16, 1, -1)]))
    return _where(near, series, sub(ops.expm1_p.bind(y), y))


_SERIES = 48.0


def _power_series(nu: Any, x: Any, sign: int) -> Any:
    """(x / 2)**nu / Γ(nu + 1) times the sum of (± x² / 4)**k / k! / (nu + 1)_k, DLMF 10.2.2 and 10.25.2."""
    quarter = mul(square(x), 0.25 * sign)

    def body(carry: Any) -> Any:
        k, total = carry
        return sub(k, 1), add(1, mul(div(quarter, mul(add(nu, k), k)), total))

    start = (shapes.full((), _SERIES, x.dtype), _full(1, x))
    _, total = while_loop(lambda carry: gt(carry[0], 0), body, start)
    safe = _where(eq(x, 0), 1, x)
    few = lt(stop_gradient(nu), 140)
    low = _where(few, nu, 1)
    direct = div(pow(mul(safe, 0.5), low), gamma_of_larger(low))
    distant = exp(sub(mul(nu, log(mul(safe, 0.5))), ops.lgamma_p.bind(add(nu, 1))))
    first = _where(few, direct, distant)
    at_zero = _where(eq(nu, 0), _full(1, x), 0)
    return mul(_where(eq(x, 0), at_zero, first), total)


def gamma_of_larger(nu: Any) -> Any:
    """Γ(nu + 1), which is differentiated as exp(lgamma)."""
    fixed = stop_gradient(nu)
    value = gamma(add(fixed, 1))
    rest = sub(ops.lgamma_p.bind(add(nu, 1)), ops.lgamma_p.bind(add(fixed, 1)))
    return mul(value, exp(rest))


def _ive(nu: Any, x: Any) -> Any:
    """exp(-x) I: up to 13 by its power series, beyond along sinh(u) = nu v / (x sin(v)), up from the saddle."""
    near = lt(stop_gradient(x), 13)
    series = mul(_power_series(nu, _where(near, x, 1), 1), exp(neg(_where(near, x, 1))))
    far = _minimum(_where(near, 20, stop_gradient(x)), 1e290)
    fixed = stop_gradient(nu)
    first = div(fixed, far)
    root = sqrt(add(square(first), 1))
    size = mul(far, root)
    end = mul(2, ops.asin_p.bind(_minimum(sqrt(div(_BELOW / 2, size)), 1)))

    def integrand(v: Any, nu: Any, fixed: Any, first: Any, root: Any, size: Any) -> Any:
        sine = sin(v)
        ratio = div(v, sine)
        height = sqrt(add(square(mul(first, ratio)), 1))
        spread = div(mul(_less_sin(v), add(v, sine)), square(sine))
        d = _asinh(div(mul(first, spread), add(mul(ratio, root), height)))
        slope = div(mul(first, div(sub(sine, mul(v, cos(v))), square(sine))), height)
        value = exp(_fall(d, v, size, fixed))
        more = sub(fixed, nu)
        turn = mul(more, v)
        turned = add(cos(turn), mul(slope, sin(turn)))
        return mul(mul(value, exp(mul(more, add(_asinh(first), d)))), turned), mul(v, 0)

    total, _ = _sums(integrand, *_between(_full(0, x), end), nu, fixed, first, root, size)
    growth = sub(mul(fixed, div(fixed, add(size, far))), mul(fixed, _asinh(first)))
    value = mul(mul(total, 1 / math.pi), exp(growth))
    return _where(_ge(x, 0), _where(near, series, value), math.nan)


# The oscillating functions -------------------------------------------------------------------------------------------


def _sin_pi(nu: Any) -> Any:
    """sin(pi nu), zero at integers."""
    whole = ops.round_p.bind(stop_gradient(nu))
    return mul(_parity(whole), sin(mul(sub(nu, whole), math.pi)))


def _cos_pi(nu: Any) -> Any:
    whole = ops.round_p.bind(stop_gradient(nu))
    return mul(_parity(whole), sin(mul(sub(0.5, abs(sub(nu, whole))), math.pi)))


def _times(factor: Any, value: Any) -> Any:
    """A product; of a factor that is zero, and a value that overflowed, zero."""
    return _where(
        _and(eq(stop_gradient(factor), 0), ops.not_p.bind(ops.is_finite_p.bind(stop_gradient(value)))),
        0,
        mul(factor, value),
    )


def _parity(whole: Any) -> Any:
    """1 of even integers, -1 of odd ones."""
    return _where(eq(ops.rem_p.bind(whole, 2.0), 0), _full(1, whole), -1)


def _schlaefli(nu: Any, x: Any) -> Pair:
    """J and Y of x up to 12 and orders below: Schläfli's integrals, DLMF 10.9.6 and 10.9.7."""
    fixed = stop_gradient(nu)

    def swing(theta: Any, nu: Any, x: Any) -> Pair:
        angle = sub(mul(x, sin(theta)), mul(nu, theta))
        return cos(angle), sin(angle)

    first = _sums(swing, *_between(_full(0, x), _full(math.pi, x)), nu, x)
    end = _reach(_full(_BELOW, x), x)
    end = _reach(add(mul(fixed, add(end, 4)), _BELOW), x)

    def tails(t: Any, nu: Any, x: Any) -> Pair:
        depth, slope = mul(x, _sinh(t)), mul(nu, t)
        return exp(neg(add(depth, slope))), exp(sub(slope, depth))

    falling, rising = _sums(tails, *_panels(end), nu, x)
    j = sub(first[0], mul(_sin_pi(nu), falling))
    y = sub(first[1], add(rising, mul(_cos_pi(nu), falling)))
    return mul(j, 1 / math.pi), mul(y, 1 / math.pi)


def _monotone(nu: Any, x: Any) -> Pair:
    """J and Y of orders from x and 2 on: along the real axis to the saddle point, and upwards (Watson, 8.31)."""
    fixed = stop_gradient(nu)
    size = sqrt(mul(sub(fixed, x), add(fixed, x)))
    alpha = _asinh(div(size, x))
    first, root = div(fixed, x), div(size, x)
    quadratic = mul(2, ops.asin_p.bind(_minimum(sqrt(div(_BELOW / 2, size)), 1)))
    end = _minimum(quadratic, _minimum(mul(_cube_root(div(_BELOW / 0.2566, fixed)), 1.3), math.pi))

    def upwards(v: Any, nu: Any, fixed: Any, first: Any, root: Any, size: Any, alpha: Any) -> Pair:
        sine = sin(v)
        place = mul(first, div(v, sine))
        spread = mul(square(first), div(mul(_less_sin(v), add(v, sine)), square(sine)))
        height = sqrt(add(square(root), spread))
        d = _asinh(div(spread, add(mul(first, height), mul(place, root))))
        slope = div(mul(first, div(sub(sine, mul(v, cos(v))), square(sine))), height)
        more = sub(fixed, nu)
        turn = mul(more, v)
        value = mul(exp(_fall(d, v, size, fixed)), exp(mul(more, add(alpha, d))))
        cosine, sine = cos(turn), sin(turn)
        return mul(value, add(cosine, mul(slope, sine))), mul(value, sub(mul(slope, cosine), sine))

    above = _sums(upwards, *_between(_full(0, x), end), nu, fixed, first, root, size, alpha)
    left = _minimum(_acosh1p(div(_BELOW, size)), _cube_root(div(6 * _BELOW, fixed)))
    c = div(_BELOW, size)
    right = _minimum(mul(2, alpha), mul(add(c, sqrt(mul(c, add(c, 8)))), 0.8))

    def along(y: Any, nu: Any, fixed: Any, size: Any, excess: Any, alpha: Any) -> Pair:
        depth = mul(2, square(_sinh(mul(y, 0.5))))
        before = sub(mul(fixed, _sinh_less(_minimum(y, 0))), mul(size, depth))
        after = sub(mul(excess, depth), mul(fixed, _exp_less(neg(abs(y)))))
        return mul(exp(_where(lt(y, 0), before, after)), exp(mul(sub(fixed, nu), sub(y, alpha)))), mul(y, 0)

    excess = div(square(x), add(fixed, size))
    ends = _between(neg(left), _full(0, x), mul(right, 0.25), right)
    axis, _ = _sums(along, *ends, nu, fixed, size, excess, alpha)
    growth = sub(mul(fixed, alpha), size)
    half, small = exp(mul(growth, 0.5)), exp(neg(growth))
    j = mul(above[0], mul(small, 1 / math.pi))
    y = add(mul(mul(mul(axis, half), half), -1 / math.pi), mul(above[1], mul(small, -1 / math.pi)))
    return j, y


def _cube_root(x: Any) -> Any:
    return ops.cbrt_p.bind(x)


def _oscillating(nu: Any, x: Any) -> Pair:
    """J and Y of x from 12 on and lower orders: along cosh(u) sin(v) = sin(β) + (v - β) cos(β), where cos(β) = nu / x.

    Of the half below the saddle point, where it is cut short by the real axis, the way is along that axis to zero, and
    from there upwards.
    """
    fixed = stop_gradient(nu)
    excess = sub(x, fixed)
    size = sqrt(mul(excess, add(x, fixed)))
    beta = _atan2(size, fixed)
    quadratic = mul(sqrt(div(_BELOW, size)), 1.3)
    cut = gt(quadratic, beta)
    high = _minimum(_minimum(quadratic, mul(_cube_root(div(_BELOW / 0.2566, x)), 1.3)), sub(math.pi, beta))
    low = _minimum(quadratic, mul(beta, 0.999))
    sine, cosine = div(size, x), div(fixed, x)

    def downhill(eta: Any, nu: Any, fixed: Any, size: Any, beta: Any, sine: Any, cosine: Any, kept: Any) -> Pair:
        side = _where(lt(eta, 0), _full(-1, eta), 1)
        place = sin(add(beta, eta))
        swing = mul(2, square(sin(mul(eta, 0.5))))
        gap = div(add(mul(sine, swing), mul(cosine, _less_sin(eta))), place)
        u = mul(_acosh1p(gap), side)
        change = sub(
            div(add(mul(sine, sin(eta)), mul(cosine, swing)), place), mul(gap, div(cos(add(beta, eta)), place))
        )
        slope = div(mul(change, side), sqrt(mul(gap, add(2, gap))))
        fall = sub(mul(_sinh_less(u), cos(eta)), mul(u, swing))
        value = exp(sub(mul(fixed, fall), mul(mul(size, _sinh(u)), sin(eta))))
        more = sub(fixed, nu)
        turn = mul(more, add(beta, eta))
        value = mul(_where(lt(eta, 0), kept, 1), mul(value, exp(mul(more, u))))
        turn_cos, turn_sin = cos(turn), sin(turn)
        return mul(value, sub(mul(slope, turn_cos), turn_sin)), mul(value, add(turn_cos, mul(slope, turn_sin)))

    ends = _between(neg(low), _full(0, x), high)
    kept = _where(cut, _full(0, x), 1)
    parts = _sums(downhill, *ends, nu, fixed, size, beta, sine, cosine, kept)
    # θ = size - nu β: of orders near x as (x - nu) β - x (β - sin(β)), else as x and the rest.
    near = gt(fixed, mul(x, 0.5))
    close = sub(mul(excess, beta), mul(x, _less_sin(beta)))
    rest = sub(neg(mul(fixed, div(fixed, add(size, x)))), mul(fixed, beta))
    turn_cos = _where(near, cos(close), sub(mul(cos(x), cos(rest)), mul(sin(x), sin(rest))))
    turn_sin = _where(near, sin(close), add(mul(sin(x), cos(rest)), mul(cos(x), sin(rest))))
    real = sub(mul(turn_cos, parts[0]), mul(turn_sin, parts[1]))
    imaginary = add(mul(turn_cos, parts[1]), mul(turn_sin, parts[0]))
    # The way round: from minus infinity to 0, and to i β.
    end = _minimum(div(_BELOW, excess), _cube_root(div(6 * _BELOW, x)))

    def axis(t: Any, nu: Any, fixed: Any, excess: Any, x: Any) -> Pair:
        return exp(sub(mul(sub(nu, fixed), t), add(mul(excess, t), mul(x, _sinh_less(t))))), mul(t, 0)

    def upright(v: Any, nu: Any, fixed: Any, excess: Any, x: Any) -> Pair:
        angle = add(sub(mul(excess, v), mul(x, _less_sin(v))), mul(sub(fixed, nu), v))
        return cos(angle), sin(angle)

    operands = (nu, fixed, excess, x)
    along = _sums(axis, *_between(_full(0, x), _where(cut, end, 0)), *operands)
    rising = _sums(upright, *_between(_full(0, x), _where(cut, beta, 0)), *operands)
    real, imaginary = add(real, sub(along[0], rising[1])), add(imaginary, rising[0])
    return mul(imaginary, 1 / math.pi), mul(real, -1 / math.pi)


def _first_and_second(nu: Any, x: Any) -> Pair:
    """J and Y of an order that is not negative and a positive variable."""
    fixed = stop_gradient(nu)
    monotone = _and(_ge(fixed, x), _ge(fixed, 2))
    small = _and(ops.le_p.bind(x, 12), ops.not_p.bind(monotone))
    far = _and(gt(x, 12), ops.not_p.bind(monotone))
    series = ops.le_p.bind(mul(square(x), 0.25), add(fixed, 1))
    pairs = [
        _schlaefli(_where(small, nu, 1), _where(small, x, 1)),
        _monotone(_where(monotone, nu, 3), _where(monotone, _maximum(x, 1e-160), 2)),
        _oscillating(_where(far, nu, 3), _where(far, x, 20)),
    ]
    j, y = (_where(small, a, _where(monotone, b, c)) for a, b, c in zip(*pairs, strict=True))
    return _where(series, _power_series(_where(series, nu, 1), _where(series, x, 1), -1), j), y


def _bounded(x: Any) -> Any:
    """A positive variable in the range where the formulas are finite."""
    return _minimum(_maximum(abs(stop_gradient(x)), _LEAST), 1e150)


def _reach(c: Any, x: Any) -> Any:
    """asinh(c / x), where the quotient may overflow."""
    small = lt(x, 1e-3)
    return _where(small, sub(log(mul(2, c)), log(x)), _asinh(div(c, _where(small, 1, x))))


def _jv(nu: Any, x: Any) -> Any:
    """Of negative orders by 10.2.3; of negative variables, and whole orders, by 10.11.1."""
    x = stop_gradient(x)
    negative = lt(stop_gradient(nu), 0)
    size = _where(negative, neg(nu), nu)
    j, y = _first_and_second(size, _bounded(x))
    mirrored = sub(mul(_cos_pi(size), j), _times(_sin_pi(size), y))
    value = _where(negative, mirrored, j)
    whole = eq(ops.floor_p.bind(stop_gradient(nu)), stop_gradient(nu))
    zero = _where(
        eq(stop_gradient(nu), 0), _full(1, x), _where(_or(whole, ops.not_p.bind(negative)), 0, _full(math.inf, x))
    )
    value = _where(eq(x, 0), zero, _where(eq(abs(x), math.inf), 0, value))
    flipped = _where(whole, mul(_parity(ops.round_p.bind(stop_gradient(nu))), value), math.nan)
    return _where(lt(x, 0), flipped, _where(_and(eq(x, x), eq(nu, nu)), value, math.nan))


def _yv(nu: Any, x: Any) -> Any:
    x = stop_gradient(x)
    negative = lt(stop_gradient(nu), 0)
    size = _where(negative, neg(nu), nu)
    j, y = _first_and_second(size, _bounded(x))
    value = _where(negative, add(mul(_sin_pi(size), j), _times(_cos_pi(size), y)), y)
    value = _where(eq(x, 0), -math.inf, _where(eq(x, math.inf), 0, value))
    return _where(_and(_ge(x, 0), eq(nu, nu)), value, math.nan)


def _kv(nu: Any, x: Any) -> Any:
    x = stop_gradient(x)
    size = _where(lt(stop_gradient(nu), 0), neg(nu), nu)
    return _where(eq(x, math.inf), 0, mul(_kve(size, x), exp(neg(x))))


def _iv(nu: Any, x: Any) -> Any:
    """Of negative orders by 10.27.2."""
    x = stop_gradient(x)
    negative = lt(stop_gradient(nu), 0)
    size = _where(negative, neg(nu), nu)
    distance = _minimum(abs(x), 1e15)
    half = exp(mul(distance, 0.5))
    value = mul(mul(_ive(size, distance), half), half)
    other = mul(_times(_sin_pi(size), _kv(size, _maximum(distance, _LEAST))), 2 / math.pi)
    value = _where(negative, add(value, other), value)
    whole = eq(ops.floor_p.bind(stop_gradient(nu)), stop_gradient(nu))
    flipped = _where(whole, mul(_parity(ops.round_p.bind(stop_gradient(nu))), value), math.nan)
    out = _where(lt(x, 0), flipped, _where(_and(eq(x, x), eq(nu, nu)), value, math.nan))
    return _where(eq(x, math.inf), math.inf, out)


def _bessel(
    name: str, formula: Callable[..., Any], before: float, after: float, equations: tuple[int, int, bool]
) -> Primitive:
    """Declare a function; its derivative by the variable is a sum of those of the orders before and after.

    Where the rounding of the order before would count, next to a pole of 1 / Γ, it is nu / x times the function plus
    that of the order after (DLMF 10.6.2, 10.29.2).
    """

    def by_x(t: Any, nu: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
        upper = p.bind(add(nu, 1), x, orders=orders)
        if before < 0:
            return mul(t, add(mul(p.bind(sub(nu, 1), x, orders=orders), before), mul(upper, after)))
        near = _and(lt(abs(nu), 1), ops.ne_p.bind(x, 0))
        lower = p.bind(_where(near, nu, sub(nu, 1)), x, orders=orders)
        product = mul(nu, lower)
        if orders[0]:
            product = add(product, mul(p.bind(nu, x, orders=(orders[0] - 1, 0)), orders[0]))
        close = add(div(product, _where(near, x, 1)), mul(upper, 2 * after))
        slope = _where(near, close, add(mul(lower, before), mul(upper, after)))
        return mul(t, _where(eq(upper, -math.inf), math.inf, slope) if after < 0 else slope)

    p: Primitive = by_forward_mode(name, formula, arity=2, host=host.special(name), integrals=True, slopes=(None, by_x))
    by_equations(p, formula, *equations)
    return p


jv_p = _bessel("jv", _jv, 0.5, -0.5, (-1, 1, True))
yv_p = _bessel("yv", _yv, 0.5, -0.5, (-1, 1, False))
iv_p = _bessel("iv", _iv, 0.5, 0.5, (1, 1, True))
kv_p = _bessel("kv", _kv, -0.5, -0.5, (-1, -1, False))
