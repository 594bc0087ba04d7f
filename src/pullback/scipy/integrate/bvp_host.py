"""Boundary value problems on the host: SciPy's choice of the mesh, with the user's functions as compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.array import as_array
from pullback.core.errors import ArgumentError
from pullback.core.interrupts import imported
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.scipy.integrate.bvp_equations import Problem, columns_of, jacobians_of, matrix_of
from pullback.transforms.jit.jit import jit
from pullback.transforms.traces.derived import cached_by_jaxpr

_FEWEST, _GROWTH = 16, 4
"""Programs are compiled for 16, 64, 256, ... points, so that a refined mesh seldom needs a new one."""
_SHARP = 1e7
"""The solution on the last mesh has residuals of this many roundings, unless the user's bound is smaller."""


@cached_by_jaxpr
def _of_points(program: ClosedJaxpr, jacobian: bool) -> Callable[..., Any]:
    """Return a program of one point as a compiled function of many, or its derivatives by states and parameters."""
    function = jacobians_of if jacobian else columns_of
    return jit(lambda x, y, p, arrays: function(program, x, y, p, arrays))


@cached_by_jaxpr
def _of_ends(program: ClosedJaxpr, jacobian: bool) -> Callable[..., Any]:
    """Return a program of the states at both ends as a compiled function, or the matrix of its derivatives."""
    run = jaxpr_as_fun(program)
    if jacobian:
        return jit(lambda a, b, p, arrays: [matrix_of(lambda *xs: run(*xs, *arrays)[0], (a, b, p))])
    return jit(lambda a, b, p, arrays: run(a, b, p, *arrays))


def _repeated(x: Any, count: int) -> Any:
    """Return an array with the last element of its last axis repeated ``count`` more times."""
    return np.concatenate([x, np.repeat(x[..., -1:], count, axis=-1)], axis=-1) if count else x


def _split(x: Any) -> Any:
    """Return the real parts and then the imaginary parts of the elements of the first axis."""
    return np.concatenate([x.real, x.imag])


def _joined(x: Any) -> Any:
    """Return the complex numbers with these real and imaginary parts, as :func:`_split` returns them."""
    half = len(x) // 2
    return x[:half] + 1j * x[half:]


def _of_parts(matrix: Any) -> Any:
    """Return a matrix, with any further axes, as one of the real and imaginary parts of vectors."""
    real, imaginary = matrix.real, matrix.imag
    rows = np.concatenate([real, -imaginary], axis=1), np.concatenate([imaginary, real], axis=1)
    return np.concatenate(rows)


class _Functions:
    """The four functions of a problem, of NumPy's arrays in double precision."""

    def __init__(self, problem: Problem, time: Any, dtype: Any, arrays: Sequence[Any]) -> None:
        self.problem, self.time, self.dtype = problem, time, dtype
        self.arrays = problem.arrays_of([as_array(x) for x in arrays])
        self.wide = np.complex128 if dtype.kind == "c" else np.float64

    def _points(self, which: int, program: ClosedJaxpr, jacobian: bool, x: Any, y: Any, p: Any) -> list[Any]:
        m, room = len(x), _FEWEST
        while room < m:
            room *= _GROWTH
        x, y = _repeated(x, room - m).astype(self.time), _repeated(y, room - m).astype(self.dtype)
        found = _of_points(program, jacobian)(x, y, self._parameters(p), self.arrays[which])
        return [np.array(out[..., :m], self.wide) for out in map(np.asarray, found)]

    def _parameters(self, p: Sequence[Any]) -> Any:
        return np.asarray(p[0] if p else (), self.dtype)

    def fun(self, x: Any, y: Any, *p: Any) -> Any:
        return self._points(0, self.problem.fun, False, x, y, p)[0]

    def fun_jac(self, x: Any, y: Any, *p: Any) -> Any:
        given = self.problem.fun_jac
        which, program = (0, self.problem.fun) if given is None else (2, given)
        found = self._points(which, program, given is None, x, y, p)
        return tuple(found[:2]) if p else found[0]

    def bc(self, a: Any, b: Any, *p: Any) -> Any:
        return self._ends(1, self.problem.bc, False, a, b, p)[0]

    def bc_jac(self, a: Any, b: Any, *p: Any) -> Any:
        given = self.problem.bc_jac
        if given is not None:
            return tuple(self._ends(3, given, False, a, b, p))
        (whole,) = self._ends(1, self.problem.bc, True, a, b, p)
        n = self.problem.n
        found = whole[:, :n], whole[:, n : 2 * n], whole[:, 2 * n :]
        return found if p else found[:2]

    def _ends(self, which: int, program: ClosedJaxpr, jacobian: bool, a: Any, b: Any, p: Any) -> list[Any]:
        ends = a.astype(self.dtype), b.astype(self.dtype)
        found = _of_ends(program, jacobian)(*ends, self._parameters(p), self.arrays[which])
        return [np.array(out, self.wide) for out in found]


