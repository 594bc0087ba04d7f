"""Minkowski's distances and superimposed points: SciPy's values, and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial

import pullback.numpy as jnp
from pullback import errors, grad
from pullback.core.config import enable_x64
from pullback.scipy import spatial
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(7)
A, B = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, np.inf])
def test_distances_are_those_of_scipy_and_obey_the_laws(p: float) -> None:
    with enable_x64():
        for name in ("distance_matrix", "minkowski_distance", "minkowski_distance_p"):
            ours, theirs = getattr(spatial, name), getattr(scipy.spatial, name)
            check_laws(lambda a, b: ours(a, b, p), (A, B), lambda a, b: theirs(a, b, p), precision=1e-4)  # noqa: B023
        slopes = grad(lambda a: jnp.sum(spatial.distance_matrix(a, a, p)))(jnp.asarray(A))
        assert jnp.isfinite(slopes).all()


def test_procrustes_is_that_of_scipy_and_obeys_the_laws() -> None:
    with enable_x64():
        for i in range(3):
            check_laws(
                lambda a, b: spatial.procrustes(a, b)[i], (A, B),  # noqa: B023
                lambda a, b: scipy.spatial.procrustes(a, b)[i], precision=1e-4,  # noqa: B023
            )  # fmt: skip
        turned = 3 * A @ np.linalg.qr(B[:3])[0] + 1
        assert abs(spatial.procrustes(A, turned)[2]) < 1e-14


BAD: list[tuple[Any, str]] = [
    (lambda: spatial.distance_matrix(A[0], B), "sets of points"),
    (lambda: spatial.minkowski_distance(A, B[:, :2]), "equally many"),
    (lambda: spatial.minkowski_distance(A, B, 0.5), "at least 1"),
    (lambda: spatial.minkowski_distance_p(A, B, "two"), "must be a number"),
    (lambda: spatial.procrustes(A, B[1:]), "one shape"),
    (lambda: spatial.procrustes(np.ones((3, 2)), np.ones((3, 2))), "all equal"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises(errors.PullbackError, match=text):
        call()
