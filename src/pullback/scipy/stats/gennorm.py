"""The generalised normal distribution, or exponential power distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.primitives import elementwise as ops
from pullback.primitives.special.inverse_incomplete import gammainccinv_p
from pullback.primitives.special.log_incomplete import log_gamma_sides
from pullback.scipy.stats.distributions import Continuous, lgamma, log, positive, where
from pullback.scipy.stats.operations import from_log_tail, quantile_function


def _power(y: Any, beta: Any) -> Any:
    """Return abs(y)**beta; its derivative at y = 0 is zero instead of infinite."""
    zero = ops.eq(y, 0)
    return where(zero, 0, ops.pow(where(zero, 1, ops.abs(y)), beta))


def _log_density(y: Any, beta: Any) -> Any:
    constant = ops.sub(log(ops.mul(beta, 0.5)), lgamma(ops.div(1, beta)))
    return ops.sub(constant, _power(y, beta))


def _log_tail(beta: Any, size: Any) -> Any:
    """Return the log probability below ``-size``, by the incomplete gamma function of size**beta."""
    zero = ops.eq(size, 0)
    power = ops.pow(where(zero, 1, size), beta)
    finite = ops.and_p.bind(ops.gt(power, 0), ops.lt(power, math.inf))
    inside, _ = log_gamma_sides(ops.div(1, beta), where(finite, power, 1), ops.eq(ops.mul(beta, 0), 0))
    outside = where(ops.lt(size, 1), 0, ops.sub(ops.mul(beta, 0), math.inf))
    return ops.sub(where(zero, 0, where(finite, inside, outside)), math.log(2))


_upper, _inverse_upper = host.special("gammaincc"), host.special("gammainccinv")


def _host_cdf(beta: Any, y: Any) -> Any:
    tail = 0.5 * _upper(1.0 / np.asarray(beta), np.abs(y) ** beta)
    return np.where(y < 0, tail, 1 - tail)


def _host_quantile(beta: Any, q: Any) -> Any:
    beta, q = np.asarray(beta), np.asarray(q)
    size = _inverse_upper(1 / beta, 2 * np.minimum(q, 1 - q)) ** (1 / beta)
    return np.where(q < 0.5, -size, size).astype(q.dtype)[()]


def _quantile(beta: Any, q: Any) -> Any:
    low = ops.lt(q, 0.5)
    tail = ops.mul(where(low, q, ops.sub(1, q)), 2)
    inverse = ops.div(1, beta)
    size = _power(gammainccinv_p.bind(inverse, tail), inverse)
    return where(low, ops.neg(size), size)


gennorm_cdf_p, gennorm_log_cdf_p = from_log_tail("gennorm", _log_tail, _log_density, _host_cdf)
gennorm_quantile_p = quantile_function("gennorm_quantile", _quantile, _host_quantile, gennorm_cdf_p, _log_density)


DISTRIBUTION = Continuous(
    values=("0.2038", "-1.591", "0.8876", "-0.1192", "0.1124", "-2.186", "1.064", "-1.064"),
    formulas=(
        "beta * exp(-abs(z)**beta) / (2 * gamma(1 / beta))",
        "1 / 2 + sign(z) * gammainc(1 / beta, abs(z)**beta) / 2",
        "1 / 2 - sign(z) * gammainc(1 / beta, abs(z)**beta) / 2",
    ),
    support="all real ``z``",
    name="gennorm", of="the generalised normal distribution", parameters={"beta": "the exponent, positive"},
    valid=positive, symmetric=True, example="1.0; 0.9; 1.5", log_density=_log_density,
    cdf=lambda y, beta: gennorm_cdf_p.bind(beta, y, orders=(0, 0)),
    logcdf=lambda y, beta: gennorm_log_cdf_p.bind(beta, y, orders=(0, 0)),
    ppf=lambda q, beta: gennorm_quantile_p.bind(beta, q),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
