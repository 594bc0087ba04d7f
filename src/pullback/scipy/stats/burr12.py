"""The distribution of Burr's type XII."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, positive
from pullback.scipy.stats.formulas import by_hazard, from_zero, log_expm1, log_softplus, softplus


def _log_power(y: Any, c: Any) -> Any:
    return ops.mul(log(y), c)


def _log_density(y: Any, c: Any, d: Any) -> Any:
    power = _log_power(y, c)
    constant = ops.add(log(c), log(d))
    return ops.add(constant, ops.sub(power, log(y))) - ops.mul(d + 1, softplus(power))


DISTRIBUTION = Continuous(
    values=("0.7711", "-0.2599", "0.6218", "-0.4751", "0.3782", "-0.9724", "0.8123", "0.3709"),
    formulas=(
        "c * d * z**(c - 1) * (1 + z**c)**(-d - 1)",
        "1 - (1 + z**c)**-d",
        "(1 + z**c)**-d",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``c`` is below 1."},
    name="burr12",
    of="the distribution of Burr's type XII, which Singh and Maddala's is",
    parameters={"c": "the first shape, positive", "d": "the second shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="0.7; 0.7; 1.8; 2.3",
    **from_zero(lambda c, d: c, lambda c, d: log(d)), log_density=_log_density,
    **by_hazard(
        lambda y, c, d: ops.mul(d, softplus(_log_power(y, c))),
        lambda y, c, d: ops.add(log(d), log_softplus(_log_power(y, c))),
        lambda h, c, d: exp(ops.div(log_expm1(ops.div(h, d)), c)),
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
