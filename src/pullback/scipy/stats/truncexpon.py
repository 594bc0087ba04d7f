"""The exponential distribution below ``b``."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, expm1, log, log1mexp, log1p, positive


def _log_sf(y: Any, b: Any) -> Any:
    return ops.sub(log1mexp(ops.sub(y, b)), ops.add(y, log1mexp(-b)))


DISTRIBUTION = Continuous(
    values=("0.541", "-0.6143", "0.5484", "-0.6007", "0.4516", "-0.795", "1.029", "0.3221"),
    formulas=(
        "exp(-z) / -expm1(-b)",
        "expm1(-z) / expm1(-b)",
        "(exp(-z) - exp(-b)) / -expm1(-b)",
    ),
    support="``0 <= z <= b``",
    name="truncexpon",
    of="the exponential distribution below ``b``",
    parameters={"b": "the upper end of the standardised variable, positive"},
    valid=positive, low=0.0, high=lambda b: b, interior=0.0, example="0.7; 0.7; 2.5",
    log_density=lambda y, b: -ops.add(y, log1mexp(-b)),
    cdf=lambda y, b: ops.div(expm1(-y), expm1(-b)), sf=lambda y, b: exp(_log_sf(y, b)),
    logcdf=lambda y, b: ops.sub(log1mexp(-y), log1mexp(-b)), logsf=_log_sf,
    ppf=lambda q, b: -log1p(ops.mul(q, expm1(-b))), isf=lambda q, b: -log(ops.sub(exp(-b), ops.mul(q, expm1(-b)))),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
