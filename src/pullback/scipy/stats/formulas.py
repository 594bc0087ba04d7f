"""Formulas that several distributions share: functions of a gamma, beta or normal variable, and of a hazard.

A variable that is an increasing function of another has its distribution function at the other's value; of a decreasing
one it is the survival function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.primitives.special.error_functions import ndtri_p
from pullback.primitives.special.gamma_functions import betaln_p
from pullback.primitives.special.incomplete import betainc_p, igamma_p, igammac_p
from pullback.primitives.special.inverse_incomplete import betainccinv_p, betaincinv_p, gammainccinv_p, gammaincinv_p
from pullback.primitives.special.log_incomplete import (
    log_betainc_p,
    log_gamma_density_p,
    log_igamma_p,
    log_igammac_p,
    log_ndtr_p,
)
from pullback.scipy.special import ndtr
from pullback.scipy.stats.distributions import both, exp, expm1, log, log1mexp, log1mexp_of_exp, log1p, where

Formula = Callable[..., Any]
FAR = 40.0
"""Where exp(-x) is below the rounding error of 1."""


def above_zero(y: Any, *parameters: Any) -> Any:
    """Return whether ``y`` is positive and finite."""
    return both(ops.gt(y, 0), ops.lt(y, math.inf))


def from_zero(power: Formula, value: Formula, sign: int = 1) -> dict[str, Any]:
    """Return the formulas ``inside`` and ``outside`` of a density on one side of zero, with a power of ``y`` as factor.

    Args:
      power: the exponent plus one, of the parameters: below 1 the density at zero is infinite, and above 1 it is zero.
      value: the log density at zero where ``power`` is 1, of the parameters.
      sign: the side, 1 or -1.
    """

    def inside(y: Any, *parameters: Any) -> Any:
        return above_zero(y if sign > 0 else ops.neg(y))

    def outside(y: Any, *parameters: Any) -> Any:
        exponent = power(*parameters)
        there = where(ops.eq(exponent, 1), value(*parameters), -math.inf)
        return where(ops.eq(y, 0), where(ops.lt(exponent, 1), math.inf, there), -math.inf)

    return {"inside": inside, "outside": outside}


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x))."""
    return ops.logaddexp_p.bind(x, 0.0)


def log_softplus(x: Any) -> Any:
    """Return the logarithm of :func:`softplus`, also where that underflows."""
    low = ops.lt(x, -FAR)
    return where(low, x, log(softplus(where(low, 0, x))))


def log_expm1(x: Any) -> Any:
    """Return log(exp(x) - 1) for a positive ``x``, also where exp(x) overflows."""
    return ops.add(x, log1mexp(ops.neg(x)))


def log1p_ratio(x: Any) -> Any:
    """Return log(1 + x) / x, which is 1 at zero; next to zero it is a series of twelve terms."""
    near = ops.lt(ops.abs(x), 0.03)
    small, rest = where(near, x, 0), where(near, 1, x)
    series = ops.mul(small, 0)
    for k in range(12, 0, -1):
        series = ops.sub(1 / k, ops.mul(series, small))
    return where(near, series, ops.div(log1p(rest), rest))


def _mirrored(formulas: dict[str, Any]) -> dict[str, Any]:
    """Return the formulas of a decreasing function of the variable."""
    names = {"cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf", "ppf": "isf", "isf": "ppf"}
    return {names.get(name, name): formula for name, formula in formulas.items()}


def by_hazard(hazard: Formula, log_hazard: Formula, inverse: Formula, decreasing: bool = False) -> dict[str, Any]:
    """Return the formulas of a distribution whose survival function is exp(-hazard).

    Args:
      hazard: of the variable and the parameters; increasing, or if ``decreasing``, the distribution function is
        exp(-hazard).
      log_hazard: its logarithm, also where the hazard underflows.
      inverse: the variable, of the hazard and the parameters.
    """
    formulas: dict[str, Any] = {
        "sf": lambda y, *p: exp(ops.neg(hazard(y, *p))),
        "logsf": lambda y, *p: ops.neg(hazard(y, *p)),
        "cdf": lambda y, *p: ops.neg(expm1(-hazard(y, *p))),
        "logcdf": lambda y, *p: log1mexp_of_exp(log_hazard(y, *p)),
        "isf": lambda q, *p: inverse(-log(q), *p),
        "ppf": lambda q, *p: inverse(-log1p(-q), *p),
    }
    return _mirrored(formulas) if decreasing else formulas


