"""Johnson's bounded distribution."""

from __future__ import annotations

import math

from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import logit_p
from pullback.scipy.stats.distributions import Continuous, both, log, log1p, positive
from pullback.scipy.stats.formulas import by_normal

DISTRIBUTION = Continuous(
    values=("1.406", "0.3408", "0.8231", "-0.1947", "0.1769", "-1.732", "0.5239", "0.3294"),
    formulas=(
        "b * exp(-(a + b * log(z / (1 - z)))**2 / 2) / (z * (1 - z) * sqrt(2 * pi))",
        "ndtr(a + b * log(z / (1 - z)))",
        "ndtr(-a - b * log(z / (1 - z)))",
    ),
    support="``0 <= z <= 1``",
    name="johnsonsb",
    of="Johnson's bounded distribution",
    parameters={"a": "the first shape, any number", "b": "the second shape, positive"},
    valid=lambda a, b: both(positive(b), ops.lt(ops.abs(a), math.inf)), low=0.0, high=1.0,
    example="0.6; 0.7; 0.4; 1.3",
    inside=lambda y, a, b: both(ops.gt(y, 0), ops.lt(y, 1)),
    **by_normal(
        lambda y, a, b: ops.add(a, ops.mul(b, logit_p.bind(y))), lambda y, a, b: log(b) - ops.add(log(y), log1p(-y)),
        lambda z, a, b: ops.logistic_p.bind(ops.div(ops.sub(z, a), b)),
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
