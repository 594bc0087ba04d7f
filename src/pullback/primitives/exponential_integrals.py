"""Integrals of exponentials, sines and cosines over their variable, and the dilogarithm.

Compiled, they are series near zero and integrals of positive functions elsewhere, so that nothing cancels. Whatever the
dtype, they are computed in double precision and rounded once. Formulas with numbers such as 6.2.1 are those of the
*Digital Library of Mathematical Functions*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from pullback.backends import host
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import at_once, by_formula, elementwise, in_double
from pullback.primitives.elementwise import abs, add, div, eq, exp, gt, integer_pow, log, lt, mul, neg, square, sub
from pullback.primitives.precision import doubled
from pullback.primitives.quadrature import SERIES_BELOW, in_blocks, in_series, integral

_expm1, _log1p = ops.expm1_p.bind, ops.log1p_p.bind
_or, _and = ops.or_p.bind, ops.and_p.bind
_ge, _le, _ne = ops.ge_p.bind, ops.le_p.bind, ops.ne_p.bind
_maximum, _minimum = ops.max_p.bind, ops.min_p.bind
_where, _polynomial = ops.where, ops.polynomial
_fixed = ops.stop_gradient_p.bind

_BELOW = 38.0
_GAMMA = float(np.euler_gamma)


# The exponential integrals -------------------------------------------------------------------------------------------

_LEAST = 0.25
"""Below, the exponential integrals are series."""
_TERMS = 14


def _expn(n: Any, x: Any) -> Any:
    """exp(-x) times the integral of exp(-x (exp(u) - 1) - (n - 1) u), which is 8.19.3 with t = exp(u).

    Near zero it is the series 8.19.8. Orders below one, which derivatives ask for, are
    integrals of exp(-y) (1 + y/x)**-n.
    """
    safe_n = _where(_ge(n, 1), n, 1)
    far = _maximum(x, _LEAST)
    end = _minimum(_log1p(div(_BELOW, far)), div(_BELOW, _maximum(sub(safe_n, 1), 1e-300)))
    whole = integral(lambda u, x, n: exp(neg(add(mul(x, _expm1(u)), mul(n, u)))), end, far, sub(safe_n, 1))
    near = _minimum(_maximum(x, 1e-320), _LEAST)
    series, term = None, None
    for k in range(_TERMS):  # without the term where k = n - 1, in whose place stands a logarithm
        term = 1.0 if term is None else mul(term, div(near, -k))
        below = sub(k + 1, safe_n)
        part = div(term, _where(eq(below, 0), math.inf, below))
        series = part if series is None else add(series, part)
    few = _minimum(safe_n, _TERMS + 1.0)
    power = mul(
        ops.pow(near, sub(few, 1)), _where(eq(ops.rem_p.bind(few, 2.0), 0), -1.0, shapes.full((), 1.0, near.dtype))
    )
    power = div(power, exp(ops.lgamma_p.bind(few)))
    series = sub(mul(power, sub(ops.digamma(few), log(near))), series)
    value = _where(lt(x, _LEAST), series, mul(whole, exp(neg(x))))
    at_zero = _where(gt(n, 1), div(1, _maximum(sub(n, 1), 0.5)), math.inf)
    value = _where(eq(x, 0), at_zero, value)
    power = _maximum(neg(n), 0)
    size = _maximum(x, 1e-300)
    ends = add(mul(power, 6), _BELOW)
    low = integral(lambda y, x, m: mul(exp(neg(y)), ops.pow(add(1, div(y, x)), m)), ends, size, power)
    low = _where(eq(n, 0), 1, low)
    value = _where(_le(n, 0), div(mul(exp(neg(x)), low), x), value)
    value = _where(eq(x, math.inf), 0, value)
    known = _and(_ge(x, 0), eq(ops.floor_p.bind(n), n))
    return _where(known, value, math.nan)


def _host_expn(n: Any, x: Any) -> Any:
    """SciPy's function, and orders below zero, m! exp(-x) / x**(m + 1) times the sum of x**k / k!, 8.4.10."""
    out = _scipy_expn(np.asarray(n, np.float64), np.asarray(x, np.float64))
    if np.any(np.asarray(n) <= 0):
        m, wide = np.maximum(-np.asarray(n, np.float64), 0), np.asarray(x, np.float64)
        special = _scipy_gammaincc(m + 1, wide) * _scipy_gamma(m + 1) / wide ** (m + 1)
        out = np.where(np.asarray(n) == 0, np.exp(-wide) / wide, np.where(np.asarray(n) < 0, special, out))
    return np.asarray(out).astype((x if hasattr(x, "dtype") else n).dtype)[()]


