"""Quadratic programs: ``solve_qp``, by SciPy's method for least squares that are not negative, on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import inexact_operand, inexact_operands
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize import kkt
from pullback.scipy.optimize.kkt import Limits, Model
from pullback.scipy.optimize.linear_programs import Marginals
from pullback.scipy.optimize.problems import dot, times
from pullback.scipy.optimize.sensitivities import NOT_SOLVED, attached, spoiled
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

_REPETITIONS = 200


class QuadraticResult(NamedTuple):
    """The result of :func:`solve_qp`; floats have derivatives.

    Attributes:
      x: the solution; NaN if there is none.
      fun: the value there.
      success: whether ``x`` is a solution.
      status: int32: 0 where it is, 2 where nothing satisfies the constraints, 4 where the method failed, as where the
        values have no lower bound or ``P`` is not positive semidefinite.
      ineqlin, eqlin, lower, upper: the :class:`Marginals` of the inequalities, equalities and bounds.
      degeneracy: int32, why the solution has no derivative, or 0, as of :func:`minimize`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import solve_qp
    >>> found = solve_qp(jnp.eye(2), jnp.array([-1.0, -2.0]), ub=1.0)
    >>> print(found.x, found.upper.marginals)
    [1. 1.] [ 0. -1.]
    """

    x: Array
    fun: Array
    success: Array
    status: Array
    ineqlin: Marginals
    eqlin: Marginals
    lower: Marginals
    upper: Marginals
    degeneracy: Array


class Quadratic(NamedTuple):
    """The least ``x @ matrix @ x / 2 + vector @ x`` with ``low <= rows @ x <= high`` and ``lower <= x <= upper``."""

    matrix: Any
    vector: Any
    rows: Any
    low: Any
    high: Any
    lower: Any
    upper: Any


# long: half of it is its documentation
def solve_qp(
    P: ArrayLike,
    q: ArrayLike,
    G: ArrayLike | None = None,
    h: ArrayLike | None = None,
    A: ArrayLike | None = None,
    b: ArrayLike | None = None,
    lb: ArrayLike | None = None,
    ub: ArrayLike | None = None,
) -> QuadraticResult:
    """Minimise a convex quadratic function subject to linear constraints.

    The host solves the dual problem, least squares with unknowns that are not negative, by SciPy's ``nnls``; Newton's
    method on the optimality conditions makes the solution as precise as the dtype. The derivatives are by all arrays,
    in both modes and to any order, where the active constraints and their multipliers determine them. ``vmap`` solves a
    program for each example.

    Args:
      P: the matrix of the function ``x @ P @ x / 2 + q @ x``, (n, n), of which the symmetric part counts; positive
        semidefinite.
      q: its vector, (n,).
      G, h: the constraints ``G @ x <= h``, (m, n) and (m,).
      A, b: the constraints ``A @ x == b``, (k, n) and (k,).
      lb, ub: the least and the greatest values of ``x``, numbers or arrays (n,); None for infinity.

    Returns:
      A :class:`QuadraticResult`. Where its ``degeneracy`` is not 0, derivatives are NaN, or raise an error in eager
      code.

    Raises:
      ShapeError: shapes do not fit (a TypeError and a ValueError).
      DegenerateSolutionError: the solution is differentiated where it has no derivative (a TypeError and a ValueError).

    Source: C. L. Lawson and R. J. Hanson 1974, Solving Least Squares Problems, chapter 23.

    >>> import pullback.numpy as jnp
    >>> from pullback import jacobian
    >>> from pullback.scipy.optimize import solve_qp
    >>> point = jnp.array([0.8, 0.6, -0.5])  # its projection onto the probabilities
    >>> project = lambda x: solve_qp(jnp.eye(3), -x, A=jnp.ones((1, 3)), b=jnp.ones(1), lb=0.0).x
    >>> print(project(point).round(4))
    [0.6 0.4 0. ]
    >>> print(jacobian(project)(point).round(4) + 0.0)
    [[ 0.5 -0.5  0. ]
     [-0.5  0.5  0. ]
     [ 0.   0.   0. ]]
    """
    matrix, vector = (inexact_operand("solve_qp", pnp.asarray(x)) for x in (P, q))
    n = vector.shape[0] if vector.ndim == 1 else -1
    if matrix.shape != (n, n):
        raise ShapeError(
            f"solve_qp: P must have shape (n, n) and q the shape (n,), got {matrix.shape} and {vector.shape}"
        )
    ends = _ends("lb", lb, -np.inf, n), _ends("ub", ub, np.inf, n)
    given = [*_rows("G", G, "h", h, n), *_rows("A", A, "b", b, n), *ends]
    arrays = inexact_operands("solve_qp", matrix, vector, *given)
    matrix, vector, g, above, a, exact, lower, upper = map(
        ops.convert_element_type, arrays, [arrays[0].dtype] * len(arrays)
    )  # fmt: skip
    matrix = (matrix + matrix.T) / 2
    m = above.shape[0]
    low = pnp.concatenate([pnp.full_like(above, -np.inf), exact])
    rows, high = pnp.concatenate([g, a]), pnp.concatenate([above, exact])
    program = Quadratic(matrix, vector, rows, low, high, lower, upper)
    x, y, status, degeneracy = _solved(program)
    slope = times(matrix, x) + vector
    press = slope - times(program.rows.T, y)
    at_low, at_high = (ops.where(x == end, press, ops.mul(press, 0)) for end in (lower, upper))
    return QuadraticResult(
        x, dot(slope + vector, x) / 2, status == 0, status, Marginals(above - times(g, x), y[:m]),
        Marginals(exact - times(a, x), y[m:]), Marginals(x - lower, ops.max_p.bind(at_low, ops.mul(press, 0))),
        Marginals(upper - x, ops.min_p.bind(at_high, ops.mul(press, 0))), degeneracy,
    )  # fmt: skip


def _rows(left: str, matrix: Any, right: str, limits: Any, n: int) -> tuple[Any, Any]:
    if (matrix is None) != (limits is None):
        raise ShapeError(f"solve_qp: {left} and {right} belong together, but one of them is None")
    if matrix is None:
        return pnp.zeros((0, n), np.float32), pnp.zeros(0, np.float32)
    matrix, limits = (inexact_operand("solve_qp", pnp.asarray(x)) for x in (matrix, limits))
    if matrix.ndim != 2 or matrix.shape[1] != n or limits.shape != matrix.shape[:1]:
        raise ShapeError(
            f"solve_qp: {left} must have shape (m, {n}), for the {n} unknowns of q, and {right} the shape (m,), got "
            f"{matrix.shape} and {limits.shape}"
        )
    return matrix, limits


def _ends(what: str, end: Any, default: float, n: int) -> Any:
    found = inexact_operand("solve_qp", pnp.asarray(default if end is None else end))
    if found.shape not in ((), (1,), (n,)):
        raise ShapeError(f"solve_qp: {what} must be a number or have shape ({n},), got {found.shape}")
    return pnp.broadcast_to(found, (n,))


def _solved(program: Quadratic) -> tuple[Any, Any, Any, Any]:
    """Return the solution, the multipliers of the rows, the status and the degeneracy."""
    m, n = program.rows.shape
    dtype = program.vector.dtype
    if all(map(is_on_host, program)):  # no derivative: nothing needs to be traced
        x, y, _, _, status, degeneracy = map(as_array, _on_host(*map(host_value, program)))
        return x, y, status, degeneracy
    results = [ShapeDtypeStruct((size,), dtype) for size in (n, m, m, n)] + [ShapeDtypeStruct((), np.int32)] * 2
    found = pure_callback(_on_host, results, *stop_gradient(tuple(program)), vmap_method="sequential")
    point, y, active, at_bound, status, degeneracy = found
    program = Quadratic(*spoiled(program, degeneracy))
    limit = ops.where(active == 0, y * 0, ops.where(active > 0, program.low, program.high))
    bound = ops.where(at_bound == 0, point * 0, ops.where(at_bound > 0, program.lower, program.upper))

    def equation(z: Any) -> Any:
        x, y = z[:n], z[n:]
        slope = times(program.matrix, x) + program.vector - times(program.rows.T, y)
        held = ops.where(active == 0, y, times(program.rows, x) - limit)
        return pnp.concatenate([ops.where(at_bound == 0, slope, x - bound), held])

    z = attached("solve_qp", equation, pnp.concatenate([point, y]), degeneracy)
    return z[:n], z[n:], status, degeneracy


# The host ------------------------------------------------------------------------------------------------------------


def _on_host(*arrays: Any) -> list[Any]:
    """Return the solution, the multipliers, the active rows and bounds, the status and the degeneracy."""
    dtype = arrays[0].dtype
    program = Quadratic(*(np.asarray(x, np.float64) for x in arrays))
    matrix, vector, rows = program[:3]
    limits = Limits(*program[3:])
    m, n = rows.shape
    x, status = np.full(n, np.nan), 4
    if all(np.isfinite(part).all() for part in program[:3]) and not any(np.isnan(part).any() for part in limits):
        x, status = _least(program)
    solution = kkt.Solution(x, np.full(m, np.nan), np.zeros(m), np.zeros(n), NOT_SOLVED)
    if status == 0:
        model = lambda x, y: Model(matrix @ x + vector, matrix, rows @ x, rows)
        found = kkt.refined(model, x, limits, float(np.finfo(np.float64).eps))
        solution, status = (found, 0) if found.degeneracy != NOT_SOLVED else (solution, 4)
    x, y, active, at_bound, degeneracy = solution
    if status != 0:
        x = np.full(n, np.nan)
    floats = [np.asarray(part, dtype) for part in (x, y, active, at_bound)]
    return [*floats, np.int32(status), np.int32(degeneracy)]


def _least(program: Quadratic) -> tuple[Any, int]:
    """Return the solution of a program, and the status.

    Equations are eliminated. If the matrix of the rest is not positive definite, each of several programs adds the
    square of the distance from the solution of the one before (R. T. Rockafellar 1976).
    """
    matrix, vector, rows, low, high, lower, upper = program
    n = len(vector)
    equal, fixed = low == high, lower == upper
    equations = np.concatenate([rows[equal], np.eye(n)[fixed]])
    start = np.zeros(n)
    free = np.eye(n)
    if len(equations):
        values = np.concatenate([low[equal], lower[fixed]])
        start = np.linalg.lstsq(equations, values, rcond=None)[0]
        size = 1 + np.abs(values).max()
        if np.abs(equations @ start - values).max() > 1e-9 * size:
            return start, 2
        free = imported("scipy.linalg").null_space(equations)
    sides = [(rows, low, ~equal), (-rows, -high, ~equal), (np.eye(n), lower, ~fixed), (-np.eye(n), -upper, ~fixed)]
    kept = [(a[mask & np.isfinite(c)], c[mask & np.isfinite(c)]) for a, c, mask in sides]
    left, right = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    if free.shape[1] == 0:
        return start, 0 if (left @ start >= right - 1e-9 * (1 + np.abs(right))).all() else 2
    hessian, slope = free.T @ matrix @ free, free.T @ (matrix @ start + vector)
    sizes = np.linalg.eigvalsh(hessian)
    if sizes[0] < -1e-9 * np.abs(sizes).max():
        return start, 4
    added = 0.0 if sizes[0] > 1e-9 * sizes[-1] else 1e-2 * max(sizes[-1], np.abs(slope).max(), 1e-9)
    factor = np.linalg.cholesky(hessian + added * np.eye(len(slope)))
    rest = right - left @ start
    w = np.zeros(len(slope))
    for _ in range(_REPETITIONS):
        new, status = _nearest(factor, slope - added * w, left @ free, rest)
        if status:
            return start, status
        done = added == 0 or np.abs(new - w).max() <= 1e-9 * (1 + np.abs(new).max())
        w = new
        if done:
            return start + free @ w, 0
    return start, 4


def _nearest(factor: Any, slope: Any, left: Any, right: Any) -> tuple[Any, int]:
    """Return the w of least ``w @ H @ w / 2 + slope @ w`` with ``left @ w >= right``, H by its factor, and the status.

    In the unknowns in which H is the identity it is the point nearest to zero, whose multipliers are those of least
    squares of the rows and right sides with the greatest residual in the last equation.
    """
    triangular = imported("scipy.linalg").solve_triangular
    shift = triangular(factor, slope, lower=True)
    back = lambda y: triangular(factor, y - shift, lower=True, trans="T")
    if not len(left):
        return back(np.zeros(len(shift))), 0
    turned = triangular(factor, left.T, lower=True)
    limits = right + turned.T @ shift
    scale = np.linalg.norm(turned, axis=0)
    scale[scale == 0] = 1
    size = max(1.0, np.abs(limits / scale).max())
    columns = np.concatenate([turned / scale, (limits / scale / size)[None]])
    goal = np.zeros(len(columns))
    goal[-1] = 1
    try:
        multipliers, _ = imported("scipy.optimize").nnls(columns, goal)
    except RuntimeError:
        return slope, 4
    residual = columns @ multipliers - goal
    if not residual[-1] < -1e-10:
        return slope, 2
    return back(-size * residual[:-1] / residual[-1]), 0
