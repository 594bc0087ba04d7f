"""The Weibull distribution of negative numbers."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, positive
from pullback.scipy.stats.formulas import by_hazard, from_zero


def _log_hazard(y: Any, c: Any) -> Any:
    return ops.mul(log(-y), c)


def _log_density(y: Any, c: Any) -> Any:
    power = _log_hazard(y, c)
    return ops.sub(ops.add(log(c), power), ops.add(log(-y), exp(power)))


DISTRIBUTION = Continuous(
    values=("0.7677", "-0.2644", "0.5796", "-0.5453", "0.4204", "-0.8667", "-0.9499", "-0.6736"),
    formulas=(
        "c * (-z)**(c - 1) * exp(-(-z)**c)",
        "exp(-(-z)**c)",
        "-expm1(-(-z)**c)",
    ),
    support="``z <= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``c`` is below 1."},
    name="weibull_max",
    of="the Weibull distribution of negative numbers",
    parameters={"c": "the shape, positive"},
    valid=positive, high=0.0, interior=-1.0, example="-0.7; 0.4; 1.7",
    log_density=_log_density, **from_zero(lambda c: c, lambda c: c * 0, -1),
    **by_hazard(
        lambda y, c: exp(_log_hazard(y, c)), _log_hazard, lambda h, c: -exp(ops.div(log(h), c)), decreasing=True
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
