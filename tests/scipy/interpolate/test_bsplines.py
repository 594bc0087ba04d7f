"""B-splines: SciPy's values, derivatives by knots, coefficients and points, repeated knots, and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import errors, grad, jacfwd, jit, jvp, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy.interpolate import BSpline, PPoly
from tests.scipy.laws import check_laws


def problem(k: int, rest: tuple[int, ...] = (), seed: int = 0) -> tuple[Any, Any, Any]:
    """Return knots, some of them repeated at the ends, coefficients, and points inside and outside."""
    rng = np.random.default_rng(seed)
    n = k + 5
    t = np.sort(rng.uniform(0, 6, n + k + 1))
    return t, rng.standard_normal((n, *rest)), np.linspace(t[k] - 0.2, t[n] + 0.2, 9)


@pytest.mark.parametrize("how", [True, False, "periodic"])
@pytest.mark.parametrize("k", range(6))
def test_values_and_derivatives_are_those_of_scipy(k: int, how: Any) -> None:
    t, c, x = problem(k, (2,))
    with enable_x64():
        for nu in range(k + 2):
            expected = scipy.interpolate.BSpline(t, c, k, how)(x, nu)
            scale = max(1.0, np.nanmax(abs(expected), initial=1.0))
            spline = BSpline(t, c, k, how)
            np.testing.assert_allclose(spline(x, nu) / scale, expected / scale, atol=1e-13)
            traced = jit(lambda t, c, x, nu=nu: BSpline(t, c, k, how)(x, nu))(t, c, x)
            np.testing.assert_allclose(traced / scale, expected / scale, atol=1e-13)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_splines_obey_the_laws(k: int) -> None:
    t, c, x = problem(k)
    with enable_x64():
        f = lambda t, c, x: BSpline(t, c, k)(x)
        check_laws(f, (t, c, x), lambda t, c, x: scipy.interpolate.BSpline(t, c, k)(x))
        inside = x[2:-2]
        check_laws(
            lambda t, c, x: BSpline(t, c, k, "periodic")(x, 1), (t, c, inside),
            lambda t, c, x: scipy.interpolate.BSpline(t, c, k, "periodic")(x, 1),
        )  # fmt: skip


def test_the_derivative_by_points_is_the_derivative_of_the_spline() -> None:
    t, c, x = problem(3)
    with enable_x64():
        spline = BSpline(t, c, 3)
        np.testing.assert_allclose(vmap(grad(spline))(x), spline(x, 1), atol=1e-12)
        np.testing.assert_allclose(vmap(grad(grad(spline)))(x), spline(x, 2), atol=1e-11)
        np.testing.assert_allclose(spline.derivative(2)(x), spline(x, 2), atol=1e-11)
        np.testing.assert_allclose(jacfwd(lambda c: BSpline(t, c, 3)(x))(c), BSpline.design_matrix(x, t, 3, True))


def test_a_derivative_by_a_knot_is_that_of_the_refined_spline() -> None:
    # The spline whose coefficients are Greville's abscissas is the identity, whatever the knots are.
    t, _, x = problem(3)
    with enable_x64():
        identity = lambda t: BSpline(t, jnp.stack([t[i + 1 : i + 4].mean() for i in range(8)]), 3)(x)
        np.testing.assert_allclose(identity(jnp.asarray(t)), x, atol=1e-14)
        np.testing.assert_allclose(jacfwd(identity)(jnp.asarray(t)), 0, atol=1e-13)


@settings(max_examples=12)
@given(st.integers(0, 5), st.lists(st.integers(1, 4), min_size=2, max_size=5), st.integers(0, 2))
def test_repeated_knots_divide_by_nothing(k: int, repeats: list[int], nu: int) -> None:
    t = np.repeat(np.arange(len(repeats), dtype=float), repeats)
    t = np.concatenate([[t[0]] * k, t, [t[-1]] * k])
    n = len(t) - k - 1
    if n < k + 1 or t[k] == t[n]:
        return
    c = np.random.default_rng(k).standard_normal(n)
    x = np.linspace(t[k], t[n], 17)[:-1]
    with enable_x64():
        expected = scipy.interpolate.BSpline(t, c, k)(x, nu)
        f = lambda t, c, x: BSpline(t, c, k)(x, nu)
        found, slope = jvp(lambda t: f(t, c, x), (jnp.asarray(t),), (jnp.ones(len(t)),))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
        assert jnp.isfinite(slope).all()


def test_integrals_are_those_of_scipy() -> None:
    t, c, _ = problem(3, (2,))
    with enable_x64():
        for how in (True, False, "periodic"):
            ours, theirs = BSpline(t, c, 3, how), scipy.interpolate.BSpline(t, c, 3, how)
            for a, b in ((t[4], t[6] + 0.1), (t[6], t[4]), (t[3] - 0.5, t[-4] + 0.7), (-3.0, 8.0)):
                np.testing.assert_allclose(ours.integrate(a, b), theirs.integrate(a, b), rtol=1e-11, atol=1e-12)
            x = np.linspace(t[3], t[-4], 5)
            np.testing.assert_allclose(ours.antiderivative(2)(x), theirs.antiderivative(2)(x), atol=1e-12)
        f = lambda a, b: BSpline(t, c, 3).integrate(a, b)
        check_laws(f, (np.float64(t[4]), np.float64(t[6])))
        assert BSpline(t, c, 3, "periodic").antiderivative().extrapolate is False


def test_axes_complex_and_single_precision() -> None:
    t, c, x = problem(2, (3, 4))
    ours = BSpline(t, np.moveaxis(c, 0, 1), 2, axis=1)
    theirs = scipy.interpolate.BSpline(t, np.moveaxis(c, 0, 1), 2, axis=1)
    found = ours(x.reshape(3, 3))
    assert found.shape == (3, 3, 3, 4)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, theirs(x.reshape(3, 3)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.derivative()(x), theirs(x, 1), rtol=1e-3, atol=1e-3)
    with enable_x64():
        waves = c[:, 0, 0] + 1j * c[:, 1, 0]
        np.testing.assert_allclose(
            jit(lambda c: BSpline(t, c, 2)(x))(waves), scipy.interpolate.BSpline(t, waves, 2)(x), atol=1e-13
        )
    assert jit(lambda x: BSpline(t, c, 2)(x))(jnp.zeros(0)).shape == (0, 3, 4)
    assert BSpline(t, c, 2)(jnp.float32(t[3])).shape == (3, 4)
    assert BSpline(jnp.arange(8, dtype=jnp.float16), jnp.ones(5, jnp.float16), 2)(3.0).dtype == np.float32


def test_nan_and_infinite_points() -> None:
    spline = BSpline(np.arange(7.0), np.arange(4.0), 2, extrapolate=False)
    for f in (spline, jit(spline)):
        np.testing.assert_array_equal(np.isnan(f(jnp.array([jnp.nan, jnp.inf, -1.0, 3.0, -0.0]))), [1, 1, 1, 0, 1])
    step = BSpline(np.arange(3.0), np.arange(2.0), 0)
    np.testing.assert_array_equal(jit(step)(jnp.array([jnp.nan, 0.5, 5.0])), [np.nan, 0, 1])
    assert jnp.isnan(step(jnp.nan, 3))
    assert step(0.5, 3) == 0


def test_splines_are_trees_and_piecewise_polynomials() -> None:
    t, c, x = problem(3, (2,))
    with enable_x64():
        spline = BSpline(t, c, 3, "periodic", 0)
        again = tree.map(lambda v: v, spline)
        assert (again.k, again.extrapolate, again.axis) == (3, "periodic", 0)
        assert repr(again) == "BSpline(12 knots, degree 3)"
        assert [v.shape for v in again.tck[:2]] == [(12,), (8, 2)]
        np.testing.assert_allclose(jit(lambda f, x: f(x))(spline, x), spline(x), atol=1e-13)
        inside = np.linspace(t[3], t[8], 7)[:-1]
        np.testing.assert_allclose(PPoly.from_spline(BSpline(t, c, 3))(inside), spline(inside), atol=1e-12)
        turned = BSpline(t, c.T, 3, axis=1)
        np.testing.assert_allclose(PPoly.from_spline(turned)(inside), turned(inside), atol=1e-12)
        np.testing.assert_allclose(PPoly.from_spline((t, c, 3))(inside, 1), spline(inside, 1), atol=1e-11)


def test_design_matrices_and_basis_elements() -> None:
    with enable_x64():
        t, _, x = problem(3)
        inside = np.linspace(t[3], t[-4], 6)
        expected = scipy.interpolate.BSpline.design_matrix(inside, t, 3).toarray()
        np.testing.assert_allclose(BSpline.design_matrix(inside, t, 3), expected, atol=1e-14)
        np.testing.assert_allclose(jit(BSpline.design_matrix, static_argnums=2)(inside, t, 3), expected, atol=1e-14)
        theirs = scipy.interpolate.BSpline.basis_element([0, 1, 3, 4.5])
        np.testing.assert_allclose(BSpline.basis_element([0, 1, 3, 4.5])(x), theirs(x), atol=1e-13)
        with pytest.raises(errors.ArgumentError, match="out of bounds"):
            BSpline.design_matrix(x, t, 3)
        assert jnp.isnan(jit(lambda x: BSpline.design_matrix(x, t, 3))(x)[0]).all()


BAD: list[tuple[Any, str]] = [
    (lambda: BSpline([0.0, 1.0], [1.0], 1), "at least 4"),
    (lambda: BSpline([0.0, 2.0, 1.0, 3.0], [1.0, 2.0], 1), "must not decrease"),
    (lambda: BSpline([1.0, 1.0, 1.0, 1.0], [1.0, 2.0], 1), "base interval is empty"),
    (lambda: BSpline([0.0, np.nan, 1.0, 3.0], [1.0, 2.0], 1), "finite"),
    (lambda: BSpline(np.arange(6.0), [1.0, 2.0], 1), "at least 4 coefficients"),
    (lambda: BSpline(np.arange(6.0), 1.0, 1), "at least one axis"),
    (lambda: BSpline(np.arange(6.0), np.ones(4), -1), "negative"),
    (lambda: BSpline(np.arange(6.0), np.ones(4), 1, "always"), "extrapolate"),
    (lambda: BSpline(np.arange(6.0), np.ones(4), 1)(1.0, -1), "antiderivative"),
    (lambda: BSpline(np.arange(6.0), np.ones(4), 1).derivative(2), "exceeds the degree"),
    (lambda: BSpline([0, 0, 1.0, 1, 1, 2, 2], np.arange(5.0), 1).derivative(), "repeated more than 1"),
    (lambda: BSpline(np.arange(6.0), np.ones(4), 1).integrate(np.ones(2), 1.0), "limits must be numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises((errors.ArgumentError, errors.ShapeError), match=text):
        call()
