"""The derivatives "forward" and "adjoint" of ``solve_ivp``, beside those of the steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import grad, jacrev, jit
from pullback.core.errors import ArgumentError, UnsupportedArgumentError
from pullback.scipy.integrate import solve_ivp

WEIGHTS = np.array([[1.0, 2.0, -1.0], [3.0, 4.0, 0.5]])
POINT = 2.0, np.array([1.0, 0.0]), 0.1, 3.0, np.array([0.5, 1.0, 2.5])


def swing(t: Any, y: Any, k: Any) -> Any:
    return jnp.array([y[1], -k * jnp.sin(y[0])])


def loss(k: Any, y0: Any, begin: Any, end: Any, times: Any, derivative: str, method: str = "RK45") -> Any:
    options = {"rtol": 1e-8, "atol": 1e-8, "derivative": derivative, "args": (k,)}
    return jnp.sum(WEIGHTS * solve_ivp(swing, (begin, end), y0, method, times, **options).y ** 2)


@pytest.mark.parametrize("derivative", [pytest.param("adjoint", marks=pytest.mark.slow), "forward"])
def test_gradients_agree(derivative: str) -> None:
    with pb.enable_x64():
        wanted = jit(grad(lambda *a: loss(*a, "discrete"), (0, 1, 2, 3, 4)))(*POINT)
        found = jit(grad(lambda *a: loss(*a, derivative), (0, 1, 2, 3, 4)))(*POINT)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-9)


@pytest.mark.slow
def test_second_derivatives_and_eager_ones() -> None:
    k, *rest = POINT
    with pb.enable_x64():
        wanted = jacrev(grad(lambda k: loss(k, *rest, "discrete")))(k)
        np.testing.assert_allclose(jacrev(grad(lambda k: loss(k, *rest, "adjoint")))(k), wanted, rtol=1e-6)


def test_the_adjoint_of_stiff_equations() -> None:
    """The slow direction of a stiff linear system, whose adjoint is stiff backwards in time."""
    fun = lambda t, y, k: jnp.array([-1e4 * (y[0] - k * y[1]), -k * y[1]])

    def end(k: Any) -> Any:
        found = solve_ivp(fun, (0.0, 1.0), [0.0, 1.0], "Radau", args=(k,), rtol=1e-7, atol=1e-9, derivative="adjoint")
        return found.y[1, -1]

    with pb.enable_x64():
        np.testing.assert_allclose(jit(grad(end))(0.5), -np.exp(-0.5), rtol=1e-5)


def test_errors() -> None:
    end = lambda y, **more: solve_ivp(lambda t, y: -y, (0.0, 1.0), y[None], **more).y[0, -1]
    with pytest.raises(ArgumentError, match="derivative must be 'discrete', 'forward' or 'adjoint'"):
        end(jnp.asarray(1.0), derivative="exact")
    with pytest.raises(UnsupportedArgumentError, match="without dense_output, events and mass_matrix"):
        grad(lambda y: end(y, derivative="adjoint", dense_output=True))(1.0)
