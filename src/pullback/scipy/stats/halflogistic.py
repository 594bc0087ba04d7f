"""The half-logistic distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.scipy.stats.distributions import Continuous, exp, expm1, log, log1p
from pullback.scipy.stats.formulas import by_hazard


def _hazard(y: Any) -> Any:
    return y + log1p(expm1(-y) * 0.5)


def _inverse(h: Any) -> Any:
    return h + log1p(-expm1(-h))


DISTRIBUTION = Continuous(
    values=("0.3558", "-1.033", "0.537", "-0.6217", "0.463", "-0.7701", "2.944", "0.2007"),
    formulas=(
        "2 * exp(-z) / (1 + exp(-z))**2",
        "(1 - exp(-z)) / (1 + exp(-z))",
        "2 * exp(-z) / (1 + exp(-z))",
    ),
    support="``z >= 0``",
    name="halflogistic",
    of="the half-logistic distribution: of the size of a logistic number",
    low=0.0, interior=1.0, example="1.2; 0.9",
    log_density=lambda y: math.log(2) - y - log1p(exp(-y)) * 2,
    **by_hazard(_hazard, lambda y: log(_hazard(y)), _inverse),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
