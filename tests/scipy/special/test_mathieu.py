"""Characteristic values of Mathieu functions, and their derivatives by the parameter."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import pullback
from pullback.core.config import enable_x64
from pullback.scipy import special
from pullback.scipy.special import mathieu


@pytest.mark.parametrize(
    ("m", "q", "even", "odd"), [(1, 5, 1.8581875415, -5.7900805986), (5, 25, 40.0501909858, 28.0627658994)]
)
def test_values_of_the_tables(m: int, q: int, even: float, odd: float) -> None:
    """Abramowitz and Stegun, *Handbook of Mathematical Functions*, table 20.1."""
    with enable_x64():
        assert float(special.mathieu_a(m, q)) == pytest.approx(even, abs=1e-8)
    assert mathieu._eigenpair(m, q, False)[0] == pytest.approx(even, abs=1e-8)
    assert mathieu._eigenpair(m, q, True)[0] == pytest.approx(odd, abs=1e-8)


def test_where_scipy_returns_values_of_other_orders() -> None:
    """SciPy returns 15.07 for the first point, the value of order 3."""
    m, q = np.array([5.0, 15.0, 13.0]), np.array([20.80281963237354, 156.055, 61.17693390941066])
    values = mathieu.characteristic(m, q, odd=False)
    np.testing.assert_allclose(values, [37.306215387871255, 300.00437618169497, 180.7190690033571], rtol=1e-13)
    above = mathieu.characteristic(m, np.nextafter(q, np.inf), odd=False)
    np.testing.assert_allclose(values, above, rtol=1e-12)
    assert mathieu.characteristic(np.array(15.0), np.array(95.0), odd=True).shape == ()


@pytest.mark.parametrize("odd", [False, True])
def test_values_are_scipys_and_those_of_matrices(odd: bool) -> None:
    m, q = np.meshgrid([1.0, 2, 3, 8, 40, 200], [-20.0, -0.5, 0.0, 0.3, 15.0, 80.0], indexing="ij")
    values = mathieu.characteristic(m, q, odd=odd)
    np.testing.assert_array_equal(values, (scipy.special.mathieu_b if odd else scipy.special.mathieu_a)(m, q))
    pairs = [mathieu._eigenpair(*pair, odd) for pair in zip(m.ravel(), q.ravel(), strict=True)]
    np.testing.assert_allclose(values.ravel(), [value for value, _ in pairs], rtol=1e-12, atol=1e-10)


def test_large_orders_are_an_expansion_or_an_eigenvalue() -> None:
    m = np.array([501.0, 900.0, 20_000.0])
    far, near = 9e-4 * m * m, 2e-3 * m * m
    for q in (far, near):
        values = mathieu.characteristic(m, q, odd=False)
        pairs = [mathieu._eigenpair(*pair, False) for pair in zip(m, q, strict=True)]
        np.testing.assert_allclose(values, [value for value, _ in pairs], rtol=1e-13)
        slopes = mathieu.slope(m, q, odd=False)
        np.testing.assert_allclose(slopes, [slope for _, slope in pairs], rtol=1e-10)
    assert mathieu.characteristic(np.array(4e9), np.array(4e9), odd=True) == 1.6e19
    undefined = mathieu.characteristic(
        np.array([1e6, 2.5, -1, 2, np.nan]), np.array([1e12, 1, 1, np.inf, 1]), odd=False
    )
    assert np.isnan(undefined).all()
    assert np.isnan(mathieu.slope(np.array([0.0, 2.5, 1e6]), np.array([1.0, 1.0, 1e12]), odd=True)).all()


@pytest.mark.parametrize("odd", [False, True])
def test_slopes_are_those_of_differences(odd: bool) -> None:
    function = special.mathieu_b if odd else special.mathieu_a
    m, q = np.meshgrid([1.0, 2, 3, 4, 7], [-8.0, 0.4, 6.0, 400.0], indexing="ij")
    with enable_x64():
        h = 1e-3
        _, slopes = pullback.jvp(lambda q: function(m, q), (q,), (np.ones(q.shape),))
        values = [np.asarray(function(m, q + k * h)) for k in (-2, -1, 1, 2)]
        difference = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
        np.testing.assert_allclose(slopes, difference, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("odd", [False, True])
def test_orders_are_told_from_the_pivots_of_the_first_rows(odd: bool) -> None:
    """Later pivots are not computed where they must be positive; NaN and parameters of zero do not change this."""
    m, q = np.meshgrid([1.0, 2, 3, 8, 40, 200], [-90.0, -0.5, 0.0, 0.3, 15.0, 80.0], indexing="ij")
    values = np.vectorize(lambda m, q: mathieu._eigenpair(m, q, odd)[0])(m, q)
    for each in (slice(None), *np.ndindex(m.shape)):
        assert mathieu._agree(values[each], m[each], q[each], odd).all()
        assert not mathieu._agree(values[each], m[each] + 2, q[each], odd).any()
    values[1] = np.nan
    agree = mathieu._agree(values, m, q, odd)
    assert agree[0].all()
    assert not agree[1].any()
    assert agree[2:].all()


def test_wrong_values_among_many_are_found() -> None:
    """So many numbers are computed on all cores."""
    m, q = np.full(10_000, 5.0), np.full(10_000, 3.0)
    q[7777] = 20.80281963237354
    values = mathieu.characteristic(m, q, odd=False)
    assert values[7777] == pytest.approx(37.306215387871255, rel=1e-13)
    np.testing.assert_array_equal(np.delete(values, 7777), scipy.special.mathieu_a(5, 3))
