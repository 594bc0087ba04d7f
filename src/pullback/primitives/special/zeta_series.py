"""Taylor coefficients of the Hurwitz zeta function, the logarithm of the gamma function, and its derivatives.

These functions do not solve differential equations of finite order (Hölder's theorem), which would yield recurrences.
But the Euler-Maclaurin formula is a sum of a fixed number of powers, which have recurrences, so that the cost grows as
the square of the order. The error of the formula in the coefficients of order k is its error in zeta(s + k, q), which
decreases with k relative to the first power.

Source: DLMF 25.11.5; Griewank and Walther, Evaluating Derivatives, 2nd ed., chapter 13, for the powers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl, host_value, is_on_host, shape_of
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.types import ZERO
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate
from pullback.primitives.power_series import (
    derivative,
    integral,
    is_fixed,
    of_product,
    of_square,
    times,
    total,
    with_array,
)
from pullback.primitives.special.others import zeta_p
from pullback.primitives.sums import reduce_sum

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _moved(x: Series, value: Any, sign: int = 1) -> Series:
    """Return the series of ``sign * x + c``, where the constant c makes the first coefficient equal to ``value``."""
    return Series([value]) if is_fixed(x) else Series([value], lambda k: x[k] if sign == 1 else times(x[k], -1))


def _along_axis(numbers: Any, like: Any) -> Any:
    """Return ``numbers`` as an array that broadcasts against ``like``: their axes come before axes of size one.

    The array has the dtype of ``like``.
    """
    values = np.asarray(numbers, like.dtype)
    # `like` is float64 within operations of single precision too.
    return ArrayImpl(values.reshape(values.shape + (1,) * len(like.shape)))


# Powers --------------------------------------------------------------------------------------------------------------


def _powers(start: Any, exponent: Series, base: Series, growth: Coefficient | None = None) -> Coefficient:
    """Return the Taylor coefficients of ``base**-exponent`` times a factor; they must be requested in order.

    Args:
      start: the value of the product.
      exponent: the series of the exponent, perhaps with an additional first axis.
      base: the series of the base, which is positive.
      growth: a function from k >= 0 to the coefficient k of the derivative of the factor's logarithm; None for a
        constant factor.
    """
    powers, rate, slope, logarithm = Series([start]), Series([]), Series([]), Series([ops.log(base[0])])
    speed = derivative(base)  # slope is the derivative of the base's logarithm
    along = integral(powers, rate)

    def next_rate(k: int) -> Any:
        if is_fixed(exponent):
            return ZERO if slope[k] is ZERO else ops.mul(ops.neg(exponent[0]), slope[k])
        gained = ZERO if growth is None else growth(k)
        for factor, other in ((exponent, slope), (derivative(exponent), logarithm)):
            lost = of_product(factor, other, k)
            gained = gained if lost is ZERO else ops.difference(gained, lost)
        return gained

    def coefficient(k: int) -> Any:
        rest = ops.difference(speed[k - 1], of_product(base, slope, k - 1, first=1))
        slope.known.append(rest if rest is ZERO else ops.div(rest, base[0]))
        rate.known.append(next_rate(k - 1))
        logarithm.known.append(times(slope[k - 1], 1 / k))
        powers.known.append(along(k))
        return powers[k]

    return coefficient


# The zeta function ---------------------------------------------------------------------------------------------------


def _of_positive(s: Series, q: Series) -> Coefficient:
    """Return the Taylor coefficients, from order 1 on, of the sum of (q + i)**-s over i = 0, 1, ..., for positive q."""
    terms, corrections = (9, 10) if q[0].dtype == np.float64 else (5, 4)
    ones = shapes.full(np.broadcast_shapes(shape_of(s[0]), shape_of(q[0])), 1, q[0].dtype)
    first = _moved(q, ops.add(_along_axis(range(terms), ones), q[0]))
    sums = [_powers(ops.pow(first[0], ops.neg(s[0])), s, first)]

    last = _moved(q, ops.add(q[0], terms))
    rows: list[Any] = [ops.div(last[0], ops.sub(s[0], 1)), 0.5]
    rising: Any = ops.div(s[0], last[0])
    for j, bernoulli in enumerate(_BERNOULLI[:corrections], 1):
        rows.append(ops.mul(rising, bernoulli / math.factorial(2 * j)))
        for i in (2 * j - 1, 2 * j):
            ratio = ops.div(ops.add(s[0], i), last[0])
            rising = ops.mul(rising, ratio)
    tail = concatenate([shapes.expand_dims(ops.mul(row, ones), (0,)) for row in rows], 0)
    offsets = [-1, 0, *range(1, 2 * corrections, 2)]
    exponent = _moved(s, ops.add(_along_axis(offsets, ones), s[0]))
    growth = None if is_fixed(s) else _growth(s, offsets, ones)
    power = ops.pow(last[0], ops.neg(s[0]))
    sums.append(_powers(ops.mul(power, tail), exponent, last, growth))

    def coefficient(k: int) -> Any:
        return total(c if c is ZERO else reduce_sum(c, (0,)) for c in [of(k) for of in sums])

    return coefficient


def _growth(s: Series, offsets: list[int], like: Any) -> Coefficient:
    """Return the Taylor coefficients of the derivatives of log(f_j(s)), with a function f_j for each j in ``offsets``.

    The function f_j is 1 / (s - 1) for j = -1, and else the product s (s + 1) ... (s + j - 1). The offsets are along a
    new first axis. The result has the dtype of ``like``.
    """
    factors = range(-1, offsets[-1])
    signs = np.array([[-(i == -1) if j == -1 else 0 <= i < j for i in factors] for j in offsets])
    which = _along_axis(signs, like)
    shifted = _moved(s, ops.add(_along_axis(factors, like), s[0]))
    slope = Series([])

    def coefficient(k: int) -> Any:
        rest = ops.difference(derivative(s)[k], of_product(shifted, slope, k, first=1))
        slope.known.append(rest if rest is ZERO else ops.div(rest, shifted[0]))
        return ZERO if rest is ZERO else reduce_sum(ops.mul(which, slope[k]), (1,))

    return coefficient


def _zeta(s: Series, q: Series) -> Coefficient:
    """Return the Taylor coefficients, from order 1 on, of the Hurwitz zeta function.

    For negative q, s must be a constant integer. The terms are (q + i)**-s for i = 0, 1, ... . For negative q the first
    bases q + i are negative, with the absolute values -q, ..., r + 1, r, where r = ceil(q) - q. Up to a sign, the sum
    of their terms is the infinite sum from r on minus the infinite sum from 1 - q on.
    """
    if is_on_host(q[0]) and not (host_value(q[0]) < 0).any():
        return _of_positive(s, q)
    below = ops.lt(q[0], 0)
    r = ops.sub(ops.ceil_p.bind(q[0]), q[0])
    above = _of_positive(s, _moved(q, ops.where(below, ops.sub(1, r), q[0])))
    near, far = (_of_positive(s, _moved(q, ops.where(below, x, 1), -1)) for x in (r, ops.sub(1, q[0])))
    if is_fixed(s):
        half = ops.mul(s[0], 0.5)
        sign = ops.where(ops.eq(ops.floor_p.bind(half), half), shapes.full((), 1, q[0].dtype), -1)
        sign = ops.where(ops.eq(ops.floor_p.bind(s[0]), s[0]), sign, math.nan)
    else:
        sign = shapes.full((), math.nan, q[0].dtype)
    sign = ops.where(below, sign, 0)

    def coefficient(k: int) -> Any:
        c, others = above(k), ops.difference(near(k), far(k))
        return c if others is ZERO else ops.add(c, ops.mul(sign, others))

    return coefficient


@taylor(zeta_p)
def _zeta_taylor(ans: Series, s: Series, q: Series) -> Coefficient:
    return _zeta(with_array(s, ans), with_array(q, ans))


# The logarithm of the gamma function and its derivatives -------------------------------------------------------------


def _polygamma(n: Any, x: Series) -> Coefficient:
    """Return the Taylor coefficients of polygamma of a constant order n, (-1)**(n + 1) n! zeta(n + 1, x).

    They are computed from the series of its derivative, which contains zeta(n + 2, x): for n = 0 zeta(n + 1, x) is
    infinite.
    """
    zeta = _zeta(Series([ops.add(n, 2)]), x)
    half = ops.mul(n, 0.5)
    factor = ops.exp(ops.lgamma_p.bind(ops.add(n, 2)))
    factor = ops.where(ops.eq(ops.floor_p.bind(half), half), factor, ops.neg(factor))
    slope = Series([ops.polygamma(ops.add(n, 1), x[0])])

    def following(k: int) -> Any:
        c = zeta(k)
        return c if c is ZERO else ops.mul(factor, c)

    return _by_slope(slope, following, x)


@taylor(ops.polygamma_p)
def _polygamma_taylor(ans: Series, n: Series, x: Series) -> Coefficient | None:
    return _polygamma(with_array(n, ans)[0], with_array(x, ans)) if is_fixed(n) else None


def _trigamma(x: Series) -> Coefficient:
    """Return the Taylor coefficients, from order 1 on, of the trigamma function, zeta(2, x).

    For negative x it is (pi / sin(pi x))**2 - zeta(2, 1 - x). With c = pi / tan(pi x) the square is pi**2 + c**2, and
    its coefficients are found from the equation c' = -(pi**2 + c**2).
    """
    two = Series([shapes.full((), 2, x[0].dtype)])
    if is_on_host(x[0]) and not (host_value(x[0]) < 0).any():
        return _of_positive(two, x)
    below = ops.lt(x[0], 0)
    size = ops.where(below, ops.sub(1, x[0]), x[0])
    sign = ops.where(below, shapes.full((), -1, x[0].dtype), 1)
    turned = Series([size], lambda k: x[k] if x[k] is ZERO else ops.mul(sign, x[k]))
    zeta = _of_positive(two, turned)
    offset = ops.where(below, ops.sub(x[0], ops.round_p.bind(x[0])), 0.5)
    cotangent = Series([ops.div(math.pi, ops.tan_p.bind(ops.mul(math.pi, offset)))])
    slope = Series([ops.add(ops.square(cotangent[0]), math.pi**2)])
    along = integral(slope, derivative(x), -1)

    def coefficient(k: int) -> Any:
        cotangent.known.append(along(k))
        slope.known.append(of_square(cotangent, k))
        c = zeta(k)
        return c if c is ZERO else ops.add(ops.mul(sign, c), ops.where(below, slope[k], 0))

    return coefficient


@taylor(ops.trigamma_p)
def _trigamma_taylor(ans: Series, x: Series) -> Coefficient:
    return _trigamma(x)


@taylor(ops.digamma_p)
def _digamma_taylor(ans: Series, x: Series) -> Coefficient:
    slope = Series([ops.trigamma_p.bind(x[0])])
    return _by_slope(slope, _trigamma(x), x)


@taylor(ops.lgamma_p)
def _lgamma_taylor(ans: Series, x: Series) -> Coefficient:
    slope = Series([ops.digamma(x[0])])
    return _by_slope(slope, _digamma_taylor(slope, x), x)


def _by_slope(slope: Series, following: Coefficient, x: Series) -> Coefficient:
    """Return the Taylor coefficients of f(x), from order 1 on, for a function f and the series ``x``.

    ``slope`` is the series of f'(x), with its first coefficient only. ``following(k)`` returns the coefficient k of
    this series.
    """
    along = integral(slope, derivative(x))

    def coefficient(k: int) -> Any:
        if k > 1:
            slope.known.append(following(k - 1))
        return along(k)

    return coefficient