_scipy_expn, _scipy_gammaincc, _scipy_gamma = host.special("expn"), host.special("gammaincc"), host.special("gamma")
expn_p: Primitive = elementwise(
    "expn", of=FLOAT, arity=2, host=_host_expn, hlo=in_blocks(_expn),
    jvp=(None, lambda t, n, x, ans: neg(mul(t, expn_p.bind(sub(n, 1), x)))),
    cost=Cost.SPECIAL,
)  # fmt: skip


@in_series(expn_p)
def _expn_in_series(n: Any, x: Any) -> Any:
    """As the value: near zero the series, elsewhere the integral of exp(-x exp(u) - (n - 1) u); n is 0, 1, ...

    The series has a logarithm where k = n - 1; if that is beyond its last term, the logarithm does not count.
    """
    close = lt(x, _LEAST)
    far, near = _where(close, _LEAST, x), _where(close, x, _LEAST)
    end = _minimum(_log1p(div(SERIES_BELOW, _fixed(far))), div(SERIES_BELOW, _maximum(sub(n, 1), 1)))
    whole = integral(lambda u, x, n: exp(neg(add(mul(x, exp(u)), mul(n, u)))), end, far, sub(n, 1))
    terms = 20
    below = [sub(k + 1, n) for k in range(terms)]
    factors = [div((-1) ** k / math.factorial(k), _where(eq(b, 0), math.inf, b)) for k, b in enumerate(below)]
    series = factors[-1]
    for factor in factors[-2::-1]:
        series = add(mul(series, near), factor)
    few = _minimum(_maximum(n, 1), terms + 1.0)
    sign = _where(eq(ops.rem_p.bind(few, 2.0), 0), -1.0, shapes.full((), 1.0, near.dtype))
    power = mul(ops.pow(near, sub(few, 1)), div(sign, exp(ops.lgamma_p.bind(few))))
    series = sub(mul(power, sub(ops.digamma(few), log(near))), series)
    return _where(eq(n, 0), div(exp(neg(x)), x), _where(close, series, whole))


@cache
def _by_taylor(function: str, centre: float) -> list[float]:
    """The Taylor series about a point of the integral from there of f(x) / x, by falling powers."""
    turn, exponential = (lambda k: math.cos(centre + k * math.pi / 2)), math.exp(centre)
    derivatives = {"cos": turn, "exp(-x)": lambda k: (-1) ** k / exponential, "exp": lambda k: exponential}[function]
    quotient, found = 0.0, [0.0]
    for k in range(40):
        quotient = (derivatives(k) / math.factorial(k) - quotient) / centre
        found.append(quotient / (k + 1))
    return found[::-1]


_MIDDLE, _E1_THERE = 0.75, 0.34034081291123000781


def _host_exp1(x: Any) -> Any:
    """SciPy's function; next to 1, where that is a sum that cancels, Taylor's series."""
    out = np.asarray(_scipy_exp1(x))
    close = (x > 0.45) & (x <= 1)
    if x.dtype == np.float64 and np.any(close):
        out[close] = _E1_THERE - np.polyval(_by_taylor("exp(-x)", _MIDDLE), np.asarray(x)[close] - _MIDDLE)
    return out[()]


_scipy_exp1 = host.special("exp1")
exp1_p: Primitive = elementwise(
    "exp1", of=FLOAT, host=_host_exp1, hlo=in_blocks(lambda x: _exp1(x)),
    jvp=lambda t, x, ans: neg(mul(t, div(exp(neg(x)), x))),
    cost=Cost.SPECIAL,
)  # fmt: skip


