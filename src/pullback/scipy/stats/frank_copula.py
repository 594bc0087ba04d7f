"""Frank's copula, which depends alike where components are small and where they are large."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.faces import face
from pullback.primitives.special.others import exprel_p
from pullback.scipy.stats.copula_formulas import Archimedean
from pullback.scipy.stats.distributions import log1mexp


def eulerian(n: int) -> list[int]:
    """Return the Eulerian numbers of permutations of ``n`` elements: how many have k ascents, for k from 0 to n - 1."""
    row = [1]
    for m in range(2, n + 1):
        before = [0, *row, 0]
        row = [(m - k) * before[k] + (k + 1) * before[k + 1] for k in range(m)]
    return row


def _turned(u: Any, theta: Any) -> tuple[Any, Any]:
    """Return points and a positive parameter with the same density: two components, of which one is mirrored."""
    negative = theta < 0
    if u.shape[-1] != 2:
        return u, theta
    last = pnp.where(negative[..., 0], 1 - u[..., 1], u[..., 1])
    first = pnp.broadcast_to(u[..., 0], last.shape)
    return pnp.stack([first, last], axis=-1), pnp.where(negative, -theta, theta)


def _log_h(u: Any, theta: Any) -> tuple[Any, Any]:
    """Return ``h = Π (1 - exp(-theta u_i)) / (1 - exp(-theta))**(n - 1)`` and ``log(1 - h)``, for ``theta`` from 0 on.

    For small parameters by quotients ``(exp(x) - 1) / x``, for large ones by logarithms.
    """
    n, small = u.shape[-1], theta < 1
    t = pnp.where(small, theta, 0)
    parts = pnp.prod(u * exprel_p.bind(-t * u), axis=-1)
    direct = t[..., 0] * parts / exprel_p.bind(-t[..., 0]) ** (n - 1)
    large = pnp.where(small, 1, theta)
    logs = pnp.sum(log1mexp(-large * u), -1) - (n - 1) * log1mexp(-large[..., 0])
    below = small[..., 0]
    h = pnp.where(below, direct, pnp.exp(logs))
    rest = pnp.where(below, pnp.log1p(-pnp.where(below, direct, 0)), log1mexp(pnp.where(below, -1, logs)))
    return h, rest


def _logpdf(u: Any, theta: Any) -> Any:
    u, theta = _turned(u, theta)
    n = u.shape[-1]
    h, rest = _log_h(u, theta)
    # The polylogarithm of order 1 - n, divided by h.
    series = pnp.log(pnp.polyval(np.array(eulerian(n - 1)[::-1], u.dtype), h)) - n * rest
    return series - theta[..., 0] * pnp.sum(u, -1) - (n - 1) * pnp.log(exprel_p.bind(-theta[..., 0]))


def _logcdf(u: Any, theta: Any) -> Any:
    n, mirrored, size = u.shape[-1], theta[..., 0] < 0, pnp.abs(theta)
    turned, _ = _turned(u, theta)
    t = size[..., 0]
    # -log(1 - h) / t, by a product of quotients where t is near 0.
    small = t < 1
    s = pnp.where(small, t, 0)[..., None]
    product = pnp.prod(turned * exprel_p.bind(-s * turned), axis=-1) / exprel_p.bind(-s[..., 0]) ** (n - 1)
    x = s[..., 0] * product
    zero = x < 1e-8
    near = product * pnp.where(zero, 1 + x / 2, -pnp.log1p(-pnp.where(zero, 0.5, x)) / pnp.where(zero, 1, x))
    large = pnp.where(small, 1, t)
    far = -_log_h(turned, large[..., None])[1] / large
    value = pnp.where(small, near, far)
    if n == 2:
        value = pnp.where(mirrored, u[..., 0] - value, value)
    return pnp.log(value)


DEFINITION = Archimedean(
    name="frank_copula", of="Frank's copula",
    theta="the dependence: positive, negative for two components that fall with each other, or 0 for independent ones",
    formula="The distribution function is ``-log(1 - Π (1 - exp(-theta u_i)) / (1 - exp(-theta))**(n - 1)) / theta``.",
    source="Hofert, Mächler and McNeil 2012, \"Likelihood inference for Archimedean copulas in high dimensions\".",
    values=("0.0391", "1.0398", "0.2001"),
    valid=lambda theta, n: (pnp.abs(theta) < np.inf) & (theta >= (-np.inf if n == 2 else 0)), usual=1.0,
    logpdf=_logpdf, logcdf=_logcdf,
)  # fmt: skip

logpdf, pdf, cdf = DEFINITION.functions(__name__)
__all__ = ["cdf", "logpdf", "pdf"]
face(globals())
