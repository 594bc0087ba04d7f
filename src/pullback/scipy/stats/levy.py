"""The Lévy distribution."""

from __future__ import annotations

import math

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log
from pullback.scipy.stats.formulas import above_zero, by_gamma

DISTRIBUTION = Continuous(
    values=("0.1556", "-1.86", "0.4142", "-0.8814", "0.5858", "-0.5348", "1.412", "3.636"),
    formulas=(
        "exp(-1 / (2 * z)) / sqrt(2 * pi * z**3)",
        "erfc(sqrt(1 / (2 * z)))",
        "erf(sqrt(1 / (2 * z)))",
    ),
    support="``z >= 0``",
    name="levy",
    of="the Lévy distribution",
    low=0.0, interior=1.0, example="1.5; 0.4",
    inside=lambda y: above_zero(ops.div(0.5, y)),
    **by_gamma(
        lambda y: y * 0 + 0.5, lambda y: ops.div(0.5, y), lambda y: log(y) * -2 - math.log(2),
        lambda g: ops.div(0.5, g), decreasing=True,
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
