"""The chi distribution."""

from __future__ import annotations

import math

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, positive
from pullback.scipy.stats.formulas import by_gamma, from_zero

DISTRIBUTION = Continuous(
    values=("0.5533", "-0.5918", "0.5746", "-0.5541", "0.4254", "-0.8547", "2.334", "0.6171"),
    formulas=(
        "2 * (z**2 / 2)**(df / 2) * exp(-z**2 / 2) / gamma(df / 2) / z",
        "gammainc(df / 2, z**2 / 2)",
        "gammaincc(df / 2, z**2 / 2)",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``df`` is below 1."},
    name="chi",
    of="the chi distribution: of the length of a normal vector",
    parameters={"df": "the degrees of freedom, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.5; 0.9; 2.5",
    **from_zero(lambda df: df, lambda df: df * 0 + 0.5 * math.log(2 / math.pi)),
    **by_gamma(
        lambda y, df: df * 0.5, lambda y, df: y * y * 0.5, lambda y, df: log(y), lambda g, df: ops.sqrt(g * 2)
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
