"""Elimination of vertices: each order makes the same Jacobian, of as many products as are counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.transforms.preaccumulation.elimination import ORDERS, Graph


def jacobian(graph: Graph, outputs: list[int], order: str) -> tuple[np.ndarray, int]:
    """The Jacobian of a graph with numbers at its edges, and how many products it took."""
    products = []

    def times(outer: float, inner: float, v: int) -> float:
        products.append(v)
        return outer * inner

    rows = graph.eliminate(outputs, order, times, lambda a, b, v: a + b)
    return np.array([[row.get(i, 0.0) for i in range(graph.inputs)] for row in rows]), len(products)


def random_graph(seed: int) -> tuple[Graph, list[int], np.ndarray]:
    """A graph, its outputs, and its Jacobian as the solution of a triangular system."""
    rng = np.random.default_rng(seed)
    inputs, inner, outputs = rng.integers(1, 4), rng.integers(0, 9), rng.integers(1, 4)
    graph = Graph(int(inputs))
    for _ in range(inner):
        known = len(graph.before)
        chosen = rng.choice(known, min(known, int(rng.integers(1, 4))), replace=False)
        graph.vertex({int(u): float(rng.normal()) for u in chosen})
    known = len(graph.before)
    ends = []
    for _ in range(outputs):
        chosen = rng.choice(known, min(known, int(rng.integers(1, 4))), replace=False)
        ends.append(graph.vertex({int(u): float(rng.normal()) for u in chosen}))
    size = len(graph.before)
    local = np.zeros((size, size))
    for v, edges in enumerate(graph.before):
        for u, x in edges.items():
            local[v, u] = x
    total = np.linalg.inv(np.eye(size) - local)
    return graph, ends, total[np.ix_(ends, range(int(inputs)))]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(12))
def test_every_order_makes_the_jacobian(order: str, seed: int) -> None:
    graph, outputs, expected = random_graph(seed)
    np.testing.assert_allclose(jacobian(graph, outputs, order)[0], expected, rtol=1e-12, atol=1e-12)
    again = jacobian(graph, outputs, order)[0]  # the graph is as it was
    np.testing.assert_array_equal(again, jacobian(graph, outputs, order)[0])


def two_parts() -> tuple[Graph, list[int]]:
    """One input that three outputs depend on, and three that one depends on, each by way of a chain of two vertices."""
    graph = Graph(4)
    first = graph.vertex({0: 2.0})
    second = graph.vertex({first: 3.0})
    outputs = [graph.vertex({second: float(k)}) for k in (5, 7, 11)]
    first = graph.vertex({1: 2.0, 2: 3.0, 3: 5.0})
    second = graph.vertex({first: 7.0})
    return graph, [*outputs, graph.vertex({second: 11.0})]


@pytest.mark.parametrize(("order", "count"), [("forward", 1 + 3 + 3 + 3), ("reverse", 3 + 3 + 1 + 3), ("markowitz", 8)])
def test_the_products_of_each_order(order: str, count: int) -> None:
    graph, outputs = two_parts()
    found, products = jacobian(graph, outputs, order)
    np.testing.assert_array_equal(found, [[30, 0, 0, 0], [42, 0, 0, 0], [66, 0, 0, 0], [0, 154, 231, 385]])
    assert products == count


def test_a_vertex_that_no_output_depends_on_takes_no_product() -> None:
    graph = Graph(2)
    used = graph.vertex({0: 2.0})
    idle = graph.vertex({0: 3.0, 1: 4.0})
    graph.vertex({idle: 5.0})
    end = graph.vertex({used: 7.0})
    for order in ORDERS:
        found, products = jacobian(graph, [end], order)
        np.testing.assert_array_equal(found, [[14.0, 0.0]])
        assert products == 1


def test_the_degree_of_a_vertex_changes_with_its_neighbours() -> None:
    """Of degree 4, but of degree 6 once its neighbour is gone: the order looks again."""
    graph = Graph(3)
    low = graph.vertex({0: 1.0, 1: 1.0, 2: 1.0})  # three times one
    middle = graph.vertex({low: 1.0, 0: 1.0})  # two times two, and three times two after
    ends = [graph.vertex({middle: 1.0}), graph.vertex({middle: 2.0})]
    found, products = jacobian(graph, ends, "markowitz")
    np.testing.assert_array_equal(found, [[2.0, 1.0, 1.0], [4.0, 2.0, 2.0]])
    assert products == 3 + 6


def labels(graph: Graph, outputs: list[int], order: str) -> list[dict[int, Any]]:
    return graph.eliminate(outputs, order, lambda a, b, v: f"({a}{b})", lambda a, b, v: f"{a}+{b}")


def test_an_edge_between_input_and_output_takes_the_sum() -> None:
    graph = Graph(1)
    v = graph.vertex({0: "a"})
    end = graph.vertex({v: "b", 0: "c"})
    assert labels(graph, [end], "forward") == [{0: "c+(ba)"}]
