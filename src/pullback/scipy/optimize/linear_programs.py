"""Linear programs on the host: ``linprog`` and ``milp`` with the derivatives of a vertex, and assignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import concrete, inexact_operand, inexact_operands, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.constraints import Bounds, LinearConstraint, bounds_of
from pullback.scipy.optimize.problems import dot, options_of, times
from pullback.scipy.optimize.sensitivities import DEPENDENT, KINK, NOT_SOLVED, NOT_UNIQUE, REGULAR, attached, spoiled
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

_TOUCHING = 1e-9  # a distance that is rounding, relative to the largest element: far below the tolerance of HiGHS, 1e-7
_METHODS = ("highs", "highs-ds", "highs-ipm")
_OPTIONS = {
    "linprog": dict.fromkeys((
        "maxiter", "presolve", "primal_feasibility_tolerance", "dual_feasibility_tolerance", "ipm_optimality_tolerance"
    )),
    "milp": dict.fromkeys(("node_limit", "presolve", "mip_rel_gap")),
}  # fmt: skip


class Marginals(NamedTuple):
    """What a kind of constraints of :func:`linprog` leaves, and what they cost.

    Attributes:
      residual: the distance of each from equality.
      marginals: the derivative of ``fun`` by the constraint's right side.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import linprog
    >>> print(linprog(jnp.array([1.0, 2.0]), bounds=(1.0, 3.0)).lower.marginals)
    [1. 2.]
    """

    residual: Array
    marginals: Array


class LinprogResult(NamedTuple):
    """The result of :func:`linprog`, without ``nit`` and ``message``; floats have derivatives.

    Attributes:
      x: the solution; NaN if there is none.
      fun: the value there.
      success: whether ``x`` is a solution.
      status: int32: 0 where it is, 1 after ``maxiter``, 2 where nothing satisfies the constraints, 3 where the values
        have no lower bound, 4 where the method failed.
      slack: ``b_ub - A_ub @ x``.
      con: ``b_eq - A_eq @ x``.
      ineqlin, eqlin, lower, upper: the :class:`Marginals` of the inequalities, equalities and bounds.
      degeneracy: int32: 0 where the solution has derivatives; 1 at a kink, where more constraints hold with equality
        than there are unknowns; 2 where the gradients of these are linearly dependent; 3 where there are several
        solutions; 4 where there is none. Marginals are then those of one of the possible bases.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import linprog
    >>> found = linprog(jnp.array([-1.0, -1.0]), jnp.array([[1.0, 2.0]]), jnp.array([4.0]), bounds=(0.0, 3.0))
    >>> print(found.x, found.slack, found.status)
    [3.  0.5] [0.] 0
    """

    x: Array
    fun: Array
    success: Array
    status: Array
    slack: Array
    con: Array
    ineqlin: Marginals
    eqlin: Marginals
    lower: Marginals
    upper: Marginals
    degeneracy: Array


class MilpResult(NamedTuple):
    """The result of :func:`milp`.

    Attributes:
      x: the solution; NaN if there is none.
      fun: the value there.
      success: whether ``x`` is a solution.
      status: int32, as of :class:`LinprogResult`.
      degeneracy: int32, as of :class:`LinprogResult`, of the program whose integers are fixed.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import milp
    >>> print(milp(jnp.array([-1.0]), integrality=1, bounds=(0.0, 2.5)).x)
    [2.]
    """

    x: Array
    fun: Array
    success: Array
    status: Array
    degeneracy: Array


class Program(NamedTuple):
    """A linear program: the least ``cost @ x`` with ``low <= rows @ x <= high`` and ``lower <= x <= upper``."""

    cost: Any
    rows: Any
    low: Any
    high: Any
    lower: Any
    upper: Any


# long: half of it is its documentation
def linprog(
    c: ArrayLike,
    A_ub: ArrayLike | None = None,
    b_ub: ArrayLike | None = None,
    A_eq: ArrayLike | None = None,
    b_eq: ArrayLike | None = None,
    bounds: ArrayLike | Sequence[Any] | None = (0, None),
    method: str = "highs",
    *,
    options: Mapping[str, Any] | None = None,
) -> LinprogResult:
    """Minimise a linear function of real numbers subject to linear constraints, by HiGHS on the host.

    Where exactly as many constraints hold with equality as there are unknowns, with multipliers that are not zero, the
    solution stays at their intersection when the arrays change: that gives its derivatives by all arrays, in both modes
    and to any order. ``vmap`` solves a program for each example.

    Args:
      c: the coefficients of the function, (n,).
      A_ub, b_ub: the constraints ``A_ub @ x <= b_ub``, (m, n) and (m,).
      A_eq, b_eq: the constraints ``A_eq @ x == b_eq``, (k, n) and (k,).
      bounds: pairs of the least and the greatest value of each unknown, or one pair for all; None stands for infinity.
        By default they are not negative.
      method: "highs"; "highs-ds", the dual simplex method; or "highs-ipm", an interior point and then a vertex.
      options: ``maxiter``; ``presolve``; and HiGHS's tolerances ``primal_feasibility_tolerance``,
        ``dual_feasibility_tolerance`` and ``ipm_optimality_tolerance``.

    Returns:
      A :class:`LinprogResult`. Where its ``degeneracy`` is not 0, derivatives are NaN, or raise an error in eager code.

    Raises:
      ShapeError: shapes do not fit (a TypeError and a ValueError).
      ArgumentError: an unknown method or option, a matrix without its right side (a TypeError and a ValueError).
      DegenerateSolutionError: the solution is differentiated where it has no derivative (a TypeError and a ValueError).

    Source: Q. Huangfu and J. A. J. Hall 2018, "Parallelizing the dual revised simplex method".

    >>> import pullback.numpy as jnp
    >>> from pullback import jacobian
    >>> from pullback.scipy.optimize import linprog
    >>> cost, rows = jnp.array([-1.0, -1.0]), jnp.array([[1.0, 2.0], [3.0, 1.0]])
    >>> print(linprog(cost, rows, jnp.array([4.0, 6.0])).x)
    [1.6 1.2]
    >>> print(jacobian(lambda b: linprog(cost, rows, b).x)(jnp.array([4.0, 6.0])).round(4))
    [[-0.2  0.4]
     [ 0.6 -0.2]]
    """
    if not is_listed(method, _METHODS):
        raise ArgumentError(f"linprog: method must be one of {', '.join(_METHODS)}, got {quote(method)}")
    settings = options_of("linprog", options, _OPTIONS["linprog"])
    cost = _vector("linprog", "c", c)
    n = cost.shape[0]
    given = [*_constraints("A_ub", A_ub, "b_ub", b_ub, n), *_constraints("A_eq", A_eq, "b_eq", b_eq, n)]
    arrays = inexact_operands("linprog", cost, *given, *bounds_of("linprog", bounds, n))
    cost, a, b, a_eq, b_eq, lower, upper = map(ops.convert_element_type, arrays, [arrays[0].dtype] * len(arrays))
    m = b.shape[0]
    low = pnp.concatenate([pnp.full_like(b, -np.inf), b_eq])
    program = Program(cost, pnp.concatenate([a, a_eq]), low, pnp.concatenate([b, b_eq]), lower, upper)
    x, y, status, degeneracy = _solved("linprog", program, None, {"method": method, "options": settings})
    slack, con = b - times(a, x), b_eq - times(a_eq, x)
    bound = y[-n:] if n else y
    none = ops.mul(bound, 0)
    ends = Marginals(x - lower, ops.max_p.bind(bound, none)), Marginals(upper - x, ops.min_p.bind(bound, none))
    return LinprogResult(
        x, dot(cost, x), status == 0, status, slack, con, Marginals(slack, y[:m]), Marginals(con, y[m : len(y) - n]),
        *ends, degeneracy,
    )  # fmt: skip


# long: half of it is its documentation
def milp(
    c: ArrayLike,
    *,
    integrality: ArrayLike | Sequence[int] | None = None,
    bounds: Bounds | Sequence[ArrayLike] | None = None,
    constraints: LinearConstraint | Sequence[LinearConstraint] = (),
    options: Mapping[str, Any] | None = None,
) -> MilpResult:
    """Minimise a linear function, some of whose unknowns are integers, by HiGHS on the host.

    The derivatives are those of the linear program whose integers are fixed at the solution: an integer has the
    derivative zero. They exist where the solution of that program is a vertex, as :func:`linprog` says.

    Args:
      c: the coefficients of the function, (n,).
      integrality: 0 for a real unknown and 1 for an integer, (n,) or one number for all; known without tracing. By
        default all are real. SciPy's 2 and 3, for unknowns that may be zero below their bound, are refused.
      bounds: :class:`Bounds`, or a pair of the least and the greatest values; by default 0 and infinity.
      constraints: :class:`LinearConstraint`, one or several.
      options: ``node_limit``, ``presolve`` and ``mip_rel_gap``, the relative distance from the best possible value with
        which to end.

    Returns:
      A :class:`MilpResult`.

    Raises:
      ShapeError: shapes do not fit (a TypeError and a ValueError).
      ArgumentError: an unknown option, constraints of another class (a TypeError and a ValueError).
      DegenerateSolutionError: the solution is differentiated where it has no derivative (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import LinearConstraint, milp
    >>> weights = LinearConstraint(jnp.array([3.0, 4.0, 5.0]), ub=8.0)
    >>> print(milp(jnp.array([-4.0, -5.0, -6.0]), integrality=1, bounds=(0, 1), constraints=weights).x)
    [1. 0. 1.]
    """
    settings = options_of("milp", options, _OPTIONS["milp"])
    cost = _vector("milp", "c", c)
    n = cost.shape[0]
    kinds = np.asarray(0 if integrality is None else concrete(integrality))
    if kinds.shape not in ((), (1,), (n,)) or not np.isin(kinds, (0, 1)).all():
        raise ArgumentError(f"milp: integrality must be 0 or 1 for each of the {n} unknowns, got {quote(integrality)}")
    rows = [
        _two_sided(part, n) for part in ([constraints] if isinstance(constraints, LinearConstraint) else constraints)
    ]
    a, low, high = map(pnp.concatenate, zip((pnp.zeros((0, n), np.float32), *[pnp.zeros(0, np.float32)] * 2), *rows))
    lower, upper = (0, np.inf) if bounds is None else bounds
    ends = [pnp.broadcast_to(inexact_operand("milp", pnp.asarray(x)), (n,)) for x in (lower, upper)]
    arrays = inexact_operands("milp", cost, a, low, high, *ends)
    program = Program(*map(ops.convert_element_type, arrays, [arrays[0].dtype] * len(arrays)))
    x, _, status, degeneracy = _solved("milp", program, np.broadcast_to(kinds, (n,)), {"options": settings})
    return MilpResult(x, dot(program.cost, x), status == 0, status, degeneracy)


def _two_sided(constraint: Any, n: int) -> tuple[Any, Any, Any]:
    """Return the matrix of a constraint, and its least and greatest values as vectors."""
    if not all(hasattr(constraint, name) for name in ("A", "lb", "ub")):
        raise ArgumentError(f"milp: constraints must be of the class LinearConstraint, got {quote(constraint)}")
    matrix = pnp.atleast_2d(inexact_operand("milp", pnp.asarray(constraint.A)))
    if matrix.ndim != 2 or matrix.shape[1] != n:
        raise ShapeError(f"milp: A of a constraint must have {n} columns, for the unknowns of c, got {matrix.shape}")
    ends = (inexact_operand("milp", pnp.asarray(x)) for x in (constraint.lb, constraint.ub))
    low, high = (pnp.broadcast_to(x, (matrix.shape[0],)) for x in ends)
    return matrix, low, high


def linear_sum_assignment(cost_matrix: ArrayLike, maximize: bool = False) -> tuple[Array, Array]:
    """Choose one element in each row, all in different columns, with the least sum, by SciPy on the host.

    The positions are integers without derivatives. ``cost_matrix[rows, columns].sum()`` has the derivative of the least
    sum, where one choice is the best.

    Args:
      cost_matrix: real numbers, (m, n); if m exceeds n, some rows are left out. Infinity forbids an element.
      maximize: whether to look for the greatest sum.

    Returns:
      The rows, in increasing order, and their columns: two vectors of min(m, n) integers.

    Raises:
      ShapeError: ``cost_matrix`` is no matrix (a TypeError and a ValueError).
      ArgumentError: an element is NaN, or infinite elements leave no choice (a TypeError and a ValueError).

    Source: D. F. Crouse 2016, "On implementing 2D rectangular assignment algorithms".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import linear_sum_assignment
    >>> cost = jnp.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    >>> rows, columns = linear_sum_assignment(cost)
    >>> print(columns, cost[rows, columns].sum())
    [1 0 2] 5.0
    """
    maximize = flag("linear_sum_assignment", "maximize", maximize)
    cost = stop_gradient(inexact_operand("linear_sum_assignment", cost_matrix))
    if cost.ndim != 2:
        raise ShapeError(f"linear_sum_assignment: cost_matrix must be a matrix, got shape {cost.shape}")
    kind = ShapeDtypeStruct((min(cost.shape),), dtypes.canonicalize_dtype(np.int64))

    def assign(cost: Any) -> tuple[Any, Any]:
        try:
            rows, columns = imported("scipy.optimize").linear_sum_assignment(cost, maximize)
        except ValueError as error:
            raise ArgumentError(f"linear_sum_assignment: {error}") from None
        return rows.astype(kind.dtype), columns.astype(kind.dtype)

    if is_on_host(cost):
        rows, columns = map(as_array, assign(host_value(cost)))
    else:
        rows, columns = pure_callback(assign, (kind, kind), cost, vmap_method="sequential")
    return rows, columns


def _vector(name: str, what: str, x: Any) -> Array:
    found = inexact_operand(name, pnp.asarray(x) if isinstance(x, (list, tuple)) else x)
    if found.ndim != 1:
        raise ShapeError(f"{name}: {what} must be a vector, got shape {found.shape}")
    return found


def _constraints(left: str, a: Any, right: str, b: Any, n: int) -> tuple[Any, Any]:
    if (a is None) != (b is None):
        given, missing = (left, right) if b is None else (right, left)
        raise ArgumentError(f"linprog: {given} needs {missing}")
    if a is None:
        return pnp.zeros((0, n), np.float32), pnp.zeros(0, np.float32)
    a, b = (inexact_operand("linprog", pnp.asarray(x)) for x in (a, b))
    if a.ndim != 2 or a.shape[1] != n or b.shape != a.shape[:1]:
        raise ShapeError(
            f"linprog: {left} must have shape (m, {n}), for the {n} unknowns of c, and {right} the shape (m,), got "
            f"{a.shape} and {b.shape}"
        )
    return a, b


# Solutions and their derivatives -------------------------------------------------------------------------------------


def _solved(name: str, program: Program, integrality: Any, settings: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return the solution of a program, the multipliers of rows and bounds, the status and the degeneracy."""
    m, n = program.rows.shape
    run = partial(_on_host, integrality, settings)
    dtype = program.cost.dtype
    if all(map(is_on_host, program)):  # no derivative: nothing needs to be traced
        found = run(*map(host_value, program))
        x, y, _, status, degeneracy = map(as_array, found)
        return x, y, status, degeneracy
    results = [
        ShapeDtypeStruct((n,), dtype), ShapeDtypeStruct((m + n,), dtype), ShapeDtypeStruct((n,), np.int32),
        ShapeDtypeStruct((), np.int32), ShapeDtypeStruct((), np.int32),
    ]  # fmt: skip
    fixed = stop_gradient(tuple(program))
    x, y, positions, status, degeneracy = pure_callback(run, results, *fixed, vmap_method="sequential")
    program = Program(*spoiled(program, degeneracy))
    low = pnp.concatenate([program.low, program.lower])
    high = pnp.concatenate([program.high, program.upper])
    side = ops.where((y > 0) | (high == np.inf), low, high)
    if integrality is not None:
        whole = np.concatenate([np.zeros(m, bool), integrality != 0])
        side = ops.where(whole, pnp.concatenate([pnp.zeros(m, dtype), x]), side)
    right = side[positions]
    unit = (positions[:, None] == np.arange(m, m + n)).astype(dtype)
    matrix = unit if m == 0 else ops.where((positions < m)[:, None], program.rows[pnp.clip(positions, 0, m - 1)], unit)
    x = attached(name, lambda x: times(matrix, x) - right, x, degeneracy)
    active = attached(name, lambda y: program.cost - times(matrix.T, y), y[positions], degeneracy)
    return x, ops.mul(y, 0).at[positions].set(active), status, degeneracy


def _on_host(integrality: Any, settings: Mapping[str, Any], *arrays: Any) -> list[Any]:
    """Solve a program; return what :func:`_solved` returns, and the numbers of the constraints that make a vertex."""
    dtype = arrays[0].dtype
    program = Program(*(np.asarray(x, np.float64) for x in arrays))
    m, n = program.rows.shape
    x, y, status = np.full(n, np.nan), np.full(m + n, np.nan), 4
    positions, degeneracy = np.arange(m, m + n), NOT_SOLVED
    if all(np.isfinite(part).all() for part in program[:2]) and not any(np.isnan(part).any() for part in program):
        if integrality is not None:
            found, status = _integers(program, integrality, settings)
            if found is not None:
                kept = integrality != 0
                ends = (np.where(kept, np.round(found), end) for end in program[4:])
                program = program._replace(**dict(zip(("lower", "upper"), ends, strict=True)))
                x, y, again = _vertex_of(program, {})
                status = status if again == 0 else again
        else:
            x, y, status = _vertex_of(program, settings)
        if status == 0:
            positions, degeneracy = _basis(program, x, y)
    return [x.astype(dtype), y.astype(dtype), positions.astype(np.int32), np.int32(status), np.int32(degeneracy)]


def _vertex_of(program: Program, settings: Mapping[str, Any]) -> tuple[Any, Any, int]:
    """Return a solution of a program, the multipliers of rows and bounds, and the status."""
    cost, rows, low, high, lower, upper = program
    equal = low == high
    above, below = ~equal & np.isfinite(high), ~equal & np.isfinite(low)
    found = imported("scipy.optimize").linprog(
        cost, A_ub=np.concatenate([rows[above], -rows[below]]), b_ub=np.concatenate([high[above], -low[below]]),
        A_eq=rows[equal], b_eq=high[equal], bounds=np.stack([lower, upper], axis=1), **settings,
    )  # fmt: skip
    y = np.full(sum(rows.shape), np.nan)
    if found.x is None or found.status != 0:
        return np.full(len(cost), np.nan), y, int(found.status)
    y[: len(rows)] = 0
    y[: len(rows)][equal] = found.eqlin.marginals
    y[: len(rows)][above] = found.ineqlin.marginals[: above.sum()]
    y[: len(rows)][below] -= found.ineqlin.marginals[above.sum() :]
    y[len(rows) :] = found.lower.marginals + found.upper.marginals
    return found.x, y, 0


def _basis(program: Program, x: Any, y: Any) -> tuple[Any, int]:
    """Return the numbers of n constraints that hold with equality, bounds after rows, and the degeneracy."""
    cost, rows, *_ = program
    n = len(cost)
    low, high = (np.concatenate(pair) for pair in ((program.low, program.lower), (program.high, program.upper)))
    values = np.concatenate([rows @ x, x])
    norms = np.concatenate([np.linalg.norm(rows, axis=1), np.ones(n)])
    norms[norms == 0] = 1
    slack = np.minimum(values - low, high - values) / norms / max(1.0, np.abs(x).max(initial=0.0))
    size = np.abs(y) * norms / max(np.abs(cost).max(initial=0.0), np.finfo(float).tiny)
    equal = low == high
    strong = equal | (size > _TOUCHING)
    touching = strong | (slack <= _TOUCHING)
    positions = np.lexsort((slack, -size, ~equal))[:n]
    if equal.sum() > n or np.linalg.matrix_rank(rows[equal[: len(rows)]]) < equal[: len(rows)].sum():
        return positions, DEPENDENT
    if touching.sum() > n:
        return positions, KINK
    return positions, REGULAR if strong.sum() == n else NOT_UNIQUE


def _integers(program: Program, integrality: Any, settings: Mapping[str, Any]) -> tuple[Any, int]:
    """Return a solution some of whose unknowns are integers, or None, and the status."""
    optimize = imported("scipy.optimize")
    constraints = optimize.LinearConstraint(*program[1:4]) if len(program.rows) else ()
    bounds = optimize.Bounds(*program[4:])
    found = optimize.milp(program.cost, integrality=integrality, bounds=bounds, constraints=constraints, **settings)
    return (found.x if found.status == 0 else None), int(found.status)
