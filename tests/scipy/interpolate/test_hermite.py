"""Cubics from local derivatives: SciPy's values, laws of derivatives, monotone data, kinks and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import errors, grad, jit, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy import interpolate
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(3)
X = np.sort(RNG.uniform(0, 5, 8))
Y = RNG.standard_normal((8, 2))
AT = np.linspace(X[0] + 0.01, X[-1] - 0.01, 9)
KINDS: list[tuple[str, Any]] = [
    ("PchipInterpolator", {}), ("Akima1DInterpolator", {}), ("Akima1DInterpolator", {"method": "makima"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), KINDS)
def test_values_are_those_of_scipy_and_obey_the_laws(name: str, options: Any) -> None:
    ours, theirs = getattr(interpolate, name), getattr(scipy.interpolate, name)
    with enable_x64():
        check_laws(
            lambda x, y: ours(x, y, **options)(AT), (X, Y), lambda x, y: theirs(x, y, **options)(AT),
            tolerance=1e-12, precision=1e-4,
        )  # fmt: skip
        for how in (True, False, "periodic"):
            outside = np.linspace(-1, 6, 9)
            f, g = ours(X, Y.T, 1, extrapolate=how, **options), theirs(X, Y.T, 1, extrapolate=how, **options)
            np.testing.assert_allclose(f(outside), g(outside), rtol=1e-10)
            np.testing.assert_allclose(f(AT, 1), g(AT, 1), rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(f.integrate(0.5, 4.0), g.integrate(0.5, 4.0), rtol=1e-10)
        assert np.isnan(ours(X, Y, **options)(X[-1] + 1)).all() == (name == "Akima1DInterpolator")


def test_hermite_splines_are_those_of_scipy_and_obey_the_laws() -> None:
    with enable_x64():
        slopes = np.cos(Y)
        f = lambda x, y, d, t: interpolate.CubicHermiteSpline(x, y, d)(t)
        check_laws(f, (X, Y, slopes, AT), lambda x, y, d, t: scipy.interpolate.CubicHermiteSpline(x, y, d)(t))
        z = Y + 1j * slopes
        found = interpolate.CubicHermiteSpline(X, z, z**2)(AT)
        np.testing.assert_allclose(found, scipy.interpolate.CubicHermiteSpline(X, z, z**2)(AT), atol=1e-13)


@settings(max_examples=12)
@given(st.lists(st.integers(-2, 2), min_size=2, max_size=7), st.sampled_from(KINDS))
def test_flat_and_turning_data_are_those_of_scipy_with_finite_derivatives(steps: list[int], kind: Any) -> None:
    name, options = kind
    y = np.cumsum([0.0, *steps])
    x = np.arange(len(y)) ** 1.5
    t = np.linspace(0, x[-1], 11)
    with enable_x64():
        f = lambda x, y: getattr(interpolate, name)(x, y, **options)(t)
        np.testing.assert_allclose(
            vmap(f)(x[None], y[None])[0], getattr(scipy.interpolate, name)(x, y, **options)(t), rtol=1e-12, atol=1e-12
        )
        slopes = grad(lambda x, y: jnp.sum(f(x, y)), (0, 1))(jnp.asarray(x), jnp.asarray(y))
        assert all(jnp.isfinite(v).all() for v in slopes)


@settings(max_examples=12)
@given(st.lists(st.floats(0, 3), min_size=2, max_size=8))
def test_pchip_is_monotone_where_the_values_are(steps: list[float]) -> None:
    y = np.cumsum([0.0, *steps])
    with enable_x64():
        fine = interpolate.PchipInterpolator(np.arange(len(y)), y)(np.linspace(0, len(y) - 1, 200))
        assert (jnp.diff(fine) >= -1e-12).all()


def test_precision_trees_and_edges() -> None:
    spline = interpolate.PchipInterpolator(X, Y)
    assert spline(AT).dtype == np.float32
    np.testing.assert_allclose(spline(AT), scipy.interpolate.PchipInterpolator(X, Y)(AT), rtol=1e-4, atol=1e-5)
    assert type(tree.map(lambda v: v, spline)) is interpolate.PchipInterpolator
    assert jit(lambda f: f(0.5))(spline).shape == (2,)
    assert jnp.isnan(spline(jnp.nan)).all()
    assert spline(jnp.zeros(0)).shape == (0, 2)
    assert interpolate.Akima1DInterpolator(X, np.zeros((8, 0)))(AT).shape == (9, 0)


BAD: list[tuple[Any, str]] = [
    (lambda: interpolate.PchipInterpolator(X, Y[1:]), "as many elements"),
    (lambda: interpolate.PchipInterpolator(X[::-1], Y), "increase strictly"),
    (lambda: interpolate.PchipInterpolator(X, Y + 1j), "must be real"),
    (lambda: interpolate.PchipInterpolator(X, Y * np.inf), "finite"),
    (lambda: interpolate.PchipInterpolator(X, 1.0), "at least one axis"),
    (lambda: interpolate.Akima1DInterpolator(X, Y + 1j), "must be real"),
    (lambda: interpolate.Akima1DInterpolator(X, Y, method="best"), "'makima'"),
    (lambda: interpolate.CubicHermiteSpline(X, Y, Y[:, 0]), "one shape"),
    (lambda: interpolate.CubicHermiteSpline(X, Y, Y * np.nan), "derivatives must be finite"),
    (lambda: interpolate.CubicHermiteSpline(X, Y, Y, extrapolate="no"), "extrapolate"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises(errors.PullbackError, match=text):
        call()
