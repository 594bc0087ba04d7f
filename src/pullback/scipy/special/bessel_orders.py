"""Bessel functions of real order, with derivatives of any order by the order and by the variable.

Compiled they are integrals along paths of steepest descent, on which the integrand is positive and nothing cancels (G.
N. Watson, *A Treatise on the Theory of Bessel Functions*, 1922, chapter 8; Gil, Segura and Temme, *Numerical Methods
for Special Functions*, 2007, chapter 5); near zero functions of the first kind are power series. Derivatives by the
order are taken under the integral: the path is the same for all of them. Derivatives by the variable are differences of
neighbouring orders (DLMF 10.6.1, 10.29.1).

Each formula takes an order and a variable that are not negative; negative orders follow by reflection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.control import loops
from pullback.core.array import ArrayImpl, shape_of
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.special.gamma_functions import _gamma as gamma
from pullback.primitives.special.quadrature import rule
from pullback.scipy.special.bessel_series import by_equations
from pullback.scipy.special.differentiated import by_forward_mode

from pullback.primitives.formulas import (  # isort: skip
    asin, asinh, atan2, cbrt, complex, cos, cosh, exp, expm1, floor, formula, hypot, imag, is_finite, lgamma,
    lifted, log, maximum, minimum, polynomial, real, remainder, round, sin, sqrt, square, stop_gradient,
    where,
)  # fmt: skip

while_loop, expand_dims, concatenate = map(lifted, (loops.while_loop, shapes.expand_dims, slicing.concatenate))
reduce_sum = lifted(reductions.reduce_sum)

_BELOW = 38.0  # exp(-38) is below the rounding error
_LEAST = 2.3e-308
"""The smallest number that compiled programs do not flush to zero."""


@lifted
def _full(value: float, like: Any) -> Any:
    return shapes.full(like.shape, value, like.dtype)


Pair = tuple[Any, Any]


# Terms of exponents, without cancellation ----------------------------------------------------------------------------


def _sinh_less(d: Any, sine: Any) -> Any:
    """Return ``sinh(d) - d``, without cancellation, where ``sine`` is ``sinh(d)``."""
    near = abs(d) < 1
    small = where(near, d, 0)
    series = small * square(small) * polynomial(square(small), [1 / math.factorial(k) for k in range(19, 2, -2)])
    return where(near, series, sine - d)


def _hyperbolic(d: Any) -> tuple[Any, Any, Any]:
    """Return ``cosh(d) - 1``, ``sinh(d)`` and ``exp(-d) - 1`` of ``d >= 0``, of one exponential.

    The compiler writes a sinh as three exponentials.
    """
    grown = expm1(d)
    fallen = grown / (1 + grown)
    return grown * fallen * 0.5, (grown + fallen) * 0.5, -fallen


def _exp_less(size: Any, fallen: Any) -> Any:
    """Return ``exp(-size) - 1 + size`` of a positive ``size``, where ``fallen`` is ``exp(-size) - 1``."""
    near = size <= 0.5
    small = where(near, -size, 0)
    series = square(small) * polynomial(small, [1 / math.factorial(k) for k in range(16, 1, -1)])
    return where(near, series, fallen + size)


def _less_sin(v: Any) -> Any:
    """Return v - sin(v), without cancellation."""
    near = abs(v) < 1
    small = where(near, v, 0)
    terms = [(-1) ** ((k - 3) // 2) / math.factorial(k) for k in range(19, 2, -2)]
    return where(near, small * square(small) * polynomial(square(small), terms), v - sin(v))


def _fall(sine: Any, v: Any, even: Any, odd: Any) -> tuple[Any, Any]:
    """Return d = asinh(sine), and the real part of even (cosh(w) - 1) + odd (sinh(w) - w), where w = d + i v."""
    d = asinh(sine)
    rise = square(sine) / (1 + sqrt(1 + square(sine)))  # cosh(d) - 1
    swing = 2 * square(sin(v * 0.5))
    first = rise * cos(v) - swing
    second = _sinh_less(d, sine) * cos(v) - d * swing
    return d, even * first + odd * second


def _acosh1p(x: Any) -> Any:
    """Return acosh(1 + x), accurate for small x."""
    return 2 * asinh(sqrt(x * 0.5))


def _sums(integrand: Callable[..., Pair], low: Any, high: Any, *operands: Any) -> Pair:
    """Integrate two functions by quadrature over panels; return for each function the sum over all panels.

    Args:
      integrand: a function of points and of the operands, that returns the values of both functions.
      low, high: the ends of the panels, along a new last axis.
      operands: arrays.
    """
    rank = len(operands[0].shape)
    nodes, weights = rule()
    wide = [expand_dims(x, (rank, rank + 1)) for x in operands]
    low, high = expand_dims(low, (rank + 1,)), expand_dims(high, (rank + 1,))
    width = high - low
    first, second = integrand(low + width * nodes, *wide)
    scale = width * weights
    if second is None:
        return reduce_sum(first * scale, (rank, rank + 1)), None
    total = reduce_sum(complex(first * scale, second * scale), (rank, rank + 1))
    return real(total), imag(total)


def _between(*breaks: Any) -> Pair:
    """Return the lower ends and the upper ends of panels between consecutive ``breaks``, along a new last axis."""
    axis = len(breaks[-1].shape)
    columns = [expand_dims(v, (axis,)) for v in breaks]
    return concatenate(columns[:-1], axis), concatenate(columns[1:], axis)


_WIDTHS = (0.0, 8.0, 24.0, 60.0, 150.0, 350.0, math.inf)


def _panels(high: Any) -> Pair:
    """Return the lower ends and the upper ends, along a new last axis, of panels that cover [0, high].

    The panels become shorter towards ``high``: near ``high`` the integrand falls like exp(-exp(y)), and towards zero it
    is nearly exponential.
    """
    near, far = (ArrayImpl(np.array(w)) for w in (_WIDTHS[:-1], _WIDTHS[1:]))
    wide = expand_dims(high, (len(high.shape),))
    return maximum(wide - far, 0), maximum(wide - near, 0)


# The modified functions ----------------------------------------------------------------------------------------------


def _kve(nu: Any, x: Any) -> Any:
    """Evaluate exp(x) K_nu(x): the integral of exp(-x (cosh(t) - 1)) cosh(nu t) over t > 0 (DLMF 10.32.9).

    For orders from 2 on it is half the integral of exp(nu t - x (cosh(t) - 1)) over all t, with panels about the
    largest value of the integrand.
    """
    fixed = stop_gradient(nu)
    safe = minimum(maximum(stop_gradient(x), _LEAST), 1e290)
    high = fixed >= 2
    below = minimum(fixed, 2) * (_reach(_full(_BELOW, x), safe) + 4) + _BELOW
    end = where(safe < 1e-3, _reach(below, safe) + 0.01, _acosh1p(below / maximum(safe, 1e-3)))

    def integrand(t: Any, nu: Any, x: Any) -> Pair:
        return exp(-(x * _hyperbolic(t)[0])) * cosh(nu * t), None

    low, _ = _sums(integrand, *_panels(end), where(high, 1, nu), safe)
    value = where(high, _kve_about_largest(where(high, nu, 2), maximum(safe, 1e-160)), low)
    return where(x == 0, math.inf, where(x >= 0, value, math.nan))


def _kve_about_largest(nu: Any, x: Any) -> Any:
    fixed = stop_gradient(nu)
    first = fixed / x
    centre, size = asinh(first), hypot(x, fixed)
    excess = square(x) / (size + fixed)  # size - nu
    c = _BELOW / fixed
    left = minimum((c + sqrt(c * (c + 8))) * 0.5, _acosh1p(_BELOW / excess))

    def integrand(y: Any, nu: Any, fixed: Any, excess: Any, centre: Any) -> Pair:
        # size (cosh(y) - 1) + nu (sinh(y) - y): for negative y as (size - nu) (cosh(y) - 1) + nu (exp(y) - 1 - y).
        distance = abs(y)
        depth, sine, fallen = _hyperbolic(distance)
        tail = fixed * where(y < 0, _exp_less(distance, fallen), depth + _sinh_less(distance, sine))
        value = exp(-(excess * depth + tail))
        return value * exp((nu - fixed) * (centre + y)), None

    ends = _between(-left, left * -0.25, _full(0, x), _acosh1p(_BELOW / size))
    total, _ = _sums(integrand, *ends, nu, fixed, excess, centre)
    growth = fixed * centre - fixed * (fixed / (size + x))
    half = exp(growth * 0.5)
    return total * 0.5 * half * half


_SERIES = 48.0


def _power_series(nu: Any, x: Any, sign: int) -> Any:
    """Evaluate a Bessel function of order nu by its power series at 0: J_nu for ``sign`` -1, I_nu for ``sign`` 1.

    It is (x / 2)**nu / Γ(nu + 1) times the sum of (sign x² / 4)**k / (k! (nu + 1)_k) over k (DLMF 10.2.2, 10.25.2).
    """
    quarter = square(x) * (0.25 * sign)

    @formula
    def body(carry: Any) -> Any:
        k, total = carry
        return k - 1, 1 + quarter / ((nu + k) * k) * total

    _, total = while_loop(formula(lambda carry: carry[0] > 0), body, (shapes.full((), _SERIES, x.dtype), _full(1, x)))
    safe = where(x == 0, 1, x)
    few = stop_gradient(nu) < 140
    low = where(few, nu, 1)
    direct = (safe * 0.5) ** low / gamma_of_larger(low)
    distant = exp(nu * log(safe * 0.5) - lgamma(nu + 1))
    first = where(few, direct, distant)
    at_zero = where(nu == 0, _full(1, x), 0)
    return where(x == 0, at_zero, first) * total


def gamma_of_larger(nu: Any) -> Any:
    """Γ(nu + 1), differentiated as exp(lgamma(nu + 1))."""
    fixed = stop_gradient(nu)
    value = gamma(fixed + 1)
    rest = lgamma(nu + 1) - lgamma(fixed + 1)
    return value * exp(rest)


def _ive(nu: Any, x: Any) -> Any:
    """Evaluate exp(-x) I_nu(x): by its power series for x up to 13, then by a contour integral.

    The path of the integral is sinh(u) = nu v / (x sin(v)) in the plane of u + i v.
    """
    near = stop_gradient(x) < 13
    series = _power_series(nu, where(near, x, 1), 1) * exp(-where(near, x, 1))
    far = minimum(where(near, 20, stop_gradient(x)), 1e290)
    fixed = stop_gradient(nu)
    first = fixed / far
    root = sqrt(square(first) + 1)
    size = far * root
    end = 2 * asin(minimum(sqrt(_BELOW / 2 / size), 1))

    def integrand(v: Any, nu: Any, fixed: Any, first: Any, root: Any, size: Any) -> Any:
        sine = sin(v)
        ratio = v / sine
        height = sqrt(square(first * ratio) + 1)
        spread = _less_sin(v) * (v + sine) / square(sine)
        d, fall = _fall(first * spread / (ratio * root + height), v, size, fixed)
        slope = first * ((sine - v * cos(v)) / square(sine)) / height
        value = exp(fall)
        more = fixed - nu
        turn = more * v
        turned = cos(turn) + slope * sin(turn)
        return value * exp(more * (asinh(first) + d)) * turned, None

    total, _ = _sums(integrand, *_between(_full(0, x), end), nu, fixed, first, root, size)
    growth = fixed * (fixed / (size + far)) - fixed * asinh(first)
    value = total * (1 / math.pi) * exp(growth)
    return where(x >= 0, where(near, series, value), math.nan)


# The oscillating functions -------------------------------------------------------------------------------------------


def _sin_pi(nu: Any) -> Any:
    """Return sin(pi nu), exactly zero at integers."""
    nearest = round(stop_gradient(nu))
    return _parity(nearest) * sin((nu - nearest) * math.pi)


def _cos_pi(nu: Any) -> Any:
    """Return cos(pi nu), exactly zero at halves of odd integers, with all derivatives at integers too."""
    fixed = stop_gradient(nu)
    nearest = round(fixed)
    side = where(fixed < nearest, _full(-1, nu), 1)
    return _parity(nearest) * sin((0.5 - (nu - nearest) * side) * math.pi)


def _times(factor: Any, value: Any) -> Any:
    """Return ``factor * value``, or zero where the factor is zero and the value is not finite."""
    return where((stop_gradient(factor) == 0) & ~is_finite(stop_gradient(value)), 0, factor * value)


def _parity(number: Any) -> Any:
    """Return 1 for even integers, and -1 for odd integers."""
    return where(remainder(number, 2.0) == 0, _full(1, number), -1)


def _schlaefli(nu: Any, x: Any) -> Pair:
    """Evaluate J_nu(x) and Y_nu(x) for x <= 12 and nu < max(x, 2), by Schläfli's integrals (DLMF 10.9.6, 10.9.7)."""
    fixed = stop_gradient(nu)

    def swing(theta: Any, nu: Any, x: Any) -> Pair:
        angle = x * sin(theta) - nu * theta
        return cos(angle), sin(angle)

    first = _sums(swing, *_between(_full(0, x), _full(math.pi, x)), nu, x)
    end = _reach(_full(_BELOW, x), x)
    end = _reach(fixed * (end + 4) + _BELOW, x)

    def tails(t: Any, nu: Any, x: Any) -> Pair:
        depth, slope = x * _hyperbolic(t)[1], nu * t
        return exp(-(depth + slope)), exp(slope - depth)

    falling, rising = _sums(tails, *_panels(end), nu, x)
    j = first[0] - _sin_pi(nu) * falling
    y = first[1] - (rising + _cos_pi(nu) * falling)
    return j * (1 / math.pi), y * (1 / math.pi)


