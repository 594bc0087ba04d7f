# long: a table
"""Elementary and common special functions: where they are measured, and their exact values in mpmath's numbers.

Names that two modules have for one operation (``lax.exp``, ``numpy.exp``; ``lax.lgamma``, ``scipy.special.gammaln``)
have one row.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
from mpmath import mp

from benchmarks.accuracy.table import Exact, Function, Operand

INF = math.inf
PI = math.pi

# Exact functions that mpmath lacks ---------------------------------------------------------------------------------


def _one(*xs: Any) -> Any:
    return mp.mpf(1)


def _zero(*xs: Any) -> Any:
    return mp.mpf(0)


def _logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _logistic_slope(x: Any) -> Any:
    return mp.exp(-abs(x)) / (1 + mp.exp(-abs(x))) ** 2


def log1p(x: Any) -> Any:
    return mp.log1p(x) if x > -1 else mp.nan


def _log(x: Any) -> Any:
    return mp.log(x) if x > 0 else mp.nan


def _real(function: Exact) -> Exact:
    def checked(*xs: Any) -> Any:
        value = function(*xs)
        return value if not isinstance(value, mpmath.mpc) or not value.imag else mp.nan

    return checked


def _sinc(x: Any) -> Any:
    return mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1)


def _sinc_slope(x: Any) -> Any:
    return (mp.cospi(x) - _sinc(x)) / x if x else mp.mpf(0)


def _gammaln(x: Any) -> Any:
    if x > 0:
        return mp.re(mp.loggamma(x))
    return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.re(mp.loggamma(-x)) if x != mp.floor(x) else mp.nan


def psi(n: int) -> Exact:
    def of(x: Any) -> Any:
        if x > 0:
            return mp.psi(n, x)
        if x == mp.floor(x):
            return mp.nan
        if n == 0:
            return mp.psi(0, 1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x)
        if n == 1:
            return (mp.pi / mp.sinpi(x)) ** 2 - mp.psi(1, 1 - x)
        return mp.psi(n, x)

    return of


def _polygamma(n: Any, x: Any) -> Any:
    return psi(int(n))(x)


def _polygamma_slope(n: Any, x: Any) -> Any:
    return psi(int(n) + 1)(x)


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _density(x: Any) -> Any:
    return mp.exp(-(x**2) / 2) / mp.sqrt(2 * mp.pi)


def _log_ndtr(x: Any) -> Any:
    return mp.log1p(-_ndtr(-x)) if x > 0 else mp.log(_ndtr(x))


def _exprel(x: Any) -> Any:
    return mp.expm1(x) / x if x else mp.mpf(1)


def _exprel_slope(x: Any) -> Any:
    return (x * mp.exp(x) - mp.expm1(x)) / x**2 if x else mp.mpf(1) / 2


def _scaled_bessel(n: int) -> Exact:
    return lambda x: mp.besseli(n, x) * mp.exp(-abs(x))


def _sign(x: Any) -> Any:
    return mp.sign(x)


def _i0e_slope(x: Any) -> Any:
    return (mp.besseli(1, x) - _sign(x) * mp.besseli(0, x)) * mp.exp(-abs(x))


def _i1(x: Any) -> Any:
    return mp.besseli(1, x)


def _i1_slope(x: Any) -> Any:
    return (mp.besseli(0, x) + mp.besseli(2, x)) / 2


def _i1e_slope(x: Any) -> Any:
    return (_i1_slope(x) - _sign(x) * _i1(x)) * mp.exp(-abs(x))


def _entr(x: Any) -> Any:
    return -x * mp.log(x) if x > 0 else mp.mpf(0) if x == 0 else mp.nan


def _power(x: Any, y: Any) -> Any:
    if x == 0:
        return mp.mpf(y == 0) if y >= 0 else mp.nan
    return x**y if x > 0 else (mp.nan if y != mp.floor(y) else (-1 if int(y) % 2 else 1) * (-x) ** y)


def _power_by_x(x: Any, y: Any) -> Any:
    return mp.mpf(0) if y == 0 else y * _power(x, y - 1)


def _power_by_y(x: Any, y: Any) -> Any:
    return mp.nan if x < 0 else (mp.mpf(0) if y > 0 else mp.nan) if x == 0 else x**y * mp.log(x)


def _gammainc(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _gammaincc(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _gamma_density(a: Any, x: Any) -> Any:
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def _gammainc_by_a(a: Any, x: Any) -> Any:
    """By the series of the derivative: no numerical differentiation, so that digits are what they are asked to be."""
    if x > a + 60 + mp.dps and x > 4 * a:
        return mp.diff(lambda s: -mp.gammainc(s, x, mp.inf, regularized=True), a)
    lift = mp.mpf(10) ** (-mp.dps)
    term = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
    slope = mp.log(x) - mp.psi(0, a + 1)
    total, k = mp.mpf(0), 0
    while True:
        total += term * slope
        k += 1
        term *= x / (a + k)
        slope -= 1 / (a + k)
        if k > x - a and abs(term * slope) < lift * abs(total):
            return total
        if k > 20000:
            raise ValueError("too many terms")


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - log_beta)


def _random_gamma_slope(a: Any, x: Any) -> Any:
    return -_gammainc_by_a(a, x) / _gamma_density(a, x)


def _zeta(s: Any, q: Any) -> Any:
    return mp.zeta(s, q) if s > 1 and q > 0 else mp.nan


# Where the points are ----------------------------------------------------------------------------------------------

WIDE = Operand(usual=(-10.0, 10.0), marks=(0.0, 1.0, -1.0))
EXPONENT = Operand(usual=(-745.0, 710.0), single=(-104.0, 89.0), marks=(0.0, 1.0, -1.0, 0.5, -0.5))
ANGLE = Operand(usual=(-10.0, 10.0), marks=(0.0, *(k * PI / 4 for k in (1, 2, 3, 4, -2, -4))))
POSITIVE = Operand(0.0, usual=(0.0, 4.0), marks=(0.0, 1.0, 0.5, 2.0))
UNIT = Operand(-1.0, 1.0, usual=(-1.0, 1.0), marks=(0.0, 0.5, -0.5))
FACTOR = Operand(usual=(-100.0, 100.0), marks=(0.0, 1.0), tiny=1e-15, low=-1e15, high=1e15)
DIVISOR = Operand(-1e6, 1e6, usual=(-100.0, 100.0), marks=(1.0, 2.0, -3.0), tiny=1e-3)
SHAPE = Operand(1e-3, 1e3, usual=(0.05, 30.0), marks=(0.5, 1.0, 2.0, 10.0))


def unary(
    name: str, exact: Exact, slope: Exact | None, operand: Operand, peer: str | None = "same", **rest: Any
) -> Function:
    peer = name if peer == "same" else peer
    return Function(name, exact, (slope,), (operand,), peer, **rest)


def pair(
    name: str, exact: Exact, by_x: Any, by_y: Any, x: Operand, y: Operand, peer: Any = "same", **rest: Any
) -> Function:
    return Function(name, exact, (by_x, by_y), (x, y), name if peer == "same" else peer, **rest)


EXACT_ONES = (
    unary("numpy.absolute", abs, _sign, WIDE),
    unary("numpy.negative", lambda x: -x, lambda x: -_one(), WIDE),
    unary("numpy.sign", _sign, None, WIDE),
    unary("numpy.floor", mp.floor, None, WIDE),
    unary("numpy.ceil", mp.ceil, None, WIDE),
    unary("numpy.trunc", lambda x: mp.sign(x) * mp.floor(abs(x)), None, WIDE),
    unary("numpy.rint", lambda x: mp.nint(x), None, WIDE),
    pair("numpy.add", lambda x, y: x + y, _one, _one, WIDE, WIDE),
    pair("numpy.subtract", lambda x, y: x - y, _one, lambda x, y: -_one(), WIDE, WIDE),
    pair("numpy.multiply", lambda x, y: x * y, lambda x, y: y, lambda x, y: x, WIDE, WIDE),
    pair("numpy.true_divide", lambda x, y: x / y, lambda x, y: 1 / y, lambda x, y: -x / y**2, WIDE, WIDE),
    pair("numpy.maximum", max, lambda x, y: mp.mpf(x > y) if x != y else mp.nan,
          lambda x, y: mp.mpf(y > x) if x != y else mp.nan, WIDE, WIDE),
    pair("numpy.minimum", min, lambda x, y: mp.mpf(x < y) if x != y else mp.nan,
          lambda x, y: mp.mpf(y < x) if x != y else mp.nan, WIDE, WIDE),
    pair("numpy.copysign", lambda x, y: mp.nan if y == 0 else abs(x) * mp.sign(y),
          lambda x, y: mp.nan if y == 0 or x == 0 else mp.sign(x) * mp.sign(y), None, WIDE, WIDE),
    pair("numpy.fmod", lambda x, y: mp.sign(x) * (abs(x) - mp.floor(abs(x) / abs(y)) * abs(y)) if y else mp.nan,
          None, None, DIVISOR, DIVISOR),
    pair("numpy.remainder", lambda x, y: x - mp.floor(x / y) * y if y else mp.nan, None, None, DIVISOR, DIVISOR),
    pair("numpy.floor_divide", lambda x, y: mp.floor(x / y) if y else mp.nan, None, None, DIVISOR, DIVISOR),
)  # fmt: skip

ELEMENTARY = (
    unary("numpy.square", lambda x: x * x, lambda x: 2 * x, WIDE),
    unary("numpy.reciprocal", lambda x: 1 / x, lambda x: -1 / x**2, WIDE),
    unary("lax.integer_pow", lambda x: x**3, lambda x: 3 * x**2, WIDE, None, arguments={"y": 3},
           title="lax.integer_pow (y = 3)"),
    unary("lax.integer_pow", lambda x: x**-5, lambda x: -5 * x**-6, WIDE, None, arguments={"y": -5},
           title="lax.integer_pow (y = -5)"),
    unary("numpy.sqrt", _real(mp.sqrt), lambda x: 1 / (2 * mp.sqrt(x)) if x > 0 else mp.nan, POSITIVE),
    unary("lax.rsqrt", lambda x: 1 / mp.sqrt(x), lambda x: -1 / (2 * x * mp.sqrt(x)), POSITIVE, None),
    unary("numpy.cbrt", lambda x: mp.sign(x) * mp.cbrt(abs(x)), lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2), WIDE),
    unary("numpy.exp", mp.exp, mp.exp, EXPONENT),
    unary("numpy.exp2", lambda x: mp.mpf(2) ** x, lambda x: mp.log(2) * mp.mpf(2) ** x,
           Operand(usual=(-1074.0, 1024.0), single=(-149.0, 128.0), marks=(0.0, 1.0, -1.0))),
    unary("numpy.expm1", mp.expm1, mp.exp, EXPONENT),
    unary("numpy.log", _log, lambda x: 1 / x, POSITIVE),
    unary("numpy.log2", lambda x: _log(x) / mp.log(2), lambda x: 1 / (x * mp.log(2)), POSITIVE),
    unary("numpy.log10", lambda x: _log(x) / mp.log(10), lambda x: 1 / (x * mp.log(10)), POSITIVE),
    unary("numpy.log1p", log1p, lambda x: 1 / (1 + x), Operand(-1.0, usual=(-1.0, 4.0), marks=(0.0, -0.5, 1.0))),
    pair("numpy.power", _power, _power_by_x, _power_by_y, Operand(usual=(0.0, 10.0), marks=(0.0, 1.0, 2.0)),
          Operand(-1e9, 1e9, usual=(-40.0, 40.0), marks=(0.0, 0.5, 1.0, 2.0, -1.0)), scales=(0, 0, 0)),
    pair("numpy.hypot", mp.hypot, lambda x, y: x / mp.hypot(x, y), lambda x, y: y / mp.hypot(x, y), WIDE, WIDE),
    pair("numpy.logaddexp", lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))), lambda x, y: _logistic(x - y),
          lambda x, y: _logistic(y - x), WIDE, WIDE, scales=(0.5,)),
    pair("numpy.logaddexp2", lambda x, y: max(x, y) + mp.log1p(mp.mpf(2) ** -abs(x - y)) / mp.log(2),
          lambda x, y: _logistic((x - y) * mp.log(2)), lambda x, y: _logistic((y - x) * mp.log(2)), WIDE, WIDE,
          scales=(0.5,)),
    unary("lax.logistic", _logistic, _logistic_slope, EXPONENT, "scipy.special.expit", title="scipy.special.expit"),
    unary("numpy.deg2rad", lambda x: x * mp.pi / 180, lambda x: mp.pi / 180, WIDE),
    unary("numpy.rad2deg", lambda x: x * 180 / mp.pi, lambda x: 180 / mp.pi, WIDE),
)  # fmt: skip

TRIGONOMETRIC = (
    unary("numpy.sin", mp.sin, mp.cos, ANGLE),
    unary("numpy.cos", mp.cos, lambda x: -mp.sin(x), ANGLE),
    unary("numpy.tan", mp.tan, lambda x: mp.sec(x) ** 2, ANGLE),
    unary("numpy.arcsin", _real(mp.asin), lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), UNIT),
    unary("numpy.arccos", _real(mp.acos), lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), UNIT),
    unary("numpy.arctan", mp.atan, lambda x: 1 / (1 + x * x), WIDE),
    pair("numpy.arctan2", lambda x, y: mp.atan2(x, y) if x or y > 0 else mp.nan, lambda x, y: y / (x * x + y * y),
          lambda x, y: -x / (x * x + y * y), WIDE, WIDE),
    unary("numpy.sinh", mp.sinh, mp.cosh, EXPONENT),
    unary("numpy.cosh", mp.cosh, mp.sinh, EXPONENT),
    unary("numpy.tanh", mp.tanh, lambda x: mp.sech(x) ** 2,
           Operand(usual=(-20.0, 20.0), single=(-10.0, 10.0), marks=(0.0, 1.0))),
    unary("numpy.arcsinh", mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), WIDE),
    unary("numpy.arccosh", _real(mp.acosh), lambda x: 1 / mp.sqrt((x - 1) * (x + 1)),
           Operand(1.0, usual=(1.0, 10.0), marks=(1.0, 2.0))),
    unary("numpy.arctanh", _real(mp.atanh), lambda x: 1 / ((1 - x) * (1 + x)), UNIT),
    unary("numpy.sinc", _sinc, _sinc_slope, Operand(-1e6, 1e6, usual=(-5.0, 5.0), marks=(0.0, 1.0, -1.0, 2.0, 3.0)),
           scales=(0.0, lambda x: 1 / np.maximum(np.abs(x), 1))),
)  # fmt: skip

SPECIAL = (
    unary("scipy.special.erf", mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
           Operand(usual=(-7.0, 7.0), marks=(0.0, 1.0, -0.5))),
    unary("scipy.special.erfc", mp.erfc, lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
           Operand(usual=(-7.0, 27.5), single=(-5.0, 10.5), marks=(0.0, 1.0, 0.5))),
    unary("scipy.special.erfinv", mp.erfinv, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2), UNIT),
    unary("scipy.special.ndtr", _ndtr, _density,
           Operand(usual=(-38.6, 10.0), single=(-14.3, 7.0), marks=(0.0, 1.0, -1.0))),
    unary("scipy.special.log_ndtr", _log_ndtr, lambda x: _density(x) / _ndtr(x),
           Operand(-1e18, usual=(-50.0, 38.0), single=(-30.0, 14.0), marks=(0.0, 1.0, -1.0, -9.0, -26.0)), points=1000),
    unary("scipy.special.gammaln", _gammaln, psi(0),
           Operand(-1e5, usual=(-20.0, 40.0), marks=(0.0, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0, -3.0)),
           scales=(1.0, 1.0)),
    unary("scipy.special.digamma", psi(0), psi(1),
           Operand(-1e5, usual=(-20.0, 40.0), marks=(0.0, 1.0, 2.0, -0.5, -1.0, -2.0, 1.4616321449683622)),
           scales=(1.0, 0.0), points=1000),
    pair("scipy.special.polygamma", _polygamma, None, _polygamma_slope, Operand(0, 8, whole=True, marks=()),
          Operand(1e-8, 1e8, usual=(0.05, 30.0), marks=(1.0, 2.0)), points=600, scales=(1.0,)),
    unary("scipy.special.exprel", _exprel, _exprel_slope, EXPONENT),
    unary("scipy.special.logit", lambda x: _log(x) - log1p(-x), lambda x: 1 / (x * (1 - x)),
           Operand(0.0, 1.0, usual=(0.0, 1.0), marks=(0.5,))),
    pair("scipy.special.xlogy", lambda x, y: x * _log(y), lambda x, y: _log(y),
          lambda x, y: x / y if y > 0 else mp.nan, WIDE, POSITIVE),
    pair("scipy.special.xlog1py", lambda x, y: x * log1p(y), lambda x, y: log1p(y),
          lambda x, y: x / (1 + y) if y > -1 else mp.nan, WIDE, Operand(-1.0, usual=(-1.0, 4.0), marks=(0.0,))),
    unary("scipy.special.entr", _entr, lambda x: -1 - mp.log(x), POSITIVE, scales=(0.0, 1.0)),
    unary("numpy.i0", lambda x: mp.besseli(0, x), _i1, Operand(-720, 720, usual=(-30.0, 30.0), single=(-90.0, 90.0)),
           points=600),
    unary("lax.bessel_i0e", _scaled_bessel(0), _i0e_slope, Operand(-1e4, 1e4, usual=(-30.0, 30.0)),
           "scipy.special.i0e", points=600),
    unary("lax.bessel_i1e", _scaled_bessel(1), _i1e_slope, Operand(-1e4, 1e4, usual=(-30.0, 30.0)),
           "scipy.special.i1e", points=600, scales=(0.0, 1e-2)),
    pair("lax.igamma", _gammainc, _gammainc_by_a, _gamma_density, SHAPE,
          Operand(1e-6, 1e3, usual=(0.0, 40.0), marks=(1.0,)), "scipy.special.gammainc", points=300,
          scales=(0.0, 1e-3)),
    pair("lax.igammac", _gammaincc, lambda a, x: -_gammainc_by_a(a, x), lambda a, x: -_gamma_density(a, x), SHAPE,
          Operand(1e-6, 1e3, usual=(0.0, 40.0), marks=(1.0,)), "scipy.special.gammaincc", points=300,
          scales=(0.0, 1e-3)),
    pair("lax.random_gamma_grad", _random_gamma_slope, None, None, SHAPE,
          Operand(1e-6, 60.0, usual=(0.0, 40.0), marks=(1.0,)), None, points=150),
    Function("lax.betainc", _betainc, (None, None, _beta_density),
             (SHAPE, SHAPE, Operand(1e-6, 1 - 1e-6, usual=(0.0, 1.0), marks=(0.5,))), "scipy.special.betainc",
             points=150),
    pair("lax.zeta", _zeta, lambda s, q: mp.zeta(s, q, 1), lambda s, q: -s * mp.zeta(s + 1, q),
          Operand(1.0 + 1e-5, 60.0, usual=(1.0, 20.0), marks=(2.0, 3.0)),
          Operand(1e-3, 1e4, usual=(0.1, 20.0), marks=(1.0,)), "scipy.special.zeta", points=150),
)  # fmt: skip
