"""The Pareto distribution below ``c``."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import exprel_p
from pullback.scipy.stats.distributions import Continuous, both, by_the_smaller, exp, log, log1p, where


def _mass(logarithm: Any, b: Any) -> Any:
    """Return ``(1 - end**-b) / b``, which is the logarithm of the end for ``b = 0``."""
    scaled = ops.mul(b, logarithm)
    return ops.mul(logarithm, exprel_p.bind(ops.neg(scaled)))


def _log_density(y: Any, b: Any, c: Any) -> Any:
    falling = ops.mul(b + 1, log(y))
    return ops.sub(ops.neg(falling), log(_mass(log(c), b)))


def _cdf(y: Any, b: Any, c: Any) -> Any:
    return ops.div(_mass(log(y), b), _mass(log(c), b))


def _sf(y: Any, b: Any, c: Any) -> Any:
    excess, falling = ops.div(ops.sub(c, y), y), ops.mul(b, log(y))
    above = ops.mul(exp(ops.neg(falling)), _mass(log1p(excess), b))
    return ops.div(above, _mass(log(c), b))


def _ppf(q: Any, b: Any, c: Any) -> Any:
    """Return ``(1 - q (1 - c**-b))**(-1 / b)``: for small exponents by a quotient ``log(1 - x) / x``."""
    share = ops.mul(q, _mass(log(c), b))
    x = ops.mul(b, share)
    small = ops.lt(ops.abs(x), 1e-4)
    near = share * (1 + x * (0.5 + x * (1 / 3 + x * 0.25)))
    logarithm = log1p(ops.neg(where(small, 0.5, x)))
    far = ops.neg(ops.div(logarithm, where(small, 1, b)))
    return exp(where(small, near, far))


DISTRIBUTION = Continuous(
    values=("0.6321", "-0.4587", "0.5926", "-0.5232", "0.4074", "-0.8979", "2.53", "1.05"),
    formulas=(
        "b / (1 - c**-b) / z**(b + 1)",
        "(1 - z**-b) / (1 - c**-b)",
        "(z**-b - c**-b) / (1 - c**-b)",
    ),
    support="``1 <= z <= c``",
    name="truncpareto", of="the Pareto distribution below ``c``",
    parameters={"b": "the exponent, not zero", "c": "the upper end of the standardised variable, more than 1"},
    valid=lambda b, c: both(both(ops.ne_p.bind(b, 0), ops.lt(ops.abs(b), float("inf"))),
                            both(ops.gt(c, 1), ops.lt(c, float("inf")))),
    low=1.0, high=lambda b, c: c, interior=1.0, example="1.5; 0.9; 2.0; 4.0",
    log_density=_log_density, cdf=_cdf, sf=_sf,
    logcdf=lambda y, b, c: by_the_smaller(log(_cdf(y, b, c)), log(_sf(y, b, c))),
    logsf=lambda y, b, c: by_the_smaller(log(_sf(y, b, c)), log(_cdf(y, b, c))),
    ppf=_ppf, isf=lambda q, b, c: _ppf(ops.sub(1, q), b, c),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
