"""Clayton's copula, whose components depend on each other most where they are small."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.faces import face
from pullback.scipy.stats.copula_formulas import Archimedean, log_of_sum_over_one

_SERIES = 1e-6


def _log_generator(a: Any, theta: Any) -> Any:
    """Return ``log(1 + Σ (exp(theta a) - 1)) / theta`` over the last axis, by a series near ``theta = 0``."""
    theta = theta[..., 0]
    near = theta * pnp.max(a, axis=-1) < _SERIES
    safe = pnp.where(near, 1, theta)
    direct = log_of_sum_over_one(a * safe[..., None]) / safe
    t = pnp.where(near, theta, 0)
    first, second, third = (pnp.sum(a**k, -1) for k in (1, 2, 3))
    cubic = third / 6 - first * second / 2 + first**3 / 3
    return pnp.where(near, first + t * ((second - first**2) / 2 + t * cubic), direct)


def _logpdf(u: Any, theta: Any) -> Any:
    a, n = -pnp.log(u), u.shape[-1]
    counts = np.arange(1, n, dtype=u.dtype).reshape((*(1,) * (theta.ndim - 1), -1))
    factors = pnp.sum(pnp.log1p(theta * counts), -1)
    return factors + (theta[..., 0] + 1) * pnp.sum(a, -1) - (n * theta[..., 0] + 1) * _log_generator(a, theta)


def _logcdf(u: Any, theta: Any) -> Any:
    return -_log_generator(-pnp.log(u), theta)


DEFINITION = Archimedean(
    name="clayton_copula", of="Clayton's copula",
    theta="the dependence, not negative: Kendall's tau is ``theta / (theta + 2)``, and 0 makes components independent",
    formula="The distribution function is ``(Σ u_i**-theta - n + 1)**(-1 / theta)``.",
    source="Clayton 1978, \"A model for association in bivariate life tables\".",
    values=("0.1726", "1.1884", "0.2662"), valid=lambda theta, n: (theta >= 0) & (theta < np.inf), usual=1.0,
    logpdf=_logpdf, logcdf=_logcdf,
)  # fmt: skip

logpdf, pdf, cdf = DEFINITION.functions(__name__)
__all__ = ["cdf", "logpdf", "pdf"]
face(globals())
