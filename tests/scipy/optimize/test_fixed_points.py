"""Fixed points: closed forms, derivatives, batches, and iterations that do not converge."""

from __future__ import annotations

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jacobian, jit, vmap
from pullback.core.config import enable_x64
from pullback.scipy.optimize import fixed_point


@pytest.mark.parametrize("method", ["del2", "iteration"])
def test_fixed_points_and_their_derivatives(method: str) -> None:
    with enable_x64():
        matrix = jnp.array([[0.2, -0.1], [0.3, 0.1]])
        solution = lambda b: fixed_point(lambda x: matrix @ x + b, jnp.zeros(2), xtol=1e-14, method=method)
        inverse = np.linalg.inv(np.eye(2) - matrix)
        b = jnp.array([1.0, 2.0])
        np.testing.assert_allclose(solution(b), inverse @ b, rtol=1e-13)
        np.testing.assert_allclose(jacobian(solution)(b), inverse, rtol=1e-13)
        np.testing.assert_allclose(jit(vmap(solution))(jnp.stack([b, 2 * b]))[1], 2 * inverse @ b, rtol=1e-13)
        root = lambda c: fixed_point(lambda x: jnp.sqrt(x + c), 1.0, xtol=1e-14, method=method)
        closed = lambda c: (1 + jnp.sqrt(1 + 4 * c)) / 2
        for derivative in (grad, lambda f: grad(grad(f)), lambda f: jit(grad(f))):
            np.testing.assert_allclose(derivative(root)(2.0), derivative(closed)(2.0), rtol=1e-13)


def test_iterations_that_do_not_converge_are_nan() -> None:
    assert jnp.isnan(fixed_point(lambda x: 2 * x + 1, 1.0, method="iteration"))
    np.testing.assert_allclose(fixed_point(lambda x: 2 * x + 1, 1.0), -1, rtol=1e-6)  # accelerated
    assert fixed_point(lambda x: x, jnp.zeros(0)).shape == (0,)


def test_bad_input() -> None:
    with pytest.raises(errors.ArgumentError, match="method must be 'del2' or 'iteration'"):
        fixed_point(jnp.sin, 1.0, method="x")
    with pytest.raises(errors.ShapeError, match="func must return an array of real numbers of shape"):
        fixed_point(lambda x: x[:1], jnp.ones(2))
