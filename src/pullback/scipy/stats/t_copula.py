"""Student's copula: the ranks of the components of a vector of Student's t distribution."""

from __future__ import annotations

import math

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.faces import face
from pullback.scipy.special.operands import real_operands
from pullback.scipy.stats import multivariate_t, t
from pullback.scipy.stats.copula_formulas import points
from pullback.scipy.stats.matrix_formulas import correlation_of


def logpdf(u: ArrayLike, correlation: ArrayLike, df: ArrayLike) -> Array:
    """Return the logarithm of the density of Student's copula.

    Args:
      u: points of the unit cube, an array (..., n) of real numbers with n at least 2.
      correlation: correlation matrices (..., n, n); or numbers, the correlation of each two components, which broadcast
        against the leading axes of ``u`` if they are not matrices.
      df: the degrees of freedom, positive; an array that broadcasts against the leading axes of ``u``.

    Returns:
      An array of floats, of the broadcast shape of the leading axes: -inf outside of the open cube, NaN where ``df`` is
      not positive, or a matrix is not positive definite.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: a known matrix whose diagonal elements are not 1 (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    The density is that of Student's vector at the quantiles of ``u``, divided by those of its components. Source:
    Demarta and McNeil 2005, "The t copula and related copulas". Samples are :func:`pullback.random.t_copula`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import t_copula
    >>> print(f"{t_copula.logpdf(jnp.array([0.3, 0.5]), 0.5, 4.0):.4f}")
    0.1549
    """
    name = "t_copula.logpdf"
    x, given, degrees = real_operands(name, u, correlation, df)
    x, given, inside = points(name, x, given)
    matrix, each = correlation_of(name, given, x.shape[-1]), degrees[..., None]
    quantiles = t.ppf(pnp.where(inside[..., None], x, 0.5), each)
    value = multivariate_t.logpdf(quantiles, None, matrix, degrees) - pnp.sum(t.logpdf(quantiles, each), -1)
    value = pnp.where(inside | pnp.isnan(value), value, -math.inf)
    return pnp.where(pnp.any(pnp.isnan(x), axis=-1), math.nan, value)


def pdf(u: ArrayLike, correlation: ArrayLike, df: ArrayLike) -> Array:
    """Return the density of Student's copula: the exponential of :func:`logpdf`.

    Args:
      u: points of the unit cube, an array (..., n) of real numbers with n at least 2.
      correlation: correlation matrices (..., n, n), or numbers.
      df: the degrees of freedom, positive.

    Returns:
      An array of floats.

    Raises:
      ShapeError, ArgumentError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import t_copula
    >>> print(f"{t_copula.pdf(jnp.array([0.3, 0.5]), 0.5, 4.0):.4f}")
    1.1675
    """
    return pnp.exp(logpdf(u, correlation, df))


__all__ = ["logpdf", "pdf"]
face(globals())
