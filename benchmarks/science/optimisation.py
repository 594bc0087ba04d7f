"""Rows of ``scipy.optimize``: programs drawn at random whose solutions are not degenerate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize as oracle
from scipy.optimize import elementwise

from benchmarks.science.rows import Part, Row
from pullback import numpy as jnp
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


def chain(n: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes a problem of n unknowns: targets, and the limits of the constraints."""
    return lambda: (1 + np.random.default_rng(0).random(n), np.array([1.2, 0.9 * n, 1.5 * n]))


def curved(m: Any, x: Any, a: Any) -> Any:
    """The objective: springs to the targets, and between neighbours, by the functions of the module ``m``."""
    return m.sum((x - a) ** 2 / 2 + (x - a) ** 4 / 4) + m.sum((x[1:] - x[:-1]) ** 2) / 2


def slope(x: Any, a: Any) -> Any:
    """Its gradient, written by hand."""
    g, d = (x - a) + (x - a) ** 3, x[1:] - x[:-1]
    g[1:] += d
    g[:-1] -= d
    return g


def curvature(x: Any, a: Any) -> Any:
    """Its Hessian, written by hand."""
    n = len(x)
    ends = np.zeros(n)
    ends[[0, -1]] = 1
    return np.diag(3 + 3 * (x - a) ** 2 - ends) - np.eye(n, k=1) - np.eye(n, k=-1)


def minimum(method: str, **options: Any) -> Callable[..., Any]:
    """Return the function of targets and limits that minimises by ours."""

    def solve(a: Any, limits: Any) -> Any:
        bounds = optimize.Bounds(-1.0, limits[0])
        constraints: Any = ()
        if method != "L-BFGS-B":
            line = optimize.LinearConstraint(jnp.ones(a.shape), ub=limits[1])
            ball = optimize.NonlinearConstraint(lambda x: jnp.sum(x**2), -jnp.inf, limits[2])
            constraints = (line, ball)
        objective = lambda x: curved(jnp, x, a)
        return optimize.minimize(
            objective, jnp.zeros(a.shape), method=method, bounds=bounds, constraints=constraints, options=options
        ).x

    return solve


def minimum_by_scipy(method: str, **options: Any) -> Callable[..., Any]:
    """Return the function of targets and limits that minimises by SciPy with derivatives written by hand."""

    def solve(a: Any, limits: Any) -> Any:
        bounds = oracle.Bounds(-1.0, limits[0])
        more: dict[str, Any] = {}
        if method == "SLSQP":
            one = -np.ones((1, len(a)))
            more["constraints"] = [
                {"type": "ineq", "fun": lambda x: limits[1] - x.sum(), "jac": lambda x: one},
                {"type": "ineq", "fun": lambda x: limits[2] - x @ x, "jac": lambda x: -2 * x[None]},
            ]
        elif method == "trust-constr":
            line = oracle.LinearConstraint(np.ones((1, len(a))), ub=limits[1])
            twice = lambda x, v: 2 * v[0] * np.eye(len(a))
            ball = oracle.NonlinearConstraint(
                lambda x: x @ x, -np.inf, limits[2], jac=lambda x: 2 * x[None], hess=twice
            )
            more |= {"constraints": [line, ball], "hess": curvature}
        start = np.zeros(len(a))
        return oracle.minimize(
            lambda x, a: curved(np, x, a), start, (a,), method, slope, bounds=bounds, options=options, **more
        ).x

    return solve


def minimised(method: str, n: int, tight: dict[str, Any], note: str, anchor_error: float = 0.0) -> Row:
    """Make a row of ``minimize`` by a method, with tight tolerances for the checks."""
    signature = f'(fun, x0, args, *, method="{method}", jac, hess, bounds, constraints, tol, options)'
    return row(
        f"minimize:{method}", signature, minimum(method, **tight), minimum_by_scipy(method, **tight), chain(4),
        chain(n), timed=(minimum(method), minimum_by_scipy(method)), note=note, anchor_error=anchor_error,
    )  # fmt: skip


def coefficients(n: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes n coefficients."""
    return lambda: (1 + 20 * np.random.default_rng(0).random(n),)


def cubic(x: Any, c: Any) -> Any:
    """A function with one root."""
    return x**3 + x - c


def integral(x: Any, c: Any) -> Any:
    """A function whose derivative is ``cubic``."""
    return x**4 / 4 + x**2 / 2 - c * x


def averaged(x: Any, c: Any) -> Any:
    """A function whose fixed point is the square root of ``c``."""
    return 0.3 * x + 0.7 * (x + c / x) / 2


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
        minimised("L-BFGS-B", 10_000, {"ftol": 0.0, "gtol": 1e-14}, "L-BFGS-B with 10,000 unknowns;"),
        minimised("SLSQP", 200, {"ftol": 1e-15}, "SLSQP with 200 unknowns and two inequalities;", 1e-8),
        minimised(
            "trust-constr", 50, {"gtol": 1e-13, "xtol": 1e-15, "barrier_tol": 1e-13},
            "trust-constr with 50; SciPy's derivatives are written by hand. Solutions of SLSQP and trust-constr "
            "are precise to rounding, SciPy's to its tolerance.", 1e-7,
        ),
        row(
            "brentq", "(f, a, b, args, xtol, rtol, maxiter, full_output)",
            lambda c: optimize.brentq(cubic, 0.0, 4.0, (c,), xtol=1e-14),
            lambda c: elementwise.find_root(cubic, (np.zeros(c.shape), 4.0), args=(c,)).x,
            coefficients(5), coefficients(10_000), note="SciPy's is `elementwise.find_root`.",
        ),
        row(
            "root_scalar", "(f, args, method, bracket, fprime, fprime2, x0, x1, xtol, rtol, maxiter)",
            lambda c: optimize.root_scalar(cubic, (c,), x0=np.full(c.shape, 4.0)).root,
            lambda c: oracle.newton(cubic, np.full(c.shape, 4.0), lambda x, c: 3 * x**2 + 1, (c,)),
            coefficients(5), coefficients(10_000), note="SciPy's is `newton`, with a derivative written by hand.",
        ),
        row(
            "minimize_scalar", "(fun, bracket, bounds, args, method, tol, options)",
            lambda c: optimize.minimize_scalar(integral, bounds=(0.0, 4.0), args=(c,)).x,
            lambda c: np.array([oracle.minimize_scalar(integral, bounds=(0, 4), args=(v,)).x for v in c]),
            coefficients(5), coefficients(1_000), anchor_error=1e-5,
            note="1,000 elements, in a loop of SciPy's, which are half as precise.",
        ),
        row(
            "fixed_point", "(func, x0, args, xtol, maxiter, method)",
            lambda c: optimize.fixed_point(averaged, np.ones(c.shape), (c,), xtol=1e-12),
            lambda c: oracle.fixed_point(averaged, np.ones(c.shape), (c,), xtol=1e-12),
            coefficients(5), coefficients(10_000),
        ),
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
