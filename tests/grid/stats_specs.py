"""The rows for the operations of ``scipy.stats``: logarithms and inverses of incomplete functions,
and distributions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from pullback.primitives.special import incomplete, inverse_incomplete, log_incomplete
from pullback.scipy import stats
from tests.grid.specs import R, Spec, row, widen


def log_of(function: Any) -> Any:
    return widen(lambda *xs: np.log(function(*xs)))


POSITIVE, SHARE = R(3, lo=0.5, hi=4), R(3, lo=0.1, hi=0.9)
SECOND = R(2, 1, lo=0.5, hi=4)
OPERATIONS: list[Spec] = [
    row(incomplete.betaincc_p, widen(sc.betaincc), POSITIVE, SECOND, SHARE, tolerance=4),
    row(incomplete.beta_slope_p, None, POSITIVE, SECOND, SHARE, params={"by_a": 1, "by_b": 0}, second=False),
    row(log_incomplete.log_ndtr_p, widen(sc.log_ndtr), R(3), dtypes="hf", tolerance=4),
    row(log_incomplete.log_gamma_density_p, widen(lambda a, x: scipy.stats.gamma.logpdf(x, a)), POSITIVE, SECOND,
        tolerance=4),
    row(log_incomplete.log_beta_density_p, widen(lambda a, b, x: scipy.stats.beta.logpdf(x, a, b)), POSITIVE, SECOND,
        SHARE, tolerance=4),
    row(log_incomplete.log_igamma_p, log_of(sc.gammainc), POSITIVE, SECOND, tolerance=4),
    row(log_incomplete.log_igammac_p, log_of(sc.gammaincc), POSITIVE, SECOND, tolerance=4, second=False),
    row(log_incomplete.log_betainc_p, log_of(sc.betainc), POSITIVE, SECOND, SHARE, tolerance=4, second=False),
    row(log_incomplete.log_betaincc_p, log_of(sc.betaincc), POSITIVE, SECOND, SHARE, tolerance=4, second=False),
    row(inverse_incomplete.gammaincinv_p, widen(sc.gammaincinv), POSITIVE, SHARE, tolerance=4),
    row(inverse_incomplete.gammainccinv_p, widen(sc.gammainccinv), POSITIVE, SHARE, tolerance=4, second=False),
    row(inverse_incomplete.betaincinv_p, widen(sc.betaincinv), POSITIVE, POSITIVE, SHARE, tolerance=4),
    row(inverse_incomplete.betainccinv_p, widen(sc.betainccinv), POSITIVE, POSITIVE, SHARE, tolerance=4, second=False),
    row(inverse_incomplete.ndtri_exp_p, widen(sc.ndtri_exp), R(3, lo=-5, hi=-0.1), tolerance=4),
]  # fmt: skip


def every(name: str, kinds: str, x: Any, q: Any, *parameters: Any) -> list[Any]:
    """Many functions of one distribution, of a variable and a probability."""
    module = getattr(stats, name)
    return [getattr(module, kind)(q if kind in ("ppf", "isf") else x, *parameters) for kind in kinds.split()]


def reference(name: str, kinds: str, x: Any, q: Any, *parameters: Any) -> list[Any]:
    wide = [np.asarray(v, np.float64) for v in (x, q, *parameters)]
    module = getattr(scipy.stats, name)
    return [getattr(module, kind)(wide[kind in ("ppf", "isf")], *wide[2:]) for kind in kinds.split()]


def of(name: str, kinds: str, x: R, *parameters: R, **options: Any) -> Spec:
    """A row for a distribution."""
    shapes = "x".join(str(s.shape) for s in (x, SHARE, *parameters))
    return Spec(
        f"scipy.stats.{name}({shapes})", f"scipy.stats.{name}", partial(every, name, kinds),
        partial(reference, name, kinds), (x, SHARE, *parameters), derivative="d", tolerance=40, **options,
    )  # fmt: skip


ALL = "pdf logpdf cdf logcdf sf logsf ppf isf"
DISTRIBUTIONS: list[Spec] = [
    of("cauchy", ALL, R(3)),
    of("expon", ALL, R(3, lo=0.1, hi=3)),
    of("gumbel_r", ALL, R(3)),
    of("logistic", ALL, R(3)),
    of("laplace", ALL, R(3)),
    of("pareto", ALL, R(3, lo=1.2, hi=3), R(2, 1, lo=0.5, hi=3)),
    of("wrapcauchy", ALL, R(3, lo=0.3, hi=6), R(2, 1, lo=0.2, hi=0.8)),
    of("truncnorm", "logcdf", R(3, lo=-0.9, hi=0.9), R(3, lo=-3, hi=-1), R(3, lo=1, hi=3), second=False),
    of("t", "logpdf cdf", R(3), R(3, lo=1, hi=6), second=False),
    of("gennorm", "logpdf logcdf", R(3), R(3, lo=1.2, hi=3), second=False),
    of("vonmises", "logpdf cdf", R(3), R(3, lo=0.5, hi=3), second=False),
]
