"""Random covariance and correlation matrices, differentiable in the parameters of their distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.types import Shape
from pullback.numpy.einstein import einsum
from pullback.numpy.promotion import operand
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, slice_in_dim
from pullback.primitives.linalg.lapack import cholesky, triangular_solve
from pullback.primitives.random.bits import Words, subkeys
from pullback.random.arguments import DType, float_dtype, parameter, sample_shape, size_of
from pullback.random.continuous import normal_of_key
from pullback.random.gammas import beta_of, gamma_of
from pullback.random.keys import words_of

_SINGLE = np.dtype(np.float32)


def _float_of(name: str, dtype: DTypeLike, **parameters: Any) -> DType:
    """Return ``dtype`` as a float dtype; by default the common one of the parameters."""
    if dtype is not None:
        return float_dtype(name, dtype)
    operands = (operand(f"{name}: {what}", x) for what, x in parameters.items())
    return dtypes.to_real(dtypes.to_inexact(dtypes.common_dtype(*operands)))


def transposed(x: Any) -> Any:
    """Swap the last two axes."""
    rank = len(x.shape)
    return shapes.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def factor_of(name: str, what: str, matrix: Any) -> Any:
    """Return the lower Cholesky factor of the symmetric part of matrices, the parameter ``what``.

    Raises:
      ShapeError: they are not square.
    """
    if len(matrix.shape) < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(f"{name}: {what} must have a shape that ends with (n, n), got {matrix.shape}")
    return cholesky(ops.mul(ops.add(matrix, transposed(matrix)), 0.5))


def _of_matrices(name: str, key: Any, df: Any, scale: Any, shape: Any, dtype: Any) -> tuple[Words, Any, Any, Shape]:
    """Return the words of the key, the degrees of freedom, the factors of the scales, and the shape of samples."""
    found = _float_of(name, dtype, df=df, scale=scale)
    words = words_of(name, key)
    df, scale = parameter(name, "df", df, found), parameter(name, "scale", scale, found)
    factor = factor_of(name, "scale", scale)
    return words, df, factor, sample_shape(name, shape, df=df.shape, scale=scale.shape[:-2])


def _bartlett(words: Words, df: Any, size: Shape, n: int) -> Any:
    """Draw lower triangular matrices A, where A times its transpose is of Wishart's distribution of scale one.

    The square of the i-th diagonal element, i = 0, 1, ..., has the chi-squared distribution of ``df - i`` degrees of
    freedom. The elements below are standard normal numbers. NaN where ``df`` is at most ``n - 1``.
    """
    for_diagonal, for_rest = subkeys(words, 2)
    degrees = ops.sub(shapes.expand_dims(df, (len(df.shape),)), np.arange(n, dtype=df.dtype))
    valid = ops.gt(degrees, 0)
    half = ops.mul(ops.where(valid, degrees, 1), 0.5)
    diagonal = ops.sqrt(ops.mul(gamma_of(for_diagonal, half, (*size, n), False), 2))
    diagonal = ops.where(valid, diagonal, np.nan)
    normal = normal_of_key(for_rest, (*size, n, n), df.dtype)
    below = np.tri(n, k=-1, dtype=bool)
    spread = ops.mul(shapes.expand_dims(diagonal, (len(size),)), np.eye(n, dtype=df.dtype))
    return ops.add(ops.where(below, normal, 0), ops.where(np.eye(n, dtype=bool), spread, 0))


def wishart(
    key: KeyArray, df: ArrayLike, scale: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Symmetric positive definite matrices of Wishart's distribution: sums of squares of normal vectors.

    Args:
      key: a key.
      df: the degrees of freedom, which broadcast to ``shape``; the result is nan where they are at most n - 1.
      scale: positive definite matrices, of a shape that ends with (n, n); the other axes broadcast to ``shape``. The
        mean is ``df * scale``. Their symmetric parts are used.
      shape: the shape of the result without its last two axes; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; by default the dtype of the parameters.

    Returns:
      An array of ``shape + (n, n)`` and ``dtype``, differentiable in ``df`` and ``scale``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the shapes do not fit.

    Source: M. S. Bartlett, *On the theory of statistical regression* (1933). The distribution is that of
    ``scipy.stats.wishart``.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> x = random.wishart(random.key(0), 5.0, jnp.eye(2), (1000,))
    >>> print(x.shape, jnp.diagonal(x.mean(0)).round(0))
    (1000, 2, 2) [5. 5.]
    """
    words, df, factor, size = _of_matrices("wishart", key, df, scale, shape, dtype)
    root = einsum("...ij,...jk->...ik", factor, _bartlett(words, df, size, factor.shape[-1]))
    return einsum("...ij,...kj->...ik", root, root)


