"""``solve_ivp``: values beside SciPy's, derivatives, events, and compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate as oracle

import pullback as pb
import pullback.numpy as jnp
from pullback import grad, jacfwd, jacrev, jit, vmap
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError, UnsupportedArgumentError
from pullback.scipy.integrate import OdeSolution, solve_ivp

EXPLICIT = ("RK23", "RK45", "DOP853")


def swing(t: Any, y: Any, k: Any) -> Any:
    """A pendulum whose pull is ``k``."""
    return jnp.array([y[1], -k * jnp.sin(y[0])])


def swing_numpy(t: Any, y: Any, k: Any) -> Any:
    return np.array([y[1], -k * np.sin(y[0])])


def falling(t: Any, y: Any, k: Any) -> Any:
    return y[0]


def ends_at(event: Any, terminal: Any, direction: float = 0.0) -> Any:
    """Return a copy of an event with SciPy's attributes."""
    copy = lambda t, y, *args: event(t, y, *args)
    copy.terminal, copy.direction = terminal, direction  # type: ignore[attr-defined]
    return copy


START = np.array([1.0, 0.0])


@pytest.mark.parametrize("method", [*EXPLICIT, "Radau", "BDF", "LSODA"])
def test_eager_solutions_are_scipy_s(method: str) -> None:
    options = {"method": method, "args": (2.0,), "rtol": 1e-5, "dense_output": True}
    with pb.enable_x64():
        ours = solve_ivp(swing, (0.0, 4.0), START, **options)
    jac = {} if method in EXPLICIT else {"jac": lambda t, y, k: np.array([[0, 1], [-k * np.cos(y[0]), 0]])}
    theirs = oracle.solve_ivp(swing_numpy, (0.0, 4.0), START, **options, **jac)
    over = 0.0 if method == "LSODA" else 0.1  # how far beyond both ends
    times = np.linspace(-over, 4.0 + over, 20)
    np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-10)
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-9, atol=1e-10)
    with pb.enable_x64():
        np.testing.assert_allclose(ours.sol(times), theirs.sol(times), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(ours.sol(0.3), theirs.sol(0.3), rtol=1e-8)
    assert ours.success
    assert ours.message == theirs.message
    assert int(ours.nfev) == theirs.nfev


@pytest.mark.parametrize("method", EXPLICIT)
def test_compiled_steps_are_scipy_s(method: str) -> None:
    times = np.linspace(4.0, 0.0, 5)
    options = {"method": method, "t_eval": times, "rtol": 1e-5}
    theirs = oracle.solve_ivp(lambda t, y: swing_numpy(t, y, 2.0), (4.0, 0.0), START, **options)
    with pb.enable_x64():
        ours = jit(lambda k: solve_ivp(swing, (4.0, 0.0), START, args=(k,), **options))(2.0)
    np.testing.assert_allclose(ours.y, theirs.y, atol=1e-8)
    np.testing.assert_array_equal(ours.t, times)


@pytest.mark.parametrize("method", ["RK45", *(pytest.param(m, marks=pytest.mark.slow) for m in ("RK23", "DOP853"))])
def test_derivatives_of_a_known_solution(method: str) -> None:
    """y = y0 exp(-k (t1 - t0)) for the equation y' = -k y."""

    def end(y0: Any, k: Any, t0: Any, t1: Any) -> Any:
        return solve_ivp(lambda t, y: -k * y, (t0, t1), y0[None], method, rtol=1e-9, atol=1e-12).y[0, -1]

    point = 1.5, 0.7, 0.2, 1.3
    value = 1.5 * np.exp(-0.7 * 1.1)
    wanted = [value / 1.5, -1.1 * value, 0.7 * value, -0.7 * value]
    with pb.enable_x64():
        point = tuple(jnp.asarray(x) for x in point)
        np.testing.assert_allclose(jit(grad(end, (0, 1, 2, 3)))(*point), wanted, rtol=1e-6)
        if method != "RK45":
            return
        np.testing.assert_allclose(grad(end, (0, 1, 2, 3))(*point), wanted, rtol=1e-6)
        np.testing.assert_allclose(jacfwd(end, (0, 1, 2, 3))(*point), wanted, rtol=1e-6)
        second = jacfwd(grad(end, 1), 1)(*point)
    np.testing.assert_allclose(second, 1.1**2 * value, rtol=1e-5)


def test_the_derivative_is_that_of_the_steps() -> None:
    """With few, coarse steps: the derivative of Dormand and Prince's steps, not that of the exact solution."""
    options = {"t_eval": [0.5, 1.0], "first_step": 0.5, "max_step": 0.5, "rtol": 1.0, "atol": 1.0}

    def states(k: Any, begin: Any = 0.0) -> Any:
        return solve_ivp(swing, (begin, 1.0), START, args=(k,), **options).y

    with pb.enable_x64():
        step = 1e-5
        difference = (states(2.0 + step) - states(2.0 - step)) / (2 * step)
        for way in (jacfwd, jacrev):
            np.testing.assert_allclose(way(states)(2.0), difference, rtol=1e-8)
            np.testing.assert_allclose(jit(way(states))(2.0), difference, rtol=1e-8)
        assert jacrev(states)(2.0).shape == states(2.0).shape


def test_values_under_a_derivative_have_the_same_steps() -> None:
    def states(k: Any) -> Any:
        return solve_ivp(swing, (0.0, 2.0), START, args=(k,)).y

    with pb.enable_x64():
        value, pull = pb.vjp(states, 2.0)
        np.testing.assert_allclose(value, states(2.0), rtol=1e-12)
        assert pull(jnp.ones_like(value))[0].shape == ()


def test_vmap_is_a_loop() -> None:
    def end(k: Any) -> Any:
        return solve_ivp(swing, (0.0, 2.0), START, args=(k,)).y[:, -1]

    ks = np.array([0.5, 2.0, 8.0])
    with pb.enable_x64():
        np.testing.assert_allclose(vmap(end)(ks), [end(k) for k in ks], rtol=1e-6)
        np.testing.assert_allclose(vmap(jacfwd(end))(ks), [jacfwd(end)(k) for k in ks], rtol=1e-6)


# Events --------------------------------------------------------------------------------------------------------------


def test_events_are_scipy_s() -> None:
    events = [ends_at(falling, 2), ends_at(lambda t, y, k: y[1], False, 1.0), lambda t, y, k: y[0] - 10.0]
    options = {"args": (2.0,), "rtol": 1e-7, "events": events}
    theirs = oracle.solve_ivp(swing_numpy, (0.0, 10.0), START, **options)
    with pb.enable_x64():
        ours = solve_ivp(swing, (0.0, 10.0), START, **options)
        compiled = jit(lambda k: solve_ivp(swing, (0.0, 10.0), START, **options | {"args": (k,)}))(2.0)
    assert int(ours.status) == theirs.status == int(compiled.status) == 1
    for k in range(3):
        count = len(theirs.t_events[k])
        np.testing.assert_allclose(ours.t_events[k], theirs.t_events[k], rtol=1e-10)
        np.testing.assert_allclose(compiled.t_events[k][:count], theirs.t_events[k], rtol=1e-8)
        assert np.isnan(compiled.t_events[k][count:]).all()
        assert ours.y_events[k].shape == (count, 2)
    np.testing.assert_allclose(ours.y, theirs.y, atol=1e-10)
    np.testing.assert_allclose(compiled.y[:, -1], theirs.y[:, -1], atol=1e-7)


def test_derivatives_of_the_times_of_events() -> None:
    """A ball thrown up at the speed v is at height 0 again after 2 v / g, with the speed -v."""
    ground = ends_at(lambda t, y, v, g: y[0], True, -1.0)

    def landing(v: Any, g: Any) -> Any:
        fall = lambda t, y, v, g: jnp.array([y[1], -g])
        found = solve_ivp(fall, (0.0, 9.0), jnp.stack([0.0 * v, v]), args=(v, g), events=ground)
        return found.t_events[0][0], found.y[1, -1], found.t[-1]

    with pb.enable_x64():
        point = jnp.asarray(3.0), jnp.asarray(2.0)
        for way in (jacfwd, lambda f, n: jit(jacrev(f, n))):
            time, speed, last = way(landing, (0, 1))(*point)
            np.testing.assert_allclose(time, (2 / 2, -2 * 3 / 4), rtol=1e-9)
            np.testing.assert_allclose(last, (2 / 2, -2 * 3 / 4), rtol=1e-9)
            np.testing.assert_allclose(speed, (-1.0, 0.0), atol=1e-9)
        np.testing.assert_allclose(jacfwd(grad(lambda g: landing(point[0], g)[0]))(point[1]), 4 * 3 / 8, rtol=1e-9)


# Other arguments -----------------------------------------------------------------------------------------------------


def test_single_precision_and_integers() -> None:
    found = solve_ivp(lambda t, y: -y, (0, 1), [1, 2], t_eval=[0, 1])
    assert found.y.dtype == found.t.dtype == np.float32
    np.testing.assert_allclose(found.y[:, -1], np.exp(-1) * np.array([1, 2]), rtol=1e-3)
    assert jit(lambda y: solve_ivp(lambda t, y: -y, (0, 1), y).y)(np.float32([1])).dtype == np.float32


def test_complex_states() -> None:
    turn = lambda t, y, w: 1j * w * y
    with pb.enable_x64():
        end = lambda w: solve_ivp(turn, (0.0, 1.0), [1.0 + 0j], args=(w,), rtol=1e-10).y[0, -1]
        np.testing.assert_allclose(end(2.0), np.exp(2j), rtol=1e-6)
        np.testing.assert_allclose(jit(jacfwd(end))(2.0), 1j * np.exp(2j), rtol=1e-6)


def test_the_solution_is_a_tree_and_has_derivatives() -> None:
    with pb.enable_x64():
        found = solve_ivp(lambda t, y: -y, (0.0, 2.0), [1.0], dense_output=True, rtol=1e-7)
        slope = jit(lambda sol, t: grad(lambda t: sol(t)[0])(t))(found.sol, 1.0)
        by_state = grad(lambda y: solve_ivp(lambda t, y: -y, (0.0, 2.0), y[None], dense_output=True).sol(0.5)[0])(1.0)
    np.testing.assert_allclose(slope, -np.exp(-1), rtol=1e-5)
    np.testing.assert_allclose(by_state, np.exp(-0.5), rtol=1e-3)
    assert isinstance(found.sol, OdeSolution)
    assert "steps of degree 4" in repr(found.sol)


def test_too_many_steps_and_a_pole() -> None:
    with pb.enable_x64():
        short = jit(lambda y: solve_ivp(lambda t, y: -y, (0.0, 9.0), y, t_eval=[0.0, 9.0], max_steps=3))(START)
        pole = solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0])
        compiled = jit(lambda y: solve_ivp(lambda t, y: y * y, (0.0, 2.0), y))(START[:1])
    assert int(short.status) == -2
    assert np.isnan(short.y[:, 1]).all()
    assert (short.y[:, 0] == START).all()
    assert int(pole.status) == int(compiled.status) == -1
    assert not pole.success
    assert np.isnan(compiled.y[0, -1])


