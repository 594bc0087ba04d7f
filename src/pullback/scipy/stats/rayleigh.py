"""The Rayleigh distribution."""

from __future__ import annotations

import math

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log
from pullback.scipy.stats.formulas import above_zero, by_hazard

DISTRIBUTION = Continuous(
    values=("0.5841", "-0.5377", "0.5132", "-0.667", "0.4868", "-0.72", "2.146", "0.459"),
    formulas=(
        "z * exp(-z**2 / 2)",
        "-expm1(-z**2 / 2)",
        "exp(-z**2 / 2)",
    ),
    support="``z >= 0``",
    name="rayleigh",
    of="the Rayleigh distribution: of the length of a normal vector in two dimensions",
    low=0.0, interior=1.0, example="1.2; 0.9",
    inside=above_zero, log_density=lambda y: log(y) - y * y * 0.5,
    **by_hazard(lambda y: y * y * 0.5, lambda y: log(y) * 2 - math.log(2), lambda h: ops.sqrt(h * 2)),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