def inverse_wishart(
    key: KeyArray, df: ArrayLike, scale: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Symmetric positive definite matrices whose inverses are of Wishart's distribution.

    Args:
      key: a key.
      df: the degrees of freedom, which broadcast to ``shape``; the result is nan where they are at most n - 1.
      scale: positive definite matrices, of a shape that ends with (n, n); the other axes broadcast to ``shape``. The
        mean is ``scale / (df - n - 1)``. Their symmetric parts are used.
      shape: the shape of the result without its last two axes; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; by default the dtype of the parameters.

    Returns:
      An array of ``shape + (n, n)`` and ``dtype``, differentiable in ``df`` and ``scale``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the shapes do not fit.

    The distribution is that of ``scipy.stats.invwishart``. No matrix is inverted: the factor of Bartlett is solved
    for the factor of the scale.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> x = random.inverse_wishart(random.key(0), 9.0, 6 * jnp.eye(2), (1000,))
    >>> print(x.shape, jnp.diagonal(x.mean(0)).round(1))
    (1000, 2, 2) [1. 1.]
    """
    words, df, factor, size = _of_matrices("inverse_wishart", key, df, scale, shape, dtype)
    n = factor.shape[-1]
    right = shapes.broadcast_to(transposed(factor), (*size, n, n))
    root = triangular_solve(_bartlett(words, df, size, n), right, left_side=True, lower=True)
    return einsum("...ji,...jk->...ik", root, root)


# Correlations ------------------------------------------------------------------------------------------------------


def lkj_cholesky(
    key: KeyArray, n: int, concentration: ArrayLike = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Lower Cholesky factors of random correlation matrices; see :func:`lkj`.

    Args:
      key: a key.
      n: the size of the matrices, positive.
      concentration: a positive number, which broadcasts to ``shape``; the density of a correlation matrix is
        proportional to its determinant to the power of ``concentration - 1``.
      shape: the shape of the result without its last two axes; by default the shape of ``concentration``.
      dtype: a floating-point dtype; by default the dtype of ``concentration``.

    Returns:
      An array of ``shape + (n, n)`` and ``dtype``, differentiable in ``concentration``. The rows have the length one.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, ``n`` is not positive, or ``dtype`` is not a
        floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameter does not fit the shape.

    Source: D. Lewandowski, D. Kurowicka and H. Joe, *Generating random correlation matrices based on vines and
    extended onion method* (2009): the partial correlations of a vine have beta distributions.

    >>> from pullback import random
    >>> factor = random.lkj_cholesky(random.key(0), 3, 2.0)
    >>> print((factor**2).sum(-1).round(4))
    [1. 1. 1.]
    """
    return _lkj("lkj_cholesky", key, n, concentration, shape, dtype)


def lkj(
    key: KeyArray, n: int, concentration: ArrayLike = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Random correlation matrices of Lewandowski, Kurowicka and Joe.

    Args:
      key: a key.
      n: the size of the matrices, positive.
      concentration: a positive number, which broadcasts to ``shape``; the density of a correlation matrix is
        proportional to its determinant to the power of ``concentration - 1``. Matrices are uniformly distributed for 1,
        and near the identity for large numbers.
      shape: the shape of the result without its last two axes; by default the shape of ``concentration``.
      dtype: a floating-point dtype; by default the dtype of ``concentration``.

    Returns:
      An array of ``shape + (n, n)`` and ``dtype``, differentiable in ``concentration``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, ``n`` is not positive, or ``dtype`` is not a
        floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameter does not fit the shape.

    Source: see :func:`lkj_cholesky`.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> print(jnp.diagonal(random.lkj(random.key(0), 3, 2.0)).round(4))
    [1. 1. 1.]
    """
    factor = _lkj("lkj", key, n, concentration, shape, dtype)
    return einsum("...ij,...kj->...ik", factor, factor)


def _lkj(name: str, key: Any, n: Any, concentration: Any, shape: Any, dtype: Any) -> Any:
    """Draw Cholesky factors of correlation matrices, column by column.

    Column k has the partial correlations with variable k, given those before it: beta numbers of both parameters
    ``concentration + (n - 2 - k) / 2``, between -1 and 1. What they leave of the length of a row is its rest.
    """
    found = _float_of(name, dtype, concentration=concentration)
    words, count = words_of(name, key), size_of(name, "n", n)
    if count < 1:
        raise ArgumentError(f"{name}: n must be positive, got {n}")
    eta = parameter(name, "concentration", concentration, found)
    size = sample_shape(name, shape, concentration=eta.shape)
    eta = ops.where(ops.gt(eta, 0), eta, np.nan)
    last = len(size)
    rest = shapes.full((*size, count, 1), 1, found)
    columns = []
    for k, column_key in enumerate(subkeys(words, count - 1) if count > 1 else []):
        below = count - 1 - k
        shape_of_beta = shapes.expand_dims(ops.add(eta, (count - 2 - k) / 2), (len(eta.shape),))
        drawn = beta_of(column_key, shape_of_beta, shape_of_beta, (*size, below))
        partial = shapes.expand_dims(ops.sub(ops.mul(drawn, 2), 1), (last + 1,))
        left = slice_in_dim(rest, k + 1, count, last)
        diagonal = slice_in_dim(rest, k, k + 1, last)
        zeros = shapes.full((*size, k, 1), 0, found)
        columns.append(concatenate([zeros, diagonal, ops.mul(partial, left)], last))
        # One minus the square of 2 b - 1 is 4 b (1 - b), which does not cancel.
        variance = ops.mul(drawn, ops.sub(1, drawn))
        share = shapes.expand_dims(ops.mul(ops.sqrt(variance), 2), (last + 1,))
        rest = concatenate([slice_in_dim(rest, 0, k + 1, last), ops.mul(left, share)], last)
    zeros = shapes.full((*size, count - 1, 1), 0, found)
    columns.append(concatenate([zeros, slice_in_dim(rest, count - 1, count, last)], last))
    out = concatenate(columns, last + 1) if count > 1 else columns[0]
    # The one before the first column is exact; where the concentration is invalid it is NaN too.
    return ops.where(shapes.expand_dims(ops.eq(eta, eta), (len(eta.shape), len(eta.shape) + 1)), out, np.nan)
