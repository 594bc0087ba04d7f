"""Determinants and distances by Cholesky factors, for densities of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array
from pullback.core.errors import ArgumentError, ShapeError
from pullback.primitives import elementwise as ops
from pullback.scipy import linalg
from pullback.scipy.arguments import known


def square(name: str, what: str, x: Array) -> Array:
    """Return ``x``, matrices along its last two axes.

    Raises:
      ShapeError: they are not square.
    """
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: {what} must have a shape that ends with (n, n), got {x.shape}")
    return x


def scale_of(name: str, what: str, x: Array, n: int) -> Array:
    """Return a scale as matrices (..., n, n), from a number, a vector of diagonal elements, or matrices.

    Raises:
      ShapeError: it has another shape.
    """
    if len(x.shape) < 2 and x.shape in ((), (n,)):
        return pnp.eye(n, dtype=x.dtype) * x
    if x.shape[-2:] != (n, n):
        raise ShapeError(f"{name}: {what} must be a number, or have the shape (..., {n}, {n}), got {x.shape}")
    return x


def correlation_of(name: str, x: Array, n: int) -> Array:
    """Return correlation matrices (..., n, n), from these or from numbers, the correlation of each two components.

    An array whose last axes are (n, n) is of matrices.

    Raises:
      ShapeError: they are matrices of another size.
      ArgumentError: they are known, and a diagonal element is not 1.
    """
    if x.shape[-2:] != (n, n):
        if len(x.shape) > 1 and x.shape[-1] == x.shape[-2]:
            raise ShapeError(f"{name}: correlation must be a number, or have the shape (..., {n}, {n}), got {x.shape}")
        same = pnp.eye(n, dtype=x.dtype)
        return same + (1 - same) * x[..., None, None]
    values = known(x)
    if values is not None:
        diagonal = np.diagonal(np.asarray(values, np.float64), axis1=-2, axis2=-1)
        if (np.abs(diagonal - 1) > 1e-5).any():
            raise ArgumentError(f"{name}: the diagonal of a correlation must be 1, got {diagonal}")
    return x


def log_determinant(factor: Any) -> Any:
    """Return the log determinant of a matrix, from its Cholesky factor."""
    return 2 * pnp.sum(pnp.log(pnp.diagonal(factor, axis1=-2, axis2=-1)), -1)


def whitened(factor: Any, x: Any) -> Any:
    """Return the inverse of a triangular ``factor`` times ``x``, where leading axes broadcast."""
    batch = pnp.broadcast_shapes(factor.shape[:-2], x.shape[:-2])
    a = pnp.broadcast_to(factor, (*batch, *factor.shape[-2:]))
    return linalg.solve_triangular(a, pnp.broadcast_to(x, (*batch, *x.shape[-2:])), lower=True)


def log_multigamma(a: Any, n: int) -> Any:
    """Return the logarithm of the multivariate gamma function of ``n`` dimensions."""
    halves = ops.sub(a[..., None], np.arange(n, dtype=a.dtype) / 2)
    return pnp.sum(ops.lgamma_p.bind(halves), -1) + n * (n - 1) / 4 * math.log(math.pi)
