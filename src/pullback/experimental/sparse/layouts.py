"""Layouts of BCOO arrays: conversions from and to dense, sorting, and conversions between kinds of axes.

An index outside of the shape marks padding, and functions of indices keep padding outside.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike, typeof
from pullback.core.errors import (
    ArgumentError,
    DtypeError,
    OperandError,
    ShapeError,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)
from pullback.core.types import Shape
from pullback.experimental.sparse.formats import BCOO, JAXSparse
from pullback.numpy.promotion import quote
from pullback.primitives.arrays.gather import gather
from pullback.primitives.arrays.scatter import scatter, scatter_add
from pullback.primitives.arrays.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from pullback.primitives.linalg.sparse_products import index_dtype

DROP = GatherScatterMode.FILL_OR_DROP
_warned: set[str] = set()


# Data and indices --------------------------------------------------------------------------------------------------


def bcoo(name: str, x: Any) -> BCOO:
    """Return an argument, or raise an error unless it is a BCOO."""
    if not isinstance(x, BCOO):
        raise OperandError(f"{name} takes a BCOO, got {quote(x)} of type {type(x).__name__}")
    return x


def kinds(mat: BCOO) -> tuple[Shape, Shape, Shape]:
    """Return the sizes of the batch, of the sparse and of the dense axes."""
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    return mat.shape[:a], mat.shape[a:b], mat.shape[b:]


def spread(mat: BCOO) -> tuple[Any, Any]:
    """Return data and indices, repeated along batch axes of size 1 that share them."""
    batch = mat.shape[: mat.n_batch]
    data, indices = mat.data, mat.indices
    if data.shape[: len(batch)] != batch:
        data = pnp.broadcast_to(data, batch + data.shape[len(batch) :])
    if indices.shape[: len(batch)] != batch:
        indices = pnp.broadcast_to(indices, batch + indices.shape[len(batch) :])
    return data, indices


def inside(indices: Any, sizes: Sequence[int]) -> Any:
    """Return a mask of the elements that are not padding, of the shape of ``indices`` without the last axis."""
    if not len(sizes):
        return pnp.ones(indices.shape[:-1], bool)
    return pnp.all((indices >= 0) & (indices < limits(sizes, indices.dtype, indices.ndim)), axis=-1)


def limits(sizes: Sequence[int], dtype: Any, ndim: int = 1) -> Any:
    """Return sizes as an array of an index dtype, clipped to its range, with ``ndim - 1`` axes of size 1 in front."""
    most = dtypes.iinfo(dtype).max
    return last_axis(np.asarray([min(n, most) for n in sizes], dtype), ndim)


def last_axis(x: Any, ndim: int) -> Any:
    """Put axes of size 1 before the only axis of an array, which thus has ``ndim`` axes.

    The switch ``numpy_rank_promotion`` forbids to broadcast arrays of different numbers of axes.
    """
    return x.reshape((1,) * (ndim - 1) + x.shape)


def kept(data: Any, known: Any) -> Any:
    """Replace the elements that are not ``known`` by zeros."""
    return pnp.where(pnp.reshape(known, known.shape + (1,) * (data.ndim - known.ndim)), data, pnp.zeros((), data.dtype))


def with_padding(indices: Any, known: Any, sizes: Sequence[int]) -> Any:
    """Replace the indices of elements that are not ``known`` by padding, outside of the sparse axes."""
    return pnp.where(known[..., None], indices, limits(sizes, indices.dtype, indices.ndim))


def wide_indices(indices: Any, sizes: Sequence[int]) -> Any:
    """Convert indices to a dtype wide enough for all flat positions in axes, and one more."""
    extent = max(sizes, default=0)
    if dtypes.iinfo(indices.dtype).max > extent and indices.dtype.kind == "i":
        return indices
    return indices.astype(index_dtype(extent))


def flat_positions(indices: Any, sizes: Sequence[int], strides: Sequence[int] | None = None) -> Any:
    """Return the flat position of each element, from its indices; -1 for padding."""
    extent = math.prod(sizes)
    dtype = index_dtype(extent)
    if strides is None:
        strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    known = inside(indices, sizes)
    if not len(sizes):
        return pnp.zeros(indices.shape[:-1], dtype)
    total = sum(indices[..., i].astype(dtype) * s for i, s in enumerate(strides) if s)
    if isinstance(total, int):
        total = pnp.zeros(indices.shape[:-1], dtype)
    return pnp.where(known, total, -1)


def batch_positions(shape: Shape, strides: Sequence[int], rank: int, dtype: Any) -> Any:
    """Return the flat offset of each index of the batch axes, as an array of ``rank`` axes."""
    total: Any = np.zeros((), dtype)
    for i, (n, s) in enumerate(zip(shape, strides, strict=True)):
        if s:
            total = total + (np.arange(n) * s).astype(dtype).reshape([n if j == i else 1 for j in range(rank)])
    return total


def everywhere(mat: BCOO) -> tuple[Any, Any]:
    """Flatten batch and sparse axes to one: return flat positions ``(e,)`` and data ``(e, *dense)``."""
    batch, sparse, dense = kinds(mat)
    data, indices = spread(mat)
    extent = math.prod(batch) * math.prod(sparse)
    dtype = index_dtype(extent)
    positions = flat_positions(indices, sparse).astype(dtype)
    if batch:
        strides = [math.prod(batch[i + 1 :]) * math.prod(sparse) for i in range(len(batch))]
        start = batch_positions(batch, strides, len(batch) + 1, dtype)
        positions = pnp.where(positions < 0, -1, positions + start)
    return positions.reshape(-1), data.reshape(positions.size, *dense)


_TAKE = {n: GatherDimensionNumbers(tuple(range(1, n)), (0,), (0,)) for n in range(1, 34)}


def take_rows(x: Any, positions: Any) -> Any:
    """Return the rows of ``x`` at a vector of positions, zeros for those out of range."""
    if not x.shape[0]:
        return pnp.zeros((*positions.shape, *x.shape[1:]), x.dtype)
    numbers = _TAKE[len(x.shape)]
    return gather(x, positions[:, None], numbers, (1, *x.shape[1:]), mode=DROP, fill_value=0)


def add_rows(x: Any, positions: Any, rows: Any) -> Any:
    """Add rows to ``x`` at a vector of positions, ignoring those out of range."""
    numbers = ScatterDimensionNumbers(tuple(range(1, len(x.shape))), (0,), (0,))
    return scatter_add(x, positions[:, None], rows, numbers, mode=DROP)


def put_rows(x: Any, positions: Any, rows: Any) -> Any:
    """Set rows of ``x`` at a vector of positions, ignoring those out of range."""
    numbers = ScatterDimensionNumbers(tuple(range(1, len(x.shape))), (0,), (0,))
    return scatter(x, positions[:, None], rows, numbers, mode=DROP)


def known_values(x: Any) -> bool:
    """Whether an array is concrete."""
    return isinstance(x, ArrayImpl)


def check_layout(name: str, n_batch: int, n_dense: int, rank: int) -> int:
    """Check the numbers of batch and dense axes, and return the number of sparse axes."""
    for what, n in (("n_batch", n_batch), ("n_dense", n_dense)):
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise ArgumentError(f"{name}: {what} must be a non-negative integer, got {n!r}")
    if n_batch + n_dense > rank:
        raise ArgumentError(
            f"{name}: n_batch={n_batch} and n_dense={n_dense} are more than the {rank} axes of the array"
        )
    return rank - n_batch - n_dense


# Dense and sparse --------------------------------------------------------------------------------------------------


def bcoo_todense(mat: BCOO) -> Array:
    """Convert a sparse array to a dense one, summing elements with equal indices.

    Args:
      mat: a BCOO.

    Returns:
      An array of the same shape and dtype.

    Raises:
      OperandError: ``mat`` is no BCOO (a TypeError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.bcoo_todense(sparse.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    mat = bcoo("bcoo_todense", mat)
    batch, sparse, dense = kinds(mat)
    positions, data = everywhere(mat)
    rows = math.prod(batch) * math.prod(sparse)
    return add_rows(pnp.zeros((rows, *dense), mat.dtype), positions, data).reshape(mat.shape)


def count_nonzero(mask: Any, name: str) -> int:
    """Return the largest number of true elements along the last axis; raise an error if the mask is traced."""
    if not known_values(mask):
        raise ArgumentError(
            f"{name}: nse, the number of stored elements, is static: pass a Python int when values are traced, as "
            f"under jit and vmap"
        )
    counts = np.count_nonzero(np.asarray(mask), axis=-1)
    return int(np.max(counts, initial=0))


def known_nse(name: str, nse: Any) -> int:
    if isinstance(nse, bool) or not isinstance(nse, (int, np.integer)) or nse < 0:
        raise ArgumentError(f"{name}: nse must be a non-negative static integer, got {nse!r}")
    return int(nse)


def index_type(name: str, dtype: Any) -> Any:
    """Check the dtype of indices."""
    found = dtypes.requested_dtype(dtype, name)
    if not dtypes.is_integer(found):
        raise DtypeError(f"{name}: index_dtype must be a dtype of integers, got {quote(dtype)}")
    return found


def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCOO:
    """Convert a dense array to a sparse one of its nonzero elements, in order.

    Args:
      mat: an array.
      nse: the number of elements to store for each index of the batch axes; by default as many as are needed, which
        requires concrete values. Excess elements are dropped; missing ones are padding.
      n_batch: the number of leading batch axes.
      n_dense: the number of trailing dense axes.
      index_dtype: the dtype of the indices.

    Returns:
      A BCOO with sorted unique indices.

    Raises:
      ArgumentError: ``nse``, ``n_batch`` or ``n_dense`` is invalid, or ``nse`` is missing and ``mat`` is traced
        (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.bcoo_fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> print(matrix.data, matrix.indices.tolist())
    [1. 2.] [[0, 1], [1, 0]]
    """
    if isinstance(mat, JAXSparse):
        raise OperandError(f"bcoo_fromdense takes a dense array, got {mat!r}")
    mat = pnp.asarray(mat)
    count = check_layout("bcoo_fromdense", n_batch, n_dense, mat.ndim)
    dtype = index_type("bcoo_fromdense", index_dtype)
    shape = mat.shape
    batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + count], shape[n_batch + count :]
    cells = math.prod(sparse)
    mask = (mat != 0).reshape(*batch, cells, math.prod(dense)).any(-1)
    stored = count_nonzero(mask, "bcoo_fromdense") if nse is None else known_nse("bcoo_fromdense", nse)
    positions = _first_true(mask, stored)
    data = take_each(mat.reshape(*batch, cells, *dense), positions, n_batch)
    indices = unravelled(positions, sparse, dtype)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def _first_true(mask: Any, count: int) -> Any:
    """Return the positions of the first ``count`` true elements along the last axis.

    If there are fewer, the missing positions become the length of the axis.
    """
    batch, n = mask.shape[:-1], mask.shape[-1]
    rows = math.prod(batch)
    dtype = index_dtype(rows * max(count, 1) + n)
    slots = pnp.cumsum(mask, axis=-1, dtype=dtype) - 1
    first = batch_positions((rows,), (count,), 2, dtype)
    slots = pnp.where(mask & (slots < count), slots, -1).reshape(rows, n)
    slots = pnp.where(slots < 0, -1, slots + first).reshape(-1)
    numbers = pnp.broadcast_to(pnp.arange(n, dtype=dtype), (rows, n)).reshape(-1)
    return put_rows(pnp.full(rows * count, n, dtype), slots, numbers).reshape(*batch, count)


def take_each(x: Any, positions: Any, n_batch: int) -> Any:
    """Return, for each batch, the rows of ``x`` at positions, zeros for those out of range."""
    batch, cells, rest = x.shape[:n_batch], x.shape[n_batch], x.shape[n_batch + 1 :]
    dtype = index_dtype(math.prod(batch) * cells)
    positions = pnp.where((positions >= 0) & (positions < cells), positions, -1).astype(dtype)
    positions = positions.reshape(math.prod(batch), positions.shape[-1])
    start = batch_positions((math.prod(batch),), (cells,), 2, dtype)
    flat = pnp.where(positions < 0, -1, positions + start).reshape(-1)
    return take_rows(x.reshape(math.prod(batch) * cells, *rest), flat).reshape(*batch, positions.shape[-1], *rest)


def unravelled(positions: Any, sizes: Sequence[int], dtype: Any = None) -> Any:
    """Convert flat positions to indices along a new last axis; out of range remains so, in every axis."""
    if not len(sizes):
        return pnp.zeros((*positions.shape, 0), positions.dtype if dtype is None else dtype)
    known = (positions >= 0) & (positions < math.prod(sizes))
    parts, rest = [], pnp.where(known, positions, 0)
    for n in reversed(sizes):
        parts.append(rest % max(n, 1))
        rest = rest // max(n, 1)
    indices = pnp.stack(parts[::-1], axis=-1)
    indices = indices if dtype is None else indices.astype(dtype)
    return with_padding(indices, known, sizes)


# Order -------------------------------------------------------------------------------------------------------------


def _sorted(mat: BCOO) -> tuple[Any, Any]:
    """Sort the elements of an array by their indices, with padding last; return the sorted data and indices."""
    _, sparse, _ = kinds(mat)
    data, indices = spread(mat)
    if not sparse:
        return data, indices
    indices = wide_indices(indices, sparse)
    indices = with_padding(indices, inside(indices, sparse), sparse)
    order = pnp.lexsort([indices[..., i] for i in reversed(range(len(sparse)))], axis=-1)
    return take_each(data, order, mat.n_batch), pnp.take_along_axis(indices, order[..., None], axis=mat.n_batch)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Sort the elements of a sparse array by their indices, with padding last.

    Args:
      mat: a BCOO.

    Returns:
      A BCOO of the same shape and dtype, whose ``indices_sorted`` is True.

    Raises:
      OperandError: ``mat`` is no BCOO (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[2], [0]])), shape=(3,))
    >>> print(sparse.bcoo_sort_indices(matrix).data)
    [2. 1.]
    """
    mat = bcoo("bcoo_sort_indices", mat)
    if mat.indices_sorted:
        return mat
    return BCOO(_sorted(mat), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Sum the elements of a sparse array that have equal indices; the result's indices are sorted and unique.

    Args:
      mat: a BCOO.
      nse: the number of elements that the result stores for each index of the batch axes; by default as many as are
        needed, which requires concrete indices. Excess elements, the last ones, are dropped.

    Returns:
      A BCOO of the same shape and dtype, which stores ``nse`` elements for each index of the batch axes.

    Raises:
      OperandError: ``mat`` is no BCOO (a TypeError).
      ArgumentError: ``nse`` is no integer, or is missing and the indices are traced (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,))
    >>> print(sparse.bcoo_sum_duplicates(matrix).data)
    [3.]
    """
    return sum_duplicates(bcoo("bcoo_sum_duplicates", mat), nse, False)


