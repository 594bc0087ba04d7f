"""Minima of functions of one number: closed forms and SciPy's, at bounds and within, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback.numpy as jnp
from pullback import errors, grad, jacobian, jit, vmap
from pullback.core.config import enable_x64
from pullback.scipy.optimize import minimize_scalar

SLOPES = np.array([1.0, 8.0, 27.0])


def quartic(x: Any, a: Any) -> Any:
    return x**4 / 4 - a * x


@pytest.mark.parametrize("how", [{}, {"bounds": (0.0, 5.0)}, {"bracket": (0.0, 1.1, 9.0)}, {"method": "golden"}])
def test_all_elements_have_their_minima_and_derivatives(how: dict[str, Any]) -> None:
    with enable_x64():
        found = minimize_scalar(quartic, args=(SLOPES[:1],), **how)
        np.testing.assert_allclose(found.x, [1.0], rtol=1e-15)
        assert found.success.all()
        if "bracket" in how:
            return
        solution = lambda a: minimize_scalar(quartic, args=(a,), **how).x
        np.testing.assert_allclose(solution(SLOPES), [1, 2, 3], rtol=1e-15)
        for gradient in (vmap(grad(solution)), jit(vmap(grad(solution)))):
            np.testing.assert_allclose(gradient(SLOPES), SLOPES ** (-2 / 3) / 3, rtol=1e-13)
        np.testing.assert_allclose(vmap(grad(grad(solution)))(SLOPES), -2 / 9 * SLOPES ** (-5 / 3), rtol=1e-12)


def test_bounds_are_solutions_and_have_their_own_derivatives() -> None:
    with enable_x64():
        solution = lambda low, high: minimize_scalar(quartic, bounds=(low, high), args=(SLOPES,)).x
        found = solution(1.5, 2.5)
        np.testing.assert_allclose(found, [1.5, 2, 2.5], rtol=1e-15)
        by_low, by_high = jacobian(solution, (0, 1))(1.5, 2.5)
        np.testing.assert_array_equal(by_low, [1, 0, 0])
        np.testing.assert_array_equal(by_high, [0, 0, 1])
        assert jnp.isnan(grad(lambda low: minimize_scalar(lambda x: (x - 1) ** 2, bounds=(low, 2.0)).x)(1.0))


HARD: list[tuple[Any, float, float]] = [
    (lambda m, x: m.sin(x) + m.cos(3 * x) / 5, 2.0, 6.5),
    (lambda m, x: m.abs(x - 0.3) + 0.1 * x, -1.0, 2.0),
    (lambda m, x: -m.exp(-((x - 2) ** 2)), -1.0, 4.0),
    (lambda m, x: (x - 1) ** 4, -3.0, 2.0),
]


@pytest.mark.parametrize("case", range(len(HARD)))
def test_values_are_not_above_those_of_scipy(case: int) -> None:
    f, a, b = HARD[case]
    with enable_x64():
        found = minimize_scalar(lambda x: f(jnp, x), bounds=(a, b))
        expected = scipy.optimize.minimize_scalar(lambda x: float(f(np, x)), bounds=(a, b), method="bounded")
        assert found.success
        assert float(found.fun) <= expected.fun + 1e-12
        assert abs(float(found.x) - expected.x) < 2e-2 if case == 3 else 1e-5


def test_a_bracket_is_sought_downhill_and_may_not_exist() -> None:
    with enable_x64():
        np.testing.assert_allclose(minimize_scalar(lambda x: (x + 300.0) ** 2).x, -300, rtol=1e-14)
        assert not minimize_scalar(lambda x: -x).success
        assert not minimize_scalar(lambda x: x**2, bracket=(1.0, 2.0, 3.0)).success


REFUSED: list[tuple[Any, str]] = [
    (lambda: minimize_scalar(jnp.sin, method="x"), "method must be 'brent', 'golden' or 'bounded'"),
    (lambda: minimize_scalar(jnp.sin, bounds=(1.0,)), "needs bounds of two numbers"),
    (lambda: minimize_scalar(jnp.sin, method="bounded"), "needs bounds of two numbers"),
    (lambda: minimize_scalar(jnp.sin, bracket=(1.0, 2.0, 3.0, 4.0)), "needs a bracket of two or three points"),
    (lambda: minimize_scalar(jnp.sin, options={"disp": 1}), "no option 'disp'"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        call()
