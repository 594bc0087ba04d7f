"""The Lomax distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, expm1, log, log1p, positive
from pullback.scipy.stats.formulas import by_hazard

DISTRIBUTION = Continuous(
    values=("0.4074", "-0.898", "0.6152", "-0.4857", "0.3848", "-0.9551", "0.952", "0.2191"),
    formulas=(
        "c * (1 + z)**(-c - 1)",
        "1 - (1 + z)**-c",
        "(1 + z)**-c",
    ),
    support="``z >= 0``",
    name="lomax",
    of="the Lomax distribution: Pareto's, from zero on",
    parameters={"c": "the exponent of the tail, positive"},
    valid=positive, low=0.0, interior=1.0, example="0.7; 0.7; 1.8",
    log_density=lambda y, c: ops.sub(log(c), ops.mul(c + 1, log1p(y))),
    **by_hazard(
        lambda y, c: ops.mul(c, log1p(y)), lambda y, c: ops.add(log(c), log(log1p(y))),
        lambda h, c: expm1(ops.div(h, c)),
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