def sum_duplicates(mat: BCOO, nse: int | None, remove_zeros: bool) -> BCOO:
    """Sum duplicates as :func:`bcoo_sum_duplicates` does; ``remove_zeros`` drops elements that are zero."""
    name = "bcoo_sum_duplicates"
    batch, sparse, dense = kinds(mat)
    data, indices = _sorted(mat)
    known = inside(indices, sparse)
    if remove_zeros:
        zero = pnp.all(data.reshape(*known.shape, math.prod(dense)) == 0, axis=-1)
        known = known & ~zero
    first, slots = _first_known(indices, known, batch)
    stored = count_nonzero(first, name) if nse is None else known_nse(name, nse)
    rows = math.prod(batch)
    dtype = index_dtype(rows * max(stored, 1))
    start = batch_positions((rows,), (stored,), 2, dtype)
    valid = (known & (slots < stored)).reshape(rows, mat.nse)
    positions = pnp.where(valid, slots.reshape(rows, mat.nse).astype(dtype) + start, -1).reshape(-1)
    summed = add_rows(pnp.zeros((rows * stored, *dense), data.dtype), positions, data.reshape(rows * mat.nse, *dense))
    empty = pnp.broadcast_to(pnp.asarray(limits(sparse, indices.dtype)), (rows * stored, len(sparse)))
    new = put_rows(empty, positions, indices.reshape(rows * mat.nse, len(sparse)))
    shape = (*batch, stored)
    parts = summed.reshape(*shape, *dense), new.reshape(*shape, len(sparse))
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _first_known(indices: Any, known: Any, batch: Shape) -> tuple[Any, Any]:
    """Number the distinct indices among elements, separately for each batch index.

    Args:
      indices: the sorted indices of the elements, with the axes (*batch, elements, n).
      known: for each element whether it counts.
      batch: the sizes of the batch axes.

    Returns:
      A mask (*batch, elements) with as many True elements as there are distinct indices; and for each element the
      number of its index among the distinct indices.
    """
    nse = indices.shape[-2]
    if not nse:
        return known, known.astype(np.int32)
    other = pnp.any(indices[..., 1:, :] != indices[..., :-1, :], axis=-1)
    group = pnp.concatenate([pnp.zeros((*batch, 1), np.int32), pnp.cumsum(other, axis=-1, dtype=np.int32)], axis=-1)
    rows = math.prod(batch)
    dtype = index_dtype(rows * nse)
    start = batch_positions((rows,), (nse,), 2, dtype)
    flat = (group.reshape(rows, nse).astype(dtype) + start).reshape(-1)
    present = add_rows(pnp.zeros(rows * nse, np.int32), flat, known.reshape(-1).astype(np.int32)) > 0
    number = pnp.cumsum(present.reshape(rows, nse), axis=-1, dtype=np.int32) - 1
    slots = take_rows(number.reshape(-1), flat).reshape(known.shape)
    return present.reshape(known.shape), slots


