"""Distributions against SciPy's, in their tails and at the ends of their supports; errors; statistics of samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pullback.numpy as jnp
from pullback import grad, jit, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.scipy import stats
from pullback.scipy.stats.distributions import QUANTILES, Continuous

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "bernoulli": ([0.2, 0.7],), "beta": ([0.3, 2, 300], [0.5, 4, 20]), "betabinom": ([5], [0.5], [2]),
    "binom": ([3, 30, 4000], [0.3, 0.01, 0.6]), "cauchy": (), "chi2": ([0.4, 3, 500],), "expon": (),
    "gamma": ([0.2, 3, 900],), "gennorm": ([0.5, 1.3, 5],), "geom": ([0.01, 0.6],), "gumbel_l": (), "gumbel_r": (),
    "laplace": (), "logistic": (), "nbinom": ([0.4, 30], [0.2, 0.7]), "norm": (), "pareto": ([0.5, 3],),
    "poisson": ([0.1, 4, 2000],), "t": ([0.5, 5, 1e4],), "truncnorm": ([-3, 1, 8], [-1, 3, 9]), "uniform": (),
    "wrapcauchy": ([0.1, 0.8],),
    "arcsine": (), "betaprime": ([0.4, 30], [3, 0.7]), "burr": ([0.5, 3], [2, 0.5]), "burr12": ([0.5, 3], [2, 0.5]),
    "chi": ([0.4, 30],), "exponweib": ([0.3, 4], [0.5, 2]), "f": ([1, 30], [3, 9]), "fatiguelife": ([0.1, 5],),
    "fisk": ([0.5, 3],), "genextreme": ([-0.5, 0, 1e-3, 1.5],), "genlogistic": ([0.5, 3],),
    "genpareto": ([-1.5, -0.3, 0, 0.4],), "gompertz": ([0.1, 7],), "halfcauchy": (), "halflogistic": (), "halfnorm": (),
    "hypsecant": (), "invgamma": ([0.4, 50],), "invweibull": ([0.5, 3],), "johnsonsb": ([-1, 2], [0.5, 3]),
    "johnsonsu": ([-1, 2], [0.5, 3]), "levy": (), "lognorm": ([0.3, 3],), "loguniform": ([0.1, 2], [3, 9]),
    "lomax": ([0.5, 3],), "maxwell": (), "moyal": (), "nakagami": ([0.3, 8],), "powerlaw": ([0.3, 5],), "rayleigh": (),
    "triang": ([0, 0.3, 1],), "truncexpon": ([0.1, 30],),
    "truncpareto": ([0.5, 3, -1.5], [2, 30, 4]), "truncweibull_min": ([0.5, 3], [0.1, 0.5], [2, 3]),
    "weibull_max": ([0.5, 3],), "weibull_min": ([0.5, 3],),
}  # fmt: skip
"""Of the von Mises distribution SciPy's own numbers are less precise."""


def points(name: str) -> tuple[Any, Any, list[Any]]:
    """A variable, probabilities, and parameters that broadcast against them."""
    rng = np.random.default_rng(5)
    parameters = [np.array(p, float)[:, None] for p in PARAMETERS[name]]
    q = np.concatenate([rng.uniform(0.01, 0.99, 6), [1e-9, 1e-5]])
    low = getattr(scipy.stats, name).ppf(q, *parameters)
    if not isinstance(getattr(stats, name).DISTRIBUTION, Continuous):
        return low, q, parameters
    high = getattr(scipy.stats, name).isf(np.array([1e-200, 1e-90, 1e-20, 1e-8]), *parameters)
    return np.concatenate([low, high], -1), q, parameters


