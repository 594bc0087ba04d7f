"""The arithmetic of sparse arrays, for operators and for the rules of ``sparsify``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.errors import ShapeError, UnsupportedArgumentError
from pullback.experimental.sparse.compressed import to_bcoo
from pullback.experimental.sparse.formats import BCOO, JAXSparse
from pullback.experimental.sparse.layouts import add_rows, bcoo_todense, everywhere, inside, kinds, spread, unique
from pullback.experimental.sparse.products import (
    bcoo_dot_general,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    broadcast_to,
    broadcast_together,
    cast,
    promoted,
)
from pullback.experimental.sparse.structure import bcoo_reduce_sum, bcoo_reshape, bcoo_transpose, common_layout
from pullback.numpy.promotion import axes_tuple


def is_operand(x: Any) -> bool:
    """Whether a value is an array, sparse or dense, or a number."""
    return isinstance(x, (JAXSparse, Array, np.ndarray, np.generic, int, float, complex))


def sparse_or_array(x: Any) -> Any:
    """Convert an operand: a sparse array to a BCOO, any other to an array."""
    return to_bcoo(x) if isinstance(x, JAXSparse) else x if isinstance(x, Array) else pnp.asarray(x)


def with_data(mat: BCOO, data: Any) -> BCOO:
    """Return an array with the same indices and other data."""
    _, indices = (mat.data, mat.indices) if data.shape[: mat.n_batch] == mat.data.shape[: mat.n_batch] else spread(mat)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def dense_result(name: str) -> UnsupportedArgumentError:
    """Return the error for an operation whose result would be dense."""
    return UnsupportedArgumentError(
        f"{name} of a sparse array would be dense, because it is nonzero where the array is zero; if you want this, "
        f"convert the array first with sparse.todense(...)"
    )


def elementwise(function: Callable[[Any], Any], mat: Any) -> BCOO:
    """Apply a function that is zero at zero to each element, after summing duplicates."""
    mat = unique(to_bcoo(mat))
    return with_data(mat, function(mat.data))


def linear(function: Callable[[Any], Any], mat: Any) -> BCOO:
    """Apply a linear function to each stored element, without summing duplicates first."""
    mat = to_bcoo(mat)
    return with_data(mat, function(mat.data))


def keeps_sums(source: Any, target: Any) -> bool:
    """Whether sums of numbers may be converted from one dtype to another by converting the numbers."""
    return np.can_cast(source, target) or (dtypes.is_integer(source) and dtypes.is_inexact(target))


def add(x: Any, y: Any) -> Any:
    """Return the sum: sparse if both operands are, else dense."""
    x, y = sparse_or_array(x), sparse_or_array(y)
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return _all_elements(*broadcast_together("add", [x, y]))
    return _add_dense(x, y) if isinstance(x, BCOO) else _add_dense(y, x)


def _all_elements(x: BCOO, y: BCOO) -> BCOO:
    """Return the sum of two arrays of one shape as an array that stores the elements of both, duplicates included."""
    x, y = common_layout([x, y])
    a, b, _ = promoted(x.data, y.data)
    n = x.n_batch
    (a, i), (b, j) = spread(with_data(x, a)), spread(with_data(y, b))
    wide = pnp.promote_types(i.dtype, j.dtype)
    parts = pnp.concatenate([a, b], axis=n), pnp.concatenate([i.astype(wide), j.astype(wide)], axis=n)
    return BCOO(parts, shape=x.shape)


def _add_dense(mat: BCOO, y: Any) -> Any:
    try:
        shape = np.broadcast_shapes(mat.shape, y.shape)
    except ValueError:
        raise ShapeError(f"add: the shapes {mat.shape} and {y.shape} do not broadcast") from None
    if y.shape != shape:
        raise UnsupportedArgumentError(
            f"the sum of a sparse array of shape {mat.shape} and a dense one of shape {y.shape} would be "
            "dense, of shape "
            f"{shape}, and larger than the dense one; if you want this, convert the sparse one first with "
            f"sparse.todense(...)"
        )
    mat = broadcast_to(mat, shape)
    data, y, _dtype = promoted(mat.data, y)
    batch, sparse, dense = kinds(mat)
    positions, data = everywhere(with_data(mat, data))
    rows = int(np.prod((*batch, *sparse), dtype=np.int64))
    return add_rows(y.reshape(rows, *dense), positions, data).reshape(shape)


def negative(x: Any) -> BCOO:
    return linear(operator.neg, x)


def subtract(x: Any, y: Any) -> Any:
    """Return the difference, as :func:`add` does."""
    x, y = sparse_or_array(x), sparse_or_array(y)
    return add(x, negative(y) if isinstance(y, BCOO) else -y)


def multiply(x: Any, y: Any) -> Any:
    """Return the elementwise product, a sparse array."""
    x, y = sparse_or_array(x), sparse_or_array(y)
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return bcoo_multiply_sparse(x, y)
    return _scaled(x, y, operator.mul, "multiply") if isinstance(x, BCOO) else _scaled(y, x, operator.mul, "multiply")


def _scaled(mat: BCOO, y: Any, operation: Callable[[Any, Any], Any], name: str) -> BCOO:
    if not y.ndim:
        return with_data(mat, operation(mat.data, y))
    try:
        shape = np.broadcast_shapes(mat.shape, y.shape)
    except ValueError:
        raise ShapeError(f"{name}: the shapes {mat.shape} and {y.shape} do not broadcast") from None
    mat = broadcast_to(mat, shape)
    if operation is operator.mul:
        return with_data(mat, bcoo_multiply_dense(mat, y))
    ones = with_data(mat, pnp.ones(mat.data.shape, y.dtype))
    return with_data(mat, _divided(mat, ones, y))


def _divided(mat: BCOO, ones: BCOO, y: Any) -> Any:
    """Divide the stored elements of ``mat`` by the elements of ``y`` at the same indices; return the new data.

    Padding becomes 0. ``ones`` is a copy of ``mat`` in which each stored element is 1.
    """
    _, sparse, _ = kinds(mat)
    data, indices = spread(mat)
    known = inside(indices, sparse)
    known = known.reshape(known.shape + (1,) * (data.ndim - known.ndim))
    return pnp.where(known, data, 0) / pnp.where(known, bcoo_multiply_dense(ones, y), 1)


def divide(x: Any, y: Any) -> Any:
    """Return a sparse array divided by a dense one; it is zero where no element is stored, even if the divisor is."""
    x, y = sparse_or_array(x), sparse_or_array(y)
    if isinstance(y, BCOO):
        raise dense_result("division by a sparse array: the quotient")
    return _scaled(x, y, operator.truediv, "divide")


def power(x: Any, y: Any) -> Any:
    """Raise each element to a power, a concrete positive number."""
    if isinstance(y, JAXSparse):
        raise dense_result("a power whose exponent is sparse: it")
    exponent = np.asarray(y) if isinstance(y, (int, float, np.generic, np.ndarray)) else None
    if exponent is None or exponent.ndim or not exponent > 0:
        raise dense_result(f"the power {y!r}")
    return elementwise(lambda data: data**y, x)


def absolute(x: Any) -> BCOO:
    return elementwise(pnp.abs, x)


def matmul(x: Any, y: Any) -> Any:
    """Return the matrix product, as NumPy's: sparse if both operands are, else dense."""
    x, y = sparse_or_array(x), sparse_or_array(y)
    if not x.ndim or not y.ndim:
        raise ShapeError(f"matmul takes arrays with at least one axis, got shapes {x.shape} and {y.shape}")
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise ShapeError(
            f"matmul: shapes {x.shape} and {y.shape} do not match: the last axis of the first must have the size of "
            f"the "
            f"{'last but one' if y.ndim > 1 else 'one'} of the second"
        )
    contracted = (x.ndim - 1,), (max(y.ndim - 2, 0),)
    batch: tuple[int, ...]
    if x.ndim <= 2 or y.ndim <= 2:
        numbers: Any = (contracted, ((), ()))
        batch = ()
    else:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        x, y = _to_shape(x, batch + x.shape[-2:]), _to_shape(y, batch + y.shape[-2:])
        axes = tuple(range(len(batch)))
        numbers = (((x.ndim - 1,), (y.ndim - 2,)), (axes, axes))
    out = bcoo_dot_general(x, y, dimension_numbers=numbers)
    if not batch and x.ndim == 2 and y.ndim > 2:  # the product has the rows of the first before the batch of the second
        order = (*range(1, y.ndim - 1), 0, y.ndim - 1)
        return bcoo_transpose(out, permutation=order) if isinstance(out, BCOO) else pnp.transpose(out, order)
    return out


def _to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    return broadcast_to(x, shape) if isinstance(x, BCOO) else pnp.broadcast_to(x, shape)


def reduce_sum(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """Return the sum over axes: a dense scalar over all axes, else a sparse array."""
    mat = to_bcoo(x)
    axes = axes_tuple(axis, mat.ndim, "sum")
    if dtype is not None:
        mat = cast(mat, dtypes.requested_dtype(dtype, "sum"))
    elif dtypes.is_bool(mat.dtype):
        mat = cast(unique(mat), dtypes.canonicalize_dtype(np.int64))
    out = bcoo_reduce_sum(mat, axes=axes)
    if keepdims:
        return bcoo_reshape(out, new_sizes=tuple(1 if i in axes else n for i, n in enumerate(mat.shape)))
    return out if out.ndim else bcoo_todense(out)
