"""Greedy colourings of the columns of a matrix: columns of one colour have no row in common.

One product with the sum of the columns of a colour then has each of their elements by itself (Curtis, Powell and Reid
1974). Gebremedhin, Manne and Pothen 2005, *What color is your Jacobian?*, is the survey, also of the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback.derivatives.patterns import boolean

MOST_EDGES = 2_000_000
"""How many pairs of neighbours an order may look at: going through a million takes a second."""


def first_fit(rows: Any, order: Iterable[int]) -> Any:
    """The colours of the columns of a matrix, each the smallest that is free when its turn comes.

    A row keeps the colours that it has seen as the bits of an integer, so that the work is two steps an element, and
    the graph of columns with a row in common, which one dense row makes complete, is never made.

    Args:
      rows: the matrix.
      order: the columns, as their turns come; others get -1.
    """
    by_column = rows.T.tocsr()
    bounds, members = by_column.indptr.tolist(), by_column.indices.tolist()
    seen = [0] * rows.shape[0]
    colours = np.full(rows.shape[1], -1, np.int32)
    for j in order:
        touched = members[bounds[j] : bounds[j + 1]]
        taken = 0
        for i in touched:
            taken |= seen[i]
        free = ~taken & (taken + 1)
        for i in touched:
            seen[i] |= free
        colours[j] = free.bit_length() - 1
    return colours


# Orders --------------------------------------------------------------------------------------------------------------


def natural(neighbours: Any) -> Any:
    """From the first vertex to the last."""
    return np.arange(neighbours.shape[0])


def largest_first(neighbours: Any) -> Any:
    """Vertices with many neighbours first (Welsh and Powell 1967)."""
    return np.argsort(-np.diff(neighbours.indptr), kind="stable")


def smallest_last(neighbours: Any) -> Any:
    """Last the vertex with the fewest neighbours, before it the one with the fewest among the others, and so on.

    Matula and Beck 1983, *Smallest-last ordering and clustering and graph coloring algorithms*.
    """
    return _by_degree(neighbours, largest=False)[::-1]


def incidence_degree(neighbours: Any) -> Any:
    """Next the vertex with the most neighbours that have had their turn (Coleman and Moré 1983)."""
    return _by_degree(neighbours, largest=True)


def _by_degree(neighbours: Any, largest: bool) -> Any:
    """Vertices by the number of neighbours left (the smallest next), or of those that went before (the largest next).

    Buckets of vertices of one number make each step cheap; a vertex whose number changed is put in its new bucket, and
    is passed by in the old one.
    """
    count = neighbours.shape[0]
    bounds, members = neighbours.indptr.tolist(), neighbours.indices.tolist()
    degrees = np.diff(neighbours.indptr).tolist()
    step = 1 if largest else -1
    number = [0] * count if largest else list(degrees)
    first = np.argsort(
        degrees, kind="stable"
    ).tolist()  # of equals, the one with the most neighbours: taken from the end
    buckets: list[list[int]] = [[] for _ in range(max(degrees, default=0) + 2)]
    for v in first:
        buckets[number[v]].append(v)
    done = [False] * count
    order: list[int] = []
    at = 0
    while len(order) < count:
        while not buckets[at]:
            at += -1 if largest else 1
        v = buckets[at].pop()
        if done[v] or number[v] != at:
            continue
        done[v] = True
        order.append(v)
        for w in members[bounds[v] : bounds[v + 1]]:
            if not done[w] and w != v:
                number[w] += step
                buckets[number[w]].append(w)
        at = min(at + 1, len(buckets) - 1) if largest else max(at - 1, 0)
    return np.array(order, np.int64)


ORDERS: dict[str, Callable[[Any], Any]] = {
    "natural": natural,
    "largest_first": largest_first,
    "smallest_last": smallest_last,
    "incidence_degree": incidence_degree,
}
"""The orders in which vertices are coloured, by name."""


def smallest(rows: Any, orders: Sequence[str], members: Any = None, best: Any = None, neighbours: Any = None) -> Any:
    """The colouring of columns with the fewest colours, of those by some orders and one that is there already.

    Args:
      rows: the matrix.
      orders: names of orders.
      members: the columns to be coloured; by default those with an element.
      best: colours of them that are there already.
      neighbours: the graph of columns with a row in common, if that is known.
    """
    lengths = np.diff(rows.indptr)
    least = int(lengths.max(initial=0))
    if best is not None and best.max(initial=-1) + 1 <= least:
        return best
    used = np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1])) if members is None else members
    wanted = np.zeros(rows.shape[1], bool)
    wanted[used] = True
    for name in orders:
        if best is not None and best.max(initial=-1) + 1 <= least:
            break
        if name == "natural":
            order = used
        else:
            if neighbours is None:
                if int((lengths.astype(np.int64) ** 2).sum()) > MOST_EDGES:
                    break
                neighbours = boolean.times(rows.T.tocsr(), rows)
            order = ORDERS[name](neighbours)
            order = order[wanted[order]]
        found = first_fit(rows, order.tolist())
        if best is None or found.max(initial=-1) < best.max(initial=-1):
            best = found
    return np.full(rows.shape[1], -1, np.int32) if best is None else best
