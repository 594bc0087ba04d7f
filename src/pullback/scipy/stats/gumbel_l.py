"""The left-skewed Gumbel distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, expm1, log, log1mexp_of_exp, log1p
from pullback.scipy.stats.docstrings import WITHOUT_CANCELLATION

DISTRIBUTION = Continuous(
    values=("0.2364", "-1.442", "0.1266", "-2.067", "0.8734", "-0.1353", "2.417", "0.8748"),
    formulas=("exp(z - exp(z))", "1 - exp(-exp(z))", "exp(-exp(z))"),
    support="all real ``z``",
    notes={"logcdf": WITHOUT_CANCELLATION},
    name="gumbel_l", of="the left-skewed Gumbel distribution, of the smallest of many numbers",
    example="1.0; 0.9; 2.0; 0.5",
    quantile={"ppf": "p"},
    log_density=lambda y: ops.sub(y, exp(y)),
    cdf=lambda y: ops.neg(expm1(ops.neg(exp(y)))), logcdf=log1mexp_of_exp,
    sf=lambda y: exp(ops.neg(exp(y))), logsf=lambda y: ops.neg(exp(y)),
    ppf=lambda q: log(ops.neg(log1p(ops.neg(q)))), isf=lambda q: log(ops.neg(log(q))),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
