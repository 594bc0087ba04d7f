"""Exponential, sine and cosine integrals, and the dilogarithm.

When compiled, they are series near zero and integrals of positive functions otherwise, so that nothing cancels. For
every dtype they are computed in double precision and rounded once. Numbers such as 6.2.1 are formulas of the *Digital
Library of Mathematical Functions*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import composite, elementwise, host_fused, in_double
from pullback.primitives.elementwise import div, mul, neg, sub
from pullback.primitives.special.precision import doubled
from pullback.primitives.special.quadrature import SERIES_BELOW, in_blocks, in_series
from pullback.primitives.special.quadrature import formula_integral as integral

from pullback.primitives.formulas import (  # isort: skip
    cos, digamma, exp, expm1, floor, formula, lgamma, lifted, log, log1p, maximum, minimum, polynomial, remainder,
    sign, sin, square, where,
)  # fmt: skip
from pullback.primitives.formulas import stop_gradient as fixed

integer_pow = lifted(ops.integer_pow)

_BELOW = 38.0
_GAMMA = float(np.euler_gamma)


# The exponential integrals -------------------------------------------------------------------------------------------

_LEAST = 0.25
"""The variable below which the exponential integrals are series."""
_TERMS = 14


def _expn(n: Any, x: Any) -> Any:
    """Evaluate the exponential integral of order n at x.

    For orders from 1 on it is exp(-x) times the integral of exp(-x (exp(u) - 1) - (n - 1) u) over u > 0 (DLMF 8.19.3
    with t = exp(u)), and near x = 0 a series (DLMF 8.19.8). For lower orders, which derivatives need, it is an integral
    of exp(-y) (1 + y/x)**-n over y > 0.
    """
    safe_n = where(n >= 1, n, 1)
    far = maximum(x, _LEAST)
    end = minimum(log1p(_BELOW / far), _BELOW / maximum(safe_n - 1, 1e-300))
    distant = integral(lambda u, x, n: exp(-(x * expm1(u) + n * u)), end, far, safe_n - 1)
    near = minimum(maximum(x, 1e-320), _LEAST)
    series, term = None, None
    for k in range(_TERMS):  # without the term of k = n - 1, which is a logarithm instead
        term = 1.0 if term is None else term * (near / -k)
        below = k + 1 - safe_n
        summand = term / where(below == 0, math.inf, below)
        series = summand if series is None else series + summand
    few = minimum(safe_n, _TERMS + 1.0)
    power = near ** (few - 1) * where(remainder(few, 2.0) == 0, -1.0, shapes.full((), 1.0, near.dtype))
    power = power / exp(lgamma(few))
    series = power * (digamma(few) - log(near)) - series
    value = where(x < _LEAST, series, distant * exp(-x))
    at_zero = where(n > 1, 1 / maximum(n - 1, 0.5), math.inf)
    value = where(x == 0, at_zero, value)
    power = maximum(-n, 0)
    size = maximum(x, 1e-300)
    ends = power * 6 + _BELOW
    low = integral(lambda y, x, m: exp(-y) * (1 + y / x) ** m, ends, size, power)
    low = where(n == 0, 1, low)
    value = where(n <= 0, exp(-x) * low / x, value)
    value = where(x == math.inf, 0, value)
    known = (x >= 0) & (floor(n) == n)
    return where(known, value, math.nan)


def _host_expn(n: Any, x: Any) -> Any:
    """Evaluate SciPy's expn on the host, and extend it to orders below 1.

    For an order n = -m, at most 0, it is m! gammaincc(m + 1, x) / x**(m + 1), a finite sum (DLMF 8.4.10).
    """
    out = _scipy_expn(np.asarray(n, np.float64), np.asarray(x, np.float64))
    if np.any(np.asarray(n) <= 0):
        m, wide = np.maximum(-np.asarray(n, np.float64), 0), np.asarray(x, np.float64)
        special = _scipy_gammaincc(m + 1, wide) * _scipy_gamma(m + 1) / wide ** (m + 1)
        out = np.where(np.asarray(n) == 0, np.exp(-wide) / wide, np.where(np.asarray(n) < 0, special, out))
    return np.asarray(out).astype((x if hasattr(x, "dtype") else n).dtype)[()]


def _expn_by_x(t: Any, n: Any, x: Any, ans: Any) -> Any:
    """Return the tangent of ``ans = expn(n, x)`` for the tangent ``t`` of x: ``-t * expn(n - 1, x)`` (DLMF 8.19.13)."""
    of_order_below = expn_p.bind(sub(n, 1), x)
    return neg(mul(t, of_order_below))


_scipy_expn, _scipy_gammaincc, _scipy_gamma = host.special("expn"), host.special("gammaincc"), host.special("gamma")
expn_p: Primitive = elementwise(
    "expn", of=FLOAT, arity=2, host=_host_expn, hlo=in_blocks(formula(_expn)),
    jvp=(None, _expn_by_x),
    cost=Cost.SPECIAL,
)  # fmt: skip


@in_series(expn_p)
@formula
def _expn_in_series(n: Any, x: Any) -> Any:
    """Evaluate expn, for orders n >= 0, for its Taylor rule.

    It is a series for x near zero, else the integral of exp(-x exp(u) - (n - 1) u) over u > 0. The term k = n - 1 of
    the series is a logarithm; if the sum ends before this term, the term is negligible.
    """
    close = x < _LEAST
    far, near = where(close, _LEAST, x), where(close, x, _LEAST)
    end = minimum(log1p(SERIES_BELOW / fixed(far)), SERIES_BELOW / maximum(n - 1, 1))
    distant = integral(lambda u, x, n: exp(-(x * exp(u) + n * u)), end, far, n - 1)
    terms = 20
    below = [k + 1 - n for k in range(terms)]
    factors = [(-1) ** k / math.factorial(k) / where(b == 0, math.inf, b) for k, b in enumerate(below)]
    series = factors[-1]
    for factor in factors[-2::-1]:
        series = series * near + factor
    few = minimum(maximum(n, 1), terms + 1.0)
    sign = where(remainder(few, 2.0) == 0, -1.0, shapes.full((), 1.0, near.dtype))
    power = near ** (few - 1) * (sign / exp(lgamma(few)))
    series = power * (digamma(few) - log(near)) - series
    return where(n == 0, exp(-x) / x, where(close, series, distant))


@cache
def _by_taylor(function: str, centre: float) -> list[float]:
    """Return the Taylor coefficients in x - ``centre`` of the integral of f(t) / t over t from ``centre`` to x.

    ``function`` is the name of f: ``cos``, ``exp`` or ``exp(-x)``. The coefficient of the highest power comes first.
    """
    turn, exponential = (lambda k: math.cos(centre + k * math.pi / 2)), math.exp(centre)
    derivatives = {"cos": turn, "exp(-x)": lambda k: (-1) ** k / exponential, "exp": lambda k: exponential}[function]
    quotient, found = 0.0, [0.0]
    for k in range(40):
        quotient = (derivatives(k) / math.factorial(k) - quotient) / centre
        found.append(quotient / (k + 1))
    return found[::-1]


_MIDDLE, _E1_THERE = 0.75, 0.34034081291123000781


def _host_exp1(x: Any) -> Any:
    """Evaluate SciPy's exp1 on the host; from 0.45 to 1 evaluate a Taylor series instead.

    There SciPy's sum cancels in double precision.
    """
    out = np.asarray(_scipy_exp1(x))
    close = (x > 0.45) & (x <= 1)
    if x.dtype == np.float64 and np.any(close):
        out[close] = _E1_THERE - np.polyval(_by_taylor("exp(-x)", _MIDDLE), np.asarray(x)[close] - _MIDDLE)
    return out[()]


def _exp1_jvp(t: Any, x: Any, ans: Any) -> Any:
    integrand = div(ops.exp(neg(x)), x)
    return neg(mul(t, integrand))


_scipy_exp1 = host.special("exp1")
exp1_p: Primitive = elementwise(
    "exp1", of=FLOAT, host=_host_exp1, hlo=in_blocks(lambda x: _exp1(x)), jvp=_exp1_jvp,
    cost=Cost.SPECIAL,
)  # fmt: skip


@formula
def _exp1(x: Any) -> Any:
    far = maximum(x, _LEAST)
    distant = integral(lambda u, x: exp(-(x * expm1(u))), log1p(_BELOW / far), far)
    near = minimum(x, _LEAST)
    series = near * _near_zero(-near) - (log(near) + _GAMMA)
    value = where(x < _LEAST, series, distant * exp(-x))
    return where(x == 0, math.inf, where(x == math.inf, 0, where(x >= 0, value, math.nan)))


def _near_zero(x: Any) -> Any:
    """Return the sum of x**(k - 1) / (k k!) over k >= 1, for small x."""
    return polynomial(x, [1 / (k * math.factorial(k)) for k in range(_TERMS, 0, -1)])


_DIVERGING = [float(math.factorial(k)) for k in range(40, -1, -1)]


def _expi(x: Any) -> Any:
    """Evaluate the exponential integral Ei(x).

    For positive x it is log(x) + γ + exp(x) I, where I is the integral of (exp(-s) - exp(-x)) / (x - s) over s from 0
    to x (DLMF 6.2.7). From x = 50 on I is an asymptotic series (DLMF 6.12.2). For negative x it is -E1(-x).
    """
    size = minimum(maximum(x, 1e-320), 1e300)
    scaled = integral(lambda s, x: exp(-s) * (expm1(s - x) / (s - x)), minimum(size, 45.0), maximum(size, 1e-30))
    inverse = 1 / maximum(size, 50)
    scaled = where(size > 50, inverse * polynomial(inverse, _DIVERGING), scaled)
    rest = maximum(size - 700, 0)
    large = scaled * exp(size - rest) * exp(rest)
    near = minimum(size, _LEAST)
    value = where(x < _LEAST, near * _near_zero(near), large) + (log(size) + _GAMMA)
    value = where(x > 720, math.inf, value)
    out = where(x > 0, value, -_exp1(where(x < 0, -x, 1)))
    return where(x == 0, -math.inf, where(x != x, x, out))


_ROOT, _ROOT_REST = 0.3725074107813666, 1.3140183414386028e-17  # the root of Ei, and its rounding error
_PIECES = (6.0, 12.0, 25.0, 50.0)


@cache
def _expi_piece(low: float, high: float) -> Any:
    """Return a Chebyshev series that approximates x exp(-x) Ei(x) from ``low`` to ``high``.

    The values are computed by DLMF 6.6.1, whose terms are positive, in decimals of 40 digits.
    """
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
    """Evaluate SciPy's expi on the host; in double precision evaluate sums that do not cancel instead.

    SciPy loses up to 200 ulps. The sums are a Taylor series near the root of Ei, the series at 0 for x up to 6 (DLMF
    6.6.1), polynomials for x up to 50, and the asymptotic series beyond (DLMF 6.12.2). From -1 to -0.45 the result is
    -E1(-x).
    """
    if x.dtype != np.float64:
        return _scipy_expi(x)
    out = np.asarray(_scipy_expi(np.where(x > 0, 1.0, x)))
    for low, high, of_size in _EXPI_BY_SIZE:
        there = (x > low) & (x <= high)
        if np.any(there):
            out[there] = of_size(np.asarray(x)[there])
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
    "expi", of=FLOAT, host=_host_expi, hlo=in_blocks(formula(_expi)),
    jvp=lambda t, x, ans: mul(t, div(ops.exp(x), x)),
    cost=Cost.SPECIAL,
)  # fmt: skip


# The sine and cosine integrals ---------------------------------------------------------------------------------------

_SERIES = 3.0
_scipy_sici = host.special_pair("sici")


@formula
def _sici(x: Any, *, cosine: bool) -> Any:
    """Evaluate the cosine integral Ci if ``cosine``, else the sine integral Si.

    Near zero it is a series (DLMF 6.6.5, 6.6.6). Farther away it is computed from the auxiliary functions f and g (DLMF
    6.2.19), which are integrals (DLMF 6.7.13 with t = exp(u) - 1).
    """
    size = abs(x)
    near = minimum(size, _SERIES)
    first = 2 if cosine else 1
    terms = range(17, -1, -1)
    coefficients = [(-1) ** (k + cosine) / ((2 * k + first) * math.factorial(2 * k + first)) for k in terms]
    within = integer_pow(near, first) * polynomial(square(near), coefficients)
    if cosine:
        within = within + (log(near) + _GAMMA)
    far = minimum(maximum(size, _SERIES), 1e300)
    end = log1p(_BELOW / far)

    def fall(u: Any, x: Any) -> Any:
        t = expm1(u)
        return exp(u - x * t) / (1 + square(t))

    f, g = integral(fall, end, far), integral(lambda u, x: fall(u, x) * expm1(u), end, far)
    sine, other = sin(far), cos(far)
    if cosine:
        outside = f * sine - g * other
    else:
        outside = math.pi / 2 - f * other - g * sine
    value = where(size < _SERIES, within, outside)
    value = where(size == math.inf, 0 if cosine else math.pi / 2, value)
    if cosine:
        return where(x == 0, -math.inf, where(x == -math.inf, math.nan, value))
    return where(x == 0, x, sign(x) * value)


def _sinc_derivative(x: Any, *, order: int) -> Any:
    """Evaluate the derivative of order ``order`` of sin(x) / x.

    For small x it is a power series. For large x it follows by a recurrence that begins with sin(x) / x.
    """
    size = abs(x)
    near = size < 2.0 * order + 2
    small, large = where(near, size, 0), where(near, 2.0 * order + 2, size)
    count = 4 * order + 28
    # The derivative of the sum of (-1)**k x**(2k) / (2k + 1)!
    least = (order + 1) // 2
    coefficients = [
        (-1) ** k * math.perm(2 * k, order) / math.factorial(2 * k + 1)
        for k in range(least + count // 2, least - 1, -1)
    ]
    inside = integer_pow(small, 2 * least - order) * polynomial(square(small), coefficients)
    turns = [sin(large), cos(large), -sin(large), -cos(large)]
    value = turns[0] / large
    for n in range(1, order + 1):
        value = (turns[n % 4] - n * value) / large
    out = where(near, inside, value)
    return where(x < 0, -out, out) if order % 2 else out


sinc_derivative_p: Primitive = composite(
    "sinc_derivative", of=FLOAT, formula=doubled(formula(_sinc_derivative)),
    jvp=(lambda t, x, order: mul(t, sinc_derivative_p.bind(x, order=order + 1)),),
)  # fmt: skip
_SINC_SPLIT = 20.0
"""The variable below which sin(x) / x would lose accuracy in each order of differentiation."""


@in_series(sinc_derivative_p)
@formula
def _sinc_in_series(x: Any, *, order: int) -> Any:
    """Evaluate the derivative of order ``order`` of sin(x) / x, for its Taylor rule.

    Near zero it is an integral. Farther away it follows by a recurrence that begins with sin(x) / x.
    """
    near = abs(x) < _SINC_SPLIT
    small, large = where(near, x, 0), where(near, _SINC_SPLIT, x)
    turns = [sin, cos, lambda x: -sin(x), lambda x: -cos(x)]
    turn = turns[(order + 1) % 4]
    end = shapes.full(x.shape, 1.0, x.dtype)
    inside = integral(lambda t, x: turn(x * t) * integer_pow(t, order), end, small)
    outside = sin(large) / large
    for n in range(1, order + 1):
        outside = (turns[n % 4](large) - n * outside) / large
    return where(near, inside, outside)


sine_integral_p: Primitive = elementwise(
    "sine_integral", of=FLOAT, host=lambda x: _scipy_sici(x)[0], hlo=in_blocks(partial(_sici, cosine=False)),
    jvp=lambda t, x, ans: mul(t, sinc_derivative_p.bind(x, order=0)),
)  # fmt: skip
_CENTRE, _CI_THERE = 3.4375, -0.015067984362017532


def _host_sici(x: Any) -> list[Any]:
    """Return Si and Ci, evaluated by SciPy on the host.

    In double precision a Taylor series replaces Ci from 2.8 to 4.05, where SciPy's sum cancels.
    """
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
sici = host_fused(
    "sici", host=_host_sici, otherwise=lambda x: [sine_integral_p.bind(x), cosine_integral_p.bind(x)], results=2
)


# The dilogarithm -----------------------------------------------------------------------------------------------------


_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330]
_EVEN_TERMS = [b / math.factorial(2 * k + 1) for k, b in enumerate(_BERNOULLI, 1)]


def _spence(x: Any) -> Any:
    """Evaluate Spence's function, the dilogarithm Li2(1 - x).

    From 1/2 to 2 it is a series in -log(x) with Bernoulli numbers (A. van Wijngaarden, *Polylogarithms*, 1954). Smaller
    and larger x are transformed to this interval (DLMF 25.12.6, 25.12.4).
    """
    low, high = x < 0.5, x > 2
    inner = where(low, 1 - x, where(high, 1 - 1 / x, x))
    u = -log1p(where((inner >= 0.4) & (inner <= 2), inner, 1) - 1)
    squared = square(u)
    value = u * squared * polynomial(squared, _EVEN_TERMS[::-1]) + u * (1 - u * 0.25)
    logarithm = log(where(low | high, maximum(x, 1e-320), 1))
    below = math.pi**2 / 6 - logarithm * log1p(-where(low, x, 0)) - value
    rest = logarithm * log1p(-(1 / where(high, x, 2)))
    above = value - (square(logarithm) * 0.5 + rest + math.pi**2 / 6)
    out = where(low, where(x == 0, math.pi**2 / 6, below), where(high, above, value))
    out = where(x == math.inf, -math.inf, out)
    return where(x >= 0, out, math.nan)


def _log_ratio(y: Any, *, order: int) -> Any:
    """Evaluate the derivative of order ``order`` of log(1 + y) / y.

    Near zero it is a power series. For larger y it follows by Leibniz's rule.
    """
    near = abs(y) < 0.25
    small, large = where(near, y, 0), where(near, 1, y)
    count = 30 + 2 * order
    coefficients = [(-1) ** k / (k + 1) * math.perm(k, order) for k in range(order + count, order - 1, -1)]
    value, inverse = log1p(large) / large, 1 / (1 + large)
    for n in range(1, order + 1):
        power = integer_pow(inverse, n) * ((-1.0) ** (n - 1) * math.factorial(n - 1))
        value = (power - n * value) / large
    return where(near, polynomial(small, coefficients), value)


log_ratio_p: Primitive = composite(
    "log_ratio", of=FLOAT, formula=doubled(formula(_log_ratio)),
    jvp=(lambda t, y, order: mul(t, log_ratio_p.bind(y, order=order + 1)),),
)  # fmt: skip


_ONWARD = 4.0
"""The variable from which log(1 + y) / y is a quotient; closer to zero it would lose accuracy in each order."""


@in_series(log_ratio_p)
@formula
def _log_ratio_in_series(y: Any, *, order: int) -> Any:
    """Evaluate the derivative of order ``order`` of log(1 + y) / y, for its Taylor rule.

    Near zero it is an integral. For large y it is computed from the quotient by Leibniz's rule.
    """
    near = y < _ONWARD
    small, large = where(near, y, 0), where(near, _ONWARD, y)
    size = (-1) ** order * math.factorial(order)

    def integrand(t: Any, y: Any) -> Any:
        return integer_pow(1 / (t * y + 1), order + 1) * (integer_pow(t, order) * size)

    inside = integral(integrand, shapes.full(y.shape, 1.0, y.dtype), small)
    outside, inverse = log1p(large) / large, 1 / (1 + large)
    for n in range(1, order + 1):
        power = integer_pow(inverse, n) * ((-1.0) ** (n - 1) * math.factorial(n - 1))
        outside = (power - n * outside) / large
    return where(near, inside, outside)


def _host_spence(x: Any) -> Any:
    """Evaluate SciPy's spence on the host, and correct its values at infinity, near 1/2 and near 2.

    SciPy's value is NaN at infinity, and inaccurate near 1/2 and 2.
    """
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


@formula
def _spence_slope(x: Any) -> Any:
    """Return ``log(x) / (x - 1)``.

    Below 1/2 it is computed by this formula. From 1/2 on it is computed as log(1 + y) / y, where y = x - 1.
    """
    near = x < 0.5
    small, large = where(near, x, 0.25), where(near, 1, x)
    return where(near, log(small) / (small - 1), lifted(log_ratio_p.bind)(large - 1, order=0))


_scipy_spence = host.special("spence")
spence_p: Primitive = elementwise(
    "spence", of=FLOAT, host=_host_spence, hlo=in_double(formula(_spence)),
    jvp=lambda t, x, ans: neg(mul(t, _spence_slope(x))),
)  # fmt: skip
