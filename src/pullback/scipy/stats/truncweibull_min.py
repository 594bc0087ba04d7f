"""The Weibull distribution between two points."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import (
    Continuous,
    at_least,
    both,
    by_the_smaller,
    exp,
    expm1,
    log,
    log1mexp,
    log1p,
    where,
)


def _hazard(x: Any, c: Any) -> Any:
    """Return ``x**c``, which is 0 at 0 and infinite at infinity, with derivatives there."""
    inner = both(ops.gt(x, 0), ops.lt(x, float("inf")))
    return where(inner, exp(ops.mul(c, log(where(inner, x, 1)))), where(ops.gt(x, 0), float("inf"), 0))


def _log_mass(low: Any, high: Any, c: Any) -> Any:
    """Return the logarithm of ``exp(-low**c) - exp(-high**c)``, also for numbers near each other."""
    start = _hazard(low, c)
    safe = where(ops.gt(low, 0), low, 1)
    near = both(ops.gt(low, 0), ops.lt(high, ops.mul(low, 2)))
    width = where(near, ops.div(ops.sub(where(near, high, 0), low), safe), 1)
    close = ops.mul(start, expm1(ops.mul(c, log1p(width))))
    between = where(near, close, ops.sub(_hazard(high, c), start))
    return ops.sub(log1mexp(ops.neg(between)), start)


def _log_density(y: Any, c: Any, a: Any, b: Any) -> Any:
    rising = log(c) + ops.mul(c - 1, log(y))
    return ops.sub(ops.sub(rising, _hazard(y, c)), _log_mass(a, b, c))


def _ppf(q: Any, rest: Any, c: Any, a: Any, b: Any) -> Any:
    """Return the quantile of ``q``, where ``rest`` is ``1 - q``, from a mean of the ends' survival functions."""
    start, end = _hazard(a, c), _hazard(b, c)
    ratio = exp(ops.sub(start, end))
    survival = ops.add(rest, ops.mul(q, ratio))
    hazard = ops.sub(start, log(survival))
    return exp(ops.div(log(hazard), c))


def _shares(y: Any, c: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the logarithms of the distribution function and of the survival function."""
    total = _log_mass(a, b, c)
    return ops.sub(_log_mass(a, y, c), total), ops.sub(_log_mass(y, b, c), total)


DISTRIBUTION = Continuous(
    values=("0.8982", "-0.1073", "0.5274", "-0.6398", "0.4726", "-0.7495", "1.599", "0.5896"),
    formulas=(
        "c * z**(c - 1) * exp(-z**c) / (exp(-a**c) - exp(-b**c))",
        "(exp(-a**c) - exp(-z**c)) / (exp(-a**c) - exp(-b**c))",
        "(exp(-z**c) - exp(-b**c)) / (exp(-a**c) - exp(-b**c))",
    ),
    support="``a <= z <= b``",
    name="truncweibull_min", of="the Weibull distribution between ``loc + a * scale`` and ``loc + b * scale``",
    parameters={
        "c": "the shape, positive", "a": "the lower end of the standardised variable, not negative",
        "b": "the upper end",
    },
    valid=lambda c, a, b: both(both(ops.gt(c, 0), ops.lt(c, float("inf"))), both(at_least(a, 0), ops.lt(a, b))),
    low=lambda c, a, b: a, high=lambda c, a, b: b, interior=lambda c, a, b: ops.add(a, _half(a, b)),
    example="1.0; 0.9; 1.7; 0.5; 2.0",
    inside=lambda y, c, a, b: both(
        both(at_least(y, a), ops.gt(y, 0)), both(ops.le_p.bind(y, b), ops.lt(y, float("inf")))
    ),
    log_density=_log_density,
    logcdf=lambda y, c, a, b: by_the_smaller(*_shares(y, c, a, b)),
    logsf=lambda y, c, a, b: by_the_smaller(*_shares(y, c, a, b)[::-1]),
    ppf=lambda q, c, a, b: _ppf(q, ops.sub(1, q), c, a, b), isf=lambda q, c, a, b: _ppf(ops.sub(1, q), q, c, a, b),
)  # fmt: skip


def _half(a: Any, b: Any) -> Any:
    """Return half of the distance of the ends, or 1 if that is infinite."""
    finite = ops.lt(b, float("inf"))
    return where(finite, ops.mul(ops.sub(where(finite, b, 0), a), 0.5), 1)


pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
