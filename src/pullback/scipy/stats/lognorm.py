"""The log-normal distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, positive
from pullback.scipy.stats.formulas import above_zero, by_normal

DISTRIBUTION = Continuous(
    values=("0.2924", "-1.23", "0.6939", "-0.3655", "0.3061", "-1.184", "2.788", "0.3587"),
    formulas=(
        "exp(-(log(z) / s)**2 / 2) / (s * z * sqrt(2 * pi))",
        "ndtr(log(z) / s)",
        "ndtr(-log(z) / s)",
    ),
    support="``z >= 0``",
    name="lognorm",
    of="the log-normal distribution: of numbers whose logarithms are normal, with the mean ``log(scale)``",
    parameters={"s": "the standard deviation of the logarithm, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.5; 0.9; 0.8",
    inside=above_zero,
    **by_normal(lambda y, s: ops.div(log(y), s), lambda y, s: -ops.add(log(y), log(s)),
                lambda z, s: exp(ops.mul(z, s))),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
