"""Elementwise special functions that no rule of another operation needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.backends.host import special as host_special
from pullback.core import dtypes
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive
from pullback.core.types import ZERO
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT, INEXACT
from pullback.primitives.declare import composite, elementwise
from pullback.primitives.large import compiled_from
from pullback.primitives.power_series import derivative, is_fixed, of_product, times, total, with_array
from pullback.primitives.reductions import reduce_or
from pullback.primitives.special.precision import log_of_positive
from pullback.primitives.special.quadrature import SERIES_BELOW, in_series, integral

# Products with logarithms --------------------------------------------------------------------------------------------


def _zero_times(logarithm: Any) -> Any:
    """Make the lowering rule of ``x * logarithm(y)``; the product is zero where x is zero, unless y is NaN."""

    def product(x: Any, y: Any) -> Any:
        zero = ops.and_p.bind(ops.eq(x, 0), ops.eq(y, y))
        return ops.where(zero, 0, ops.mul(x, logarithm(y)))

    return lambda hlo, x, y: hlo.inline(product, x, y)


def _quotient(x: Any, y: Any, *, power: int) -> Any:
    """Return ``x / y**power``, or 0 where ``x`` is 0."""
    return ops.where(ops.eq(x, 0), 0, ops.div(x, ops.integer_pow(y, power)))


quotient_p: Primitive = composite(
    "quotient", of=INEXACT, formula=_quotient,
    jvp=(
        lambda t, x, y, power: ops.mul(t, ops.integer_pow(y, -power)),
        lambda t, x, y, power: ops.mul(t, ops.mul(-power, quotient_p.bind(x, y, power=power + 1))),
    ),
)  # fmt: skip
xlogy_p = elementwise(
    "xlogy", of=INEXACT, arity=2, host=host.special("xlogy"), hlo=_zero_times(ops.log),
    jvp=(
        lambda t, x, y, ans: ops.mul(t, ops.log(y)),
        lambda t, x, y, ans: ops.mul(t, quotient_p.bind(x, y, power=1)),
    ),
)  # fmt: skip
xlog1py_p = elementwise(
    "xlog1py", of=INEXACT, arity=2, host=host.special("xlog1py"), hlo=_zero_times(ops.log1p_p.bind),
    jvp=(
        lambda t, x, y, ans: ops.mul(t, ops.log1p_p.bind(y)),
        lambda t, x, y, ans: ops.mul(t, quotient_p.bind(x, ops.add(y, 1), power=1)),
    ),
)  # fmt: skip


def _by_logarithm(logarithm: Callable[[Any], Any], shift: int) -> Callable[..., Coefficient]:
    """Make the Taylor rule of ``x * log(y + shift)``; the product is zero where x is zero, even if the log is infinite.

    ``logarithm`` is the function of y that returns ``log(y + shift)``, and ``shift`` is 0 or 1.
    """

    def rule(ans: Series, x: Series, y: Series) -> Coefficient:
        factor, base = with_array(x, ans), with_array(y, ans)
        zero, inner = ops.eq(factor[0], 0), ops.add(base[0], shift)
        if is_fixed(x):
            inner = ops.where(ops.and_p.bind(zero, ops.eq(inner, 0)), 1, inner)
        moved, speed = Series([inner], lambda k: base[k]), derivative(base)
        logs, slope = Series([logarithm(base[0])]), Series([])

        def coefficient(k: int) -> Any:
            rest = ops.difference(speed[k - 1], of_product(moved, slope, k - 1, first=1))
            slope.known.append(rest if rest is ZERO else ops.div(rest, inner))
            logs.known.append(times(slope[k - 1], 1 / k))
            first = logs[k] if logs[k] is ZERO else ops.where(zero, 0, ops.mul(factor[0], logs[k]))
            return total([first, of_product(factor, logs, k, first=1)])

        return coefficient

    return rule


taylor(xlogy_p)(_by_logarithm(ops.log, 0))
taylor(xlog1py_p)(_by_logarithm(ops.log1p_p.bind, 1))


def _entr(x: Any) -> Any:
    negative = ops.lt(x, 0)
    inside = ops.where(negative, 1, x)
    return ops.where(negative, -math.inf, ops.sub(0, xlogy_p.bind(inside, inside)))


entr_p = elementwise(
    "entr", of=FLOAT, host=host.special("entr"), hlo=lambda hlo, x: hlo.inline(_entr, x),
    jvp=lambda t, x, ans: ops.where(ops.lt(x, 0), 0, ops.mul(t, ops.sub(-1, ops.log(ops.where(ops.lt(x, 0), 1, x))))),
)  # fmt: skip


# The inverse of the logistic function --------------------------------------------------------------------------------


def _logit(x: Any) -> Any:
    """Return the logit log(x) - log(1 - x).

    Near x = 1/2, where it is zero, it is computed as 2 artanh(2 x - 1): there 2 x - 1 has no rounding error.
    """
    if dtypes.is_complex(x.dtype):
        near = ops.lt(ops.abs(ops.sub(x, 0.5)), 0.2)
    else:
        near = ops.and_p.bind(ops.gt(x, 0.3), ops.lt(x, 0.65))
    twice = ops.where(near, ops.sub(ops.mul(x, 2), 1), 0)
    far = ops.sub(ops.log(x), ops.log1p_p.bind(ops.neg(x)))
    return ops.where(near, ops.mul(ops.atanh_p.bind(twice), 2), far)


logit_p = elementwise(
    "logit", of=INEXACT, host=host.logit, hlo=lambda hlo, x: hlo.inline(_logit, x),
    jvp=lambda t, x, ans: ops.div(ops.div(t, x), ops.sub(1, x)),
)  # fmt: skip


# (exp(x) - 1) / x ----------------------------------------------------------------------------------------------------


def _exprel(x: Any) -> Any:
    wide = _in_single(x)
    at_end = ops.or_p.bind(ops.eq(wide, 0), ops.eq(wide, math.inf))
    safe = ops.where(at_end, 1, wide)
    limit = 80.0 if wide.dtype.itemsize == 4 else 700.0  # above, the exponential overflows before the quotient
    half = ops.exp(ops.mul(safe, 0.5))
    quotient = ops.where(ops.gt(safe, limit), ops.mul(ops.div(half, safe), half), ops.div(ops.expm1_p.bind(safe), safe))
    out = ops.where(at_end, ops.where(ops.eq(wide, 0), 1, wide), quotient)
    return ops.convert_element_type(out, x.dtype)


def _in_single(x: Any) -> Any:
    return ops.convert_element_type(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x


def _exprel_derivative(x: Any, *, order: int) -> Any:
    """Return the integral of t**n exp(x t) over t from 0 to 1, without cancellation, where n is ``order``.

    Far from zero, integration by parts yields (exp(x) - n I) / x, where I is the integral for n - 1. For positive x all
    terms are divided by exp(x), which would overflow before the result does. Near zero the integral is the sum of x**k
    / k! / (n + k + 1) over k. For negative x it is exp(x) times the sum of (-x)**k n! / (n + k + 1)!, by Kummer's
    transformation, so that no term is negative.
    """
    dtype, n = x.dtype, order
    x = _in_single(x)
    bound = 2.0 * (n + 1)
    count = 3 * int(bound) + 25
    size, negative = ops.abs(x), ops.lt(x, 0)
    near = ops.lt(size, bound)
    small, large = ops.where(near, size, 0), ops.where(near, bound, size)
    above = ops.polynomial(small, [1 / (math.factorial(k) * (n + k + 1)) for k in range(count, -1, -1)])
    below = ops.polynomial(small, [math.factorial(n) / math.factorial(n + k + 1) for k in range(count, -1, -1)])
    decay = ops.exp(ops.neg(large))
    falling = (1 - decay) / large  # of -large, and of large divided by exp(large)
    rising = falling
    for k in range(1, n + 1):
        falling = (k * falling - decay) / large
        rising = (1 - k * rising) / large
    half = ops.exp(ops.mul(large, 0.5))
    rising = ops.where(ops.gt(large, 2000), math.inf, ops.mul(ops.mul(rising, half), half))
    positive = ops.where(near, above, rising)
    out = ops.where(negative, ops.where(near, ops.mul(ops.exp(ops.neg(small)), below), falling), positive)
    return ops.convert_element_type(ops.where(ops.ne_p.bind(x, x), x, out), dtype)


exprel_derivative_p: Primitive = composite(
    "exprel_derivative", of=FLOAT, formula=_exprel_derivative,
    jvp=(lambda t, x, order: ops.mul(t, exprel_derivative_p.bind(x, order=order + 1)),),
)  # fmt: skip
exprel_p = elementwise(
    "exprel", doc=("Compute ``(exp(x) - 1) / x``, which is 1 at zero, with all its derivatives there.", "0.0", "1.0"),
    of=FLOAT, host=host.special("exprel"), hlo=lambda hlo, x: hlo.inline(_exprel, x),
    jvp=lambda t, x, ans: ops.mul(t, exprel_derivative_p.bind(x, order=1)),
)  # fmt: skip


@in_series(exprel_p)
def _exprel_in_series(x: Any) -> Any:
    """Evaluate exprel for its Taylor rule: the integral of exp(x t) over t from 0 to 1.

    The largest value of the integrand is a factor outside of the integral, so that the integrand does not overflow.
    """
    at = ops.stop_gradient_p.bind(x)
    size, rising, moved = ops.abs(at), ops.gt(at, 0), ops.sub(x, at)
    end = ops.min_p.bind(ops.div(SERIES_BELOW, size), 1)

    def integrand(t: Any, moved: Any, size: Any, rising: Any) -> Any:
        return ops.exp(moved * ops.where(rising, 1 - t, t) - size * t)

    growth = ops.exp(ops.mul(ops.where(rising, size, 0), 0.5))
    return ops.mul(ops.mul(integral(integrand, end, moved, size, rising), growth), growth)


# The zeta function of Hurwitz ----------------------------------------------------------------------------------------

_TERMS = 12
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _zeta_derivative(s: Any, q: Any, *, order: int) -> Any:
    """Return the derivative of the Hurwitz zeta function with respect to s, of order n = ``order``.

    It is the sum of (-log(q + k))**n (q + k)**-s over k >= 0. The Euler-Maclaurin formula for n = 0 is differentiated
    term by term (DLMF 25.11.5, 2.10.1).
    """
    dtype, double = s.dtype, np.dtype(np.float64)
    s, q = ops.convert_element_type(s, double), ops.convert_element_type(q, double)
    total: Any = None
    for k in range(_TERMS):
        base = ops.add(q, k)
        power = ops.pow(base, ops.neg(s))
        term = ops.mul(power, _power_of_logarithm(base, order))
        total = term if total is None else ops.add(total, term)
    base = ops.add(q, _TERMS)
    last = ops.pow(base, ops.neg(s))
    for i in range(order + 1):
        logarithms = _power_of_logarithm(base, order - i)
        tail = ops.div(ops.mul(base, (-1) ** i * math.factorial(i)), ops.integer_pow(ops.sub(s, 1), i + 1))
        if i == 0:
            tail = ops.add(tail, 0.5)
        for j, bernoulli in enumerate(_BERNOULLI, 1):
            rising = np.poly1d(-np.arange(2 * j - 1), r=True).deriv(i).coeffs * (bernoulli / math.factorial(2 * j))
            slope = ops.polynomial(s, [float(c) for c in rising])
            tail = ops.add(tail, ops.mul(ops.integer_pow(base, 1 - 2 * j), slope))
        term = ops.mul(ops.mul(last, logarithms), ops.mul(tail, math.comb(order, i)))
        total = ops.add(total, term)
    return ops.convert_element_type(total, dtype)


def _power_of_logarithm(base: Any, order: int) -> Any:
    return ops.integer_pow(ops.neg(ops.log(base)), order)


def _zeta_by_q(t: Any, s: Any, q: Any, order: int) -> Any:
    above = ops.add(s, 1)
    slope = ops.mul(s, _zeta_of_order(above, q, order))
    if order:
        slope = ops.add(slope, ops.mul(_zeta_of_order(above, q, order - 1), order))
    return ops.mul(t, ops.neg(slope))


def _zeta_of_order(s: Any, q: Any, order: int) -> Any:
    return zeta_derivative_p.bind(s, q, order=order) if order else zeta_p.bind(s, q)


zeta_derivative_p: Primitive = composite(
    "zeta_derivative", of=FLOAT, formula=_zeta_derivative,
    jvp=(lambda t, s, q, order: ops.mul(t, zeta_derivative_p.bind(s, q, order=order + 1)), _zeta_by_q),
)  # fmt: skip
zeta_p = elementwise(
    "zeta", of=FLOAT, arity=2, host=host_special.zeta, hlo=lambda hlo, s, q: _zeta_lowering(hlo, s, q),
    jvp=(
        lambda t, s, q, ans: ops.mul(t, zeta_derivative_p.bind(s, q, order=1)),
        lambda t, s, q, ans: _zeta_by_q(t, s, q, 0),
    ),
)  # fmt: skip
compiled_from(zeta_p, 50_000, unless=host_special.has_loop_of_two)  # 100,000: 9333 / 1208, of 64 bits 9402 / 6016


def _zeta_lowering(hlo: Any, s: Any, q: Any) -> Any:
    """Emit the Hurwitz zeta function of ``s`` and ``q``.

    If all q are positive it is one sum; if some q are negative, it combines three sums.
    """
    double, index = np.dtype(np.float64), np.dtype(np.int64)
    terms, power = (9, ops.pow) if hlo.result.dtype == double else (5, _power_of_singles)
    wide = [hlo.convert(hlo.broadcast(x, hlo.result.shape), double) for x in (s, q)]
    below = hlo.inline(lambda q: reduce_or(ops.lt(q, 0), tuple(range(len(q.shape)))), wide[1])
    count = hlo.op("stablehlo.select", [below, hlo.number(3, index), hlo.number(1, index)], (), index)
    kinds = [((), index), (hlo.result.shape, double)]

    def body(i: Any, total: Any) -> list[Any]:
        term = hlo.inline(partial(_zeta_term, terms=terms, power=power), i, *wide)
        return [
            hlo.elementwise("stablehlo.add", i, hlo.number(1, index)),
            hlo.elementwise("stablehlo.add", total, term),
        ]

    going = hlo.region(kinds, lambda i, total: [hlo.compare(i, count, "LT")])
    start = [hlo.number(0, index), hlo.splat(0, hlo.result.shape, double)]
    total = hlo.multi_result("stablehlo.while", start, kinds, regions=[going, hlo.region(kinds, body)])[1]
    return hlo.convert(hlo.inline(_zeta_at_ends, total, *wide), hlo.result.dtype)


def _zeta_term(i: Any, s: Any, q: Any, terms: int, power: Any) -> Any:
    """Return term ``i`` of three terms that add up to the Hurwitz zeta function.

    Term 0 is the sum of (q + k)**-s over the k with q + k > 0. Terms 1 and 2 are zero for positive q. For negative q, s
    must be an integer, and the other k have the absolute values abs(q + k) of r, r + 1, ..., -q, with r = ceil(q) - q.
    Up to a sign, the sum over these values is the infinite sum from r on (term 1) minus the infinite sum from 1 - q on
    (term 2).

    Args:
      i: the number of the term, 0, 1 or 2.
      s, q: the operands.
      terms: the number of explicit terms of each sum.
      power: a function ``power(x, y)`` that computes x**y.
    """
    below, nearest = ops.lt(q, 0), ops.sub(ops.ceil_p.bind(q), q)
    first, second = ops.eq(i, 0), ops.eq(i, 1)
    start = ops.where(first, ops.where(below, ops.sub(1, nearest), q), ops.where(second, nearest, ops.sub(1, q)))
    value = _zeta_sum(s, ops.where(ops.gt(start, 0), start, 1), terms, power)
    half = ops.mul(s, 0.5)
    even = ops.eq(ops.floor_p.bind(half), half)
    sign = ops.where(ops.eq(second, even), value, ops.neg(value))
    at_integers = ops.where(ops.eq(ops.floor_p.bind(s), s), sign, math.nan)
    return ops.where(first, value, ops.where(below, at_integers, 0))


def _power_of_singles(base: Any, exponent: Any) -> Any:
    """Return base**exponent for positive bases, with an error below the rounding error of single precision."""
    return ops.exp(ops.mul(log_of_positive(base), exponent))


def _zeta_sum(s: Any, q: Any, terms: int, power: Any) -> Any:
    """Return the sum of (q + k)**-s over k >= 0, for positive q.

    The first ``terms`` terms are added; the rest is the Euler-Maclaurin formula (DLMF 25.11.5). ``power(x, y)``
    computes x**y.
    """
    s = ops.min_p.bind(s, 1e15)
    last = q + terms
    total = power(last, -s)
    inverse = 1 / last
    square = ops.square(inverse)
    rising = s * inverse
    tail = last / (s - 1) + 0.5
    for j, bernoulli in enumerate(_BERNOULLI[: terms + 1], 1):
        tail = tail + rising * (bernoulli / math.factorial(2 * j))
        rising = rising * square * ((s + (2 * j - 1)) * (s + 2 * j))
    total = total * tail
    for k in reversed(range(terms)):
        total = total + power(q + k, -s)
    return total


def _zeta_at_ends(out: Any, s: Any, q: Any) -> Any:
    """Correct ``out``, the zeta function of ``s`` and ``q``, at its special points, as in SciPy.

    It is infinite at s = 1, and at q = 0, -1, -2, ... for s > 1. It is NaN for s < 1, and zero for infinite q.
    """
    pole = ops.and_p.bind(ops.le_p.bind(q, 0), ops.eq(ops.floor_p.bind(q), q))
    pole = ops.or_p.bind(ops.eq(s, 1), ops.and_p.bind(pole, ops.gt(s, 1)))
    out = ops.where(ops.eq(q, math.inf), 0, out)
    out = ops.where(pole, math.inf, ops.where(ops.lt(s, 1), math.nan, out))
    return ops.where(ops.ne_p.bind(q, q), q, out)