def _monotone(nu: Any, x: Any) -> Pair:
    """Evaluate J_nu(x) and Y_nu(x) for nu >= x and nu >= 2, by contour integrals (Watson, 8.31).

    The path follows the real axis to a saddle point, and from there it goes up.
    """
    fixed = stop_gradient(nu)
    size = sqrt((fixed - x) * (fixed + x))
    alpha = asinh(size / x)
    first, root = fixed / x, size / x
    quadratic = 2 * asin(minimum(sqrt(_BELOW / 2 / size), 1))
    end = minimum(quadratic, minimum(cbrt(_BELOW / 0.2566 / fixed) * 1.3, math.pi))

    def upwards(v: Any, nu: Any, fixed: Any, first: Any, root: Any, size: Any, alpha: Any) -> Pair:
        sine = sin(v)
        ratio = first * (v / sine)
        spread = square(first) * (_less_sin(v) * (v + sine) / square(sine))
        height = sqrt(square(root) + spread)
        d, fall = _fall(spread / (first * height + ratio * root), v, size, fixed)
        slope = first * ((sine - v * cos(v)) / square(sine)) / height
        more = fixed - nu
        turn = more * v
        value = exp(fall) * exp(more * (alpha + d))
        cosine, sine = cos(turn), sin(turn)
        return value * (cosine + slope * sine), value * (slope * cosine - sine)

    above = _sums(upwards, *_between(_full(0, x), end), nu, fixed, first, root, size, alpha)
    left = minimum(_acosh1p(_BELOW / size), cbrt(6 * _BELOW / fixed))
    c = _BELOW / size
    right = minimum(2 * alpha, (c + sqrt(c * (c + 8))) * 0.8)

    def along(y: Any, nu: Any, fixed: Any, size: Any, excess: Any, alpha: Any) -> Pair:
        distance = abs(y)
        depth, sine, fallen = _hyperbolic(distance)
        before = -(fixed * _sinh_less(distance, sine) + size * depth)
        after = excess * depth - fixed * _exp_less(distance, fallen)
        return exp(where(y < 0, before, after)) * exp((fixed - nu) * (y - alpha)), None

    excess = square(x) / (fixed + size)
    ends = _between(-left, _full(0, x), right * 0.25, right)
    axis, _ = _sums(along, *ends, nu, fixed, size, excess, alpha)
    growth = fixed * alpha - size
    half, small = exp(growth * 0.5), exp(-growth)
    j = above[0] * (small * (1 / math.pi))
    y = axis * half * half * (-1 / math.pi) + above[1] * (small * (-1 / math.pi))
    return j, y


