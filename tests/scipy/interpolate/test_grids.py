"""Interpolation on grids: the methods of splines and monotone cubics, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from scipy.sparse.linalg import spsolve

import pullback.numpy as jnp
from pullback import errors, jit, tree
from pullback.core.config import enable_x64
from pullback.scipy.interpolate import RegularGridInterpolator, interpn
from tests.helpers import EXHAUSTIVE
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(1)
GRID = tuple(np.sort(RNG.uniform(0, 3, n)) for n in (7, 6))
VALUES = RNG.standard_normal((7, 6))
AT = np.stack([RNG.uniform(p[0], p[-1], 8) for p in GRID], axis=1)
METHODS = ("linear", "nearest", "slinear", "cubic", "quintic", "pchip")


def theirs(method: str, points: Any, values: Any, x: Any) -> Any:
    """SciPy's values; its splines solve their equations directly, since its iteration has eight digits."""
    more = {"solver": spsolve} if method in ("slinear", "cubic", "quintic") else {}
    return scipy.interpolate.RegularGridInterpolator(points, values, method, False, None, **more)(x)


@pytest.mark.parametrize("method", METHODS)
def test_values_are_those_of_scipy_and_obey_the_laws(method: str) -> None:
    with enable_x64():
        f = lambda p, q, v, x: RegularGridInterpolator((p, q), v, method, fill_value=None)(x)
        expected = lambda p, q, v, x: theirs(method, (p, q), v, x)
        check_laws(f, (*GRID, VALUES, AT), expected, tolerance=1e-10, precision=1e-3, order=1)
        if EXHAUSTIVE:
            check_laws(lambda v, x: f(*GRID, v, x), (VALUES, AT), precision=1e-4, tolerance=1e-10, order=2)
        outside = AT + 1.0
        np.testing.assert_allclose(f(*GRID, VALUES, outside), expected(*GRID, VALUES, outside), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("method", ["slinear", "cubic", "quintic"])
def test_orders_of_derivatives(method: str) -> None:
    with enable_x64():
        f = RegularGridInterpolator(GRID, VALUES, method)
        g = scipy.interpolate.RegularGridInterpolator(GRID, VALUES, method, solver=spsolve)
        for nu in ((1, 0), (0, 1), (1, 1)):
            np.testing.assert_allclose(f(AT, nu=nu), g(AT, nu=nu), rtol=1e-8, atol=1e-8)
            traced = jit(lambda x, nu=nu: f(x, nu=nu))(AT)
            np.testing.assert_allclose(traced, f(AT, nu=nu), rtol=1e-9, atol=1e-10)


def test_three_variables_further_axes_and_single_precision() -> None:
    grid = (*GRID, np.arange(6.0))
    values = RNG.standard_normal((7, 6, 6, 2))
    at = np.concatenate([AT, RNG.uniform(0, 5, (8, 1))], axis=1)
    with enable_x64():
        for method in METHODS:
            expected = theirs(method, grid, values, at)
            f = lambda v, x, method=method: RegularGridInterpolator(grid, v, method)(x)
            np.testing.assert_allclose(f(values, at), expected, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(jit(f)(values, at), expected, rtol=1e-8, atol=1e-8)
            whole = RegularGridInterpolator(grid, values, method)
            again = tree.map(lambda v: v, whole)
            np.testing.assert_array_equal(again(at), whole(at))
            np.testing.assert_allclose(whole(at, "cubic"), theirs("cubic", grid, values, at), rtol=1e-8, atol=1e-8)
    for method in METHODS:
        found = RegularGridInterpolator(grid, values, method)(at)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, theirs(method, grid, values, at), rtol=1e-2, atol=1e-2)


def test_fills_and_nan() -> None:
    at = np.array([[np.nan, 1.0], [9.0, 1.0], [1.0, 1.0]])
    for method in METHODS:
        f = RegularGridInterpolator(GRID, VALUES, method, fill_value=7.0)
        for call in (f, jit(f)):
            found = call(at)
            assert jnp.isnan(found[0])
            assert found[1] == 7
            assert jnp.isfinite(found[2])


def test_interpn_is_the_interpolator() -> None:
    with enable_x64():
        for method in METHODS:
            np.testing.assert_allclose(
                interpn(GRID, VALUES, AT, method), theirs(method, GRID, VALUES, AT), rtol=1e-9, atol=1e-9
            )
        with pytest.raises(errors.ArgumentError, match="out of bounds"):
            interpn(GRID, VALUES, AT + 5)


BAD: list[tuple[Any, str]] = [
    (lambda: RegularGridInterpolator(GRID, VALUES, "best"), "'quintic'"),
    (lambda: RegularGridInterpolator(GRID, VALUES)(AT, "best"), "'quintic'"),
    (lambda: RegularGridInterpolator((np.arange(3.0),), np.ones(3), "cubic"), "at least 4 coordinates"),
    (lambda: RegularGridInterpolator((np.arange(4.0),), np.ones(4))(np.ones(2), "quintic"), "at least 6 coordinates"),
    (lambda: RegularGridInterpolator(GRID, VALUES + 1j, "pchip"), "real values"),
    (lambda: RegularGridInterpolator(GRID, VALUES)(AT, nu=(1, 0)), "only splines"),
    (lambda: RegularGridInterpolator(GRID, VALUES, "cubic")(AT, nu=(1,)), "for each of 2 axes"),
    (lambda: RegularGridInterpolator(GRID, VALUES, "cubic")(AT, nu=(1, -1)), "none negative"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises(errors.PullbackError, match=text):
        call()
