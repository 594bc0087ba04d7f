"""The density of a string from its frequencies: an inverse problem with ``scipy.integrate.solve_bvp``.

A string of density 1 + a x + b x² between fixed ends vibrates as y'' + k² (1 + a x + b x²) y = 0. The frequency k is an
unknown parameter of this boundary value problem. Its derivatives by a and b are compared with Rayleigh's formula, an
integral over the square of the solution, and with finite differences; Gauss and Newton's method then finds a and b from
three frequencies. Every line printed is one comparison; the process ends with a non-zero status if any two disagree.

    python examples/string_density.py
"""

from __future__ import annotations

import sys

import numpy as np

import pullback.numpy as jnp
from pullback import Array, config, jacrev
from pullback.scipy.integrate import BVPResult, solve_bvp, trapezoid
from pullback.scipy.optimize import least_squares

config.update("enable_x64", True)
TRUE = np.array([0.8, -0.3])


def vibration(c: Array, mode: int) -> BVPResult:
    """The vibration with ``mode`` half waves, whose slope at the left end is 1, and its frequency."""

    def fun(x: Array, y: Array, p: Array) -> Array:
        return jnp.vstack([y[1], -(p[0] ** 2) * (1 + c[0] * x + c[1] * x**2) * y[0]])

    def ends(left: Array, right: Array, p: Array) -> Array:
        return jnp.array([left[0], right[0], left[1] - 1.0])

    x, k = np.linspace(0.0, 1.0, 20 * mode + 1), mode * np.pi
    return solve_bvp(fun, ends, x, np.stack([np.sin(k * x) / k, np.cos(k * x)]), [k], tol=1e-6, max_nodes=400)


def frequencies(c: Array) -> Array:
    """The three lowest frequencies."""
    return jnp.stack([vibration(c, mode).p[0] for mode in (1, 2, 3)])


def rayleigh(c: Array, mode: int) -> Array:
    """The derivatives of a frequency: -k / 2 times the means of x and x², weighted by the square of the solution."""
    found = vibration(c, mode)
    x = np.linspace(0.0, 1.0, 20001)
    square = np.asarray(found.sol(x))[0] ** 2
    whole = trapezoid(square * (1 + c[0] * x + c[1] * x**2), x)
    return -found.p[0] / 2 * jnp.stack([trapezoid(square * x**power, x) for power in (1, 2)]) / whole


def expect(what: str, found: Array, expected: Array, tolerance: float) -> bool:
    error = float(np.abs(np.asarray(found) - np.asarray(expected)).max())
    agree = error <= tolerance
    print(f"{what}: differ by {error:.1e}, {'agree' if agree else 'DISAGREE'}")
    return agree


def main() -> int:
    """Compare; the exit status is 0 if all agree."""
    slopes = jacrev(frequencies)(jnp.asarray(TRUE))
    by_rayleigh = jnp.stack([rayleigh(TRUE, mode) for mode in (1, 2, 3)])
    steps = 1e-4 * np.eye(2)
    differences = np.stack([(frequencies(TRUE + d) - frequencies(TRUE - d)) / 2e-4 for d in steps], axis=1)
    measured = frequencies(TRUE)
    found = least_squares(lambda c: frequencies(c) - measured, np.zeros(2), xtol=1e-12, ftol=1e-15)
    agree = [
        expect("derivatives and Rayleigh's formula", slopes, by_rayleigh, 1e-5),
        expect("derivatives and finite differences", slopes, differences, 1e-5),
        expect("the density and the one found", found.x, TRUE, 1e-5),
    ]
    print(f"{sum(agree)} of {len(agree)} comparisons agree")
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
