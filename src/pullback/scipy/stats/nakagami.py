"""The Nakagami distribution."""

from __future__ import annotations

import math

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, positive
from pullback.scipy.stats.formulas import by_gamma, from_zero

DISTRIBUTION = Continuous(
    values=("0.6885", "-0.3732", "0.7711", "-0.26", "0.2289", "-1.474", "1.444", "0.4414"),
    formulas=(
        "2 * nu**nu * z**(2 * nu - 1) * exp(-nu * z**2) / gamma(nu)",
        "gammainc(nu, nu * z**2)",
        "gammaincc(nu, nu * z**2)",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``nu`` is below 1/2."},
    name="nakagami",
    of="the Nakagami distribution: of the root of a gamma variable of mean one",
    parameters={"nu": "the shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.2; 0.9; 1.5",
    **from_zero(lambda nu: nu * 2, lambda nu: nu * 0 + 0.5 * math.log(2 / math.pi)),
    **by_gamma(
        lambda y, nu: nu, lambda y, nu: ops.mul(nu, y * y), lambda y, nu: ops.add(log(y), log(nu * 2)),
        lambda g, nu: ops.sqrt(ops.div(g, nu)),
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
