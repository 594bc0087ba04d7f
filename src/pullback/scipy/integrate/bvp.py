"""``solve_bvp``: boundary value problems of ordinary differential equations, with SciPy's interface."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.core.trace import Tracer
from pullback.core.waiting import waiting
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import abscissas, check_increasing, floats
from pullback.scipy.integrate import bvp_host
from pullback.scipy.integrate.bvp_equations import MESSAGES, Equations, Problem, Unknowns, staged
from pullback.scipy.interpolate.piecewise import PPoly, hermite_pieces, unflatten
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

__all__ = ["BVPResult", "solve_bvp"]


class BVPResult(NamedTuple):
    """The result of :func:`solve_bvp`; ``sol``, ``p``, ``x``, ``y`` and ``yp`` have derivatives.

    In compiled functions there are ``max_nodes`` points, in which the last one is repeated.

    Attributes:
      sol: the solution as a :class:`pullback.scipy.interpolate.PPoly`: cubics with one continuous derivative, of
        vectors of n elements.
      p: the unknown parameters, a vector, or None.
      x: the points of the last mesh, a vector of m.
      y: the states there, (n, m).
      yp: the slopes there, (n, m).
      rms_residuals: the relative residual of each interval, as a root mean square, (m - 1,); zero where points are
        repeated.
      niter: how many meshes there were, int32.
      status: int32: 0 if the residuals are below ``tol``, 1 if the mesh would have more than ``max_nodes`` points, 2
        where a Jacobian is singular, 3 where the boundary conditions were not reached.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.integrate import solve_bvp
    >>> fall = lambda x, y: jnp.vstack([y[1], -jnp.ones_like(y[0])])
    >>> found = solve_bvp(fall, lambda a, b: jnp.array([a[0], b[0]]), jnp.linspace(0.0, 1.0, 5), jnp.zeros((2, 5)))
    >>> print(found.sol(0.5)[0].round(4), found.success, found.message)
    0.125 True The algorithm converged to the desired accuracy.
    """

    sol: PPoly
    p: Array | None
    x: Array
    y: Array
    yp: Array
    rms_residuals: Array
    niter: Array
    status: Array

    @property
    def success(self) -> Any:
        """Whether the residuals are below ``tol``."""
        return self.status == 0

    @property
    def message(self) -> str:
        """Why the solver ended, in words."""
        if isinstance(self.status, Tracer) or np.ndim(self.status):
            return "The status is traced, or differs between solutions."
        return MESSAGES[int(self.status)]


# long: half of it is its documentation
def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: ArrayLike | Sequence[float],
    y: ArrayLike | Sequence[Any],
    p: ArrayLike | Sequence[float] | None = None,
    S: ArrayLike | None = None,
    fun_jac: Callable[..., Any] | None = None,
    bc_jac: Callable[..., Any] | None = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
) -> BVPResult:
    """Solve ``dy/dx = fun(x, y, p) + S y / (x - x[0])`` with conditions ``bc(y(x[0]), y(x[-1]), p) = 0``.

    SciPy chooses the mesh on the host, with ``fun`` and ``bc`` compiled and their exact Jacobians. In double precision,
    Newton's method then solves the collocation equations on the last mesh to relative residuals of 2e-9. The derivative
    is that of these equations, in both modes and to any order: with respect to arrays that ``fun`` and ``bc`` close
    over, to ``S``, and to ``x``, with whose points the last mesh moves. It is zero with respect to ``y`` and ``p``.

    Args:
      fun: ``fun(x, y)``, or with unknown parameters ``fun(x, y, p)``, returns the slopes, an array like ``y``. It is
        traced for one point, with ``x`` of shape (1,) and ``y`` of shape (n, 1): the slope at a point must depend on
        that point alone.
      bc: ``bc(ya, yb)`` or ``bc(ya, yb, p)`` returns the residuals of the n + k conditions at the ends, a vector.
      x: the points of the first mesh, a vector of at least two real numbers that increase strictly.
      y: a guess of the states there, (n, m), real or complex; integers become floats. Functions of a complex state
        must be holomorphic; SciPy then solves for both parts.
      p: a guess of k unknown parameters, a vector; None if there are none.
      S: the matrix of a singular term, (n, n). The solution satisfies ``S @ y(x[0]) = 0``, which the conditions must
        imply.
      fun_jac: ``fun_jac(x, y)`` returns the derivatives of the slopes by the state, (n, n, m); with parameters also
        those by the parameters, (n, k, m). By default forward mode finds them; derivatives of the solution always do
        so.
      bc_jac: ``bc_jac(ya, yb)`` returns the derivatives of the conditions by both states, (n + k, n), and with
        parameters also those by the parameters, (n + k, k).
      tol: the bound of the relative residual of each interval.
      max_nodes: the largest number of points in a mesh. Arrays of compiled functions have this size.
      verbose: 1 to print a report at the end, 2 to print one for each mesh.
      bc_tol: the bound of the residuals of the conditions; by default ``tol``.

    Returns:
      A :class:`BVPResult`.

    Raises:
      ShapeError: ``x``, ``y``, ``p``, ``S`` or what a function returns has the wrong shape (a TypeError and a
        ValueError).
      DtypeError: a complex ``x``, or complex numbers beside a real ``y`` (a TypeError).
      OperandError: a function does not return numbers, or complex ones for a real state (a TypeError).
      ArgumentError: ``fun`` or ``bc`` is no function, ``x`` does not increase, or a bound is not a positive number (a
        TypeError and a ValueError).
      DegenerateSolutionError: the solution is differentiated though none was found; in compiled functions the
        derivative is NaN then (a TypeError and a ValueError).

    Source: J. Kierzenka and L. F. Shampine 2001, "A BVP solver based on residual control and the Matlab PSE"; U. M.
    Ascher, R. M. M. Mattheij and R. D. Russell 1995, Numerical Solution of Boundary Value Problems for Ordinary
    Differential Equations.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.integrate import solve_bvp
    >>> def middle(k):  # of Bratu's problem, y'' + k exp(y) = 0
    ...     fun = lambda x, y: jnp.vstack([y[1], -k * jnp.exp(y[0])])
    ...     ends = lambda a, b: jnp.array([a[0], b[0]])
    ...     return solve_bvp(fun, ends, jnp.linspace(0.0, 1.0, 5), jnp.zeros((2, 5))).sol(0.5)[0]
    >>> print(middle(1.0).round(3), grad(middle)(1.0).round(3))
    0.141 0.159
    """
    mesh, states, parameters, singular = _operands(x, y, p, S)
    settings = [
        max(_positive("tol", tol), 100 * float(np.finfo(states.dtype).eps)),
        _positive("bc_tol", tol if bc_tol is None else bc_tol),
        _count("max_nodes", max_nodes, 1), _count("verbose", verbose, 0),
    ]  # fmt: skip
    functions = fun, bc, fun_jac, bc_jac
    problem, arrays = _problem(functions, mesh, states, parameters, p is not None, settings)
    with waiting("solve_bvp"):
        return _solved(problem, mesh, states, parameters, singular, arrays)


# Arguments -----------------------------------------------------------------------------------------------------------


def _operands(x: Any, y: Any, p: Any, S: Any) -> tuple[Any, Any, Any, Any]:
    """Return the mesh, the guesses of states and parameters, and the matrix S or None, in one precision."""
    mesh = abscissas("solve_bvp", x, "x", 2)
    check_increasing("solve_bvp", mesh, "x")
    states = floats("solve_bvp", pnp.asarray(y) if isinstance(y, (list, tuple)) else y)
    m = mesh.shape[0]
    if len(states.shape) != 2 or not states.shape[0] or states.shape[1] != m:
        raise ShapeError(f"solve_bvp: y must have shape (n, {m}), a column for each point of x, got {states.shape}")
    parameters = pnp.zeros(0, states.dtype) if p is None else floats("solve_bvp", p)
    if len(parameters.shape) != 1:
        raise ShapeError(f"solve_bvp: p must be a vector, got shape {parameters.shape}")
    given = [states, parameters]
    n = states.shape[0]
    if S is not None:
        given.append(floats("solve_bvp", S))
        if given[2].shape != (n, n):
            raise ShapeError(f"solve_bvp: S must have shape {(n, n)}, for the states of y, got {given[2].shape}")
    for name, value in zip(("p", "S"), given[1:], strict=False):
        if dtypes.is_complex(value.dtype) and not dtypes.is_complex(states.dtype):
            raise DtypeError(f"solve_bvp: {name} is complex, so y must be complex too; pass y + 0j")
    dtype = dtypes.common_dtype(
        *[v.dtype for v in (mesh, *given) if not getattr(v, "weak_type", False)] or [mesh.dtype]
    )
    if dtypes.is_complex(states.dtype):
        dtype = dtypes.promote_types(dtype, np.complex64)
    states, parameters, *rest = (ops.convert_element_type(v, dtype) for v in given)
    return ops.convert_element_type(mesh, dtypes.to_real(dtype)), states, parameters, rest[0] if rest else None


def _positive(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not number > 0:
        raise ArgumentError(f"solve_bvp: {name} must be a positive number that is not traced, got {quote(value)}")
    return number


def _count(name: str, value: Any, least: int) -> int:
    number = known_int("solve_bvp", name, value)
    if number < least or (name == "verbose" and number > 2):
        wanted = "0, 1 or 2" if name == "verbose" else f"at least {least}"
        raise ArgumentError(f"solve_bvp: {name} must be {wanted}, got {number}")
    return number


def _problem(functions: Any, x: Any, y: Any, p: Any, has_parameters: bool, settings: Any) -> tuple[Problem, list[Any]]:
    """Return the problem, and the arrays that its functions close over."""
    fun, bc, fun_jac, bc_jac = functions
    n, k = y.shape[0], p.shape[0]
    point, ends = (x[:1], y[:, :1], p), (y[:, 0], y[:, -1], p)
    kinds: list[Any] = [
        ("fun", fun, point, [(n, 1)]), ("bc", bc, ends, [(n + k,)]),
        ("fun_jac", fun_jac, point, [(n, n, 1), (n, k, 1)]), ("bc_jac", bc_jac, ends, [(n + k, n)] * 2 + [(n + k, k)]),
    ]  # fmt: skip
    programs: list[Any] = []
    arrays: list[list[Any]] = []
    for name, function, like, shapes in kinds:
        if function is None and name.endswith("jac"):
            programs.append(None)
            arrays.append([])
            continue
        if not callable(function):
            raise ArgumentError(f"solve_bvp: {name} must be a function, got {quote(function)}")
        wanted = shapes if has_parameters or not name.endswith("jac") else shapes[:-1]
        run = partial(_called, name, function, wanted, y.dtype, has_parameters)
        program, own = staged(function, run, like)
        programs.append(program)
        arrays.append(own)
    counts = tuple(map(len, arrays))
    return Problem._make([*programs, counts, n, k, *settings]), [a for own in arrays for a in own]


def _called(name: str, function: Any, shapes: Any, dtype: Any, has_parameters: bool, *operands: Any) -> list[Any]:
    """Call a user's function; return its results as arrays of the wanted shapes, whose last points are one."""
    found = function(*operands) if has_parameters else function(*operands[:-1])
    several = len(shapes) > 1
    if several and (not isinstance(found, (list, tuple)) or len(found) != len(shapes)):
        raise ShapeError(f"solve_bvp: {name} must return {len(shapes)} arrays, got {quote(found)}")
    out = []
    for part, shape in zip(found if several else [found], shapes, strict=True):
        try:
            array = pnp.asarray(part)
        except (TypeError, ValueError) as error:
            raise OperandError(f"solve_bvp: {name} must return arrays of numbers: {error}") from None
        if array.shape != shape:
            where = " at one point" if shape[-1] == 1 and name.startswith("fun") else ""
            raise ShapeError(f"solve_bvp: {name} must return an array of shape {shape}{where}, got shape {array.shape}")
        if dtypes.is_complex(array.dtype) and not dtypes.is_complex(dtype):
            raise OperandError(f"solve_bvp: {name} returned complex numbers; pass a complex y, such as y + 0j")
        out.append(ops.convert_element_type(array, dtype))
    return out


