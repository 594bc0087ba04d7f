"""The half-normal distribution."""

from __future__ import annotations

import math

from pullback.primitives import elementwise as ops
from pullback.primitives.special.error_functions import ndtri_p
from pullback.primitives.special.log_incomplete import log_ndtr_p
from pullback.scipy.special import ndtr
from pullback.scipy.stats.distributions import Continuous, log
from pullback.scipy.stats.formulas import by_gamma

_SHARED = by_gamma(lambda y: y * 0 + 0.5, lambda y: y * y * 0.5, log, lambda g: ops.sqrt(g * 2))


DISTRIBUTION = Continuous(
    values=("0.3884", "-0.9458", "0.7699", "-0.2615", "0.2301", "-1.469", "1.645", "0.1257"),
    formulas=(
        "sqrt(2 / pi) * exp(-z**2 / 2)",
        "erf(z / sqrt(2))",
        "erfc(z / sqrt(2))",
    ),
    support="``z >= 0``",
    name="halfnorm",
    of="the half-normal distribution: of the size of a normal number",
    low=0.0, interior=1.0, example="1.2; 0.9",
    **_SHARED | {
        "log_density": lambda y: y * y * -0.5 + 0.5 * math.log(2 / math.pi),
        "sf": lambda y: ndtr(-y) * 2, "logsf": lambda y: log_ndtr_p.bind(-y) + math.log(2),
        "isf": lambda q: -ndtri_p.bind(q * 0.5),
    },
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