def unique(mat: BCOO) -> BCOO:
    """Sum duplicates, storing as many elements as before."""
    return mat if mat.unique_indices else sum_duplicates(mat, mat.nse, False)


def at_most(mat: BCOO, count: int) -> BCOO:
    """Store at most ``count`` elements for each batch, the number of its distinct indices, by summing duplicates."""
    return sum_duplicates(mat, count, False) if mat.nse > count else mat


# Kinds of axes -----------------------------------------------------------------------------------------------------


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """Convert a sparse array to other numbers of batch and dense axes.

    Args:
      mat: a BCOO.
      n_batch, n_dense: the numbers of batch and dense axes of the result; by default those of ``mat``.
      on_inefficient: the reaction if the result would store many zeros, as it does if either number grows: "error",
        "warn", or None for no reaction.

    Returns:
      A BCOO of the same shape and dtype, with ``n_batch`` and ``n_dense`` axes.

    Raises:
      OperandError: ``mat`` is no BCOO (a TypeError).
      SparseEfficiencyError: the result would store many zeros (a ValueError).
      ArgumentError: invalid numbers of axes, or another ``on_inefficient`` (a TypeError and a ValueError).

    Warns:
      SparseEfficiencyWarning: the result stores many zeros, and ``on_inefficient`` is "warn".

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.BCOO.fromdense(jnp.eye(3), n_batch=1)
    >>> sparse.bcoo_update_layout(matrix, n_batch=0)
    BCOO(float32[3, 3], nse=3)
    """
    name = "bcoo_update_layout"
    mat = bcoo(name, mat)
    batch = mat.n_batch if n_batch is None else n_batch
    dense = mat.n_dense if n_dense is None else n_dense
    check_layout(name, batch, dense, mat.ndim)
    if not is_listed(on_inefficient, ("error", "warn", None)):
        raise ArgumentError(f"{name}: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}")
    for what, new, old in (("n_batch", batch, mat.n_batch), ("n_dense", dense, mat.n_dense)):
        if new > old and on_inefficient is not None:
            message = (
                f"{name}: for an array of shape {mat.shape} {what} would grow from {old} to {new}, so many zeros "
                f"would be stored; on_inefficient=None allows this, 'warn' allows it with a warning"
            )
            if on_inefficient == "error":
                raise SparseEfficiencyError(message)
            warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
    while mat.n_dense > dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > batch:
        mat = _batch_to_sparse(mat)
    while mat.n_batch < batch:
        mat = _sparse_to_batch(mat)
    while mat.n_dense < dense:
        mat = _sparse_to_dense(mat)
    return mat