def _exp1(x: Any) -> Any:
    far = _maximum(x, _LEAST)
    whole = integral(lambda u, x: exp(neg(mul(x, _expm1(u)))), _log1p(div(_BELOW, far)), far)
    near = _minimum(x, _LEAST)
    series = sub(mul(near, _near_zero(neg(near))), add(log(near), _GAMMA))
    value = _where(lt(x, _LEAST), series, mul(whole, exp(neg(x))))
    return _where(eq(x, 0), math.inf, _where(eq(x, math.inf), 0, _where(_ge(x, 0), value, math.nan)))


def _near_zero(x: Any) -> Any:
    """The sum of x**(k - 1) / k / k! over k from 1."""
    return _polynomial(x, [1 / (k * math.factorial(k)) for k in range(_TERMS, 0, -1)])


_DIVERGING = [float(math.factorial(k)) for k in range(40, -1, -1)]


def _expi(x: Any) -> Any:
    """The logarithm, γ, and exp(x) times the integral of (exp(-s) - exp(-x)) / (x - s) over s from 0 to x, 6.2.7.

    From 50 on the product is the asymptotic series 6.12.2.
    """
    size = _minimum(_maximum(x, 1e-320), 1e300)
    whole = integral(
        lambda s, x: mul(exp(neg(s)), div(_expm1(sub(s, x)), sub(s, x))), _minimum(size, 45.0), _maximum(size, 1e-30)
    )
    inverse = div(1, _maximum(size, 50))
    whole = _where(gt(size, 50), mul(inverse, _polynomial(inverse, _DIVERGING)), whole)
    rest = _maximum(sub(size, 700), 0)
    large = mul(mul(whole, exp(sub(size, rest))), exp(rest))
    near = _minimum(size, _LEAST)
    value = add(_where(lt(x, _LEAST), mul(near, _near_zero(near)), large), add(log(size), _GAMMA))
    value = _where(gt(x, 720), math.inf, value)
    out = _where(gt(x, 0), value, neg(_exp1(_where(lt(x, 0), neg(x), 1))))
    return _where(eq(x, 0), -math.inf, _where(_ne(x, x), x, out))


_ROOT, _ROOT_REST = 0.3725074107813666, 1.3140183414386028e-17  # of Ei, and what it is more
_PIECES = (6.0, 12.0, 25.0, 50.0)


@cache
def _expi_piece(low: float, high: float) -> Any:
    """x exp(-x) Ei(x) as a polynomial, from 6.6.1 in decimals, whose terms are positive."""
    gamma = Decimal("0.5772156649015328606065120900824024310421593")

    def at(size: float) -> float:
        x = Decimal(size)
        term, total = Decimal(1), gamma + x.ln()
        for k in range(1, 60 + 4 * int(high)):
            term *= x / k
            total += term / k
        return float(total * x * (-x).exp())

    with localcontext() as context:
        context.prec = 40
        cosines = np.cos(np.pi * (np.outer(np.arange(24), np.arange(1, 48, 2)) % 96) / 48)
        middle = at((low + high) / 2)
        values = np.array([at((low + high) / 2 + t * (high - low) / 2) - middle for t in cosines[1]])
    terms = cosines @ values / 12
    terms[0] = middle + terms[0] / 2
    return np.polynomial.Chebyshev(terms, [low, high])


def _host_expi(x: Any) -> Any:
    """Of negative numbers -E1(-x); else, in doubles, where SciPy's loses up to 200 ulps, sums that do not cancel.

    Next to its root it is Taylor's series, up to 6 that at 0 (6.6.1), up to 50 polynomials, and then 6.12.2.
    """
    if x.dtype != np.float64:
        return _scipy_expi(x)
    out = np.asarray(_scipy_expi(np.where(x > 0, 1.0, x)))
    for low, high, formula in _EXPI_BY_SIZE:
        there = (x > low) & (x <= high)
        if np.any(there):
            out[there] = formula(np.asarray(x)[there])
    below = (x < -0.45) & (x >= -1)
    if np.any(below):
        out[below] = -_host_exp1(-np.asarray(x)[below])
    return out[()]


def _expi_by_series(x: Any) -> Any:
    return x * np.polyval([1 / (k * math.factorial(k)) for k in range(45, 0, -1)], x) + (np.log(x) + _GAMMA)


