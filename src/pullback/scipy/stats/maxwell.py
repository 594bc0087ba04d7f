"""The Maxwell distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log
from pullback.scipy.stats.formulas import above_zero, by_gamma

DISTRIBUTION = Continuous(
    values=("0.5828", "-0.5399", "0.4778", "-0.7385", "0.5222", "-0.6498", "2.5", "0.7644"),
    formulas=(
        "sqrt(2 / pi) * z**2 * exp(-z**2 / 2)",
        "gammainc(3 / 2, z**2 / 2)",
        "gammaincc(3 / 2, z**2 / 2)",
    ),
    support="``z >= 0``",
    name="maxwell",
    of="the Maxwell distribution: of the length of a normal vector in three dimensions",
    low=0.0, interior=1.0, example="1.5; 0.9",
    inside=above_zero,
    **by_gamma(lambda y: y * 0 + 1.5, lambda y: y * y * 0.5, log, lambda g: ops.sqrt(g * 2)),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