relaid = partial(bcoo_update_layout, on_inefficient=None)


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """Convert the first dense axis of an array to its last sparse axis."""
    batch, sparse, dense = kinds(mat)
    data, indices = spread(mat)
    indices = wide_indices(indices, dense[:1])
    shape = (*batch, mat.nse, dense[0], 1)
    new = pnp.broadcast_to(pnp.arange(dense[0], dtype=indices.dtype)[:, None], shape)
    old = pnp.broadcast_to(indices[..., None, :], (*shape[:-1], len(sparse)))
    whole = pnp.concatenate([old, new], axis=-1).reshape(*batch, mat.nse * dense[0], len(sparse) + 1)
    data = data.reshape(*batch, mat.nse * dense[0], *dense[1:])
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    return BCOO((data, whole), shape=mat.shape, **flags)


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """Convert the last batch axis of an array to its first sparse axis."""
    batch, sparse, dense = kinds(mat)
    data, indices = spread(mat)
    indices = wide_indices(indices, batch[-1:])
    outer, n = batch[:-1], batch[-1]
    numbers = pnp.arange(n, dtype=indices.dtype).reshape(n, 1, 1)
    first = pnp.broadcast_to(numbers, (*batch, mat.nse, 1))
    whole = pnp.concatenate([first, indices], axis=-1).reshape(*outer, n * mat.nse, len(sparse) + 1)
    return BCOO((data.reshape(*outer, n * mat.nse, *dense), whole), shape=mat.shape, unique_indices=mat.unique_indices)