def _expi_far(x: Any) -> Any:
    half = np.exp(x / 2)
    return half * (np.polyval(_DIVERGING, 1 / x) / x) * half


def _expi_between(x: Any, low: float, high: float) -> Any:
    return np.exp(x) / x * _expi_piece(low, high)(x)


_EXPI_BY_SIZE: tuple[tuple[float, float, Callable[[Any], Any]], ...] = (
    (0.0, 0.22, _expi_by_series),
    (0.22, 0.54, lambda x: np.polyval(_by_taylor("exp", _ROOT), x - _ROOT - _ROOT_REST)),
    (0.54, _PIECES[0], _expi_by_series),
    *((a, b, partial(_expi_between, low=a, high=b)) for a, b in pairwise(_PIECES)),
    (_PIECES[-1], 720.0, _expi_far),
    (720.0, math.inf, lambda x: math.inf),
)
_scipy_expi = host.special("expi")
expi_p: Primitive = elementwise(
    "expi", of=FLOAT, host=_host_expi, hlo=in_blocks(_expi),
    jvp=lambda t, x, ans: mul(t, div(exp(x), x)),
    cost=Cost.SPECIAL,
)  # fmt: skip


# The sine and cosine integrals ---------------------------------------------------------------------------------------

_SERIES = 3.0
_scipy_sici = host.special_pair("sici")


def _sici(x: Any, *, cosine: bool) -> Any:
    """Near zero by series (6.6.5, 6.6.6), elsewhere by the auxiliary functions (6.2.19, 6.7.13); t is exp(u) - 1."""
    size = abs(x)
    near = _minimum(size, _SERIES)
    first = 2 if cosine else 1
    terms = range(17, -1, -1)
    coefficients = [(-1) ** (k + cosine) / ((2 * k + first) * math.factorial(2 * k + first)) for k in terms]
    within = mul(integer_pow(near, first), _polynomial(square(near), coefficients))
    if cosine:
        within = add(within, add(log(near), _GAMMA))
    far = _minimum(_maximum(size, _SERIES), 1e300)
    end = _log1p(div(_BELOW, far))

    def fall(u: Any, x: Any) -> Any:
        t = _expm1(u)
        return div(exp(sub(u, mul(x, t))), add(1, square(t)))

    f, g = integral(fall, end, far), integral(lambda u, x: mul(fall(u, x), _expm1(u)), end, far)
    sine, other = ops.sin(far), ops.cos(far)
    if cosine:
        outside = sub(mul(f, sine), mul(g, other))
    else:
        outside = sub(sub(math.pi / 2, mul(f, other)), mul(g, sine))
    value = _where(lt(size, _SERIES), within, outside)
    value = _where(eq(size, math.inf), 0 if cosine else math.pi / 2, value)
    if cosine:
        return _where(eq(x, 0), -math.inf, _where(eq(x, -math.inf), math.nan, value))
    return _where(eq(x, 0), x, mul(ops.sign(x), value))


