"""Colourings of symmetric matrices, where an element may be read as its mirror image.

*Star*: neighbours differ, and every path of four vertices has three colours; each element is then read directly.
*Acyclic*: neighbours differ, and every cycle has three colours; elements are then computed from the leaves of trees
inwards. The algorithms are from Gebremedhin, Tarafdar, Manne and Pothen 2007, *New acyclic and star coloring algorithms
with application to computing Hessians*.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def neighbours_of(rows: Any) -> Any:
    """Return the adjacency matrix of the graph of a symmetric matrix: its elements off the diagonal."""
    coo = rows.tocoo()
    off = coo.row != coo.col
    return type(rows)((np.ones(int(off.sum()), bool), (coo.row[off], coo.col[off])), shape=rows.shape)


def star(neighbours: Any, order: Iterable[int]) -> Any:
    """Return a star colouring of a graph: neighbours differ, and each path of four vertices has at least three colours.

    Args:
      neighbours: the adjacency matrix of the graph, a CSR array.
      order: the vertices to colour greedily, in this order; others get the colour -1.
    """
    bounds, members = neighbours.indptr.tolist(), neighbours.indices.tolist()
    near = [members[bounds[v] : bounds[v + 1]] for v in range(len(bounds) - 1)]
    colours = [-1] * len(near)
    stars: list[dict[int, int]] = [{} for _ in near]  # the star of each edge
    hubs: list[int] = []  # the centre of each star; -1 if it is one edge
    for v in order:
        taken: set[int] = set()
        first: dict[int, int] = {}  # the first neighbour of v of each colour
        treated: set[int] = set()
        coloured = [w for w in near[v] if colours[w] >= 0]
        for w in coloured:
            colour = colours[w]
            taken.add(colour)
            if colour in first:
                for u in (first[colour], w):
                    if u not in treated:
                        taken.update(colours[x] for x in stars[u])
                        treated.add(u)
            else:
                first[colour] = w
                taken.update(colours[x] for x, s in stars[w].items() if hubs[s] == x)
        new_colour = _smallest_free(taken)
        colours[v] = new_colour
        for w in coloured:
            same = next((x for x in stars[w] if colours[x] == new_colour), None)
            if same is not None:
                number = stars[w][same]
                hubs[number] = w
            elif first[colours[w]] != w:
                number = stars[v][first[colours[w]]]
                hubs[number] = v
            else:
                number = len(hubs)
                hubs.append(-1)
            stars[v][w] = number
            stars[w][v] = number
    return np.array(colours, np.int32)


def _smallest_free(taken: set[int]) -> int:
    colour = 0
    while colour in taken:
        colour += 1
    return colour


def acyclic(neighbours: Any, order: Iterable[int]) -> Any:
    """Return an acyclic colouring of a graph: neighbours differ, and every cycle has at least three colours.

    Args:
      neighbours: the adjacency matrix of the graph, a CSR array.
      order: the vertices to colour greedily, in this order; others get the colour -1.
    """
    bounds, members = neighbours.indptr.tolist(), neighbours.indices.tolist()
    near = [members[bounds[v] : bounds[v + 1]] for v in range(len(bounds) - 1)]
    colours = [-1] * len(near)
    edges: list[dict[int, int]] = [{} for _ in near]  # the number of each edge in the forest of two-coloured trees
    above: list[int] = []

    def root(e: int) -> int:
        while above[e] != e:
            above[e] = above[above[e]]
            e = above[e]
        return e

    for v in order:
        coloured = [w for w in near[v] if colours[w] >= 0]
        taken = {colours[w] for w in coloured}
        visits: dict[int, int] = {}  # the neighbour of v through which each tree was reached
        for w in coloured:
            for x, e in edges[w].items():
                if colours[x] not in taken:
                    tree = root(e)
                    if visits.setdefault(tree, w) != w:
                        taken.add(colours[x])  # v would close a cycle
        new_colour = _smallest_free(taken)
        colours[v] = new_colour
        first: dict[int, int] = {}
        for w in coloured:
            number = len(above)
            above.append(number)
            joined = [x for x in edges[w] if colours[x] == new_colour]
            other = first.setdefault(colours[w], w)
            edges[v][w] = number
            if other != w:
                above[root(number)] = root(edges[v][other])
            for x in joined:
                above[root(number)] = root(edges[w][x])
            edges[w][v] = number
    return np.array(colours, np.int32)
