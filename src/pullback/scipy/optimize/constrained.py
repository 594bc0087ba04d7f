"""Minima subject to bounds and constraints, by SciPy's methods on the host, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import tree
from pullback.core.array import as_array, host_value, is_on_host
from pullback.core.interrupts import imported
from pullback.core.jaxpr import ClosedJaxpr
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize import kkt
from pullback.scipy.optimize.constraints import Constraints
from pullback.scipy.optimize.host_functions import Problem, explicit
from pullback.scipy.optimize.kkt import Limits
from pullback.scipy.optimize.problems import OptimizeResults, dot
from pullback.scipy.optimize.sensitivities import KINK, NOT_SOLVED, REGULAR, attached, spoiled
from pullback.scipy.sparse.linalg.hermitian import cg
from pullback.transforms.autodiff.grad import grad
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

OPTIONS: dict[str, dict[str, Any]] = {
    "l-bfgs-b": dict.fromkeys(("maxcor", "ftol", "gtol", "maxfun", "maxiter", "maxls")),
    "slsqp": dict.fromkeys(("ftol", "maxiter")),
    "trust-constr": dict.fromkeys((
        "gtol", "xtol", "barrier_tol", "maxiter", "initial_constr_penalty", "initial_tr_radius",
        "initial_barrier_parameter", "initial_barrier_tolerance", "factorization_method",
    )),
}  # fmt: skip
_INTEGERS = ("status", "degeneracy", "nfev", "njev", "nit")
_NAMES = {"l-bfgs-b": "L-BFGS-B", "slsqp": "SLSQP", "trust-constr": "trust-constr"}


def minimum(
    method: str, objective: Callable[[Any], Any], derivatives: tuple[Any, Any], x: Any, constraints: Constraints,
    tol: Any, options: Mapping[str, Any],
) -> OptimizeResults:  # fmt: skip
    """Return the result of ``minimize`` for vectors.

    Args:
      method: one of ``OPTIONS``.
      objective: from vectors to a scalar.
      derivatives: the user's functions for its gradient and its Hessian, of vectors, or None.
      x: the starting point.
      constraints: the bounds and the constraints.
      tol: SciPy's ``tol``.
      options: SciPy's options.
    """
    n, m, dtype = x.shape[0], constraints.number, x.dtype
    functions = [objective, constraints.values, *derivatives]
    parts = [None if f is None else explicit("minimize", f, x) for f in functions]
    options = {key: value for key, value in options.items() if value is not None}
    settings = {"method": _NAMES[method], "tol": tol, "options": options}
    host = Host(method, [part and part.closed for part in parts], settings)
    limits = [ops.convert_element_type(part, dtype) for part in constraints.limits]
    captured = [[] if part is None else part.captured for part in parts]
    if all(map(is_on_host, tree.leaves((x, limits, captured)))):  # no derivative: nothing needs to be traced
        known = Found(*map(as_array, host(*tree.tree_map(host_value, (x, limits, captured)))))
        return OptimizeResults(
            known.x, known.status == 0, known.status, known.fun, known.jac, None, known.nfev, known.njev, known.nit,
            known.constr, known.y, known.of_bounds, known.degeneracy,
        )  # fmt: skip
    sizes = {"x": n, "y": m, "active": m, "at_bound": n, "jac": n, "constr": m, "of_bounds": n}
    results = Found(*(
        ShapeDtypeStruct((sizes[name],) if name in sizes else (), np.int32 if name in _INTEGERS else dtype)
        for name in Found._fields
    ))  # fmt: skip
    found = Found(
        *pure_callback(host.__call__, list(results), *stop_gradient((x, limits, captured)), vmap_method="sequential")
    )
    point, y, active, at_bound, status, degeneracy = found[:6]
    low, high, lower, upper, one = spoiled([*limits, np.ones((), dtype)], degeneracy)
    limit = ops.where(active == 0, y * 0, ops.where(active > 0, low, high))
    bound = ops.where(at_bound == 0, point * 0, ops.where(at_bound > 0, lower, upper))
    lagrange = lambda x, y: one * (objective(x) - dot(y, constraints.values(x)) if m else objective(x))

    def equation(z: Any) -> Any:
        x, y = z[:n], z[n:]
        stationary = ops.where(at_bound == 0, grad(lagrange)(x, y), x - bound)
        if m == 0:
            return stationary
        return pnp.concatenate([stationary, ops.where(active == 0, y, one * constraints.values(x) - limit)])

    solution = partial(_by_products, at_bound) if method == "l-bfgs-b" else None
    z = attached("minimize", equation, pnp.concatenate([point, y]), degeneracy, solution)
    x, y = z[:n], z[n:]
    rest = ops.where(at_bound == 0, x * 0, grad(lagrange)(x, y))
    return OptimizeResults(
        x, status == 0, status, objective(x), grad(objective)(x), None, found.nfev, found.njev, found.nit,
         constraints.values(x), y, rest,
        degeneracy,
    )  # fmt: skip


def _by_products(at_bound: Any, matvec: Callable[[Any], Any], y: Any) -> Any:
    """Solve ``matvec(x) = y`` by conjugate gradients on the free unknowns.

    The rows of unknowns at a bound are those of the identity, or in the transposed equation the columns are.
    """
    free = lambda x: ops.where(at_bound == 0, x, x * 0)
    held = y - free(y)
    among = lambda x: free(matvec(free(x)))
    found = free(cg(among, free(y - matvec(held)), tol=100 * float(np.finfo(y.dtype).eps))[0])
    rest = y - matvec(found)
    return found + (rest - free(rest))


class Host(NamedTuple):
    """A minimisation on the host, as a function of the starting point, the limits, and the arrays of its functions.

    Attributes:
      method: one of ``OPTIONS``.
      parts: the programs of :class:`Problem`.
      settings: SciPy's arguments.
    """

    method: str
    parts: list[ClosedJaxpr | None]
    settings: dict[str, Any]

    def __call__(self, x: Any, limits: Any, arrays: Any) -> list[Any]:
        """Return what :class:`Found` says, in the dtype of the point."""
        dtype = x.dtype
        limits = Limits(*(np.asarray(part, np.float64) for part in limits))
        problem = Problem(self.parts, arrays, len(limits.low), dtype)
        found = _minimised(self, problem, np.asarray(x, np.float64), limits)
        return [np.asarray(v, np.int32 if k in _INTEGERS else dtype) for k, v in found._asdict().items()]


class Found(NamedTuple):
    """What the host returns: a point, multipliers, and the fields of the public result."""

    x: Any
    y: Any
    active: Any
    at_bound: Any
    status: Any
    degeneracy: Any
    fun: Any
    jac: Any
    constr: Any
    of_bounds: Any
    nfev: Any
    njev: Any
    nit: Any


def _minimised(host: Host, problem: Problem, start: Any, limits: Limits) -> Found:
    """Minimise by SciPy, find which constraints are active, and return everything about the solution."""
    low, high, lower, upper = limits
    x, m, nit = start, len(low), 0
    eps = float(np.finfo(problem.dtype).eps)
    y, active, at_bound = np.full(m, np.nan), np.zeros(m), np.zeros(len(x))
    degeneracy = NOT_SOLVED
    if (low > high).any() or (lower > upper).any() or any(np.isnan(part).any() for part in limits):
        status = 4
    else:
        x = np.clip(x, lower, upper)
        parts = problem.value(x), problem.constraints(x), problem.gradient(x), problem.jacobian(x)
        if not all(np.isfinite(part).all() for part in parts):
            status = 6
        else:
            first = np.abs(parts[2]).max(initial=0.0)
            found = imported("scipy.optimize").minimize(**_ARGUMENTS[host.method](problem, x, limits), **host.settings)
            x, nit = np.clip(found.x, lower, upper), found.nit
            status = _STATUS[host.method](found)
            if host.method == "l-bfgs-b" and status == 0:
                at_bound, degeneracy = _at_bounds(problem.gradient(x), first, x, limits, eps)
            elif status in (0, 3):
                solution = kkt.refined(problem.model, x, limits, eps)
                if solution.degeneracy != NOT_SOLVED:
                    x, y, active, at_bound, degeneracy = solution
                    status = 0
    nfev, njev = problem.counts.values()
    slope = problem.gradient(x)
    of_bounds = np.where(at_bound == 0, 0.0, slope - (y @ problem.jacobian(x) if m else 0.0))
    fixed = x, y, active, at_bound, status, degeneracy
    return Found(*fixed, problem.value(x), slope, problem.constraints(x), of_bounds, nfev, njev, nit)


def _at_bounds(slope: Any, first: float, x: Any, limits: Limits, eps: float) -> tuple[Any, int]:
    """Return which unknowns stand at a bound, as in :class:`kkt.Solution`, and the degeneracy.

    Args:
      slope: the gradient.
      first: the largest element of the gradient at the starting point, which says what is small.
      x: the solution.
      limits: the bounds.
      eps: the precision of the dtype.
    """
    small = np.sqrt(eps) * max(first, np.abs(slope).max(initial=0.0))
    near = np.sqrt(eps) * max(1.0, np.abs(x).max(initial=0.0))
    low, high, fixed = x - limits.lower <= near, limits.upper - x <= near, limits.lower == limits.upper
    at_bound = np.where(fixed | (low & (slope > small)), 1.0, np.where(high & (slope < -small), -1.0, 0.0))
    weak = (low | high) & (at_bound == 0) & (np.abs(slope) <= small)
    return at_bound, KINK if weak.any() else REGULAR


def _for_lbfgsb(problem: Problem, x: Any, limits: Limits) -> dict[str, Any]:
    bounds = imported("scipy.optimize").Bounds(limits.lower, limits.upper)
    return {"fun": problem.both, "x0": x, "jac": True, "bounds": bounds}


def _for_slsqp(problem: Problem, x: Any, limits: Limits) -> dict[str, Any]:
    low, high, lower, upper = limits
    equal = low == high
    above, below = ~equal & np.isfinite(low), ~equal & np.isfinite(high)
    values, slopes = problem.constraints, problem.jacobian
    kinds = {
        "eq": (lambda x: (values(x) - low)[equal], lambda x: slopes(x)[equal]),
        "ineq": (
            lambda x: np.concatenate([(values(x) - low)[above], (high - values(x))[below]]),
            lambda x: np.concatenate([slopes(x)[above], -slopes(x)[below]]),
        ),
    }
    count = {"eq": equal.sum(), "ineq": above.sum() + below.sum()}
    return {
        "fun": problem.value, "x0": x, "jac": problem.gradient,
        "bounds": imported("scipy.optimize").Bounds(lower, upper),
        "constraints": [{"type": kind, "fun": f, "jac": jac} for kind, (f, jac) in kinds.items() if count[kind]],
    }  # fmt: skip


def _for_trust_region(problem: Problem, x: Any, limits: Limits) -> dict[str, Any]:
    optimize = imported("scipy.optimize")
    constraint = optimize.NonlinearConstraint(
        problem.constraints, limits.low, limits.high, jac=problem.jacobian,
        hess=lambda x, y: problem.curvature(x, np.asarray(y, np.float64)),
    )  # fmt: skip
    return {
        "fun": problem.value, "x0": x, "jac": problem.gradient,
        "hess": problem.hessian, "bounds": optimize.Bounds(limits.lower, limits.upper),
        "constraints": [constraint] if len(limits.low) else [],
    }  # fmt: skip


_ARGUMENTS = {"l-bfgs-b": _for_lbfgsb, "slsqp": _for_slsqp, "trust-constr": _for_trust_region}
_STATUS: dict[str, Callable[[Any], int]] = {
    "l-bfgs-b": lambda found: {0: 0, 1: 1}.get(found.status, 3),
    "slsqp": lambda found: {0: 0, 4: 4, 9: 1}.get(found.status, 3),
    "trust-constr": lambda found: 1 if found.status == 0 else 0 if found.constr_violation <= 1e-6 else 4,
}