def _sinc_derivative(x: Any, *, order: int) -> Any:
    """A derivative of sin(x) / x: the integral of t**n sin(x t + (n + 1) π / 2) over t from 0 to 1."""
    size = abs(x)
    near = lt(size, 2.0 * order + 2)
    small, large = _where(near, size, 0), _where(near, 2.0 * order + 2, size)
    count = 4 * order + 28
    # The derivative of the sum of (-1)**k x**(2k) / (2k + 1)!
    least = (order + 1) // 2
    coefficients = [
        (-1) ** k * math.perm(2 * k, order) / math.factorial(2 * k + 1)
        for k in range(least + count // 2, least - 1, -1)
    ]
    inside = mul(integer_pow(small, 2 * least - order), _polynomial(square(small), coefficients))
    turns = [ops.sin(large), ops.cos(large), neg(ops.sin(large)), neg(ops.cos(large))]
    value = div(turns[0], large)
    for n in range(1, order + 1):
        value = div(sub(turns[n % 4], mul(n, value)), large)
    out = _where(near, inside, value)
    return _where(lt(x, 0), neg(out), out) if order % 2 else out


sinc_derivative_p: Primitive = by_formula(
    "sinc_derivative", of=FLOAT, formula=doubled(_sinc_derivative),
    jvp=(lambda t, x, order: mul(t, sinc_derivative_p.bind(x, order=order + 1)),),
)  # fmt: skip
_APART = 20.0
"""Closer to zero the quotient of sin(x) and x would lose in each order."""


@in_series(sinc_derivative_p)
def _sinc_in_series(x: Any, *, order: int) -> Any:
    """The integral, and far from zero by parts."""
    near = lt(abs(x), _APART)
    small, large = _where(near, x, 0), _where(near, _APART, x)
    turns = [ops.sin, ops.cos, lambda x: neg(ops.sin(x)), lambda x: neg(ops.cos(x))]
    turn = turns[(order + 1) % 4]
    end = shapes.full(x.shape, 1.0, x.dtype)
    inside = integral(lambda t, x: mul(turn(mul(x, t)), integer_pow(t, order)), end, small)
    outside = div(ops.sin(large), large)
    for n in range(1, order + 1):
        outside = div(sub(turns[n % 4](large), mul(n, outside)), large)
    return _where(near, inside, outside)


sine_integral_p: Primitive = elementwise(
    "sine_integral", of=FLOAT, host=lambda x: _scipy_sici(x)[0], hlo=in_blocks(partial(_sici, cosine=False)),
    jvp=lambda t, x, ans: mul(t, sinc_derivative_p.bind(x, order=0)),
)  # fmt: skip
_CENTRE, _CI_THERE = 3.4375, -0.015067984362017532


def _host_sici(x: Any) -> list[Any]:
    """SciPy's functions; Ci of 2.8 to 4.05, where that is a sum that cancels, by the Taylor series."""
    sine, cosine = _scipy_sici(x)
    size = np.abs(x)
    if (x < 0).any():
        cosine = np.where((x < 0) & (x > -np.inf), _scipy_sici(size)[1], cosine)[()]
    close = (size > 2.8) & (size < 4.05)
    if x.dtype == np.float64 and close.any():
        series = _CI_THERE + np.polyval(_by_taylor("cos", _CENTRE), np.where(close, size, _CENTRE) - _CENTRE)
        cosine = np.where(close, series, cosine)[()]
    return [sine, cosine]


cosine_integral_p: Primitive = elementwise(
    "cosine_integral", of=FLOAT, host=lambda x: _host_sici(x)[1], hlo=in_blocks(partial(_sici, cosine=True)),
    jvp=lambda t, x, ans: mul(t, div(ops.cos(x), x)),
)  # fmt: skip
sici = at_once(
    "sici", host=_host_sici, otherwise=lambda x: [sine_integral_p.bind(x), cosine_integral_p.bind(x)], results=2
)


# The dilogarithm -----------------------------------------------------------------------------------------------------


_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330]
_EVEN_TERMS = [b / math.factorial(2 * k + 1) for k, b in enumerate(_BERNOULLI, 1)]


def _spence(x: Any) -> Any:
    """Li2(1 - x) by Bernoulli's numbers, in the variable -log(x) (A. van Wijngaarden, *Polylogarithms*, 1954).

    Below 1/2 by the reflection 25.12.6, above 2 by that and 25.12.4.
    """
    low, high = lt(x, 0.5), gt(x, 2)
    inner = _where(low, sub(1, x), _where(high, sub(1, div(1, x)), x))
    u = neg(_log1p(sub(_where(_and(_ge(inner, 0.4), _le(inner, 2)), inner, 1), 1)))
    square_part = square(u)
    value = add(mul(mul(u, square_part), _polynomial(square_part, _EVEN_TERMS[::-1])), mul(u, sub(1, mul(u, 0.25))))
    logarithm = log(_where(_or(low, high), _maximum(x, 1e-320), 1))
    below = sub(sub(math.pi**2 / 6, mul(logarithm, _log1p(neg(_where(low, x, 0))))), value)
    rest = mul(logarithm, _log1p(neg(div(1, _where(high, x, 2)))))
    above = sub(value, add(add(mul(square(logarithm), 0.5), rest), math.pi**2 / 6))
    out = _where(low, _where(eq(x, 0), math.pi**2 / 6, below), _where(high, above, value))
    out = _where(eq(x, math.inf), -math.inf, out)
    return _where(_ge(x, 0), out, math.nan)