# Here SciPy takes the tail of 1 - q, a logarithm of a number, or the like; ours are checked by their inverses.
LOST = {
    ("geom", "isf"), ("pareto", "logpdf"), ("pareto", "logcdf"), ("pareto", "cdf"), ("wrapcauchy", "isf"),
    ("wrapcauchy", "sf"), ("wrapcauchy", "logsf"),
    ("wrapcauchy", "logcdf"), ("truncnorm", "isf"), ("betabinom", "sf"), ("betabinom", "logsf"), ("betabinom", "isf"),
    ("gumbel_l", "isf"), ("gumbel_r", "isf"), ("nbinom", "isf"), ("truncnorm", "sf"), ("truncnorm", "logsf"),
    ("truncnorm", "cdf"), ("truncnorm", "logcdf"),
    ("arcsine", "logsf"), ("betaprime", "isf"), ("burr", "logsf"), ("burr12", "logcdf"), ("exponweib", "sf"),
    ("f", "isf"), ("fisk", "logsf"), ("genlogistic", "isf"), ("loguniform", "logcdf"), ("loguniform", "logsf"),
    *((name, kind) for name in ("truncpareto", "truncweibull_min") for kind in ("cdf", "logcdf", "sf", "logsf")),
    ("moyal", "isf"), ("triang", "logsf"), ("truncexpon", "logsf"), ("weibull_max", "isf"),
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_values_are_those_of_scipy(name: str) -> None:
    with np.errstate(all="ignore"):
        x, q, parameters = points(name)
    with enable_x64(), np.errstate(all="ignore"):
        for kind in getattr(stats, name).DISTRIBUTION.kinds()[:8]:
            if (name, kind) in LOST:
                continue
            first = q if kind in QUANTILES else x
            expected = getattr(getattr(scipy.stats, name), kind)(first, *parameters)
            if kind in ("logcdf", "logsf", "logpdf", "logpmf"):
                expected = np.where(np.abs(expected) < 1e-280, 0, expected)
            got = np.asarray(getattr(getattr(stats, name), kind)(first, *parameters))
            known = np.isfinite(expected) & (np.abs(expected) > 1e-290)
            np.testing.assert_allclose(got[known], expected[known], rtol=4e-12, atol=1e-15, err_msg=f"{name}.{kind}")


LATER = [(name, kind) for name, kind in sorted(LOST) if name not in ("geom", "nbinom", "betabinom", "truncnorm")]


def test_what_scipy_loses_follows_from_the_rest() -> None:
    """Inverses are inverse, tails are complements, and logarithms are those of the tails."""
    q = np.array([1e-12, 1e-5, 0.2, 0.7])
    with enable_x64():
        for name, kind in LATER:
            module, parameters = getattr(stats, name), [np.array(p, float)[:, None] for p in PARAMETERS[name]]
            if kind == "isf" and name != "wrapcauchy":
                back = np.asarray(module.sf(module.isf(q, *parameters), *parameters))
                np.testing.assert_allclose(back, np.broadcast_to(q, back.shape), rtol=1e-10, err_msg=name)
                continue
            x = np.asarray(module.ppf(q, *parameters))
            if kind == "sf":
                np.testing.assert_allclose(module.sf(x, *parameters) + module.cdf(x, *parameters), 1, rtol=1e-12)
            if kind.startswith("log") and kind != "logpdf":
                logarithm, tail = (np.asarray(getattr(module, k)(x, *parameters)) for k in (kind, kind[3:]))
                np.testing.assert_allclose(np.exp(logarithm), tail, rtol=1e-9, err_msg=name)


def test_sums_of_many_probabilities() -> None:
    """Of the beta-binomial distribution more than are summed in one step."""
    k = np.array([0.0, 63, 64, 65, 128, 129, 199, 200])
    with enable_x64():
        for way in (lambda f: f, jit):
            got = way(lambda k: stats.betabinom.cdf(k, 200, 2.0, 3.0))(k)
            np.testing.assert_allclose(got, scipy.stats.betabinom.cdf(k, 200, 2.0, 3.0), rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gamma"])
def test_compiled_is_eager(name: str) -> None:
    x, q, parameters = points(name)
    kinds = getattr(stats, name).DISTRIBUTION.kinds()[:8]

    def every(x: Any, q: Any, *parameters: Any) -> list[Any]:
        return [getattr(getattr(stats, name), kind)(q if kind in QUANTILES else x, *parameters) for kind in kinds]

    with enable_x64():
        for got, expected in zip(jit(every)(x, q, *parameters), every(x, q, *parameters), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-12, atol=1e-300)


def test_logarithms_of_tails_that_underflow() -> None:
    """Against values of 50 digits and closed forms, and by their inverses."""
    with enable_x64():
        assert float(stats.norm.logcdf(-40.0)) == pytest.approx(-804.6084420137538, rel=1e-14)
        assert float(stats.gamma.logsf(2000.0, 3.0)) == pytest.approx(
            -2000 + math.log(1 + 2000 + 2000**2 / 2), rel=1e-13
        )
        assert float(stats.t.logcdf(-1e3, 1000.0)) == pytest.approx(float(stats.t.logsf(1e3, 1000.0)), rel=1e-15)
        assert float(stats.vonmises.logcdf(-3.0, 900.0)) < -1700
        q = jnp.array([1e-300, 1e-20, 0.3])
        for name, *parameters in (("wrapcauchy", 0.3), ("truncnorm", 7.0, 13.0), ("geom", 1e-3), ("vonmises", 2.0)):
            module = getattr(stats, name)
            tails = np.asarray(module.sf(module.isf(q, *parameters), *parameters))
            if name == "geom":
                assert (tails <= np.asarray(q) * (1 + 1e-12)).all()
            elif name == "truncnorm":
                np.testing.assert_allclose(tails[1:], np.asarray(q)[1:], rtol=1e-10)
            else:
                np.testing.assert_allclose(tails[1:], np.asarray(q)[1:], rtol=1e-6, atol=1e-16)


EDGES = [
    ("gamma", 0.0, (2.0,)), ("gamma", -1.0, (0.5,)), ("beta", 1.0, (2.0, 3.0)), ("beta", 0.0, (1.0, 3.0)),
    ("expon", 0.0, ()), ("expon", -1.0, ()), ("pareto", 0.5, (2.0,)), ("uniform", 1.5, ()), ("uniform", 1.0, ()),
    ("truncnorm", 3.0, (-1.0, 2.0)), ("norm", math.inf, ()), ("t", -math.inf, (3.0,)), ("gennorm", 0.0, (0.5,)),
    ("chi2", 0.0, (3.0,)), ("wrapcauchy", 7.0, (0.5,)), ("laplace", 0.0, ()),
    ("weibull_min", 0.0, (1.0,)), ("weibull_min", 0.0, (0.5,)), ("weibull_max", 0.0, (2.0,)), ("chi", 0.0, (1.0,)),
    ("f", 0.0, (2.0, 3.0)), ("powerlaw", 0.0, (1.0,)), ("halfnorm", 0.0, ()),
    ("lognorm", 0.0, (1.0,)), ("truncexpon", 2.0, (2.0,)), ("triang", 0.3, (0.3,)), ("genpareto", 2.0, (-0.5,)),
    ("genextreme", 2.0, (0.5,)), ("johnsonsb", 1.0, (0.0, 1.0)), ("nakagami", 0.0, (0.5,)), ("burr12", 0.0, (1.0, 2.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "parameters"), EDGES)
def test_no_derivative_is_nan_at_the_ends_or_outside(name: str, x: float, parameters: tuple[float, ...]) -> None:
    module, reference = getattr(stats, name), getattr(scipy.stats, name)
    with enable_x64():
        for kind in ("pdf", "logpdf"):
            value = float(getattr(module, kind)(x, *parameters))
            with np.errstate(divide="ignore"):  # SciPy warns where a density is infinite
                expected = float(getattr(reference, kind)(x, *parameters))
            assert value == pytest.approx(expected, rel=1e-12)
            slopes = grad(getattr(module, kind), tuple(range(1 + len(parameters))))(x, *parameters)
            assert not any(math.isnan(s) for s in map(float, slopes))
            if value == {"pdf": 0, "logpdf": -math.inf}[kind]:
                assert all(s == 0 for s in map(float, slopes))


def test_parameters_outside_their_domain_are_nan() -> None:
    invalid = [
        stats.gamma.logpdf(1.0, -1.0), stats.norm.cdf(0.0, 0.0, -1.0), stats.beta.ppf(0.5, 0.0, 1.0),
        stats.binom.pmf(1, 2.5, 0.5), stats.binom.ppf(0.5, 3, 1.5), stats.poisson.sf(1, -1.0), stats.t.pdf(0.0, 0.0),
        stats.norm.ppf(1.5), stats.expon.isf(-0.1), stats.bernoulli.pmf(0, 2.0), stats.norm.pdf(math.nan),
    ]  # fmt: skip
    assert all(math.isnan(float(x)) for x in invalid)


def test_ends_of_quantiles() -> None:
    assert [float(stats.norm.ppf(p)) for p in (0.0, 1.0)] == [-math.inf, math.inf]
    assert [float(stats.gamma.isf(p, 2.0, loc=1.0)) for p in (0.0, 1.0)] == [math.inf, 1.0]
    assert [float(stats.binom.ppf(p, 5, 0.5)) for p in (0.0, 1.0)] == [-1.0, 5.0]
    k = jnp.arange(12.0)
    assert np.asarray(stats.binom.ppf(stats.binom.cdf(k, 11, 0.4), 11, 0.4)).tolist() == k.tolist()


def test_quantiles_invert_geometric_distributions() -> None:
    k = jnp.arange(1.0, 40.0)
    for p in (0.3, 0.01):
        assert np.asarray(stats.geom.isf(stats.geom.sf(k, p), p)).tolist() == k.tolist()
        assert np.asarray(stats.geom.ppf(stats.geom.cdf(k[:20], p), p)).tolist() == k[:20].tolist()


def test_counts_are_integers_mapped_and_broadcast() -> None:
    k = jnp.arange(-1, 4)
    np.testing.assert_allclose(stats.poisson.pmf(k, 1.5), scipy.stats.poisson.pmf(np.arange(-1, 4), 1.5), rtol=1e-5)
    assert float(stats.poisson.logpmf(1.5, 2.0)) == -math.inf
    rows = vmap(lambda mu: stats.poisson.logpmf(k, mu, loc=1))(jnp.array([0.5, 2.0]))
    expected = scipy.stats.poisson.logpmf(np.arange(-1, 4), np.array([[0.5], [2.0]]), loc=1)
    np.testing.assert_allclose(rows, expected, rtol=1e-5)


def test_second_derivatives_of_a_quantile() -> None:
    with enable_x64():
        slope = grad(grad(lambda a: stats.gamma.ppf(0.3, a)))(2.0)
        h = 1e-4
        differences = sum(w * scipy.stats.gamma.ppf(0.3, 2.0 + i * h) for i, w in ((-1, 1), (0, -2), (1, 1))) / h**2
        assert float(slope) == pytest.approx(differences, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stats.norm.pdf(), ArgumentError, r"norm.pdf: missing a required argument: 'x'"),
        (lambda: stats.gamma.cdf(1.0, 2.0, 3.0, 4.0, 5.0), ArgumentError, r"too many positional arguments"),
        (lambda: stats.norm.pdf(1j), DtypeError, "norm.pdf"),
        (lambda: stats.norm.pdf(jnp.ones(2), jnp.ones(3)), ShapeError, "norm.pdf"),
        (lambda: stats.dirichlet.pdf(jnp.ones(4), jnp.ones(2)), ShapeError, "as many entries along its first axis"),
        (lambda: stats.multivariate_normal.pdf(jnp.ones(2), jnp.ones(2), jnp.eye(3)), ShapeError, r"\(\.\.\., 2, 2\)"),
        (lambda: stats.gaussian_kde(jnp.ones(1)), ArgumentError, "at least two samples"),
        (lambda: stats.gaussian_kde(jnp.arange(3.0), "wide"), ArgumentError, "'wide'"),
        (lambda: stats.gaussian_kde(jnp.arange(3.0)).set_bandwidth(1.0), UnsupportedArgumentError, "immutable"),
        (lambda: stats.rankdata(jnp.ones(2), "best"), ArgumentError, "'best'"),
        (lambda: stats.mode(jnp.array([1.0, math.nan]), nan_policy="raise"), ArgumentError, "contains NaN"),
        (lambda: stats.sem(jnp.ones(3), nan_policy="ignore"), ArgumentError, "'ignore'"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_singular_covariances() -> None:
    cov = np.array([[1.0, 1.0], [1.0, 1.0]])
    with enable_x64():
        inside = stats.multivariate_normal.logpdf(jnp.ones(2), jnp.zeros(2), cov, allow_singular=True)
        expected = scipy.stats.multivariate_normal.logpdf(np.ones(2), np.zeros(2), cov, allow_singular=True)
        assert float(inside) == pytest.approx(expected, rel=1e-12)
        outside = stats.multivariate_normal.logpdf(jnp.array([1.0, 0.0]), jnp.zeros(2), cov, allow_singular=True)
        assert float(outside) == -math.inf


def test_policies_for_nan() -> None:
    x = jnp.array([3.0, 1.0, math.nan, 1.0, math.nan, math.nan])
    assert [float(v) for v in stats.mode(x, nan_policy="omit")] == [1.0, 2.0]
    assert np.asarray(stats.rankdata(x, nan_policy="omit"))[:2].tolist() == [3.0, 1.5]
    assert float(stats.sem(x, nan_policy="omit")) == pytest.approx(scipy.stats.sem([3.0, 1.0, 1.0]))


SINGLE: list[tuple[str, str, tuple[float, ...]]] = [
    *[
        ("wrapcauchy", kind, (y, 0.3))
        for kind in ("cdf", "sf", "logcdf", "logsf")
        for y in (0.0, 1e-8, 1e-3, 1.0, 3.0, 5.0, 6.28)
    ],
    *[("wrapcauchy", kind, (q, 0.3)) for kind in QUANTILES for q in (0.0, 1e-8, 0.3, 0.5, 0.7, 1 - 1e-7, 1.0)],
    *[("t", kind, (q, df)) for kind in QUANTILES for q, df in ((1e-8, 0.3), (1e-4, 0.2), (0.1, 0.05), (0.2, 5.0))],
    *[("gumbel_r", "logsf", (y,)) for y in (150.0, 88.0, 20.0, 0.1, 0.0, -0.1, -3.0, -150.0)],
    *[("gumbel_l", "logcdf", (y,)) for y in (-150.0, -88.0, -20.0, -0.1, 0.0, 0.1, 3.0, 150.0)],
    ("gumbel_l", "logcdf", (-1000.0, 1.25, 3.0)),
    *[("truncnorm", "ppf", (q, 0.0, math.inf)) for q in (0.0, 1e-8, 1e-4, 1e-2, 0.5)],
    *[("truncnorm", "ppf", (q, -1.0, 2.0)) for q in (0.0, 1e-4, 1 - 1e-4, 1.0)],
    *[("truncnorm", "isf", (q, -math.inf, 0.0)) for q in (1e-8, 1e-4, 0.5)],
    *[("vonmises", "ppf", (q, kappa)) for q in (0.5, 0.5 + 6e-8, 0.5001, 0.49, 0.2) for kappa in (0.5, 20.0)],
    *[("geom", "isf", (q, 0.9)) for q in (0.1, 1e-3, 1e-8)],
    *[("geom", kind, (q, 0.5)) for kind in QUANTILES for q in (0.5, 0.75, 0.125)],
    *[("binom", "ppf", (q, 20.0, 0.3)) for q in (0.01, 0.5, 0.999)],
]
"""Where single precision lost the sign, the size or an integer: a distribution, a function, its arguments."""


@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["eager", "compiled"])
def test_single_precision_at_hard_points(compile_: Any) -> None:
    for name, kind, args in SINGLE:
        single = [np.float32(x) for x in args]
        expected = getattr(getattr(scipy.stats, name), kind)(*map(np.float64, single))
        found = compile_(getattr(getattr(stats, name), kind))(*map(jnp.asarray, single))
        assert found.dtype == np.float32
        assert float(found) == pytest.approx(expected, rel=2e-5, abs=0), (name, kind, args)


def test_tails_of_gumbel_distributions_have_derivatives() -> None:
    with enable_x64():
        for y in (1000.0, 30.0, 0.1, -0.1, -5.0):
            slope = math.exp(scipy.stats.gumbel_r.logpdf(y) - float(stats.gumbel_r.logsf(y)))
            assert float(grad(stats.gumbel_r.logsf)(y)) == pytest.approx(-slope, rel=1e-12)
            assert float(grad(stats.gumbel_l.logcdf)(-y)) == pytest.approx(slope, rel=1e-12)


def test_quantiles_next_to_an_end_have_derivatives() -> None:
    with enable_x64():
        for args in ((1e-9, -1.0, 2.0), (1e-3, -1.0, 2.0), (1 - 1e-9, -1.0, 2.0)):
            x = scipy.stats.truncnorm.ppf(*args)
            slope = 1 / scipy.stats.truncnorm.pdf(x, *args[1:])
            assert float(grad(stats.truncnorm.ppf)(*args)) == pytest.approx(slope, rel=1e-8)
        for q in (0.5, 0.5 + 1e-10, 0.6):
            x = float(stats.vonmises.ppf(q, 2.0))
            assert float(grad(stats.vonmises.ppf)(q, 2.0)) == pytest.approx(
                1 / scipy.stats.vonmises.pdf(x, 2.0), rel=1e-8
            )


def test_the_shape_of_an_entropy_is_that_of_all_arguments() -> None:
    assert stats.poisson.entropy(3.0, loc=np.ones((1, 4))).shape == (1, 4)
    assert stats.poisson.entropy(np.ones((2, 1)), loc=np.ones(4)).shape == (2, 4)
    assert stats.poisson.entropy(3.0).shape == ()
