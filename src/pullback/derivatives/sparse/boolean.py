"""Boolean matrices that hold for each element of a value the inputs that it depends on: one row an element.

They are SciPy's, by rows, so that everything below is one call of compiled code, whatever the number of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from pullback.core.errors import PatternError

Rows = Any
"""A ``csr_array`` of booleans: all stored elements are True."""

LARGEST = 2**30
"""How many elements a matrix may have: beyond that a derivative is not sparse, and memory ends."""


def rows_of(indptr: Any, columns: Any, shape: tuple[int, int]) -> Rows:
    """A matrix of the columns of each row, one row after the other."""
    return sp.csr_array((np.ones(len(columns), bool), columns, indptr), shape=shape)


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
    if len(numbers) == count and np.array_equal(numbers, np.arange(count)):
        return rows
    if len(numbers) > count:
        lengths = np.append(np.diff(rows.indptr), 0)
        check_size(int(lengths[numbers].sum()))
    extended = sp.csr_array(
        (rows.data, rows.indices, np.append(rows.indptr, rows.indptr[-1])), shape=(count + 1, width)
    )
    return extended[numbers]


def union(matrices: Sequence[Rows]) -> Rows:
    """The elements that any of some matrices of one shape has."""
    return reduce(lambda a, b: a if a is b else a + b, matrices)


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
    return sp.csr_array(reduce(lambda a, b: sp.kron(a, b, "csr"), factors, identity(1, 1))).astype(bool)


def along(rows: Rows, shape: Sequence[int], axes: dict[int, Rows]) -> Rows:
    """Combine rows along some axes of an array of ``shape``: each axis by the matrix of its places."""
    return times(kron([axes.get(i, identity(n, n)) for i, n in enumerate(shape)]), rows)


def full(count: int, size: int) -> Rows:
    """A matrix without a False."""
    return rows_of(np.arange(count + 1) * size, np.tile(np.arange(size), count), (count, size))


def stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of some matrices, one after the other."""
    return parts[0] if len(parts) == 1 else sp.vstack(parts, "csr")


def check_size(count: int) -> None:
    """Refuse a matrix that is too large to be worth anything."""
    if count > LARGEST:
        raise PatternError(
            f"a derivative with {count} elements that may not be zero is not sparse enough to be kept as one "
            f"(the limit is {LARGEST})"
        )
