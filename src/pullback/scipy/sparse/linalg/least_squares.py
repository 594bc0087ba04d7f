"""Least squares by iteration: ``lsqr`` and ``lsmr``."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.control.loops import while_loop
from pullback.control.solves import custom_linear_solve
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError, OperandError, ShapeError
from pullback.numpy import creation
from pullback.numpy.promotion import inexact_operand, operand
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.sparse.linalg.programs import Shared
from pullback.scipy.sparse.linalg.systems import Operator, most_iterations, norm, operator, squared_norm
from pullback.scipy.vectors import Vectors
from pullback.transforms.autodiff.grad import linear_transpose
from pullback.transforms.autodiff.tracing import eval_shape
from pullback.transforms.custom.closure import without_tracers


class LsqrResult(NamedTuple):
    """The result of :func:`lsqr`; only ``x`` has a derivative.

    Attributes:
      x: the solution.
      istop: int32: 0 where x is zero, 1 where A x = b is solved, 2 where the squares are least, 7 after ``iter_lim``.
      itn: the number of iterations.
      r1norm: the size of b - A x.
      r2norm: the size of b - A x and ``damp`` times x together.
      arnorm: the size of A* (b - A x) - damp² x.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import lsqr
    >>> found = lsqr(jnp.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), jnp.array([1.0, 2.0, 3.0]))
    >>> print(found.x.round(3), int(found.istop), f"{found.r1norm:.1f}")
    [1. 1.] 2 3.0
    """

    x: Any
    istop: Any
    itn: Any
    r1norm: Any
    r2norm: Any
    arnorm: Any


# long: half of it is its documentation
def lsqr(
    A: Operator,
    b: PyTree,
    damp: ArrayLike = 0.0,
    atol: ArrayLike = 1e-6,
    btol: ArrayLike = 1e-6,
    iter_lim: int | None = None,
    x0: PyTree = None,
) -> LsqrResult:
    """The vector x with the least squares of b - A x, and of ``damp`` times x.

    Args:
      A: a matrix (m, n), a sparse one, or a linear function; a function needs ``x0``, an example of its operand.
      b: the right side, a vector (m), or the tree of arrays that the function returns; integers become floats.
      damp: a number, with which the equation is solvable whatever A is. It has a derivative.
      atol: stop where the size of A* r is at most ``atol`` times the sizes of A and r.
      btol: stop where the size of r is at most ``btol`` times the size of b, plus ``atol`` times the sizes of A and x.
      iter_lim: the largest number of iterations, by default twice the elements of x, or of b if these are more.
      x0: the starting point; zero by default, or if its residual is smaller. It has no derivative.

    Returns:
      A :class:`LsqrResult`; if the columns of A are dependent, with the smallest x, unless there is ``x0``. The
      derivative is that of the normal equations, which have no unique solution, and no derivative, in that case.

    Raises:
      ShapeError: the operands do not fit (a TypeError and a ValueError).
      OperandError: something that is no matrix, function or array (a TypeError).
      ArgumentError: a function without ``x0`` (a TypeError and a ValueError).

    Source: conjugate gradients on the normal equations, with the residual in the original space, which find the
    iterates of C. C. Paige and M. A. Saunders 1982, "LSQR: an algorithm for sparse linear equations and sparse least
    squares"; for their stability A. Bjorck, T. Elfving and Z. Strakos 1998.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import lsqr
    >>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> print(lsqr(a, jnp.array([1.0, 2.0, 4.0])).x.round(4))
    [0.8333 1.5   ]
    """
    x, info = _lsqr(A, None, b, damp, atol, btol, np.inf, iter_lim, x0)
    return LsqrResult(x, info["istop"], info["itn"], info["normr"], info["both"], info["normar"])


class LsmrResult(NamedTuple):
    """The result of :func:`lsmr`; only ``x`` has a derivative.

    Attributes:
      x: the solution.
      istop: int32: 0 where x is zero, 1 where A x = b is solved, 2 where the squares are least, 3 where ``conda``
        exceeds ``conlim``, 7 after ``maxiter``.
      itn: the number of iterations.
      normr: the size of b - A x.
      normar: the size of A* (b - A x) - damp² x.
      norma: an estimate, from below, of the largest singular value of A with ``damp``.
      conda: an estimate, from below, of the condition number.
      normx: the size of x.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import lsmr
    >>> found = lsmr(jnp.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), jnp.array([1.0, 2.0, 3.0]))
    >>> print(found.x.round(3), int(found.istop), f"{found.normr:.1f}")
    [1. 1.] 2 3.0
    """

    x: Any
    istop: Any
    itn: Any
    normr: Any
    normar: Any
    norma: Any
    conda: Any
    normx: Any


def lsmr(
    A: Operator,
    b: PyTree,
    damp: ArrayLike = 0.0,
    atol: ArrayLike = 1e-6,
    btol: ArrayLike = 1e-6,
    conlim: ArrayLike = 1e8,
    maxiter: int | None = None,
    x0: PyTree = None,
) -> LsmrResult:
    """The vector x with the least squares of b - A x, and of ``damp`` times x, whose gradient falls in each step.

    Args:
      A: a matrix (m, n), a sparse one, or a linear function; a function needs ``x0``, an example of its operand.
      b: the right side, a vector (m), or the tree of arrays that the function returns; integers become floats.
      damp: a number, with which the equation is solvable whatever A is. It has a derivative.
      atol: stop where the size of A* r is at most ``atol`` times the sizes of A and r.
      btol: stop where the size of r is at most ``btol`` times the size of b, plus ``atol`` times the sizes of A and x.
      conlim: stop where the estimate of the condition number exceeds this one; 0 for no limit.
      maxiter: the largest number of iterations, by default twice the elements of x, or of b if these are more.
      x0: the starting point; zero by default, or if its residual is smaller. It has no derivative.

    Returns:
      A :class:`LsmrResult`, whose derivative is that of :func:`lsqr`.

    Raises:
      ShapeError: the operands do not fit (a TypeError and a ValueError).
      OperandError: something that is no matrix, function or array (a TypeError).
      ArgumentError: a function without ``x0`` (a TypeError and a ValueError).

    Source: conjugate residuals on the normal equations, with the residual in the original space, which find the
    iterates of D. C.-L. Fong and M. Saunders 2011, "LSMR: an iterative algorithm for sparse least-squares problems".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import lsmr
    >>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> print(lsmr(a, jnp.array([1.0, 2.0, 4.0])).x.round(4))
    [0.8333 1.5   ]
    """
    x, info = _lsmr(A, None, b, damp, atol, btol, conlim, maxiter, x0)
    shown = [info[name] for name in ("istop", "itn", "normr", "normar", "norma", "conda", "normx")]
    return LsmrResult(x, *shown)


def _solved(
    name: str, A: Any, _: None, b: Any, damp: Any, atol: Any, btol: Any, conlim: Any, maxiter: Any, x0: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the solution with its derivative, and the other results; the arguments are checked."""
    multiply, b, start = _operands(name, A, b, x0)
    damp = ops.convert_element_type(operand(name, damp), dtypes.to_real(Vectors(b).dtype))
    rows, columns = Vectors(b), Vectors(start)
    without = x0 is None
    limit = most_iterations(name, maxiter, 2 * max(rows.size, columns.size))
    fixed = {"damp": stop_gradient(damp), "tolerances": (atol, btol, conlim), "limit": limit, "name": name}

    converted, captured = without_tracers(multiply, start)
    still = [stop_gradient(x) for x in captured]

    def times(x: Any, values: Any) -> Any:
        return converted(x, *values)

    def adjoint(r: Any, values: Any) -> Any:
        conjugate = lambda x: tree.tree_map(ops.conj, x)
        return conjugate(linear_transpose(lambda x: times(x, values), start)(conjugate(r))[0])

    # r + A x = b and A* r - damp² x = 0, so that the residual is found with x.
    def equation(pair: Any) -> Any:
        r, x = pair
        upper = tree.tree_map(lambda p, q: ops.add(p, q), r, times(x, captured))
        square = damp * damp
        back = adjoint(r, captured)
        return upper, tree.tree_map(lambda p, q: p - ops.convert_element_type(square, q.dtype) * q, back, x)

    def solve(_: Any, right: Any, conjugated: bool = False) -> Any:
        turn = ops.conj if conjugated else (lambda x: x)
        b, c = turn(rows.ravel(right[0])), turn(columns.ravel(right[1]))
        forward = lambda x: rows.ravel(times(columns.tree(x), still))
        x0 = c * 0 if without else _start(forward, b, columns.ravel(start))
        backward = lambda r: columns.ravel(adjoint(rows.tree(r), still))
        r, x, info = _iterate(forward, backward, b, c, x0, **fixed)
        return (rows.tree(turn(r)), columns.tree(turn(x))), info

    # The transpose of the equation's matrix is its conjugate.
    transpose_solve = lambda _, right: solve(
        _, right, dtypes.is_complex(rows.dtype) or dtypes.is_complex(columns.dtype)
    )
    zero = tree.tree_map(lambda x: ops.mul(x, 0), start)
    (_, x), info = custom_linear_solve(equation, (b, zero), solve, transpose_solve, has_aux=True)
    return x, info


