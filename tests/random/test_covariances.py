"""Random covariances and correlations: moments, laws of their entries, derivatives, and bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback
import pullback.numpy as jnp
from pullback import random
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.test_util import check_grads

KEY = random.key(11)
SCALE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.7]])
DRAWS = 4000


def near(x: Any, expected: Any, errors: float = 5.0) -> None:
    """The mean over the first axis is the expected one, within 5 standard errors of these draws."""
    x = np.asarray(x, np.float64)
    error = errors * x.std(0) / math.sqrt(len(x)) + 1e-6
    assert (np.abs(x.mean(0) - expected) < error).all(), (x.mean(0), expected, error)


def test_moments_of_wishart_matrices() -> None:
    df = 5.5
    x = np.asarray(random.wishart(KEY, df, SCALE, (DRAWS,)))
    near(x, df * SCALE)
    near((x - df * SCALE) ** 2, df * (SCALE**2 + np.outer(np.diag(SCALE), np.diag(SCALE))), 6)
    near(np.linalg.slogdet(x)[1], scipy.special.digamma((df - np.arange(3)) / 2).sum() + 3 * math.log(2)
         + np.linalg.slogdet(SCALE)[1])  # fmt: skip


def test_moments_of_inverse_wishart_matrices() -> None:
    x = np.asarray(random.inverse_wishart(KEY, 14.5, SCALE, (DRAWS,)))
    near(x, SCALE / (14.5 - 4))
    near(np.linalg.inv(x.astype(np.float64)), 14.5 * np.linalg.inv(SCALE))


def test_wishart_numbers_are_chi_squared() -> None:
    x = np.asarray(random.wishart(KEY, 2.5, np.array([[3.0]]), (DRAWS,)))[:, 0, 0] / 3
    assert scipy.stats.kstest(x, scipy.stats.chi2(2.5).cdf).pvalue > 1e-4
    y = 3 / np.asarray(random.inverse_wishart(KEY, 2.5, np.array([[3.0]]), (DRAWS,)))[:, 0, 0]
    assert scipy.stats.kstest(y, scipy.stats.chi2(2.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("n", [2, 3, 5])
def test_correlations_have_beta_distributions(n: int) -> None:
    """A correlation, plus one and halved, has the beta distribution of both parameters concentration - 1 + n / 2."""
    x = np.asarray(random.lkj(KEY, n, 1.7, (DRAWS,)))
    law = scipy.stats.beta(0.7 + n / 2, 0.7 + n / 2)
    for i, j in ((1, 0), (n - 1, 0), (n - 1, n - 2)):
        assert scipy.stats.kstest((x[:, i, j] + 1) / 2, law.cdf).pvalue > 1e-4
    np.testing.assert_allclose(np.diagonal(x, axis1=1, axis2=2), 1, rtol=1e-5)
    np.testing.assert_array_equal(x, x.swapaxes(1, 2))
    assert np.linalg.eigvalsh(x.astype(np.float64)).min() > -1e-5


def test_determinants_of_correlations() -> None:
    """The mean of the log determinant, from the normalising constant of the density."""
    n, eta = 4, 2.5

    def log_constant(eta: float) -> float:
        k = np.arange(1, n)
        gammaln = scipy.special.gammaln
        return float(np.sum(k / 2 * math.log(math.pi) + gammaln(eta + (n - 1 - k) / 2) - gammaln(eta + (n - 1) / 2)))

    expected = (log_constant(eta + 1e-5) - log_constant(eta - 1e-5)) / 2e-5
    factors = np.asarray(random.lkj_cholesky(KEY, n, eta, (DRAWS,)))
    near(2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(-1), expected)
    assert (np.triu(factors, 1) == 0).all()


def test_shapes_and_dtypes() -> None:
    df = np.array([4.0, 5.0], np.float32)
    assert random.wishart(KEY, df, np.eye(3, dtype=np.float32)).shape == (2, 3, 3)
    assert random.wishart(KEY, df, np.eye(3, dtype=np.float32), (7, 2)).shape == (7, 2, 3, 3)
    assert random.wishart(KEY, 4, np.stack([np.eye(2)] * 3)).shape == (3, 2, 2)
    assert random.inverse_wishart(KEY, 4, np.eye(2), (0,)).shape == (0, 2, 2)
    assert random.lkj(KEY, 1).tolist() == [[1.0]]
    assert random.lkj(KEY, 3, df).shape == (2, 3, 3)
    with enable_x64():
        assert random.wishart(KEY, 4, np.eye(2)).dtype == np.float64
        assert random.wishart(KEY, 4, np.eye(2), dtype="float32").dtype == np.float32
        assert random.lkj_cholesky(KEY, 2, df).dtype == np.float32


def test_parameters_outside_their_domain_are_nan() -> None:
    assert np.isnan(random.wishart(KEY, 1.0, np.eye(2))).any()
    assert np.isnan(random.wishart(KEY, 4.0, -np.eye(2))).any()
    assert np.isnan(random.inverse_wishart(KEY, 1.0, np.eye(2))).any()
    assert np.isnan(random.lkj(KEY, 3, np.array([0.0, 1.0]))).any((1, 2)).tolist() == [True, False]


@pytest.mark.slow
def test_matrices_are_compiled_and_mapped() -> None:
    def every(key: Any, df: Any) -> list[Any]:
        return [random.wishart(key, df, SCALE), random.inverse_wishart(key, df, SCALE), random.lkj(key, 3, df)]

    with enable_x64():
        keys, dfs = random.split(KEY, 2), np.array([3.5, 9.0])
        rows = [every(k, df) for k, df in zip(keys, dfs, strict=True)]
        for i, got in enumerate(pullback.jit(pullback.vmap(every))(keys, dfs)):
            np.testing.assert_allclose(got, [row[i] for row in rows], rtol=1e-9, atol=1e-12)


def test_derivatives_of_samples() -> None:
    """By the scale against differences; by the degrees of freedom and concentrations on average."""
    with enable_x64():
        root = np.linalg.cholesky(SCALE)
        for draw in (random.wishart, random.inverse_wishart):
            check_grads(lambda r, draw=draw: draw(KEY, 4.5, r @ r.T), (root,), order=1, rtol=1e-5, atol=1e-5)
        slopes = pullback.jacfwd(lambda df: random.wishart(KEY, df, SCALE, (DRAWS,)))(6.0)
        near(slopes, SCALE)
        slopes = pullback.jacfwd(lambda df: random.inverse_wishart(KEY, df, SCALE, (DRAWS,)))(14.0)
        near(slopes, -SCALE / 100)
        squares = pullback.jacfwd(lambda eta: random.lkj(KEY, 3, eta, (DRAWS,)) ** 2)(2.0)
        expected = np.full((3, 3), -2 / 36) * (1 - np.eye(3))
        near(squares, expected)
        gradient = pullback.grad(lambda eta: jnp.sum(random.lkj_cholesky(KEY, 3, eta, (9,))))(2.0)
        forward = pullback.jvp(lambda eta: jnp.sum(random.lkj_cholesky(KEY, 3, eta, (9,))), (2.0,), (1.0,))[1]
        assert float(gradient) == pytest.approx(float(forward), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.wishart(0, 3.0, np.eye(2)), OperandError, "wishart: expected a random key"),
        (lambda: random.wishart(KEY, 3.0, np.ones(2)), ShapeError, r"scale must have a shape that ends with \(n, n\)"),
        (lambda: random.wishart(KEY, np.ones(3), np.eye(2), (2,)), ShapeError, "must broadcast"),
        (lambda: random.wishart(KEY, 1j, np.eye(2)), DtypeError, "df must be a real number"),
        (lambda: random.wishart(KEY, 3.0, np.eye(2), dtype=int), ArgumentError, "floating-point"),
        (lambda: random.lkj(KEY, 0), ArgumentError, "n must be positive, got 0"),
        (lambda: random.lkj(KEY, 2.5), ShapeError, "n must be an int"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
