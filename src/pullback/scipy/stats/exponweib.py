"""The exponentiated Weibull distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, log1mexp, log1mexp_of_exp, positive, where
from pullback.scipy.stats.formulas import FAR, by_hazard, from_zero


def _log_power(y: Any, c: Any) -> Any:
    return ops.mul(log(y), c)


def _hazard(y: Any, a: Any, c: Any) -> Any:
    return -ops.mul(a, log1mexp_of_exp(_log_power(y, c)))


def _log_hazard(y: Any, a: Any, c: Any) -> Any:
    power = exp(_log_power(y, c))
    far = ops.gt(power, FAR)
    near = log(-log1mexp(-where(far, 1, power)))
    return ops.add(log(a), where(far, ops.neg(power), near))


def _inverse(h: Any, a: Any, c: Any) -> Any:
    power = -log1mexp(-ops.div(h, a))
    return exp(ops.div(log(power), c))


def _log_density(y: Any, a: Any, c: Any) -> Any:
    logarithm = _log_power(y, c)
    weibull = ops.sub(ops.add(log(c), logarithm), ops.add(log(y), exp(logarithm)))
    powers = ops.mul(a - 1, log1mexp_of_exp(logarithm))
    return ops.add(log(a), ops.add(weibull, powers))


DISTRIBUTION = Continuous(
    values=("0.5072", "-0.6788", "0.5892", "-0.529", "0.4108", "-0.8896", "1.443", "0.707"),
    formulas=(
        "a * c * (-expm1(-z**c))**(a - 1) * exp(-z**c) * z**(c - 1)",
        "(-expm1(-z**c))**a",
        "1 - (-expm1(-z**c))**a",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``a * c`` is below 1."},
    name="exponweib",
    of="the exponentiated Weibull distribution",
    parameters={"a": "the exponent, positive", "c": "the shape of the Weibull distribution, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.2; 0.7; 1.6; 1.3",
    **from_zero(ops.mul, lambda a, c: ops.mul(a, c) * 0), log_density=_log_density,
    **by_hazard(_hazard, _log_hazard, _inverse, decreasing=True),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
