"""The solvers: functions without arguments that return the state at the end."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

from benchmarks.equations.problems import Problem

Run = Callable[[], Any]
MOST_STEPS = 20_000
"""The limit of the steps; compiled programs of ours have arrays of this size."""


def eager(problem: Problem, method: str, rtol: float) -> Run:
    """Return a solution by an eager call."""
    from pullback import numpy as jnp
    from pullback.scipy.integrate import solve_ivp

    more: dict[str, Any] = {} if problem.pattern is None else {"jac_sparsity": problem.pattern}
    slope = lambda t, y: problem.slope(jnp, t, y)
    atol = rtol * problem.absolute
    return lambda: solve_ivp(
        slope, (0.0, problem.end), problem.start, method, rtol=rtol, atol=atol, max_steps=MOST_STEPS, **more
    ).y[:, -1]  # fmt: skip


def compiled(problem: Problem, method: str, rtol: float) -> Run:
    """Return a solution by a compiled function."""
    from pullback import jit
    from pullback import numpy as jnp
    from pullback.scipy.integrate import solve_ivp

    atol, slope = rtol * problem.absolute, lambda t, y: problem.slope(jnp, t, y)

    @jit
    def solution(y: Any) -> Any:
        found = solve_ivp(slope, (0.0, problem.end), y, method, rtol=rtol, atol=atol, max_steps=MOST_STEPS)
        return found.y[:, -1]

    return lambda: solution(jnp.asarray(problem.start))


def by_scipy(problem: Problem, method: str, rtol: float) -> Run:
    """Return a solution by SciPy, with difference quotients as the Jacobian."""
    more: dict[str, Any] = {} if problem.pattern is None else {"jac_sparsity": problem.pattern}
    slope, atol = lambda t, y: problem.slope(np, t, y), rtol * problem.absolute
    return lambda: scipy.integrate.solve_ivp(
        slope, (0.0, problem.end), problem.start, method, rtol=rtol, atol=atol, **more
    ).y[:, -1]  # fmt: skip


def by_diffrax(problem: Problem, method: str, rtol: float) -> Run:
    """Return a solution by Diffrax, compiled."""
    import jax

    diffrax: Any = importlib.import_module("diffrax")

    term = diffrax.ODETerm(lambda t, y, args: problem.slope(jax.numpy, t, y))
    control = diffrax.PIDController(rtol=rtol, atol=rtol * problem.absolute)
    solver = getattr(diffrax, method)()

    @jax.jit
    def solution(y: Any) -> Any:
        found = diffrax.diffeqsolve(
            term, solver, 0.0, problem.end, None, y, saveat=diffrax.SaveAt(t1=True), stepsize_controller=control,
            max_steps=MOST_STEPS, throw=False,
        )  # fmt: skip
        return found.ys[-1]

    start = jax.numpy.asarray(problem.start)
    return lambda: solution(start)


Maker = Callable[[Problem, str, float], Run]
MAKERS: dict[str, Maker] = {"eager": eager, "compiled": compiled, "SciPy": by_scipy, "Diffrax": by_diffrax}


def solvers(problem: Problem) -> list[tuple[str, str]]:
    """Return the kinds and the methods that solve a problem."""
    own = ("RK45", "DOP853") if not problem.stiff else ("Radau", "BDF")
    dense = problem.pattern is None
    rows = [(kind, method) for kind in ("eager", "SciPy") for method in own]
    rows += [("compiled", method) for method in (*own, *(("Rodas5P",) if problem.stiff else ())) if dense]
    peers = ("Kvaerno5",) if problem.stiff else ("Tsit5", "Dopri8")
    return rows + [("Diffrax", method) for method in peers if dense]
