"""Radial basis functions: SciPy's values with all kernels, neighbours, and derivatives by all arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import pullback.numpy as jnp
from pullback import errors, grad, jit, tree
from pullback.core.config import enable_x64
from pullback.scipy.interpolate import RBFInterpolator
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(2)
POINTS = RNG.uniform(0, 1, (12, 2))
VALUES = RNG.standard_normal((12, 2))
AT = RNG.uniform(0, 1, (5, 2))
KERNELS = (
    "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic",
    "gaussian",
)  # fmt: skip
SHAPED = KERNELS[4:]


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_are_those_of_scipy_and_obey_the_laws(kernel: str) -> None:
    epsilon = 1.5 if kernel in SHAPED else None
    with enable_x64():
        f = lambda y, d, x, s: RBFInterpolator(y, d, None, s, kernel, epsilon)(x)
        expected = lambda y, d, x, s: scipy.interpolate.RBFInterpolator(y, d, None, s, kernel, epsilon)(x)
        args = POINTS, VALUES, AT, RNG.uniform(0.1, 0.5, 12)
        check_laws(f, args, expected, tolerance=1e-9, order=1)
        check_laws(f, args, tolerance=1e-9, precision=1e-3)
        for degree in (-1, 0, 1, 2):
            if degree < {"thin_plate_spline": 1, "cubic": 1, "quintic": 2, "linear": 0, "multiquadric": 0}.get(
                kernel, -1
            ):
                continue
            ours = RBFInterpolator(POINTS, VALUES, kernel=kernel, epsilon=epsilon, degree=degree)(AT)
            theirs = scipy.interpolate.RBFInterpolator(
                POINTS, VALUES, kernel=kernel, epsilon=epsilon, degree=degree
            )(AT)  # fmt: skip
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kernel", ["thin_plate_spline", "gaussian"])
def test_neighbours_count_only(kernel: str) -> None:
    with enable_x64():
        f = lambda y, d, x: RBFInterpolator(y, d, 6, 0.01, kernel, 1.5)(x)
        expected = lambda y, d, x: scipy.interpolate.RBFInterpolator(y, d, 6, 0.01, kernel, 1.5)(x)
        check_laws(f, (POINTS, VALUES, AT), expected, tolerance=1e-8, precision=1e-3, order=1)
        check_laws(
            lambda y, d, x: RBFInterpolator(y, d, 1, degree=0, kernel="linear")(x), (POINTS, VALUES, AT),
            lambda y, d, x: scipy.interpolate.RBFInterpolator(y, d, 1, degree=0, kernel="linear")(x),
        )  # fmt: skip


def test_it_passes_through_the_values_and_has_finite_derivatives_there() -> None:
    with enable_x64():
        for kernel in KERNELS[:4]:
            f = lambda y, d, x, kernel=kernel: RBFInterpolator(y, d, kernel=kernel)(x)
            np.testing.assert_allclose(jit(f)(POINTS, VALUES, POINTS), VALUES, atol=1e-9)
            slopes = grad(lambda *args, f=f: jnp.sum(jnp.sin(f(*args))), (0, 1, 2))(
                *map(jnp.asarray, (POINTS, VALUES, POINTS))
            )
            assert all(jnp.isfinite(v).all() for v in slopes)


def test_derivatives_by_the_shape_parameter() -> None:
    with enable_x64():
        f = lambda e: RBFInterpolator(POINTS, VALUES[:, 0], kernel="gaussian", epsilon=e)(AT)
        check_laws(f, (np.float64(2.0),), tolerance=1e-7, precision=1e-4)


def test_trees_complex_values_and_single_precision() -> None:
    with enable_x64():
        z = VALUES[:, 0] + 1j * VALUES[:, 1]
        theirs = scipy.interpolate.RBFInterpolator(POINTS, z)(AT)
        ours = RBFInterpolator(POINTS, z)
        np.testing.assert_allclose(ours(AT), theirs, atol=1e-10)
        np.testing.assert_allclose(jit(lambda f, x: f(x))(ours, AT), theirs, atol=1e-10)
        assert repr(tree.map(lambda v: v, ours)) == "RBFInterpolator(12 points, thin_plate_spline)"
    found = RBFInterpolator(POINTS, VALUES)(AT)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, scipy.interpolate.RBFInterpolator(POINTS, VALUES)(AT), rtol=1e-2, atol=1e-2)
    assert jit(RBFInterpolator(POINTS, VALUES))(jnp.zeros((0, 2))).shape == (0, 2)


BAD: list[tuple[Any, str]] = [
    (lambda: RBFInterpolator(POINTS[:, 0], VALUES), "array of points"),
    (lambda: RBFInterpolator(POINTS, VALUES[1:]), "value for each of 12"),
    (lambda: RBFInterpolator(POINTS, VALUES, kernel="box"), "kernel must be one of"),
    (lambda: RBFInterpolator(POINTS, VALUES, kernel="gaussian"), "epsilon must be given"),
    (lambda: RBFInterpolator(POINTS, VALUES, epsilon=np.ones(2)), "epsilon must be a number"),
    (lambda: RBFInterpolator(POINTS, VALUES, smoothing=np.ones(2)), "a vector of 12"),
    (lambda: RBFInterpolator(POINTS, VALUES, 0), "neighbors must be positive"),
    (lambda: RBFInterpolator(POINTS, VALUES, 2), "at least 3 points"),
    (lambda: RBFInterpolator(POINTS, VALUES, degree=-2), "at least -1"),
    (lambda: RBFInterpolator(POINTS, VALUES)(AT[:, :1]), "shape \\(q, 2\\)"),
    (lambda: RBFInterpolator(np.ones((12, 2)), VALUES), "singular"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises(errors.PullbackError, match=text):
        call()
