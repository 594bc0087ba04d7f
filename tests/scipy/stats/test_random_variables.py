"""Distributions as objects: SciPy's values of truncated and mixed ones, derivatives, and trees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback.numpy as jnp
from pullback import errors, grad, jit, random, tree, vmap
from pullback.scipy import stats
from pullback.test_util import check_grads

pytestmark = pytest.mark.usefixtures("x64")
KEY = random.key(1)
X = np.linspace(-1.52, 6.48, 9)
P = np.array([0.0, 1e-9, 0.01, 0.3, 0.5, 0.8, 1 - 1e-9, 1.0])
KINDS = ("pdf", "logpdf", "cdf", "logcdf", "ccdf", "logccdf")


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-13)


def agree(ours: Any, theirs: Any, inverses: Any = ("icdf", "iccdf"), tolerance: float = 1e-9) -> None:
    with np.errstate(all="ignore"):
        for kind in KINDS:
            close(getattr(ours, kind)(X), getattr(theirs, kind)(X), tolerance)
        for kind in inverses:
            close(getattr(ours, kind)(P[1:-1]), getattr(theirs, kind)(P[1:-1]), 1e-6)
            ends = list(ours.support())
            close(getattr(ours, kind)(np.array([0.0, 1.0])), ends if kind == "icdf" else ends[::-1])
    for a, b in zip(ours.support(), theirs.support(), strict=True):
        close(a, b)


def test_objects_of_distributions() -> None:
    agree(stats.Normal(mu=1.0, sigma=2.0), scipy.stats.Normal(mu=1.0, sigma=2.0))
    agree(stats.Uniform(a=-1.0, b=3.0), scipy.stats.Uniform(a=-1.0, b=3.0))
    ours, theirs = (m.make_distribution(m.gamma)(a=2.5) for m in (stats, scipy.stats))
    agree(ours, theirs)
    close(ours.cdf(1.0, 2.0), theirs.cdf(1.0, 2.0))
    close(stats.Normal().cdf(30.0, 31.0), scipy.stats.norm.sf(30.0), 1e-10)
    moved = stats.make_distribution(stats.gamma)(a=2.5, loc=1.0, scale=3.0)
    close(moved.pdf(X), scipy.stats.gamma.pdf(X, 2.5, 1.0, 3.0))
    assert repr(moved) == "make_distribution(gamma)(a=2.5, loc=1.0, scale=3.0)"
    assert repr(stats.Normal(2.0)) == "Normal(mu=2.0, sigma=1.0)"
    assert repr(stats.Uniform(a=1.0, b=3.0)) == "Uniform(a=1.0, b=3.0)"


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (0.5, math.inf), (-math.inf, 1.0), (2.0, 5.0), (-5.0, -2.0)])
def test_truncated_distributions(low: float, high: float) -> None:
    ours, theirs = (m.truncate(m.Normal(mu=0.3, sigma=1.2), low, high) for m in (stats, scipy.stats))
    agree(ours, theirs, tolerance=1e-8)
    a, b = (low - 0.3) / 1.2, (high - 0.3) / 1.2
    inner = X[(low < X) & (high > X)]
    for kind, name in (("logpdf", "logpdf"), ("logcdf", "logcdf"), ("logccdf", "logsf")):
        close(getattr(ours, kind)(inner), getattr(stats.truncnorm, name)(inner, a, b, 0.3, 1.2), 1e-10)
    whole = stats.truncate(stats.make_distribution(stats.gamma)(a=2.0), low, max(high, 1.0))
    assert not np.isnan(grad(lambda s: jnp.sum(jnp.where(s.pdf(X) > 0, s.logpdf(X), 0)))(whole)._of_all._parameters[0])


def test_far_tails_of_truncated_distributions() -> None:
    far = stats.truncate(stats.Normal(), 30.0, 31.0)
    close(far.pdf(30.01), scipy.stats.norm.pdf(30.01) / (scipy.stats.norm.sf(30.0) - scipy.stats.norm.sf(31.0)))
    close(far.cdf(far.icdf(0.3)), 0.3)
    left = stats.truncate(stats.Normal(), -31.0, -30.0)
    close(left.icdf(0.7), -far.icdf(0.3), 1e-12)
    beyond = stats.truncate(stats.Normal(), 40.0, 41.0)
    close(beyond.logpdf(40.01), stats.truncnorm.logpdf(40.01, 40.0, 41.0), 1e-10)
    close(beyond.cdf(40.01), stats.truncnorm.cdf(40.01, 40.0, 41.0), 1e-9)
    assert np.isnan(beyond.icdf(0.3))
    assert np.isfinite(grad(lambda lb: stats.truncate(stats.Normal(), lb, 41.0).logpdf(40.5))(40.0))


MIXED = ([0.3, 0.7], [0.0, 3.0], [1.0, 0.5])


def mixture(m: Any, weights: Any, means: Any, deviations: Any) -> Any:
    parts = [m.Normal(mu=mean, sigma=deviation) for mean, deviation in zip(means, deviations, strict=True)]
    return m.Mixture(parts, weights=weights)


def test_mixtures() -> None:
    agree(mixture(stats, *MIXED), mixture(scipy.stats, *MIXED), ["icdf"])
    even = stats.Mixture([stats.Normal(), stats.Uniform(a=2.0, b=3.0)])
    close(even.pdf(X), (scipy.stats.norm.pdf(X) + scipy.stats.uniform.pdf(X, 2.0)) / 2)
    ours = mixture(stats, *MIXED)
    close(ours.weights, MIXED[0])
    assert len(ours.components) == 2
    assert repr(ours).startswith("Mixture([Normal(mu=0.0, sigma=1.0), Normal(mu=3.0")
    outside = stats.Mixture([stats.Uniform(), stats.Uniform(a=2.0, b=3.0)])
    assert np.isneginf(outside.logpdf(1.5))
    assert grad(lambda w: stats.Mixture([stats.Uniform(), stats.Uniform()], weights=[w, 1 - w]).logpdf(1.5))(0.3) == 0


@pytest.mark.slow
def test_quantiles_of_mixtures() -> None:
    ours = mixture(stats, *MIXED)
    tail = np.array([1e-200, 1e-20])
    close(ours.ccdf(ours.iccdf(tail)), tail, 1e-8)
    close(ours.cdf(ours.icdf(tail)), tail, 1e-8)
    nested = stats.Mixture([ours, stats.truncate(stats.Normal(), 0.0, 1.0)], weights=[0.5, 0.5])
    close(nested.cdf(nested.icdf(P[1:-1])), P[1:-1], 1e-8)
    assert np.isnan(ours.icdf(np.array([-0.1, 1.1]))).all()


def mixed(w: Any, mean: Any, deviation: Any) -> Any:
    return stats.Mixture([stats.Normal(), stats.Normal(mu=mean, sigma=deviation)], weights=[1 - w, w])


def cut(mean: Any, low: Any, high: Any) -> Any:
    return stats.truncate(stats.Normal(mu=mean), low, high)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        *((mixed, kind) for kind in ("logpdf", "logcdf")),
        *((cut, kind) for kind in ("logpdf", "logcdf", "icdf")),
        pytest.param(mixed, "icdf", marks=pytest.mark.slow),
    ],
)
def test_derivatives_by_all_parameters(make: Any, kind: str) -> None:
    x = jnp.array([0.2, 0.9])
    arguments = (0.3, 2.0, 0.7) if make is mixed else (0.3, -1.0, 3.0)
    check_grads(lambda *a: getattr(make(*a[:3]), kind)(a[3]), (*arguments, x), 1, eps=1e-5, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_second_derivatives_of_a_quantile() -> None:
    check_grads(lambda mean: mixed(0.3, mean, 0.7).icdf(0.8), (2.0,), 2, eps=1e-4, rtol=1e-5, atol=1e-5)


def test_derivatives_by_objects() -> None:
    x = jnp.array([-0.4, 0.6, 2.2])
    check_grads(lambda mean, low: cut(mean, low, math.inf).logpdf(x), (0.3, -1.0), 1, eps=1e-5, rtol=1e-5, atol=1e-5)
    by_object = grad(lambda m: jnp.sum(m.logpdf(x)))(mixed(0.3, 2.0, 0.7))
    step = 1e-6
    by_mean = lambda mean: jnp.sum(mixed(0.3, mean, 0.7).logpdf(x))
    close(by_object.components[1]._loc, (by_mean(2.0 + step) - by_mean(2.0 - step)) / (2 * step), 1e-6)


@pytest.mark.slow
def test_objects_are_compiled_and_mapped() -> None:
    ours = mixture(stats, *MIXED)
    assert len(tree.leaves(ours)) == 6
    close(jit(lambda m, x: m.logpdf(x))(ours, X), ours.logpdf(X))
    close(jit(lambda m, p: m.icdf(p))(ours, P[1:-1]), ours.icdf(P[1:-1]))
    means = jnp.array([0.5, 2.0])
    close(vmap(lambda mean: mixture(stats, MIXED[0], [0.0, mean], MIXED[2]).icdf(0.6))(means)[1],
          mixture(stats, MIXED[0], [0.0, 2.0], MIXED[2]).icdf(0.6))  # fmt: skip
    ordered = stats.make_distribution(stats.exponweib)(a=2.0, c=3.0)
    close(jit(lambda d: d.pdf(0.5))(ordered), scipy.stats.exponweib.pdf(0.5, 2.0, 3.0))
    close(stats.Normal(mu=np.array([0.0, 1.0])).pdf(np.zeros((3, 1))).shape, (3, 2))


def test_samples() -> None:
    for made, law in (
        (mixture(stats, *MIXED), mixture(scipy.stats, *MIXED).cdf),
        (stats.truncate(stats.Normal(), 0.5, 2.0), scipy.stats.truncnorm(0.5, 2.0).cdf),
    ):
        assert scipy.stats.kstest(np.asarray(made.sample((2000,), rng=KEY)), law).pvalue > 1e-4
    assert stats.Normal(mu=np.zeros((2, 1))).sample((4,), rng=3).shape == (4, 2, 1)
    mean = lambda w: jnp.mean(mixture(stats, [1 - w, w], *MIXED[1:]).sample((2000,), rng=KEY))
    assert abs(grad(mean)(0.4) - 3.0) < 0.3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.make_distribution(stats.poisson), "make_distribution takes a module of a continuous"),
        (lambda: stats.make_distribution(stats.gamma)(b=1.0), r"takes the parameters \['a'\], loc and scale, got"),
        (lambda: stats.make_distribution(stats.gamma)(a="1"), "gamma: a"),
        (lambda: stats.truncate(stats.norm, 0.0, 1.0), "truncate: X must be a distribution"),
        (lambda: stats.truncate(stats.Normal(), 1.0, 1.0), "truncate: lb must be less than ub, got 1.0 and 1.0"),
        (lambda: stats.Mixture([]), "Mixture: components must be distributions"),
        (lambda: stats.Mixture([stats.norm]), "Mixture: components must be distributions"),
        (lambda: stats.Mixture([stats.Normal()], weights=[0.5, 0.5]), r"weights must have shape \(1,\), got \(2,\)"),
        (lambda: stats.Mixture([stats.Normal()], weights=[0.5]), "weights must not be negative, and add to 1"),
        (lambda: stats.Normal().sample((2,)), "Normal.sample needs randomness"),
        (lambda: stats.Normal().sample(rng=np.random.default_rng(0)), "pass random.key"),
        (lambda: stats.Normal().pdf("x"), "Normal.pdf|norm.pdf"),
        (lambda: stats.Normal().pdf(1j), "Normal.pdf takes floats"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, message: str) -> None:
    with pytest.raises(errors.PullbackError, match=message):
        call()
