"""The F distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, positive
from pullback.scipy.stats.formulas import by_beta, from_zero

DISTRIBUTION = Continuous(
    values=("0.2963", "-1.217", "0.6007", "-0.5097", "0.3993", "-0.9179", "1.605", "0.4974"),
    formulas=(
        "(dfn * z / dfd)**(dfn / 2) * (1 + dfn * z / dfd)**(-(dfn + dfd) / 2) / (z * beta(dfn / 2, dfd / 2))",
        "betainc(dfn / 2, dfd / 2, dfn * z / (dfn * z + dfd))",
        "betainc(dfd / 2, dfn / 2, dfd / (dfn * z + dfd))",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``dfn`` is below 2."},
    name="f",
    of="the F distribution: of the ratio of two chi-squared variables, each divided by its degrees of freedom",
    parameters={
        "dfn": "the degrees of freedom of the numerator, positive",
        "dfd": "those of the denominator, positive",
    },
    valid=positive, low=0.0, interior=1.0, example="1.2; 0.7; 3.0; 5.0",
    **from_zero(lambda dfn, dfd: dfn * 0.5, lambda dfn, dfd: dfn * 0),
    **by_beta(
        lambda dfn, dfd: (dfn * 0.5, dfd * 0.5), lambda y, dfn, dfd: ops.mul(y, ops.div(dfn, dfd)),
        lambda dfn, dfd: log(ops.div(dfn, dfd)), lambda odds, dfn, dfd: ops.mul(odds, ops.div(dfd, dfn)),
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