def _oscillating(nu: Any, x: Any) -> Pair:
    """Evaluate J_nu(x) and Y_nu(x) for x > 12 and nu < x, by integrals along the path of steepest descent.

    The path, of points u + i v, is cosh(u) sin(v) = sin(β) + (v - β) cos(β), with cos(β) = nu / x. It passes the saddle
    point iβ. Where the real axis cuts off the half below iβ, this half is replaced by the real axis up to zero and the
    line from zero to iβ.
    """
    fixed = stop_gradient(nu)
    excess = x - fixed
    size = sqrt(excess * (x + fixed))
    beta = atan2(size, fixed)
    quadratic = sqrt(_BELOW / size) * 1.3
    cut = quadratic > beta
    high = minimum(minimum(quadratic, cbrt(_BELOW / 0.2566 / x) * 1.3), math.pi - beta)
    low = minimum(quadratic, beta * 0.999)
    sine, cosine = size / x, fixed / x

    def downhill(eta: Any, nu: Any, fixed: Any, size: Any, beta: Any, sine: Any, cosine: Any, weight: Any) -> Pair:
        side = where(eta < 0, _full(-1, eta), 1)
        sin_v = sin(beta + eta)
        swing = 2 * square(sin(eta * 0.5))
        gap = (sine * swing + cosine * _less_sin(eta)) / sin_v
        u, sine_u = _acosh1p(gap) * side, sqrt(gap * (2 + gap)) * side
        change = (sine * sin(eta) + cosine * swing) / sin_v - gap * (cos(beta + eta) / sin_v)
        slope = change / sine_u
        fall = _sinh_less(u, sine_u) * cos(eta) - u * swing
        value = exp(fixed * fall - size * sine_u * sin(eta))
        more = fixed - nu
        turn = more * (beta + eta)
        value = where(eta < 0, weight, 1) * (value * exp(more * u))
        turn_cos, turn_sin = cos(turn), sin(turn)
        return value * (slope * turn_cos - turn_sin), value * (turn_cos + slope * turn_sin)

    ends = _between(-low, _full(0, x), high)
    weight = where(cut, _full(0, x), 1)
    integrals = _sums(downhill, *ends, nu, fixed, size, beta, sine, cosine, weight)
    # θ = size - nu β: for orders near x as (x - nu) β - x (β - sin(β)), otherwise as x and the rest.
    near = fixed > x * 0.5
    close = excess * beta - x * _less_sin(beta)
    rest = -(fixed * (fixed / (size + x))) - fixed * beta
    turn_cos = where(near, cos(close), cos(x) * cos(rest) - sin(x) * sin(rest))
    turn_sin = where(near, sin(close), sin(x) * cos(rest) + cos(x) * sin(rest))
    first = turn_cos * integrals[0] - turn_sin * integrals[1]
    imaginary = turn_cos * integrals[1] + turn_sin * integrals[0]
    # Where the lower half is cut off: from minus infinity to 0, and on to i β.
    end = minimum(_BELOW / excess, cbrt(6 * _BELOW / x))

    def axis(t: Any, nu: Any, fixed: Any, excess: Any, x: Any) -> Pair:
        return exp((nu - fixed) * t - (excess * t + x * _sinh_less(t, _hyperbolic(t)[1]))), None

    def upright(v: Any, nu: Any, fixed: Any, excess: Any, x: Any) -> Pair:
        angle = excess * v - x * _less_sin(v) + (fixed - nu) * v
        return cos(angle), sin(angle)

    operands = (nu, fixed, excess, x)
    along = _sums(axis, *_between(_full(0, x), where(cut, end, 0)), *operands)
    rising = _sums(upright, *_between(_full(0, x), where(cut, beta, 0)), *operands)
    first, imaginary = first + (along[0] - rising[1]), imaginary + rising[0]
    return imaginary * (1 / math.pi), first * (-1 / math.pi)


