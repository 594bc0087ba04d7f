"""The beta prime distribution."""

from __future__ import annotations

from pullback.scipy.stats.distributions import Continuous, log, positive
from pullback.scipy.stats.formulas import by_beta, from_zero

DISTRIBUTION = Continuous(
    values=("0.2755", "-1.289", "0.8411", "-0.1731", "0.1589", "-1.839", "0.8469", "0.3819"),
    formulas=(
        "z**(a - 1) * (1 + z)**(-a - b) / beta(a, b)",
        "betainc(a, b, z / (1 + z))",
        "betainc(b, a, 1 / (1 + z))",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``a`` is below 1."},
    name="betaprime",
    of="the beta prime distribution: of the odds of a beta variable",
    parameters={"a": "the first shape, positive", "b": "the second shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.2; 0.7; 3.0; 5.0",
    **from_zero(lambda a, b: a, lambda a, b: log(b)),
    **by_beta(lambda a, b: (a, b), lambda y, a, b: y, lambda a, b: a * 0, lambda odds, a, b: odds),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
