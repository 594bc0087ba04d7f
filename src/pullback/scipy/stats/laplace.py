"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, log1p, where


def _cdf(y: Any) -> Any:
    tail = ops.mul(exp(ops.neg(ops.abs(y))), 0.5)
    return where(ops.lt(y, 0), tail, ops.sub(1, tail))


def _log_cdf(y: Any) -> Any:
    low = ops.lt(y, 0)
    above = log1p(ops.mul(exp(ops.neg(where(low, 0, y))), -0.5))
    return where(low, ops.sub(y, math.log(2)), above)


def _ppf(q: Any) -> Any:
    low = ops.lt(q, 0.5)
    below, above = log(ops.mul(where(low, q, 0.5), 2)), log(ops.mul(ops.sub(1, where(low, 0.5, q)), 2))
    return where(low, below, ops.neg(above))


DISTRIBUTION = Continuous(
    values=("0.1353", "-2", "0.06767", "-2.693", "0.9323", "-0.07007", "2.805", "1.195"),
    formulas=(
        "exp(-abs(z)) / 2",
        "1 / 2 + sign(z) * (1 - exp(-abs(z))) / 2",
        "1 / 2 - sign(z) * (1 - exp(-abs(z))) / 2",
    ),
    support="all real ``z``",
    name="laplace", of="the Laplace distribution", symmetric=True, example="1.0; 0.9; 2.0; 0.5",
    log_density=lambda y: ops.sub(ops.neg(ops.abs(y)), math.log(2)), cdf=_cdf, logcdf=_log_cdf, ppf=_ppf,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
