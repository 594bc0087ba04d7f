"""Random vectors and matrices: normal vectors of any covariance, and orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.einstein import einsum
from pullback.numpy.promotion import operand, shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg.decompositions import diagonal
from pullback.primitives.linalg.eigen import eigh
from pullback.primitives.linalg.lapack import cholesky
from pullback.primitives.linalg.qr import qr
from pullback.primitives.linalg.svd import svd
from pullback.random.arguments import float_dtype, parameter, sample_shape, size_of
from pullback.random.continuous import normal, normal_of_key
from pullback.random.keys import words_of
from pullback.transforms.programs.placement import constrained

_METHODS = ("cholesky", "eigh", "svd")


def multivariate_normal(
    key: KeyArray,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    method: str = "cholesky",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Vectors of the multivariate normal distribution.

    Each is the mean plus a square root of the covariance times standard normal numbers.

    Args:
      key: a key.
      mean: the means along the last axis, n of them; the other axes broadcast to ``shape``.
      cov: the covariances, of a shape that ends with (n, n). ``"cholesky"`` and ``"eigh"`` use their
        symmetric parts.
      method: the square root: ``"cholesky"``; or ``"eigh"`` or ``"svd"``, which allow singular covariances. The result
        is nan where a covariance is not positive definite (for ``"eigh"``, semidefinite).
      shape: the shape of the result; by default the broadcast shape of the parameters. The axis
        of components follows it.
      dtype: a floating-point dtype; by default the dtype of the parameters.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape + (n,)`` and ``dtype``, differentiable in ``mean`` and ``cov``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the shapes do not fit.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> mean, cov = jnp.array([0.0, 1.0]), jnp.array([[2.0, 1.0], [1.0, 2.0]])
    >>> print(random.multivariate_normal(random.key(0), mean, cov).round(3))
    [-1.11   1.494]
    """
    dtype = _common_float(mean, cov) if dtype is None else dtype
    words, found = words_of("multivariate_normal", key), float_dtype("multivariate_normal", dtype)
    if not is_listed(method, _METHODS):
        raise ArgumentError(f"multivariate_normal: method must be one of {', '.join(_METHODS)}, got {method!r}")
    mean = parameter("multivariate_normal", "mean", mean, found)
    cov = parameter("multivariate_normal", "cov", cov, found)
    if not mean.shape:
        raise ShapeError("multivariate_normal: mean must have an axis of components, got a scalar")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ShapeError(
            f"multivariate_normal: cov must have a shape that ends with ({n}, {n}), since mean has shape {mean.shape}; "
            f"got shape {cov.shape}"
        )
    size = sample_shape("multivariate_normal", shape, mean=mean.shape[:-1], cov=cov.shape[:-2])
    wide = found if found.itemsize >= 4 else np.dtype(np.float32)
    factor = _factor(ops.convert_element_type(cov, wide), method)
    noise = ops.convert_element_type(normal_of_key(words, (*size, n), found), wide)
    product = ops.convert_element_type(einsum("...ij,...j->...i", factor, noise), found)
    return constrained(ops.add(mean, product), out_sharding, "random.multivariate_normal")


def _common_float(mean: Any, cov: Any) -> Any:
    parameters = (operand(f"multivariate_normal: {what}", x) for what, x in (("mean", mean), ("cov", cov)))
    return dtypes.to_real(dtypes.to_inexact(dtypes.common_dtype(*parameters)))


def _factor(cov: Any, method: str) -> Any:
    """Return a matrix L with L L* = ``cov``, computed by a ``method``: "cholesky", "eigh" or "svd"."""
    rank = len(cov.shape)
    if method == "svd":
        values, vectors, _ = svd(cov)
    else:
        swapped = shapes.transpose(cov, (*range(rank - 2), rank - 1, rank - 2))
        cov = ops.div(ops.add(cov, swapped), 2)
        if method == "cholesky":
            return cholesky(cov)
        values, vectors = eigh(cov)
    return ops.mul(vectors, shapes.expand_dims(ops.sqrt(values), (rank - 2,)))


def orthogonal(
    key: KeyArray,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    m: int | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Uniformly distributed orthogonal matrices, or unitary ones.

    Method: Q of the QR decomposition of normal numbers, with a positive diagonal of R (Mezzadri, *How to
    generate random matrices from the classical compact groups*, 2007).

    Args:
      key: a key.
      n: the number of rows.
      m: the number of columns; ``n`` by default. The columns are orthonormal, or the rows if there are
        fewer rows.
      shape: the shape of the result; () by default. The axes of the matrices follow it.
      dtype: an inexact dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape + (n, m)`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not an inexact dtype.
      ShapeError: ``shape`` is not a shape.

    >>> from pullback import random
    >>> print(random.orthogonal(random.key(0), 2).round(3))
    [[ 0.983  0.184]
     [ 0.184 -0.983]]
    """
    rows = size_of("orthogonal", "n", n)
    columns = rows if m is None else size_of("orthogonal", "m", m)
    words_of("orthogonal", key, use=False)
    size = shape_tuple(shape, "orthogonal")
    found = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "random.orthogonal")
    if not dtypes.is_inexact(found):
        raise ArgumentError(f"orthogonal: dtype must be inexact, got {dtypes.short_name(found)}")
    entries = normal(key, (*size, max(rows, columns), min(rows, columns)), found)
    narrow = found.itemsize < 4
    q, r = qr(ops.convert_element_type(entries, np.dtype(np.float32)) if narrow else entries)
    out = ops.mul(q, shapes.expand_dims(ops.sign(diagonal(r)), (len(size),)))
    if rows < columns:
        out = shapes.transpose(out, (*range(len(size)), len(size) + 1, len(size)))
    return constrained(ops.convert_element_type(out, found), out_sharding, "random.orthogonal")
