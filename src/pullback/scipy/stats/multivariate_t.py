"""Student's t distribution of vectors."""

from __future__ import annotations

import math

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.core.faces import face
from pullback.primitives import elementwise as ops
from pullback.scipy.special.operands import real_operands
from pullback.scipy.stats.matrix_formulas import log_determinant, scale_of, whitened


def logpdf(x: ArrayLike, loc: ArrayLike | None = None, shape: ArrayLike = 1, df: ArrayLike = 1) -> Array:
    """The logarithm of the density of Student's t distribution of vectors.

    Args:
      x: vectors, an array (..., n) of real numbers.
      loc: their centre, an array that broadcasts against ``x``; zero by default.
      shape: the scale: positive definite matrices (..., n, n), n diagonal elements, or a number.
      df: the degrees of freedom, positive; infinity stands for the normal distribution.

    Returns:
      An array of floats, of the broadcast shape of the leading axes: NaN where ``df`` is not positive, or a matrix is
      not positive definite.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    As ``scipy.stats.multivariate_t.logpdf``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import multivariate_t
    >>> print(f"{multivariate_t.logpdf(jnp.array([1.0, 0.0]), None, jnp.eye(2), 5.0):.4f}")
    -2.4760
    """
    name = "multivariate_t.logpdf"
    x, centre, scale, df = real_operands(name, x, 0 if loc is None else loc, shape, df)
    if not x.shape:
        raise ShapeError(f"{name}: x must have an axis of components, got a number")
    n = x.shape[-1]
    factor = pnp.linalg.cholesky(scale_of(name, "shape", scale, n))
    distance = pnp.sum(whitened(factor, (x - centre)[..., None]) ** 2, (-2, -1))
    finite, valid = df < math.inf, df > 0
    safe = pnp.where(finite & valid, df, 1)
    gammas = ops.lgamma_p.bind((safe + n) / 2) - ops.lgamma_p.bind(safe / 2)
    student = gammas - n / 2 * pnp.log(safe * math.pi) - (safe + n) / 2 * pnp.log1p(distance / safe)
    normal = -0.5 * (distance + n * math.log(2 * math.pi))
    value = pnp.where(finite, student, normal) - 0.5 * log_determinant(factor)
    return pnp.where(valid, value, math.nan)


def pdf(x: ArrayLike, loc: ArrayLike | None = None, shape: ArrayLike = 1, df: ArrayLike = 1) -> Array:
    """The density of Student's t distribution of vectors: the exponential of :func:`logpdf`.

    Args:
      x: vectors, an array (..., n) of real numbers.
      loc: their centre; zero by default.
      shape: the scale.
      df: the degrees of freedom.

    Returns:
      An array of floats.

    Raises:
      ShapeError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import multivariate_t
    >>> print(f"{multivariate_t.pdf(jnp.array([1.0, 0.0]), None, jnp.eye(2), 5.0):.4f}")
    0.0841
    """
    return pnp.exp(logpdf(x, loc, shape, df))


__all__ = ["logpdf", "pdf"]
face(globals())
