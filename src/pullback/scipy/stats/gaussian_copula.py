"""The Gaussian copula: the ranks of the components of a normal vector."""

from __future__ import annotations

import math

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.faces import face
from pullback.scipy.special import ndtri
from pullback.scipy.stats.copula_formulas import points
from pullback.scipy.stats.matrix_formulas import correlation_of, log_determinant, whitened


def logpdf(u: ArrayLike, correlation: ArrayLike) -> Array:
    """Return the logarithm of the density of the Gaussian copula.

    Args:
      u: points of the unit cube, an array (..., n) of real numbers with n at least 2.
      correlation: correlation matrices (..., n, n); or numbers, the correlation of each two components, which broadcast
        against the leading axes of ``u`` if they are not matrices.

    Returns:
      An array of floats, of the broadcast shape of the leading axes: -inf outside of the open cube, NaN where a matrix
      is not positive definite.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: a known matrix whose diagonal elements are not 1 (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    The density is that of a normal vector at the normal quantiles of ``u``, divided by those of its components. Lower
    triangles of matrices are read. Samples are :func:`pullback.random.gaussian_copula`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import gaussian_copula
    >>> print(f"{gaussian_copula.logpdf(jnp.array([0.3, 0.5]), 0.5):.4f}")
    0.0980
    """
    name = "gaussian_copula.logpdf"
    x, matrix, inside = points(name, u, correlation)
    factor = pnp.linalg.cholesky(correlation_of(name, matrix, x.shape[-1]))
    normal = ndtri(pnp.where(inside[..., None], x, 0.5))
    distance = pnp.sum(whitened(factor, normal[..., None])[..., 0] ** 2, -1) - pnp.sum(normal**2, -1)
    value = pnp.where(inside, -(distance + log_determinant(factor)) / 2, -math.inf)
    return pnp.where(pnp.any(pnp.isnan(x), axis=-1), math.nan, value)


def pdf(u: ArrayLike, correlation: ArrayLike) -> Array:
    """Return the density of the Gaussian copula: the exponential of :func:`logpdf`.

    Args:
      u: points of the unit cube, an array (..., n) of real numbers with n at least 2.
      correlation: correlation matrices (..., n, n), or numbers.

    Returns:
      An array of floats.

    Raises:
      ShapeError, ArgumentError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import gaussian_copula
    >>> print(f"{gaussian_copula.pdf(jnp.array([0.3, 0.5]), 0.5):.4f}")
    1.1030
    """
    return pnp.exp(logpdf(u, correlation))


__all__ = ["logpdf", "pdf"]
face(globals())
