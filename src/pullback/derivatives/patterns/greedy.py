"""Greedy colourings of the columns of a matrix: columns of one colour have no row in common.

One product with the sum of the columns of a colour then contains each of their elements separately (Curtis, Powell and
Reid 1974). Gebremedhin, Manne and Pothen 2005, *What color is your Jacobian?*, surveys the methods and the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback.derivatives.patterns import boolean

MOST_EDGES = 2_000_000
"""The largest number of pairs of neighbours for which an order is computed: a million takes a second."""


def first_fit(rows: Any, order: Iterable[int]) -> Any:
    """Colour the columns of a matrix greedily: each, in order, gets the smallest colour that its rows do not have yet.

    The colours in a row are the bits of an integer, so that the work is two steps per element, and the graph of columns
    with a row in common, which one dense row makes complete, is never built.

    Args:
      rows: the matrix.
      order: the columns to colour, in order; others get -1.
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
    """Return the vertices in their natural order."""
    return np.arange(neighbours.shape[0])


def largest_first(neighbours: Any) -> Any:
    """Order vertices by decreasing degree (Welsh and Powell 1967)."""
    return np.argsort(-np.diff(neighbours.indptr), kind="stable")


def smallest_last(neighbours: Any) -> Any:
    """Remove the vertex with the fewest remaining neighbours until none is left; return them, the last removed first.

    Matula and Beck 1983, *Smallest-last ordering and clustering and graph coloring algorithms*.
    """
    return _by_degree(neighbours, largest=False)[::-1]


def incidence_degree(neighbours: Any) -> Any:
    """Order vertices so that the next has the most neighbours among those before it (Coleman and Moré 1983)."""
    return _by_degree(neighbours, largest=True)


def _by_degree(neighbours: Any, largest: bool) -> Any:
    """Order vertices greedily by their number of neighbours in the graph ``neighbours``.

    The next vertex has the fewest neighbours that are not in the order yet; or if ``largest``, the most neighbours that
    are in it already. Vertices with equally many of these neighbours share a bucket, so that each step is cheap. A
    vertex whose number changes is added to its new bucket; its stale entry in the old bucket is skipped.
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
    """Return the colouring of columns with the fewest colours, among greedy ones in several orders and ``best``.

    Args:
      rows: the matrix.
      orders: names of orders.
      members: the columns to colour; by default those with an element.
      best: an existing colouring of them.
      neighbours: the graph of columns with a row in common, if it has been computed.
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
