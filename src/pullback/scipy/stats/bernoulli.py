"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import xlog1py_p, xlogy_p
from pullback.scipy.stats.distributions import Discrete, log, log1p, probability, where


def _log_mass(k: Any, p: Any) -> Any:
    return ops.add(xlogy_p.bind(k, p), xlog1py_p.bind(ops.sub(1, k), ops.neg(p)))


def _quantile(fails: Any, q: Any, p: Any) -> Any:
    return where(fails, ops.add(q, p) * 0 + 1, 0)


DISTRIBUTION = Discrete(
    values=("0.3", "-1.204", "1", "0", "0", "-inf", "1", "0"),
    formulas=("p**i * (1 - p)**(1 - i)", "(1 - p)**(1 - i)", "p * (1 - i)"),
    support="``i = 0`` and ``i = 1``",
    name="bernoulli", of="the Bernoulli distribution", high=1.0, example="1; 0.9; 0.3",
    parameters={"p": "the probability of 1"}, valid=probability, log_mass=_log_mass,
    cdf=lambda k, p: ops.add(ops.sub(1, p), ops.mul(k, 0)),
    logcdf=lambda k, p: ops.add(log1p(ops.neg(p)), ops.mul(k, 0)),
    sf=lambda k, p: ops.add(p, ops.mul(k, 0)), logsf=lambda k, p: ops.add(log(p), ops.mul(k, 0)),
    ppf=lambda q, p: _quantile(ops.gt(q, ops.sub(1, p)), q, p), isf=lambda q, p: _quantile(ops.lt(q, p), q, p),
)  # fmt: skip

pmf, logpmf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