class _Parts:
    """Functions of complex states as functions of the real and imaginary parts.

    SciPy's Newton's method compares squares of complex numbers, and does not find complex solutions.
    """

    def __init__(self, inner: _Functions) -> None:
        self.inner = inner

    def fun(self, x: Any, y: Any, *p: Any) -> Any:
        return _split(self.inner.fun(x, _joined(y), *map(_joined, p)))

    def fun_jac(self, x: Any, y: Any, *p: Any) -> Any:
        found = self.inner.fun_jac(x, _joined(y), *map(_joined, p))
        return tuple(map(_of_parts, found)) if p else _of_parts(found)

    def bc(self, *operands: Any) -> Any:
        return _split(self.inner.bc(*map(_joined, operands)))

    def bc_jac(self, *operands: Any) -> Any:
        return tuple(map(_of_parts, self.inner.bc_jac(*map(_joined, operands))))


def solution(problem: Problem, room: int | None, x: Any, y: Any, p: Any, singular: Any, arrays: Sequence[Any]) -> Any:
    """Return SciPy's solution, after Newton's method on the last mesh.

    Args:
      problem: the problem.
      room: the number of points in the results, in which the last point is repeated; None for that of the last mesh.
      x, y, p: the first mesh, and guesses of the states and parameters.
      singular: the matrix S, or None.
      arrays: those that the functions close over.

    Returns:
      The mesh, the position in the first mesh of the interval in which each point is, and which part of it is left of
      the point; the states, the parameters, the slopes, the residuals of the intervals, the number of iterations and
      the status.
    """
    time, dtype = np.dtype(x.dtype), np.dtype(y.dtype)
    inner = _Functions(problem, time, dtype, arrays)
    is_complex = dtype.kind == "c"
    functions = _Parts(inner) if is_complex else inner
    split, joined = (_split, _joined) if is_complex else (np.asarray, np.asarray)
    first = np.asarray(x, np.float64)
    if not (np.diff(first) > 0).all():
        raise ArgumentError("solve_bvp: x must increase strictly, but its traced values do not")
    solve = imported("scipy.integrate").solve_bvp

    def run(x: Any, y: Any, p: Any, tol: float, bc_tol: float, most: int, verbose: int) -> Any:
        guess = p if problem.k else None
        with np.errstate(all="ignore"):
            return solve(
                functions.fun, functions.bc, x, np.array(y), guess, matrix, functions.fun_jac,
                functions.bc_jac, tol=tol, max_nodes=most, verbose=verbose, bc_tol=bc_tol,
            )  # fmt: skip

    matrix = None if singular is None else np.asarray(singular, inner.wide)
    matrix = _of_parts(matrix) if is_complex and matrix is not None else matrix
    states, parameters = split(np.asarray(y, inner.wide)), split(np.asarray(p, inner.wide))
    bounds = problem.tol, problem.bc_tol
    found = run(first, states, parameters, *bounds, problem.max_nodes, problem.verbose)
    status, niter, sharp = found.status, found.niter, _SHARP * float(np.finfo(dtype).eps)
    if status == 0 and sharp < problem.tol:
        # Without room for more points SciPy ends after Newton's method.
        again = run(found.x, found.y, found.p, sharp, min(problem.bc_tol, sharp), len(found.x), 0)
        if again.status == 2 or not np.isfinite(again.y).all():
            status = 2
        else:
            found = again
    mesh = found.x
    interval = np.clip(np.searchsorted(first, mesh, side="right") - 1, 0, len(first) - 2)
    part = (mesh - first[interval]) / (first[interval + 1] - first[interval])
    more = 0 if room is None else room - len(mesh)
    parameters = joined(np.asarray(found.p if problem.k else (), np.float64))
    kinds = (time, np.int32, time, dtype, dtype)
    wide = [_repeated(v, more) for v in (mesh, interval, part, joined(found.y), joined(found.yp))]
    mesh, interval, part, states, slopes = (v.astype(kind) for v, kind in zip(wide, kinds, strict=True))
    residuals = np.pad(found.rms_residuals, (0, more)).astype(time)
    last = np.int32(niter), np.int32(status)
    return [mesh, interval, part, states, parameters.astype(dtype), slopes, residuals, *last]
