"""The wrapped Cauchy distribution, of angles."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, at_most, both, log, log1p, where

_sin, _cos, _atan2 = ops.sin, ops.cos, ops.atan2_p.bind


def _ratio(c: Any) -> Any:
    return ops.div(ops.add(c, 1), ops.sub(1, c))


def _log_density(y: Any, c: Any) -> Any:
    """Return the log density of the wrapped Cauchy distribution.

    The denominator 1 + c² - 2 c cos(y) is computed as (1 - c)² + 4 c sin(y / 2)², which does not cancel.
    """
    sine, rest = _sin(y * 0.5), 1 - c
    below = ops.add(rest * rest, ops.mul(sine * sine, c) * 4)
    return ops.sub(log(rest) + log1p(c) - math.log(2 * math.pi), log(below))


def _cdf(y: Any, c: Any) -> Any:
    half = ops.mul(y, 0.5)
    return ops.mul(_atan2(ops.mul(_ratio(c), _sin(half)), _cos(half)), 1 / math.pi)


def _sf(y: Any, c: Any) -> Any:
    """Return the survival function at ``y``, which is the distribution function at 2π - y.

    In its formula sin(π - y / 2) is computed as sin(y / 2), since a rounded 2π would add an error.
    """
    half = ops.mul(y, 0.5)
    return ops.mul(_atan2(ops.mul(_ratio(c), _sin(half)), ops.neg(_cos(half))), 1 / math.pi)


def _log(x: Any, rest: Any) -> Any:
    """Return log(x), where ``rest`` is 1 - x; for ``rest`` below 1/2 it is computed as log1p(-rest)."""
    near = ops.lt(rest, 0.5)
    return ops.where(near, log1p(ops.neg(ops.where(near, rest, 0))), log(ops.where(near, 1, x)))


def _quantile(q: Any, c: Any, upper: bool) -> Any:
    """Return the point below which the probability is ``q``, or if ``upper``, the point above which it is ``q``.

    The point is computed from the nearer end of [0, 2π], so that angles are at most half a turn.
    """
    near = at_most(q, 0.5)
    angle = ops.mul(where(near, q, ops.sub(1, q)), math.pi)
    point = ops.mul(_atan2(_sin(angle), ops.mul(_ratio(c), _cos(angle))), 2)
    rest = ops.sub(2 * math.pi, point)
    return where(near, rest, point) if upper else where(near, point, rest)


DISTRIBUTION = Continuous(
    values=("0.1682", "-1.783", "0.3256", "-1.122", "0.6744", "-0.3939", "6.067", "0.2158"),
    formulas=(
        "(1 - c**2) / (2 * pi * (1 + c**2 - 2 * c * cos(z)))",
        "arctan2((1 + c) / (1 - c) * sin(z / 2), cos(z / 2)) / pi",
        "arctan2((1 + c) / (1 - c) * sin(z / 2), -cos(z / 2)) / pi",
    ),
    support="``0 <= z <= 2 * pi``",
    name="wrapcauchy", of="the wrapped Cauchy distribution", low=0.0, high=2 * math.pi, example="1.0; 0.9; 0.5",
    parameters={"c": "the concentration, between 0 and 1"}, valid=lambda c: both(ops.gt(c, 0), ops.lt(c, 1)),
    log_density=_log_density, cdf=_cdf, sf=_sf,
    logcdf=lambda y, c: _log(_cdf(y, c), _sf(y, c)), logsf=lambda y, c: _log(_sf(y, c), _cdf(y, c)),
    ppf=lambda q, c: _quantile(q, c, False), isf=lambda q, c: _quantile(q, c, True),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
