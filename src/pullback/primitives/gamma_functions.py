"""The gamma function itself, Euler's beta function, binomial coefficients and rising factorials.

Compiled, whatever the dtype, they are computed in double precision and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends import host
from pullback.core.array import ArrayImpl
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import by_formula, elementwise, in_double
from pullback.primitives.elementwise import (
    abs,
    add,
    digamma,
    div,
    eq,
    exp,
    gt,
    log,
    lt,
    mul,
    neg,
    pow,
    square,
    sub,
)
from pullback.primitives.precision import doubled

_lgamma, _log1p = ops.lgamma_p.bind, ops.log1p_p.bind
_or, _and = ops.or_p.bind, ops.and_p.bind
_ge, _le, _ne = ops.ge_p.bind, ops.le_p.bind, ops.ne_p.bind
_maximum, _minimum = ops.max_p.bind, ops.min_p.bind
_where, _polynomial, _floor = ops.where, ops.polynomial, ops.floor_p.bind


def _number(value: float, like: Any) -> Any:
    return shapes.full((), value, like.dtype)


def _is_pole(x: Any) -> Any:
    """Whether a number is 0, -1, -2, ..."""
    return _and(_le(x, 0), eq(_floor(x), x))


# The gamma function --------------------------------------------------------------------------------------------------

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
_LEAST = 9


def stirling_error(a: Any) -> Any:
    """log Γ(a) - (a - 1/2) log a + a - log(2π) / 2 for a from 9 on, by its asymptotic series (DLMF 5.11.1)."""
    return div(_polynomial(div(1, square(a)), _STIRLING[::-1]), a)


def _gamma(x: Any) -> Any:
    """Stirling's formula from 9 on, the recurrence to there below, and the reflection formula left of zero."""
    size = abs(x)
    steps = _maximum(sub(_LEAST, _floor(size)), 0)
    product: Any = None
    for k in range(_LEAST):
        factor = _where(gt(steps, k), add(size, k), 1)
        product = factor if product is None else mul(product, factor)
    base = _minimum(add(size, steps), 200)
    rounded = sub(size, sub(base, steps))  # of the sum
    half = pow(base, sub(mul(base, 0.5), 0.25))
    decay, error = exp(neg(base)), exp(stirling_error(base))
    below = mul(mul(pow(_minimum(base, 100), sub(_minimum(base, 100), 0.5)), decay), error)
    value = _where(lt(base, 100), below, mul(mul(half, decay), mul(half, error)))
    slope = mul(_where(lt(size, _LEAST), rounded, 0), sub(log(base), div(0.5, base)))
    value = div(mul(mul(value, math.sqrt(2 * math.pi)), add(1, slope)), product)
    value = _where(gt(size, 180), math.inf, value)
    rest = sub(size, mul(2, ops.round_p.bind(mul(size, 0.5))))
    sine = ops.sin(mul(_where(gt(abs(rest), 0.5), sub(ops.sign(rest), rest), rest), math.pi))
    # Near zero the product of two small numbers underflows, and far out that of two large ones overflows.
    near, far = mul(mul(size, value), sine), mul(mul(size, sine), value)
    reflected = neg(div(math.pi, _where(lt(size, 1), near, far)))
    reflected = _where(gt(size, 180), 0, reflected)
    out = _where(gt(x, 0), value, _where(_is_pole(x), math.nan, reflected))
    out = _where(eq(x, 0), div(1, x), out)
    return _where(_ne(x, x), x, _where(eq(x, -math.inf), math.nan, out))


gamma_p: Primitive = elementwise(
    "gamma", of=FLOAT, host=host.special("gamma"), hlo=in_double(_gamma),
    jvp=lambda t, x, ans: mul(t, mul(ans, digamma(x))),
)  # fmt: skip


def _gamma_sign(x: Any) -> Any:
    """1 or -1; at zero the sign of the zero, at other poles no number."""
    odd = eq(ops.rem_p.bind(_floor(x), 2.0), _where(lt(x, 0), _number(-1, x), 1))
    sign = _where(_and(lt(x, 0), odd), _number(-1, x), 1)
    sign = _where(eq(x, 0), ops.sign(div(1, x)), sign)
    pole = _or(_and(lt(x, 0), eq(_floor(x), x)), _ne(x, x))
    return _where(pole, math.nan, sign)


gamma_sign_p: Primitive = elementwise("gamma_sign", of=FLOAT, host=lambda x: _host_sign(x), hlo=in_double(_gamma_sign))


