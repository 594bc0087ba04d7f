"""Bessel functions of real order, with derivatives of any order by the order and by the variable.

Compiled they are integrals along paths of steepest descent, on which the integrand is positive and nothing cancels
(G. N. Watson, *A Treatise on the Theory of Bessel Functions*, 1922, chapter 8; Gil, Segura and Temme, *Numerical Methods
for Special Functions*, 2007, chapter 5); near zero those of the first kind are power series. Derivatives by the order
are taken under the integral: the path is the same for all of them. Those by the variable are differences of neighbours
(DLMF 10.6.1, 10.29.1).

Each formula is of an order and a variable that are not negative; the functions of negative orders follow by reflection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from pullback.backends import host
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
from pullback.primitives.quadrature import integral
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.slicing import concatenate
from pullback.scipy.special.differentiated import by_forward_mode

_asinh, _acosh, _atan2, _sinh, _cosh = (p.bind for p in (ops.asinh_p, ops.acosh_p, ops.atan2_p, ops.sinh_p, ops.cosh_p))
_maximum, _minimum = ops.max_p.bind, ops.min_p.bind
_and, _or, _ge = ops.and_p.bind, ops.or_p.bind, ops.ge_p.bind
_where = ops.where

_BELOW = 38.0


def _full(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, like.dtype)


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


def _panels(integrand: Callable[..., Any], ends: list[tuple[Any, Any]], *operands: Any) -> Any:
    """The sum of integrals between pairs of ends, along an axis of their own."""
    axis = len(operands[0].shape)
    columns = [[shapes.expand_dims(x, (axis,)) for x in side] for side in zip(*ends, strict=True)]
    starts, stops = (concatenate(side, axis) for side in columns)
    wide = [shapes.expand_dims(x, (axis,)) for x in operands]
    parts = integral(lambda y, start, *xs: integrand(add(start, y), *xs), sub(stops, starts), starts, *wide)
    return reduce_sum(parts, (axis,))


def _split(low: Any, high: Any, sides: str) -> list[tuple[Any, Any]]:
    """The interval in parts, each twice as long as the one before, from the ends that are named.

    There the integrand falls like exp(-exp(y)), and towards the middle it is nearly exponential.
    """
    widths = (8.0, 24.0, 60.0, 150.0, 350.0)
    middle = mul(add(low, high), 0.5) if len(sides) == 2 else low if sides == "r" else high
    breaks = [low]
    if "l" in sides:
        breaks += [_minimum(add(low, w), middle) for w in widths]
    if "r" in sides:
        breaks += [_maximum(sub(high, w), middle) for w in reversed(widths)]
    breaks.append(high)
    return list(pairwise(breaks))


# The modified functions ----------------------------------------------------------------------------------------------


def _kve(nu: Any, x: Any) -> Any:
    """exp(x) K: half the integral of exp(nu t - x (cosh(t) - 1)), about its largest value, DLMF 10.32.9."""
    fixed = stop_gradient(nu)
    safe = _minimum(_maximum(stop_gradient(x), 1e-290), 1e290)
    centre = _asinh(div(fixed, safe))
    size = sqrt(add(square(div(fixed, safe)), 1))
    size = mul(size, safe)
    right = _acosh1p(div(_BELOW, size))
    excess = div(square(safe), add(size, fixed))  # size - nu
    c = div(_BELOW, _maximum(fixed, 1e-290))
    left = _minimum(mul(add(c, sqrt(mul(c, add(c, 8)))), 0.5), _acosh1p(div(_BELOW, excess)))

    def integrand(y: Any, nu: Any, fixed: Any, excess: Any, centre: Any) -> Any:
        # size (cosh(y) - 1) + nu (sinh(y) - y): of negative y as (size - nu) (cosh(y) - 1) + nu (exp(y) - 1 - y).
        depth = mul(2, square(_sinh(mul(y, 0.5))))
        tail = mul(fixed, _where(lt(y, 0), _exp_less(neg(abs(y))), add(depth, _sinh_less(_maximum(y, 0)))))
        value = exp(neg(add(mul(excess, depth), tail)))
        return mul(value, exp(mul(sub(nu, fixed), add(centre, y))))

    total = _panels(integrand, _split(neg(left), right, "lr"), nu, fixed, excess, centre)
    growth = sub(mul(fixed, centre), div(square(fixed), add(size, safe)))
    half = exp(mul(growth, 0.5))
    value = mul(mul(mul(total, 0.5), half), half)
    return _where(eq(x, 0), math.inf, _where(_ge(x, 0), value, math.nan))


def _exp_less(y: Any) -> Any:
    """exp(y) - 1 - y of numbers that are not positive."""
    near = _ge(y, -0.5)
    small = _where(near, y, 0)
    series = mul(square(small), ops.polynomial(small, [1 / math.factorial(k) for k in range(16, 1, -1)]))
    return _where(near, series, sub(ops.expm1_p.bind(y), y))


_SERIES = 48


def _power_series(nu: Any, x: Any, sign: int) -> Any:
    """(x / 2)**nu / Γ(nu + 1) times the sum of (± x² / 4)**k / k! / (nu + 1)_k, DLMF 10.2.2 and 10.25.2."""
    quarter = mul(square(x), 0.25 * sign)
    total: Any = _full(1, x)
    for k in range(_SERIES, 0, -1):
        total = add(1, mul(div(quarter, mul(add(nu, k), k)), total))
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
        place = mul(first, div(v, sine))
        height = sqrt(add(square(place), 1))
        gap = div(
            mul(mul(first, first), div(mul(_less_sin(v), add(v, sine)), square(sine))),
            add(mul(place, root), mul(first, height)),
        )
        d = _asinh(gap)
        slope = div(mul(first, div(sub(sine, mul(v, cos(v))), square(sine))), height)
        value = exp(_fall(d, v, size, fixed))
        more = sub(fixed, nu)
        turn = mul(more, v)
        turned = add(cos(turn), mul(slope, sin(turn)))
        return mul(mul(value, exp(mul(more, add(_asinh(first), d)))), turned)

    total = integral(integrand, end, nu, fixed, first, root, size)
    growth = sub(div(square(fixed), add(size, far)), mul(fixed, _asinh(first)))
    value = mul(mul(total, 1 / math.pi), exp(growth))
    return _where(_ge(x, 0), _where(near, series, value), math.nan)


# The oscillating functions -------------------------------------------------------------------------------------------

Pair = tuple[Any, Any]


def _sin_pi(nu: Any) -> Any:
    """sin(pi nu), zero at integers."""
    whole = ops.round_p.bind(stop_gradient(nu))
    return mul(_parity(whole), sin(mul(sub(nu, whole), math.pi)))


def _cos_pi(nu: Any) -> Any:
    whole = ops.round_p.bind(stop_gradient(nu))
    return mul(_parity(whole), cos(mul(sub(nu, whole), math.pi)))


def _parity(whole: Any) -> Any:
    """1 of even integers, -1 of odd ones."""
    return _where(eq(ops.rem_p.bind(whole, 2.0), 0), _full(1, whole), -1)


def _schlaefli(nu: Any, x: Any) -> Pair:
    """J and Y of x up to 12 and orders below: Schläfli's integrals, DLMF 10.9.6 and 10.9.7."""
    fixed = stop_gradient(nu)
    turn = _full(math.pi, x)

    def swing(theta: Any, nu: Any, x: Any, of: Any) -> Any:
        return of(sub(mul(x, sin(theta)), mul(nu, theta)))

    first = [integral(partial(swing, of=of), turn, nu, x) for of in (cos, sin)]
    end = _asinh(div(_BELOW, x))
    end = _asinh(div(add(mul(fixed, add(end, 4)), _BELOW), x))

    def tail(t: Any, nu: Any, x: Any) -> Any:
        return exp(sub(mul(nu, t), mul(x, _sinh(t))))

    ends = _split(_full(0, x), end, "r")
    falling, rising = _panels(tail, ends, neg(nu), x), _panels(tail, ends, nu, x)
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

    def upwards(v: Any, nu: Any, fixed: Any, first: Any, root: Any, size: Any, alpha: Any, second: bool) -> Any:
        sine = sin(v)
        place = mul(first, div(v, sine))
        spread = mul(square(first), div(mul(_less_sin(v), add(v, sine)), square(sine)))
        height = sqrt(add(square(root), spread))
        d = _asinh(div(spread, add(mul(first, height), mul(place, root))))
        slope = div(mul(first, div(sub(sine, mul(v, cos(v))), square(sine))), height)
        more = sub(fixed, nu)
        turn = mul(more, v)
        value = mul(exp(_fall(d, v, size, fixed)), exp(mul(more, add(alpha, d))))
        turned = sub(mul(slope, cos(turn)), sin(turn)) if second else add(cos(turn), mul(slope, sin(turn)))
        return mul(value, turned)

    above = [
        integral(partial(upwards, second=second), end, nu, fixed, first, root, size, alpha) for second in (False, True)
    ]
    left = _minimum(_acosh1p(div(_BELOW, size)), _cube_root(div(6 * _BELOW, fixed)))
    c = div(_BELOW, size)
    right = _minimum(mul(2, alpha), mul(add(c, sqrt(mul(c, add(c, 8)))), 0.8))

    def along(y: Any, nu: Any, fixed: Any, size: Any, excess: Any, alpha: Any) -> Any:
        depth = mul(2, square(_sinh(mul(y, 0.5))))
        before = sub(mul(fixed, _sinh_less(_minimum(y, 0))), mul(size, depth))
        after = sub(mul(excess, depth), mul(fixed, _exp_less(neg(abs(y)))))
        return mul(exp(_where(lt(y, 0), before, after)), exp(mul(sub(fixed, nu), sub(y, alpha))))

    excess = div(square(x), add(fixed, size))
    ends = [(neg(left), _full(0, x)), (_full(0, x), mul(right, 0.25)), (mul(right, 0.25), right)]
    axis = _panels(along, ends, nu, fixed, size, excess, alpha)
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

    def downhill(
        eta: Any, nu: Any, fixed: Any, size: Any, beta: Any, sine: Any, cosine: Any, part: str, side: float
    ) -> Any:
        eta = mul(eta, side)
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
        value = mul(value, exp(mul(more, u)))
        if part == "real":
            return mul(value, sub(mul(slope, cos(turn)), sin(turn)))
        return mul(value, add(cos(turn), mul(slope, sin(turn))))

    known = (nu, fixed, size, beta, sine, cosine)
    parts = []
    for part in ("real", "imaginary"):
        above = integral(partial(downhill, part=part, side=1.0), high, *known)
        below = integral(partial(downhill, part=part, side=-1.0), low, *known)
        parts.append(add(above, _where(cut, 0, below)))
    # θ = size - nu β: of orders near x as (x - nu) β - x (β - sin(β)), else as x and the rest.
    near = gt(fixed, mul(x, 0.5))
    close = sub(mul(excess, beta), mul(x, _less_sin(beta)))
    rest = sub(neg(div(square(fixed), add(size, x))), mul(fixed, beta))
    cos_x, sin_x, cos_rest, sin_rest = cos(x), sin(x), cos(rest), sin(rest)
    turn_cos = _where(near, cos(close), sub(mul(cos_x, cos_rest), mul(sin_x, sin_rest)))
    turn_sin = _where(near, sin(close), add(mul(sin_x, cos_rest), mul(cos_x, sin_rest)))
    real = sub(mul(turn_cos, parts[0]), mul(turn_sin, parts[1]))
    imaginary = add(mul(turn_cos, parts[1]), mul(turn_sin, parts[0]))
    # The way round: from minus infinity to 0, and to i β.
    end = _minimum(div(_BELOW, excess), _cube_root(div(6 * _BELOW, x)))

    def axis(t: Any, nu: Any, fixed: Any, excess: Any, x: Any) -> Any:
        return exp(sub(mul(sub(nu, fixed), t), add(mul(excess, t), mul(x, _sinh_less(t)))))

    def upright(v: Any, nu: Any, fixed: Any, excess: Any, x: Any, of: Any) -> Any:
        return of(add(sub(mul(excess, v), mul(x, _less_sin(v))), mul(sub(fixed, nu), v)))

    operands = (nu, fixed, excess, x)
    safe = _where(cut, beta, 0)
    real = add(
        real, _where(cut, sub(integral(axis, end, *operands), integral(partial(upright, of=sin), safe, *operands)), 0)
    )
    imaginary = add(imaginary, integral(partial(upright, of=cos), safe, *operands))
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
        _monotone(_where(monotone, nu, 3), _where(monotone, x, 2)),
        _oscillating(_where(far, nu, 3), _where(far, x, 20)),
    ]
    j, y = (_where(small, a, _where(monotone, b, c)) for a, b, c in zip(*pairs, strict=True))
    return _where(series, _power_series(_where(series, nu, 1), _where(series, x, 1), -1), j), y


