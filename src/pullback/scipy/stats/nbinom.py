"""The negative binomial distribution: the number of failures before a number of successes."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.incomplete import betainc_p, betaincc_p
from pullback.primitives.special.log_incomplete import log_beta_density_p, log_betainc_p, log_betaincc_p
from pullback.primitives.special.others import xlog1py_p
from pullback.scipy.stats.distributions import Discrete, at_most, both, lgamma, log, positive, where

_FEW = 20
"""For more trials, probabilities are computed from the beta density, whose large terms do not cancel."""


def _log_mass(k: Any, n: Any, p: Any) -> Any:
    total = ops.add(n, k)
    many = both(ops.gt(total, _FEW), ops.lt(p, 1))
    ways = ops.sub(lgamma(total), ops.add(lgamma(k + 1), lgamma(n)))
    chances = ops.add(ops.mul(n, log(p)), xlog1py_p.bind(k, -p))
    few = ops.add(ways, chances)
    density = log_beta_density_p.bind(n, ops.add(k, 1), where(many, p, 0.5))
    return where(many, ops.sub(ops.add(density, log(p)), log(total)), few)


def _beta(primitive: Any) -> Any:
    return lambda k, n, p: primitive.bind(n, ops.add(k, 1), p)


DISTRIBUTION = Discrete(
    values=("0.05557", "-2.89", "0.126", "-2.071", "0.874", "-0.1347", "17", "3"),
    formulas=(
        "gamma(i + n) / (factorial(i) * gamma(n)) * p**n * (1 - p)**i",
        "betainc(n, i + 1, p)",
        "1 - betainc(n, i + 1, p)",
    ),
    support="integers ``i >= 0``",
    name="nbinom", of="the negative binomial distribution", example="3; 0.9; 4.0; 0.3",
    parameters={"n": "the number of successes, positive", "p": "the probability of a success"},
    valid=lambda n, p: both(positive(n), both(ops.gt(p, 0), at_most(p, 1))), log_mass=_log_mass,
    cdf=_beta(betainc_p), logcdf=_beta(log_betainc_p), sf=_beta(betaincc_p), logsf=_beta(log_betaincc_p),
)  # fmt: skip

pmf, logpmf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
