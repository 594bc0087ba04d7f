"""The gamma function, Euler's beta function, binomial coefficients and rising factorials.

When compiled, they are computed in double precision and rounded once, for every dtype.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.core.array import ArrayImpl
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import composite, elementwise, in_double
from pullback.primitives.elementwise import add, mul, neg, sub
from pullback.primitives.special.precision import doubled

from pullback.primitives.formulas import (  # isort: skip
    binary, digamma, exp, floor, formula, lgamma, log, log1p, maximum, minimum, polynomial, remainder,
    round, sign, sin, square, unary, where,
)  # fmt: skip

ne, digamma_slope = binary(ops.ne_p), unary(ops.trigamma_p)


def _number(value: float, like: Any) -> Any:
    return shapes.full((), value, like.dtype)


def _is_pole(x: Any) -> Any:
    """Return whether ``x`` is a pole of the gamma function: 0, -1, -2, ..."""
    return (x <= 0) & (floor(x) == x)


# The gamma function --------------------------------------------------------------------------------------------------

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
_LEAST = 9


def stirling_error(a: Any) -> Any:
    """Return the error of Stirling's formula, ``log Γ(a) - (a - 1/2) log a + a - log(2π) / 2``, for a >= 9.

    It is an asymptotic series (DLMF 5.11.1).
    """
    return polynomial(1 / square(a), _STIRLING[::-1]) / a


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _trigamma(x: Any, *, single: bool) -> Any:
    """Evaluate the second derivative of the logarithm of the gamma function, to single precision if ``single``.

    Numbers from 12 on (6 if ``single``) have an asymptotic series (DLMF 5.15.8), to which smaller ones are raised by
    the recurrence ``trigamma(x) = trigamma(x + 1) + 1 / x²``. For negative numbers it is the reflection formula.
    """
    size, least, terms = abs(x), 6 if single else 12, 5 if single else 8
    small = size < least
    inverse = 1 / where(small, size + least, size)
    first, sum_ = 1 / square(size), 1 / square(size + 1)
    for k in range(2, least):
        sum_ = sum_ + 1 / square(size + k)
    rest = where(small, sum_, -first)
    series = inverse * (1 + inverse * (0.5 + inverse * polynomial(square(inverse), _BERNOULLI[:terms][::-1])))
    distance = where(size < 2.0**52, size - round(size), 0)
    reflected = square(math.pi / sin(math.pi * distance)) - (rest + series)
    return where(x < 0, where(distance == 0, math.inf, reflected), (first + rest) + series)


def trigamma(hlo: Any, x: Any) -> Any:
    """Emit the second derivative of the logarithm of the gamma function."""
    return in_double(partial(formula(_trigamma), single=x.dtype.itemsize < 8))(hlo, x)


def _gamma(x: Any) -> Any:
    """Evaluate the gamma function.

    From 9 on it is Stirling's formula; smaller numbers are raised to 9 by the recurrence; for negative numbers it is
    the reflection formula.
    """
    size = abs(x)
    steps = maximum(_LEAST - floor(size), 0)
    product: Any = None
    for k in range(_LEAST):
        factor = where(steps > k, size + k, 1)
        product = factor if product is None else product * factor
    base = minimum(size + steps, 200)
    rounded = size - (base - steps)  # the rounding error of the sum
    half = base ** (base * 0.5 - 0.25)
    decay, error = exp(-base), exp(stirling_error(base))
    below = minimum(base, 100) ** (minimum(base, 100) - 0.5) * decay * error
    value = where(base < 100, below, half * decay * (half * error))
    slope = where(size < _LEAST, rounded, 0) * (log(base) - 0.5 / base)
    value = value * math.sqrt(2 * math.pi) * (1 + slope) / product
    value = where(size > 180, math.inf, value)
    rest = size - 2 * round(size * 0.5)
    sine = sin(where(abs(rest) > 0.5, sign(rest) - rest, rest) * math.pi)
    # Near zero a product of two small factors would underflow, and far from it one of two large factors overflow.
    near, far = size * value * sine, size * sine * value
    reflected = -(math.pi / where(size < 1, near, far))
    reflected = where(size > 180, 0, reflected)
    out = where(x > 0, value, where(_is_pole(x), math.nan, reflected))
    out = where(x == 0, 1 / x, out)
    return where(x != x, x, where(x == -math.inf, math.nan, out))


gamma_p: Primitive = elementwise(
    "gamma", of=FLOAT, host=host.special("gamma"), hlo=in_double(formula(_gamma)),
    jvp=lambda t, x, ans: mul(t, mul(ans, ops.digamma(x))),
)  # fmt: skip


def _gamma_sign(x: Any) -> Any:
    """Return the sign of the gamma function: 1 or -1.

    At zero it is the sign of the zero, and at the poles -1, -2, ... it is NaN.
    """
    odd = remainder(floor(x), 2.0) == where(x < 0, _number(-1, x), 1)
    out = where((x < 0) & odd, _number(-1, x), 1)
    out = where(x == 0, sign(1 / x), out)
    pole = ((x < 0) & (floor(x) == x)) | (x != x)
    return where(pole, math.nan, out)


gamma_sign_p: Primitive = elementwise(
    "gamma_sign", of=FLOAT, host=lambda x: _host_sign(x), hlo=in_double(formula(_gamma_sign))
)


def _host_sign(x: Any) -> Any:
    with np.errstate(all="ignore"):
        wide = np.asarray(x, np.float64)
        floor = np.floor(wide)
        sign = np.where((wide < 0) & (floor % 2 == 1), -1.0, 1.0)
        sign = np.where(wide == 0, np.copysign(1.0, wide), sign)
        return np.where((wide < 0) & (floor == wide) | np.isnan(wide), np.nan, sign).astype(x.dtype)[()]


# The beta function ---------------------------------------------------------------------------------------------------


def _betaln_positive(a: Any, b: Any) -> Any:
    """Return ``log B(a, b)`` for 0 < a <= b.

    For b from 9 on differences of Stirling errors replace logarithms that would cancel (Didonato and Morris, 1992).
    """
    large_a, large_b = a >= _LEAST, b >= _LEAST
    wide_b = where(large_b, b, _LEAST)
    wide_a = where(large_a, a, _LEAST)
    ratio = where(large_a, wide_a, minimum(a, wide_b)) / wide_b
    total = where(large_a, wide_a, minimum(a, wide_b)) + wide_b
    spread = (total - 0.5) * log1p(ratio)
    error = stirling_error(wide_b) - stirling_error(total)
    middle = lgamma(a) - a * log(wide_b) - (spread - a) + error
    both = a * log(where(large_a, ratio, 1)) - spread + (error - -stirling_error(wide_a))
    both = both + (0.5 * math.log(2 * math.pi) - 0.5 * log(wide_a))
    small = lgamma(a) + lgamma(b) - lgamma(a + b)
    return where(large_a, both, where(large_b, middle, small))


def _betaln(a: Any, b: Any) -> Any:
    low, high = minimum(a, b), maximum(a, b)
    inside = (low > 0) & (high < math.inf)
    positive = _betaln_positive(where(inside, low, 1), where(inside, high, 1))
    total = low + high
    other = lgamma(low) + lgamma(high) - lgamma(total)
    # For a negative and a large operand: the difference of the logarithms of two large gamma functions.
    distant = (low < 0) & (high < math.inf) & (total > _LEAST)
    wide = [where(distant, v, w) for v, w in ((high, 20), (total, 19), (low, -1))]
    growth = (wide[1] - 0.5) * log1p(wide[2] / wide[0]) + (wide[2] * log(wide[0]) - wide[2])
    errors = stirling_error(wide[0]) - stirling_error(wide[1])
    other = where(distant, lgamma(low) - growth + errors, other)
    other = where(_is_pole(low) & (other != other), math.inf, other)
    infinite = (high == math.inf) & (low > 0)
    value = where(inside, positive, where(infinite, -math.inf, other))
    limit = _has_limit(low, high)
    count, turned = where(limit, high, 1), where(limit, 1 - total, 1)
    return where(limit, _betaln_positive(minimum(count, turned), maximum(count, turned)), value)


def _has_limit(low: Any, high: Any) -> Any:
    """Return whether the beta function B(low, high) is finite although Γ(low) has a pole.

    This holds where ``low`` is -n and ``high`` is m, for integers n and m with 1 <= m <= n. There B(-n, m) is (-1)**m
    B(m, n - m + 1).
    """
    return _is_pole(low) & _is_pole(low + high) & ((floor(high) == high) & (high > 0))


_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
"""The coefficients of the asymptotic series of log(x) - 1 / (2 x) - digamma(x), in powers of 1 / x**2."""


def _digamma_gap(a: Any, b: Any) -> Any:
    """Return ``digamma(a + b) - digamma(a)``, without cancellation for small b.

    It is a sum of differences of terms: of the recurrence up to 9 (DLMF 5.5.2), and of the asymptotic series from 9 on
    (DLMF 5.11.2).
    """
    total = a + b
    low, width = minimum(a, total), abs(b)
    inside = (low > 0) & (low < math.inf) & (width < math.inf)
    low, width = where(inside, low, 1), where(inside, width, 1)
    near = low < _LEAST
    base = where(near, low + _LEAST, low)
    end = base + width
    gap = log1p(width / base) + width / base / (end * 2)
    for k in range(_LEAST):
        start = where(near, low + k, 1)
        gap = gap + where(near, width / (start + width) / start, 0)
    # The divided difference of a polynomial, by Horner's rule.
    x, y = square(1 / base), square(1 / end)
    value, slope = x * 0, x * 0
    for c in (*_DIGAMMA[::-1], 0.0):
        slope, value = slope * y + value, value * x + c
    gap = gap + slope * (width / end * (1 + base / end) * x)
    return where(inside, where(b < 0, -gap, gap), digamma(total) - digamma(a))


digamma_gap_p: Primitive = composite(
    "digamma_gap", of=FLOAT, formula=doubled(formula(_digamma_gap)),
    jvp=(
        formula(lambda t, a, b: t * (digamma_slope(a + b) - digamma_slope(a))),
        formula(lambda t, a, b: t * digamma_slope(a + b)),
    ),
)  # fmt: skip


def _digamma_less(a: Any, b: Any) -> Any:
    """Return the derivative of ``log B(a, b)`` with respect to a: ``digamma(a) - digamma(a + b)``."""
    return neg(digamma_gap_p.bind(a, b))


betaln_p: Primitive = elementwise(
    "betaln", of=FLOAT, arity=2, host=host.special("betaln"), hlo=in_double(formula(_betaln)),
    jvp=(
        lambda t, a, b, ans: mul(t, _digamma_less(a, b)),
        lambda t, a, b, ans: mul(t, _digamma_less(b, a)),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _beta(a: Any, b: Any) -> Any:
    """Evaluate the beta function B(a, b).

    It is Γ(a) Γ(b) / Γ(a + b), or exp(log B) where a factor would overflow. Where Γ(a) or Γ(b) has a pole, it is the
    limit if this is finite, else infinity.
    """
    low, high = minimum(a, b), maximum(a, b)
    total = low + high
    few = (high < 170) & ((total < 170) & (low > -170))
    values = [where(few, x, 1) for x in (high, total, low)]
    gammas = [_gamma(x) for x in values]
    direct = gammas[0] / gammas[1] * gammas[2]
    direct = where(_is_pole(total) & ne(_is_pole(low), True), 0, direct)
    sign = _gamma_sign(low) * _gamma_sign(high) * _gamma_sign(total)
    value = where(few, direct, sign * exp(_betaln(a, b)))
    limit = _has_limit(low, high)
    parity = where(remainder(where(limit, high, 1), 2.0) == 1, _number(-1, a), 1)
    ratio = parity * exp(_betaln(low, high))
    pole = _is_pole(low) & ne(limit, True)
    return where(limit, ratio, where(pole, math.inf, value))


beta_p: Primitive = elementwise(
    "beta", of=FLOAT, arity=2, host=host.special("beta"), hlo=in_double(formula(_beta)),
    jvp=(
        lambda t, a, b, ans: mul(t, mul(ans, _digamma_less(a, b))),
        lambda t, a, b, ans: mul(t, mul(ans, _digamma_less(b, a))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


# Binomial coefficients and rising factorials --------------------------------------------------------------------------


def _binomial(n: Any, k: Any) -> Any:
    """Evaluate the binomial coefficient for 0 <= k <= n.

    It is computed from gamma functions, or from the beta function where they would overflow.
    """
    few = n < 169
    above, below = where(few, n, 1), where(few, k, 1)
    rest = above - below
    larger, smaller = maximum(below, rest), minimum(below, rest)
    direct = _gamma(above + 1) / _gamma(larger + 1) / _gamma(smaller + 1)
    logarithm = _betaln_positive(minimum(k, n - k) + 1, maximum(k, n - k) + 1)
    distant = exp(-(logarithm + log1p(n)))
    value = where(few, direct, distant)
    are_integers = (floor(n) == n) & (floor(k) == k)
    return where(are_integers & (abs(value) < 2.0**52), round(value), value)


def _binomial_by_n(t: Any, n: Any, k: Any, ans: Any) -> Any:
    gap = digamma_gap_p.bind(add(sub(n, k), 1), k)
    return mul(t, mul(ans, gap))


def _binomial_by_k(t: Any, n: Any, k: Any, ans: Any) -> Any:
    gap = digamma_gap_p.bind(add(k, 1), sub(sub(n, k), k))
    return mul(t, mul(ans, gap))


binomial_p: Primitive = elementwise(
    "binomial", of=FLOAT, arity=2, host=host.special("binom"), hlo=in_double(formula(_binomial)),
    jvp=(_binomial_by_n, _binomial_by_k),
    cost=Cost.SPECIAL,
)  # fmt: skip


_FAR = 10.0


def _far_ratio(low: Any, m: Any) -> Any:
    """Return ``Γ(low + m) / Γ(low)`` for m > 0, and ``Γ(low) / Γ(low - m)`` for m < 0, where low >= 10.

    It is computed by Stirling's series as a power times a factor near 1. The error is about abs(m) units in the last
    place.
    """
    size = abs(m)
    high = low + size

    exponent = (high - 0.5) * log1p(size / low) - size + (stirling_error(high) - stirling_error(low))
    return low**m * exp(where(m > 0, exponent, -exponent))


def _poch(z: Any, m: Any) -> Any:
    """Evaluate the Pochhammer symbol ``Γ(z + m) / Γ(z)``.

    For large z it is computed by Stirling's series or the beta function. Where both gamma functions have a pole it is
    the ratio of their residues.
    """
    total = z + m
    low = minimum(z, total)
    few = (abs(z) < 170) & (abs(total) < 170) & ne(_is_pole(z), True)
    few = few & ((low < _FAR) | (floor(m) == m))
    direct = _gamma(where(few, total, 1)) / _gamma(where(few, z, 1))
    positive = (z > 0) & (total > 0)
    size = abs(m)
    safe = positive & (size > 0)
    # log Γ(high) - log Γ(low) is log Γ(|m|) - log B(low, |m|).
    one, other = where(safe, low, 1), where(safe, size, 1)
    growth = lgamma(other) - _betaln(one, other)
    distant = exp(where(m > 0, growth, -growth))
    far = safe & (low >= _FAR)
    distant = where(far, _far_ratio(where(far, low, _FAR), where(far, m, 1)), distant)
    signs = _gamma_sign(total) * _gamma_sign(z)
    general = signs * exp(lgamma(total) - lgamma(z))
    value = where(few, direct, where(positive, distant, general))
    both = _is_pole(z) & _is_pole(total)
    turned = [where(both, 1 - x, 1) for x in (z, total)]
    parity = where(remainder(abs(m), 2.0) == 1, _number(-1, z), 1)
    small = turned[0] < 170
    of_both = _gamma(where(small, turned[0], 1)) / _gamma(where(small, turned[1], 1))
    ratio = where(small, of_both, exp(lgamma(turned[0]) - lgamma(turned[1])))
    value = where(both, parity * ratio, where(_is_pole(z), 0, value))
    # z + m is a pole, and z is not: infinite, unless z is so small that the sum rounds to m.
    steps, odd = where(m < 0, -m, 1), remainder(m, 2.0) == -1
    tiny = where(odd, _number(-1, z), 1) / _gamma(steps + 1)
    alone = _is_pole(total) & ne(_is_pole(z), True)
    value = where(alone, where(total == m, tiny, math.inf), value)
    return where(m == 0, 1, value)


_scipy_poch = host.special("poch")


def _host_poch(z: Any, m: Any) -> Any:
    """Evaluate SciPy's poch on the host; where SciPy subtracts large logarithms, evaluate Stirling's series instead.

    SciPy does so for large numbers, if m is fractional or a gamma function overflows.
    """
    out = _scipy_poch(z, m)
    wide, change = (np.broadcast_to(np.asarray(x, np.float64), out.shape) for x in (z, m))
    low, high = np.minimum(wide, wide + change), np.maximum(wide, wide + change)
    far = (low >= _FAR) & ((high > 170) | (np.floor(change) != change)) & np.isfinite(high)
    if not np.any(far):
        return out
    out = np.array(out)
    out[far] = formula(_far_ratio)(ArrayImpl(low[far]), ArrayImpl(change[far]))._value
    return out[()]


def _poch_by_m(t: Any, z: Any, m: Any, ans: Any) -> Any:
    slope = mul(ans, ops.digamma(add(z, m)))
    return mul(t, slope)


poch_p: Primitive = elementwise(
    "poch", of=FLOAT, arity=2, host=_host_poch, hlo=in_double(formula(_poch)),
    jvp=(lambda t, z, m, ans: mul(t, mul(ans, digamma_gap_p.bind(z, m))), _poch_by_m),
    cost=Cost.SPECIAL,
)  # fmt: skip
