"""The log-uniform distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, both, exp, log, positive


def _width(a: Any, b: Any) -> Any:
    return log(ops.div(b, a))


def _share(low: Any, high: Any, a: Any, b: Any) -> Any:
    return ops.div(log(ops.div(high, low)), _width(a, b))


DISTRIBUTION = Continuous(
    values=("0.3206", "-1.138", "0.5283", "-0.6381", "0.4717", "-0.7515", "2.144", "0.933"),
    formulas=(
        "1 / (z * log(b / a))",
        "log(z / a) / log(b / a)",
        "log(b / z) / log(b / a)",
    ),
    support="``a <= z <= b``",
    name="loguniform",
    of="the log-uniform distribution: of numbers whose logarithms are uniform",
    parameters={"a": "the least number, positive", "b": "the largest number, above ``a``"},
    valid=lambda a, b: both(positive(a, b), ops.lt(a, b)), low=lambda a, b: a, high=lambda a, b: b,
    interior=lambda a, b: ops.mul(ops.sqrt(a), ops.sqrt(b)), example="1.5; 0.7; 0.5; 4.0",
    log_density=lambda y, a, b: -ops.add(log(y), log(_width(a, b))),
    cdf=lambda y, a, b: _share(a, y, a, b), sf=lambda y, a, b: _share(y, b, a, b),
    logcdf=lambda y, a, b: log(_share(a, y, a, b)), logsf=lambda y, a, b: log(_share(y, b, a, b)),
    ppf=lambda q, a, b: ops.mul(a, exp(ops.mul(q, _width(a, b)))),
    isf=lambda q, a, b: ops.mul(b, exp(-ops.mul(q, _width(a, b)))),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
