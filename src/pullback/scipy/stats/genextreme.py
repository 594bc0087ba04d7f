"""The generalised extreme value distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import exprel_p
from pullback.scipy.stats.distributions import Continuous, at_least, both, exp, log, where
from pullback.scipy.stats.formulas import by_hazard, log1p_ratio


def _end(c: Any, there: Any, otherwise: float) -> Any:
    return where(there, ops.div(1, where(there, c, 1)), otherwise)


def _reduced(y: Any, c: Any) -> Any:
    """Return -log(1 - c y) / c, which has Gumbel's distribution."""
    return ops.mul(y, log1p_ratio(-ops.mul(c, y)))


def _inverse(h: Any, c: Any) -> Any:
    reduced = -log(h)
    return ops.mul(reduced, exprel_p.bind(-ops.mul(c, reduced)))


def _log_density(y: Any, c: Any) -> Any:
    reduced = _reduced(y, c)
    return ops.sub(ops.mul(c - 1, reduced), exp(-reduced))


def _inside(y: Any, c: Any) -> Any:
    return both(ops.lt(ops.mul(c, y), 1), ops.lt(ops.abs(y), math.inf))


def _outside(y: Any, c: Any) -> Any:
    """Return the log density at the upper end, which is finite if c is 1, and infinite above."""
    at_end = both(ops.eq(ops.mul(c, y), 1), at_least(c, 1))
    return where(at_end, where(ops.eq(c, 1), 0, math.inf), -math.inf)


DISTRIBUTION = Continuous(
    values=("0.2589", "-1.351", "0.776", "-0.2536", "0.224", "-1.496", "0.9316", "-0.1891"),
    formulas=(
        "(1 - c * z)**(1 / c - 1) * exp(-(1 - c * z)**(1 / c))",
        "exp(-(1 - c * z)**(1 / c))",
        "-expm1(-(1 - c * z)**(1 / c))",
    ),
    support="``c * z <= 1``",
    name="genextreme",
    of="the generalised extreme value distribution: of the largest of many numbers",
    parameters={
        "c": "the shape, any number: positive for a bounded tail, 0 for Gumbel's distribution; others write -c",
    },
    valid=lambda c: ops.lt(ops.abs(c), math.inf), low=lambda c: _end(c, ops.lt(c, 0), -math.inf),
    high=lambda c: _end(c, ops.gt(c, 0), math.inf), interior=0.0, example="1.2; 0.7; 0.2",
    log_density=_log_density, inside=_inside, outside=_outside,
    **by_hazard(lambda y, c: exp(-_reduced(y, c)), lambda y, c: -_reduced(y, c), _inverse, decreasing=True),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
