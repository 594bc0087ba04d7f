"""The inverted gamma distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, positive
from pullback.scipy.stats.formulas import above_zero, by_gamma

DISTRIBUTION = Continuous(
    values=("0.6282", "-0.4649", "0.722", "-0.3257", "0.278", "-1.28", "1.242", "0.2165"),
    formulas=(
        "z**(-a - 1) * exp(-1 / z) / gamma(a)",
        "gammaincc(a, 1 / z)",
        "gammainc(a, 1 / z)",
    ),
    support="``z >= 0``",
    name="invgamma",
    of="the inverted gamma distribution: of one divided by a gamma variable",
    parameters={"a": "the shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="0.7; 0.9; 2.5",
    inside=lambda y, a: above_zero(ops.div(1, y)),
    **by_gamma(
        lambda y, a: a, lambda y, a: ops.div(1, y), lambda y, a: log(y) * -2, lambda g, a: ops.div(1, g),
        decreasing=True,
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
