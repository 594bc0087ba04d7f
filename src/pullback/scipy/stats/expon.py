"""The exponential distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, expm1, log, log1mexp, log1p
from pullback.scipy.stats.docstrings import WITHOUT_CANCELLATION

DISTRIBUTION = Continuous(
    values=("0.3894", "-0.9431", "0.2212", "-1.509", "0.7788", "-0.25", "5.605", "1.211"),
    formulas=("exp(-z)", "1 - exp(-z)", "exp(-z)"),
    support="``z >= 0``",
    notes={"logcdf": WITHOUT_CANCELLATION},
    name="expon", of="the exponential distribution", low=0.0, example="1.5; 0.9; 1.0; 2.0",
    log_density=ops.neg,
    cdf=lambda y: ops.neg(expm1(ops.neg(y))), logcdf=lambda y: log1mexp(ops.neg(y)),
    sf=lambda y: exp(ops.neg(y)), logsf=ops.neg,
    ppf=lambda q: ops.neg(log1p(ops.neg(q))), isf=lambda q: ops.neg(log(q)),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
