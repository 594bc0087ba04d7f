"""Roots, minima and trajectories, differentiated; histograms and statistics of what comes out."""

import pullback
import pullback.numpy as jnp
from pullback import Array, lax
from pullback.experimental.ode import odeint
from pullback.scipy import integrate, stats
from pullback.scipy.optimize import OptimizeResults, minimize

Pendulum = tuple[Array, Array]


def rosenbrock(x: Array, a: float) -> Array:
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)


def best(a: float) -> OptimizeResults:
    return minimize(rosenbrock, jnp.zeros(2), args=(a,), method="BFGS", options={"maxiter": 50})


def swing(start: Pendulum, times: Array, length: Array) -> Pendulum:
    def motion(state: Pendulum, t: Array, length: Array) -> Pendulum:
        angle, speed = state
        return speed, -jnp.sin(angle) / length

    return odeint(motion, start, times, length, rtol=1e-4)


def root_of(a: Array) -> Array:
    def solve(f: object, x: Array) -> Array:
        def step(_: Array, y: Array) -> Array:
            return 0.5 * (y + a / y)

        return lax.fori_loop(0, 20, step, x)

    return lax.custom_root(lambda x: x**2 - a, jnp.asarray(1.0), solve, lambda g, y: y / g(1.0))


def mistaken() -> Array:
    return best(1.0)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    result = best(1.0)
    assert result.fun < 1e-2
    assert result.success.dtype == bool
    times = jnp.linspace(0.0, 1.0, 5)
    angles, speeds = swing((jnp.asarray(0.1), jnp.asarray(0.0)), times, jnp.asarray(2.0))
    slope = pullback.grad(lambda v: swing((v, v), times, jnp.asarray(2.0))[0][-1])(jnp.asarray(0.1))
    print(result.x.round(1), angles.shape, speeds[0], slope.shape, pullback.grad(root_of)(4.0))
    counts, edges = jnp.histogram(angles, bins=3, range=(-1, 1))
    line = jnp.polyfit(times, angles, 1)
    area = integrate.trapezoid(angles, times)
    density = stats.norm.logpdf(angles, loc=0.0, scale=1.0).sum() + stats.gaussian_kde(angles).pdf(times)[0]
    print(counts.sum(), edges.shape, line.shape, area.shape, density.shape, stats.mode(counts).mode.item() >= 0)
