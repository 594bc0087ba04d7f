"""The distributions of ``random``: statistics with fixed keys, laws, derivatives, ends of the domain, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pullback
import pullback.numpy as pnp
from pullback import lax, random
from pullback.core.config import enable_x64, threefry_partitionable
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.primitives.random.rejection import log_slope

N = 20_000
NAN, INF = np.nan, np.inf

# Statistics --------------------------------------------------------------------------------------------------------

Draw = Callable[[Any, Any], Any]
LAW = np.array([0.1, 0.2, 0.3, 0.4])

CONTINUOUS: dict[str, tuple[Draw, Any]] = {
    "uniform": (lambda k, s: random.uniform(k, s, minval=-1, maxval=3), stats.uniform(-1, 4)),
    "normal": (lambda k, s: random.normal(k, s), stats.norm()),
    "complex normal": (lambda k, s: random.normal(k, s, complex).imag, stats.norm(0, np.sqrt(0.5))),
    "truncated_normal": (lambda k, s: random.truncated_normal(k, -1.0, 2.0, s), stats.truncnorm(-1, 2)),
    "exponential": (lambda k, s: random.exponential(k, s), stats.expon()),
    "gumbel": (lambda k, s: random.gumbel(k, s), stats.gumbel_r()),
    "laplace": (lambda k, s: random.laplace(k, s), stats.laplace()),
    "logistic": (lambda k, s: random.logistic(k, s), stats.logistic()),
    "cauchy": (lambda k, s: random.cauchy(k, s), stats.cauchy()),
    "gamma": (lambda k, s: random.gamma(k, 2.5, s), stats.gamma(2.5)),
    "gamma of a small parameter": (lambda k, s: random.gamma(k, 0.3, s), stats.gamma(0.3)),
    "loggamma": (lambda k, s: random.loggamma(k, 0.7, s), stats.loggamma(0.7)),
    "beta": (lambda k, s: random.beta(k, 0.5, 2.0, s), stats.beta(0.5, 2)),
    "chisquare": (lambda k, s: random.chisquare(k, 3.0, s), stats.chi2(3)),
    "f": (lambda k, s: random.f(k, 3.0, 7.0, s), stats.f(3, 7)),
    "t": (lambda k, s: random.t(k, 2.5, s), stats.t(2.5)),
    "dirichlet": (lambda k, s: random.dirichlet(k, pnp.array([0.5, 1.0, 2.0]), s)[..., 1], stats.beta(1, 2.5)),
    "generalized_normal": (lambda k, s: random.generalized_normal(k, 3.0, s), stats.gennorm(3)),
    "ball": (lambda k, s: pnp.linalg.norm(random.ball(k, 3, 2, s), axis=-1) ** 3, stats.uniform()),
    "ball of another norm": (lambda k, s: (abs(random.ball(k, 2, 1, s)).sum(-1)) ** 2, stats.uniform()),
    "cube": (lambda k, s: random.ball(k, 2, INF, s)[..., 0], stats.uniform(-1, 2)),
    "lognormal": (lambda k, s: random.lognormal(k, 0.5, s), stats.lognorm(0.5)),
    "maxwell": (lambda k, s: random.maxwell(k, s), stats.maxwell()),
    "double_sided_maxwell": (lambda k, s: abs(random.double_sided_maxwell(k, 0.0, 2.0, s)), stats.maxwell(scale=2)),
    "pareto": (lambda k, s: random.pareto(k, 3.0, s), stats.pareto(3)),
    "rayleigh": (lambda k, s: random.rayleigh(k, 2.0, s), stats.rayleigh(scale=2)),
    "triangular": (lambda k, s: random.triangular(k, -1.0, 0.5, 2.0, s), stats.triang(0.5, -1, 3)),
    "wald": (lambda k, s: random.wald(k, 2.0, s), stats.invgauss(2, scale=1)),
    "weibull_min": (lambda k, s: random.weibull_min(k, 2.0, 1.5, s), stats.weibull_min(1.5, scale=2)),
    "multivariate_normal": (
        lambda k, s: random.multivariate_normal(k, pnp.ones(2), pnp.array([[2.0, 1.0], [1.0, 2.0]]), s).sum(-1),
        stats.norm(2, np.sqrt(6)),
    ),
}

DISCRETE: dict[str, tuple[Draw, Any]] = {
    "bernoulli": (lambda k, s: random.bernoulli(k, 0.3, s), stats.bernoulli(0.3)),
    "rademacher": (lambda k, s: (random.rademacher(k, s) + 1) // 2, stats.bernoulli(0.5)),
    "randint": (lambda k, s: random.randint(k, s, -3, 9), stats.randint(-3, 9)),
    "bits": (lambda k, s: random.bits(k, s, "uint8") // 16, stats.randint(0, 16)),
    "categorical": (
        lambda k, s: random.categorical(k, pnp.log(LAW), shape=s), stats.rv_discrete(values=(range(4), LAW))
    ),
    "choice": (lambda k, s: random.choice(k, 4, s, p=pnp.asarray(LAW)), stats.rv_discrete(values=(range(4), LAW))),
    "permutation": (
        lambda k, s: pullback.vmap(lambda k: random.permutation(k, 5)[1])(random.split(k, s)), stats.randint(0, 5)
    ),
    "poisson of a small mean": (lambda k, s: random.poisson(k, 3.0, s), stats.poisson(3)),
    "poisson of a large mean": (lambda k, s: random.poisson(k, 30.0, s), stats.poisson(30)),
    "binomial of a small mean": (lambda k, s: random.binomial(k, 20, 0.2, s), stats.binom(20, 0.2)),
    "binomial of a large mean": (lambda k, s: random.binomial(k, 100, 0.7, s), stats.binom(100, 0.7)),
    "geometric": (lambda k, s: random.geometric(k, 0.3, s), stats.geom(0.3)),
    "multinomial": (
        lambda k, s: random.multinomial(k, 30, pnp.array([0.2, 0.3, 0.5]), shape=(*s, 3))[..., 1], stats.binom(30, 0.3)
    ),
}  # fmt: skip


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("name", ["uniform", "normal", "gamma", "beta"])
def test_continuous_distributions_of_other_generators(name: str, impl: str) -> None:
    check_continuous(name, random.key(2, impl=impl))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    check_continuous(name, random.key(2))


def check_continuous(name: str, key: Any) -> None:
    draw, law = CONTINUOUS[name]
    x = np.asarray(draw(key, (N,)), np.float64)
    assert stats.kstest(x, law.cdf).pvalue > 1e-3
    if np.isfinite(law.std()):
        assert abs(x.mean() - law.mean()) < 4 * law.std() / np.sqrt(N)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize(
    "name", ["randint", "bits", "categorical", "poisson of a large mean", "binomial of a small mean"]
)
def test_discrete_distributions_of_other_generators(name: str, impl: str) -> None:
    check_discrete(name, random.key(2, impl=impl))


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    check_discrete(name, random.key(1))


def check_discrete(name: str, key: Any) -> None:
    draw, law = DISCRETE[name]
    x = np.asarray(draw(key, (N,)))
    low, high = law.ppf([0.002, 0.998])  # where what is beyond is counted too
    values = np.arange(low, high + 1)
    chances = law.pmf(values)
    chances[0], chances[-1] = law.cdf(low), law.sf(high - 1)
    found = [(np.clip(x, low, high) == v).sum() for v in values]
    assert stats.chisquare(found, chances * N / chances.sum()).pvalue > 1e-3
    assert abs(x.mean() - law.mean()) < 4 * law.std() / np.sqrt(N)
    assert abs(x.var() / law.var() - 1) < 0.06


def test_orthogonal_matrices() -> None:
    for dtype in ("float32", "complex64"):
        tall, wide = (np.asarray(random.orthogonal(random.key(0), n, (500,), dtype, m)) for n, m in ((4, 3), (3, 4)))
        unit = np.broadcast_to(np.eye(3), (500, 3, 3))
        np.testing.assert_allclose(np.swapaxes(tall, 1, 2).conj() @ tall, unit, atol=1e-5)
        np.testing.assert_allclose(wide @ np.swapaxes(wide, 1, 2).conj(), unit, atol=1e-5)
        assert abs(tall.mean(0)).max() < 0.1
        assert abs((abs(tall) ** 2).mean(0) - 1 / 4).max() < 0.05


def test_covariances() -> None:
    cov = np.array([[2, 1, 0], [1, 2, 0.5], [0, 0.5, 1]], np.float32)
    singular = np.outer([1, 2, 3], [1, 2, 3]).astype(np.float32)
    for method, c in (("cholesky", cov), ("eigh", cov), ("svd", cov), ("svd", singular)):
        x = np.asarray(random.multivariate_normal(random.key(3), np.zeros(3, np.float32), c, (N,), method=method))
        np.testing.assert_allclose(np.cov(x.T), c, atol=0.05 * c.max())


# Laws --------------------------------------------------------------------------------------------------------------


def counts(key: Any, x: Any) -> dict[str, Any]:
    return {"poisson": random.poisson(key, 8 * x), "binomial": random.binomial(key, 30 * x, 0.6)}


def samples(key: Any, x: Any) -> dict[str, Any]:
    """Samples by rejection, for parameters from 0.2 to 4."""
    return {"gamma": random.gamma(key, x), **counts(key, x)}


X = np.linspace(0.2, 4, 6, dtype=np.float32).reshape(2, 3)


def test_mapped_samples_are_those_of_each_key() -> None:
    keys = random.split(random.key(4), 3)
    also = pullback.vmap(samples, (0, None))(keys, X)
    mapped = [samples(k, X) for k in keys]
    for name, x in also.items():
        np.testing.assert_allclose(x, np.stack([m[name] for m in mapped]), rtol=2e-5)


@pytest.mark.slow
def test_compiled_samples_are_the_eager_ones() -> None:
    """Of several keys; those of one are compiled with the ends of the domain, below."""
    keys = random.split(random.key(4), 3)

    def all_of(keys: Any, x: Any) -> Any:
        return {"gamma": random.gamma(keys[0], x), **pullback.vmap(counts, (0, None))(keys, x)}

    with threefry_partitionable():
        eager, compiled = all_of(keys, X), pullback.jit(all_of)(keys, X)
    for name, x in eager.items():
        np.testing.assert_allclose(compiled[name], x, rtol=2e-5)


def test_parameters_that_are_mapped() -> None:
    key = random.key(5)
    got = pullback.vmap(lambda x: samples(key, x))(X)
    for i in range(2):
        for name, x in samples(key, X[i]).items():
            np.testing.assert_array_equal(got[name][i], x)
    last = pullback.vmap(lambda x: random.poisson(key, x, (5,)), in_axes=0)(pnp.array([1.0, 20.0]))
    np.testing.assert_array_equal(last[1], random.poisson(key, 20.0, (5,)))


def test_large_arrays_are_drawn_in_blocks() -> None:
    """A sample of the gamma distribution depends on its own key only, and a Poisson one on its position."""
    key = random.key(5)
    many = random.split(key, 40_000)
    drawn = pullback.vmap(lambda k: (random.gamma(k, 0.9), random.poisson(k, 3.0), random.poisson(k, 40.0)))(many)
    for i in (0, 16_383, 16_384, 39_999):
        assert drawn[0][i] == random.gamma(many[i], 0.9)
        assert drawn[1][i] == random.poisson(many[i], 3.0)
        assert drawn[2][i] == random.poisson(many[i], 40.0)


def test_dtypes() -> None:
    key = random.key(0)
    for dtype in ("float16", "bfloat16", "float32"):
        assert random.gamma(key, 2, (3,), dtype).dtype.name == dtype
        assert random.binomial(key, 9, 0.5, (3,), dtype).dtype.name == dtype
        assert random.multivariate_normal(key, np.zeros(2), np.eye(2), dtype=dtype).dtype.name == dtype
        assert random.orthogonal(key, 2, dtype=dtype).dtype.name == dtype
    assert random.poisson(key, 2, (3,), "int8").dtype == np.int8
    assert random.multinomial(key, 3, np.ones(2), dtype="int16").dtype == np.int16
    with enable_x64():
        assert random.gamma(key, 2).dtype == np.float64
        assert random.poisson(key, 2).dtype == np.int64


def test_nothing_to_draw() -> None:
    key = random.key(0)
    assert random.gamma(key, np.ones(0)).shape == (0,)
    assert random.poisson(key, 3.0, (0, 2)).shape == (0, 2)
    assert random.binomial(key, 3, 0.5, (2, 0)).shape == (2, 0)
    assert random.dirichlet(key, np.ones(0)).shape == (0,)
    assert random.multinomial(key, 3, np.ones(0)).shape == (0,)
    assert random.ball(key, 0, 2, (2,)).shape == (2, 0)
    assert random.orthogonal(key, 0).shape == (0, 0)
    assert random.multivariate_normal(key, np.zeros(0), np.zeros((0, 0)), (2,)).shape == (2, 0)
    assert pullback.jit(lambda k: random.gamma(k, 2.0, (0,)))(key).shape == (0,)
    assert pullback.jit(lambda k: random.poisson(k, 2.0, (0,)))(key).shape == (0,)


# Ends of the domain ------------------------------------------------------------------------------------------------


ENDS = np.array([-INF, -1, -0.5, 0, NAN, INF], np.float32)
CHANCES = np.array([-0.1, 0, 1, 1.1, NAN], np.float32)
AT_THE_ENDS: dict[str, tuple[tuple[Any, ...], list[float]]] = {
    "gamma": ((ENDS,), [NAN, NAN, NAN, 0, NAN, INF]),
    "loggamma": ((ENDS,), [NAN, NAN, NAN, -INF, NAN, INF]),
    "poisson": ((ENDS,), [-1, -1, -1, 0, -1, -1]),
    "binomial": (
        (np.float32([*ENDS, *[7] * 5, *[700] * 5]), np.float32([*[0.5] * 6, *CHANCES, *CHANCES])),
        [NAN, NAN, NAN, 0, NAN, INF, NAN, 0, 7, NAN, NAN, NAN, 0, 700, NAN, NAN],
    ),
    "geometric": ((CHANCES,), [-1, 2**31 - 1, 1, -1, -1]),
}
"""Parameters where there is no distribution, or one of one number, and what is drawn."""


def with_others(name: str) -> list[Any]:
    """The parameters of the table, after others in the middle of the domain."""
    inner = (X.ravel() * 10, X.ravel() / 5) if name == "binomial" else (X.ravel() / (5 if name == "geometric" else 1),)
    return [np.concatenate(pair) for pair in zip(inner, AT_THE_ENDS[name][0], strict=True)]


def drawn_from(key: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(random, name)(key, *xs) for name, xs in parameters.items()}


@pytest.mark.slow
def test_the_middle_and_the_ends_compiled() -> None:
    """One program: to compile a loop takes a second."""
    parameters = {name: with_others(name) for name in AT_THE_ENDS}
    eager = drawn_from(random.key(4), parameters)
    compiled = pullback.jit(drawn_from)(random.key(4), parameters)
    for name, (_, expected) in AT_THE_ENDS.items():
        np.testing.assert_array_equal(compiled[name][-len(expected) :], np.asarray(expected), err_msg=name)
        np.testing.assert_allclose(compiled[name], eager[name], rtol=2e-5, err_msg=name)


def test_ends_of_the_domain() -> None:
    found = drawn_from(random.key(0), {name: xs for name, (xs, _) in AT_THE_ENDS.items()})
    for name, (_, expected) in AT_THE_ENDS.items():
        np.testing.assert_array_equal(found[name], np.asarray(expected), err_msg=name)
    key = random.key(0)
    minus = np.float32(-1)
    for out in (
        random.pareto(key, minus), random.rayleigh(key, minus), random.wald(key, minus), random.t(key, minus),
        random.chisquare(key, minus), random.f(key, 2.0, minus), random.beta(key, minus, 2.0),
        random.weibull_min(key, minus, 2.0), random.weibull_min(key, 1.0, minus), random.triangular(key, 2.0, 1.0, 0.0),
        random.multivariate_normal(key, np.zeros(2), -np.eye(2)), random.dirichlet(key, np.array([minus, 2]))[0],
        random.generalized_normal(key, minus),
    ):  # fmt: skip
        assert np.isnan(out).all()
    np.testing.assert_array_equal(random.multinomial(key, 10, np.zeros(3)), [0, 0, 0])
    assert np.isnan(random.multinomial(key, 10, np.array([0.5, -0.5, 1.0]))).any()


def test_large_parameters_end() -> None:
    key = random.key(0)
    means = np.array([1e4, 1e7, 1e9], np.float32)
    assert abs(np.asarray(random.poisson(key, means)) / means - 1).max() < 0.1
    assert abs(np.asarray(random.gamma(key, np.float32(1e30))) / 1e30 - 1) < 1e-5
    assert random.poisson(key, np.float32(1e20)) == 2**31 - 1
    assert abs(np.asarray(random.binomial(key, np.float32(1e9), 0.25)) / 2.5e8 - 1) < 1e-3
    assert np.isfinite(random.loggamma(key, 1e-4, (100,))).all()


# Derivatives -------------------------------------------------------------------------------------------------------


def test_derivatives_keep_the_place_in_the_order() -> None:
    """The derivative of F(x(a), a) by a is zero."""
    key = random.key(6)
    with enable_x64():
        a = np.array([0.05, 0.4, 1.0, 3.0, 40.0])
        x, dx = pullback.jvp(lambda a: random.gamma(key, a), (a,), (np.ones(5),))
        step = 1e-5 * a
        by_a = (stats.gamma(a + step).cdf(x) - stats.gamma(a - step).cdf(x)) / (2 * step)
        np.testing.assert_allclose(dx, -by_a / stats.gamma(a).pdf(x), rtol=1e-5)
        log_x, dlog = pullback.jvp(lambda a: random.loggamma(key, a), (a,), (np.ones(5),))
        np.testing.assert_allclose(dlog, dx / x, rtol=1e-9)
        np.testing.assert_allclose(log_x, np.log(x), rtol=1e-9)


def test_derivatives_of_samples_that_underflow() -> None:
    with enable_x64():
        a = np.array([0.01, 0.02])
        near = [np.asarray(log_slope(pnp.asarray(a), pnp.full(2, x))) for x in (-35.999999, -36.000001)]
        np.testing.assert_allclose(*near, rtol=1e-7)
    key = random.key(7)
    slope = pullback.grad(lambda a: random.loggamma(key, a, (20,)).sum())(np.float32(0.001))
    assert np.isfinite(slope)
    assert slope > 1e5


def test_second_derivatives() -> None:
    key = random.key(8)
    step, a = 1e-4, 1.7
    with enable_x64():
        law = stats.gamma(a)
        place = law.cdf(random.gamma(key, a))
        slopes = [lax.random_gamma_grad(b, float(stats.gamma(b).ppf(place))) for b in (a + step, a - step)]
        expected = (slopes[0] - slopes[1]) / (2 * step)
        second = pullback.grad(pullback.grad(lambda a: random.gamma(key, a)))
        np.testing.assert_allclose(second(a), expected, rtol=1e-6)
        twice = pullback.grad(pullback.grad(lambda a: pnp.exp(random.loggamma(key, a))))
        np.testing.assert_allclose(twice(a), expected, rtol=1e-6)
        mapped = pullback.vmap(pullback.grad(lambda a, k: random.gamma(k, a)), (None, 0))(1.7, random.split(key, 2))
        expected = [pullback.grad(lambda a, k=k: random.gamma(k, a))(1.7) for k in random.split(key, 2)]
        np.testing.assert_allclose(mapped, expected)


def test_gradients_of_means() -> None:
    """The mean derivative is the derivative of the mean."""
    key = random.key(9)
    cases: list[tuple[Any, float, float]] = [
        (lambda a: random.gamma(key, a, (4000,)), 2.0, 1.0),
        (lambda a: random.beta(key, a, 2.0, (4000,)), 1.5, 2 / 3.5**2),
        (lambda a: random.chisquare(key, a, (4000,)), 3.0, 1.0),
        (lambda a: random.dirichlet(key, a * pnp.array([1.0, 0.0]) + 1, (4000,))[:, 0], 2.0, 1 / 16),
    ]
    for draw, a, expected in cases:
        assert abs(pullback.grad(lambda a, draw=draw: draw(a).mean())(a) - expected) < 0.05 * max(expected, 0.3)


# Bad input ---------------------------------------------------------------------------------------------------------

KEY = random.key(0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.gamma(0, 1.0), OperandError, "gamma: expected a random key"),
        (lambda: random.gamma(random.split(KEY), 1.0), ArgumentError, "gamma takes one key"),
        (lambda: random.gamma(KEY, "a"), OperandError, "gamma: a"),
        (lambda: random.gamma(KEY, 1j), DtypeError, "gamma: a must be a real number, got c64"),
        (lambda: random.gamma(KEY, 1.0, dtype=int), ArgumentError, "gamma returns floats"),
        (lambda: random.gamma(KEY, np.ones(3), (2,)), ShapeError, r"a of shape \(3,\) must broadcast"),
        (lambda: random.beta(KEY, np.ones(3), np.ones(2)), ShapeError, "must broadcast"),
        (lambda: random.gamma(KEY, 1.0, (-1,)), ShapeError, "-1"),
        (lambda: random.dirichlet(KEY, 1.0), ShapeError, "alpha must have an axis"),
        (lambda: random.poisson(KEY, 1.0, dtype="float32"), ArgumentError, "poisson returns integers"),
        (lambda: random.binomial(KEY, 1, 0.5, dtype=int), ArgumentError, "binomial returns floats"),
        (lambda: random.geometric(KEY, 0.5, dtype=float), ArgumentError, "geometric returns integers"),
        (lambda: random.multinomial(KEY, 1, 0.5), ShapeError, "p must have an axis"),
        (lambda: random.multinomial(KEY, 1, np.ones(3), shape=(4, 2)), ShapeError, "must broadcast"),
        (lambda: random.multinomial(KEY, 1, np.ones(1), shape=(4, 2)), ShapeError, "must end with the number"),
        (lambda: random.multivariate_normal(KEY, 1.0, np.eye(2)), ShapeError, "mean must have an axis"),
        (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(3)), ShapeError, r"ends with \(2, 2\)"),
        (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="lu"), ArgumentError, "got 'lu'"),
        (lambda: random.orthogonal(KEY, -1), ArgumentError, "n must not be negative, got -1"),
        (lambda: random.orthogonal(KEY, 2.5), ShapeError, "n must be an int, got 2.5"),
        (lambda: random.orthogonal(KEY, 2, dtype=int), ArgumentError, "must be inexact"),
        (lambda: random.ball(KEY, -2), ArgumentError, "d must not be negative, got -2"),
        (lambda: random.ball(KEY, 2, np.ones(2)), ArgumentError, "p must be a scalar"),
        (lambda: random.weibull_min(KEY, np.ones(3), np.ones(2)), ShapeError, "must broadcast"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
