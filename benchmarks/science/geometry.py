"""Rows of ``scipy.spatial``: distances and nearest neighbours of points in three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.spatial as oracle
from scipy.spatial import distance as oracle_distance

from benchmarks.science.rows import Part, Row
from pullback.scipy import spatial
from pullback.scipy.spatial import distance

SIDE, LARGE = 100, 10_000
METRICS = (
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean", "jensenshannon",
    "mahalanobis", "minkowski", "seuclidean", "sqeuclidean",
)  # fmt: skip


def sets(m: int, n: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes two sets of points, of positive coordinates."""

    def make() -> Sequence[Any]:
        rng = np.random.default_rng(0)
        return rng.uniform(0.5, 2, (m, 3)), rng.uniform(0.5, 2, (n, 3))

    return make


def by_metric(metric: str) -> Row:
    """Return a row of a metric: the distances of 10,000 points to 10 others."""
    options: dict[str, Any] = {"p": 3.0} if metric == "minkowski" else {}
    return Row(
        f"scipy.spatial.distance.cdist:{metric}", f'(XA, XB, metric="{metric}", **kwargs)',
        lambda a, b: distance.cdist(a, b, metric, **options),
        lambda a, b: oracle_distance.cdist(a, b, metric, **options),
        sets(5, 4), sets(LARGE, 10),
    )  # fmt: skip


def row(name: str, signature: str, call: Callable[..., Any], small: Any, large: Any, **more: Any) -> Row:
    """Return a row of a function of ``scipy.spatial``, or of its module ``distance``."""
    return Row(
        f"scipy.spatial.{name}", signature, lambda *a: call(spatial, *a), lambda *a: call(oracle, *a), small, large,
        **more,
    )  # fmt: skip


def one(points: Callable[[], Sequence[Any]]) -> Callable[[], Sequence[Any]]:
    """Return the function that makes the first of two sets."""
    return lambda: points()[:1]


def distances(n: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes a vector of distances."""
    return lambda: [np.random.default_rng(0).uniform(0.5, 2, n)]


PART = Part(
    "Geometry",
    "`scipy.spatial`: distances of 10,000 points in three dimensions to 10 others, of all pairs of 142, and the\n"
    "4 nearest of 10,000 points to 10,000 others. A distance of zero has the derivative zero.",
    (
        *(by_metric(metric) for metric in METRICS),
        row(
            "distance.pdist", "(X, metric, **kwargs)", lambda m, x: m.distance.pdist(x), one(sets(5, 1)),
            one(sets(142, 1)),
        ),
        row(
            "distance.squareform", "(X, force, checks)", lambda m, x: m.distance.squareform(x), distances(6),
            distances(9870),
        ),
        row(
            "distance_matrix", "(x, y, p, threshold)", lambda m, a, b: m.distance_matrix(a, b), sets(5, 4),
            sets(SIDE, SIDE),
        ),
        row(
            "minkowski_distance", "(x, y, p, threshold)", lambda m, a, b: m.minkowski_distance(a, b, 3), sets(5, 5),
            sets(LARGE, LARGE),
        ),
        row(
            "minkowski_distance_p", "(x, y, p, threshold)", lambda m, a, b: m.minkowski_distance_p(a, b, 3), sets(5, 5),
            sets(LARGE, LARGE),
        ),
        row("procrustes", "(data1, data2)", lambda m, a, b: m.procrustes(a, b)[1], sets(5, 5), sets(10_000, 10_000)),
        row(
            "KDTree", "(data, leafsize)", lambda m, a, b: m.KDTree(a).query(b, 4)[0], sets(9, 4), sets(10_000, 10_000),
            note="`query(x, k, eps, p, distance_upper_bound)`; `query_ball_point` and `query_pairs` are SciPy's own.",
        ),
    ),
)  # fmt: skip