def _sparse_to_batch(mat: BCOO) -> BCOO:
    """Convert the first sparse axis of an array to its last batch axis.

    At each index along this axis, copies of all stored elements are stored; those that belong to another index are
    zero.
    """
    batch, sparse, dense = kinds(mat)
    data, indices = spread(mat)
    n = len(batch)
    numbers = last_axis(pnp.arange(sparse[0], dtype=wide_indices(indices, sparse).dtype), n + 1)[..., None]
    data = pnp.broadcast_to(pnp.expand_dims(data, n), (*batch, sparse[0], mat.nse, *dense))
    indices = pnp.broadcast_to(pnp.expand_dims(indices, n), (*batch, sparse[0], mat.nse, len(sparse)))
    own = (indices[..., 0] == numbers) & inside(indices, sparse)
    parts = kept(data, own), with_padding(indices[..., 1:], own, sparse[1:])
    return BCOO(parts, shape=mat.shape, unique_indices=mat.unique_indices and len(sparse) > 1)


def _sparse_to_dense(mat: BCOO) -> BCOO:
    """Convert the last sparse axis of an array to its first dense axis."""
    batch, sparse, dense = kinds(mat)
    data, indices = spread(mat)
    size = sparse[-1]
    numbers = pnp.arange(size, dtype=wide_indices(indices, sparse).dtype)
    own = (indices[..., -1:] == last_axis(numbers, indices.ndim)) & inside(indices, sparse)[..., None]
    data = kept(pnp.broadcast_to(pnp.expand_dims(data, len(batch) + 1), (*batch, mat.nse, size, *dense)), own)
    return BCOO((data, indices[..., :-1]), shape=mat.shape, indices_sorted=mat.indices_sorted)


def fitting(x: Any, what: str, shape: Shape) -> Any:
    """Convert an operand to an array, and raise an error unless it has a shape."""
    if x.shape != shape:
        raise ShapeError(f"{what} must have shape {shape}, got {typeof(x)}")
    return x