def test_no_time_passes() -> None:
    found = solve_ivp(lambda t, y: -y, (1.0, 1.0), [2.0])
    assert float(found.y[0, -1]) == 2.0
    assert int(found.status) == 0
    assert grad(lambda y: solve_ivp(lambda t, y: -y, (1.0, 1.0), y[None]).y[0, -1])(2.0) == 1.0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"fun": 3}, ArgumentError, "fun must be a function"),
        ({"method": "Euler"}, ArgumentError, "method must be one of RK23"),
        ({"y0": 1.0}, ShapeError, "y0 must be a vector"),
        ({"y0": []}, ShapeError, "at least one element"),
        ({"t_span": 3.0}, ArgumentError, "two numbers"),
        ({"t_span": (0.0, np.inf)}, ArgumentError, "finite"),
        ({"t_span": (0.0, 1j)}, DtypeError, "real"),
        ({"t_eval": [0.5, 0.2]}, ArgumentError, "sorted"),
        ({"t_eval": [0.5, 1.2]}, ArgumentError, "within t_span"),
        ({"t_eval": 0.5}, ShapeError, "vector"),
        ({"args": 3.0}, ArgumentError, "tuple"),
        ({"rtol": -1}, ArgumentError, "rtol"),
        ({"atol": [1e-3] * 3}, ShapeError, "atol"),
        ({"max_steps": 0}, ArgumentError, "max_steps"),
        ({"events": [3]}, ArgumentError, "events must be functions"),
        ({"fun": lambda t, y: jnp.zeros(3)}, ShapeError, "fun must return"),
        ({"fun": lambda t, y: 1j * y}, OperandError, "complex"),
        ({"jac_sparsity": np.eye(2)}, UnsupportedArgumentError, "no option jac_sparsity"),
    ],
)
def test_errors(change: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments = {"fun": lambda t, y: -y, "t_span": (0.0, 1.0), "y0": [1.0, 2.0]} | change
    with pytest.raises(error, match=words):
        solve_ivp(**arguments)
