"""Splines at equal distances beside SciPy's: coefficients, values and filters in both directions, with derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

from pullback import errors, jit, make_jaxpr, vmap
from pullback.core.config import enable_x64
from pullback.scipy import signal
from tests.scipy.signal.comparisons import by_formula, close, derivatives

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(7)
X = RNG.standard_normal(25)
IMAGE = RNG.standard_normal((26, 30))


def test_coefficients_of_vectors() -> None:
    for x in (X, X + 1j * X[::-1], X[:1], X[:2], np.arange(5)):
        close(signal.cspline1d(x), scipy.signal.cspline1d(x))
        close(signal.qspline1d(x), scipy.signal.qspline1d(x))
    for lamb in (0.05, 1.5):
        close(signal.cspline1d(X, lamb), scipy.signal.cspline1d(X, lamb))
        close(jit(signal.cspline1d)(X, lamb), scipy.signal.cspline1d(X, lamb))
    derivatives(signal.cspline1d, X[:6], 1.5)
    # SciPy's filter is unstable below 1/24. The smooth spline of a constant is that constant, away from the ends.
    close(signal.cspline1d(np.ones(60), 0.02)[20:40], np.ones(20))
    close(signal.cspline1d(X, 1 / 24 - 1e-6), signal.cspline1d(X, 1 / 24 + 1e-6), 1e-4)
    derivatives(signal.qspline1d, X[:6])
    close(vmap(signal.cspline1d)(IMAGE)[3], signal.cspline1d(IMAGE[3]))


def test_values() -> None:
    points = np.array([-7.3, -0.4, 0.0, 0.5, 3.0, 11.7, 24.0, 24.9, 61.2])
    for kind in ("cspline1d", "qspline1d"):
        coefficients = getattr(scipy.signal, kind)(X)
        ours, theirs = (getattr(m, f"{kind}_eval") for m in (signal, scipy.signal))
        for options in ({}, {"dx": 0.7, "x0": 1.3}):
            close(ours(coefficients, points, **options), theirs(coefficients, points, **options))
        derivatives(lambda c, t, dx, x0: ours(c, t, dx, x0), coefficients, points + 0.03, 0.7, 1.3)  # noqa: B023
        close(ours([2.0], points), np.full(9, 2.0))  # one coefficient is a constant, where SciPy recurs for ever
    close(signal.gauss_spline(points, 3), scipy.signal.gauss_spline(points, 3))
    derivatives(signal.gauss_spline, points / 10, 3.0)


def test_filters_in_both_directions() -> None:
    for x in (X, IMAGE, IMAGE[:, :25] + 1j * X):
        close(signal.symiirorder1(x, 0.7, 0.3), scipy.signal.symiirorder1(x, 0.7, 0.3))
        close(signal.symiirorder1(x, 0.7, -0.4, 1e-3), scipy.signal.symiirorder1(x, 0.7, -0.4, 1e-3))
    for x in (X, IMAGE):
        close(signal.symiirorder2(x, 0.3, 0.7), scipy.signal.symiirorder2(x, 0.3, 0.7))
        close(by_formula(signal.symiirorder2, x, 0.3, 0.7), scipy.signal.symiirorder2(x, 0.3, 0.7))
    close(by_formula(signal.symiirorder1, X, 0.7, 0.3), scipy.signal.symiirorder1(X, 0.7, 0.3))
    derivatives(lambda x, c, z: signal.symiirorder1(x, c, z, 1e-3), X[:9], 0.7, 0.3)
    derivatives(signal.symiirorder2, X[:20], 0.2, 0.7)


def test_images() -> None:
    for lamb in (0.0, 0.05):
        close(signal.cspline2d(IMAGE, lamb), scipy.signal.cspline2d(IMAGE, lamb))
        close(by_formula(lambda x: signal.cspline2d(x, lamb), IMAGE), scipy.signal.cspline2d(IMAGE, lamb))  # noqa: B023
        close(jit(lambda x: signal.cspline2d(x, lamb))(IMAGE), scipy.signal.cspline2d(IMAGE, lamb))  # noqa: B023
    close(signal.qspline2d(IMAGE), scipy.signal.qspline2d(IMAGE))
    rows, columns = RNG.standard_normal(5), RNG.standard_normal(3)
    close(signal.sepfir2d(IMAGE, rows, columns), scipy.signal.sepfir2d(IMAGE, rows, columns))
    # SciPy's taps are in single precision.
    close(signal.spline_filter(IMAGE, 0.05), scipy.signal.spline_filter(IMAGE, 0.05), 1e-5)
    derivatives(signal.sepfir2d, IMAGE[:4, :5], rows, columns)
    derivatives(lambda lamb: signal.spline_filter(IMAGE[:18, :17], lamb)[::5, ::5], 0.5)
    derivatives(lambda x, lamb: signal.cspline2d(x, lamb, 0.1), IMAGE[:6, :7], 0.3)
    derivatives(lambda x: signal.cspline2d(x, 0.0, 0.1), IMAGE[:4, :5])
    with enable_x64(False):
        assert signal.cspline2d(IMAGE).dtype == np.float32


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.cspline1d(X, 0.001), "cspline1d: lamb must be 0 or greater than 1/144, got 0.001"),
        (lambda: signal.cspline1d(IMAGE), "cspline1d: the signal must be a non-empty vector"),
        (lambda: signal.qspline1d(X, 1.0), "qspline1d: lamb must be 0, because quadratic splines are not smoothed"),
        (lambda: signal.qspline2d(IMAGE, 1.0), "qspline2d: lamb must be 0"),
        (lambda: signal.cspline2d(X), "cspline2d takes a non-empty array of two axes"),
        (lambda: signal.cspline2d(IMAGE[:5, :5]), "cspline2d: a signal of 5 elements is too short for a precision"),
        (lambda: signal.symiirorder1(X, 1.0, 1.5), "symiirorder1: the absolute value of the pole z1 must be less"),
        (lambda: signal.symiirorder1(IMAGE[None], 1.0, 0.5), "symiirorder1 takes a non-empty array of one or two axes"),
        (lambda: signal.symiirorder2(X[:2], 0.5, 1.0), "symiirorder2 takes real signals of at least 3 elements"),
        (lambda: signal.symiirorder2(X, 1.5, 1.0), "symiirorder2: the absolute value r of the poles must be less"),
        (lambda: signal.sepfir2d(IMAGE, [1.0, 2.0], [1.0]), "sepfir2d: hrow and hcol must have an odd number"),
        (lambda: signal.cspline1d_eval([], 1.0), "cspline1d_eval"),
        (lambda: signal.qspline1d_eval(X, 1.0, [1.0, 2.0]), "qspline1d_eval: dx and x0 must be numbers"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()


def test_programs_are_as_short_for_long_signals() -> None:
    lengths = {len(make_jaxpr(signal.cspline1d)(np.ones(n)).eqns) for n in (20, 2000)}
    assert len(lengths) == 1
