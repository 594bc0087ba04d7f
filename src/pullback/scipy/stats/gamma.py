"""The gamma distribution."""

from __future__ import annotations

import math

from pullback.core.array import Array, ArrayLike
from pullback.primitives import elementwise as ops
from pullback.primitives.special.incomplete import igamma_p, igammac_p
from pullback.primitives.special.inverse_incomplete import gammainccinv_p, gammaincinv_p
from pullback.primitives.special.log_incomplete import log_gamma_density_p, log_igamma_p, log_igammac_p
from pullback.scipy.stats.distributions import Continuous, both, either, positive, where


def inside(y: ArrayLike, a: ArrayLike) -> Array:
    """Whether the density at ``y`` is positive and finite."""
    return both(either(ops.gt(y, 0), both(ops.eq(y, 0), ops.eq(a, 1))), ops.lt(y, math.inf))


def outside(y: ArrayLike, a: ArrayLike) -> Array:
    """The log density where it is not finite: infinite at zero for ``a`` below 1, otherwise -inf."""
    at_zero = both(ops.eq(y, 0), ops.lt(a, 1))
    return where(at_zero, math.inf, ops.sub(ops.mul(a, 0), math.inf))


DISTRIBUTION = Continuous(
    values=("0.2987", "-1.208", "0.8009", "-0.2221", "0.1991", "-1.614", "1.945", "0.2659"),
    formulas=("z**(a - 1) * exp(-z) / gamma(a)", "gammainc(a, z)", "gammaincc(a, z)"),
    support="``z >= 0``",
    notes={
        "pdf logpdf": "The density is infinite at ``z = 0`` if ``a`` is below 1.",
    },
    name="gamma", of="the gamma distribution", parameters={"a": "the shape, positive"}, valid=positive, low=0.0,
    example="1.5; 0.9; 2.0; 0.0; 0.5",
    log_density=lambda y, a: log_gamma_density_p.bind(a, y), inside=inside, outside=outside,
    cdf=lambda y, a: igamma_p.bind(a, y), logcdf=lambda y, a: log_igamma_p.bind(a, y),
    sf=lambda y, a: igammac_p.bind(a, y), logsf=lambda y, a: log_igammac_p.bind(a, y),
    ppf=lambda q, a: gammaincinv_p.bind(a, q), isf=lambda q, a: gammainccinv_p.bind(a, q),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
