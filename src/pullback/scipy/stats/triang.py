"""The triangular distribution on [0."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, either, log, log1p, probability, where


def _sides(y: Any, c: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return whether ``y`` is on the rising side, its distance from both ends, and the widths of both sides."""
    rising = either(ops.lt(y, c), ops.eq(c, 1))
    left, right = where(ops.gt(c, 0), c, 1), where(ops.lt(c, 1), ops.sub(1, c), 1)
    return rising, where(rising, y, left), where(rising, right, ops.sub(1, y)), left, right


def _density(y: Any, c: Any) -> Any:
    rising, low, high, left, right = _sides(y, c)
    return where(rising, ops.div(low, left), ops.div(high, right)) * 2


def _log(x: Any) -> Any:
    above = ops.gt(x, 0)
    return where(above, log(where(above, x, 1)), -math.inf)


def _tails(y: Any, c: Any) -> tuple[Any, Any]:
    """Return the probabilities below and above ``y``, neither as a difference from one."""
    rising, low, high, left, right = _sides(y, c)
    up, down = where(rising, ops.sub(c, y), 0), where(rising, 0, ops.sub(y, c))
    first, second = ops.div(low * low, left), ops.div(high * high, right)
    sums_up, sums_down = ops.add(c, low), ops.add(high, right)
    rest = ops.sub(1, c) + ops.div(ops.mul(up, sums_up), left)
    return where(rising, first, c + ops.div(ops.mul(down, sums_down), right)), where(rising, rest, second)


def _cdf(y: Any, c: Any) -> Any:
    return _tails(y, c)[0]


def _sf(y: Any, c: Any) -> Any:
    return _tails(y, c)[1]


def _log_cdf(y: Any, c: Any) -> Any:
    below, above = _tails(y, c)
    low = ops.lt(below, 0.5)
    return where(low, _log(below), log1p(-where(low, 0, above)))


def _log_sf(y: Any, c: Any) -> Any:
    below, above = _tails(y, c)
    low = ops.lt(above, 0.5)
    return where(low, _log(above), log1p(-where(low, 0, below)))


def _quantile(q: Any, rest: Any, c: Any) -> Any:
    """Return the quantile of ``q``, where ``rest`` is 1 - q."""
    low, above = ops.lt(q, c), ops.sub(1, c)
    first = ops.sqrt(ops.mul(where(low, q, 1), where(low, c, 1)))
    second = ops.sqrt(ops.mul(where(low, 1, rest), where(low, 1, above)))
    return where(low, first, 1 - second)


DISTRIBUTION = Continuous(
    values=("1.143", "0.1335", "0.7714", "-0.2595", "0.2286", "-1.476", "0.5417", "0.3"),
    formulas=(
        "where(z < c, 2 * z / c, 2 * (1 - z) / (1 - c))",
        "where(z < c, z**2 / c, 1 - (1 - z)**2 / (1 - c))",
        "where(z < c, 1 - z**2 / c, (1 - z)**2 / (1 - c))",
    ),
    support="``0 <= z <= 1``",
    name="triang",
    of="the triangular distribution on [0, 1], with its peak at ``c``",
    parameters={"c": "the position of the peak, from 0 to 1"},
    valid=probability, low=0.0, high=1.0, example="0.6; 0.7; 0.3",
    log_density=lambda y, c: _log(_density(y, c)), density=_density, cdf=_cdf, sf=_sf, logcdf=_log_cdf, logsf=_log_sf,
    ppf=lambda q, c: _quantile(q, ops.sub(1, q), c), isf=lambda q, c: _quantile(ops.sub(1, q), q, c),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
