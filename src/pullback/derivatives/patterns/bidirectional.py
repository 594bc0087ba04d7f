"""Bidirectional colourings: each element is read from a forward-mode or from a reverse-mode product.

Long rows deserve reverse-mode products of their own, and long columns forward-mode products. The elements are divided
as in Coleman and Verma 1998, *The efficient computation of sparse Jacobian matrices using automatic differentiation*:
rows and columns with the fewest elements are removed from the matrix in turns. Elements of removed rows are read from
products of columns, elements of removed columns from products of rows; each side needs as many colours as its longest
removed row or column has elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pullback.core.waiting import waiting

ROUNDS = 100
"""The last round removes all that is left, since each round takes time proportional to that."""


def by_rows(i: Any, j: Any, shape: tuple[int, int]) -> tuple[Any, int]:
    """Decide which elements of a sparse matrix are computed by products of rows, and which by products of columns.

    Rows and columns are removed from the matrix in rounds. A round removes either the shortest remaining rows, whose
    elements are then computed by products of columns; or the shortest remaining columns, whose elements are computed by
    products of rows. Each round chooses whichever adds fewer colours.

    Args:
      i, j: the row and the column of each element.
      shape: the shape of the matrix.

    Returns:
      For each element whether to compute it by a product of rows; and a lower bound for the total number of colours.
    """
    by_row = np.zeros(len(i), bool)
    left = np.arange(len(i))
    sides = [i, j]
    longest = [0, 0]  # of the removed rows, and of the removed columns
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


def first_fit(rows: Any, selected: Any, order: Iterable[int]) -> Any:
    """Colour columns greedily so that each selected element is the only element of its colour in its row.

    Two columns get different colours if there is a row in which both have elements, and at least one of these is
    selected.

    Args:
      rows: the sparse matrix.
      selected: a flag for each element of the matrix: whether it is read from a product of columns.
      order: the columns to colour, in order.

    Returns:
      The colour of each column; -1 for columns that are not in ``order``.
    """
    # The data of the matrix are the elements' numbers, so that its transpose is their permutation.
    numbered = type(rows)((np.arange(1, len(rows.indices) + 1), rows.indices, rows.indptr), shape=rows.shape)
    by_column = numbered.T.tocsr()
    bounds, members = by_column.indptr.tolist(), by_column.indices.tolist()
    read = selected[by_column.data - 1].tolist()
    seen = [0] * rows.shape[0]  # the colours in each row, as bits of an integer
    seen_read = [0] * rows.shape[0]  # the colours of elements that are read
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


def smallest(rows: Any, selected: Any) -> Any:
    """Colour the columns of ``rows`` so that each selected element is the only element of its colour in its row.

    Try two greedy colourings, in natural order and with long columns first. Return the colours of the one with fewer
    colours, -1 for columns without selected elements. ``selected`` has a flag for each element.
    """
    counts = np.bincount(rows.indices[selected], minlength=rows.shape[1])
    used = np.flatnonzero(counts)
    by_length = used[np.argsort(-counts[used], kind="stable")]
    with waiting("colouring"):
        found = [first_fit(rows, selected, order.tolist()) for order in (by_length, used)]
    return min(found, key=lambda c: c.max(initial=-1))
