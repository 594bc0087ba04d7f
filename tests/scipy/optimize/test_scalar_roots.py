"""Roots of functions of one number: closed forms, SciPy's, derivatives, batches, and brackets that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback.numpy as jnp
from pullback import errors, grad, jit, vmap
from pullback.core.config import enable_x64
from pullback.scipy.optimize import brentq, root_scalar

CUBES = np.linspace(0.1, 20.0, 7)


def cubic(x: Any, c: Any) -> Any:
    return x**3 - c


@pytest.mark.parametrize("method", ["brentq", "bisect", "newton", "halley", "secant", "toms748"])
def test_all_elements_have_their_roots_and_derivatives(method: str) -> None:
    with enable_x64():
        solve = lambda c: root_scalar(cubic, (c,), method, bracket=(0.0, 3.0), x0=3.0, xtol=1e-14)
        found = solve(jnp.array(CUBES))
        np.testing.assert_allclose(found.root, np.cbrt(CUBES), rtol=1e-12)
        assert found.converged.all()
        assert found.root.shape == found.iterations.shape == found.function_calls.shape == found.status.shape == (7,)
        root = lambda c: solve(c).root
        for gradient in (vmap(grad(root)), jit(vmap(grad(root))), grad(lambda c: root(c).sum())):
            np.testing.assert_allclose(gradient(jnp.array(CUBES)), CUBES ** (-2 / 3) / 3, rtol=1e-11)
        second = vmap(grad(grad(root)))(jnp.array(CUBES))
        np.testing.assert_allclose(second, -2 / 9 * CUBES ** (-5 / 3), rtol=1e-10)


HARD: list[tuple[Any, float, float]] = [
    (lambda m, x: m.exp(x) - 2 - x, -4.0, 0.0),
    (lambda m, x: (x - 1) ** 3 + 1e-3 * (x - 1), -1.0, 2.5),
    (lambda m, x: m.tanh(50 * (x - 0.3)), -10.0, 4.0),
    (lambda m, x: m.where(x < 0.7, -1.0, 1.0), -3.0, 2.0),
    (lambda m, x: x * m.exp(-(x**2)) - 1e-6, 2.0, 6.0),
    (lambda m, x: x, -1.0, 1.0),
    (lambda m, x: x - 1, 0.0, 1.0),
]


@pytest.mark.parametrize("case", range(len(HARD)))
def test_roots_are_those_of_scipy_in_as_few_steps(case: int) -> None:
    f, a, b = HARD[case]
    with enable_x64():
        root, found = brentq(lambda x: f(jnp, x), a, b, full_output=True)
        expected, other = scipy.optimize.brentq(lambda x: float(f(np, x)), a, b, full_output=True)
        assert abs(float(root) - expected) < 1e-11
        assert found.converged
        assert int(found.function_calls) <= 2 * other.function_calls + 2  # SciPy leaves `iterations` unset at an end


def test_single_precision_integers_and_shapes() -> None:
    root = brentq(lambda x, c: x**2 - c, 0, 5, (jnp.array([[1.0, 4.0], [9.0, 16.0]]),))
    assert root.dtype == np.float32
    np.testing.assert_allclose(root, [[1, 2], [3, 4]], rtol=1e-6)
    ends = brentq(lambda x: jnp.sin(x), jnp.array([3.0, 6.0]), jnp.array([[3.5], [6.5]]) * 0 + jnp.array([3.5, 6.5]))
    np.testing.assert_allclose(ends, [[np.pi, 2 * np.pi]] * 2, rtol=1e-6)


def test_brackets_without_a_root_raise_or_give_nan() -> None:
    with enable_x64():
        with pytest.raises(errors.ArgumentError, match="at 2 and 3 it is 7 and 26"):
            brentq(cubic, 2.0, 3.0, (1.0,))
        root, found = jit(lambda c: brentq(cubic, 2.0, 3.0, (c,), full_output=True))(jnp.array([1.0, 10.0]))
        np.testing.assert_array_equal(found.status, [2, 0])
        np.testing.assert_array_equal(jnp.isnan(root), [True, False])
        gradient = jit(vmap(grad(lambda c: brentq(cubic, 2.0, 3.0, (c,)))))(jnp.array([1.0, 10.0]))
        np.testing.assert_array_equal(jnp.isnan(gradient), [True, False])
        few = root_scalar(cubic, (10.0,), bracket=(2.0, 3.0), maxiter=2)
        assert (few.status, bool(few.converged)) == (1, False)
        assert jnp.isnan(brentq(cubic, 2.0, 3.0, (10.0,), maxiter=2))
        assert root_scalar(lambda x: x**2 + 1, x0=0.0).status == 3
        assert root_scalar(lambda x: x**2 + 1, x0=1.5).status == 1


def test_derivatives_of_the_user_are_called() -> None:
    calls: list[int] = []
    first = lambda x: calls.append(1) or 2 * x  # type: ignore[func-returns-value]
    second = lambda x: calls.append(2) or 2 + 0 * x  # type: ignore[func-returns-value]
    found = root_scalar(lambda x: x**2 - 2, method="halley", x0=1.0, fprime=first, fprime2=second)
    np.testing.assert_allclose(found.root, 2**0.5, rtol=1e-6)
    assert set(calls) == {1, 2}


REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: brentq(cubic, 0.0, 1.0, 2.0), errors.ArgumentError, "args must be a tuple"),
    (lambda: brentq(3, 0.0, 1.0), errors.ArgumentError, "the function must be one"),
    (lambda: brentq(lambda x: x.sum(), jnp.zeros(2), 1.0), errors.ShapeError, "must return an array of real numbers"),
    (lambda: brentq(lambda x: x, 1j, 1.0), errors.DtypeError, "points must be real"),
    (lambda: brentq(lambda x: x, -1.0, 1.0, maxiter=-1), errors.ArgumentError, "maxiter must not be negative"),
    (lambda: root_scalar(lambda x: x), errors.ArgumentError, "newton needs the starting point x0"),
    (lambda: root_scalar(lambda x: x, x0=1.0, method="brentq"), errors.ArgumentError, "needs a bracket of two ends"),
    (lambda: root_scalar(lambda x: x, x0=1.0, method="x"), errors.ArgumentError, "method must be one of brentq"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
