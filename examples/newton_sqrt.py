"""The square root by Newton's iteration, differentiated in three ways that agree.

A loop in Python is differentiated step by step. The same loop as ``while_loop`` is too, eager and compiled, and
keeps a few states only. ``custom_root`` does not look into the solver at all: the derivative of a solution follows from
the equation that it solves. Every line printed is one comparison; the process ends with a non-zero status if any two
disagree.

    python examples/newton_sqrt.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from autodiff_cookbook import expect, outcomes

import pullback.numpy as jnp
from pullback import Array, grad, hessian, jit, lax, vmap

TOLERANCE = 1e-6


def by_python(a: Array) -> Array:
    """Ordinary Python: as many steps as the value needs."""
    x, previous = a, 0.0 * a
    while abs(x - previous) > TOLERANCE:
        x, previous = 0.5 * (x + a / x), x
    return x


def by_while_loop(a: Array) -> Array:
    """The same as an operation, which can be compiled and mapped."""
    start = (a, 0.0 * a)
    return lax.while_loop(lambda c: abs(c[0] - c[1]) > TOLERANCE, lambda c: (0.5 * (c[0] + a / c[0]), c[0]), start)[0]


def by_custom_root(a: Array) -> Array:
    """The root of x² - a, found by any solver."""

    def solve(f: Callable[[Any], Any], x: Any) -> Any:
        return lax.while_loop(lambda x: abs(f(x)) > TOLERANCE, lambda x: x - f(x) / grad(f)(x), x)

    return lax.custom_root(lambda x: x**2 - a, a, solve, lambda g, y: y / g(1.0))


def main() -> int:
    """Compare the three, to second order; the exit status is 0 if all agree."""
    figures = {"value": 1.4142135, "gradient": 0.35355338, "curvature": -0.088388346}
    for f in (by_python, by_while_loop, by_custom_root):
        print(f"\n{f.__name__.removeprefix('by_').replace('_', ' ')}")
        derivatives = {
            "value": f,
            "gradient": grad(f),
            "curvature": hessian(f) if f is not by_python else grad(grad(f)),
        }
        for name, derivative in derivatives.items():
            expect(f"{name} of the square root of 2", derivative(2.0), figures[name])
            if f is not by_python:  # whose loop looks at values
                expect("... compiled", jit(derivative)(2.0), figures[name])
                points = jnp.array([2.0, 2.0])
                expect("... mapped", vmap(derivative)(points), [figures[name]] * 2)
    print(f"\n{sum(outcomes)} of {len(outcomes)} figures agree")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
