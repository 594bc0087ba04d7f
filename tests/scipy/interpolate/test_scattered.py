"""Scattered points: SciPy's triangles and nearest points, and derivatives by points, values and places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import pullback.numpy as jnp
from pullback import errors, grad, jit, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator, griddata
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(4)
AT = RNG.uniform(0.2, 0.8, (6, 2))


def points(n: int) -> Any:
    return RNG.uniform(0, 1, (20, n))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("rescale", [False, True])
def test_linear_interpolation_is_that_of_scipy_and_obeys_the_laws(n: int, rescale: bool) -> None:
    p, v, x = points(n) * np.arange(1, n + 1), RNG.standard_normal((20, 2)), RNG.uniform(0.4, 0.6, (4, n))
    with enable_x64():
        f = lambda p, v, x: LinearNDInterpolator(p, v, -5.0, rescale)(x)
        expected = lambda p, v, x: scipy.interpolate.LinearNDInterpolator(p, v, -5.0, rescale)(x)
        check_laws(f, (p, v, x), expected, tolerance=1e-11, precision=1e-4)
        outside = np.array([[9.0] * n, [np.nan] * n, [0.5] * n])
        np.testing.assert_allclose(jit(f)(p, v, outside), expected(p, v, outside), rtol=1e-12)
        np.testing.assert_allclose(f(p, v, outside), expected(p, v, outside), rtol=1e-12)
        slopes = grad(lambda *a: jnp.sum(f(*a)), (0, 1, 2))(*map(jnp.asarray, (p, v, outside)))
        assert all(jnp.isfinite(s).all() for s in slopes)


def test_a_linear_function_is_found_whatever_the_points_are() -> None:
    corners = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    with enable_x64():
        p = jnp.asarray(np.concatenate([corners, points(2)]))
        f = lambda p: LinearNDInterpolator(p, p @ jnp.array([2.0, -3.0]))(AT)
        np.testing.assert_allclose(f(p), AT @ [2.0, -3.0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(grad(lambda p: jnp.sum(f(p)))(p), 0, atol=1e-12)


def test_nearest_values_are_those_of_scipy() -> None:
    p, v = points(2), RNG.standard_normal((20, 2))
    with enable_x64():
        for rescale in (False, True):
            f = lambda v, x, rescale=rescale: NearestNDInterpolator(p, v, rescale)(x)
            theirs = scipy.interpolate.NearestNDInterpolator(p, v, rescale)
            check_laws(f, (v, AT), lambda v, x, theirs=theirs: theirs(x))
        assert jnp.isnan(NearestNDInterpolator(p, v)(np.array([[np.nan, 0.5]]))).all()
        np.testing.assert_array_equal(
            vmap(lambda x: NearestNDInterpolator(p, v)(x))(AT[None]), NearestNDInterpolator(p, v)(AT)[None]
        )


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_griddata_is_that_of_scipy(method: str) -> None:
    p, v = points(2), RNG.standard_normal(20)
    x, y = np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 1, 3))
    with enable_x64():
        expected = scipy.interpolate.griddata(p, v, (x, y), method, fill_value=2.0)
        np.testing.assert_allclose(griddata(p, v, (x, y), method, 2.0), expected, rtol=1e-12)
        found = jit(lambda p, v, x, y: griddata((p[:, 0], p[:, 1]), v, (x, y), method, 2.0))(p, v, x, y)
        np.testing.assert_allclose(found, expected, rtol=1e-11)
        line = scipy.interpolate.griddata(p[:, 0], v, x, method)
        np.testing.assert_allclose(griddata(p[:, 0], v, x, method), line, rtol=1e-12)
        np.testing.assert_allclose(griddata(p[:, :1], v, x, method), line, rtol=1e-12)


def test_trees_complex_values_and_single_precision() -> None:
    p, z = points(2), RNG.standard_normal(20) + 1j
    with enable_x64():
        f = LinearNDInterpolator(p, z)
        np.testing.assert_allclose(f(AT), scipy.interpolate.LinearNDInterpolator(p, z)(AT), rtol=1e-12)
        np.testing.assert_allclose(jit(lambda f, x: f(x))(tree.map(lambda v: v, f), AT), f(AT), rtol=1e-12)
        np.testing.assert_allclose(f(AT[:, 0], AT[:, 1]), f(AT), rtol=1e-12)
    assert LinearNDInterpolator(p, z.real)(AT).dtype == np.float32
    assert jit(LinearNDInterpolator(p, z.real))(jnp.asarray(AT)).dtype == np.float32
    assert repr(f) == "LinearNDInterpolator((20, 2))"


LINE = np.stack([np.arange(5.0), np.arange(5.0)], axis=1)
BAD: list[tuple[Any, str]] = [
    (lambda: LinearNDInterpolator(np.ones(3), np.ones(3)), "n at least 2"),
    (lambda: LinearNDInterpolator(LINE, np.ones(4)), "value for each of 5"),
    (lambda: LinearNDInterpolator(LINE * np.nan, np.ones(5)), "finite"),
    (lambda: LinearNDInterpolator(LINE, np.ones(5), np.ones(2)), "fill_value must be a number"),
    (lambda: LinearNDInterpolator(LINE, np.ones(5))(AT), "on a line"),
    (lambda: LinearNDInterpolator(LINE, np.ones(5))(np.ones((2, 3))), "2 coordinates"),
    (lambda: griddata(LINE, np.ones(5), AT, "best"), "'nearest'"),
    (lambda: griddata(LINE, np.ones(5), AT, "cubic"), "RBFInterpolator"),
    (lambda: griddata((), np.ones(5), AT), "tuple of arrays"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises(errors.PullbackError, match=text):
        call()
