"""The inverted Weibull distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, positive
from pullback.scipy.stats.formulas import above_zero, by_hazard


def _log_hazard(y: Any, c: Any) -> Any:
    return -ops.mul(log(y), c)


def _log_density(y: Any, c: Any) -> Any:
    power = _log_hazard(y, c)
    return ops.sub(ops.add(log(c), power), ops.add(log(y), exp(power)))


DISTRIBUTION = Continuous(
    values=("0.3444", "-1.066", "0.6054", "-0.5019", "0.3946", "-0.9298", "3.757", "0.6123"),
    formulas=(
        "c * z**(-c - 1) * exp(-z**-c)",
        "exp(-z**-c)",
        "-expm1(-z**-c)",
    ),
    support="``z >= 0``",
    name="invweibull",
    of="the inverted Weibull distribution, which Fréchet's is",
    parameters={"c": "the shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.5; 0.9; 1.7",
    inside=above_zero, log_density=_log_density,
    **by_hazard(
        lambda y, c: exp(_log_hazard(y, c)), _log_hazard, lambda h, c: exp(-ops.div(log(h), c)), decreasing=True
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
