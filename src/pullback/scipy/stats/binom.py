"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.incomplete import betainc_p, betaincc_p
from pullback.primitives.special.log_incomplete import log_beta_density_p, log_betainc_p, log_betaincc_p
from pullback.primitives.special.others import xlog1py_p, xlogy_p
from pullback.scipy.stats.distributions import Discrete, at_least, both, is_integer, lgamma, log, probability, where

_FEW = 20
"""For more trials, probabilities are computed from the beta density, whose large terms do not cancel."""


def _log_mass(k: Any, n: Any, p: Any) -> Any:
    rest = ops.sub(n, k)
    many = both(ops.gt(n, _FEW), both(ops.gt(p, 0), ops.lt(p, 1)))
    ways = ops.sub(lgamma(n + 1), ops.add(lgamma(k + 1), lgamma(rest + 1)))
    few = ops.add(ways, ops.add(xlogy_p.bind(k, p), xlog1py_p.bind(rest, -p)))
    density = log_beta_density_p.bind(ops.add(k, 1), ops.add(rest, 1), where(many, p, 0.5))
    return where(many, ops.sub(density, log(ops.add(n, 1))), few)


def _beta(primitive: Any) -> Any:
    """Return a function of k, n and p: the ``primitive``, such as ``betainc``, of k + 1, n - k and p.

    For ``betainc`` it is the binomial probability P(X > k), and for the complement ``betaincc`` it is P(X <= k).
    """
    return lambda k, n, p: primitive.bind(ops.add(k, 1), ops.sub(n, k), p)


DISTRIBUTION = Discrete(
    values=("0.2668", "-1.321", "0.6496", "-0.4314", "0.3504", "-1.049", "5", "1"),
    formulas=("comb(n, i) * p**i * (1 - p)**(n - i)", "1 - betainc(i + 1, n - i, p)", "betainc(i + 1, n - i, p)"),
    support="integers ``0 <= i <= n``",
    name="binom", of="the binomial distribution", high=lambda n, p: n, example="3; 0.9; 10; 0.3",
    parameters={"n": "the number of trials, an integer", "p": "the probability of a success"},
    valid=lambda n, p: both(both(at_least(n, 0), is_integer(n)), probability(p)), log_mass=_log_mass,
    cdf=_beta(betaincc_p), logcdf=_beta(log_betaincc_p), sf=_beta(betainc_p), logsf=_beta(log_betainc_p),
)  # fmt: skip

pmf, logpmf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
