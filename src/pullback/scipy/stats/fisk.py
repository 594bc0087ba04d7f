"""The log-logistic distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, positive
from pullback.scipy.stats.formulas import by_hazard, from_zero, log_expm1, log_softplus, softplus


def _odds(y: Any, c: Any) -> Any:
    return ops.mul(log(y), c)


DISTRIBUTION = Continuous(
    values=("0.5809", "-0.5432", "0.3448", "-1.065", "0.6552", "-0.4228", "1.601", "0.6246"),
    formulas=(
        "c * z**(c - 1) / (1 + z**c)**2",
        "1 / (1 + z**-c)",
        "1 / (1 + z**c)",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``c`` is below 1."},
    name="fisk",
    of="the log-logistic distribution",
    parameters={"c": "the exponent of the tail, positive"},
    valid=positive, low=0.0, interior=1.0, example="0.7; 0.7; 1.8",
    **from_zero(lambda c: c, lambda c: c * 0),
    log_density=lambda y, c: ops.add(ops.sub(log(c), log(y)), _odds(y, c)) - softplus(_odds(y, c)) * 2,
    **by_hazard(
        lambda y, c: softplus(_odds(y, c)), lambda y, c: log_softplus(_odds(y, c)),
        lambda h, c: exp(ops.div(log_expm1(h), c)),
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
