"""Colourings: valid, few colours, and an order of places from which all elements are read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pullback.derivatives import Colouring, Pattern, colour_hessian, colour_jacobian
from pullback.derivatives.patterns import bidirectional, greedy, symmetric
from pullback.derivatives.patterns.lattice import regular
from pullback.errors import ArgumentError, PatternError

ORDERS = tuple(greedy.ORDERS)


def products(matrix: Any, c: Colouring) -> np.ndarray[Any, Any]:
    """The products of a matrix with the sums of its columns and rows of each colour, one after the other."""
    of_columns, of_rows = c.counts
    parts = [matrix @ (c.columns == k) for k in range(of_columns)] + [(c.rows == k) @ matrix for k in range(of_rows)]
    return np.concatenate([np.asarray(p, float) for p in parts]) if parts else np.zeros(0)


def recovered(matrix: Any, c: Colouring) -> np.ndarray[Any, Any]:
    """The elements of the pattern of a matrix, from its products; trees are gone through edge by edge."""
    read = products(matrix, c)[c.positions]
    if c.forest is None:
        return read
    total, above = read * c.forest.signs, c.forest.above
    depth = np.zeros(len(above), int)
    for e in range(len(above)):
        at = above[e]
        while at >= 0:
            depth[e] += 1
            at = above[at]
    for e in np.argsort(-depth, kind="stable"):
        if above[e] >= 0:
            total[above[e]] += total[e]
    return (total * c.forest.signs)[c.forest.elements]


def sampled(rng: Any, shape: tuple[int, int], density: float, symmetric_: bool = False) -> np.ndarray[Any, Any]:
    a = np.where(rng.random(shape) < density, rng.uniform(1, 2, shape), 0)
    return np.triu(a) + np.triu(a, 1).T if symmetric_ else a


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_all_elements_of_a_jacobian_are_read(mode: str) -> None:
    rng = np.random.default_rng(0)
    for shape in [(1, 1), (7, 9), (30, 12), (12, 30), (25, 25)]:
        for density in (0.0, 0.1, 0.4, 1.0):
            a = sampled(rng, shape, density)
            a[:, 0] = a[:, -1] = density > 0.2  # dense columns
            c = colour_jacobian(a, mode)
            np.testing.assert_allclose(recovered(a, c), a[c.pattern.rows, c.pattern.columns])


@pytest.mark.parametrize("method", ["auto", "star", "acyclic", "columns"])
def test_all_elements_of_a_hessian_are_read(method: str) -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 8, 25):
        for density in (0.0, 0.05, 0.15, 0.4, 1.0):
            a = sampled(rng, (size, size), density, symmetric_=True)
            c = colour_hessian(a, method)
            np.testing.assert_allclose(recovered(a, c), a[c.pattern.rows, c.pattern.columns], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_star_and_acyclic_colourings_are_what_they_say(order: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        a = sampled(rng, (16, 16), 0.2, symmetric_=True)
        graph = symmetric.neighbours_of(Pattern(a).to_scipy())
        turns = greedy.ORDERS[order](graph).tolist()
        assert sorted(turns) == list(range(16))
        edges = list(zip(*graph.nonzero(), strict=True))
        star, acyclic = symmetric.star(graph, turns), symmetric.acyclic(graph, turns)
        near = {v: {int(w) for u, w in edges if u == v} for v in range(16)}
        for colours in (star, acyclic):
            assert all(colours[v] != colours[w] for v, w in edges)
        for v, w in edges:  # paths u - v - w - x have three colours
            for u in near[int(v)] - {int(w)}:
                for x in near[int(w)] - {int(v), u}:
                    assert len({star[u], star[v], star[w], star[x]}) > 2
        for p in range(acyclic.max() + 1):
            for q in range(p):
                both = np.isin(acyclic, (p, q))
                part = graph[both][:, both]
                pieces, _ = sp.csgraph.connected_components(part)
                assert part.nnz // 2 == both.sum() - pieces  # a forest


def tridiagonal(n: int) -> Any:
    return sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])


def arrow(n: int) -> np.ndarray[Any, Any]:
    a = np.eye(n)
    a[0] = a[:, 0] = 1
    return a


def test_numbers_of_colours() -> None:
    assert colour_jacobian(tridiagonal(50)).count == 3
    assert colour_jacobian(np.eye(5)).count == 1
    assert colour_jacobian(np.ones((3, 5))).count == 3
    assert colour_jacobian(np.zeros((3, 5))).count == 0
    assert colour_jacobian(arrow(30), "forward").count == 30
    assert colour_jacobian(arrow(30)).counts == (2, 1)
    assert colour_jacobian(arrow(30)[1:]).count == 2
    assert colour_hessian(arrow(30)).count == 2
    assert colour_hessian(tridiagonal(50), "star").count == 3
    assert colour_hessian(tridiagonal(50), "acyclic").count == 2
    assert colour_hessian(np.ones((4, 4))).count == 4


def several_arrows(n: int, count: int) -> np.ndarray[Any, Any]:
    """Some rows and columns without a zero, and the diagonal."""
    a = np.eye(n)
    chosen = np.random.default_rng(5).choice(n, 2 * count, replace=False)
    a[chosen[:count]] = a[:, chosen[count:]] = 1
    return a


@pytest.mark.parametrize("count", [1, 3])
def test_dense_rows_and_columns_take_few_products(count: int) -> None:
    a = several_arrows(60, count)
    c = colour_jacobian(a)
    assert c.counts == (count + 1, count)
    assert (colour_jacobian(a, "forward").count, colour_jacobian(a, "reverse").count) == (60, 60)
    assert colour_jacobian(tridiagonal(60).toarray() + a, "both").count <= 2 * count + 5


def test_a_long_row_and_column_take_no_greedy_colouring() -> None:
    """Of one kind there are as many colours as columns, and so many bits for each element of the row."""
    n = 200_000
    at, zeros = np.arange(n), np.zeros(n, np.int64)
    places = np.concatenate([at, zeros, at]), np.concatenate([at, at, zeros])
    assert colour_jacobian(sp.coo_array((np.ones(3 * n), places), shape=(n, n))).counts == (2, 1)


def test_both_are_coloured_only_where_that_saves_a_quarter() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        weights = 1 / (1 + rng.permutation(40)) ** 0.7
        a = sampled(rng, (40, 40), 0.15) * (rng.random((40, 40)) < 3 * np.outer(weights, weights[::-1]) * 40)
        counts = {mode: colour_jacobian(a, mode).count for mode in ("auto", "forward", "reverse", "both")}
        one = min(counts["forward"], counts["reverse"])
        assert counts["auto"] == (counts["both"] if counts["both"] <= int(0.75 * one) else one)


def test_elements_that_are_read_from_either_side_are_apart() -> None:
    """Random sides: every element is in a product without another of its row, or column, that has a colour."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        a = sampled(rng, (12, 15), 0.3)
        p = Pattern(a)
        mine = rng.random(p.nnz) < 0.5
        colours = bidirectional.first_fit(p.to_scipy(), mine, np.unique(p.columns[mine]).tolist())
        for i, j in zip(p.rows[mine], p.columns[mine], strict=True):
            assert np.sum((colours == colours[j]) & (a[i] != 0)) == 1