def _first_and_second(nu: Any, x: Any) -> Pair:
    """Evaluate J_nu(x) and Y_nu(x) for nu >= 0 and x > 0; return both."""
    fixed = stop_gradient(nu)
    monotone = (fixed >= x) & (fixed >= 2)
    small = (x <= 12) & ~monotone
    far = (x > 12) & ~monotone
    series = square(x) * 0.25 <= fixed + 1
    pairs = [
        _schlaefli(where(small, nu, 1), where(small, x, 1)),
        _monotone(where(monotone, nu, 3), where(monotone, maximum(x, 1e-160), 2)),
        _oscillating(where(far, nu, 3), where(far, x, 20)),
    ]
    j, y = (where(small, a, where(monotone, b, c)) for a, b, c in zip(*pairs, strict=True))
    return where(series, _power_series(where(series, nu, 1), where(series, x, 1), -1), j), y


def _bounded(x: Any) -> Any:
    """Return abs(x), clipped to the range where the formulas are finite, and without derivatives."""
    return minimum(maximum(abs(stop_gradient(x)), _LEAST), 1e150)


def _reach(c: Any, x: Any) -> Any:
    """Return asinh(c / x), also where the quotient overflows."""
    small = x < 1e-3
    return where(small, log(2 * c) - log(x), asinh(c / where(small, 1, x)))


