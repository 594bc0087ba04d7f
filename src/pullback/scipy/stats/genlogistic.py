"""The generalised logistic distribution of type I."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, positive
from pullback.scipy.stats.formulas import by_hazard, log_expm1, log_softplus, softplus

DISTRIBUTION = Continuous(
    values=("0.2891", "-1.241", "0.484", "-0.7257", "0.516", "-0.6616", "1.518", "0.04915"),
    formulas=(
        "c * exp(-z) * (1 + exp(-z))**(-c - 1)",
        "(1 + exp(-z))**-c",
        "1 - (1 + exp(-z))**-c",
    ),
    support="all real ``z``",
    name="genlogistic",
    of="the generalised logistic distribution of type I",
    parameters={"c": "the shape, positive"},
    valid=positive, interior=0.0, example="0.7; 0.7; 1.8",
    log_density=lambda y, c: ops.sub(ops.sub(log(c), y), ops.mul(c + 1, softplus(-y))),
    **by_hazard(
        lambda y, c: ops.mul(c, softplus(-y)), lambda y, c: ops.add(log(c), log_softplus(-y)),
        lambda h, c: -log_expm1(ops.div(h, c)), decreasing=True,
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
