"""The Gompertz distribution."""

from __future__ import annotations

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, expm1, log, log1p, positive
from pullback.scipy.stats.formulas import by_hazard, log_expm1

DISTRIBUTION = Continuous(
    values=("0.7159", "-0.3341", "0.5556", "-0.5877", "0.4444", "-0.811", "0.9183", "0.3687"),
    formulas=(
        "c * exp(z - c * expm1(z))",
        "-expm1(-c * expm1(z))",
        "exp(-c * expm1(z))",
    ),
    support="``z >= 0``",
    name="gompertz",
    of="the Gompertz distribution, of life times whose hazard grows exponentially",
    parameters={"c": "the hazard at zero, positive"},
    valid=positive, low=0.0, interior=1.0, example="0.7; 0.7; 0.8",
    log_density=lambda y, c: ops.sub(ops.add(log(c), y), ops.mul(c, expm1(y))),
    **by_hazard(
        lambda y, c: ops.mul(c, expm1(y)), lambda y, c: ops.add(log(c), log_expm1(y)), lambda h, c: log1p(ops.div(h, c))
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