@formula
def _jv(nu: Any, x: Any) -> Any:
    """Evaluate J_nu(x), for any order and any x.

    Negative orders follow from DLMF 10.2.3. For negative x it is DLMF 10.11.1 if the order is an integer, else NaN.
    """
    x = stop_gradient(x)
    negative = stop_gradient(nu) < 0
    size = where(negative, -nu, nu)
    j, y = _first_and_second(size, _bounded(x))
    mirrored = _cos_pi(size) * j - _times(_sin_pi(size), y)
    value = where(negative, mirrored, j)
    is_integer = floor(stop_gradient(nu)) == stop_gradient(nu)
    zero = where(stop_gradient(nu) == 0, _full(1, x), where(is_integer | ~negative, 0, _full(math.inf, x)))
    value = where(x == 0, zero, where(abs(x) == math.inf, 0, value))
    flipped = where(is_integer, _parity(round(stop_gradient(nu))) * value, math.nan)
    return where(x < 0, flipped, where((x == x) & (nu == nu), value, math.nan))


@formula
def _yv(nu: Any, x: Any) -> Any:
    x = stop_gradient(x)
    negative = stop_gradient(nu) < 0
    size = where(negative, -nu, nu)
    j, y = _first_and_second(size, _bounded(x))
    value = where(negative, _sin_pi(size) * j + _times(_cos_pi(size), y), y)
    value = where(x == 0, -math.inf, where(x == math.inf, 0, value))
    return where((x >= 0) & (nu == nu), value, math.nan)


