"""The Dirichlet distribution, of shares that add up to one."""

from __future__ import annotations

import math

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.core.faces import face
from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import xlogy_p
from pullback.scipy.special.operands import real_operands

_CLOSE = 1e-6
"""The largest difference of the sum of shares from one, as in JAX."""


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density of the Dirichlet distribution.

    Args:
      x: an array (n, ...) of shares along its first axis; or (n - 1, ...), of all but the last share.
      alpha: an array (n,) of positive numbers.

    Returns:
      An array of floats of the shape of the rest of ``x``: -inf where shares are not positive or do not add up to one,
      and NaN where a parameter is not positive.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    A share of zero is inside the support where its parameter is 1. As ``scipy.stats.dirichlet.logpdf``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import dirichlet
    >>> print(f"{dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1.0, 2.0, 3.0])):.4f}")
    1.5041
    """
    x, alpha = real_operands("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ShapeError(f"dirichlet: alpha must be one-dimensional, got the shape {alpha.shape}")
    n = alpha.shape[0]
    if x.ndim == 0 or x.shape[0] not in (n, n - 1):
        raise ShapeError(
            f"dirichlet: x must have as many entries along its first axis as alpha, or one fewer; got {x.shape} and "
            f"{alpha.shape}"
        )
    if x.shape[0] == n - 1:
        x = pnp.concatenate([x, 1 - pnp.sum(x, 0, keepdims=True)])
    powers = alpha.reshape(n, *(1,) * (x.ndim - 1))
    inside = pnp.all((x > 0) | ((x == 0) & (powers == 1)), 0) & (pnp.abs(pnp.sum(x, 0) - 1) < _CLOSE)
    safe = pnp.where(inside, x, 0.5)
    constant = pnp.sum(ops.lgamma_p.bind(alpha)) - ops.lgamma_p.bind(pnp.sum(alpha))
    value = pnp.sum(xlogy_p.bind(powers - 1, safe), 0) - constant
    return pnp.where(pnp.all(alpha > 0), pnp.where(inside, value, -math.inf), math.nan)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density of the Dirichlet distribution: the exponential of :func:`logpdf`.

    Args:
      x: an array (n, ...) of shares along its first axis; or (n - 1, ...), of all but the last share.
      alpha: an array (n,) of positive numbers.

    Returns:
      An array of floats of the shape of the rest of ``x``.

    Raises:
      ShapeError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import dirichlet
    >>> print(f"{dirichlet.pdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1.0, 2.0, 3.0])):.4f}")
    4.5000
    """
    return pnp.exp(logpdf(x, alpha))


__all__ = ["logpdf", "pdf"]
face(globals())