def by_normal(variable: Formula, log_slope: Formula, inverse: Formula) -> dict[str, Any]:
    """Return the formulas of a distribution of which an increasing function is a standard normal variable.

    Args:
      variable: the normal variable, of the variable and the parameters.
      log_slope: the logarithm of its derivative by the variable.
      inverse: the variable, of the normal one and the parameters.
    """

    def log_density(y: Any, *p: Any) -> Any:
        z = variable(y, *p)
        return ops.add(z * z * -0.5 - 0.5 * math.log(2 * math.pi), log_slope(y, *p))

    return {
        "log_density": log_density,
        "cdf": lambda y, *p: ndtr(variable(y, *p)),
        "sf": lambda y, *p: ndtr(-variable(y, *p)),
        "logcdf": lambda y, *p: log_ndtr_p.bind(variable(y, *p)),
        "logsf": lambda y, *p: log_ndtr_p.bind(-variable(y, *p)),
        "ppf": lambda q, *p: inverse(ndtri_p.bind(q), *p),
        "isf": lambda q, *p: inverse(-ndtri_p.bind(q), *p),
    }


def by_gamma(
    shape: Formula, variable: Formula, log_slope: Formula, inverse: Formula, decreasing: bool = False
) -> dict[str, Any]:
    """Return the formulas of a distribution of which a function is a gamma variable.

    Args:
      shape: the shape of the gamma distribution, of an array of the dtype of the result and the parameters.
      variable: the gamma variable, of the variable and the parameters; increasing, unless ``decreasing``.
      log_slope: the logarithm of the size of its derivative by the variable.
      inverse: the variable, of the gamma variable and the parameters.
    """

    def at(primitive: Any) -> Formula:
        return lambda y, *p: primitive.bind(shape(y, *p), variable(y, *p))

    def back(primitive: Any) -> Formula:
        return lambda q, *p: inverse(primitive.bind(shape(q, *p), q), *p)

    density = at(log_gamma_density_p)
    formulas: dict[str, Any] = {
        "log_density": lambda y, *p: ops.add(density(y, *p), log_slope(y, *p)),
        "cdf": at(igamma_p), "sf": at(igammac_p), "logcdf": at(log_igamma_p), "logsf": at(log_igammac_p),
        "ppf": back(gammaincinv_p), "isf": back(gammainccinv_p),
    }  # fmt: skip
    return _mirrored(formulas) if decreasing else formulas


def by_beta(shapes: Formula, odds: Formula, log_scale: Formula, inverse: Formula) -> dict[str, Any]:
    """Return the formulas of a distribution of which a multiple is the odds x / (1 - x) of a beta variable x.

    Args:
      shapes: both parameters of the beta distribution, of the parameters.
      odds: the odds, of the variable and the parameters.
      log_scale: the logarithm of the factor of the variable in the odds, of the parameters.
      inverse: the variable, of the odds and the parameters.
    """

    def log_density(y: Any, *p: Any) -> Any:
        a, b = shapes(*p)
        ratio = odds(y, *p)
        both = ops.add(a, b)
        powers = ops.sub(ops.mul(a - 1, log(ratio)), ops.mul(both, log1p(ratio)))
        return ops.add(ops.sub(powers, betaln_p.bind(a, b)), log_scale(*p))

    def smaller(y: Any, *p: Any) -> tuple[Any, ...]:
        """Return whether x is below its mean, and the parameters and the argument of the smaller of both tails."""
        a, b = shapes(*p)
        ratio = odds(y, *p)
        low = ops.lt(ops.mul(ratio, b), a)
        argument = ops.div(where(low, ratio, 1), 1 + ratio)
        return low, where(low, a, b), where(low, b, a), argument

    def share(below: bool) -> Formula:
        def formula(y: Any, *p: Any) -> Any:
            low, *operands = smaller(y, *p)
            tail = betainc_p.bind(*operands)
            return where(low, tail, 1 - tail) if below else where(low, 1 - tail, tail)

        return formula

    def log_share(below: bool) -> Formula:
        def formula(y: Any, *p: Any) -> Any:
            low, *operands = smaller(y, *p)
            tail = log_betainc_p.bind(*operands)
            rest = log1mexp(ops.min_p.bind(tail, -1e-300))
            return where(low, tail, rest) if below else where(low, rest, tail)

        return formula

    def back(lower: Any, upper: Any) -> Formula:
        def formula(q: Any, *p: Any) -> Any:
            a, b = shapes(*p)
            return inverse(ops.div(lower.bind(a, b, q), upper.bind(b, a, q)), *p)

        return formula

    return {
        "log_density": log_density,
        "cdf": share(True), "sf": share(False), "logcdf": log_share(True), "logsf": log_share(False),
        "ppf": back(betaincinv_p, betainccinv_p), "isf": back(betainccinv_p, betaincinv_p),
    }  # fmt: skip
