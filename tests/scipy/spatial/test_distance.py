"""Distances: SciPy's with all metrics and options, and derivatives by points and by the arrays of metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance as oracle

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jit
from pullback.core.config import enable_x64
from pullback.scipy.spatial import distance
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(5)
A, B = RNG.uniform(0.1, 2, (5, 3)), RNG.uniform(0.1, 2, (4, 3))
W = RNG.uniform(0.5, 2, 3)
S = RNG.standard_normal((3, 3))
REAL: list[tuple[str, dict[str, Any]]] = [
    ("braycurtis", {}), ("braycurtis", {"w": W}), ("canberra", {}), ("canberra", {"w": W}), ("chebyshev", {}),
    ("chebyshev", {"w": W}), ("cityblock", {}), ("cityblock", {"w": W}), ("correlation", {}), ("correlation", {"w": W}),
    ("cosine", {}), ("cosine", {"w": W}), ("euclidean", {}), ("euclidean", {"w": W}), ("hamming", {}),
    ("hamming", {"w": W}), ("jensenshannon", {}), ("mahalanobis", {}),
    ("mahalanobis", {"VI": S @ S.T}), ("minkowski", {}), ("minkowski", {"p": 1.0}), ("minkowski", {"p": 3.5, "w": W}),
    ("minkowski", {"p": np.inf}), ("minkowski", {"p": 0.5}), ("seuclidean", {}), ("seuclidean", {"V": W}),
    ("sqeuclidean", {}), ("sqeuclidean", {"w": W}),
]  # fmt: skip
BOOLEAN = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")


@pytest.mark.parametrize(("metric", "options"), REAL)
def test_real_metrics_are_those_of_scipy_and_obey_the_laws(metric: str, options: Any) -> None:
    arrays = {k: v for k, v in options.items() if isinstance(v, np.ndarray)}
    numbers = {k: v for k, v in options.items() if k not in arrays}
    named = lambda values: dict(zip(arrays, values, strict=True))
    with enable_x64():
        check_laws(
            lambda a, b, *v: distance.cdist(a, b, metric, **numbers, **named(v)), (A, B, *arrays.values()),
            lambda a, b, *v: oracle.cdist(a, b, metric, **numbers, **named(v)), precision=1e-4,
        )  # fmt: skip
        check_laws(
            lambda a, *v: distance.pdist(a, metric, **numbers, **named(v)), (A, *arrays.values()),
            lambda a, *v: oracle.pdist(a, metric, **numbers, **named(v)), precision=1e-4, order=1,
        )  # fmt: skip


@pytest.mark.parametrize("metric", BOOLEAN)
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_booleans_are_those_of_scipy(metric: str, weighted: bool) -> None:
    a, b = RNG.random((6, 7)) < 0.5, RNG.random((5, 7)) < 0.5
    options = {"w": np.arange(1.0, 8.0)} if weighted else {}
    with enable_x64():
        expected = oracle.cdist(a, b, metric, **options)
        f = lambda a, b: distance.cdist(a, b, metric, **options)
        np.testing.assert_allclose(f(a.astype(float), b.astype(float)), expected, rtol=1e-14)
        np.testing.assert_allclose(jit(f)(a.astype(float), b.astype(float)), expected, rtol=1e-14)
        assert not grad(lambda a: jnp.sum(f(a, b.astype(float))))(jnp.asarray(a.astype(float))).any()


def test_points_that_meet_have_finite_derivatives() -> None:
    with enable_x64():
        x = jnp.asarray(A)
        for metric in ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "canberra", "jensenshannon"):
            f = lambda x, metric=metric: jnp.sum(jnp.sin(distance.cdist(x, x, metric)))
            pairs = lambda x, metric=metric: 2 * jnp.sum(jnp.sin(distance.pdist(x, metric)))
            np.testing.assert_allclose(grad(f)(x), grad(pairs)(x), atol=1e-13)
            np.testing.assert_allclose(hessian(f)(x), hessian(pairs)(x), atol=1e-11)


def test_functions_names_and_single_precision() -> None:
    with enable_x64():
        longest = lambda u, v: jnp.max(jnp.abs(u - v))
        np.testing.assert_allclose(distance.cdist(A, B, longest), oracle.cdist(A, B, "chebyshev"))
        np.testing.assert_allclose(distance.pdist(A, longest), oracle.pdist(A, "chebyshev"))
        np.testing.assert_array_equal(distance.cdist(A, B, "Manhattan"), oracle.cdist(A, B, "cityblock"))
    found = distance.cdist(A, B)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, oracle.cdist(A, B), rtol=1e-5)
    np.testing.assert_allclose(jit(distance.cdist)(A, B), oracle.cdist(A, B), rtol=1e-5)
    assert distance.cdist(np.zeros((0, 3)), B).shape == (0, 4)
    assert distance.pdist(np.zeros((1, 3))).shape == (0,)
    assert jnp.isnan(distance.cdist(A * np.nan, B)).all()
    assert distance.cdist(A[:, ::-1][::2], B[:, ::-1]).shape == (3, 4)


def test_squareform_goes_there_and_back() -> None:
    with enable_x64():
        v = RNG.random(6)
        np.testing.assert_array_equal(distance.squareform(v), oracle.squareform(v))
        np.testing.assert_array_equal(distance.squareform(oracle.squareform(v)), v)
        np.testing.assert_array_equal(distance.squareform(np.zeros(0)), oracle.squareform(np.zeros(0)))
        assert distance.squareform(np.array([True, False, True])).dtype == bool
        check_laws(distance.squareform, (v,), oracle.squareform)
        check_laws(lambda m: distance.squareform(m, checks=False), (oracle.squareform(v),), oracle.squareform)


BAD: list[tuple[Any, str]] = [
    (lambda: distance.cdist(A[0], B), "array of points"),
    (lambda: distance.cdist(A, B[:, :2]), "equally many coordinates"),
    (lambda: distance.cdist(A, B, "near"), "metric must be"),
    (lambda: distance.cdist(A, B, p=3), "options"),
    (lambda: distance.cdist(A, B, out=A), "out must be None"),
    (lambda: distance.pdist(A, out=A), "out must be None"),
    (lambda: distance.cdist(A, B, w=W[:2]), "must have shape"),
    (lambda: distance.cdist(A, B, w=-W), "must not be negative"),
    (lambda: distance.cdist(A, B, "minkowski", p=-1), "p must be"),
    (lambda: distance.pdist(A[:2], "mahalanobis"), "pass VI"),
    (lambda: distance.squareform(np.ones(4)), "no number of points"),
    (lambda: distance.squareform(np.ones((2, 3))), "square"),
    (lambda: distance.squareform(np.ones((2, 2, 2))), "vector or a matrix"),
    (lambda: distance.squareform(np.ones((2, 2))), "zeros on its diagonal"),
    (lambda: distance.squareform(np.ones(3), "tovector"), "force"),
    (lambda: distance.squareform(np.ones(3), "round"), "'tomatrix'"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises(errors.PullbackError, match=text):
        call()
