"""The power-function distribution on [0."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, at_most, both, exp, log, positive
from pullback.scipy.stats.formulas import by_hazard, from_zero


def _inside(y: Any, a: Any) -> Any:
    return both(ops.gt(y, 0), at_most(y, 1))


def _hazard(y: Any, a: Any) -> Any:
    return -ops.mul(log(y), a)


DISTRIBUTION = Continuous(
    values=("1.189", "0.1731", "0.4196", "-0.8684", "0.5804", "-0.5441", "0.8107", "0.4925"),
    formulas=(
        "a * z**(a - 1)",
        "z**a",
        "1 - z**a",
    ),
    support="``0 <= z <= 1``",
    notes={"pdf logpdf": "The density is infinite at ``z = 0`` if ``a`` is below 1."},
    name="powerlaw",
    of="the power-function distribution on [0, 1]",
    parameters={"a": "the exponent, positive"},
    valid=positive, low=0.0, high=1.0, example="0.6; 0.7; 1.7",
    **from_zero(lambda a: a, lambda a: a * 0) | {"inside": _inside},
    log_density=lambda y, a: ops.add(log(a), ops.mul(a - 1, log(y))),
    **by_hazard(
        _hazard, lambda y, a: ops.add(log(a), log(-log(y))), lambda h, a: exp(-ops.div(h, a)), decreasing=True
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
