"""Cases of distributions and of statistics of samples: each function of JAX's at ten points."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import scipy.stats

from tests.recorded.cases import Case

POINTS = 10
_rng = np.random.default_rng(15)


def drawn(low: float, high: float) -> np.ndarray[Any, Any]:
    return np.round(_rng.uniform(low, high, POINTS), 3)


def counts(low: int, high: int) -> np.ndarray[Any, Any]:
    return _rng.integers(low, high, POINTS, endpoint=True)


DENSITY = "pdf logpdf"
CUMULATIVE = f"{DENSITY} cdf logcdf sf logsf"
MASS = "pmf logpmf"
LOCATION = (drawn(-1, 1), drawn(0.5, 2))
"""Location and scale."""

DISTRIBUTIONS: list[tuple[str, str, tuple[Any, ...], tuple[Any, ...]]] = [
    ("bernoulli", f"{MASS}", (drawn(0.1, 0.9),), (0,)),
    ("bernoulli", "cdf ppf", (drawn(0.1, 0.9),), ()),
    ("beta", CUMULATIVE, (drawn(0.5, 5), drawn(0.5, 5)), LOCATION),
    ("betabinom", MASS, (counts(5, 20), drawn(0.5, 5), drawn(0.5, 5)), (0,)),
    ("binom", MASS, (counts(5, 40), drawn(0.1, 0.9)), (0,)),
    ("cauchy", f"{CUMULATIVE} ppf isf", (), LOCATION),
    ("chi2", CUMULATIVE, (drawn(1, 9),), LOCATION),
    ("expon", f"{CUMULATIVE} ppf", (), LOCATION),
    ("gamma", CUMULATIVE, (drawn(0.5, 9),), LOCATION),
    ("gennorm", f"{DENSITY} cdf", (drawn(1.2, 4),), ()),
    ("geom", MASS, (drawn(0.1, 0.9),), (0,)),
    ("gumbel_l", f"{CUMULATIVE} ppf", (), LOCATION),
    ("gumbel_r", f"{CUMULATIVE} ppf", (), LOCATION),
    ("laplace", f"{DENSITY} cdf", (), LOCATION),
    ("logistic", f"{DENSITY} cdf sf ppf isf", (), LOCATION),
    ("nbinom", MASS, (drawn(0.5, 30), drawn(0.1, 0.9)), (0,)),
    ("norm", f"{CUMULATIVE} ppf isf", (), LOCATION),
    ("pareto", f"{CUMULATIVE} ppf", (drawn(0.5, 5),), LOCATION),
    ("poisson", f"{MASS} cdf", (drawn(0.1, 30),), (0,)),
    ("t", DENSITY, (drawn(0.5, 30),), LOCATION),
    ("truncnorm", CUMULATIVE, (drawn(-3, -0.5), drawn(0.5, 4)), LOCATION),
    ("uniform", f"{DENSITY} cdf ppf", (), LOCATION),
    ("vonmises", DENSITY, (drawn(0.1, 9),), ()),
    ("wrapcauchy", DENSITY, (drawn(0.1, 0.9),), ()),
]


IN_SINGLE = {"betabinom"}
"""Those of which JAX's values are right to no more than single precision, and its derivatives to less."""


def distributions() -> Iterator[Case]:
    for name, kinds, parameters, rest in DISTRIBUTIONS:
        frozen = getattr(scipy.stats, name)(*parameters, *rest)
        shares = drawn(0.02, 0.98)
        x = np.round(frozen.ppf(drawn(0.02, 0.98)), 6)
        for kind in kinds.split():
            first = shares if kind in ("ppf", "isf") else x

            def run(lib: Any, *xs: Any, name: str = name, kind: str = kind) -> Any:
                return getattr(import_module(f"{lib.__name__}.scipy.stats.{name}"), kind)(*xs)

            operands = (first, *parameters, *rest)
            if name in IN_SINGLE:
                operands = tuple(np.asarray(x, np.float32) for x in operands)
            precise = name not in IN_SINGLE
            yield Case(f"stats.{name}.{kind}", run, operands, x64=precise, derivatives=precise, elementwise=True)


def stats(lib: Any) -> Any:
    return import_module(f"{lib.__name__}.scipy.stats")


def of_vectors() -> Iterator[Case]:
    for i in range(POINTS):
        rng = np.random.default_rng(i)
        n = 2 + i % 3
        alpha, shares = rng.uniform(0.5, 4, n), rng.dirichlet(np.ones(n))
        p, trials = rng.dirichlet(np.ones(n)), rng.integers(0, 6, n)
        root = rng.normal(size=(n, n))
        vectors, mean, cov = rng.normal(size=(3, n)), rng.normal(size=n), root @ root.T + np.eye(n)
        for kind in ("pdf", "logpdf"):
            yield Case(
                f"stats.dirichlet.{kind} {i}", lambda lib, *xs, kind=kind: getattr(stats(lib).dirichlet, kind)(*xs),
                (shares, alpha), x64=True, derivatives=False,
            )  # fmt: skip
            yield Case(
                f"stats.multivariate_normal.{kind} {i}",
                lambda lib, *xs, kind=kind: getattr(stats(lib).multivariate_normal, kind)(*xs),
                (vectors, mean, cov), x64=True,
            )  # fmt: skip
        for kind in ("pmf", "logpmf"):
            yield Case(
                f"stats.multinomial.{kind} {i}", lambda lib, *xs, kind=kind: getattr(stats(lib).multinomial, kind)(*xs),
                (trials, np.sum(trials), p), x64=True,
            )  # fmt: skip


def of_samples() -> Iterator[Case]:
    yield Case(
        "stats.poisson.entropy", lambda lib, mu: stats(lib).poisson.entropy(mu), (drawn(0.1, 9).astype(np.float32),),
        derivatives=False, elementwise=True,
    )  # fmt: skip
    methods = ("average", "min", "max", "dense", "ordinal")
    for i in range(POINTS):
        rng = np.random.default_rng(100 + i)
        x, whole = rng.normal(size=(3, 4)), rng.integers(0, 4, (4, 3))
        axis = (0, 1, None)[i % 3]
        yield Case(f"stats.sem {i}", lambda lib, x, axis=axis, i=i: stats(lib).sem(x, axis, ddof=i % 2), (x,), x64=True)
        yield Case(f"stats.mode {i}", lambda lib, x, axis=axis: tuple(stats(lib).mode(x, axis)), (whole,), x64=True)
        yield Case(
            f"stats.rankdata {i}", lambda lib, x, axis=axis, i=i: stats(lib).rankdata(x, methods[i % 5], axis=axis),
            (whole if i % 2 else x,), x64=True, derivatives=False,
        )  # fmt: skip
        samples, points = rng.normal(size=(1 + i % 2, 6)), rng.normal(size=(1 + i % 2, 3))
        weights = rng.uniform(0.5, 2, 6)
        method = (None, "silverman", 0.7)[i % 3]

        def evaluated(lib: Any, data: Any, points: Any, weights: Any, method: Any = method) -> Any:
            kde = stats(lib).gaussian_kde(data, method, weights)
            return kde.logpdf(points), kde.evaluate(points), kde.integrate_kde(kde)

        yield Case(f"stats.gaussian_kde {i}", evaluated, (samples, points, weights), x64=True)


CASES = [*distributions(), *of_vectors(), *of_samples()]
