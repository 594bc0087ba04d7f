"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import pullback.numpy as pnp
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.faces import face
from pullback.scipy import linalg
from pullback.scipy.special.operands import real_operands


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None) -> Array:
    """The logarithm of the density of the normal distribution of vectors.

    Args:
      x: an array (..., n) of real numbers; or of any shape, where ``mean`` is a number.
      mean: an array (..., n) of real numbers, or a number for vectors of length one.
      cov: the covariance matrices, an array (..., n, n); or a number, by which the identity is multiplied.
      allow_singular: whether the matrices may be singular. The density is then within the space that they span, and
        -inf outside; derivatives use the nonzero eigenvalues only.

    Returns:
      An array of floats, of the broadcast shape of the leading axes of vectors and matrices.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: ``allow_singular`` is no bool (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    By a Cholesky factor, or by eigenvalues if matrices may be singular: those below a million times the rounding
    error of the largest count as zeros, as in SciPy. As ``scipy.stats.multivariate_normal.logpdf``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import multivariate_normal
    >>> print(f"{multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)):.4f}")
    -1.8379
    """
    if not is_listed(allow_singular, (None, True, False)):
        raise ArgumentError(f"multivariate_normal: allow_singular must be True or False, got {allow_singular!r}")
    x, mean, cov = real_operands("multivariate_normal.logpdf", x, mean, cov)
    if mean.ndim == 0:
        if cov.ndim:
            raise ShapeError(
                f"multivariate_normal: cov must be a number if mean is a number, got the shape {cov.shape}; "
                f"pass a mean of shape ({cov.shape[-1]},)"
            )
        return -0.5 * ((x - mean) ** 2 / cov + math.log(2 * math.pi) + pnp.log(cov))
    n = mean.shape[-1]
    if x.ndim and x.shape[-1] not in (1, n):
        raise ShapeError(f"multivariate_normal: x has vectors of length {x.shape[-1]}, but mean has {n} elements")
    if 0 < cov.ndim < 2 or (cov.ndim and cov.shape[-2:] != (n, n)):
        raise ShapeError(
            f"multivariate_normal: cov must be a number or have the shape (..., {n}, {n}) if mean has {mean.shape}, "
            f"got {cov.shape}"
        )
    difference = x - mean
    constant = n * math.log(2 * math.pi)
    if not cov.ndim:
        return -0.5 * (pnp.sum(difference**2, -1) / cov + constant + n * pnp.log(cov))
    if allow_singular:
        return _singular(difference, cov)
    factor = pnp.linalg.cholesky(cov)
    batch = pnp.broadcast_shapes(difference.shape[:-1], cov.shape[:-2])
    rows = pnp.broadcast_to(difference, (*batch, n))[..., None]
    y = linalg.solve_triangular(pnp.broadcast_to(factor, (*batch, n, n)), rows, lower=True)[..., 0]
    log_root = pnp.sum(pnp.log(pnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    return -0.5 * (pnp.sum(y**2, -1) + constant) - log_root


def _singular(difference: Any, cov: Any) -> Any:
    """Return the log density of a normal distribution with a singular covariance.

    It is computed from the nonzero eigenvalues, and is -inf outside of the space of their eigenvectors. ``difference``
    is the point minus the mean.
    """
    values, vectors = pnp.linalg.eigh(cov)
    largest = pnp.max(pnp.abs(values), -1, keepdims=True)
    least = 1e6 * float(pnp.finfo(values.dtype).eps) * largest
    nonzero = values > least
    safe = pnp.where(nonzero, values, 1)
    components = pnp.sum(vectors * difference[..., None], -2)
    rest = pnp.sum(pnp.where(nonzero, 0, components) ** 2, -1)
    inside = rest <= 1e6 * float(pnp.finfo(values.dtype).eps) * pnp.maximum(1, pnp.sum(difference**2, -1))
    rank = pnp.sum(nonzero, -1)
    total = pnp.sum(pnp.where(nonzero, components**2 / safe + pnp.log(safe), 0), -1) + rank * math.log(2 * math.pi)
    return pnp.where(inside, -0.5 * total, -math.inf)


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None) -> Array:
    """The density of the normal distribution of vectors: the exponential of :func:`logpdf`, whose arguments it takes.

    Args:
      x: an array (..., n) of real numbers; or of any shape, where ``mean`` is a number.
      mean: an array (..., n) of real numbers, or a number.
      cov: the covariance matrices, an array (..., n, n); or a number.
      allow_singular: whether the matrices may be singular.

    Returns:
      An array of floats.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError, OperandError, DtypeError: see :func:`logpdf`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import multivariate_normal
    >>> print(f"{multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)):.4f}")
    0.1592
    """
    return pnp.exp(logpdf(x, mean, cov, allow_singular))


__all__ = ["logpdf", "pdf"]
face(globals())
