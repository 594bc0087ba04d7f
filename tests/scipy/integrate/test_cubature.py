"""Integrals over boxes: SciPy's values and divisions, derivatives by limits and parameters, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import pullback.numpy as jnp
from pullback import errors, grad, jit
from pullback.core.config import enable_x64
from pullback.scipy.integrate import cubature


def wave(xp: Any, width: Any) -> Any:
    return lambda x: xp.exp(-(x**2).sum(-1) * width) * xp.cos(3 * x[:, 0])


@pytest.mark.parametrize("rule", ["gk21", "gk15", "genz-malik"])
@pytest.mark.parametrize(
    ("a", "b"), [([0.0, 0.0], [1.0, 2.0]), ([0.0, -1.0], [np.inf, np.inf]), ([1.0, 0.0], [0.0, 2.0])]
)
def test_values_and_divisions_are_those_of_scipy(rule: str, a: list[float], b: list[float]) -> None:
    with enable_x64():
        options: dict[str, Any] = {"rule": rule, "rtol": 1e-6, "atol": 1e-9}
        ours = cubature(wave(jnp, 1.3), a, b, **options)
        theirs = scipy.integrate.cubature(wave(np, 1.3), a, b, **options)
        np.testing.assert_allclose(ours.estimate, theirs.estimate, rtol=1e-12)
        np.testing.assert_allclose(ours.error, theirs.error, rtol=1e-2, atol=1e-15)
        assert ours.status == theirs.status == "converged"
        assert ours.subdivisions == theirs.subdivisions


def test_derivatives_by_limits_and_parameters() -> None:
    def f(a: Any, b: Any, width: Any) -> Any:
        return cubature(wave(jnp, width), a, b, rule="genz-malik", rtol=1e-7, max_subdivisions=200).estimate

    with enable_x64():
        a, b, step = jnp.array([0.0, 0.1]), jnp.array([1.0, 2.0]), 1e-5
        np.testing.assert_allclose(jit(f)(a, b, 1.3), f(a, b, 1.3), rtol=1e-12)
        by_a, by_b, by_width = grad(f, (0, 1, 2))(a, b, 1.3)
        one, two = jnp.array([step, 0.0]), jnp.array([0.0, step])
        difference = lambda high, low: (high - low) / (2 * step)
        np.testing.assert_allclose(by_a[0], difference(f(a + one, b, 1.3), f(a - one, b, 1.3)), rtol=1e-6)
        np.testing.assert_allclose(by_b[1], difference(f(a, b + two, 1.3), f(a, b - two, 1.3)), rtol=1e-6)
        np.testing.assert_allclose(by_width, difference(f(a, b, 1.3 + step), f(a, b, 1.3 - step)), rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rule": "simpson"}, errors.ArgumentError, "rule must be one of"),
        ({"rule": "genz-malik", "a": [0.0], "b": [1.0]}, errors.ArgumentError, "at least two dimensions"),
        ({"a": [[0.0]]}, errors.ShapeError, "must be vectors"),
        ({"a": [0.0] * 3}, errors.ShapeError, "one length"),
        ({"rtol": -1.0}, errors.ArgumentError, "rtol must be"),
        ({"max_subdivisions": 0}, errors.ArgumentError, "at least 1"),
        ({"workers": 2}, errors.UnsupportedArgumentError, "workers must be 1"),
        ({"f": lambda x: jnp.zeros(7)}, errors.ShapeError, "an axis of 1 points"),
        ({"f": 3}, errors.ArgumentError, "f must be a function"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: Any, message: str) -> None:
    arguments: dict[str, Any] = {"f": lambda x: x.sum(-1), "a": [0.0, 0.0], "b": [1.0, 1.0]} | change
    f, a, b = (arguments.pop(name) for name in "fab")
    with pytest.raises(error, match=message):
        cubature(f, a, b, **arguments)
