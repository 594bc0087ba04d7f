"""Delay equations: known solutions, the order of the method, derivatives by delays, and what is refused."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp
from pullback.core.config import enable_x64
from pullback.scipy.integrate import solve_dde


def exact(t: float, delay: float) -> float:
    """The solution of y' = -y(t - delay) with y = 1 before 0, by the method of steps."""
    terms = [(-1) ** k * max(t - (k - 1) * delay, 0.0) ** k / factorial(k) for k in range(1, 9)]
    return 1.0 + sum(terms)


def decay(delay: Any, steps: int) -> Any:
    return solve_dde(lambda t, y, z: -z, (0.0, 5.0), 1.0, delay, steps=steps).y[-1]


def test_the_order_is_four_although_derivatives_jump() -> None:
    """Steps do not divide the delay; where they meet the jumps changes a single halving, so two are taken together."""
    with enable_x64():
        coarse, fine = (abs(float(decay(1.0, n)) - exact(5.0, 1.0)) for n in (33, 132))
    assert fine < 2e-9
    assert np.log2(coarse / fine) / 2 > 3.5


def test_derivatives_by_a_delay() -> None:
    with enable_x64():
        expected = (exact(5.0, 1 + 1e-6) - exact(5.0, 1 - 1e-6)) / 2e-6
        f = lambda delay: decay(delay, 40)
        np.testing.assert_allclose(grad(f)(1.0), expected, rtol=1e-4)
        np.testing.assert_allclose(jvp(f, (1.0,), (1.0,))[1], grad(f)(1.0), rtol=1e-10)
        np.testing.assert_allclose(jit(f)(1.0), f(1.0), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"delays": -1.0}, errors.ArgumentError, "positive number"),
        ({"delays": 0.0}, errors.ArgumentError, "positive number"),
        ({"delays": "one"}, errors.ArgumentError, "positive number or a function"),
        ({"delays": np.ones(2)}, errors.ShapeError, "pass a list"),
        ({"steps": None}, errors.ArgumentError, "either steps="),
        ({"t_span": (1.0, 0.0)}, errors.ArgumentError, "must not go back"),
        ({"fun": lambda t, y, z: jnp.ones(3)}, errors.ShapeError, "fun must return"),
        ({"fun": None}, errors.ArgumentError, "fun must be a function"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: Any, message: str) -> None:
    arguments: dict[str, Any] = {
        "fun": lambda t, y, z: -z, "t_span": (0.0, 1.0), "history": jnp.ones(2), "delays": 1.0, "steps": 4,
    } | change  # fmt: skip
    leading = [arguments.pop(name) for name in ("fun", "t_span", "history", "delays")]
    with pytest.raises(error, match=message):
        solve_dde(*leading, **arguments)
