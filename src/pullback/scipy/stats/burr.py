"""The distribution of Burr's type III."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, positive
from pullback.scipy.stats.formulas import by_hazard, from_zero, log_expm1, log_softplus, softplus


def _log_power(y: Any, c: Any) -> Any:
    return -ops.mul(log(y), c)


def _log_density(y: Any, c: Any, d: Any) -> Any:
    power = _log_power(y, c)
    constant = ops.add(log(c), log(d))
    return ops.add(constant, ops.sub(power, log(y))) - ops.mul(d + 1, softplus(power))


DISTRIBUTION = Continuous(
    values=("0.3347", "-1.095", "0.08637", "-2.449", "0.9136", "-0.09033", "2.696", "1.231"),
    formulas=(
        "c * d * z**(-c - 1) * (1 + z**-c)**(-d - 1)",
        "(1 + z**-c)**-d",
        "1 - (1 + z**-c)**-d",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``c * d`` is below 1."},
    name="burr",
    of="the distribution of Burr's type III, which Dagum's is",
    parameters={"c": "the first shape, positive", "d": "the second shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="0.7; 0.7; 1.8; 2.3",
    **from_zero(ops.mul, lambda c, d: ops.mul(c, d) * 0), log_density=_log_density,
    **by_hazard(
        lambda y, c, d: ops.mul(d, softplus(_log_power(y, c))),
        lambda y, c, d: ops.add(log(d), log_softplus(_log_power(y, c))),
        lambda h, c, d: exp(-ops.div(log_expm1(ops.div(h, d)), c)), decreasing=True,
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