def test_acyclic_colourings_are_taken_where_they_save_half_of_the_products() -> None:
    rng = np.random.default_rng(8)
    dense = sampled(rng, (200, 200), 0.1, symmetric_=True)
    assert colour_hessian(dense).method == "acyclic"
    assert 2 * colour_hessian(dense).count <= colour_hessian(dense, "star").count
    assert colour_hessian(sampled(rng, (60, 60), 0.08, symmetric_=True)).method == "star"
    full = sampled(rng, (40, 40), 0.6, symmetric_=True)
    assert colour_hessian(full, "acyclic").count < colour_hessian(full).count  # but more than half
    assert colour_hessian(full).method == "star"


@pytest.mark.parametrize("sizes", [(15,), (10, 15), (5, 10, 15)])
@pytest.mark.parametrize("periodic", [False, True])
def test_stencils_have_as_many_colours_as_they_have_points(sizes: tuple[int, ...], periodic: bool) -> None:
    """A point and its neighbours in each direction."""
    places = np.indices(sizes).reshape(len(sizes), -1)
    count = places.shape[1]
    parts = [np.stack([np.arange(count), np.arange(count)])]
    for axis in range(len(sizes)):
        for step in (-1, 1):
            moved = places.copy()
            moved[axis] += step
            inside = np.full(count, True) if periodic else (moved[axis] >= 0) & (moved[axis] < sizes[axis])
            flat = np.ravel_multi_index(moved, sizes, mode="wrap")
            parts.append(np.stack([np.arange(count)[inside], flat[inside]]))
    rows, columns = np.concatenate(parts, axis=1)
    matrix = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    points = 2 * len(sizes) + 1
    colours = regular(Pattern(matrix).to_scipy(), [sizes])
    if not periodic or len(sizes) < 3:
        assert colours.max() + 1 == points
    c = colour_jacobian(matrix, "forward", shapes=([sizes], [sizes]))
    assert points <= c.count <= colours.max() + 1 <= points + 3
    found = recovered(matrix.tocsr().toarray() * np.arange(1, count + 1), c)
    np.testing.assert_allclose(found, 1 + c.pattern.columns)


