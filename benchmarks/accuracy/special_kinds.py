"""Exact values of Bessel functions of fixed order, of spherical, elementary and distribution functions, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp

from benchmarks.accuracy.elementary import pair, unary
from benchmarks.accuracy.table import Exact, Function, Operand

# Exact functions ---------------------------------------------------------------------------------------------------


def _rgamma_slope(x: Any) -> Any:
    if x <= 0 and x == mp.floor(x):
        n = int(-x)
        return (-1) ** n * mp.factorial(n)
    return -mp.rgamma(x) * mp.psi(0, x)


def _log_expit(x: Any) -> Any:
    return -mp.log1p(mp.exp(-x))


def _besselk_scaled(order: Any, x: Any) -> Any:
    return mp.besselk(order, x) * mp.exp(x)


def _besselk_scaled_slope(order: Any, x: Any) -> Any:
    both = mp.besselk(order - 1, x) + mp.besselk(order + 1, x)
    return (mp.besselk(order, x) - both / 2) * mp.exp(x)


def _besseli_scaled(order: Any, x: Any) -> Any:
    return mp.besseli(order, x) * mp.exp(-x)


def _besseli_scaled_slope(order: Any, x: Any) -> Any:
    both = mp.besseli(order - 1, x) + mp.besseli(order + 1, x)
    return (both / 2 - mp.besseli(order, x)) * mp.exp(-x)


def _spherical(of: Exact) -> Exact:
    return lambda n, z: mp.sqrt(mp.pi / (2 * z)) * of(n + mp.mpf(1) / 2, z)


def _by_z(of: Exact, before: int, after: int) -> Exact:
    """The derivative of a spherical function by its neighbours (DLMF 10.51.2 and 10.51.5)."""

    def slope(n: Any, z: Any) -> Any:
        lower = before * n * _spherical(of)(n - 1, z) if n else 0
        return (lower + after * (n + 1) * _spherical(of)(n + 1, z)) / (2 * n + 1)

    return slope


def _student(df: Any, t: Any) -> Any:
    tail = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def _student_density(df: Any, t: Any) -> Any:
    return (1 + t * t / df) ** (-(df + 1) / 2) / (mp.sqrt(df) * mp.beta(df / 2, mp.mpf(1) / 2))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)


def _kelvin(of: Exact) -> Exact:
    return lambda x: of(0, x)


def _derivative(of: Exact) -> Exact:
    return lambda x: mp.diff(of, x)


def _amplitude(x: Any) -> Any:
    """Of the oscillations of a Bessel function from its first zero on."""
    return np.where(x > 0.8, np.sqrt(2 / (np.pi * np.maximum(x, 0.8))), 0.0)


def _amplitude_of_order(n: Any, z: Any) -> Any:
    """Of the oscillations of a spherical function, from where it oscillates."""
    return np.where(z > n + 0.5, 1 / np.maximum(z, 0.5), 0.0)


def _amplitude_of_airy(x: Any) -> Any:
    """Of the oscillations of an Airy function."""
    return np.where(x < 0, 0.56 * np.maximum(-x, 1.0) ** -0.25, 0.0)


def _slope_of_airy(x: Any) -> Any:
    """Of the oscillations of the derivative of an Airy function."""
    return np.where(x < 0, 0.56 * np.maximum(-x, 1.0) ** 0.25, 0.0)


# Where the points are ----------------------------------------------------------------------------------------------

RADIUS = Operand(1e-3, 60.0, usual=(0.0, 30.0), marks=(1.0, 2.4048255577))
WHOLE = Operand(0, 8, whole=True, marks=())
PARAMETER = Operand(0.1, 40.0, usual=(0.3, 9.0), marks=(1.0, 2.0))
LINE = Operand(-80.0, 80.0, usual=(-6.0, 6.0), marks=(0.0, 1.0))


def _of(name: str) -> str:
    return f"scipy.special.{name}"


def _cylindrical(name: str, of: Callable[..., Any], order: int, slope: Exact, oscillates: bool) -> Function:
    scales = (_amplitude, _amplitude) if oscillates else ()
    return unary(_of(name), lambda x: of(order, x), slope, RADIUS, points=200, scales=scales)


def _result(name: str, part: int, exact: Exact, slope: Exact, scales: Any) -> Function:
    title = f"{_of('airy')} ({name})"
    operand = Operand(-60.0, 60.0, usual=(-12.0, 12.0), marks=(0.0, 1.0, -12.0, 12.0))
    return unary(_of("airy"), exact, slope, operand, part=part, title=title, scales=scales, points=200)


def _spherical_kind(name: str, of: Exact, before: int, after: int, oscillates: bool) -> Function:
    scales = (_amplitude_of_order, 0.0, _amplitude_of_order) if oscillates else ()
    title = _of(f"spherical_{name}")
    return pair(title, _spherical(of), None, _by_z(of, before, after), WHOLE, RADIUS, points=150, scales=scales)


KINDS = (
    unary(_of("rgamma"), mp.rgamma, _rgamma_slope,
          Operand(-150.0, 170.0, usual=(-6.0, 6.0), marks=(0.0, 1.0, -1.0, -2.0)), points=300,
          scales=(0.0, lambda x: np.where(x < 2, 1.0, 0.0))),
    unary(_of("cosm1"), lambda x: mp.cos(x) - 1, lambda x: -mp.sin(x), LINE, points=300),
    unary(_of("erfi"), mp.erfi, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(x * x),
          Operand(-26.0, 26.0, usual=(-5.0, 5.0), single=(-5.0, 5.0)), points=300),
    unary(_of("log_expit"), _log_expit, lambda x: 1 / (1 + mp.exp(x)), LINE, points=300),
    unary(_of("ndtri_exp"), lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1) if y > -20 else mp.nan,
          None, Operand(-19.0, -1e-3, usual=(-5.0, -0.01), marks=(-1.0,)), points=200,
          scales=(lambda y: np.where(np.abs(y + 0.693) < 0.2, 0.3, 0.0),)),
    pair(_of("agm"), mp.agm, None, None, Operand(1e-3, 1e3, usual=(0.1, 9.0), marks=(1.0,)),
         Operand(1e-3, 1e3, usual=(0.1, 9.0), marks=(1.0,)), points=300),
    pair(_of("stdtr"), _student, None, _student_density, PARAMETER, Operand(-40.0, 40.0, marks=(0.0, 1.0)), points=150),
    Function(_of("betaincc"), lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True),
             (None, None, lambda a, b, x: -_beta_density(a, b, x)),
             (PARAMETER, PARAMETER, Operand(0.0, 1.0, usual=(0.0, 1.0), marks=(0.5,), tiny=1e-6)), _of("betaincc"),
             points=150),
    _cylindrical("j0", mp.besselj, 0, lambda x: -mp.besselj(1, x), True),
    _cylindrical("j1", mp.besselj, 1, lambda x: (mp.besselj(0, x) - mp.besselj(2, x)) / 2, True),
    _cylindrical("y0", mp.bessely, 0, lambda x: -mp.bessely(1, x), True),
    _cylindrical("y1", mp.bessely, 1, lambda x: (mp.bessely(0, x) - mp.bessely(2, x)) / 2, True),
    _cylindrical("k0", mp.besselk, 0, lambda x: -mp.besselk(1, x), False),
    _cylindrical("k1", mp.besselk, 1, lambda x: -(mp.besselk(0, x) + mp.besselk(2, x)) / 2, False),
    _cylindrical("k0e", _besselk_scaled, 0, lambda x: _besselk_scaled_slope(0, x), False),
    _cylindrical("k1e", _besselk_scaled, 1, lambda x: _besselk_scaled_slope(1, x), False),
    pair(_of("kve"), _besselk_scaled, None, None, PARAMETER, RADIUS, points=150),
    pair(_of("ive"), _besseli_scaled, None, None, PARAMETER, RADIUS, points=150),
    _spherical_kind("jn", mp.besselj, 1, -1, True),
    _spherical_kind("yn", mp.bessely, 1, -1, True),
    _spherical_kind("in", mp.besseli, 1, 1, False),
    _spherical_kind("kn", mp.besselk, -1, -1, False),
    _result("Ai", 0, mp.airyai, lambda x: mp.airyai(x, derivative=1), (_amplitude_of_airy, _slope_of_airy)),
    _result("Bi", 2, mp.airybi, lambda x: mp.airybi(x, derivative=1), (_amplitude_of_airy, _slope_of_airy)),
    *(
        unary(_of(name), _kelvin(getattr(mp, name)), _derivative(_kelvin(getattr(mp, name))),
              Operand(0.05, 20.0, usual=(0.1, 10.0), marks=(1.0,)), points=80,
              scales=(lambda x, grows=grows: 0.2 * np.exp((1 if grows else -1) * x / np.sqrt(2)) / np.sqrt(1 + x),) * 2)
        for name, grows in (("ber", True), ("bei", True), ("ker", False), ("kei", False))
    ),
)  # fmt: skip
"""The functions, in the order of the page."""
