"""Directions of von Mises and Fisher: SciPy's densities, means and distributions of samples, and derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback
import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, random
from pullback.scipy import stats
from pullback.test_util import check_grads
from tests.scipy.laws import check_laws

KEY = random.key(3)
DRAWS = 4000
RNG = np.random.default_rng(2)


def unit(n: int, *shape: int) -> Any:
    x = RNG.standard_normal((*shape, n))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def close(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.usefixtures("x64")
def test_densities_and_entropies_are_those_of_scipy() -> None:
    for n in (2, 3, 4, 9, 40):
        x, mu = unit(n, 5), unit(n)
        for kappa in (1e-3, 0.7, 30.0, 2e4):
            theirs = scipy.stats.vonmises_fisher(mu, kappa)
            close(stats.vonmises_fisher.logpdf(x, mu, kappa), theirs.logpdf(x))
            close(stats.vonmises_fisher.pdf(x, mu, kappa), theirs.pdf(x), 1e-10)
            # SciPy's entropy multiplies the concentration by a mean that it rounds to a multiple of 1e-16.
            close(stats.vonmises_fisher.entropy(mu, kappa), theirs.entropy(), max(1e-11, 1e-15 * kappa))
        area = 2 * math.pi ** (n / 2) / math.gamma(n / 2)
        close(stats.vonmises_fisher.pdf(x, mu, 0.0), np.full(5, 1 / area))
    assert np.isnan(stats.vonmises_fisher.logpdf(x, mu, -1.0)).all()
    assert np.isnan(stats.vonmises_fisher.entropy(mu, -1.0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("n", [2, 3, 6])
def test_laws_of_densities(n: int) -> None:
    x, mu = unit(n, 2), unit(n)
    direction = lambda v: v / jnp.linalg.norm(v, axis=-1, keepdims=True)
    check_laws(lambda x, m, k: stats.vonmises_fisher.logpdf(direction(x), direction(m), k), [x, mu, np.array(3.0)],
               tolerance=1e-10)  # fmt: skip
    check_grads(lambda k: stats.vonmises_fisher.entropy(mu, k), (3.0,), 1, eps=1e-5)


def test_single_precision_where_the_integral_underflows() -> None:
    mu = np.zeros(50, np.float32)
    mu[3] = 1
    expected = scipy.stats.vonmises_fisher(mu.astype(np.float64), 1e4).logpdf(mu.astype(np.float64))
    found = stats.vonmises_fisher.logpdf(mu, mu, np.float32(1e4))
    assert found.dtype == np.float32
    close(found, expected, 1e-5)
    assert np.isfinite(grad(lambda k: stats.vonmises_fisher.logpdf(mu, mu, k))(np.float32(1e4)))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("n", "kappa"), [(2, 0.0), (2, 3.0), (2, 1e3), (3, 0.5), (3, 40.0), (7, 5.0), (30, 1e3)])
def test_samples(n: int, kappa: float) -> None:
    mu = unit(n)
    x = np.asarray(random.von_mises_fisher(KEY, mu, kappa, (DRAWS,)))
    close(np.linalg.norm(x, axis=-1), np.ones(DRAWS))
    along = x @ mu
    # The distribution function of the component along the mean direction, by quadrature of its density.
    theta = np.linspace(1e-9, np.pi - 1e-9, 200_001)
    logs = (n - 2) * np.log(np.sin(theta)) + kappa * (np.cos(theta) - 1)
    weights = np.cumsum(np.exp(logs - logs.max()))
    law = lambda v: 1 - np.interp(np.arccos(np.clip(v, -1, 1)), theta, weights / weights[-1])
    assert scipy.stats.kstest(along, law).pvalue > 1e-4
    # The rest is uniform: its mean is zero.
    rest = x - along[:, None] * mu
    assert (np.abs(rest.mean(0)) < 5 * rest.std(0) / math.sqrt(DRAWS) + 1e-6).all()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("n", "kappa"), [(2, 3.0), (3, 0.5), (7, 50.0)])
def test_derivatives_by_the_concentration(n: int, kappa: float) -> None:
    """Against the derivative of the mean, and in three dimensions against that of the quantile."""
    mu = unit(n)
    along = lambda k: random.von_mises_fisher(KEY, mu, k, (DRAWS,)) @ mu
    slopes = np.asarray(jvp(along, (kappa,), (1.0,))[1])
    step = 1e-4 * kappa
    resultant = lambda k: scipy.special.ive(n / 2, k) / scipy.special.ive(n / 2 - 1, k)
    expected = (resultant(kappa + step) - resultant(kappa - step)) / (2 * step)
    assert abs(slopes.mean() - expected) < 5 * slopes.std() / math.sqrt(DRAWS) + 1e-9
    total = lambda k: jnp.sum(random.von_mises_fisher(KEY, mu, k, (5,)) ** 3)
    close(grad(total)(kappa), jvp(total, (kappa,), (1.0,))[1], 1e-9)
    # In three dimensions the quantile has a closed form.
    if n == 3:
        w = np.asarray(along(kappa))[:200]
        share = np.expm1(kappa * (w + 1)) / np.expm1(2 * kappa)
        quantile = lambda k: 1 + np.log(share + (1 - share) * np.exp(-2 * k)) / k
        close(slopes[:200], (quantile(kappa + 1e-5) - quantile(kappa - 1e-5)) / 2e-5, 1e-6)


@pytest.mark.usefixtures("x64")
def test_derivatives_by_the_mean_direction() -> None:
    turned = lambda v: v / jnp.linalg.norm(v)
    check_grads(lambda v: random.von_mises_fisher(KEY, turned(v), 4.0, (3,)), (jnp.asarray(unit(4)),), 1, eps=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_samples_are_compiled_and_mapped() -> None:
    mu, keys, kappas = unit(3), random.split(KEY, 2), np.array([0.5, 20.0])
    draw = lambda key, kappa: random.von_mises_fisher(key, mu, kappa, (4,))
    rows = [draw(k, kappa) for k, kappa in zip(keys, kappas, strict=True)]
    close(jit(pullback.vmap(draw))(keys, kappas), rows, 1e-10)
    slope = lambda key, kappa: jvp(lambda k: draw(key, k), (kappa,), (1.0,))[1]
    rows = [slope(k, kappa) for k, kappa in zip(keys, kappas, strict=True)]
    close(jit(pullback.vmap(slope))(keys, kappas), rows, 1e-9)
    share = np.expm1(2.0 * (draw(keys[0], 2.0) @ mu + 1)) / np.expm1(4.0)
    quantiles = lambda k: jnp.sum(1 + jnp.log(share + (1 - share) * jnp.exp(-2 * k)) / k)
    total = lambda k: jnp.sum(draw(keys[0], k) @ mu)
    close(grad(total)(2.0), grad(quantiles)(2.0), 1e-9)
    close(grad(grad(total))(2.0), grad(grad(quantiles))(2.0), 1e-8)


def test_shapes_dtypes_and_parameters_outside_their_range() -> None:
    mu = np.array([0.0, 0.0, -1.0], np.float32)
    x = random.von_mises_fisher(KEY, mu, np.array([1.0, 2.0], np.float32), (4, 2))
    assert x.shape == (4, 2, 3)
    assert x.dtype == np.float32
    assert random.von_mises_fisher(KEY, mu, 1.0).shape == (3,)
    assert random.von_mises_fisher(KEY, mu, 1.0, (0,)).shape == (0, 3)
    assert np.isnan(random.von_mises_fisher(KEY, mu, -1.0)).all()
    near = random.von_mises_fisher(KEY, mu, 1e8, (100,))
    close(near, np.broadcast_to(mu, (100, 3)), 1e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: random.von_mises_fisher(0, np.ones(2), 1.0),
            errors.OperandError,
            "von_mises_fisher: expected a random",
        ),
        (
            lambda: random.von_mises_fisher(KEY, np.ones(2), 1.0),
            errors.ArgumentError,
            "mu must have vectors of length 1",
        ),
        (lambda: random.von_mises_fisher(KEY, 1.0, 1.0), errors.ShapeError, "mu must have an axis of at least 2"),
        (lambda: random.von_mises_fisher(KEY, unit(2), np.ones(3), (2,)), errors.ShapeError, "must broadcast"),
        (lambda: stats.vonmises_fisher.logpdf(unit(2), unit(3)), errors.ShapeError, "as many components"),
        (
            lambda: stats.vonmises_fisher.logpdf(2 * unit(2), unit(2)),
            errors.ArgumentError,
            "x must have vectors of length",
        ),
        (lambda: stats.vonmises_fisher.entropy(unit(2, 2), np.ones(3)), errors.ShapeError, "do not broadcast"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