_lsqr, _lsmr = (Shared(name, partial(_solved, name)) for name in ("lsqr", "lsmr"))


def _operands(name: str, a: Any, b: Any, x0: Any) -> tuple[Any, Any, Any]:
    """Check and promote the arguments of the function ``name``.

    Return the function that multiplies by A, the right side, and the starting point.
    """
    multiply, matrix = operator(name, "A", a)
    b = tree.tree_map(lambda x: inexact_operand(name, x), b)
    x0 = None if x0 is None else tree.tree_map(lambda x: stop_gradient(inexact_operand(name, x)), x0)
    if matrix is not None:
        if not hasattr(b, "shape"):
            raise OperandError(f"{name}: b must be an array if A is a matrix, got {tree.structure(b)}")
        if x0 is not None and not hasattr(x0, "shape"):
            raise OperandError(f"{name}: x0 must be an array if A is a matrix, got {tree.structure(x0)}")
        m, n = matrix.shape
        if b.shape != (m,) or (x0 is not None and x0.shape != (n,)):
            raise ShapeError(
                f"{name}: for a matrix of shape {matrix.shape}, b must have shape {(m,)} and x0 shape {(n,)}, got "
                f"{b.shape} and {None if x0 is None else x0.shape}"
            )
        dtype = dtypes.result_type(matrix.dtype, b.dtype)
        b = ops.convert_element_type(b, dtype)
        start = creation.zeros(n, dtype) if x0 is None else ops.convert_element_type(x0, dtype)
        return multiply, b, start
    if x0 is None:
        raise ArgumentError(
            f"{name}: if A is a function, pass x0, which shows the tree and the shapes of its operand; zeros will do"
        )
    out = eval_shape(multiply, x0)
    shapes = [[y.shape for y in tree.leaves(x)] for x in (out, b)]
    if tree.structure(out) != tree.structure(b) or shapes[0] != shapes[1]:
        raise ShapeError(
            f"{name}: A must map x0 to a tree like b, of shapes {shapes[1]}, but its shapes are {shapes[0]}"
        )
    b = tree.tree_map(lambda x, y: ops.convert_element_type(x, y.dtype), b, out)
    return multiply, b, x0


