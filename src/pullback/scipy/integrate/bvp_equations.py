"""Boundary value problems as equations: the user's functions as programs, and the collocation equations on a mesh."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import host_value, is_on_host, typeof
from pullback.core.errors import DegenerateSolutionError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from pullback.primitives import elementwise as ops
from pullback.primitives.linalg.lu import identity
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.problems import times
from pullback.scipy.sparse.linalg.direct import settings_of, solved
from pullback.scipy.sparse.linalg.entries import Entries
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.custom_rules import custom_jvp
from pullback.transforms.traces.equal_programs import deduplicated
from pullback.transforms.traces.stage import stage_flat


class Problem(NamedTuple):
    """A problem: its functions as programs, and the settings of the solution, all hashable.

    The last inputs of each program are the arrays that its function closes over.

    Attributes:
      fun: from a point (1,), a state (n, 1) and the unknown parameters (k,) to the slope (n, 1).
      bc: from the states at both ends and the parameters to the residuals (n + k,).
      fun_jac, bc_jac: the user's functions, or None; without the derivative by parameters if there are none.
      counts: how many arrays each of the four closes over.
      n, k: the numbers of elements of the state, and of parameters.
      tol, bc_tol: the bounds of the residuals.
      max_nodes: the largest number of points in a mesh.
      verbose: how much SciPy prints.
    """

    fun: ClosedJaxpr
    bc: ClosedJaxpr
    fun_jac: ClosedJaxpr | None
    bc_jac: ClosedJaxpr | None
    counts: tuple[int, ...]
    n: int
    k: int
    tol: float
    bc_tol: float
    max_nodes: int
    verbose: int

    def arrays_of(self, arrays: Sequence[Any]) -> list[list[Any]]:
        """Return the arrays of each of the four functions."""
        ends = np.cumsum((0, *self.counts))
        return [list(arrays[i:j]) for i, j in itertools.pairwise(ends)]


def staged(function: Callable[..., Any], run: Callable[..., Any], like: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """Trace ``run``, which calls a user's function, for arrays like those; return a program and the arrays it needs."""
    avals = [typeof(x).update(weak_type=False) for x in like]
    closed = stage_flat(function, run, avals, "solve_bvp", literals=False)
    jaxpr = closed.jaxpr
    whole = Jaxpr([], [*jaxpr.invars, *jaxpr.constvars], jaxpr.eqns, jaxpr.outvars)
    return deduplicated(ClosedJaxpr(whole)), list(closed.consts)


def columns_of(program: ClosedJaxpr, x: Any, y: Any, p: Any, arrays: Sequence[Any]) -> list[Any]:
    """Run a program of one point at the points ``x`` and the states ``y`` (n, m); the points are the last axis."""
    run = jaxpr_as_fun(program)
    found = vmap(lambda x, y: [out[..., 0] for out in run(x[None], y[:, None], p, *arrays)])(x, y.T)
    return [pnp.moveaxis(out, 0, -1) for out in found]


def matrix_of(function: Callable[..., Any], vectors: Sequence[Any]) -> Any:
    """Return the derivatives of a vector by the elements of vectors, one vector after the other, as a matrix."""
    sizes = [x.shape[0] for x in vectors]
    basis = identity(sum(sizes), vectors[0].dtype)
    ends = np.cumsum((0, *sizes))
    seeds = [basis[:, i:j] for i, j in itertools.pairwise(ends)]
    return vmap(lambda *t: jvp(function, tuple(vectors), t)[1])(*seeds).T


def jacobians_of(program: ClosedJaxpr, x: Any, y: Any, p: Any, arrays: Sequence[Any]) -> list[Any]:
    """Return the derivatives (n, n, m) and (n, k, m) of slopes by states and by parameters."""
    run, n = jaxpr_as_fun(program), y.shape[0]

    def at(x: Any, y: Any) -> Any:
        return matrix_of(lambda y, p: run(x[None], y[:, None], p, *arrays)[0][:, 0], (y, p))

    found = pnp.moveaxis(vmap(at)(x, y.T), 0, -1)
    return [found[:, :n], found[:, n:]]


class Unknowns(NamedTuple):
    """What determines the equations, beside the solution: arrays with derivatives.

    Attributes:
      x: the points of the mesh, (m,). Intervals of length zero at the end have no influence.
      singular: the matrix S, and the pseudoinverse of I - S; or none.
      arrays: those that the functions close over.
    """

    x: Any
    singular: tuple[Any, ...]
    arrays: Sequence[Any]