@formula
def _kv(nu: Any, x: Any) -> Any:
    x = stop_gradient(x)
    size = where(stop_gradient(nu) < 0, -nu, nu)
    return where(x == math.inf, 0, _kve(size, x) * exp(-x))


@formula
def _iv(nu: Any, x: Any) -> Any:
    """Evaluate I_nu(x); negative orders follow from DLMF 10.27.2."""
    x = stop_gradient(x)
    negative = stop_gradient(nu) < 0
    size = where(negative, -nu, nu)
    distance = minimum(abs(x), 1e15)
    half = exp(distance * 0.5)
    value = _ive(size, distance) * half * half
    other = _times(_sin_pi(size), _kv(size, maximum(distance, _LEAST))) * (2 / math.pi)
    value = where(negative, value + other, value)
    is_integer = floor(stop_gradient(nu)) == stop_gradient(nu)
    flipped = where(is_integer, _parity(round(stop_gradient(nu))) * value, math.nan)
    out = where(x < 0, flipped, where((x == x) & (nu == nu), value, math.nan))
    return where(x == math.inf, math.inf, out)


def _of_both(p: Primitive, lower: Any, upper: Any, x: Any, orders: tuple[int, ...]) -> tuple[Any, ...]:
    """Evaluate ``p`` of two orders as one operation on twice as many elements.

    A program then contains the formula once. Separate operations would repeat it, four times in a second derivative.
    """
    shape = broadcast_shape(p.name, [shape_of(v) for v in (lower, upper, x)])
    pair = [shapes.broadcast_to(order, shape) for order in (lower, upper)]
    return tuple(slicing.unstack(p.bind(slicing.stack(pair, 0), x, orders=orders), 0))