def _start(forward: Any, b: Any, x0: Any) -> Any:
    """Return ``x0``, or zero if the residual of zero is not larger.

    Derivatives solve equations with other right sides ``b``, and ``x0`` may be far from their solutions. ``forward``
    multiplies by A.
    """
    return ops.where(squared_norm(b - forward(x0)) < squared_norm(b), x0, 0)


# long: two methods with one state
def _iterate(
    forward: Any, backward: Any, b: Any, c: Any, x: Any, *, damp: Any, tolerances: Any, limit: Any, name: str
) -> tuple[Any, Any, dict[str, Any]]:
    """Solve A* r - damp² x = c, where r = b - A x, from the starting point ``x``.

    Conjugate gradients, for ``lsqr``, or conjugate residuals, for ``lsmr``, solve the normal equations, whose residual
    is ``s``; ``q`` and ``np`` are the products of A, and of the matrix of the normal equations, with the direction.

    Args:
      forward: the function that multiplies by A.
      backward: the function that multiplies by A*.
      b, c: the right sides.
      x, damp: the starting point and the damping factor.
      tolerances: ``atol``, ``btol`` and ``conlim``.
      limit: the largest number of steps.
      name: "lsqr" or "lsmr".

    Returns:
      r, the solution x, and a dict of the other results.
    """
    real = dtypes.to_real(b.dtype)
    atol, btol, conlim = (ops.convert_element_type(operand(name, v), real) for v in tolerances)
    cast = lambda v: ops.convert_element_type(v, x.dtype)
    square = damp * damp
    size_of_b = norm(b)
    by_residuals = name == "lsmr"

    def ended(state: Any) -> tuple[Any, Any, Any]:
        solved = norm(state["r"]) <= btol * size_of_b + atol * state["size"] * norm(state["x"])
        # The right side c of the second equation, not zero in derivatives, must be met too.
        exact = squared_norm(c) == 0
        total = state["size"] * ops.sqrt(squared_norm(state["r"]) + square * squared_norm(state["x"]))
        slope = ops.sqrt(squared_norm(state["s"]))
        least = slope <= atol * ops.where(exact, total, norm(c))
        ill = (conlim > 0) & (state["size"] > conlim * state["least"]) & exact & by_residuals
        return (solved & exact & (square == 0)) | (slope == 0), least, ill

    def going_on(state: Any) -> Any:
        solved, least, ill = ended(state)
        return ~(solved | least | ill) & (state["count"] < limit)

    def ratio(above: Any, below: Any) -> Any:
        return ops.where(below > 0, above / ops.where(below > 0, below, 1), 0)

    def normal(p: Any) -> tuple[Any, Any]:
        q = forward(p)
        return q, squared_norm(q) + square * squared_norm(p)

    def by_gradients(state: Any) -> dict[str, Any]:
        x, r, p = (state[name] for name in ("x", "r", "p"))
        q, length = normal(p)
        along = ratio(state["gamma"], length)
        x, r = x + cast(along) * p, r - ops.convert_element_type(along, r.dtype) * q
        s = backward(r) - cast(square) * x - c
        new = squared_norm(s)
        p = s + cast(ratio(new, state["gamma"])) * p
        return {**measured(state, length, squared_norm(state["p"])), "x": x, "r": r, "s": s, "p": p, "gamma": new}

    def by_minimal(state: Any) -> dict[str, Any]:
        x, r, p, q, image = (state[name] for name in ("x", "r", "p", "q", "image"))
        along = ratio(state["gamma"], squared_norm(image))
        x, r = x + cast(along) * p, r - ops.convert_element_type(along, r.dtype) * q
        s = backward(r) - cast(square) * x - c
        t, new = normal(s)
        turned = ratio(new, state["gamma"])
        p, q = s + cast(turned) * p, t + ops.convert_element_type(turned, t.dtype) * q
        image = backward(t) + cast(square) * s + cast(turned) * image
        seen = measured(state, new, squared_norm(s))
        return {**seen, "x": x, "r": r, "s": s, "p": p, "q": q, "image": image, "gamma": new}

    def measured(state: Any, length: Any, of: Any) -> dict[str, Any]:
        """Count a step, and remember the largest and smallest factor by which A changed the size of a vector."""
        factor = ops.sqrt(ratio(length, of))
        least = ops.where(factor > 0, ops.min_p.bind(state["least"], factor), state["least"])
        return {"size": ops.max_p.bind(state["size"], factor), "least": least, "count": state["count"] + 1}

    r = b - forward(x)
    s = backward(r) - cast(square) * x - c
    size = ops.sqrt(ratio(squared_norm(s), squared_norm(r)))
    start = {"x": x, "r": r, "s": s, "p": s, "gamma": squared_norm(s), "size": size}
    start |= {"least": size * 0 + np.inf, "count": creation.array(np.int32(0))}
    if by_residuals:
        q, gamma = normal(s)
        start |= {"q": q, "image": backward(q) + cast(square) * s, "gamma": gamma}
    end = while_loop(going_on, by_minimal if by_residuals else by_gradients, start)
    return _results(end, b - forward(end["x"]), square, ended(end))


def _results(end: dict[str, Any], r: Any, square: Any, ended: tuple[Any, Any, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return the residual r = b - A x, the solution x, and the other results of the last state ``end``."""
    solved, least, ill = ended
    x, zero = end["x"], end["count"] * 0
    istop = ops.where(least, zero + 2, ops.where(ill, zero + 3, 7))
    istop = ops.where(solved, ops.where(squared_norm(x) == 0, zero, 1), istop)
    first, size = norm(r), norm(x)
    return r, x, {
        "istop": istop, "itn": end["count"], "normr": first, "both": ops.sqrt(first * first + square * size * size),
        "normar": norm(end["s"]), "norma": end["size"],
        "conda": ops.where(end["least"] < np.inf, end["size"] / end["least"], 1), "normx": size,
    }  # fmt: skip
