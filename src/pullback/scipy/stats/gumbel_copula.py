"""Gumbel's copula, whose components depend on each other most where they are large."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.faces import face
from pullback.scipy.special import logsumexp
from pullback.scipy.stats.copula_formulas import Archimedean


def _log_sum(u: Any, theta: Any) -> Any:
    """Return the logarithm of ``Σ (-log u_i)**theta``."""
    return logsumexp(theta * pnp.log(-pnp.log(u)), -1)


def _logpdf(u: Any, theta: Any) -> Any:
    n, alpha, a = u.shape[-1], 1 / theta[..., 0], -pnp.log(u)
    total = _log_sum(u, theta)
    x = pnp.exp(alpha * total)
    # The derivatives of exp(-s**alpha) of order k are (-1)**k exp(-x) s**-k times a polynomial of x = s**alpha. Its
    # coefficients follow from those of order k - 1, by sums of positive terms.
    coefficients: list[Any] = [pnp.ones_like(alpha)]
    for k in range(n):
        shifted = [0, *(alpha * c for c in coefficients)]
        kept = [*((k - alpha * j) * c for j, c in enumerate(coefficients)), 0]
        coefficients = [p + q for p, q in zip(shifted, kept, strict=True)]
    polynomial = sum((c * x**j for j, c in enumerate(coefficients[2:], 2)), coefficients[1] * x)
    outer = pnp.log(polynomial) - x - n * total
    return outer + n * pnp.log(theta[..., 0]) + pnp.sum((theta - 1) * pnp.log(a) + a, -1)


def _logcdf(u: Any, theta: Any) -> Any:
    return -pnp.exp(_log_sum(u, theta) / theta[..., 0])


DEFINITION = Archimedean(
    name="gumbel_copula", of="Gumbel's copula",
    theta="the dependence, at least 1: Kendall's tau is ``1 - 1 / theta``, and 1 makes components independent",
    formula="The distribution function is ``exp(-(Σ (-log u_i)**theta)**(1 / theta))``.",
    source="Gumbel 1960, \"Distributions des valeurs extrêmes en plusieurs dimensions\".",
    values=("0.2117", "1.2358", "0.2493"), valid=lambda theta, n: (theta >= 1) & (theta < np.inf), usual=1.5,
    logpdf=_logpdf, logcdf=_logcdf,
)  # fmt: skip

logpdf, pdf, cdf = DEFINITION.functions(__name__)
__all__ = ["cdf", "logpdf", "pdf"]
face(globals())