def _bessel(
    name: str, formula: Callable[..., Any], before: float, after: float, equations: tuple[int, int, bool]
) -> Primitive:
    """Declare a Bessel function, whose derivative with respect to x is a sum of functions of neighbouring orders.

    The derivative combines the orders nu - 1 and nu + 1. For abs(nu) < 1 and positive ``before`` it is instead nu / x
    times the function, plus a multiple of the order nu + 1 (DLMF 10.6.2, 10.29.2): rounding of the order nu - 1 would
    dominate there.

    Args:
      name: SciPy's name of the function.
      formula: ``formula(nu, x)``, its value.
      before, after: the factors of the functions of orders nu - 1 and nu + 1 in the derivative.
      equations: the arguments ``upper``, ``lower`` and ``entire`` of :func:`by_equations`.
    """

    def by_x(t: Any, nu: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
        above = ops.add(nu, 1)
        if before < 0:
            lower, upper = _of_both(p, ops.sub(nu, 1), above, x, orders)
            slope = ops.add(ops.mul(lower, before), ops.mul(upper, after))
            return ops.mul(t, slope)
        near = ops.and_p.bind(ops.lt(ops.abs(nu), 1), ops.ne_p.bind(x, 0))
        lower, upper = _of_both(p, ops.where(near, nu, ops.sub(nu, 1)), above, x, orders)
        product = ops.mul(nu, lower)
        if orders[0]:
            product = ops.add(product, ops.mul(p.bind(nu, x, orders=(orders[0] - 1, 0)), orders[0]))
        close = ops.add(ops.div(product, ops.where(near, x, 1)), ops.mul(upper, 2 * after))
        slope = ops.where(near, close, ops.add(ops.mul(lower, before), ops.mul(upper, after)))
        return ops.mul(t, ops.where(ops.eq(upper, -math.inf), math.inf, slope) if after < 0 else slope)

    p: Primitive = by_forward_mode(name, formula, arity=2, host=host.special(name), integrals=True, slopes=(None, by_x))
    by_equations(p, formula, *equations)
    return p


jv_p = _bessel("jv", _jv, 0.5, -0.5, (-1, 1, True))
yv_p = _bessel("yv", _yv, 0.5, -0.5, (-1, 1, False))
iv_p = _bessel("iv", _iv, 0.5, 0.5, (1, 1, True))
kv_p = _bessel("kv", _kv, -0.5, -0.5, (-1, -1, False))
