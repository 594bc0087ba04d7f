"""Symplectic methods: orders, energy over many steps, derivatives by the backward pass that undoes the steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp
from pullback.core.config import enable_x64
from pullback.scipy.integrate import solve_hamiltonian, solve_symplectic


def orbit(method: str, steps: int) -> Any:
    start, speed = jnp.array([1.0, 0.0]), jnp.array([0.0, 1.1])
    gravity = lambda t, q: -q / jnp.sum(q * q) ** 1.5
    return solve_symplectic(gravity, (0.0, 3.0), start, speed, method=method, steps=steps, every=steps).q[:, -1]


@pytest.mark.parametrize(
    ("method", "steps", "order"), [("leapfrog", 100, 2), ("yoshida4", 100, 4), ("yoshida6", 60, 6), ("yoshida8", 24, 8)]
)
def test_the_order(method: str, steps: int, order: int) -> None:
    with enable_x64():
        reference = orbit("yoshida8", 400)
        coarse, fine = (float(abs(orbit(method, n) - reference).max()) for n in (steps, 2 * steps))
    assert np.log2(coarse / fine) > order - 0.6


def test_energy_is_kept_for_many_steps() -> None:
    with enable_x64():
        path = solve_hamiltonian(
            lambda p: p**2 / 2, lambda q: -jnp.cos(q), (0.0, 1e4), 1.0, 0.0, steps=100_000, every=1000
        )
        energy = path.p**2 / 2 - jnp.cos(path.q)
    assert path.t.shape == (101,)
    assert float(abs(energy - energy[0]).max()) < 2e-3


def test_derivatives_are_those_of_the_steps() -> None:
    def f(k: Any, end: Any) -> Any:
        force = lambda t, q: -k * jnp.sin(q) * (1 + 0.1 * jnp.sin(t))
        start = jnp.array([1.0, 0.3])
        return (solve_symplectic(force, (0.0, end), start, start, method="yoshida4", steps=12, every=4).q ** 2).sum()

    with enable_x64():
        step = 1e-6
        by_k, by_end = grad(f, (0, 1))(1.3, 5.0)
        np.testing.assert_allclose(by_k, (f(1.3 + step, 5.0) - f(1.3 - step, 5.0)) / (2 * step), rtol=1e-7)
        np.testing.assert_allclose(by_end, (f(1.3, 5.0 + step) - f(1.3, 5.0 - step)) / (2 * step), rtol=1e-7)
        np.testing.assert_allclose(jvp(f, (1.3, 5.0), (1.0, 0.0))[1], by_k, rtol=1e-9)
        np.testing.assert_allclose(jit(f)(1.3, 5.0), f(1.3, 5.0), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"method": "rk4"}, errors.ArgumentError, "method must be one of 'leapfrog'"),
        ({"every": 3}, errors.ArgumentError, "every must divide"),
        ({"v0": np.ones(3)}, errors.ShapeError, "must have one shape"),
        ({"v0": 1j * np.ones(2)}, errors.DtypeError, "must be real"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: Any, message: str) -> None:
    arguments: dict[str, Any] = {"y0": np.ones(2), "v0": np.ones(2), "steps": 4} | change
    y0, v0 = arguments.pop("y0"), arguments.pop("v0")
    with pytest.raises(error, match=message):
        solve_symplectic(lambda t, y: -y, (0.0, 1.0), y0, v0, **arguments)
