"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import exprel_p
from pullback.scipy.stats.distributions import Continuous, at_least, at_most, both, log, where
from pullback.scipy.stats.formulas import by_hazard, log1p_ratio


def _end(c: Any) -> Any:
    bounded = ops.lt(c, 0)
    return where(bounded, ops.div(-1, where(bounded, c, -1)), math.inf)


def _hazard(y: Any, c: Any) -> Any:
    return ops.mul(y, log1p_ratio(ops.mul(c, y)))


def _inside(y: Any, c: Any) -> Any:
    return both(both(at_least(y, 0), ops.lt(y, math.inf)), ops.gt(ops.mul(c, y), -1))


def _outside(y: Any, c: Any) -> Any:
    """Return the log density at the upper end, which is finite if c is -1, and infinite below."""
    at_end = both(ops.eq(ops.mul(c, y), -1), at_most(c, -1))
    return where(at_end, where(ops.eq(c, -1), 0, math.inf), -math.inf)


DISTRIBUTION = Continuous(
    values=("0.2751", "-1.291", "0.6589", "-0.4172", "0.3411", "-1.076", "1.361", "0.3697"),
    formulas=(
        "(1 + c * z)**(-1 - 1 / c)",
        "1 - (1 + c * z)**(-1 / c)",
        "(1 + c * z)**(-1 / c)",
    ),
    support="``z >= 0``",
    notes={"pdf logpdf cdf logcdf sf logsf ppf isf": "The support ends at ``z = -1 / c`` if ``c`` is negative."},
    name="genpareto",
    of="the generalised Pareto distribution: of what exceeds a high threshold",
    parameters={"c": "the shape, any number: 0 for the exponential distribution"},
    valid=lambda c: ops.lt(ops.abs(c), math.inf), low=0.0, high=_end, interior=0.0, example="1.2; 0.7; 0.2",
    log_density=lambda y, c: -ops.mul(c + 1, _hazard(y, c)), inside=_inside, outside=_outside,
    **by_hazard(_hazard, lambda y, c: log(_hazard(y, c)), lambda h, c: ops.mul(h, exprel_p.bind(ops.mul(c, h)))),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
