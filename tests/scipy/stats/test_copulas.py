"""Copulas: densities are mixed derivatives of distribution functions, or SciPy's quotients; limits and derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp
from pullback.core.config import enable_x64
from pullback.scipy import stats
from pullback.test_util import check_grads
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(1)
ARCHIMEDEAN: dict[str, tuple[float, ...]] = {
    "clayton_copula": (0.0, 1e-7, 0.3, 2.0, 30.0),
    "frank_copula": (0.0, 1e-7, 0.3, 2.0, 30.0, -0.5, -20.0),
    "gumbel_copula": (1.0, 1.0001, 1.3, 2.0, 12.0),
}
CORRELATION = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.3], [-0.2, 0.3, 1.0]])


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def mixed(cdf: Callable[[Any], Any], u: Any) -> Any:
    """The derivative of a function of n numbers by each of them."""
    f = cdf
    for i in range(u.shape[-1]):
        direction = jnp.zeros_like(u).at[..., i].set(1)
        f = lambda x, f=f, d=direction: jvp(f, (x,), (d,))[1]
    return f(u)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ARCHIMEDEAN)
def test_densities_are_derivatives_of_distribution_functions(name: str) -> None:
    copula = getattr(stats, name)
    for n in (2, 3):
        u = jnp.asarray(RNG.uniform(0.2, 0.9, (6, n)))
        for theta in ARCHIMEDEAN[name]:
            if theta < 0 and n > 2:
                continue
            expected = mixed(lambda x: copula.cdf(x, theta), u)  # noqa: B023
            close(copula.pdf(u, theta), expected, 1e-6 if 0 < theta < 1e-6 or theta == 1.0001 else 1e-8)
            close(copula.logpdf(u, theta), np.log(copula.pdf(u, theta)))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ARCHIMEDEAN)
def test_margins_are_uniform_and_limits_are_continuous(name: str) -> None:
    copula = getattr(stats, name)
    for theta in ARCHIMEDEAN[name]:
        ones = np.array([[0.3, 1.0], [1.0, 0.6], [0.3, 2.0], [0.3, 0.0], [-1.0, 0.5]])
        close(copula.cdf(ones, theta), [0.3, 0.6, 0.3, 0.0, 0.0], 1e-9)
        assert np.isneginf(copula.logpdf(ones, theta)).all()
        assert (np.asarray(copula.pdf(ones, theta)) == 0).all()
    free = ARCHIMEDEAN[name][0]
    u = RNG.uniform(size=(4, 3))
    close(copula.pdf(u, free), np.ones(4))
    close(copula.cdf(u, free), u.prod(-1))
    by = lambda theta: jnp.sum(copula.logpdf(u, theta))
    at = 1e-4
    close(grad(by)(free + 1e-9), (by(free + at) - by(free)) / at, 3e-2)
    close(grad(by)(free), grad(by)(free + 1e-7), 1e-4)
    # Points near the corners, in which terms overflow or cancel.
    corner = np.array([[1e-12, 1e-12], [1e-300, 0.5], [1 - 1e-12, 1 - 2e-12], [1e-9, 1 - 1e-9]])
    for theta in (5.0, 80.0):
        assert not np.isnan(copula.logpdf(corner, theta)).any()
        assert not np.isnan(grad(lambda t: jnp.sum(copula.logpdf(corner, t)))(theta))


@pytest.mark.usefixtures("x64")
def test_densities_of_clayton_and_gumbel_in_ten_dimensions() -> None:
    """The density of all components, against one in the same components but the last, by its conditional law."""
    u, nodes = RNG.uniform(0.1, 0.9, 9), np.polynomial.legendre.leggauss(60)
    t, w = (nodes[0] + 1) / 2, nodes[1] / 2
    # The last component is x = t**4, for singularities at its ends.
    points = np.concatenate([np.tile(u, (60, 1)), (t**4)[:, None]], 1)
    for name, theta in (("clayton_copula", 2.0), ("frank_copula", 3.0), ("gumbel_copula", 1.5)):
        copula = getattr(stats, name)
        close(np.sum(np.asarray(copula.pdf(points, theta)) * w * 4 * t**3), copula.pdf(u, theta), 1e-4)


@pytest.mark.usefixtures("x64")
def test_elliptical_densities_are_quotients_of_those_of_scipy() -> None:
    u = RNG.uniform(size=(5, 3))
    z = scipy.stats.norm.ppf(u)
    expected = scipy.stats.multivariate_normal.logpdf(z, cov=CORRELATION) - scipy.stats.norm.logpdf(z).sum(-1)
    close(stats.gaussian_copula.logpdf(u, CORRELATION), expected)
    close(stats.gaussian_copula.pdf(u, CORRELATION), np.exp(expected))
    z = scipy.stats.t.ppf(u, 3.5)
    expected = scipy.stats.multivariate_t.logpdf(z, None, CORRELATION, 3.5) - scipy.stats.t.logpdf(z, 3.5).sum(-1)
    close(stats.t_copula.logpdf(u, CORRELATION, 3.5), expected)
    close(stats.t_copula.pdf(u, CORRELATION, 3.5), np.exp(expected))
    same = np.where(np.eye(3) == 1, 1, 0.3)
    close(stats.gaussian_copula.logpdf(u, 0.3), stats.gaussian_copula.logpdf(u, same))
    close(stats.t_copula.logpdf(u, np.full(5, 0.3), 4.0), stats.t_copula.logpdf(u, same, 4.0))
    close(stats.t_copula.logpdf(u, CORRELATION, math.inf), stats.gaussian_copula.logpdf(u, CORRELATION))
    outside = np.array([[0.5, 0.0, 0.5], [0.5, 1.5, 0.5]])
    assert np.isneginf(stats.gaussian_copula.logpdf(outside, 0.1)).all()
    assert np.isneginf(stats.t_copula.logpdf(outside, 0.1, 3.0)).all()
    assert np.isnan(stats.gaussian_copula.logpdf(np.array([math.nan, 0.5]), 0.1))
    assert np.isnan(stats.gaussian_copula.logpdf(u[0], -0.9))
    assert np.isnan(stats.t_copula.logpdf(u[0], 0.1, -1.0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "theta"),
    [("clayton_copula", 2.0), ("frank_copula", 0.4), ("frank_copula", 3.0), ("gumbel_copula", 1.5)],
)
@pytest.mark.parametrize("kind", ["logpdf", "cdf"])
def test_laws_of_archimedean_copulas(name: str, theta: float, kind: str) -> None:
    check_laws(getattr(getattr(stats, name), kind), [RNG.uniform(0.1, 0.9, (2, 3)), np.array(theta)], tolerance=1e-10)


@pytest.mark.usefixtures("x64")
def test_laws_of_elliptical_copulas() -> None:
    u = RNG.uniform(0.1, 0.9, (2, 3))
    check_grads(stats.frank_copula.logpdf, (jnp.asarray(u[:, :2]), -3.0), 1, eps=1e-5)
    check_laws(stats.gaussian_copula.logpdf, [u, np.array(0.3)], tolerance=1e-10)
    check_laws(stats.t_copula.logpdf, [u, np.array(0.3), np.array(3.5)], tolerance=1e-9)
    factor = np.linalg.cholesky(CORRELATION)
    unit = lambda r: (r / jnp.linalg.norm(r, axis=1)[:, None]) @ (r / jnp.linalg.norm(r, axis=1)[:, None]).T
    check_grads(lambda r: stats.gaussian_copula.logpdf(u, unit(r)), (jnp.asarray(factor),), 1, eps=1e-5)


def test_precision_and_dtypes() -> None:
    u = np.array([[0.3, 0.6], [0.01, 0.02]], np.float32)
    for name, theta in (("clayton_copula", 2.0), ("frank_copula", 3.0), ("gumbel_copula", 1.5)):
        copula = getattr(stats, name)
        found = jit(copula.logpdf)(u, theta)
        assert found.dtype == np.float32
        with enable_x64():
            close(found, copula.logpdf(u.astype(np.float64), theta), 1e-5)
    assert stats.gaussian_copula.logpdf(u, 0.5).dtype == np.float32
    assert np.isnan(stats.clayton_copula.pdf(u, -1.0)).all()
    assert np.isnan(stats.gumbel_copula.cdf(u, 0.5)).all()
    assert np.isnan(stats.frank_copula.cdf(np.array([0.1, 0.2, 0.3]), -1.0))
    assert np.isnan(stats.frank_copula.cdf(np.array([0.1, math.nan]), 1.0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: stats.clayton_copula.logpdf(0.5, 1.0),
            errors.ShapeError,
            "clayton_copula.logpdf: u must have an axis",
        ),
        (lambda: stats.clayton_copula.pdf(np.ones(1), 1.0), errors.ShapeError, "clayton_copula.pdf"),
        (lambda: stats.frank_copula.cdf(np.ones((3, 2)), np.ones(2)), errors.ShapeError, "do not broadcast"),
        (lambda: stats.gumbel_copula.cdf(1j * np.ones(2), 1.0), errors.DtypeError, "gumbel_copula.cdf"),
        (lambda: stats.gaussian_copula.logpdf(np.ones(2) / 2, np.eye(3)), errors.ShapeError, "correlation must be"),
        (lambda: stats.gaussian_copula.logpdf(np.ones(2) / 2, 2 * np.eye(2)), errors.ArgumentError, "must be 1, got"),
        (lambda: stats.t_copula.logpdf(np.ones(1), 0.1, 3.0), errors.ShapeError, "at least 2 components"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