class Equations:
    """The collocation equations of a problem on a mesh of m points.

    The unknowns are the states at the points, one after the other, and the parameters. The slope of the cubic on each
    interval agrees with the equation at both ends and in the middle: Simpson's rule (Ascher, Mattheij and Russell 1995,
    section 5.4).
    """

    def __init__(self, problem: Problem, m: int) -> None:
        self.problem, self.m = problem, m

    def slope(self, given: Unknowns, x: Any, y: Any, p: Any) -> Any:
        """Return the right-hand side at a point, with the singular term."""
        own = self.problem.arrays_of(given.arrays)[0]
        f = jaxpr_as_fun(self.problem.fun)(x[None], y[:, None], p, *own)[0][:, 0]
        if not given.singular:
            return f
        s, corrected = given.singular
        gap = x - given.x[0]
        first = ops.eq(gap, 0)
        term = times(s, y) / ops.convert_element_type(ops.where(first, 1, gap), y.dtype)
        return ops.where(first, times(corrected, f), f + term)

    def slopes(self, given: Unknowns, y: Any, p: Any) -> Any:
        """Return the right-hand sides at the points of the mesh, (m, n), of the states ``y`` (m, n)."""
        return vmap(lambda x, y: self.slope(given, x, y, p))(given.x, y)

    def _interval(self, given: Unknowns, left: Any, right: Any, y: Any, after: Any, p: Any) -> Any:
        real = right - left
        h = ops.convert_element_type(real, y.dtype)
        f, last = self.slope(given, left, y, p), self.slope(given, right, after, p)
        middle = 0.5 * (y + after) - 0.125 * h * (last - f)
        slopes = f + last + 4 * self.slope(given, left + 0.5 * real, middle, p)
        return after - y - h / 6 * slopes

    def _ends(self, given: Unknowns, first: Any, last: Any, p: Any) -> Any:
        own = self.problem.arrays_of(given.arrays)[1]
        return jaxpr_as_fun(self.problem.bc)(first, last, p, *own)[0]

    def parts(self, z: Any) -> tuple[Any, Any]:
        """Return the states (m, n) and the parameters of a vector of unknowns."""
        count = self.m * self.problem.n
        return z[:count].reshape(self.m, self.problem.n), z[count:]

    def residual(self, given: Unknowns, z: Any) -> Any:
        """Return the residuals of the intervals, one after the other, and of the boundary conditions."""
        y, p = self.parts(z)
        inner = vmap(lambda a, b, y, after: self._interval(given, a, b, y, after, p))(
            given.x[:-1], given.x[1:], y[:-1], y[1:]
        )
        return pnp.concatenate([inner.reshape(-1), self._ends(given, y[0], y[-1], p)])

    def jacobian(self, given: Unknowns, z: Any) -> Any:
        """Return the elements of the Jacobian of the residual at :meth:`positions`."""
        y, p = self.parts(z)

        def block(left: Any, right: Any, y: Any, after: Any) -> Any:
            return matrix_of(lambda *vectors: self._interval(given, left, right, *vectors), (y, after, p))

        inner = vmap(block)(given.x[:-1], given.x[1:], y[:-1], y[1:])
        ends = matrix_of(lambda *vectors: self._ends(given, *vectors), (y[0], y[-1], p))
        return pnp.concatenate([inner.reshape(-1), ends.reshape(-1)])

    def positions(self) -> Any:
        """Return the rows and columns of the elements of the Jacobian."""
        n, k, m = self.problem.n, self.problem.k, self.m
        states, parameters = np.arange(2 * n), m * n + np.arange(k)
        rows = np.arange((m - 1) * n)
        inner = np.concatenate([(rows // n * n)[:, None] + states, np.broadcast_to(parameters, (len(rows), k))], axis=1)
        outer = np.concatenate([np.arange(n), (m - 1) * n + np.arange(n), parameters])
        last = np.repeat(len(rows) + np.arange(n + k), 2 * n + k)
        where = np.concatenate([np.repeat(rows, 2 * n + k), last])
        columns = np.concatenate([inner.reshape(-1), np.tile(outer, n + k)])
        return np.stack([where, columns], axis=1).astype(np.int32)

    def attached(self, z: Any, status: Any, given: Unknowns) -> Any:
        """Return a solution of the equations, with its derivatives with respect to what is given.

        Where the status is not zero they are NaN, or where it is known an error.
        """
        return _attached(self, z, status, given)


def _attached(equations: Equations, z: Any, status: Any, given: Unknowns) -> Any:
    operands = [given.x, *given.singular, *given.arrays]
    count = len(given.singular)
    size = equations.m * equations.problem.n + equations.problem.k
    settings = settings_of("solve_bvp", "splu", None)
    rebuilt = lambda xs: Unknowns(xs[0], tuple(xs[1 : 1 + count]), list(xs[1 + count :]))
    moving = [i for i, x in enumerate(operands) if dtypes.is_inexact(x.dtype)]
    ending = custom_jvp(lambda z, status, operands: z)

    @ending.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        z, status, operands = primals
        _check(status)
        z = ending(z, status, operands)  # with the derivative attached again, for higher orders

        def again(*active: Any) -> Any:
            every = list(operands)
            for i, x in zip(moving, active, strict=True):
                every[i] = x
            return equations.residual(rebuilt(every), z)

        moved = jvp(again, tuple(operands[i] for i in moving), tuple(tangents[2][i] for i in moving))[1]
        elements = ops.where(ops.eq(status, 0), equations.jacobian(rebuilt(operands), z), np.nan)
        matrix = Entries(elements, pnp.asarray(equations.positions()), (size, size))
        return z, ops.neg(solved(settings, matrix, moved))

    return ending(stop_gradient(z), status, operands)


def _check(status: Any) -> None:
    if is_on_host(status) and int(host_value(status)):
        reason = MESSAGES[int(host_value(status))]
        raise DegenerateSolutionError(
            f"solve_bvp: the solution has no derivative: {reason[0].lower()}{reason[1:]} Pass a better guess, a finer "
            f"mesh, or a larger max_nodes or tol"
        )


MESSAGES = {
    0: "The algorithm converged to the desired accuracy.",
    1: "The maximum number of mesh nodes is exceeded.",
    2: "A singular Jacobian encountered when solving the collocation system.",
    3: "The solver was unable to satisfy boundary conditions tolerance on iteration 10.",
}
"""What SciPy says of each status."""
