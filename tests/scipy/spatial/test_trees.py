"""Trees of points: SciPy's neighbours, derivatives of distances, and what is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial

import pullback.numpy as jnp
from pullback import errors, grad, jit, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy.spatial import KDTree, trees
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(6)
POINTS = RNG.uniform(0, 1, (30, 3))
AT = RNG.uniform(0, 1, (4, 3))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("k", [1, 3, [2, 4]])
def test_neighbours_are_those_of_scipy_and_obey_the_laws(p: float, k: Any) -> None:
    with enable_x64():
        theirs = lambda data, x: scipy.spatial.KDTree(data).query(x, k, p=p)
        check_laws(
            lambda data, x: KDTree(data).query(x, k, p=p)[0], (POINTS, AT), lambda data, x: theirs(data, x)[0],
            precision=1e-4,
        )  # fmt: skip
        found = jit(lambda data, x: KDTree(data).query(x, k, p=p)[1])(POINTS, AT)
        np.testing.assert_array_equal(found, theirs(POINTS, AT)[1])
        np.testing.assert_array_equal(KDTree(POINTS).query(AT, k, p=p)[1], theirs(POINTS, AT)[1])


def test_missing_neighbours_and_distances_of_zero() -> None:
    with enable_x64():
        f = lambda data, x: KDTree(data).query(x, 3, distance_upper_bound=0.2)
        expected = scipy.spatial.KDTree(POINTS).query(AT, 3, distance_upper_bound=0.2)
        for call in (f, jit(f), vmap(f, (None, 0))):
            for ours, theirs in zip(call(POINTS, AT), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        near = grad(lambda data, x: jnp.sum(jnp.nan_to_num(f(data, x)[0], posinf=0.0)), (0, 1))
        assert all(jnp.isfinite(v).all() for v in near(jnp.asarray(POINTS), jnp.asarray(POINTS[:4])))
        more = KDTree(POINTS[:2]).query(AT[0], 3)
        assert more[0][2] == np.inf
        assert more[1][2] == 2


def test_balls_and_pairs_are_those_of_scipy() -> None:
    with enable_x64():
        ours, theirs = KDTree(POINTS), scipy.spatial.KDTree(POINTS)
        assert list(ours.query_ball_point(AT, 0.4)) == list(theirs.query_ball_point(AT, 0.4))
        assert sorted(ours.query_ball_point(AT[0], 0.4, p=1.0)) == sorted(theirs.query_ball_point(AT[0], 0.4, p=1.0))
        counts = ours.query_ball_point(AT, np.full(4, 0.4), return_length=True)
        np.testing.assert_array_equal(counts, theirs.query_ball_point(AT, 0.4, return_length=True))
        assert ours.query_pairs(0.2) == theirs.query_pairs(0.2)
        assert ours.query_pairs(0.2, output_type="ndarray").shape == (len(theirs.query_pairs(0.2)), 2)
        with pytest.raises(errors.ConcretizationTypeError, match="fixed k"):
            jit(lambda x: KDTree(x).query_pairs(0.2, output_type="ndarray"))(POINTS)
        with pytest.raises(errors.ConcretizationTypeError, match="fixed k"):
            vmap(lambda x: ours.query_ball_point(x, 0.2, return_length=True))(AT)


def test_trees_are_pytrees_and_are_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    kept = trees.Kept(lambda points, leafsize: built.append(1) or scipy.spatial.cKDTree(points, leafsize))
    monkeypatch.setattr(trees, "_trees", kept)
    found = KDTree(POINTS, 4)
    assert (found.n, found.m, found.leafsize) == (30, 3, 4)
    for _ in range(3):
        jit(lambda t, x: t.query(x)[0])(tree.map(lambda v: v, found), AT)
    assert len(built) == 1
    for i in range(20):
        KDTree(POINTS + i, 4).query(AT)
    KDTree(POINTS, 4).query(AT)
    assert len(built) == 21
    assert repr(found) == "KDTree((30, 3))"
    assert found.query(AT)[0].dtype == np.float32
    assert jit(found.query)(jnp.asarray(AT))[0].dtype == np.float32


BAD: list[tuple[Any, str]] = [
    (lambda: KDTree(POINTS[0]), "array of points"),
    (lambda: KDTree(POINTS * np.nan), "finite"),
    (lambda: KDTree(POINTS, 0), "leafsize must be positive"),
    (lambda: KDTree(POINTS).query(AT[:, :2]), "3 coordinates"),
    (lambda: KDTree(POINTS).query(AT, 0), "k must be positive"),
    (lambda: KDTree(POINTS).query(AT, [0, 1]), "k must be positive"),
    (lambda: KDTree(POINTS).query(AT, p=0.5), "at least 1"),
    (lambda: KDTree(POINTS).query_pairs(1.0, output_type="list"), "'ndarray'"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises(errors.PullbackError, match=text):
        call()
