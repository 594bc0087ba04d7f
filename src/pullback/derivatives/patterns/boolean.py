"""Boolean dependence matrices: row i holds the inputs that element i of a value depends on.

They are SciPy's CSR arrays, so that every function below runs in compiled code, without loops over elements.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from pullback.core.errors import PatternError

Rows = Any
"""A ``csr_array`` of booleans: all stored elements are True."""

LARGEST = 2**30
"""The largest number of elements of a matrix, to bound memory: beyond it a derivative is not sparse."""


def rows_of(indptr: Any, positions: Any, shape: tuple[int, int]) -> Rows:
    """Make a matrix from CSR arrays: ``indptr``, and the columns of the elements as ``positions``.

    The columns must be ascending in each row.
    """
    return _made(np.asarray(indptr), np.asarray(positions), shape)


def from_pairs(rows: Any, columns: Any, shape: tuple[int, int]) -> Rows:
    """Make a matrix from the row and the column of each element, in any order; duplicates are merged."""
    matrix = sp.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def identity(count: int, width: int, first: int = 0) -> Rows:
    """Return a matrix of this many rows and columns in which row i has one True, in column ``first + i``."""
    return rows_of(np.arange(count + 1), np.arange(first, first + count), (count, width))


def empty(count: int, width: int) -> Rows:
    """Return a matrix of ``count`` rows and ``width`` columns whose elements are all False."""
    return sp.csr_array((count, width), dtype=bool)


def select(rows: Rows, numbers: Any) -> Rows:
    """Return the matrix of the rows with the indices ``numbers``, in this order; -1 stands for a row of False."""
    numbers = np.asarray(numbers).ravel()
    count, width = rows.shape
    size = len(numbers)
    if size and numbers[0] == 0 and size == count and bool((numbers == np.arange(size)).all()):
        return rows
    if size and numbers[0] >= 0 and numbers[-1] == numbers[0] + size - 1 and bool((np.diff(numbers) == 1).all()):
        start, stop = rows.indptr[numbers[0]], rows.indptr[numbers[-1] + 1]
        return _made(rows.indptr[numbers[0] : numbers[-1] + 2] - start, rows.indices[start:stop], (size, width))
    # The position of each element of the result among the elements of the matrix.
    lengths = np.diff(rows.indptr)
    lengths = np.where(numbers >= 0, lengths[numbers] if count else 0, 0)
    indptr = np.zeros(size + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    check_size(int(indptr[-1]))
    first = rows.indptr[numbers if count else np.zeros(size, np.int64)] - indptr[:-1]
    at = np.arange(indptr[-1]) + np.repeat(first, lengths)
    return _made(indptr, rows.indices[at], (size, width))


def _made(indptr: Any, columns: Any, shape: tuple[int, int]) -> Rows:
    """Make a matrix from CSR arrays without checks: they must be valid, with ascending columns in each row."""
    kind = np.int32 if len(columns) < 2**31 and max(shape) < 2**31 else np.int64
    made = copy.copy(_like(shape)) if shape[0] < 10_000 else sp.csr_array(shape, dtype=bool)
    made.indptr, made.indices = indptr.astype(kind, copy=False), columns.astype(kind, copy=False)
    made.data = np.ones(len(columns), bool)
    return made


@lru_cache(maxsize=256)
def _like(shape: tuple[int, int]) -> Rows:
    """Return an empty matrix of this shape from a cache; callers change a copy of it.

    SciPy's constructor takes ten times as long as the copy, 20 µs.
    """
    return sp.csr_array(shape, dtype=bool)


def union(matrices: Sequence[Rows]) -> Rows:
    """Return the elementwise "or" of matrices of the same shape."""
    some = [m for m in matrices if len(m.indices)]
    return reduce(lambda a, b: a if a is b else a + b, some) if some else matrices[0]


def keep(rows: Rows, mask: Any) -> Rows:
    """Return the matrix with all elements set to False in the rows where ``mask`` is False."""
    mask = np.asarray(mask).ravel()
    return rows if mask.all() else select(rows, np.where(mask, np.arange(len(mask)), -1))


def merge(rows: Rows, groups: Any, count: int) -> Rows:
    """Return a matrix with a row for each group: the union of the rows in the group.

    Args:
      rows: the matrix.
      groups: for each row the number of its group; -1 if it belongs to none.
      count: the number of groups.
    """
    groups = np.asarray(groups).ravel()
    members = np.flatnonzero(groups >= 0)
    return times(from_pairs(groups[members], members, (count, rows.shape[0])), rows)


def times(which: Rows, rows: Rows) -> Rows:
    """Return the boolean matrix product: row i is the union of the rows of ``rows`` that row i of ``which`` selects."""
    product = which @ rows
    check_size(product.nnz)
    product.sort_indices()
    return product


def everything(rows: Sequence[Rows], count: int) -> Rows:
    """Return a matrix of ``count`` equal rows, each the union of all rows of all the matrices ``rows``."""
    columns = np.unique(np.concatenate([r.indices for r in rows]))
    check_size(len(columns) * count)
    return rows_of(np.arange(count + 1) * len(columns), np.tile(columns, count), (count, rows[0].shape[1]))


def kron(factors: Sequence[Rows]) -> Rows:
    """Return the Kronecker product of matrices.

    Multiplying a flattened array by it is multiplying axis i of the array by matrix i, for each i.
    """
    return reduce(_kron, factors) if factors else identity(1, 1)


def _kron(a: Rows, b: Rows) -> Rows:
    """Return the Kronecker product of two matrices.

    If no row of ``a`` has two True elements, this is faster than SciPy's function.
    """
    shape = a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]
    lengths = np.diff(a.indptr)
    if lengths.max(initial=0) > 1:
        return sp.csr_array(sp.kron(a, b, "csr")).astype(bool)
    check_size(a.nnz * b.nnz)
    # If each row of the first has one element, the rows of the product are the second's rows, shifted.
    columns = (a.indices[:, None].astype(np.int64) * b.shape[1] + b.indices).ravel()
    counts = (lengths[:, None] * np.diff(b.indptr)).ravel()
    return _made(np.concatenate([[0], np.cumsum(counts)]), columns, shape)


def along(rows: Rows, shape: Sequence[int], axes: dict[int, Rows]) -> Rows:
    """Multiply an array of rows by boolean matrices along axes of the array.

    Args:
      rows: a matrix whose rows are the elements of the array, in row-major order.
      shape: the shape of the array.
      axes: for each axis to multiply along, the matrix; an axis that is missing does not change.
    """
    return times(kron([axes.get(i, identity(n, n)) for i, n in enumerate(shape)]), rows)


def full(count: int, size: int) -> Rows:
    """Return a matrix of ``count`` rows and ``size`` columns whose elements are all True."""
    return rows_of(np.arange(count + 1) * size, np.tile(np.arange(size), count), (count, size))


def stacked(parts: Sequence[Rows]) -> Rows:
    """Stack matrices vertically: the rows of each follow those of the one before."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(p.indices) for p in parts)]).tolist()
    indptr = np.concatenate([[0], *(p.indptr[1:] + at for p, at in zip(parts, starts, strict=False))])
    shape = sum(p.shape[0] for p in parts), parts[0].shape[1]
    return _made(indptr, np.concatenate([p.indices for p in parts]), shape)


def columns(rows: Rows, start: int, stop: int) -> Rows:
    """Return the columns ``start`` to ``stop - 1`` of a matrix."""
    if (start, stop) == (0, rows.shape[1]):
        return rows
    inside = (rows.indices >= start) & (rows.indices < stop)
    bounds = np.concatenate([[0], np.cumsum(inside)])
    return _made(bounds[rows.indptr], rows.indices[inside] - start, (rows.shape[0], stop - start))


def shift(count: int, by: int) -> Rows:
    """Return a square matrix whose row i has one True, in column i - ``by``; rows before ``by`` have none.

    Multiplying ``count`` elements by it moves element i to index i + ``by``.
    """
    bounds = np.maximum(np.arange(count + 1) - by, 0)
    return _made(bounds, np.arange(max(count - by, 0)), (count, count))


def check_size(count: int) -> None:
    """Raise an error if ``count``, the number of True elements of a matrix, is more than ``LARGEST``."""
    if count > LARGEST:
        raise PatternError(
            f"a derivative with {count} possibly nonzero elements is not sparse enough (the limit is {LARGEST})"
        )
