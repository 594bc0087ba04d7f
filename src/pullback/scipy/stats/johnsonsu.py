"""Johnson's unbounded distribution."""

from __future__ import annotations

import math

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, both, log, positive
from pullback.scipy.stats.formulas import by_normal

DISTRIBUTION = Continuous(
    values=("0.07554", "-2.583", "0.9574", "-0.04358", "0.04265", "-3.155", "0.09584", "-0.7725"),
    formulas=(
        "b * exp(-(a + b * arcsinh(z))**2 / 2) / sqrt(2 * pi * (1 + z**2))",
        "ndtr(a + b * arcsinh(z))",
        "ndtr(-a - b * arcsinh(z))",
    ),
    support="all real ``z``",
    name="johnsonsu",
    of="Johnson's unbounded distribution",
    parameters={"a": "the first shape, any number", "b": "the second shape, positive"},
    valid=lambda a, b: both(positive(b), ops.lt(ops.abs(a), math.inf)), interior=0.0, example="1.2; 0.7; 0.4; 1.3",
    **by_normal(
        lambda y, a, b: ops.add(a, ops.mul(b, ops.asinh_p.bind(y))),
        lambda y, a, b: ops.sub(log(b), log(ops.hypot_p.bind(y, y * 0 + 1))),
        lambda z, a, b: ops.sinh(ops.div(ops.sub(z, a), b)),
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
