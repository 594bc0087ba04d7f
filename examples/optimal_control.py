"""Optimal control with constraints: a cart that must not go too fast, and what each limit costs.

A cart moves along a line from rest to rest one unit further, in a given time and with the least work of its motor. Its
speed and its force are limited. ``scipy.optimize.minimize`` finds the forces; the derivatives of the solution, by the
optimality conditions, are compared with finite differences, and those of the work with the multipliers.

    python examples/optimal_control.py [control.png]
"""

from __future__ import annotations

import sys

import numpy as np

import pullback.numpy as jnp
from pullback import Array, config, grad, jacrev, jit
from pullback.scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, OptimizeResults, minimize

config.update("enable_x64", True)
STEPS, TIME = 40, 2.0
STEP = TIME / STEPS
DRAG = 0.1
LIMITS = jnp.array([0.68, 1.3])  # of the speed, and of the force


def speeds(forces: Array) -> Array:
    """The speed after each step, of a cart with drag."""
    decay = (1 - DRAG * STEP) ** np.maximum(np.subtract.outer(np.arange(STEPS), np.arange(STEPS)), 0)
    return STEP * jnp.asarray(np.tril(decay)) @ forces


def control(limits: Array) -> OptimizeResults:
    """The forces of least work within the limits."""
    end = jnp.array([1.0, 0.0])
    arrive = NonlinearConstraint(lambda u: jnp.stack([STEP * speeds(u).sum(), speeds(u)[-1]]), end, end)
    slow = LinearConstraint(speeds_matrix(), -jnp.inf, limits[0])
    return minimize(
        lambda u: STEP * (u**2).sum() / 2, jnp.zeros(STEPS), method="SLSQP", bounds=Bounds(-limits[1], limits[1]),
        constraints=(arrive, slow),
    )  # fmt: skip


def speeds_matrix() -> Array:
    """The matrix from forces to speeds."""
    return jnp.stack([speeds(unit) for unit in jnp.eye(STEPS)], axis=1)


def expect(what: str, found: Array, expected: Array, tolerance: float) -> bool:
    """Print a comparison."""
    error = float(np.abs(np.asarray(found) - np.asarray(expected)).max())
    print(f"{what}: largest difference {error:.1e}, {'agree' if error <= tolerance else 'DISAGREE'}")
    return error <= tolerance


def main() -> int:
    """Solve, compare, and draw."""
    found = control(LIMITS)
    held = int((np.abs(np.asarray(found.multipliers)[2:]) > 0).sum())
    full = int((np.asarray(found.bound_multipliers) != 0).sum())
    print(f"work {found.fun:.4f}; the speed is at its limit in {held} steps, the force in {full} of {STEPS}")
    step = 1e-6
    slopes = [(control(LIMITS.at[i].add(step)).x - control(LIMITS.at[i].add(-step)).x) / (2 * step) for i in range(2)]
    by_limits = jit(jacrev(lambda limits: control(limits).x))(LIMITS)
    work = grad(lambda limits: control(limits).fun)(LIMITS)
    prices = [found.multipliers[2:].sum(), -jnp.abs(found.bound_multipliers).sum()]
    print(f"a higher limit of the speed saves {-work[0]:.3f} of work for each unit, one of the force {-work[1]:.3f}")
    good = [
        bool(found.success),
        expect("forces by the limits", by_limits, jnp.stack(slopes, axis=1), 1e-6),
        expect("work by the limits, and multipliers", work, jnp.stack(prices), 1e-10),
    ]
    print(f"{sum(good)} of 3 checks agree")
    if len(sys.argv) > 1:
        draw(sys.argv[1], found, np.asarray(by_limits))
    return 0 if all(good) else 1


def draw(file: str, found: OptimizeResults, by_limits: np.ndarray) -> None:
    """Draw forces, speeds, and the derivative of the forces by the limit of the speed."""
    import matplotlib.pyplot as plt

    times = STEP * (np.arange(STEPS) + 0.5)
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    left.step(times, np.asarray(found.x), where="mid", label="force")
    left.plot(times, np.asarray(speeds(found.x)), label="speed")
    left.axhline(float(LIMITS[0]), color="0.7", linewidth=0.8)
    left.axhline(float(LIMITS[1]), color="0.7", linewidth=0.8)
    left.set(xlabel="time")
    left.legend()
    right.step(times, by_limits[:, 0], where="mid", label="by the limit of the speed")
    right.step(times, by_limits[:, 1], where="mid", label="by the limit of the force")
    right.set(xlabel="time", ylabel="derivative of the force")
    right.legend()
    fig.savefig(file)


if __name__ == "__main__":
    raise SystemExit(main())
