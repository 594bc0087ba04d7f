"""Samples of copulas: uniform components, the means of their distribution functions, and the derivatives of these."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback
import pullback.numpy as jnp
from pullback import grad, random
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.scipy import stats
from pullback.test_util import check_grads

KEY = random.key(5)
DRAWS = 4000
MATRIX = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.3], [-0.2, 0.3, 1.0]])
CASES: list[tuple[str, int, float]] = [
    ("clayton_copula", 2, 2.0), ("clayton_copula", 3, 0.5), ("gumbel_copula", 2, 2.0), ("gumbel_copula", 3, 1.3),
    ("frank_copula", 2, 3.0), ("frank_copula", 2, -4.0), ("frank_copula", 2, 0.0), ("frank_copula", 4, 2.0),
    ("frank_copula", 3, 12.0),
]  # fmt: skip


def near(x: Any, expected: Any, errors: float = 5.0) -> None:
    """The mean over the first axis is the expected one, within 5 standard errors of these draws."""
    x = np.asarray(x, np.float64)
    error = errors * x.std(0) / math.sqrt(len(x)) + 1e-6
    assert (np.abs(x.mean(0) - expected) < error).all(), (x.mean(0), expected, error)


def uniform(u: Any) -> None:
    u = np.asarray(u)
    assert ((u > 0) & (u < 1)).all()
    for i in range(u.shape[1]):
        assert scipy.stats.kstest(u[:, i], "uniform").pvalue > 1e-4


def mean_of_rest(copula: Any, n: int, theta: Any) -> Any:
    """The mean of the product of ``1 - u``: the integral of the distribution function over the cube."""
    x, w = np.polynomial.legendre.leggauss(12)
    grid = np.array(list(itertools.product((x + 1) / 2, repeat=n)))
    weights = np.prod(np.array(list(itertools.product(w / 2, repeat=n))), axis=1)
    return jnp.sum(copula.cdf(grid, theta) * weights)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("name", "n", "theta"), CASES)
def test_samples_have_the_distribution_function(name: str, n: int, theta: float) -> None:
    copula, draw = getattr(stats, name), getattr(random, name)
    u = draw(KEY, n, theta, (DRAWS,))
    uniform(u)
    rest = lambda t: jnp.prod(1 - draw(KEY, n, t, (DRAWS,)), axis=-1)
    near(jnp.prod(1 - u, axis=-1), mean_of_rest(copula, n, theta))
    tau = {"clayton_copula": theta / (theta + 2), "gumbel_copula": 1 - 1 / theta if theta else 0}.get(name)
    if tau is not None:
        # The standard error of Kendall's tau is at most 2 / (3 sqrt(n / 2)) or so.
        assert abs(scipy.stats.kendalltau(u[:, 0], u[:, 1])[0] - tau) < 5 * 0.67 / math.sqrt(DRAWS / 2)
    slope = grad(lambda t: mean_of_rest(copula, n, t))(theta)
    near(pullback.jvp(rest, (theta,), (1.0,))[1], slope)


@pytest.mark.usefixtures("x64")
def test_elliptical_samples() -> None:
    u = random.gaussian_copula(KEY, MATRIX, (DRAWS,))
    uniform(u)
    z = scipy.stats.norm.ppf(u)
    near(z[:, :, None] * z[:, None, :], MATRIX)
    u = random.t_copula(KEY, MATRIX, 4.0, (DRAWS,))
    uniform(u)
    z = scipy.stats.t.ppf(u, 4.0)
    # The means of the signs' products, of Student's vectors as of normal ones.
    near(np.sign(z[:, :, None] * z[:, None, :]), 2 / np.pi * np.arcsin(MATRIX))
    # Student's components are extreme together more often: the mean of a power, by its log density at normal points.
    points = np.asarray(random.gaussian_copula(KEY, MATRIX, (DRAWS,)))
    ratios = np.exp(stats.t_copula.logpdf(points, MATRIX, 4.0) - stats.gaussian_copula.logpdf(points, MATRIX))
    corner = lambda v: ((v < 0.2) | (v > 0.8)).all(-1)
    assert abs(float(np.mean(ratios * corner(points))) - float(np.mean(corner(np.asarray(u))))) < 0.03


def correlated(r: Any) -> Any:
    return jnp.array([[1.0, 0.0], [0.0, 1.0]]) + r * jnp.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("draw", "at", "order"),
    [
        (lambda r: random.gaussian_copula(KEY, correlated(r), (5,)), 0.3, 2),
        (lambda r: random.t_copula(KEY, correlated(r), 3.0, (5,)), 0.3, 1),
        (lambda t: random.gumbel_copula(KEY, 3, t, (5,)), 1.5, 1),
        (lambda t: random.frank_copula(KEY, 2, t, (5,)), 2.0, 1),
        (lambda t: random.frank_copula(KEY, 3, t, (3,)), 4.0, 2),
        (lambda t: random.frank_copula(KEY, 4, t, (5,)), 0.3, 1),
    ],
)
def test_derivatives_of_samples(draw: Any, at: float, order: int) -> None:
    """By differences of samples with the same key, where these are smooth functions of the parameters."""
    check_grads(draw, (at,), order, eps=1e-4, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("x64")
def test_both_modes_by_degrees_of_freedom() -> None:
    by_df = pullback.jvp(lambda df: random.t_copula(KEY, MATRIX, df, (5,)), (3.0,), (1.0,))[1]
    gradient = grad(lambda df: jnp.sum(random.t_copula(KEY, MATRIX, df, (5,))))(3.0)
    assert float(jnp.sum(by_df)) == pytest.approx(float(gradient), rel=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_samples_are_compiled_and_mapped() -> None:
    def every(key: Any, theta: Any) -> list[Any]:
        matrix = jnp.where(jnp.eye(3) == 1, 1, 1 / (1 + theta))
        archimedean = [f(key, 3, theta) for f in (random.clayton_copula, random.gumbel_copula, random.frank_copula)]
        return [*archimedean, random.gaussian_copula(key, matrix), random.t_copula(key, matrix, theta)]

    keys, thetas = random.split(KEY, 2), np.array([1.5, 5.0])
    rows = [every(k, theta) for k, theta in zip(keys, thetas, strict=True)]
    for i, got in enumerate(pullback.jit(pullback.vmap(every))(keys, thetas)):
        np.testing.assert_allclose(got, [row[i] for row in rows], rtol=1e-9, atol=1e-12)


def test_shapes_dtypes_and_parameters_outside_their_range() -> None:
    thetas = np.array([0.5, 2.0], np.float32)
    assert random.clayton_copula(KEY, 3, thetas).shape == (2, 3)
    assert random.clayton_copula(KEY, 3, thetas, (4, 2)).shape == (4, 2, 3)
    assert random.frank_copula(KEY, 2, thetas, (0, 2)).shape == (0, 2, 2)
    assert random.t_copula(KEY, np.eye(2), np.ones(5)).shape == (5, 2)
    assert random.gaussian_copula(KEY, np.stack([np.eye(2)] * 3), (4, 3)).shape == (4, 3, 2)
    for theta in (1e-3, 1.0, 50.0, 500.0):
        for name in ("clayton_copula", "frank_copula", "gumbel_copula"):
            u = np.asarray(getattr(random, name)(KEY, 3, max(theta, 1.0) if name[0] == "g" else theta, (200,)))
            assert u.dtype == np.float32
            assert ((u > 0) & (u < 1)).all()
    with enable_x64():
        assert random.gumbel_copula(KEY, 2, 2).dtype == np.float64
        assert random.gumbel_copula(KEY, 2, 2.0, dtype="float32").dtype == np.float32
    assert np.isnan(random.clayton_copula(KEY, 2, np.array([0.0, -1.0]))).all()
    assert np.isnan(random.gumbel_copula(KEY, 2, 0.9)).all()
    assert np.isnan(random.frank_copula(KEY, 3, -1.0)).all()
    assert np.isnan(random.t_copula(KEY, np.eye(2), -1.0)).all()
    assert np.isnan(random.gaussian_copula(KEY, np.array([[1.0, 2.0], [2.0, 1.0]]))).any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.clayton_copula(0, 2, 1.0), OperandError, "clayton_copula: expected a random key"),
        (lambda: random.clayton_copula(KEY, 1, 1.0), ArgumentError, "n must be at least 2, got 1"),
        (lambda: random.gumbel_copula(KEY, 2.5, 1.0), ShapeError, "n must be an int"),
        (lambda: random.frank_copula(KEY, 2, 1j), DtypeError, "theta must be a real number"),
        (lambda: random.frank_copula(KEY, 2, np.ones(3), (2,)), ShapeError, "must broadcast"),
        (lambda: random.gaussian_copula(KEY, np.ones(2)), ShapeError, "correlation must have a shape"),
        (lambda: random.gaussian_copula(KEY, 2 * np.eye(2)), ArgumentError, "must be 1, got"),
        (lambda: random.t_copula(KEY, np.eye(2), 3.0, dtype=int), ArgumentError, "floating-point"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
