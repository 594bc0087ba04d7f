"""Exact values of Bessel functions of fixed order, of spherical, Airy and elementary functions, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp

from benchmarks.accuracy.elementary import pair, unary
from benchmarks.accuracy.table import Exact, Function, Operand

# Exact functions ---------------------------------------------------------------------------------------------------


def _log_expit(x: Any) -> Any:
    return -mp.log1p(mp.exp(-x))


def _besselk_scaled(order: Any, x: Any) -> Any:
    return mp.besselk(order, x) * mp.exp(x)


def _besselk_scaled_slope(order: Any, x: Any) -> Any:
    both = mp.besselk(order - 1, x) + mp.besselk(order + 1, x)
    return (mp.besselk(order, x) - both / 2) * mp.exp(x)


def _spherical(of: Exact) -> Exact:
    return lambda n, z: mp.sqrt(mp.pi / (2 * z)) * of(n + mp.mpf(1) / 2, z)


def _by_z(of: Exact, before: int, after: int) -> Exact:
    """The derivative of a spherical function by its neighbours (DLMF 10.51.2 and 10.51.5)."""

    def slope(n: Any, z: Any) -> Any:
        lower = before * n * _spherical(of)(n - 1, z) if n else 0
        return (lower + after * (n + 1) * _spherical(of)(n + 1, z)) / (2 * n + 1)

    return slope


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
LINE = Operand(-80.0, 80.0, usual=(-6.0, 6.0), marks=(0.0, 1.0))


def _of(name: str) -> str:
    return f"scipy.special.{name}"


def _cylindrical(name: str, of: Callable[..., Any], order: int, slope: Exact, oscillates: bool) -> Function:
    scales = (_amplitude, _amplitude) if oscillates else ()
    return unary(_of(name), lambda x: of(order, x), slope, RADIUS, points=200, scales=scales)


def _result(name: str, part: int, exact: Exact, scale: Any) -> Function:
    """One of the results of ``airy``, which are derivatives of each other."""
    title = f"{_of('airy')} ({name})"
    operand = Operand(-60.0, 60.0, usual=(-12.0, 12.0), marks=(0.0, 1.0, -12.0, 12.0))
    return unary(_of("airy"), exact, None, operand, part=part, title=title, scales=(scale,), points=100)


def _spherical_kind(name: str, of: Exact, slope: Exact | None, oscillates: bool) -> Function:
    scales = (_amplitude_of_order, 0.0, _amplitude_of_order) if oscillates else ()
    return pair(_of(name), _spherical(of), None, slope, WHOLE, RADIUS, points=60, scales=scales)


KINDS = (
    unary(_of("cosm1"), lambda x: mp.cos(x) - 1, lambda x: -mp.sin(x), LINE, points=300),
    unary(_of("erfi"), mp.erfi, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(x * x),
          Operand(-26.0, 26.0, usual=(-5.0, 5.0), single=(-5.0, 5.0)), points=300),
    unary(_of("log_expit"), _log_expit, lambda x: 1 / (1 + mp.exp(x)), LINE, points=300),
    pair(_of("agm"), mp.agm, None, None, Operand(1e-3, 1e3, usual=(0.1, 9.0), marks=(1.0,)),
         Operand(1e-3, 1e3, usual=(0.1, 9.0), marks=(1.0,)), points=300),
    _cylindrical("j0", mp.besselj, 0, lambda x: -mp.besselj(1, x), True),
    _cylindrical("j1", mp.besselj, 1, lambda x: (mp.besselj(0, x) - mp.besselj(2, x)) / 2, True),
    _cylindrical("y0", mp.bessely, 0, lambda x: -mp.bessely(1, x), True),
    _cylindrical("y1", mp.bessely, 1, lambda x: (mp.bessely(0, x) - mp.bessely(2, x)) / 2, True),
    _cylindrical("k0", mp.besselk, 0, lambda x: -mp.besselk(1, x), False),
    _cylindrical("k1", mp.besselk, 1, lambda x: -(mp.besselk(0, x) + mp.besselk(2, x)) / 2, False),
    _cylindrical("k0e", _besselk_scaled, 0, lambda x: _besselk_scaled_slope(0, x), False),
    _cylindrical("k1e", _besselk_scaled, 1, lambda x: _besselk_scaled_slope(1, x), False),
    _spherical_kind("spherical_jn", mp.besselj, None, True),  # eager slopes are as wrong as SciPy's values
    _spherical_kind("spherical_yn", mp.bessely, _by_z(mp.bessely, 1, -1), True),
    _spherical_kind("spherical_in", mp.besseli, _by_z(mp.besseli, 1, 1), False),
    _spherical_kind("spherical_kn", mp.besselk, _by_z(mp.besselk, -1, -1), False),
    _result("Ai", 0, mp.airyai, _amplitude_of_airy),
    _result("Ai'", 1, lambda x: mp.airyai(x, derivative=1), _slope_of_airy),
    _result("Bi", 2, mp.airybi, _amplitude_of_airy),
    _result("Bi'", 3, lambda x: mp.airybi(x, derivative=1), _slope_of_airy),
)  # fmt: skip
"""The functions, in the order of the page."""
