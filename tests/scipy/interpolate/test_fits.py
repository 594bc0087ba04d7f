"""Splines through and near values: SciPy's coefficients, and derivatives by points, values, knots and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import pullback.numpy as jnp
from pullback import errors, grad, jit
from pullback.core.config import enable_x64
from pullback.scipy.interpolate import BSpline, make_interp_spline, make_lsq_spline, make_smoothing_spline
from tests.scipy.laws import check_laws

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 8, 9))
Y = RNG.standard_normal(9)
AT = np.linspace(X[0], X[-1], 7) + 0.01
CONDITIONS: list[tuple[int, Any]] = [
    (0, None), (1, None), (2, None), (3, None), (4, None), (5, None), (3, "natural"), (3, "clamped"),
    (3, "not-a-knot"), (3, ("natural", "clamped")), (3, ([(1, 0.5)], [(2, -1.0)])),
    (4, ([(1, 0.5), (2, 0.1)], [(1, 0.2)])), (5, ("clamped", [(1, 0.0), (2, 0.0), (3, 1.0)])),
]  # fmt: skip


def by_scipy(bc: Any, shape: Any) -> Any:
    """Return conditions as SciPy takes them, with values of the shape of y without the axis."""
    if not isinstance(bc, tuple):
        return None if bc == "not-a-knot" else bc
    return tuple(end if isinstance(end, str) else [(order, np.full(shape, v)) for order, v in end] for end in bc)


@pytest.mark.parametrize(("k", "bc"), CONDITIONS)
def test_splines_through_values_are_those_of_scipy(k: int, bc: Any) -> None:
    with enable_x64():
        y = np.stack([Y, np.cos(Y)], axis=1)
        theirs = scipy.interpolate.make_interp_spline(X, y, k, bc_type=by_scipy(bc, y.shape[1:]))
        ours = make_interp_spline(X, y, k, bc_type=bc)
        np.testing.assert_array_equal(ours.c, theirs.c)
        np.testing.assert_array_equal(ours.t, theirs.t)
        traced = jit(lambda x, y: make_interp_spline(x, y, k, bc_type=bc))(X, y)
        np.testing.assert_allclose(traced.t, theirs.t, atol=1e-14)
        np.testing.assert_allclose(traced.c, theirs.c, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_periodic_splines_are_those_of_scipy(k: int) -> None:
    y = np.append(Y[:-1], Y[0])
    with enable_x64():
        theirs = scipy.interpolate.make_interp_spline(X, y, k, bc_type="periodic")
        periodic = lambda x, y: make_interp_spline(x, jnp.append(y, y[0]), k, bc_type="periodic")
        traced = jit(periodic)(X, y[:-1])
        np.testing.assert_allclose(traced.t, theirs.t, atol=1e-13)
        np.testing.assert_allclose(traced.c, theirs.c, rtol=1e-9, atol=1e-10)
        check_laws(lambda x, y: periodic(x, y)(AT), (X, y[:-1]), lambda x, y: theirs(AT), tolerance=1e-9)


def test_splines_through_values_obey_the_laws() -> None:
    with enable_x64():
        knots = lambda m, inner: m.concatenate([m.full(4, X[0]), inner, m.full(4, X[-1])])
        check_laws(
            lambda x, y: make_interp_spline(x, y)(AT), (X, Y),
            lambda x, y: scipy.interpolate.make_interp_spline(x, y)(AT), tolerance=1e-11, precision=1e-4,
        )  # fmt: skip
        check_laws(
            lambda y, t: make_interp_spline(X, y, 3, knots(jnp, t))(AT), (Y, X[2:-2] + 0.05),
            lambda y, t: scipy.interpolate.make_interp_spline(X, y, 3, knots(np, t))(AT), tolerance=1e-10, order=1,
        )  # fmt: skip
        check_laws(
            lambda x, y, a: make_interp_spline(x, y, 3, bc_type=([(1, a)], [(2, 0.3)]))(AT), (X, Y, np.float64(0.5)),
            lambda x, y, a: scipy.interpolate.make_interp_spline(x, y, 3, bc_type=([(1, a)], [(2, 0.3)]))(AT),
            tolerance=1e-11, precision=1e-4,
        )  # fmt: skip


def test_a_polynomial_is_found_again_whatever_the_points_are() -> None:
    with enable_x64():
        value = lambda x: make_interp_spline(x, x**3 - x, 3)(AT)
        np.testing.assert_allclose(value(jnp.asarray(X)), AT**3 - AT, rtol=1e-12)
        np.testing.assert_allclose(grad(lambda x: jnp.sum(value(x)))(jnp.asarray(X)), 0, atol=1e-9)


def test_complex_values_axes_and_single_precision() -> None:
    with enable_x64():
        z = Y + 1j * np.cos(Y)
        theirs = scipy.interpolate.make_interp_spline(X, z)(AT)
        np.testing.assert_allclose(make_interp_spline(X, z)(AT), theirs, atol=1e-12)
        np.testing.assert_allclose(jit(lambda z: make_interp_spline(X, z)(AT))(z), theirs, atol=1e-12)
    y = np.stack([Y, 2 * Y])
    found = make_interp_spline(X, y, axis=1)
    assert found(AT).dtype == np.float32
    assert found(AT).shape == (2, 7)
    np.testing.assert_allclose(found(AT)[1], scipy.interpolate.make_interp_spline(X, 2 * Y)(AT), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(jit(lambda y: make_interp_spline(X, y, axis=1)(AT))(y), found(AT), rtol=1e-3, atol=1e-3)


M = np.sort(RNG.uniform(0, 5, 40))
SPREAD = np.linspace(0.05, 4.95, 40)
N = np.sin(2 * M) + 0.1 * RNG.standard_normal(40)
INNER = np.array([1.0, 2.0, 2.7, 4.0])
KNOTS = np.concatenate([[-0.1] * 4, INNER, [5.1] * 4])
W = RNG.uniform(0.5, 2, 40)


def test_least_squares_splines_are_those_of_scipy_and_obey_the_laws() -> None:
    at = np.linspace(0.1, 4.9, 6)
    with enable_x64():
        knots = lambda m, inner: m.concatenate([m.full(4, -0.1), inner, m.full(4, 5.1)])
        theirs = lambda x, y, t, w: scipy.interpolate.make_lsq_spline(x, y, knots(np, t), 3, w)(at)
        check_laws(
            lambda x, y, t, w: make_lsq_spline(x, y, knots(jnp, t), 3, w)(at), (SPREAD, N, INNER, W), theirs,
            tolerance=1e-9, order=1,
        )  # fmt: skip
        check_laws(lambda y, w: make_lsq_spline(M, y, KNOTS, 3, w)(at), (N, W), tolerance=1e-10, precision=1e-4)
        plain = make_lsq_spline(M, N, KNOTS, method="norm-eq")(at)
        np.testing.assert_allclose(plain, scipy.interpolate.make_lsq_spline(M, N, KNOTS)(at), atol=1e-10)


def test_the_residual_of_least_squares_is_orthogonal_to_splines() -> None:
    with enable_x64():
        loss = lambda c, t: jnp.sum((BSpline(t, c, 3)(M) - N) ** 2)
        found = jit(lambda t: make_lsq_spline(M, N, t).c)(KNOTS)
        np.testing.assert_allclose(grad(loss)(found, KNOTS), 0, atol=1e-11)


@pytest.mark.parametrize("lam", [0.0, 0.01, 3.0, 1e4])
def test_smoothing_splines_are_those_of_scipy(lam: float) -> None:
    with enable_x64():
        theirs = scipy.interpolate.make_smoothing_spline(M, N, W, lam)
        ours = make_smoothing_spline(M, N, W, lam)
        np.testing.assert_allclose(ours.c, theirs.c, rtol=1e-13)
        traced = jit(lambda x, y, w, lam: make_smoothing_spline(x, y, w, lam))(M, N, W, lam)
        np.testing.assert_allclose(traced.t, theirs.t)
        at = np.linspace(M[0], M[-1], 50)
        np.testing.assert_allclose(traced(at), theirs(at), rtol=1e-8, atol=1e-8)


def test_smoothing_splines_obey_the_laws() -> None:
    at = np.linspace(0.5, 7, 6)
    with enable_x64():
        f = lambda x, y, w, lam: make_smoothing_spline(x, y, w, lam)(at)
        theirs = lambda x, y, w, lam: scipy.interpolate.make_smoothing_spline(x, y, w, lam)(at)
        args = X, Y, W[:9], np.float64(0.7)
        check_laws(f, args, theirs, tolerance=1e-10, precision=1e-4)
        chosen = make_smoothing_spline(M, N)
        np.testing.assert_allclose(chosen.c, scipy.interpolate.make_smoothing_spline(M, N).c)
        two = make_smoothing_spline(M, np.stack([N, 2 * N]), lam=0.1, axis=1)
        np.testing.assert_allclose(two(at)[1], 2 * make_smoothing_spline(M, N, lam=0.1)(at), rtol=1e-12)
        traced = jit(lambda y: make_smoothing_spline(M, y, lam=0.1, axis=1)(at))(np.stack([N, 2 * N]))
        np.testing.assert_allclose(traced, two(at), rtol=1e-9)


def test_singular_equations() -> None:
    with enable_x64():
        t = np.concatenate([[0.0] * 4, [0.1, 0.2, 0.3, 0.4, 0.5], [8.0] * 4])
        x = np.linspace(0, 8, 9)
        with pytest.raises(errors.SingularMatrixError):
            make_interp_spline(x, Y, 3, t)
        assert jnp.isnan(jit(lambda y: make_interp_spline(x, y, 3, t).c)(Y)).all()
        with pytest.raises(errors.SingularMatrixError, match="Schoenberg"):
            make_lsq_spline(x, Y, np.concatenate([[0.0] * 4, [0.1, 0.2, 0.3, 0.4], [8.0] * 4]))


BAD: list[tuple[Any, str]] = [
    (lambda: make_interp_spline(X, Y[:-1]), "as many elements"),
    (lambda: make_interp_spline(X[::-1], Y), "increase strictly"),
    (lambda: make_interp_spline(X, np.where(Y > 0, np.nan, Y)), "finite"),
    (lambda: make_interp_spline(X, Y, -1), "negative"),
    (lambda: make_interp_spline(X, 1.0), "at least one axis"),
    (lambda: make_interp_spline(X[:3], Y[:3]), "at least 4"),
    (lambda: make_interp_spline(X, Y, 1, bc_type="clamped"), "no conditions"),
    (lambda: make_interp_spline(X, Y, bc_type="free"), "'clamped'"),
    (lambda: make_interp_spline(X, Y, bc_type=3), "a string or a pair"),
    (lambda: make_interp_spline(X, Y, bc_type=([1.0], None)), "pairs"),
    (lambda: make_interp_spline(X, Y, bc_type=([(4, 1.0)], None)), "from 0 to 3"),
    (lambda: make_interp_spline(X, Y, bc_type=([(1, np.ones(2))], None)), "shape of y"),
    (lambda: make_interp_spline(X, Y, bc_type="periodic"), "must be equal"),
    (lambda: jit(lambda y: make_interp_spline(X, y, 3, np.arange(9.0)))(Y), "need 5 values and conditions"),
    (lambda: make_lsq_spline(M, N, KNOTS, -1), "negative"),
    (lambda: make_lsq_spline(M, N, KNOTS, w=W[:3]), "one weight for each"),
    (lambda: make_lsq_spline(M, N, KNOTS, w=-W), "positive"),
    (lambda: make_lsq_spline(M + 1, N, KNOTS), "out of bounds"),
    (lambda: make_lsq_spline(M, N, KNOTS, method="svd"), "'norm-eq'"),
    (lambda: make_smoothing_spline(M, N, lam=-1.0), "must not be negative"),
    (lambda: make_smoothing_spline(M, N, lam=np.ones(2)), "must be a number"),
    (lambda: make_smoothing_spline(M, N + 1j, lam=1.0), "must be real"),
    (lambda: make_smoothing_spline(M[:4], N[:4], lam=1.0), "at least 5"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_explained(call: Any, text: str) -> None:
    with pytest.raises((errors.ArgumentError, errors.ShapeError), match=text):
        call()


def test_what_is_not_supported_says_what_to_do() -> None:
    with pytest.raises(errors.UnsupportedArgumentError, match="pass lam"):
        jit(lambda y: make_smoothing_spline(M, y).c)(N)
    with pytest.raises(errors.UnsupportedArgumentError, match="pass t=None"):
        make_interp_spline(X, np.append(Y[:-1], Y[0]), 3, np.arange(20.0), "periodic")
