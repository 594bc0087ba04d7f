"""Programs as Python functions of NumPy's numbers have the values of the programs, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, make_jaxpr
from pullback.core.config import enable_x64
from pullback.core.jaxpr import eval_jaxpr
from pullback.scipy.integrate import solve_ivp
from pullback.scipy.integrate.host_programs import by_numpy

CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "numbers": lambda t, y, k: jnp.array([y[1], -k * jnp.sin(y[0]) / (t + y[2] ** 2), y[0] - y[1] ** 3]),
    "stacked": lambda t, y, k: jnp.stack([y[2], k, 1.5 * y[0]]),
    "whole": lambda t, y, k: -k * y + jnp.cos(t),
    "a part": lambda t, y, k: jnp.concatenate([y[1:2] * k, y[:2]]),
    "one element, twice": lambda t, y, k: jnp.concatenate([y[1:2], jnp.exp(y[1:2]), y[1:2]]),
    "from the end": lambda t, y, k: jnp.array([y[-1], y[-2], 0.0]),
    "backwards": lambda t, y, k: y[::-1] + jnp.sum(y),
    "itself": lambda t, y, k: y,
    "a choice": lambda t, y, k: jnp.where(y > k, y, jnp.array([1.0, 2.0, 3.0])),
    "integers": lambda t, y, k: jnp.array([y[0].astype(int) // 2, 7, y[1].astype(int)]) * y,
    "division by zero": lambda t, y, k: jnp.array([y[0] / (y[1] - y[1]), -1 / (k * 0), y[2]]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_program(name: str, dtype: str) -> None:
    if dtype == "complex64" and name in ("a choice", "integers"):
        pytest.skip("complex numbers have no order")
    with enable_x64(dtype == "float64"):
        y = jnp.asarray(np.random.default_rng(0).normal(size=3).astype(dtype))
        operands = jnp.asarray(0.3, y.real.dtype), y, jnp.asarray(1.7, dtype)
        program = make_jaxpr(CASES[name])(*operands)
        make = by_numpy(program)
        assert make is not None
        with np.errstate(all="ignore"):
            t, y, k = (np.asarray(x)[()] for x in operands)
            found = make([k])(t, y)
            (expected,) = eval_jaxpr(program.jaxpr, program.consts, *operands)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_each_call_has_its_own_parameters() -> None:
    make = by_numpy(make_jaxpr(lambda t, y, k: jnp.array([k * y[0]]))(0.0, jnp.ones(1), 1.0))
    assert make is not None
    first, second = make([np.float32(2)]), make([np.float32(3)])
    y = np.ones(1, np.float32)
    assert [float(f(0, y)[0]) for f in (first, second, first)] == [2, 3, 2]


def test_long_programs_and_those_with_effects_are_compiled() -> None:
    def long(t: Any, y: Any) -> Any:
        for _ in range(50):
            y = jnp.sin(y)
        return y

    assert by_numpy(make_jaxpr(long)(0.0, jnp.ones(2))) is None
    assert by_numpy(make_jaxpr(lambda t, y: jit(jnp.sort)(y))(0.0, jnp.ones(2))) is None


def test_a_solution_is_that_of_scipy_step_for_step() -> None:
    import scipy.integrate

    with enable_x64():
        rates = lambda m: lambda t, y: m.array([y[1], 5 * (1 - y[0] * y[0]) * y[1] - y[0] + m.sin(t)])
        for method in ("RK45", "DOP853", "RK23"):
            ours = solve_ivp(rates(jnp), (0.0, 20.0), [2.0, 0.0], method)
            theirs = scipy.integrate.solve_ivp(rates(np), (0.0, 20.0), [2.0, 0.0], method)
            np.testing.assert_array_equal(ours.t, theirs.t)
            np.testing.assert_array_equal(ours.y, theirs.y)
