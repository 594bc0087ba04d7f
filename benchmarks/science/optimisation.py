"""Rows of ``scipy.optimize``: programs drawn at random whose solutions are not degenerate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize as oracle

from benchmarks.science.rows import Part, Row
from pullback.scipy import optimize


def linear(m: int, n: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes a linear program: costs, rows and right sides of inequalities, all positive."""

    def make() -> Sequence[Any]:
        rng = np.random.default_rng(0)
        return -1 - rng.random(n), 0.1 + rng.random((m, n)), n * (1 + rng.random(m))

    return make


def costs(n: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes the costs of an assignment."""
    return lambda: (np.random.default_rng(0).random((n, n)),)


def every_second(n: int) -> Any:
    """Which unknowns are integers."""
    return np.arange(n) % 2


def row(name: str, signature: str, *rest: Any, **more: Any) -> Row:
    """Make a row."""
    return Row(f"scipy.optimize.{name}", signature, *rest, **more)


PART = Part(
    "Optimisation",
    "`scipy.optimize`. Solutions are differentiated by their optimality conditions, by every array of the problem.\n"
    "Where these determine no derivative, as at a kink, the result's `degeneracy` says so; the derivative is NaN, and\n"
    "in eager code it raises `DegenerateSolutionError`.",
    (
        row(
            "linprog", "(c, A_ub, b_ub, A_eq, b_eq, bounds, method, *, options)",
            lambda c, a, b: optimize.linprog(c, a, b).x, lambda c, a, b: oracle.linprog(c, a, b).x,
            linear(3, 5), linear(100, 200), note="200 unknowns and 100 inequalities.",
        ),
        row(
            "milp", "(c, *, integrality, bounds, constraints, options)",
            lambda c, a, b: optimize.milp(
                c, integrality=every_second(c.shape[0]), constraints=optimize.LinearConstraint(a, ub=b)
            ).x,
            lambda c, a, b: oracle.milp(
                c, integrality=every_second(len(c)), constraints=oracle.LinearConstraint(a, ub=b)
            ).x,
            linear(3, 5), linear(20, 40), note="20 real unknowns, 20 integers and 20 inequalities.",
        ),
        row(
            "linear_sum_assignment", "(cost_matrix, maximize)",
            lambda c: c[optimize.linear_sum_assignment(c)], lambda c: c[oracle.linear_sum_assignment(c)],
            costs(5), costs(100), note="the chosen elements of 10,000.",
        ),
    ),
)  # fmt: skip
