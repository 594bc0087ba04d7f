"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, positive
from pullback.scipy.stats.formulas import by_hazard, from_zero


def _log_hazard(y: Any, c: Any) -> Any:
    return ops.mul(log(y), c)


def _log_density(y: Any, c: Any) -> Any:
    power = _log_hazard(y, c)
    return ops.sub(ops.add(log(c), power), ops.add(log(y), exp(power)))


DISTRIBUTION = Continuous(
    values=("0.3079", "-1.178", "0.8636", "-0.1466", "0.1364", "-1.992", "1.633", "0.2661"),
    formulas=(
        "c * z**(c - 1) * exp(-z**c)",
        "-expm1(-z**c)",
        "exp(-z**c)",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``c`` is below 1."},
    name="weibull_min",
    of="the Weibull distribution",
    parameters={"c": "the shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.5; 0.9; 1.7",
    log_density=_log_density, **from_zero(lambda c: c, lambda c: c * 0),
    **by_hazard(lambda y, c: exp(_log_hazard(y, c)), _log_hazard, lambda h, c: exp(ops.div(log(h), c))),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