def _log_ratio(y: Any, *, order: int) -> Any:
    """A derivative of log(1 + y) / y: by its series near zero, and by Leibniz's rule elsewhere."""
    near = lt(abs(y), 0.25)
    small, large = _where(near, y, 0), _where(near, 1, y)
    count = 30 + 2 * order
    coefficients = [(-1) ** k / (k + 1) * math.perm(k, order) for k in range(order + count, order - 1, -1)]
    value, inverse = div(_log1p(large), large), div(1, add(1, large))
    for n in range(1, order + 1):
        power = mul(integer_pow(inverse, n), (-1.0) ** (n - 1) * math.factorial(n - 1))
        value = div(sub(power, mul(n, value)), large)
    return _where(near, _polynomial(small, coefficients), value)


log_ratio_p: Primitive = by_formula(
    "log_ratio", of=FLOAT, formula=doubled(_log_ratio),
    jvp=(lambda t, y, order: mul(t, log_ratio_p.bind(y, order=order + 1)),),
)  # fmt: skip


_ONWARD = 4.0
"""From here on the quotient of log(1 + y) and y serves; closer to zero it would lose in each order."""


@in_series(log_ratio_p)
def _log_ratio_in_series(y: Any, *, order: int) -> Any:
    """The integral of 1 / (1 + t y) over t from 0 to 1, which y from -1/2 on allows, and the quotient."""
    near = lt(y, _ONWARD)
    small, large = _where(near, y, 0), _where(near, _ONWARD, y)
    size = (-1) ** order * math.factorial(order)

    def integrand(t: Any, y: Any) -> Any:
        return mul(integer_pow(div(1, add(mul(t, y), 1)), order + 1), mul(integer_pow(t, order), size))

    inside = integral(integrand, shapes.full(y.shape, 1.0, y.dtype), small)
    outside, inverse = div(_log1p(large), large), div(1, add(1, large))
    for n in range(1, order + 1):
        power = mul(integer_pow(inverse, n), (-1.0) ** (n - 1) * math.factorial(n - 1))
        outside = div(sub(power, mul(n, outside)), large)
    return _where(near, inside, outside)


def _host_spence(x: Any) -> Any:
    """SciPy's function, which is NaN at infinity, and off by some 18 roundings next to 1/2 and 2."""
    out = _scipy_spence(x)
    if np.isposinf(x).any():
        out = np.where(np.isposinf(x), x.dtype.type(-np.inf), out)[()]
    close = ((x > 0.3) & (x < 0.95)) | ((x > 1.4) & (x < 3.2))
    if x.dtype != np.float64 or not np.any(close):
        return out
    y = np.where(close, x, 0.75)
    low, high = y < 0.5, y > 2
    u = -np.log(np.where(low, 1 - y, np.where(high, 1 - 1 / y, y)))
    value = u * (1 - u / 4) + u * u * u * np.polyval(_EVEN_TERMS[::-1], u * u)
    logarithm = np.log(y)
    below = np.pi**2 / 6 - logarithm * np.log1p(-np.minimum(y, 0.9)) - value
    above = value - (logarithm * (logarithm / 2 + np.log1p(-1 / np.maximum(y, 1.2))) + np.pi**2 / 6)
    return np.where(close, np.where(low, below, np.where(high, above, value)), out)[()]


def _spence_slope(x: Any) -> Any:
    """log(x) / (x - 1): near zero as it is, for x - 1 would lose x, and else as a function of x - 1."""
    near = lt(x, 0.5)
    small, large = _where(near, x, 0.25), _where(near, 1, x)
    return _where(near, div(ops.log(small), sub(small, 1)), log_ratio_p.bind(sub(large, 1), order=0))


_scipy_spence = host.special("spence")
spence_p: Primitive = elementwise(
    "spence", of=FLOAT, host=_host_spence, hlo=in_double(_spence),
    jvp=lambda t, x, ans: neg(mul(t, _spence_slope(x))),
)  # fmt: skip
