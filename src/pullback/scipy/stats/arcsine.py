"""The arcsine distribution on [0."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, both, either, log, log1p, where


def _below(y: Any) -> Any:
    """Return the distribution function, from the nearer end."""
    low = ops.lt(y, 0.5)
    share = ops.asin_p.bind(ops.sqrt(where(low, y, ops.sub(1, y)))) * (2 / math.pi)
    return where(low, share, ops.sub(1, share))


def _above(y: Any) -> Any:
    """Return the survival function, from the nearer end."""
    low = ops.lt(y, 0.5)
    share = ops.asin_p.bind(ops.sqrt(where(low, y, ops.sub(1, y)))) * (2 / math.pi)
    return where(low, ops.sub(1, share), share)


def _log_below(y: Any) -> Any:
    low = ops.lt(y, 0.5)
    near, far = where(low, y, 0.25), where(low, 0.75, y)
    return where(low, log(_below(near)), log1p(-_above(far)))


def _log_above(y: Any) -> Any:
    low = ops.lt(y, 0.5)
    near, far = where(low, y, 0.25), where(low, 0.75, y)
    return where(low, log1p(-_below(near)), log(_above(far)))


def _outside(y: Any) -> Any:
    return where(either(ops.eq(y, 0), ops.eq(y, 1)), math.inf, -math.inf)


def _quantile(q: Any) -> Any:
    root = ops.sin(q * (math.pi / 2))
    return root * root


def _from_above(q: Any) -> Any:
    root = ops.cos(q * (math.pi / 2))
    return root * root


DISTRIBUTION = Continuous(
    values=("0.6946", "-0.3644", "0.631", "-0.4605", "0.369", "-0.9969", "0.7939", "0.2061"),
    formulas=(
        "1 / (pi * sqrt(z * (1 - z)))",
        "2 * arcsin(sqrt(z)) / pi",
        "2 * arcsin(sqrt(1 - z)) / pi",
    ),
    support="``0 <= z <= 1``",
    name="arcsine",
    of="the arcsine distribution on [0, 1]",
    low=0.0, high=1.0, example="0.7; 0.7",
    inside=lambda y: both(ops.gt(y, 0), ops.lt(y, 1)), outside=_outside,
    log_density=lambda y: ops.add(log(y), log1p(-y)) * -0.5 - math.log(math.pi),
    cdf=_below, sf=_above, logcdf=_log_below, logsf=_log_above,
    ppf=_quantile, isf=_from_above,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
