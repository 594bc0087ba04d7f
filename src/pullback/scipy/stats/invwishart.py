"""The inverse Wishart distribution, of matrices whose inverses are of Wishart's."""

from __future__ import annotations

import math

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.core.faces import face
from pullback.scipy.special.operands import real_operands
from pullback.scipy.stats.matrix_formulas import log_determinant, log_multigamma, scale_of, square, whitened


def logpdf(x: ArrayLike, df: ArrayLike, scale: ArrayLike) -> Array:
    """The logarithm of the density of the inverse Wishart distribution.

    Args:
      x: symmetric positive definite matrices, an array (..., n, n) of real numbers.
      df: the degrees of freedom, an array that broadcasts against the leading axes of ``x``.
      scale: symmetric positive definite matrices (..., n, n); or a number, by which the identity is multiplied.

    Returns:
      An array of floats, of the broadcast shape of the leading axes: NaN where ``df`` is at most n - 1, or a matrix is
      not positive definite.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    As ``scipy.stats.invwishart.logpdf`` of one matrix; SciPy takes several along a last axis. Lower triangles are read.
    Samples are :func:`pullback.random.inverse_wishart`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import invwishart
    >>> print(f"{invwishart.logpdf(jnp.eye(2), 3.0, jnp.eye(2)):.4f}")
    -3.5310
    """
    name = "invwishart.logpdf"
    x, df, scale = real_operands(name, x, df, scale)
    n = square(name, "x", x).shape[-1]
    root, factor = pnp.linalg.cholesky(x), pnp.linalg.cholesky(scale_of(name, "scale", scale, n))
    try:
        pnp.broadcast_shapes(x.shape[:-2], df.shape, factor.shape[:-2])
    except ValueError:
        raise ShapeError(f"{name}: the shapes {x.shape}, {df.shape} and {scale.shape} do not broadcast") from None
    trace = pnp.sum(whitened(root, factor) ** 2, (-2, -1))
    valid = df > n - 1
    safe = pnp.where(valid, df, n)
    constant = safe * (n / 2 * math.log(2)) + log_multigamma(safe / 2, n) - safe / 2 * log_determinant(factor)
    value = -(safe + n + 1) / 2 * log_determinant(root) - trace / 2 - constant
    return pnp.where(valid, value, math.nan)


def pdf(x: ArrayLike, df: ArrayLike, scale: ArrayLike) -> Array:
    """The density of the inverse Wishart distribution: the exponential of :func:`logpdf`.

    Args:
      x: symmetric positive definite matrices, an array (..., n, n) of real numbers.
      df: the degrees of freedom.
      scale: symmetric positive definite matrices (..., n, n), or a number.

    Returns:
      An array of floats.

    Raises:
      ShapeError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import invwishart
    >>> print(f"{invwishart.pdf(jnp.eye(2), 3.0, jnp.eye(2)):.4f}")
    0.0293
    """
    return pnp.exp(logpdf(x, df, scale))


__all__ = ["logpdf", "pdf"]
face(globals())