# Solutions -----------------------------------------------------------------------------------------------------------


def _solved(problem: Problem, x: Any, y: Any, p: Any, singular: Any, arrays: list[Any]) -> BVPResult:
    count = 0 if singular is None else 1
    arrays = [as_array(a) for a in arrays]
    operands = [x, y, p, *([singular] if count else []), *arrays]
    fixed = [stop_gradient(v) for v in operands]
    concrete = not any(isinstance(v, Tracer) for v in fixed)
    room = None if concrete else max(problem.max_nodes, x.shape[0])

    def on_host(x: Any, y: Any, p: Any, *rest: Any) -> Any:
        return bvp_host.solution(problem, room, x, y, p, rest[0] if count else None, rest[count:])

    if room is None:
        found = [as_array(v) for v in on_host(*map(np.asarray, fixed))]
    else:
        found = pure_callback(on_host, _kinds(problem, room, x, y), *fixed, vmap_method="sequential")
    mesh, interval, part, states, parameters, slopes, residuals, niter, status = found
    if any(isinstance(v, Tracer) for v in operands):
        mesh = (1 - part) * x[interval] + part * x[interval + 1]
        pseudo = () if singular is None else (singular, _corrected(singular))
        given = Unknowns(mesh, pseudo, arrays)
        equations = Equations(problem, mesh.shape[0])
        z = equations.attached(pnp.concatenate([states.T.reshape(-1), parameters]), status, given)
        rows, parameters = equations.parts(z)
        states, slopes = rows.T, equations.slopes(given, rows, parameters).T
    sol = _spline(mesh, states, slopes, room is not None)
    unknown = parameters if problem.k else None
    return BVPResult(sol, unknown, mesh, states, slopes, residuals, niter, status)


