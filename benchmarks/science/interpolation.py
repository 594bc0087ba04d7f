"""Rows of ``scipy.interpolate``: splines, grids and scattered points, evaluated at 10,000 points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate as oracle_integrate
import scipy.interpolate as oracle
from scipy.sparse.linalg import spsolve

from benchmarks.science.rows import Part, Row
from pullback.scipy import integrate, interpolate

LARGE = 10_000


def samples(n: int, at: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes n points, values there, and as many points in between as ``at``."""

    def make() -> Sequence[Any]:
        rng = np.random.default_rng(0)
        x = np.arange(n) + rng.uniform(-0.2, 0.2, n)
        return x, np.sin(x) + 0.3 * rng.standard_normal(n), rng.uniform(0.5, n - 1.5, at)

    return make


def curve(name: str, signature: str, call: Callable[[Any, Any, Any, Any], Any], n: int = 100, **more: Any) -> Row:
    """Return a row of an interpolant of one variable, by a function of a module, of points, values and places."""
    return Row(
        f"scipy.interpolate.{name}", signature, lambda *a: call(interpolate, *a), lambda *a: call(oracle, *a),
        samples(8, 5), samples(n, LARGE), **more,
    )  # fmt: skip


def fit(name: str, signature: str, call: Callable[[Any, Any, Any], Any], **more: Any) -> Row:
    """Return a row of the coefficients of a spline, by a function of a module, of 10,000 points and values."""
    return Row(
        f"scipy.interpolate.{name}", signature, lambda *a: call(interpolate, *a).c, lambda *a: call(oracle, *a).c,
        lambda: samples(9, 1)()[:2], lambda: samples(LARGE, 1)()[:2], **more,
    )  # fmt: skip


def knots(x: Any) -> Any:
    """The knots of a cubic spline near values at points, one for about three of them."""
    inner = np.arange(2.0, len(x) - 2.0, 3.0)
    return np.concatenate([[-0.5] * 4, inner, [len(x) - 0.5] * 4])


def spline(module: Any, x: Any, y: Any, at: Any) -> Any:
    """A cubic spline with coefficients and knots that are given, rather than points and values."""
    return module.BSpline(x, y[:-4], 3)(at)


def pieces(module: Any, x: Any, y: Any, at: Any) -> Any:
    """A piecewise cubic with coefficients that are values and their powers."""
    stack = np.stack if module is oracle else _stack
    return module.PPoly(stack([y[1:], y[1:] ** 2, y[:-1], y[:-1] * y[1:]]), x)(at)


def _stack(arrays: Sequence[Any]) -> Any:
    from pullback import numpy as jnp

    return jnp.stack(arrays)


