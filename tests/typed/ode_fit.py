"""The rate of a differential equation is found from its solution, by Newton's method and by BFGS."""

import pullback
import pullback.numpy as jnp
from pullback import Array
from pullback.experimental.ode import odeint
from pullback.scipy.optimize import minimize


def right_hand_side(y: Array, t: Array, rate: Array) -> Array:
    return jnp.stack([y[1], -rate * y[0]])


def solution(rate: Array, times: Array) -> Array:
    found: Array = odeint(right_hand_side, jnp.array([1.0, 0.0]), times, rate, rtol=1e-5)
    return found[:, 0]


def misfit(rate: Array, times: Array, seen: Array) -> Array:
    return jnp.sum((solution(rate, times) - seen) ** 2)


def newton(rate: Array, times: Array, seen: Array, steps: int = 4) -> Array:
    for _ in range(steps):
        residual, slope = pullback.jvp(lambda r: solution(r, times) - seen, (rate,), (jnp.ones_like(rate),))
        rate = rate - jnp.vdot(slope, residual) / jnp.vdot(slope, slope)
    return rate


def mistaken(times: Array) -> None:
    times.astpye(jnp.float32)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def main() -> None:
    times = jnp.linspace(0.0, 2.0, 9)
    seen = jnp.cos(jnp.sqrt(2.0) * times)
    rate = newton(jnp.asarray(1.8), times, seen)
    found = minimize(lambda p: misfit(p[0], times, seen), jnp.array([1.8]), method="BFGS", tol=1e-3)
    assert abs(float(rate) - 2) < 1e-2
    assert abs(found.x[0] - 2) < 1e-1
    print(round(float(rate), 2))
