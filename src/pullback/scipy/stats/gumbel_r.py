"""The right-skewed Gumbel distribution."""

from __future__ import annotations

from pullback.scipy.stats.distributions import Continuous, exp, expm1, log, log1mexp_of_exp, log1p
from pullback.scipy.stats.docstrings import WITHOUT_CANCELLATION

DISTRIBUTION = Continuous(
    values=("0.009133", "-4.696", "0.000618", "-7.389", "0.9994", "-0.0006182", "3.125", "1.583"),
    formulas=("exp(-z - exp(-z))", "exp(-exp(-z))", "1 - exp(-exp(-z))"),
    support="all real ``z``",
    notes={"logsf": WITHOUT_CANCELLATION},
    name="gumbel_r", of="the right-skewed Gumbel distribution, of the largest of many numbers",
    example="1.0; 0.9; 2.0; 0.5",
    quantile={"ppf": "p"},
    log_density=lambda y: -(y + exp(-y)),
    cdf=lambda y: exp(-exp(-y)), logcdf=lambda y: -exp(-y),
    sf=lambda y: -expm1(-exp(-y)), logsf=lambda y: log1mexp_of_exp(-y),
    ppf=lambda q: -log(-log(q)), isf=lambda q: -log(-log1p(-q)),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
