"""The beta distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.incomplete import betainc_p, betaincc_p
from pullback.primitives.special.inverse_incomplete import betainccinv_p, betaincinv_p
from pullback.primitives.special.log_incomplete import log_beta_density_p, log_betainc_p, log_betaincc_p
from pullback.scipy.stats.distributions import Continuous, both, either, positive, where


def _inside(y: Any, a: Any, b: Any) -> Any:
    """Return whether the density of the beta distribution at ``y`` is positive and finite."""
    from_zero = either(ops.gt(y, 0), both(ops.eq(y, 0), ops.eq(a, 1)))
    return both(from_zero, either(ops.lt(y, 1), both(ops.eq(y, 1), ops.eq(b, 1))))


def _outside(y: Any, a: Any, b: Any) -> Any:
    """Return the log density of the beta distribution at a ``y`` where it is infinite.

    It is inf at 0 if ``a`` is below 1, inf at 1 if ``b`` is below 1, and -inf elsewhere.
    """
    at_ends = either(both(ops.eq(y, 0), ops.lt(a, 1)), both(ops.eq(y, 1), ops.lt(b, 1)))
    return where(at_ends, math.inf, ops.sub(ops.mul(a, 0), math.inf))


DISTRIBUTION = Continuous(
    values=("1.728", "0.547", "0.5248", "-0.6447", "0.4752", "-0.744", "0.6795", "0.1426"),
    formulas=("z**(a - 1) * (1 - z)**(b - 1) / beta(a, b)", "betainc(a, b, z)", "1 - betainc(a, b, z)"),
    support="``0 <= z <= 1``",
    notes={
        "pdf logpdf": "The density is infinite at ``z = 0`` if ``a`` is below 1, and at ``z = 1`` if ``b`` is.",
    },
    name="beta", of="the beta distribution", valid=positive, low=0.0, high=1.0, example="0.4; 0.9; 2.0; 3.0",
    parameters={"a": "the first shape, positive", "b": "the second shape, positive"},
    log_density=lambda y, a, b: log_beta_density_p.bind(a, b, y), inside=_inside, outside=_outside,
    cdf=lambda y, a, b: betainc_p.bind(a, b, y), logcdf=lambda y, a, b: log_betainc_p.bind(a, b, y),
    sf=lambda y, a, b: betaincc_p.bind(a, b, y), logsf=lambda y, a, b: log_betaincc_p.bind(a, b, y),
    ppf=lambda q, a, b: betaincinv_p.bind(a, b, q), isf=lambda q, a, b: betainccinv_p.bind(a, b, q),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