def scattered(n: int, at: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes n points of a plane, values there, and places among them."""

    def make() -> Sequence[Any]:
        rng = np.random.default_rng(1)
        return rng.uniform(0, 1, (n, 2)), rng.standard_normal(n), rng.uniform(0.3, 0.7, (at, 2))

    return make


def plane(name: str, signature: str, call: Callable[[Any, Any, Any, Any], Any], n: int = 1000, **more: Any) -> Row:
    """Return a row of an interpolant of two variables from scattered points."""
    return Row(
        f"scipy.interpolate.{name}", signature, lambda *a: call(interpolate, *a), lambda *a: call(oracle, *a),
        scattered(12, 4), scattered(n, LARGE), **more,
    )  # fmt: skip


def grid(n: int, at: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes the coordinates of a grid of n by n points, values there, and places inside."""

    def make() -> Sequence[Any]:
        rng = np.random.default_rng(2)
        axes = [np.arange(n) + rng.uniform(-0.2, 0.2, n) for _ in range(2)]
        return *axes, rng.standard_normal((n, n)), rng.uniform(0.5, n - 1.5, (at, 2))

    return make


def on_grid(method: str, at: int = LARGE, **more: Any) -> Row:
    """Return a row of a method of interpolation on a grid."""

    def ours(x: Any, y: Any, v: Any, p: Any) -> Any:
        return interpolate.RegularGridInterpolator((x, y), v, method)(p)

    def theirs(x: Any, y: Any, v: Any, p: Any) -> Any:
        options = {"solver": spsolve} if method in ("cubic", "quintic") else {}
        return oracle.RegularGridInterpolator((x, y), v, method, **options)(p)

    return Row(
        f"scipy.interpolate.RegularGridInterpolator:{method}",
        f'(points, values, method="{method}", bounds_error, fill_value)', ours, theirs, grid(7, 4), grid(30, at),
        **more,
    )  # fmt: skip


def on_two_axes(module: Any, x: Any, y: Any, v: Any, p: Any) -> Any:
    """Values on a grid, interpolated linearly."""
    return module.interpn((x, y), v, p, bounds_error=False, fill_value=0.0)


def sums(name: str, signature: str, call: Callable[[Any, Any, Any], Any]) -> Row:
    """Return a row of an integral of samples at 10,000 points."""
    return Row(
        f"scipy.integrate.{name}", signature, lambda *a: call(integrate, *a), lambda *a: call(oracle_integrate, *a),
        lambda: samples(9, 1)()[1::-1], lambda: samples(LARGE, 1)()[1::-1],
    )  # fmt: skip


INTEGRALS = Part(
    "Integrals of samples",
    "`scipy.integrate`, of 10,000 samples at unequal distances.",
    (
        sums("trapezoid", "(y, x, dx, axis)", lambda m, y, x: m.trapezoid(y, x)),
        sums("simpson", "(y, x, *, dx, axis)", lambda m, y, x: m.simpson(y, x=x)),
        sums(
            "cumulative_trapezoid", "(y, x, dx, axis, initial)", lambda m, y, x: m.cumulative_trapezoid(y, x),
        ),
    ),
)  # fmt: skip
PART = Part(
    "Interpolation",
    "`scipy.interpolate`. [Interpolation](interpolation.md) describes it. Curves pass through 100 points, splines are\n"
    "fitted to 10,000, and all are evaluated at 10,000; scattered points are 1,000, of radial functions 100, and\n"
    "a grid has 30 by 30 points. Eagerly most values are SciPy's own.",
    (
        curve("BSpline", "(t, c, k, extrapolate, axis)", spline),
        curve("PPoly", "(c, x, extrapolate, axis)", pieces),
        curve("CubicSpline", "(x, y, axis, bc_type, extrapolate)", lambda m, x, y, t: m.CubicSpline(x, y)(t)),
        curve(
            "CubicHermiteSpline", "(x, y, dydx, axis, extrapolate)",
            lambda m, x, y, t: m.CubicHermiteSpline(x, y, y)(t),
        ),
        curve("PchipInterpolator", "(x, y, axis, extrapolate)", lambda m, x, y, t: m.PchipInterpolator(x, y)(t)),
        curve(
            "Akima1DInterpolator", "(x, y, axis, *, method, extrapolate)",
            lambda m, x, y, t: m.Akima1DInterpolator(x, y)(t),
        ),
        fit(
            "make_interp_spline", "(x, y, k, t, bc_type, axis, check_finite)",
            lambda m, x, y: m.make_interp_spline(x, y),
        ),
        fit(
            "make_lsq_spline", "(x, y, t, k, w, axis, check_finite, *, method)",
            lambda m, x, y: m.make_lsq_spline(x, y, knots(x)),
        ),
        fit(
            "make_smoothing_spline", "(x, y, w, lam, *, axis)", lambda m, x, y: m.make_smoothing_spline(x, y, lam=0.5),
        ),
        on_grid("linear"),
        on_grid("nearest", note="second derivatives of `linear` and `nearest` are zero."),
        on_grid("cubic", note="SciPy's `cubic` and `quintic` with `solver=spsolve`; its iteration has eight digits."),
        on_grid("quintic"),
        on_grid("pchip", 100, note="`pchip` at 100 points, which take SciPy a loop."),
        plane(
            "RBFInterpolator", "(y, d, neighbors, smoothing, kernel, epsilon, degree)",
            lambda m, y, d, x: m.RBFInterpolator(y, d)(x), 100,
        ),
        plane(
            "RBFInterpolator:neighbors", "(y, d, neighbors=10, smoothing, kernel, epsilon, degree)",
            lambda m, y, d, x: m.RBFInterpolator(y, d, 10)(x), 100,
        ),
        plane(
            "LinearNDInterpolator", "(points, values, fill_value, rescale)",
            lambda m, p, v, x: m.LinearNDInterpolator(p, v)(x),
        ),
        plane(
            "NearestNDInterpolator", "(x, y, rescale)", lambda m, p, v, x: m.NearestNDInterpolator(p, v)(x),
        ),
        Row(
            "scipy.interpolate.interpn", "(points, values, xi, method, bounds_error, fill_value)",
            lambda *a: on_two_axes(interpolate, *a), lambda *a: on_two_axes(oracle, *a), grid(7, 4), grid(30, LARGE),
        ),
        curve(
            "interp1d", "(x, y, kind, axis, copy, bounds_error, fill_value, assume_sorted)",
            lambda m, x, y, t: m.interp1d(x, y)(t),
        ),
        plane(
            "griddata", '(points, values, xi, method="linear", fill_value, rescale)',
            lambda m, p, v, x: m.griddata(p, v, x),
        ),
    ),
)  # fmt: skip
