"""The chi-squared distribution: a gamma distribution of scale 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats import gamma
from pullback.scipy.stats.distributions import Continuous, positive

_gamma = gamma.DISTRIBUTION


def _of_half(formula: Any) -> Callable[..., Any]:
    return lambda y, df: formula(ops.mul(y, 0.5), ops.mul(df, 0.5))


def _twice(formula: Any) -> Callable[..., Any]:
    return lambda q, df: ops.mul(formula(q, ops.mul(df, 0.5)), 2)


DISTRIBUTION = Continuous(
    values=("0.2308", "-1.466", "0.3177", "-1.147", "0.6823", "-0.3823", "6.251", "0.5844"),
    formulas=(
        "z**(df / 2 - 1) * exp(-z / 2) / (2**(df / 2) * gamma(df / 2))",
        "gammainc(df / 2, z / 2)",
        "gammaincc(df / 2, z / 2)",
    ),
    support="``z >= 0``",
    notes={
        "pdf logpdf": "The density is infinite at ``z = 0`` if ``df`` is below 2.",
    },
    name="chi2", of="the chi-squared distribution", parameters={"df": "the degrees of freedom, positive"},
    valid=positive, low=0.0, example="1.5; 0.9; 3.0",
    log_density=lambda y, df: ops.sub(_of_half(_gamma.log_density)(y, df), math.log(2)),
    inside=_of_half(gamma.inside), outside=_of_half(gamma.outside),
    cdf=_of_half(_gamma.cdf), logcdf=_of_half(_gamma.logcdf), sf=_of_half(_gamma.sf), logsf=_of_half(_gamma.logsf),
    ppf=_twice(_gamma.ppf), isf=_twice(_gamma.isf),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
