"""A boundary-value problem solved by ``scipy.optimize.root``, and its sensitivities to the parameters.

Bratu's problem, u'' + a exp(u) = 0 between u(0) = 0 and u(1) = b, is discretised by finite differences. The solution is
differentiated with respect to a and b by the implicit function theorem, in both modes, and compared with finite
differences and with the exact solution. Every line printed is one comparison; the process ends with a non-zero status
if any two disagree.

    python examples/boundary_value.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

import pullback.numpy as jnp
from pullback import Array, config, jacfwd, jacrev, jit
from pullback.scipy.optimize import root

config.update("enable_x64", True)
POINTS = 63
PARAMETERS = jnp.array([1.0, 0.5])


def residuals(u: Array, p: Array) -> Array:
    """The equation at each inner point, times the square of the distance."""
    ends = jnp.concatenate([jnp.zeros(1), u, p[1:]])
    return ends[:-2] - 2 * u + ends[2:] + p[0] * jnp.exp(u) / (POINTS + 1) ** 2


def solution(p: Array) -> Array:
    """The values at the inner points."""
    found = root(residuals, jnp.zeros(POINTS), (p,), tol=1e-14)
    return jnp.where(found.success, found.x, jnp.nan)


def expect(what: str, found: Array, expected: Array, tolerance: float) -> bool:
    error = float(np.abs(np.asarray(found) - np.asarray(expected)).max())
    agree = error <= tolerance
    print(f"{what}: differ by {error:.1e}, {'agree' if agree else 'DISAGREE'}")
    return agree


def exact(x: np.ndarray) -> np.ndarray:
    """Bratu's solution for a = 1 and b = 0, of which theta solves theta = sqrt(2) cosh(theta / 4)."""
    theta = 1.5171645990507543
    return -2 * np.log(np.cosh((x - 0.5) * theta / 2) / np.cosh(theta / 4))


def main() -> int:
    """Compare; the exit status is 0 if all agree."""
    x = np.arange(1, POINTS + 1) / (POINTS + 1)
    forward, backward = jit(jacfwd(solution))(PARAMETERS), jit(jacrev(solution))(PARAMETERS)
    compiled, step = jit(solution), 1e-5
    differences = np.stack(
        [
            (np.asarray(compiled(PARAMETERS + d)) - np.asarray(compiled(PARAMETERS - d))) / (2 * step)
            for d in step * np.eye(2)
        ],
        axis=1,
    )
    agree = [
        expect("solution and the exact one", compiled(jnp.array([1.0, 0.0])), exact(x), 1e-4),
        expect("sensitivities in forward and reverse mode", forward, backward, 1e-12),
        expect("sensitivities and finite differences", forward, differences, 1e-7),
    ]
    if len(sys.argv) > 1:
        draw(sys.argv[1], x, compiled(PARAMETERS), forward)
    print(f"{sum(agree)} of {len(agree)} comparisons agree")
    return 0 if all(agree) else 1


def draw(path: str, x: np.ndarray, u: Array, sensitivities: Array) -> None:
    """A picture of the solution and of both sensitivities."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots()
    axes.plot(x, u, label="u")
    for column, name in zip(np.asarray(sensitivities).T, ("du/da", "du/db"), strict=True):
        axes.plot(x, column, "--", label=name)
    axes.set_xlabel("x")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
