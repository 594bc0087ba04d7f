"""Functions of complex numbers: where they are measured, and their exact values in mpmath's numbers.

The derivative is the holomorphic one; that of ``absolute``, ``angle`` and ``sign`` there is not.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from benchmarks.accuracy.elementary import ANGLE, EXPONENT
from benchmarks.accuracy.table import Exact, Function, Operand, Plane

# Exact functions ---------------------------------------------------------------------------------------------------


def _sign(z: Any) -> Any:
    return z / abs(z) if mp.mag(z) > -5000 else mp.mpf(0)


def _logistic(z: Any) -> Any:
    return 1 / (1 + mp.exp(-z))


def _sinc(z: Any) -> Any:
    return mp.sin(mp.pi * z) / (mp.pi * z)


def _sinc_slope(z: Any) -> Any:
    if abs(z) < 1e-8:
        x = mp.pi * z
        return mp.pi * x * (-mp.mpf(1) / 3 + x**2 / 30 - x**4 / 840)
    return (mp.cos(mp.pi * z) - _sinc(z)) / z


def _logaddexp(x: Any, y: Any) -> Any:
    """On the branch that adds the logarithm of 1 + exp(-d) to the larger."""
    large, small = (x, y) if x.real > y.real else (y, x)
    return large + mp.log1p(mp.exp(small - large))


def _logit(z: Any) -> Any:
    return mp.log(z) - mp.log1p(-z)


def _finely(function: Exact) -> Exact:
    """A function that cancels near zero, with the digits of the smallest double more."""

    def of(z: Any) -> Any:
        with mp.extraprec(1200):
            return function(z)

    return of


def _asin(z: Any) -> Any:
    """By its logarithm in the half plane where that does not cancel far from zero; mpmath's own does near zero."""
    sign = -1 if z.imag > 0 else 1
    return -1j * sign * mp.log(1j * sign * z + mp.sqrt(1 - z) * mp.sqrt(1 + z))


def _acos(z: Any) -> Any:
    return mp.pi / 2 - _asin(z)


def _acosh(z: Any) -> Any:
    return (1j if z.imag > 0 else -1j) * _acos(z)


def _atanh(z: Any) -> Any:
    return (mp.log(1 + z) - mp.log(1 - z)) / 2


def _wofz(z: Any) -> Any:
    if abs(z) < 1e5:
        return mp.exp(-(z**2)) * mp.erfc(-1j * z)
    return 1j / (mp.sqrt(mp.pi) * z) + _wofz_rest(z)


def _wofz_slope(z: Any) -> Any:
    if abs(z) < 1e5:
        return 2j / mp.sqrt(mp.pi) - 2 * z * _wofz(z)
    return -2 * z * _wofz_rest(z)


def _wofz_rest(z: Any) -> Any:
    """Far from zero, without the first term of the asymptotic series."""
    term = 1j / (mp.sqrt(mp.pi) * z)
    total = 2 * mp.exp(-(z**2)) if z.imag < 0 else mp.mpf(0)
    for k in range(300):
        term *= (2 * k + 1) / (2 * z**2)
        total += term
        if abs(term) < mp.eps * abs(total):
            break
    return total


def _erfcx(z: Any) -> Any:
    return _wofz(1j * z)


def _erfcx_slope(z: Any) -> Any:
    return 1j * _wofz_slope(1j * z)


def _power(x: Any, y: Any) -> Any:
    return mp.exp(y * mp.log(x))


def _box_cox(logarithm: Any, y: Any) -> Any:
    return mp.expm1(y * logarithm) / y


def _box_cox_by_y(logarithm: Any, y: Any) -> Any:
    w = y * logarithm
    if abs(w) < 1e-6:
        return logarithm**2 * mp.fsum(w**k * (k + 1) / mp.factorial(k + 2) for k in range(12))
    return (w * mp.exp(w) - mp.expm1(w)) / y**2


# Where the points are ----------------------------------------------------------------------------------------------

UNITS = Operand(usual=(-3.0, 3.0), marks=(0.0, 1.0, -1.0))
WIDE = Plane(UNITS, UNITS)
EXPONENTS = Plane(EXPONENT, ANGLE)
ANGLES = Plane(ANGLE, Operand(usual=(-720.0, 720.0), single=(-100.0, 100.0), marks=(0.0, 1.0, -1.0)))
TURNED = Plane(ANGLES.imaginary, ANGLES.real)
HALVES = Plane(Operand(usual=(-3.0, 3.0), marks=(0.0, 0.5, 1.0)), Operand(usual=(-3.0, 3.0)))
INTEGERS = Plane(
    Operand(-1e5, 1e5, usual=(-10.0, 10.0), marks=(0.0, 1.0, 2.0, -1.0, -2.0)), Operand(-1e5, 1e5, usual=(-10.0, 10.0))
)
EXPONENTS_OF_POWERS = Plane(
    Operand(-1e9, 1e9, usual=(-10.0, 10.0), marks=(0.0, 0.5, 1.0, 2.0, -1.0)), Operand(-1e9, 1e9, usual=(-3.0, 3.0))
)


def unary(name: str, exact: Exact, slope: Exact | None, plane: Plane = WIDE, **rest: Any) -> Function:
    return Function(name, exact, (slope,), (plane,), rest.pop("peer", name), title=f"{name} (complex)", **rest)


def pair(name: str, exact: Exact, by_x: Any, by_y: Any, planes: tuple[Plane, Plane], **rest: Any) -> Function:
    return Function(name, exact, (by_x, by_y), planes, rest.pop("peer", name), title=f"{name} (complex)", **rest)