def _corrected(singular: Any) -> Any:
    """Return the matrix by which the slope at the first point is multiplied, (I - S)^+."""
    return pnp.linalg.pinv(pnp.eye(singular.shape[0], dtype=singular.dtype) - singular)


def _kinds(problem: Problem, room: int, x: Any, y: Any) -> list[Any]:
    """Return the types of the results on the host."""
    n, k = problem.n, problem.k
    line, states = ShapeDtypeStruct((room,), x.dtype), ShapeDtypeStruct((n, room), y.dtype)
    number = ShapeDtypeStruct((), np.int32)
    return [
        line, ShapeDtypeStruct((room,), np.int32), line, states, ShapeDtypeStruct((k,), y.dtype), states,
        ShapeDtypeStruct((room - 1,), x.dtype), number, number,
    ]  # fmt: skip


def _spline(x: Any, y: Any, yp: Any, repeated: bool) -> PPoly:
    """Return the cubics through states and slopes, (n, m) each.

    Between repeated points there is the cubic before them, so that it extends beyond the last point.
    """
    y, yp = y.T, yp.T
    real = pnp.diff(x)[:, None]
    empty = ops.eq(real, 0)
    width = ops.convert_element_type(ops.where(empty, 1, real), y.dtype)
    c = hermite_pieces(y, yp, pnp.diff(y, axis=0) / width, width)
    if repeated:
        last = pnp.maximum(pnp.sum(~empty) - 1, 0)
        third, second, h = c[0, last], c[1, last], width[last]
        bend = second + 3 * h * third
        same = pnp.broadcast_to(third, y[:-1].shape), pnp.broadcast_to(bend, y[:-1].shape)
        beyond = pnp.stack([*same, yp[:-1], y[:-1]])
        c = ops.where(empty, beyond, c)
    return unflatten(PPoly, (True, 1), (c, x))  # type: ignore[no-any-return]