def test_a_tridiagonal_pattern_of_a_million_columns() -> None:
    n = 1_000_000
    c = colour_jacobian(tridiagonal(n).tocsr())
    assert c.count == 3
    np.testing.assert_array_equal(np.bincount(c.columns), [n // 3 + 1, n // 3, n // 3])


def test_orders_are_tried_and_the_smallest_is_kept() -> None:
    rng = np.random.default_rng(3)
    a = sampled(rng, (40, 60), 0.08)
    counts = [colour_jacobian(a, "forward", orders=[o]).count for o in ORDERS]
    assert colour_jacobian(a, "forward").count == min(counts)
    with pytest.raises(ArgumentError, match="orders must be a sequence of names among natural"):
        colour_jacobian(a, orders=["alphabetic"])
    with pytest.raises(ArgumentError, match="orders must be"):
        colour_hessian(np.eye(3), orders="natural")


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="mode must be one of auto, forward, reverse, both, got 'up'"):
        colour_jacobian(np.eye(3), "up")
    with pytest.raises(ArgumentError, match="method must be one of auto, star, acyclic, columns, got 'up'"):
        colour_hessian(np.eye(3), "up")
    with pytest.raises(PatternError, match=r"the pattern of a Hessian must be square, got shape \(2, 3\)"):
        colour_hessian(np.ones((2, 3)))


@pytest.mark.parametrize("method", ["both", "star", "acyclic"])
def test_colourings_are_saved_and_pickled(tmp_path: Path, method: str) -> None:
    c = colour_jacobian(arrow(9)) if method == "both" else colour_hessian(arrow(9), method)
    assert c.method == method
    c.save(tmp_path / "c.npz")
    for again in (Colouring.load(tmp_path / "c.npz"), pickle.loads(pickle.dumps(c))):
        assert again.pattern == c.pattern
        assert (again.method, again.counts, repr(again)) == (c.method, c.counts, repr(c))
        np.testing.assert_allclose(recovered(arrow(9) * 3, again), np.full(c.pattern.nnz, 3))
    with np.load(tmp_path / "c.npz") as found:
        np.savez(tmp_path / "earlier.npz", **{"places" if name == "positions" else name: found[name] for name in found})
    assert Colouring.load(tmp_path / "earlier.npz").counts == c.counts
    np.savez(tmp_path / "other.npz", x=1)
    with pytest.raises(PatternError, match=r"other\.npz' does not contain a colouring"):
        Colouring.load(tmp_path / "other.npz")
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "c.npz").read_bytes()[:-9])
    with pytest.raises(PatternError, match=r"damaged\.npz' does not contain a colouring"):
        Colouring.load(tmp_path / "damaged.npz")


def test_pictures_have_a_colour_for_each_product() -> None:
    c = colour_jacobian(arrow(6))
    fills = {line.split('fill="')[1].split('"')[0] for line in c.picture().splitlines() if line.startswith("<rect x=")}
    assert len(fills) == c.count == 3
    assert c._repr_svg_() == c.picture()
    assert len(colour_jacobian(sp.eye_array(1000)).picture(100).splitlines()) == 203
