"""Greedy colourings of the columns of a matrix: columns of one colour have no row in common.

One product with the sum of the columns of a colour then contains each of their elements separately (Curtis, Powell and
Reid 1974). Gebremedhin, Manne and Pothen 2005, *What color is your Jacobian?*, surveys the methods and the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.waiting import waiting
from pullback.derivatives.patterns import boolean

MOST_EDGES = 2_000_000
"""The largest number of pairs of neighbours for which an order is computed: a million takes a second."""


def first_fit(rows: Any, order: Sequence[int]) -> Any:
    """Colour the columns of a matrix greedily: each gets the smallest colour that does not occur in its rows yet.

    The colours used in a row are the bits of an integer. So the work is two steps per element, and the graph of columns
    with a row in common is never built: one dense row would make this graph complete.

    Args:
      rows: the matrix, a CSR array.
      order: the columns to colour, in this order.

    Returns:
      The colour of each column; -1 for columns that are not in ``order``.
    """
    by_column = rows.T.tocsr()
    bounds, members = by_column.indptr.tolist(), by_column.indices.tolist()
    seen = [0] * rows.shape[0]
    colours = np.full(rows.shape[1], -1, np.int32)
    with waiting("colouring", "columns", len(order), lambda: int(np.count_nonzero(colours >= 0))):
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
    """Return the numbers of the vertices of a graph, an adjacency matrix, in ascending order."""
    return np.arange(neighbours.shape[0])


def largest_first(neighbours: Any) -> Any:
    """Return the vertices of a graph, an adjacency matrix, by decreasing degree (Welsh and Powell 1967)."""
    return np.argsort(-np.diff(neighbours.indptr), kind="stable")


def smallest_last(neighbours: Any) -> Any:
    """Return the vertices of a graph, an adjacency matrix, in smallest-last order.

    Repeatedly remove the vertex that has the fewest neighbours left. The vertex removed last comes first in the order.
    Matula and Beck 1983, *Smallest-last ordering and clustering and graph coloring algorithms*.
    """
    return _by_degree(neighbours, largest=False)[::-1]


def incidence_degree(neighbours: Any) -> Any:
    """Return the vertices of a graph in an order where the next one has the most neighbours before it.

    ``neighbours`` is the adjacency matrix of the graph (Coleman and Moré 1983).
    """
    return _by_degree(neighbours, largest=True)


def _by_degree(neighbours: Any, largest: bool) -> Any:
    """Order the vertices of a graph greedily by numbers of neighbours; return the vertices in this order.

    If ``largest`` is True, the next vertex is the vertex with the most neighbours among those already in the order. If
    it is False, the next vertex is the vertex with the fewest neighbours among those not yet in the order.

    Vertices with equal numbers of these neighbours share a bucket, so that each step is cheap. A vertex whose number
    changes is added to another bucket; its stale entry in the old bucket is skipped.

    Args:
      neighbours: the adjacency matrix of the graph.
      largest: which of the two orders to return.
    """
    count = neighbours.shape[0]
    bounds, members = neighbours.indptr.tolist(), neighbours.indices.tolist()
    degrees = np.diff(neighbours.indptr).tolist()
    step = 1 if largest else -1
    number = [0] * count if largest else list(degrees)
    first = np.argsort(
        degrees, kind="stable"
    ).tolist()  # ties: the vertex with the most neighbours, popped from the end
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
    """Colour the columns of a matrix greedily in several orders; return the colouring with the fewest colours.

    Args:
      rows: the matrix, a CSR array.
      orders: the names of the orders to try.
      members: the columns to colour; None for all columns with an element.
      best: an existing colouring of these columns, returned if no order needs fewer colours; or None.
      neighbours: the graph of columns with a row in common, if it has been computed.

    Returns:
      The colour of each column; -1 for columns that are not coloured.
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