def _bounded(x: Any) -> Any:
    """A positive variable in the range where the formulas are finite."""
    return _minimum(_maximum(abs(stop_gradient(x)), 1e-290), 1e15)


def _jv(nu: Any, x: Any) -> Any:
    """Of negative orders by 10.2.3; of negative variables, and whole orders, by 10.11.1."""
    x = stop_gradient(x)
    negative = lt(stop_gradient(nu), 0)
    size = _where(negative, neg(nu), nu)
    j, y = _first_and_second(size, _bounded(x))
    mirrored = sub(mul(_cos_pi(size), j), mul(_sin_pi(size), y))
    value = _where(negative, mirrored, j)
    whole = eq(ops.floor_p.bind(stop_gradient(nu)), stop_gradient(nu))
    zero = _where(
        eq(stop_gradient(nu), 0), _full(1, x), _where(_or(whole, ops.not_p.bind(negative)), 0, _full(math.inf, x))
    )
    value = _where(eq(x, 0), zero, _where(eq(abs(x), math.inf), 0, value))
    flipped = _where(whole, mul(_parity(ops.round_p.bind(stop_gradient(nu))), value), math.nan)
    return _where(lt(x, 0), flipped, _where(eq(x, x), value, math.nan))


def _yv(nu: Any, x: Any) -> Any:
    x = stop_gradient(x)
    negative = lt(stop_gradient(nu), 0)
    size = _where(negative, neg(nu), nu)
    j, y = _first_and_second(size, _bounded(x))
    value = _where(negative, add(mul(_sin_pi(size), j), mul(_cos_pi(size), y)), y)
    value = _where(eq(x, 0), -math.inf, _where(eq(x, math.inf), 0, value))
    return _where(_ge(x, 0), value, math.nan)


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
    other = mul(mul(_sin_pi(size), _kv(size, _maximum(distance, 1e-290))), 2 / math.pi)
    value = _where(negative, add(value, other), value)
    whole = eq(ops.floor_p.bind(stop_gradient(nu)), stop_gradient(nu))
    flipped = _where(whole, mul(_parity(ops.round_p.bind(stop_gradient(nu))), value), math.nan)
    out = _where(lt(x, 0), flipped, _where(eq(x, x), value, math.nan))
    return _where(eq(x, math.inf), math.inf, out)


def _bessel(name: str, formula: Callable[..., Any], before: float, after: float) -> Primitive:
    """Declare a function; its derivative by the variable is a sum of those of the orders before and after."""

    def by_x(t: Any, nu: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
        lower, upper = (p.bind(shift, x, orders=orders) for shift in (sub(nu, 1), add(nu, 1)))
        return mul(t, add(mul(lower, before), mul(upper, after)))

    p: Primitive = by_forward_mode(name, formula, arity=2, host=host.special(name), integrals=True, slopes=(None, by_x))
    return p


jv_p = _bessel("jv", _jv, 0.5, -0.5)
yv_p = _bessel("yv", _yv, 0.5, -0.5)
iv_p = _bessel("iv", _iv, 0.5, 0.5)
kv_p = _bessel("kv", _kv, -0.5, -0.5)