COMPLEX = (
    unary("numpy.absolute", abs, None),
    unary("numpy.angle", mp.arg, None),
    unary("numpy.sign", _sign, None),
    pair("numpy.multiply", lambda x, y: x * y, lambda x, y: y, lambda x, y: x, (WIDE, WIDE)),
    pair("numpy.true_divide", lambda x, y: x / y, lambda x, y: 1 / y, lambda x, y: -x / y**2, (WIDE, WIDE)),
    unary("numpy.reciprocal", lambda z: 1 / z, lambda z: -1 / z**2),
    unary("numpy.square", lambda z: z * z, lambda z: 2 * z),
    unary("numpy.sqrt", mp.sqrt, lambda z: 1 / (2 * mp.sqrt(z))),
    unary("lax.rsqrt", lambda z: 1 / mp.sqrt(z), lambda z: -1 / (2 * z * mp.sqrt(z)), peer=None),
    unary("numpy.exp", mp.exp, mp.exp, EXPONENTS),
    unary("numpy.exp2", lambda z: mp.exp(z * mp.log(2)), lambda z: mp.log(2) * mp.exp(z * mp.log(2)),
          Plane(Operand(usual=(-1074.0, 1024.0), single=(-149.0, 128.0)), Operand(-1e3, 1e3, usual=(-10.0, 10.0)))),
    unary("numpy.expm1", mp.expm1, mp.exp, EXPONENTS),
    unary("numpy.log", mp.log, lambda z: 1 / z),
    unary("numpy.log2", lambda z: mp.log(z) / mp.log(2), lambda z: 1 / (z * mp.log(2))),
    unary("numpy.log10", lambda z: mp.log(z) / mp.log(10), lambda z: 1 / (z * mp.log(10))),
    unary("numpy.log1p", mp.log1p, lambda z: 1 / (1 + z)),
    pair("numpy.power", _power, lambda x, y: y * _power(x, y - 1), lambda x, y: _power(x, y) * mp.log(x),
         (WIDE, EXPONENTS_OF_POWERS)),
    pair("numpy.logaddexp", _logaddexp, lambda x, y: _logistic(x - y), lambda x, y: _logistic(y - x), (WIDE, WIDE),
         peer=None),
    unary("lax.logistic", _logistic, lambda z: 1 / (4 * mp.cosh(z / 2) ** 2), EXPONENTS, peer=None),
    unary("numpy.sin", mp.sin, mp.cos, ANGLES),
    unary("numpy.cos", mp.cos, lambda z: -mp.sin(z), ANGLES),
    unary("numpy.tan", mp.tan, lambda z: 1 / mp.cos(z) ** 2, ANGLES),
    unary("numpy.arcsin", _finely(_asin), lambda z: 1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z))),
    unary("numpy.arccos", _finely(_acos), lambda z: -1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z))),
    unary("numpy.arctan", _finely(lambda z: -1j * _atanh(1j * z)), lambda z: 1 / ((1 - 1j * z) * (1 + 1j * z))),
    unary("numpy.sinh", mp.sinh, mp.cosh, TURNED),
    unary("numpy.cosh", mp.cosh, mp.sinh, TURNED),
    unary("numpy.tanh", mp.tanh, lambda z: 1 / mp.cosh(z) ** 2, TURNED),
    unary("numpy.arcsinh", _finely(lambda z: -1j * _asin(1j * z)),
          lambda z: 1 / (mp.sqrt(1 - 1j * z) * mp.sqrt(1 + 1j * z))),
    unary("numpy.arccosh", _finely(_acosh), lambda z: 1 / (mp.sqrt(z - 1) * mp.sqrt(z + 1))),
    unary("numpy.arctanh", _finely(_atanh), lambda z: 1 / ((1 - z) * (1 + z))),
    unary("numpy.sinc", _sinc, _sinc_slope, Plane(INTEGERS.real, Operand(usual=(-200.0, 200.0), single=(-25.0, 25.0)))),
    unary("scipy.special.logit", _logit, lambda z: 1 / (z * (1 - z)), HALVES, peer=None),
    pair("scipy.special.xlogy", lambda x, y: x * mp.log(y), lambda x, y: mp.log(y), lambda x, y: x / y, (WIDE, WIDE)),
    pair("scipy.special.xlog1py", lambda x, y: x * mp.log1p(y), lambda x, y: mp.log1p(y), lambda x, y: x / (1 + y),
         (WIDE, WIDE)),
    pair("scipy.special.boxcox", lambda x, y: _box_cox(mp.log(x), y), lambda x, y: _power(x, y - 1),
         lambda x, y: _box_cox_by_y(mp.log(x), y), (WIDE, EXPONENTS_OF_POWERS), peer=None),
    pair("scipy.special.boxcox1p", lambda x, y: _box_cox(mp.log1p(x), y), lambda x, y: _power(1 + x, y - 1),
         lambda x, y: _box_cox_by_y(mp.log1p(x), y), (WIDE, EXPONENTS_OF_POWERS), peer=None),
    unary("scipy.special.gamma", mp.gamma, lambda z: mp.gamma(z) * mp.psi(0, z), INTEGERS, points=300),
    unary("scipy.special.loggamma", mp.loggamma, lambda z: mp.psi(0, z), INTEGERS, points=300, scales=(0.0, 1.0)),
    unary("scipy.special.wofz", _wofz, _wofz_slope, Plane(UNITS, UNITS), points=300),
    unary("scipy.special.erfcx", _erfcx, _erfcx_slope, Plane(UNITS, UNITS), points=300),
)  # fmt: skip
