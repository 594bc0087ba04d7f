"""The Pareto distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, expm1, log, log1mexp, log1p, positive
from pullback.scipy.stats.docstrings import WITHOUT_CANCELLATION

DISTRIBUTION = Continuous(
    values=("0.5926", "-0.5232", "0.5556", "-0.5878", "0.4444", "-0.8109", "3.162", "1.054"),
    formulas=("b / z**(b + 1)", "1 - z**-b", "z**-b"),
    support="``z >= 1``",
    notes={"logcdf": WITHOUT_CANCELLATION},
    name="pareto", of="the Pareto distribution", parameters={"b": "the exponent of the tail, positive"},
    valid=positive, low=1.0, interior=2.0, example="1.5; 0.9; 2.0",
    log_density=lambda y, b: ops.sub(log(b), ops.mul(b + 1, log(y))),
    cdf=lambda y, b: -expm1(-ops.mul(b, log(y))),
    logcdf=lambda y, b: log1mexp(-ops.mul(b, log(y))),
    sf=lambda y, b: ops.pow(y, -b), logsf=lambda y, b: -ops.mul(b, log(y)),
    ppf=lambda q, b: exp(-ops.div(log1p(-q), b)), isf=lambda q, b: exp(-ops.div(log(q), b)),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
