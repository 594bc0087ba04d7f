"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, log1p, where

_LOG_SHARE = math.log(2 / math.pi)


def _below(y: Any) -> Any:
    return ops.atan_p.bind(y) * (2 / math.pi)


def _log_below(y: Any) -> Any:
    """Return the log distribution function, from the smaller of both tails."""
    low = ops.lt(y, 1)
    far = where(low, 1, y)
    return where(low, log(ops.atan_p.bind(where(low, y, 1))) + _LOG_SHARE, log1p(-_below(ops.div(1, far))))


def _quantile(q: Any) -> Any:
    """Return tan(pi q / 2), from the distance of q to the nearer end."""
    low = ops.lt(q, 0.5)
    angle = where(low, q, ops.sub(1, q)) * (math.pi / 2)
    size = ops.tan_p.bind(angle)
    return where(low, size, ops.div(1, size))


def _from_above(q: Any) -> Any:
    return ops.div(1, _quantile(q))


DISTRIBUTION = Continuous(
    values=("0.2609", "-1.344", "0.5577", "-0.5839", "0.4423", "-0.8158", "6.314", "0.1584"),
    formulas=(
        "2 / (pi * (1 + z**2))",
        "2 * arctan(z) / pi",
        "2 * arctan(1 / z) / pi",
    ),
    support="``z >= 0``",
    name="halfcauchy",
    of="the half-Cauchy distribution: of the size of a Cauchy number",
    low=0.0, interior=1.0, example="1.2; 0.9",
    log_density=lambda y: log(ops.hypot_p.bind(y, y * 0 + 1)) * -2 + _LOG_SHARE,
    cdf=_below, sf=lambda y: _below(ops.div(1, y)), logcdf=_log_below, logsf=lambda y: _log_below(ops.div(1, y)),
    ppf=_quantile, isf=_from_above,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
