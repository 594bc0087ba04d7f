"""Boolean matrices that hold for each element of a value the inputs that it depends on: one row an element.

They are SciPy's, by rows, so that everything below is one call of compiled code, whatever the number of elements.
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
"""How many elements a matrix may have: beyond that a derivative is not sparse, and memory ends."""


def rows_of(indptr: Any, places: Any, shape: tuple[int, int]) -> Rows:
    """A matrix of the columns of each row, in order, one row after the other."""
    return _made(np.asarray(indptr), np.asarray(places), shape)


def from_pairs(rows: Any, columns: Any, shape: tuple[int, int]) -> Rows:
    """A matrix of its elements, in any order, of which some may be there twice."""
    matrix = sp.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def identity(count: int, width: int, first: int = 0) -> Rows:
    """Each of ``count`` elements depends on itself: on the inputs ``first``, ``first + 1``, ..."""
    return rows_of(np.arange(count + 1), np.arange(first, first + count), (count, width))


def empty(count: int, width: int) -> Rows:
    """``count`` elements that depend on nothing."""
    return sp.csr_array((count, width), dtype=bool)


def select(rows: Rows, numbers: Any) -> Rows:
    """The rows of some numbers, in this order; those of -1 are empty."""
    numbers = np.asarray(numbers).ravel()
    count, width = rows.shape
    size = len(numbers)
    if size and numbers[0] == 0 and size == count and bool((numbers == np.arange(size)).all()):
        return rows
    if size and numbers[0] >= 0 and numbers[-1] == numbers[0] + size - 1 and bool((np.diff(numbers) == 1).all()):
        start, stop = rows.indptr[numbers[0]], rows.indptr[numbers[-1] + 1]
        return _made(rows.indptr[numbers[0] : numbers[-1] + 2] - start, rows.indices[start:stop], (size, width))
    # The place of each element of the result in the elements of the matrix.
    lengths = np.diff(rows.indptr)
    lengths = np.where(numbers >= 0, lengths[numbers] if count else 0, 0)
    indptr = np.zeros(size + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    check_size(int(indptr[-1]))
    first = rows.indptr[numbers if count else np.zeros(size, np.int64)] - indptr[:-1]
    at = np.arange(indptr[-1]) + np.repeat(first, lengths)
    return _made(indptr, rows.indices[at], (size, width))


def _made(indptr: Any, columns: Any, shape: tuple[int, int]) -> Rows:
    """A matrix of arrays that fit and whose columns are in order, without looking at them."""
    kind = np.int32 if len(columns) < 2**31 and max(shape) < 2**31 else np.int64
    made = copy.copy(_like(shape)) if shape[0] < 10_000 else sp.csr_array(shape, dtype=bool)
    made.indptr, made.indices = indptr.astype(kind, copy=False), columns.astype(kind, copy=False)
    made.data = np.ones(len(columns), bool)
    return made


@lru_cache(maxsize=256)
def _like(shape: tuple[int, int]) -> Rows:
    """A matrix of a shape, to copy: SciPy's constructor takes 20 µs, ten times as long."""
    return sp.csr_array(shape, dtype=bool)


def union(matrices: Sequence[Rows]) -> Rows:
    """The elements that any of some matrices of one shape has."""
    some = [m for m in matrices if len(m.indices)]
    return reduce(lambda a, b: a if a is b else a + b, some) if some else matrices[0]


def keep(rows: Rows, mask: Any) -> Rows:
    """The rows where a mask is True; the others become empty."""
    mask = np.asarray(mask).ravel()
    return rows if mask.all() else select(rows, np.where(mask, np.arange(len(mask)), -1))


def merge(rows: Rows, groups: Any, count: int) -> Rows:
    """The union of the rows of each group.

    Args:
      rows: the matrix.
      groups: for each row the number of its group, -1 for none.
      count: how many groups there are.
    """
    groups = np.asarray(groups).ravel()
    members = np.flatnonzero(groups >= 0)
    return times(from_pairs(groups[members], members, (count, rows.shape[0])), rows)


def times(which: Rows, rows: Rows) -> Rows:
    """For each row of ``which`` the union of the rows of ``rows`` that it names."""
    product = which @ rows
    check_size(product.nnz)
    product.sort_indices()
    return product


def everything(rows: Sequence[Rows], count: int) -> Rows:
    """``count`` elements, each of which depends on all that some matrices depend on."""
    columns = np.unique(np.concatenate([r.indices for r in rows]))
    check_size(len(columns) * count)
    return rows_of(np.arange(count + 1) * len(columns), np.tile(columns, count), (count, rows[0].shape[1]))


def kron(factors: Sequence[Rows]) -> Rows:
    """What happens along each axis of an array, as a matrix of its elements: the Kronecker product."""
    return reduce(_kron, factors) if factors else identity(1, 1)


def _kron(a: Rows, b: Rows) -> Rows:
    """The Kronecker product of two matrices; SciPy's takes five times as long for what loops ask for."""
    shape = a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]
    lengths = np.diff(a.indptr)
    if lengths.max(initial=0) > 1:
        return sp.csr_array(sp.kron(a, b, "csr")).astype(bool)
    check_size(a.nnz * b.nnz)
    # With one element in a row of the first, the rows of the product are those of the second, shifted.
    columns = (a.indices[:, None].astype(np.int64) * b.shape[1] + b.indices).ravel()
    counts = (lengths[:, None] * np.diff(b.indptr)).ravel()
    return _made(np.concatenate([[0], np.cumsum(counts)]), columns, shape)


def along(rows: Rows, shape: Sequence[int], axes: dict[int, Rows]) -> Rows:
    """Combine rows along some axes of an array of ``shape``: each axis by the matrix of its places."""
    return times(kron([axes.get(i, identity(n, n)) for i, n in enumerate(shape)]), rows)


def full(count: int, size: int) -> Rows:
    """A matrix without a False."""
    return rows_of(np.arange(count + 1) * size, np.tile(np.arange(size), count), (count, size))


def stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of some matrices, one after the other."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(p.indices) for p in parts)]).tolist()
    indptr = np.concatenate([[0], *(p.indptr[1:] + at for p, at in zip(parts, starts, strict=False))])
    shape = sum(p.shape[0] for p in parts), parts[0].shape[1]
    return _made(indptr, np.concatenate([p.indices for p in parts]), shape)


def columns(rows: Rows, start: int, stop: int) -> Rows:
    """Some neighbouring columns of a matrix."""
    if (start, stop) == (0, rows.shape[1]):
        return rows
    inside = (rows.indices >= start) & (rows.indices < stop)
    bounds = np.concatenate([[0], np.cumsum(inside)])
    return _made(bounds[rows.indptr], rows.indices[inside] - start, (rows.shape[0], stop - start))


def shift(count: int, by: int) -> Rows:
    """A matrix by which each of ``count`` elements becomes the one ``by`` places after it."""
    bounds = np.maximum(np.arange(count + 1) - by, 0)
    return _made(bounds, np.arange(max(count - by, 0)), (count, count))


def check_size(count: int) -> None:
    """Refuse a matrix that is too large to be worth anything."""
    if count > LARGEST:
        raise PatternError(
            f"a derivative with {count} elements that may not be zero is not sparse enough to be kept as one "
            f"(the limit is {LARGEST})"
        )
