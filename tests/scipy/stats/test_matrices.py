"""Densities of vectors and matrices against SciPy's, their derivatives, and bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pullback import jit, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import DtypeError, ShapeError
from pullback.scipy import stats
from pullback.test_util import check_grads

RNG = np.random.default_rng(0)
ROWS, COLUMNS = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.7]]), np.array([[1.5, -0.4], [-0.4, 0.8]])
OTHER = ROWS @ ROWS.T + np.eye(3)
X, MEAN = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(3, 2))

CASES: list[tuple[Any, Any, tuple[Any, ...]]] = [
    (stats.wishart, scipy.stats.wishart, (OTHER, 4.5, ROWS)),
    (stats.wishart, scipy.stats.wishart, (OTHER, 3, 2 * np.eye(3))),
    (stats.invwishart, scipy.stats.invwishart, (OTHER, 4.5, ROWS)),
    (stats.matrix_normal, scipy.stats.matrix_normal, (X, MEAN, ROWS, COLUMNS)),
    (stats.matrix_normal, scipy.stats.matrix_normal, (X[0], MEAN, 2.0, np.array([0.5, 3.0]))),
    (stats.multivariate_t, scipy.stats.multivariate_t, (X[..., 0], MEAN[:, 1], ROWS, 3.5)),
    (stats.multivariate_t, scipy.stats.multivariate_t, (X[..., 0], MEAN[:, 1], ROWS, math.inf)),
]


@pytest.mark.parametrize(("ours", "theirs", "arguments"), CASES)
def test_densities_are_those_of_scipy(ours: Any, theirs: Any, arguments: tuple[Any, ...]) -> None:
    with enable_x64():
        np.testing.assert_allclose(ours.logpdf(*arguments), theirs.logpdf(*arguments), rtol=1e-12)
        np.testing.assert_allclose(ours.pdf(*arguments), np.exp(theirs.logpdf(*arguments)), rtol=1e-11)


def test_a_number_is_a_multiple_of_the_identity() -> None:
    with enable_x64():
        expected = stats.wishart.logpdf(OTHER, 3, 2 * np.eye(3))
        np.testing.assert_allclose(stats.wishart.logpdf(OTHER, 3, 2.0), expected, rtol=1e-14)


def test_densities_are_mapped_and_compiled() -> None:
    several = np.stack([OTHER, ROWS])
    with enable_x64():
        rows = [stats.wishart.logpdf(x, 4.5, ROWS) for x in several]
        np.testing.assert_allclose(stats.wishart.logpdf(several, 4.5, ROWS), rows, rtol=1e-13)
        compiled = jit(vmap(lambda x: stats.wishart.logpdf(x, 4.5, ROWS)))(several)
        np.testing.assert_allclose(compiled, rows, rtol=1e-12)


@pytest.mark.parametrize("ours", [stats.wishart, stats.invwishart])
def test_derivatives_of_wishart_densities(ours: Any) -> None:
    root, factor = np.linalg.cholesky(OTHER), np.linalg.cholesky(ROWS)
    with enable_x64():
        check_grads(lambda r, df, s: ours.logpdf(r @ r.T, df, s @ s.T), (root, 4.5, factor), order=1, rtol=1e-5)


def test_derivatives_of_other_densities() -> None:
    factor = np.linalg.cholesky(ROWS)
    with enable_x64():
        check_grads(
            lambda x, m, r: stats.matrix_normal.logpdf(x, m, r @ r.T, COLUMNS), (X[0], MEAN, factor), order=1, rtol=1e-5
        )
        check_grads(
            lambda x, m, r, df: stats.multivariate_t.logpdf(x, m, r @ r.T, df), (X[0, :, 0], MEAN[:, 0], factor, 3.5),
            order=1, rtol=1e-5,
        )  # fmt: skip


def test_parameters_outside_their_domain_are_nan() -> None:
    assert np.isnan(stats.wishart.logpdf(np.eye(3), 2.0, np.eye(3)))
    assert np.isnan(stats.invwishart.logpdf(-np.eye(3), 4.0, np.eye(3)))
    assert np.isnan(stats.multivariate_t.logpdf(np.ones(2), None, 1.0, 0.0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stats.wishart.logpdf(np.ones(3), 3.0, np.eye(3)), ShapeError, r"x must have a shape that ends"),
        (lambda: stats.wishart.logpdf(np.eye(3), 3.0, np.eye(2)), ShapeError, r"scale must be a number.*3, 3"),
        (lambda: stats.wishart.logpdf(np.eye(3), np.ones(2), np.stack([np.eye(3)] * 3)), ShapeError, "broadcast"),
        (lambda: stats.matrix_normal.logpdf(np.ones(3)), ShapeError, r"X must have a shape that ends"),
        (lambda: stats.multivariate_t.logpdf(1.0), ShapeError, "an axis of components"),
        (lambda: stats.multivariate_t.logpdf(1j * np.ones(2)), DtypeError, "multivariate_t"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
