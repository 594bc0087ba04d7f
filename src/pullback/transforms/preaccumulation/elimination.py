"""Vertex elimination: computing the Jacobian of a computational graph.

A vertex is a variable, and an edge from ``u`` to ``v`` has the partial derivative of ``v`` by ``u``. To eliminate a
vertex, connect each of its predecessors to each of its successors by the product of the two edges, added to an edge
that exists already. When only inputs and outputs are left, the edges are the Jacobian. The number of products depends
on the order; to find the best order is hard.

Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapters 9 and 10; U. Naumann, Optimal
accumulation of Jacobian matrices by elimination methods on the dual computational graph, Math. Program. 99 (2004).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

ORDERS = "markowitz", "forward", "reverse"


class Graph:
    """A computational graph, whose vertices are numbered and whose edges are partial derivatives.

    An edge goes from an operand to a result, which has a larger number.

    >>> from pullback.transforms.preaccumulation.elimination import Graph
    >>> graph = Graph(2)  # the derivative of x * y * 2 by x and y, where x is 3 and y is 5
    >>> product = graph.vertex({0: 5.0, 1: 3.0})
    >>> twice = graph.vertex({product: 2.0})
    >>> graph.eliminate([twice], "reverse", times=lambda a, b, v: a * b, plus=lambda a, b, v: a + b)
    [{0: 10.0, 1: 6.0}]

    Attributes:
      inputs: the number of inputs, which are the first vertices.
      before: for each vertex the partial derivatives by its predecessors.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.before: list[dict[int, Any]] = [{} for _ in range(inputs)]

    def vertex(self, edges: dict[int, Any]) -> int:
        """Add a vertex, and return its number.

        ``edges`` has the partial derivative of the vertex by each operand, with the number of the operand as key.
        """
        self.before.append(edges)
        return len(self.before) - 1

    def eliminate(
        self,
        outputs: Sequence[int],
        order: str,
        times: Callable[[Any, Any, int], Any],
        plus: Callable[[Any, Any, int], Any],
    ) -> list[dict[int, Any]]:
        """Compute the derivatives of outputs by inputs, by eliminating all other vertices.

        Return, for each output, its derivative by each input that it depends on, with the number of the input as key.

        Args:
          outputs: the numbers of vertices without successors.
          order: which vertex to eliminate next. ``"forward"``: the first. ``"reverse"``: the last. ``"markowitz"``: the
            vertex whose elimination takes the fewest products; the first if there are several.
          times: ``times(outer, inner, v)`` multiplies ``outer``, the derivative of ``v`` by the eliminated vertex, by
            ``inner``, the derivative of the eliminated vertex by its predecessor.
          plus: ``plus(a, b, v)`` adds two partial derivatives of ``v``.
        """
        before, after = self._reached(outputs)
        ends = {*range(self.inputs), *outputs}
        for j in _ordered([v for v in before if v not in ends], order, before, after):
            inner, successors = before.pop(j), after.pop(j)
            for i in inner:
                after[i].discard(j)
            for k in sorted(successors):
                edges = before[k]
                outer = edges.pop(j)
                for i, partial in inner.items():
                    product = times(outer, partial, k)
                    edges[i] = plus(edges[i], product, k) if i in edges else product
                    after[i].add(k)
        return [dict(sorted(before[v].items())) for v in outputs]

    def _reached(self, outputs: Collection[int]) -> tuple[dict[int, dict[int, Any]], dict[int, set[int]]]:
        """Find the vertices that the outputs depend on, and the inputs.

        Return two dictionaries with these vertices as keys: the partial derivatives of each by its predecessors; and
        the successors of each.
        """
        after: dict[int, set[int]] = {v: set() for v in (*range(self.inputs), *outputs)}
        for v in range(len(self.before) - 1, self.inputs - 1, -1):
            if v in after:
                for u in self.before[v]:
                    after.setdefault(u, set()).add(v)
        return {v: dict(self.before[v]) for v in sorted(after)}, after


def _ordered(
    vertices: list[int], order: str, before: dict[int, dict[int, Any]], after: dict[int, set[int]]
) -> Iterator[int]:
    """Yield the vertices in the order in which they are to be eliminated.

    Args:
      vertices: the vertices.
      order: ``"forward"``, ``"reverse"`` or ``"markowitz"``, see :meth:`Graph.eliminate`.
      before: the predecessors of each vertex, with partial derivatives; the caller updates it after each elimination.
      after: the successors of each vertex; also updated by the caller.
    """
    if order != "markowitz":
        yield from vertices if order == "forward" else reversed(vertices)
        return
    left = set(vertices)
    degree = {v: len(before[v]) * len(after[v]) for v in vertices}
    heap = [(d, v) for v, d in degree.items()]
    heapq.heapify(heap)
    while heap:
        d, v = heapq.heappop(heap)
        if v not in left or d != degree[v]:  # a stale entry: eliminated already, or pushed again with a new degree
            continue
        left.remove(v)
        neighbours = [u for u in (*before[v], *after[v]) if u in left]
        yield v
        for u in neighbours:
            now = len(before[u]) * len(after[u])
            if now != degree[u]:
                degree[u] = now
                heapq.heappush(heap, (now, u))
