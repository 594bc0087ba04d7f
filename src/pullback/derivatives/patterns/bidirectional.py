"""Colourings of columns and rows at once: each element is read from a product in forward mode, or from one in reverse.

Long rows are worth products of their own, in reverse mode, and long columns in forward mode. Which elements are read
from which is decided by Coleman and Verma 1998, *The efficient computation of sparse Jacobian matrices using automatic
differentiation*: rows and columns with the fewest elements are taken out of the matrix in turns. Elements of a row that
is taken out are read from products of columns, and those of a column from products of rows; either side needs as many
colours as the longest that it took out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

ROUNDS = 100
"""The last round takes out all that is left: each of them looks at all of that."""


def by_rows(i: Any, j: Any, shape: tuple[int, int]) -> tuple[Any, int]:
    """Which elements of a matrix are read from products of rows, and how many colours there must be at least.

    All rows are taken out at once that need no more colours than the columns have already, and the same of columns.

    Args:
      i, j: the rows and columns of the elements.
      shape: that of the matrix.
    """
    by_row = np.zeros(len(i), bool)
    left = np.arange(len(i))
    sides = [i, j]
    longest = [0, 0]  # of the rows that were taken out, and of the columns
    for number in range(ROUNDS):
        if not len(left):
            break
        lengths = [np.bincount(of[left], minlength=n) for of, n in zip(sides, shape, strict=True)]
        shortest = [int(n[n > 0].min()) for n in lengths]
        rows_out = longest[1] + max(longest[0], shortest[0]) <= longest[0] + max(longest[1], shortest[1])
        if number == ROUNDS - 1:
            shortest = [int(n.max()) for n in lengths]
        side = 0 if rows_out else 1
        longest[side] = max(longest[side], shortest[side])
        out = lengths[side][sides[side][left]] <= longest[side]
        by_row[left[out]] = side == 1
        left = left[~out]
    return by_row, sum(longest)


def first_fit(rows: Any, mine: Any, order: Iterable[int]) -> Any:
    """The colours of columns of which some elements are read, each the smallest that is free when its turn comes.

    Two columns differ if they share a row in which an element of one is read from its product.

    Args:
      rows: the matrix.
      mine: for each of its elements whether it is read from a product of columns.
      order: the columns, as their turns come; others get -1.
    """
    # Each element's number, as data of the matrix, so that the transpose tells where it was.
    numbered = type(rows)((np.arange(1, len(rows.indices) + 1), rows.indices, rows.indptr), shape=rows.shape)
    by_column = numbered.T.tocsr()
    bounds, members = by_column.indptr.tolist(), by_column.indices.tolist()
    read = mine[by_column.data - 1].tolist()
    seen = [0] * rows.shape[0]  # colours in a row, as bits of an integer
    seen_read = [0] * rows.shape[0]  # of these, those of elements that are read
    colours = np.full(rows.shape[1], -1, np.int32)
    for column in order:
        span = range(bounds[column], bounds[column + 1])
        taken = 0
        for e in span:
            taken |= seen[members[e]] if read[e] else seen_read[members[e]]
        free = ~taken & (taken + 1)
        for e in span:
            seen[members[e]] |= free
            if read[e]:
                seen_read[members[e]] |= free
        colours[column] = free.bit_length() - 1
    return colours


def smallest(rows: Any, mine: Any) -> Any:
    """The colouring of columns with the fewest colours, of those in the natural order and with long columns first."""
    counts = np.bincount(rows.indices[mine], minlength=rows.shape[1])
    used = np.flatnonzero(counts)
    by_length = used[np.argsort(-counts[used], kind="stable")]
    return min((first_fit(rows, mine, order.tolist()) for order in (by_length, used)), key=lambda c: c.max(initial=-1))
