"""The hyperbolic secant distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, either, exp, log, log1p, where
from pullback.scipy.stats.formulas import FAR

_LOG_SHARE = math.log(2 / math.pi)


def _log_cdf(y: Any) -> Any:
    far, high = ops.lt(y, -FAR), ops.gt(y, 0)
    low = log(ops.atan_p.bind(exp(where(either(far, high), 0, y)))) + _LOG_SHARE
    above = log1p(ops.atan_p.bind(exp(-where(high, y, 1))) * (-2 / math.pi))
    return where(far, y + _LOG_SHARE, where(high, above, low))


def _quantile(q: Any) -> Any:
    low = ops.lt(q, 0.5)
    angle = where(low, q, ops.sub(1, q)) * (math.pi / 2)
    point = log(ops.tan_p.bind(angle))
    return where(low, point, -point)


DISTRIBUTION = Continuous(
    values=("0.2536", "-1.372", "0.7066", "-0.3473", "0.2934", "-1.226", "0.6743", "-0.6743"),
    formulas=(
        "2 / (pi * (exp(z) + exp(-z)))",
        "2 * arctan(exp(z)) / pi",
        "2 * arctan(exp(-z)) / pi",
    ),
    support="all real ``z``",
    name="hypsecant",
    of="the hyperbolic secant distribution",
    interior=0.0, example="0.7; 0.7",
    symmetric=True, log_density=lambda y: _LOG_SHARE - ops.abs(y) - log1p(exp(ops.abs(y) * -2)),
    cdf=lambda y: exp(_log_cdf(y)), logcdf=_log_cdf, ppf=_quantile,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
