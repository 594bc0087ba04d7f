"""The normal distribution of matrices, with covariances of rows and of columns."""

from __future__ import annotations

import math

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.core.faces import face
from pullback.scipy.special.operands import real_operands
from pullback.scipy.stats.matrix_formulas import log_determinant, scale_of, whitened


def logpdf(X: ArrayLike, mean: ArrayLike | None = None, rowcov: ArrayLike = 1, colcov: ArrayLike = 1) -> Array:
    """The logarithm of the density of the normal distribution of matrices.

    Args:
      X: matrices, an array (..., m, n) of real numbers.
      mean: their means, an array that broadcasts against ``X``; zero by default.
      rowcov: the covariance of the rows: matrices (..., m, m), m diagonal elements, or a number.
      colcov: the covariance of the columns: matrices (..., n, n), n diagonal elements, or a number.

    Returns:
      An array of floats, of the broadcast shape of the leading axes.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    By Cholesky factors, which do not exist of singular covariances: the result is NaN. As
    ``scipy.stats.matrix_normal.logpdf``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import matrix_normal
    >>> print(f"{matrix_normal.logpdf(jnp.ones((2, 3))):.4f}")
    -8.5136
    """
    name = "matrix_normal.logpdf"
    x, centre, rows, columns = real_operands(name, X, 0 if mean is None else mean, rowcov, colcov)
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: X must have a shape that ends with (m, n), got {x.shape}")
    m, n = x.shape[-2:]
    row_factor = pnp.linalg.cholesky(scale_of(name, "rowcov", rows, m))
    column_factor = pnp.linalg.cholesky(scale_of(name, "colcov", columns, n))
    halfway = whitened(row_factor, x - centre)
    rest = whitened(column_factor, pnp.swapaxes(halfway, -1, -2))
    constant = m * n * math.log(2 * math.pi) + n * log_determinant(row_factor) + m * log_determinant(column_factor)
    return -0.5 * (pnp.sum(rest**2, (-2, -1)) + constant)


def pdf(X: ArrayLike, mean: ArrayLike | None = None, rowcov: ArrayLike = 1, colcov: ArrayLike = 1) -> Array:
    """The density of the normal distribution of matrices: the exponential of :func:`logpdf`.

    Args:
      X: matrices, an array (..., m, n) of real numbers.
      mean: their means; zero by default.
      rowcov, colcov: the covariances of the rows and of the columns.

    Returns:
      An array of floats.

    Raises:
      ShapeError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import matrix_normal
    >>> print(f"{matrix_normal.pdf(jnp.zeros((1, 2))):.4f}")
    0.1592
    """
    return pnp.exp(logpdf(X, mean, rowcov, colcov))


__all__ = ["logpdf", "pdf"]
face(globals())
