"""The distribution of fatigue lives of Birnbaum and Saunders."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, log1p, positive, where
from pullback.scipy.stats.formulas import above_zero, by_normal


def _inverse(z: Any, c: Any) -> Any:
    """Return the square of half of c z plus the root of (c z)² + 4, from the inverse of it where z is negative."""
    half = ops.abs(ops.mul(c, z)) * 0.5
    root = half + ops.hypot_p.bind(half, half * 0 + 1)
    return where(ops.lt(z, 0), ops.div(1, root * root), root * root)


DISTRIBUTION = Continuous(
    values=("0.4066", "-0.9", "0.5903", "-0.5272", "0.4097", "-0.8922", "1.517", "0.6593"),
    formulas=(
        "(z + 1) / (2 * c * sqrt(2 * pi * z**3)) * exp(-(z - 1)**2 / (2 * z * c**2))",
        "ndtr((sqrt(z) - 1 / sqrt(z)) / c)",
        "ndtr(-(sqrt(z) - 1 / sqrt(z)) / c)",
    ),
    support="``z >= 0``",
    name="fatiguelife",
    of="the distribution of fatigue lives of Birnbaum and Saunders",
    parameters={"c": "the shape, positive"},
    valid=positive, low=0.0, interior=1.0, example="1.2; 0.7; 0.8",
    inside=above_zero,
    **by_normal(
        lambda y, c: ops.div(ops.div(y - 1, ops.sqrt(y)), c),
        lambda y, c: log1p(y) - log(y) * 1.5 - log(c * 2), _inverse,
    ),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