def _host_sign(x: Any) -> Any:
    with np.errstate(all="ignore"):
        wide = np.asarray(x, np.float64)
        floor = np.floor(wide)
        sign = np.where((wide < 0) & (floor % 2 == 1), -1.0, 1.0)
        sign = np.where(wide == 0, np.copysign(1.0, wide), sign)
        return np.where((wide < 0) & (floor == wide) | np.isnan(wide), np.nan, sign).astype(x.dtype)[()]


# The beta function ---------------------------------------------------------------------------------------------------


def _betaln_positive(a: Any, b: Any) -> Any:
    """log B of a up to b: from 9 on no logarithms cancel (Didonato and Morris, 1992)."""
    large_a, large_b = _ge(a, _LEAST), _ge(b, _LEAST)
    wide_b = _where(large_b, b, _LEAST)
    wide_a = _where(large_a, a, _LEAST)
    ratio = div(_where(large_a, wide_a, _minimum(a, wide_b)), wide_b)
    total = add(_where(large_a, wide_a, _minimum(a, wide_b)), wide_b)
    spread = mul(sub(total, 0.5), _log1p(ratio))
    error = sub(stirling_error(wide_b), stirling_error(total))
    middle = add(sub(sub(_lgamma(a), mul(a, log(wide_b))), sub(spread, a)), error)
    both = add(sub(mul(a, log(_where(large_a, ratio, 1))), spread), sub(error, neg(stirling_error(wide_a))))
    both = add(both, sub(0.5 * math.log(2 * math.pi), mul(0.5, log(wide_a))))
    small = sub(add(_lgamma(a), _lgamma(b)), _lgamma(add(a, b)))
    return _where(large_a, both, _where(large_b, middle, small))


def _betaln(a: Any, b: Any) -> Any:
    low, high = _minimum(a, b), _maximum(a, b)
    inside = _and(gt(low, 0), lt(high, math.inf))
    positive = _betaln_positive(_where(inside, low, 1), _where(inside, high, 1))
    total = add(low, high)
    other = sub(add(_lgamma(low), _lgamma(high)), _lgamma(total))
    # Of a negative operand beside a large one: the difference of the logarithms of two large gamma functions.
    distant = _and(_and(lt(low, 0), lt(high, math.inf)), gt(total, _LEAST))
    wide = [_where(distant, v, w) for v, w in ((high, 20), (total, 19), (low, -1))]
    growth = add(mul(sub(wide[1], 0.5), _log1p(div(wide[2], wide[0]))), sub(mul(wide[2], log(wide[0])), wide[2]))
    errors = sub(stirling_error(wide[0]), stirling_error(wide[1]))
    other = _where(distant, add(sub(_lgamma(low), growth), errors), other)
    other = _where(_and(_is_pole(low), _ne(other, other)), math.inf, other)
    infinite = _and(eq(high, math.inf), gt(low, 0))
    value = _where(inside, positive, _where(infinite, -math.inf, other))
    limit = _has_limit(low, high)
    count, turned = _where(limit, high, 1), _where(limit, sub(1, total), 1)
    return _where(limit, _betaln_positive(_minimum(count, turned), _maximum(count, turned)), value)


def _has_limit(low: Any, high: Any) -> Any:
    """Whether B(-n, m) is (-1)**m B(m, n - m + 1): of integers, m from 1 to n."""
    return _and(_and(_is_pole(low), _is_pole(add(low, high))), _and(eq(_floor(high), high), gt(high, 0)))


_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
"""Of the asymptotic series of log(x) - 1 / (2 x) - digamma(x), in powers of 1 / x**2."""


def _digamma_gap(a: Any, b: Any) -> Any:
    """digamma(a + b) - digamma(a), of which a small b leaves no digits: the difference is taken of each term of the
    recurrence (DLMF 5.5.2) and of the asymptotic series from 9 on (5.11.2).
    """
    total = add(a, b)
    low, width = _minimum(a, total), abs(b)
    inside = _and(_and(gt(low, 0), lt(low, math.inf)), lt(width, math.inf))
    low, width = _where(inside, low, 1), _where(inside, width, 1)
    near = lt(low, _LEAST)
    base = _where(near, add(low, _LEAST), low)
    end = add(base, width)
    gap = add(_log1p(div(width, base)), div(div(width, base), mul(end, 2)))
    for k in range(_LEAST):
        start = _where(near, add(low, k), 1)
        gap = add(gap, _where(near, div(div(width, add(start, width)), start), 0))
    # The divided difference of a polynomial, by Horner's rule.
    x, y = square(div(1, base)), square(div(1, end))
    value, slope = mul(x, 0), mul(x, 0)
    for c in (*_DIGAMMA[::-1], 0.0):
        slope, value = add(mul(slope, y), value), add(mul(value, x), c)
    gap = add(gap, mul(slope, mul(mul(div(width, end), add(1, div(base, end))), x)))
    return _where(inside, _where(lt(b, 0), neg(gap), gap), sub(digamma(total), digamma(a)))


