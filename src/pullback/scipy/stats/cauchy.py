"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, log1p, where


def _log_density(y: Any) -> Any:
    far = ops.gt(ops.abs(y), 1)
    inner, outer = where(far, 0, y), where(far, y, 1)
    inverse = ops.div(1, outer)
    beyond = ops.add(ops.mul(log(ops.abs(outer)), 2), log1p(ops.mul(inverse, inverse)))
    return ops.sub(-math.log(math.pi), where(far, beyond, log1p(ops.mul(inner, inner))))


def _cdf(y: Any) -> Any:
    return ops.mul(ops.atan2_p.bind(_one(y), ops.neg(y)), 1 / math.pi)


def _one(like: Any) -> Any:
    return ops.add(ops.mul(like, 0), 1)


def _log_cdf(y: Any) -> Any:
    low = ops.lt(y, 0)
    return where(low, log(_cdf(where(low, y, -1))), log1p(ops.neg(_cdf(ops.neg(where(low, 1, y))))))


def _ppf(q: Any) -> Any:
    """Return the Cauchy quantile -cot(πq), computed from the distance of q to the nearer end of [0, 1]."""
    low, high = ops.lt(q, 0.25), ops.gt(q, 0.75)
    tail = where(low, q, where(high, ops.sub(1, q), 0.25))
    size = ops.div(1, ops.tan_p.bind(ops.mul(tail, math.pi)))
    middle = where(ops.or_p.bind(low, high), 0.5, q)
    inner = ops.tan_p.bind(ops.mul(ops.sub(middle, 0.5), math.pi))
    return where(low, ops.neg(size), where(high, size, inner))


DISTRIBUTION = Continuous(
    values=("0.1273", "-2.061", "0.1476", "-1.913", "0.8524", "-0.1597", "3.539", "0.4612"),
    formulas=("1 / (pi * (1 + z**2))", "1 / 2 + arctan(z) / pi", "1 / 2 - arctan(z) / pi"),
    support="all real ``z``",
    name="cauchy", of="the Cauchy distribution", symmetric=True, example="1.0; 0.9; 2.0; 0.5",
    log_density=_log_density, cdf=_cdf, logcdf=_log_cdf, ppf=_ppf,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
