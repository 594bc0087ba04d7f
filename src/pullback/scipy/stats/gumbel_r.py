"""The right-skewed Gumbel distribution."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, expm1, log, log1p, log_of_rest_of_exp

DISTRIBUTION = Continuous(
    values=("0.009133", "-4.696", "0.000618", "-7.389", "0.9994", "-0.0006182", "3.125", "1.583"),
    name="gumbel_r", of="the right-skewed Gumbel distribution, of the largest of many numbers",
    example="1.0; 0.9; 2.0; 0.5",
    quantile={"ppf": "p"},
    log_density=lambda y: ops.neg(ops.add(y, exp(ops.neg(y)))),
    cdf=lambda y: exp(ops.neg(exp(ops.neg(y)))), logcdf=lambda y: ops.neg(exp(ops.neg(y))),
    sf=lambda y: ops.neg(expm1(ops.neg(exp(ops.neg(y))))), logsf=lambda y: log_of_rest_of_exp(ops.neg(y)),
    ppf=lambda q: ops.neg(log(ops.neg(log(q)))), isf=lambda q: ops.neg(log(ops.neg(log1p(ops.neg(q))))),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(__name__)

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
face(globals())
