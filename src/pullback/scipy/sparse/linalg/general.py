"""Linear equations with any regular matrix: ``bicgstab`` and ``gmres``."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import numpy as np

from pullback.control.conditional import cond
from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError
from pullback.numpy import creation
from pullback.numpy.promotion import known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays.indexing import dynamic_update_slice
from pullback.primitives.linalg.decompositions import on_diagonal
from pullback.primitives.linalg.lapack import product, triangular_solve
from pullback.primitives.linalg.lu import identity
from pullback.scipy.sparse.linalg.programs import Shared
from pullback.scipy.sparse.linalg.systems import Operator, System, dot, most_iterations, norm, squared_norm, tolerance

T = TypeVar("T")

_BREAKDOWN = {"rho": -10, "omega": -11}


# long: half of it is its documentation
def bicgstab(
    A: Operator,
    b: T,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[T, None]:
    """The solution x of A x = b by the stabilised method of biconjugate gradients, for any regular A.

    Args:
      A: a matrix (n, n), a sparse one, or a linear function of trees like ``b``.
      b: the right side, a vector (n), or a tree of arrays; integers become floats.
      x0: the starting point, like ``b``; zero by default, or if its residual is smaller. It has no derivative.
      tol: the relative size of the residual with which to end.
      atol: its absolute size; the larger of both applies.
      maxiter: the largest number of iterations, by default 10 for each element of ``b``.
      M: the preconditioner, like ``A``: an approximation of its inverse.

    Returns:
      x, like ``b``, and ``info``, int32: zero where the residual is small enough; -10 or -11 where the
      method broke down, since two of its vectors were orthogonal; and otherwise the number of iterations.

    Raises:
      ShapeError: ``A`` is not square, or the operands do not fit (a TypeError and a ValueError).
      OperandError: something that is no matrix, function or array (a TypeError).

    Source: H. A. van der Vorst 1992, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of
    nonsymmetric linear systems".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import bicgstab
    >>> x, info = bicgstab(jnp.array([[4.0, 2.0], [1.0, 3.0]]), jnp.array([6.0, 4.0]))
    >>> print(x.round(4), info)
    [1. 1.] 0
    """
    return _bicgstab(A, M, b, x0, tol, atol, maxiter)


@partial(Shared, "bicgstab")
def _bicgstab(A: Any, M: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any) -> Any:
    """Run :func:`bicgstab`."""
    system = System("bicgstab", A, b, x0, M)

    def method(a: Any, b: Any, x: Any, r: Any, m: Any, maxiter: Any) -> Any:
        bound = tolerance("bicgstab", b, tol, atol) ** 2

        def going_on(state: Any) -> Any:
            _, r, *_, count, broken = state
            return (squared_norm(r) > bound) & (count < maxiter) & (broken == 0)

        def step(state: Any) -> Any:
            x, r, shadow, rho, alpha, omega, p, q, count, _ = state
            new = dot(shadow, r)
            p = r + new / rho * alpha / omega * (p - omega * q)
            p_hat = m(p)
            q = a(p_hat)
            along = dot(shadow, q)
            lost = (ops.abs(new) == 0) | (ops.abs(along) == 0)
            alpha = new / ops.where(lost, 1, along)
            s = r - alpha * q
            early = squared_norm(s) <= bound
            s_hat = m(s)
            t = a(s_hat)
            size = dot(t, t)
            omega = ops.where(early | (ops.abs(size) == 0), 0, dot(t, s) / ops.where(ops.abs(size) == 0, 1, size))
            x = x + alpha * p_hat + omega * s_hat
            r = ops.where(early, s, s - omega * t)
            broken = ops.where((ops.abs(omega) == 0) & ~early, _BREAKDOWN["omega"], count * 0)
            broken = ops.where(lost, _BREAKDOWN["rho"], broken)
            return x, r, shadow, new, alpha, omega, p, q, count + 1, broken

        one, count = ops.mul(dot(r, r), 0) + 1, creation.array(np.int32(0))
        start = (x, r, r, one, one, one, r * 0, r * 0, count, count)

        # A step whose shadow residual is orthogonal to the residual has no direction: x stays unchanged.
        def guarded(state: Any) -> Any:
            new = step(state)
            failed = new[-1] == _BREAKDOWN["rho"]
            return (ops.where(failed, state[0], new[0]), ops.where(failed, state[1], new[1]), *new[2:])

        x, r, *_, count, broken = while_loop(going_on, guarded, start)
        left = ops.where(broken != 0, broken, ops.max_p.bind(count, 1))
        return x, ops.where(squared_norm(r) <= bound, 0, left)

    return system.solved(method, most_iterations("bicgstab", maxiter, 10 * system.vectors.size), symmetric=False)


# long: half of it is its documentation
def gmres(
    A: Operator,
    b: T,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Operator | None = None,
    solve_method: str = "batched",
) -> tuple[T, None]:
    """The solution x of A x = b by generalised minimal residuals, for any regular A.

    Args:
      A: a matrix (n, n), a sparse one, or a linear function of trees like ``b``.
      b: the right side, a vector (n), or a tree of arrays; integers become floats.
      x0: the starting point, like ``b``; zero by default, or if its residual is smaller. It has no derivative.
      tol: the relative size of the residual with which to end.
      atol: its absolute size; the larger of both applies.
      restart: the number of orthogonal vectors of a cycle, after which the method restarts; at least one.
      maxiter: the largest number of cycles, by default 10 for each element of ``b``.
      M: the preconditioner, like ``A``: an approximation of its inverse, applied before A.
      solve_method: "batched" or "incremental"; the small equations are solved incrementally in either case.

    Returns:
      x, like ``b``, and ``info``, int32: zero where the residual is small enough, and otherwise the number
      of cycles. The method stops after a cycle that does not reduce the residual, as for singular A.

    Raises:
      ShapeError: ``A`` is not square, or the operands do not fit (a TypeError and a ValueError).
      OperandError: something that is no matrix, function or array (a TypeError).
      ArgumentError: an unknown ``solve_method``, or ``restart`` below one (a TypeError and a ValueError).

    Source: Y. Saad and M. H. Schultz 1986, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric
    linear systems"; vectors are made orthogonal twice where they lose most of their length (J. W. Daniel,
    W. B. Gragg, L. Kaufman and G. W. Stewart 1976; L. Giraud, J. Langou and M. Rozloznik 2005).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import gmres
    >>> x, info = gmres(jnp.array([[4.0, 2.0], [1.0, 3.0]]), jnp.array([6.0, 4.0]))
    >>> print(x.round(4), info)
    [1. 1.] 0
    """
    if not is_listed(solve_method, ("batched", "incremental")):
        raise ArgumentError(f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}")
    restart = known_int("gmres", "restart", restart)
    if restart < 1:
        raise ArgumentError(f"gmres: restart must be at least 1, got {restart}")
    return _gmres(A, M, b, x0, tol, atol, maxiter, restart=restart)


@partial(Shared, "gmres", static=("restart",))
def _gmres(A: Any, M: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any, *, restart: int) -> Any:
    """Run :func:`gmres`."""
    system = System("gmres", A, b, x0, M)
    size = min(restart, max(system.vectors.size, 1))

    def method(a: Any, b: Any, x: Any, r: Any, m: Any, maxiter: Any) -> Any:
        bound = tolerance("gmres", b, tol, atol)
        rounding = float(np.finfo(dtypes.to_real(b.dtype)).eps)

        def going_on(state: Any) -> Any:
            _, _, residual, before, count = state
            # A cycle that ends where it began would repeat itself.
            return (residual > bound) & (count < maxiter) & (residual < before * (1 - 4 * rounding))

        def cycle(state: Any) -> Any:
            x, r, residual, _, count = state
            x = x + _cycle(a, r, m, bound, size)
            r = b - a(x)
            return x, r, norm(r), residual, count + 1

        first = norm(r)
        start = (x, r, first, ops.mul(first, 0) + np.inf, creation.array(np.int32(0)))
        x, _, residual, _, count = while_loop(going_on, cycle, start)
        return x, ops.where(residual <= bound, 0, ops.max_p.bind(count, 1))

    return system.solved(method, most_iterations("gmres", maxiter, 10 * system.vectors.size), symmetric=False)


def _cycle(a: Any, r: Any, m: Any, bound: Any, size: int) -> Any:
    """Run a cycle of GMRES: return the change of the solution x.

    Args:
      a, m: the functions that multiply by A and by the preconditioner.
      r: the residual at the start.
      bound: the norm of the residual at which to stop.
      size: the largest number of Arnoldi vectors.
    """
    dtype, real = r.dtype, dtypes.to_real(r.dtype)
    rows = np.arange(size + 1)
    epsilon = float(np.finfo(real).eps)
    beta = norm(r).astype(
        dtype
    )  # where the promotion of dtypes is strict, a real number times a complex one is an error
    basis = ops.where(rows[:, None] == 0, r / ops.where(beta != 0, beta, 1), 0)

    # The rows of `basis` are Arnoldi's vectors; `turn` is the product of the rotations that make Hessenberg's matrix
    # the triangular `columns`, whose columns are the rows here; its first column times beta is the right side.
    def going_on(state: Any) -> Any:
        k, _, turn, _, more = state
        return (k < size) & more & (ops.abs(beta * _row(turn, k)[0]) > bound)

    def orthogonal(basis: Any, w: Any, h: Any, _: Any = None) -> Any:
        projections = product(ops.conj(basis), w[:, None])[:, 0]
        w = w - product(projections[None], basis)[0]
        return w, h + projections, norm(w)

    def step(state: Any) -> Any:
        k, basis, turn, columns, _ = state
        w = a(m(_row(basis, k)))
        before = norm(w)
        w, h, length = orthogonal(basis, w, ops.mul(basis[:, 0], 0))
        # What rounding leaves along the basis counts only where most of the vector was along it.
        w, h, length = cond(length < before / np.sqrt(2), orthogonal, lambda _, *found: found[:3], basis, w, h, length)
        new = length > epsilon * before
        h = ops.where(rows == k + 1, ops.where(new, length, 0).astype(dtype), h)
        basis = _with_row(basis, k + 1, ops.where(new, w / ops.where(new, length.astype(dtype), 1), 0))
        column = product(turn, h[:, None])[:, 0]
        upper, lower = _row(column, k), _row(column, k + 1)
        hypotenuse = ops.hypot_p.bind(ops.abs(upper), ops.abs(lower))
        safe = ops.where(hypotenuse > 0, hypotenuse, 1).astype(dtype)
        cosine, sine = ops.where(hypotenuse > 0, upper / safe, 1), lower / safe
        first, second = _row(turn, k), _row(turn, k + 1)
        turn = _with_row(turn, k, ops.conj(cosine) * first + ops.conj(sine) * second)
        turn = _with_row(turn, k + 1, cosine * second - sine * first)
        column = ops.where(rows == k, hypotenuse.astype(dtype), ops.where(rows < k, column, 0))
        columns = _with_row(columns, k, column[:size])
        return k + 1, basis, turn, columns, new

    zero, more = creation.array(np.int32(0)), creation.array(True)
    start = (zero, basis, identity(size + 1, dtype), identity(size, dtype) * 0, more)
    k, basis, turn, columns, _ = while_loop(going_on, step, start)
    used = rows[:size] < k
    diagonal = (columns * identity(size, dtype)).sum(0)
    used = used & (ops.abs(diagonal) > 4 * size * epsilon * ops.abs(columns).max())  # singular A leaves rounding errors
    right = ops.where(used, beta * turn[:size, 0], 0)
    matrix = ops.where(on_diagonal(size), ops.where(used, diagonal, 1), columns)
    y = triangular_solve(matrix, right[:, None], left_side=True, lower=True, transpose_a=True)
    return m(product(y[:, 0][None], basis[:size])[0])


def _row(x: Any, k: Any) -> Any:
    return x[k]


def _with_row(x: Any, k: Any, row: Any) -> Any:
    return dynamic_update_slice(x, row[None], (k, 0))
