"""The compiled logarithm of the gamma function."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pullback
from pullback.primitives import elementwise as ew
from pullback.primitives.special.log_gamma import lgamma_after_two

ENDS = np.array([np.inf, -np.inf, 0.0, -0.0, -1.0, -2.0, -4e7, -3e38, 3.1e38], np.float32)


def _error(x: np.ndarray) -> np.ndarray:
    """The errors of the compiled function in single precision, in units in the last place of a result of at least 1."""
    found = np.asarray(pullback.jit(ew.lgamma_p.bind)(x)).astype(np.float64)
    exact = np.array([math.lgamma(v) for v in x.astype(np.float64)])
    return np.abs(found - exact) / np.spacing(np.maximum(np.abs(exact), 1).astype(np.float32))


@pytest.mark.parametrize(
    ("low", "high", "ulps"),
    [(0.5, 4.5, 3), (4.5, 20, 3), (20, 1e30, 2), (1e-30, 0.5, 5), (-2, -1e-30, 5), (-9, -2, 12)],
)
def test_single_precision(low: float, high: float, ulps: float) -> None:
    """The compiler's own function is off by 15 units near 5, and by more below."""
    evenly = np.linspace(low, high, 3001)[1:-1]
    x = evenly if low < 0 else np.concatenate([evenly, np.geomspace(low, high, 1001)])
    x = x.astype(np.float32)
    assert _error(x[x != np.round(x)]).max() <= ulps


def test_ends() -> None:
    found = pullback.jit(ew.lgamma_p.bind)(ENDS)
    np.testing.assert_array_equal(found, np.full(len(ENDS), np.inf))
    assert np.isnan(pullback.jit(ew.lgamma_p.bind)(np.float32(np.nan)))
    tiny = np.array([1e-30, -1e-30, 2e-38], np.float32)
    np.testing.assert_allclose(pullback.jit(ew.lgamma_p.bind)(tiny), -np.log(np.abs(tiny.astype(float))), 3e-7)


def test_low_precision_is_rounded_once() -> None:
    x = pullback.numpy.asarray(np.linspace(-3.3, 8, 101), "bfloat16")
    found = pullback.jit(ew.lgamma_p.bind)(x)
    assert np.array_equal(found, pullback.jit(ew.lgamma_p.bind)(x.astype("float32")).astype("bfloat16"))


def test_the_series_after_two(x64: None) -> None:
    w = np.linspace(-0.5, 0.5, 51)
    from_series = lgamma_after_two(pullback.primitives.formulas.Formula(pullback.numpy.asarray(w)), 27).array
    np.testing.assert_allclose(from_series, [math.lgamma(2 + v) for v in w], 1e-14, 1e-15)
