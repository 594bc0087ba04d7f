"""Stochastic equations: orders of convergence on one path, derivatives, kinds of noise, and the path itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jit, random, vmap
from pullback.core.config import enable_x64
from pullback.scipy.integrate import BrownianPath, solve_sde
from pullback.test_util import check_grads

KEYS = 60
RATE, VOLATILITY = 0.3, 0.6


def slopes(
    method: str, noise: str, drift: Any, diffusion: Any, exact: Callable[[Any], Any], y0: float, counts: Any
) -> Any:
    """Return the observed orders of strong convergence at the end of [0, 1], over the same paths."""

    def error(count: int) -> Any:
        def one(key: Any) -> Any:
            y = solve_sde(drift, diffusion, (0.0, 1.0), y0, key, method=method, noise=noise, steps=count).y[-1]
            return jnp.abs(y - exact(BrownianPath(key, (0.0, 1.0))(1.0)))

        return vmap(one)(random.split(random.key(1), KEYS)).mean()

    found = np.log2(np.array([float(error(n)) for n in counts]))
    return (found[0] - found[-1]) / np.log2(counts[-1] / counts[0])


def geometric(w: Any) -> Any:
    return jnp.exp(RATE - VOLATILITY**2 / 2 + VOLATILITY * w)


@pytest.mark.parametrize(
    ("method", "noise", "order"),
    [
        ("euler_maruyama", "diagonal", 0.5), ("milstein", "diagonal", 1.0), ("milstein", "scalar", 1.0),
        ("srk", "diagonal", 1.5), ("srk", "scalar", 1.5),
    ],
)  # fmt: skip
def test_the_strong_order_of_itos_methods(method: str, noise: str, order: float) -> None:
    with enable_x64():
        found = slopes(method, noise, lambda t, y: RATE * y, lambda t, y: VOLATILITY * y, geometric, 1.0, (16, 128))
    assert abs(found - order) < 0.15


def test_the_strong_order_of_heuns_method_in_stratonovichs_sense() -> None:
    with enable_x64():
        exact = lambda w: jnp.exp(RATE + VOLATILITY * w)
        found = slopes("heun", "diagonal", lambda t, y: RATE * y, lambda t, y: VOLATILITY * y, exact, 1.0, (16, 128))
    assert abs(found - 1.0) < 0.15


def test_the_strong_order_where_drift_and_diffusion_are_not_linear() -> None:
    with enable_x64():
        root = lambda y: jnp.sqrt(y * y + 1)
        exact = lambda w: jnp.sinh(1 + w + jnp.arcsinh(0.3))
        assert (
            slopes("srk", "diagonal", lambda t, y: y / 2 + root(y), lambda t, y: root(y), exact, 0.3, (16, 256)) > 1.3
        )


def test_additive_noise_has_a_higher_order() -> None:
    with enable_x64():
        a, b = 0.4, 1.3
        drift = lambda t, y: b / jnp.sqrt(1 + t) - y / (2 * (1 + t))
        diffusion = lambda t, y: a * b / jnp.sqrt(1 + t)
        exact = lambda w: (1 + b * (1 + a * w)) / jnp.sqrt(2.0)
        assert slopes("srk", "additive", drift, diffusion, exact, 1.0, (8, 64)) > 1.4
        assert 0.9 < slopes("milstein", "additive", drift, diffusion, exact, 1.0, (8, 64)) < 1.2


def test_the_weak_order_of_euler_and_maruyama() -> None:
    # The mean of the solution, whose noise the exact solution on the same path takes away.
    def bias(count: int) -> Any:
        def one(key: Any) -> Any:
            y = solve_sde(lambda t, y: y, lambda t, y: 0.1 * y, (0.0, 1.0), 1.0, key, steps=count).y[-1]
            return y - jnp.exp(1 - 0.005 + 0.1 * BrownianPath(key, (0.0, 1.0))(1.0))

        return float(vmap(one)(random.split(random.key(2), 400)).mean())

    with enable_x64():
        coarse, fine = bias(8), bias(32)
        assert abs(coarse - ((1 + 1 / 8) ** 8 - np.e)) < 0.02
        assert 0.9 < np.log(coarse / fine) / np.log(4) < 1.1


def test_a_path_has_the_moments_of_brownian_motion() -> None:
    times = np.array([0.3, 1.0, 2.0])
    w, j = vmap(lambda key: BrownianPath(key, (0.0, 2.0)).with_integral(jnp.asarray(times)))(
        random.split(random.key(0), 4000)
    )
    w, j = np.asarray(w), np.asarray(j)
    np.testing.assert_allclose(np.cov(w.T), np.minimum.outer(times, times), atol=0.12)
    np.testing.assert_allclose((j * j).mean(0), times**3 / 3, rtol=0.08)
    np.testing.assert_allclose((w * j).mean(0), times**2 / 2, rtol=0.08)
    increments = np.diff(np.concatenate([np.zeros((4000, 1)), w], axis=1))
    np.testing.assert_allclose(np.corrcoef(increments.T), np.eye(3), atol=0.06)


def test_a_path_is_a_function_of_time() -> None:
    path = BrownianPath(random.key(3), (1.0, 3.0), (2,))
    few, many = path(jnp.linspace(1, 3, 9)), path(jnp.linspace(1, 3, 24 * 5 + 1))
    np.testing.assert_allclose(many[::15], few, atol=1e-6)
    np.testing.assert_allclose(path(2.25), few[5], atol=1e-6)
    np.testing.assert_allclose(jit(path)(jnp.linspace(1, 3, 9)), few, atol=1e-6)
    values, integrals = path.with_integral(jnp.linspace(1, 3, 4097))
    np.testing.assert_allclose(np.trapezoid(values, dx=2 / 4096, axis=0), integrals[-1], atol=2e-3)
    assert path(jnp.zeros((2, 3)) + 2).shape == (2, 3, 2)
    np.testing.assert_array_equal(path(1.0), 0)


def test_the_integral_of_a_path_between_near_times_is_precise_in_doubles() -> None:
    with enable_x64():
        path = BrownianPath(random.key(3), (0.0, 1.0))
        times = jnp.linspace(0, 1, 1001)
        values, integrals = path.with_integral(times)
        excess = jnp.diff(integrals) - (values[1:] + values[:-1]) / 2000
        # The variance of the area between path and chord.
        np.testing.assert_allclose(np.asarray(excess).var(), 1e-9 / 12, rtol=0.2)


def solutions(*methods: str) -> Callable[..., Any]:
    """Return the function from a state, an argument and the last time to solutions by some methods."""

    def f(y0: Any, p: Any, end: Any) -> Any:
        each = [
            solve_sde(
                lambda t, y, p: jnp.sin(p * y) + t, lambda t, y, p: 0.3 * jnp.cos(p * y), (0.0, end), y0, random.key(3),
                method=method, args=(p,), steps=3,
            ).y
            for method in methods
        ]  # fmt: skip
        return jnp.stack(each)

    return f


def test_derivatives_by_states_arguments_and_the_end() -> None:
    with enable_x64():
        f = solutions("euler_maruyama", "milstein", "srk", "heun")
        args = jnp.array([0.3, 0.4]), jnp.array(0.7), jnp.array(1.1)
        check_grads(f, args, 1)
        np.testing.assert_allclose(jit(f)(*args), f(*args), rtol=1e-12)
        several = jnp.stack([args[0], 2 * args[0]])
        expected = jnp.stack([f(y, *args[1:]) for y in several])
        np.testing.assert_allclose(vmap(f, (0, None, None))(several, *args[1:]), expected, rtol=1e-12)


@pytest.mark.slow
def test_second_derivatives() -> None:
    with enable_x64():
        check_grads(solutions("srk"), (jnp.array([0.3, 0.4]), jnp.array(0.7), jnp.array(1.1)), 2)


def test_general_noise_and_times_of_the_result() -> None:
    with enable_x64():
        key, y0, at = random.key(3), jnp.array([0.3, 0.4]), jnp.array([0.2, 0.5, 1.0])

        def f(b: Any, at: Any) -> Any:
            diffusion = lambda t, y: b * jnp.sin(y)[:, None]
            return solve_sde(
                lambda t, y: -y, diffusion, (0, 1), y0, key, method="heun", noise="general", steps=7, t_eval=at
            )

        b = jnp.array([[1.0, 0.2, 0.1], [0.0, 0.3, 0.4]])
        found = f(b, at)
        np.testing.assert_array_equal(found.t, at)
        assert found.y.shape == (2, 3)
        np.testing.assert_allclose(jit(f)(b, at).y, found.y, rtol=1e-12)  # traced times
        slope = grad(lambda b: f(b, at).y[0, 2])(b)
        step = jnp.zeros((2, 3)).at[0, 1].set(1e-6)
        difference = (f(b + step, at).y[0, 2] - f(b - step, at).y[0, 2]) / 2e-6
        np.testing.assert_allclose(slope[0, 1], difference, rtol=1e-7)


def test_one_path_for_all_is_general_noise_with_one_column() -> None:
    y0, key = jnp.array([0.3, 0.4, 0.5]), random.key(0)
    options: dict[str, Any] = {"steps": 9, "method": "euler_maruyama"}
    scalar = solve_sde(lambda t, y: -y, lambda t, y: y, (0, 1), y0, key, noise="scalar", **options)
    general = solve_sde(lambda t, y: -y, lambda t, y: y[:, None], (0, 1), y0, key, noise="general", **options)
    np.testing.assert_allclose(scalar.y[:, 1], general.y[:, 1], rtol=0.5)
    ratio = scalar.y / y0[:, None]
    np.testing.assert_allclose(ratio, ratio[:1].repeat(3, 0), rtol=1e-5)  # one path


def test_steps_by_their_size() -> None:
    def count(span: Any, dt: Any) -> int:
        return solve_sde(lambda t, y: y, lambda t, y: y, span, 1.0, random.key(0), dt=dt).t.size - 1

    assert [count((0, 1), 0.1), count((0, 0.3), 0.1), count((0, 1), 0.3), count((2, 2), 0.1)] == [10, 3, 4, 1]


def test_dtypes_and_edges() -> None:
    key = random.key(0)
    solve = lambda y0, **more: solve_sde(lambda t, y: -y, lambda t, y: y, (0.0, 1.0), y0, key, steps=4, **more)
    assert solve(1).y.dtype == np.float32
    assert solve(1).y.shape == (5,)
    assert solve(jnp.zeros((0, 2))).y.shape == (0, 2, 5)
    undefined = np.isnan(solve(jnp.array([jnp.nan, 1.0])).y)
    np.testing.assert_array_equal(undefined, np.array([[True], [False]]).repeat(5, 1))
    assert solve(1 + 1j).y.dtype == np.complex64
    with enable_x64():
        assert solve(1.0).y.dtype == np.float64
        assert solve(jnp.float32(1.0)).y.dtype == np.float32
    still = solve_sde(lambda t, y: -y, lambda t, y: y, (1.0, 1.0), 2.0, key, steps=2, method="srk")
    np.testing.assert_array_equal(still.y, 2.0)
    slope = grad(lambda y: solve(y, t_eval=jnp.array([0.0, 1.0])).y[0])(3.0)
    assert slope == 1.0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"method": "rk4"}, errors.ArgumentError, "method must be one of 'euler_maruyama'"),
        ({"noise": "white"}, errors.ArgumentError, "noise must be one of 'diagonal'"),
        ({"method": "srk", "noise": "general"}, errors.UnsupportedArgumentError, "Lévy areas"),
        ({"steps": None}, errors.ArgumentError, "either steps="),
        ({"steps": 0}, errors.ArgumentError, "at least 1"),
        ({"steps": None, "dt": -0.1}, errors.ArgumentError, "positive number"),
        ({"t_span": (1.0, 0.0)}, errors.ArgumentError, "must not go back"),
        ({"t_span": 1.0}, errors.ArgumentError, "two numbers"),
        ({"t_span": (0.0, np.inf)}, errors.ArgumentError, "finite"),
        ({"t_eval": np.array([0.0, 2.0])}, errors.ArgumentError, "within t_span"),
        ({"t_eval": np.array([0.5, 0.2])}, errors.ArgumentError, "ordered"),
        ({"t_eval": 0.5}, errors.ShapeError, "vector of times"),
        ({"drift": lambda t, y: jnp.zeros(3)}, errors.ShapeError, "drift must return"),
        ({"drift": lambda t, y: 1j * y}, errors.DtypeError, "complex"),
        ({"drift": None}, errors.ArgumentError, "drift must be a function"),
        ({"noise": "general"}, errors.ShapeError, "an axis for the paths"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: Any, message: str) -> None:
    arguments: dict[str, Any] = {
        "drift": lambda t, y: -y, "diffusion": lambda t, y: y, "t_span": (0.0, 1.0), "y0": jnp.ones(2),
        "key": random.key(0), "steps": 4,
    } | change  # fmt: skip
    leading = [arguments.pop(name) for name in ("drift", "diffusion", "t_span", "y0", "key")]
    with pytest.raises(error, match=message):
        solve_sde(*leading, **arguments)
