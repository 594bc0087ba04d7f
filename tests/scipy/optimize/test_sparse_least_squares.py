"""Least squares with Jacobians of the user, sparse and dense, and in a trust region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jit, vmap
from pullback.core.config import enable_x64
from pullback.derivatives import sparse_jacobian
from pullback.experimental.sparse import BCOO
from pullback.scipy.optimize import least_squares
from tests.helpers import largest_difference

N = 12
TIGHT: dict[str, Any] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-12}


def residuals(x: Any, a: Any) -> Any:
    """A chain of nearly linear springs, with more residuals than unknowns, that no x makes zero."""
    return jnp.concatenate([x - a, 0.2 * jnp.sin(x[1:] * x[:-1]) + 0.3 * x[1:], 0.1 * x**2])


DATA = np.random.default_rng(0).normal(size=N)
START = np.zeros(N) + 0.1


@pytest.mark.parametrize("method", ["lm", "dogleg"])
def test_sparse_jacobians_lead_to_the_solution_and_derivatives_of_dense_ones(method: str) -> None:
    with enable_x64():
        jacobian = sparse_jacobian(residuals)

        def solution(a: Any, jac: Any = jacobian) -> Any:
            return least_squares(residuals, START, (a,), jac=jac, method=method, **TIGHT).x

        found = least_squares(residuals, START, (DATA,), jac=jacobian, method=method, **TIGHT)
        expected = scipy.optimize.least_squares(lambda x: np.asarray(residuals(x, DATA)), START, **TIGHT)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-7)  # by differences, near the minimum
        assert found.success
        assert isinstance(found.jac, BCOO)
        np.testing.assert_allclose(found.jac.todense(), jacobian(found.x, DATA).todense(), rtol=1e-12)
        assert float(jnp.abs(found.grad).max()) < 1e-7
        scalar = lambda jac: lambda a: jnp.sin(solution(a, jac)).sum()
        slopes = [grad(scalar(jac))(jnp.array(DATA)) for jac in (jacobian, None)]
        assert largest_difference(*slopes) < 1e-7
        compiled = jit(lambda a: (solution(a), grad(scalar(jacobian))(a)))(jnp.array(DATA))
        assert largest_difference(compiled, (found.x, slopes[1])) < 1e-7
        if method == "dogleg":
            assert largest_difference(hessian(scalar(jacobian))(DATA), hessian(scalar(None))(DATA)) < 1e-6
            both = vmap(solution)(jnp.stack([DATA, 2 * DATA]))
            assert largest_difference(both, jnp.stack([solution(DATA), solution(2 * DATA)])) < 1e-9


def test_the_trust_region_ends_at_minima_that_are_far_away_and_in_valleys() -> None:
    rosenbrock = lambda x: jnp.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    steps: dict[str, int] = {}
    with enable_x64():
        for method in ("lm", "dogleg"):
            found = least_squares(rosenbrock, jnp.array([-1.2, 1.0]), method=method)
            np.testing.assert_allclose(found.x, 1, rtol=1e-8)
            t = jnp.linspace(0.0, 3.0, 20)
            decay = lambda x, t=t: x[0] * jnp.exp(-x[1] * t) - 3.0 * jnp.exp(-0.5 * t)
            found = least_squares(decay, jnp.array([30.0, 4.0]), method=method)
            np.testing.assert_allclose(found.x, [3, 0.5], rtol=1e-6)
            linear = least_squares(lambda x: jnp.arange(1.0, 4.0) * x - 1, jnp.zeros(3), method=method)
            steps[method] = int(linear.nit)
        assert max(steps.values()) <= 4
        flat = least_squares(lambda x: x[:1] * x[1:] - 2, jnp.ones(2), method="dogleg")  # a whole curve of minima
        assert float(flat.cost) < 1e-20
        assert least_squares(lambda x: x * 0 + 1, jnp.ones(2), method="dogleg").status == 1


def test_dense_jacobians_of_the_user() -> None:
    calls: list[int] = []
    jac = lambda x: calls.append(1) or jnp.diag(2 * x)
    found = least_squares(lambda x: x**2 - jnp.array([4.0, 9.0]), jnp.ones(2), jac=jac)
    np.testing.assert_allclose(found.x, [2, 3], rtol=1e-5)
    assert calls


@pytest.mark.parametrize(
    ("jac", "text"),
    [
        (lambda x: jnp.ones((3, 2)), r"jac must return a matrix of shape \(2, 2\), of residuals by unknowns"),
        (lambda x: BCOO.fromdense(jnp.eye(3)), r"jac must return a matrix of shape \(2, 2\)"),
    ],
)
def test_jacobians_that_do_not_fit(jac: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(errors.ShapeError, match=text):
        least_squares(lambda x: x, jnp.ones(2), jac=jac)
