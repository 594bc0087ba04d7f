"""The normal distribution."""

from __future__ import annotations

import math

from pullback.primitives.special.error_functions import ndtri_p
from pullback.primitives.special.log_incomplete import log_ndtr_p
from pullback.scipy.special import ndtr
from pullback.scipy.stats.distributions import Continuous

DISTRIBUTION = Continuous(
    values=("0.108", "-2.226", "0.02275", "-3.783", "0.9772", "-0.02301", "2.641", "1.359"),
    formulas=("exp(-z**2 / 2) / sqrt(2 * pi)", "erfc(-z / sqrt(2)) / 2", "erfc(z / sqrt(2)) / 2"),
    support="all real ``z``",
    name="norm", of="the normal distribution", symmetric=True, example="1.0; 0.9; 2.0; 0.5",
    log_density=lambda y: y * y * -0.5 - 0.5 * math.log(2 * math.pi),
    cdf=ndtr, logcdf=log_ndtr_p.bind, ppf=ndtri_p.bind,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