def _trigamma(x: Any) -> Any:
    return ops.polygamma_p.bind(_number(1, x), x)


digamma_gap_p: Primitive = by_formula(
    "digamma_gap", of=FLOAT, formula=doubled(_digamma_gap),
    jvp=(
        lambda t, a, b: mul(t, sub(_trigamma(add(a, b)), _trigamma(a))),
        lambda t, a, b: mul(t, _trigamma(add(a, b))),
    ),
)  # fmt: skip


def _digamma_less(a: Any, b: Any) -> Any:
    """The derivative of log B by a."""
    return neg(digamma_gap_p.bind(a, b))


betaln_p: Primitive = elementwise(
    "betaln", of=FLOAT, arity=2, host=host.special("betaln"), hlo=in_double(_betaln),
    jvp=(
        lambda t, a, b, ans: mul(t, _digamma_less(a, b)),
        lambda t, a, b, ans: mul(t, _digamma_less(b, a)),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _beta(a: Any, b: Any) -> Any:
    """Γ(a) Γ(b) / Γ(a + b) while none overflows, beyond by the logarithm; of negative integers a limit."""
    low, high = _minimum(a, b), _maximum(a, b)
    total = add(low, high)
    few = _and(lt(high, 170), _and(lt(total, 170), gt(low, -170)))
    values = [_where(few, x, 1) for x in (high, total, low)]
    gammas = [_gamma(x) for x in values]
    direct = mul(div(gammas[0], gammas[1]), gammas[2])
    direct = _where(_and(_is_pole(total), _ne(_is_pole(low), True)), 0, direct)
    sign = mul(mul(_gamma_sign(low), _gamma_sign(high)), _gamma_sign(total))
    value = _where(few, direct, mul(sign, exp(_betaln(a, b))))
    limit = _has_limit(low, high)
    parity = _where(eq(ops.rem_p.bind(_where(limit, high, 1), 2.0), 1), _number(-1, a), 1)
    ratio = mul(parity, exp(_betaln(low, high)))
    pole = _and(_is_pole(low), _ne(limit, True))
    return _where(limit, ratio, _where(pole, math.inf, value))


beta_p: Primitive = elementwise(
    "beta", of=FLOAT, arity=2, host=host.special("beta"), hlo=in_double(_beta),
    jvp=(
        lambda t, a, b, ans: mul(t, mul(ans, _digamma_less(a, b))),
        lambda t, a, b, ans: mul(t, mul(ans, _digamma_less(b, a))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


# Binomial coefficients and rising factorials --------------------------------------------------------------------------


def _binomial(n: Any, k: Any) -> Any:
    """Γ(n + 1) / Γ(k + 1) / Γ(n - k + 1) of k from 0 to n, while none overflows; beyond by the beta function."""
    few = lt(n, 169)
    above, below = _where(few, n, 1), _where(few, k, 1)
    rest = sub(above, below)
    larger, smaller = _maximum(below, rest), _minimum(below, rest)
    direct = div(div(_gamma(add(above, 1)), _gamma(add(larger, 1))), _gamma(add(smaller, 1)))
    logarithm = _betaln_positive(add(_minimum(k, sub(n, k)), 1), add(_maximum(k, sub(n, k)), 1))
    distant = exp(neg(add(logarithm, _log1p(n))))
    value = _where(few, direct, distant)
    whole = _and(eq(_floor(n), n), eq(_floor(k), k))
    return _where(_and(whole, lt(abs(value), 2.0**52)), ops.round_p.bind(value), value)


binomial_p: Primitive = elementwise(
    "binomial", of=FLOAT, arity=2, host=host.special("binom"), hlo=in_double(_binomial),
    jvp=(
        lambda t, n, k, ans: mul(t, mul(ans, digamma_gap_p.bind(add(sub(n, k), 1), k))),
        lambda t, n, k, ans: mul(t, mul(ans, digamma_gap_p.bind(add(k, 1), sub(sub(n, k), k)))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip


_FAR = 10.0


def _far_ratio(low: Any, m: Any) -> Any:
    """Γ(low + m) / Γ(low), or Γ(low) / Γ(low - m) for negative m, of numbers from 10 on: by Stirling's series.

    Its large terms make a power, so that what is left is small: the error is about that of the size of m, in units in
    the last place.
    """
    size = abs(m)
    high = add(low, size)

    exponent = add(
        sub(mul(sub(high, 0.5), _log1p(div(size, low))), size), sub(stirling_error(high), stirling_error(low))
    )
    return mul(ops.pow(low, m), exp(_where(gt(m, 0), exponent, neg(exponent))))


def _poch(z: Any, m: Any) -> Any:
    """Γ(z + m) / Γ(z); for large z by Stirling's series or the beta function, for poles by their ratio."""
    total = add(z, m)
    low = _minimum(z, total)
    few = _and(_and(lt(abs(z), 170), lt(abs(total), 170)), _ne(_is_pole(z), True))
    few = _and(few, ops.or_p.bind(lt(low, _FAR), eq(_floor(m), m)))
    direct = div(_gamma(_where(few, total, 1)), _gamma(_where(few, z, 1)))
    positive = _and(gt(z, 0), gt(total, 0))
    size = abs(m)
    safe = _and(positive, gt(size, 0))
    # log Γ(high) - log Γ(low) is log Γ(|m|) - log B(low, |m|).
    one, other = _where(safe, low, 1), _where(safe, size, 1)
    growth = sub(_lgamma(other), _betaln(one, other))
    distant = exp(_where(gt(m, 0), growth, neg(growth)))
    far = _and(safe, _ge(low, _FAR))
    distant = _where(far, _far_ratio(_where(far, low, _FAR), _where(far, m, 1)), distant)
    signs = mul(_gamma_sign(total), _gamma_sign(z))
    general = mul(signs, exp(sub(_lgamma(total), _lgamma(z))))
    value = _where(few, direct, _where(positive, distant, general))
    both = _and(_is_pole(z), _is_pole(total))
    turned = [_where(both, sub(1, x), 1) for x in (z, total)]
    parity = _where(eq(ops.rem_p.bind(abs(m), 2.0), 1), _number(-1, z), 1)
    small = lt(turned[0], 170)
    ratio = _where(small, div(_gamma(_where(small, turned[0], 1)), _gamma(_where(small, turned[1], 1))), exp(
        sub(_lgamma(turned[0]), _lgamma(turned[1]))
    ))  # fmt: skip
    value = _where(both, mul(parity, ratio), _where(_is_pole(z), 0, value))
    # z + m is a pole, and z is none: infinite, unless z is so small that the sum is m.
    whole, odd = _where(lt(m, 0), neg(m), 1), eq(ops.rem_p.bind(m, 2.0), -1)
    tiny = div(_where(odd, _number(-1, z), 1), _gamma(add(whole, 1)))
    alone = _and(_is_pole(total), _ne(_is_pole(z), True))
    value = _where(alone, _where(eq(total, m), tiny, math.inf), value)
    return _where(eq(m, 0), 1, value)


_scipy_poch = host.special("poch")


def _host_poch(z: Any, m: Any) -> Any:
    """SciPy's function; of large numbers, where it subtracts logarithms, Stirling's series, unless m is whole."""
    out = _scipy_poch(z, m)
    wide, change = np.broadcast_arrays(np.asarray(z, np.float64), np.asarray(m, np.float64))
    low, high = np.minimum(wide, wide + change), np.maximum(wide, wide + change)
    far = (low >= _FAR) & ((high > 170) | (np.floor(change) != change)) & np.isfinite(high)
    if not np.any(far):
        return out
    out = np.array(out)
    out[far] = _far_ratio(ArrayImpl(low[far]), ArrayImpl(change[far]))._value
    return out[()]


poch_p: Primitive = elementwise(
    "poch", of=FLOAT, arity=2, host=_host_poch, hlo=in_double(_poch),
    jvp=(
        lambda t, z, m, ans: mul(t, mul(ans, digamma_gap_p.bind(z, m))),
        lambda t, z, m, ans: mul(t, mul(ans, digamma(add(z, m)))),
    ),
    cost=Cost.SPECIAL,
)  # fmt: skip
