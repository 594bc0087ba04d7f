"""Least squares by iteration: ``lsqr``."""

from __future__ import annotations

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
from pullback.scipy.sparse.linalg.systems import Operator, most_iterations, norm, operator, squared_norm
from pullback.scipy.vectors import Vectors
from pullback.transforms.autodiff.grad import linear_transpose
from pullback.transforms.autodiff.tracing import eval_shape


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
    multiply, b, start = _operands(A, b, x0)
    damp = ops.convert_element_type(operand("lsqr", damp), dtypes.to_real(Vectors(b).dtype))
    rows, columns = Vectors(b), Vectors(start)
    without = x0 is None
    limit = most_iterations("lsqr", iter_lim, 2 * max(rows.size, columns.size))
    fixed = {"damp": stop_gradient(damp), "atol": atol, "btol": btol, "limit": limit}

    def adjoint(r: Any) -> Any:
        conjugate = lambda x: tree.tree_map(ops.conj, x)
        return conjugate(linear_transpose(multiply, start)(conjugate(r))[0])

    # r + A x = b and A* r - damp² x = 0, so that the residual is found with x.
    def equation(pair: Any) -> Any:
        r, x = pair
        upper = tree.tree_map(lambda p, q: ops.add(p, q), r, multiply(x))
        square = damp * damp
        return upper, tree.tree_map(lambda p, q: p - ops.convert_element_type(square, q.dtype) * q, adjoint(r), x)

    def solve(_: Any, right: Any, conjugated: bool = False) -> Any:
        turn = ops.conj if conjugated else (lambda x: x)
        b, c = turn(rows.ravel(right[0])), turn(columns.ravel(right[1]))
        forward = lambda x: rows.ravel(multiply(columns.tree(x)))
        x0 = c * 0 if without else _start(forward, b, columns.ravel(start))
        backward = lambda r: columns.ravel(adjoint(rows.tree(r)))
        r, x, *info = _iterate(forward, backward, b, c, x0, **fixed)
        return (rows.tree(turn(r)), columns.tree(turn(x))), info

    # The transpose of the equation's matrix is its conjugate.
    transpose_solve = lambda _, right: solve(
        _, right, dtypes.is_complex(rows.dtype) or dtypes.is_complex(columns.dtype)
    )
    zero = tree.tree_map(lambda x: ops.mul(x, 0), start)
    (_, x), info = custom_linear_solve(equation, (b, zero), solve, transpose_solve, has_aux=True)
    return LsqrResult(x, *info)


def _operands(a: Any, b: Any, x0: Any) -> tuple[Any, Any, Any]:
    """Check and promote the arguments of ``lsqr``.

    Return the function that multiplies by A, the right side, and the starting point.
    """
    multiply, matrix = operator("lsqr", "A", a)
    b = tree.tree_map(lambda x: inexact_operand("lsqr", x), b)
    x0 = None if x0 is None else tree.tree_map(lambda x: stop_gradient(inexact_operand("lsqr", x)), x0)
    if matrix is not None:
        if not hasattr(b, "shape"):
            raise OperandError(f"lsqr: b must be an array if A is a matrix, got {tree.structure(b)}")
        if x0 is not None and not hasattr(x0, "shape"):
            raise OperandError(f"lsqr: x0 must be an array if A is a matrix, got {tree.structure(x0)}")
        m, n = matrix.shape
        if b.shape != (m,) or (x0 is not None and x0.shape != (n,)):
            raise ShapeError(
                f"lsqr: for a matrix of shape {matrix.shape}, b must have shape {(m,)} and x0 shape {(n,)}, got "
                f"{b.shape} and {None if x0 is None else x0.shape}"
            )
        dtype = dtypes.result_type(matrix.dtype, b.dtype)
        b = ops.convert_element_type(b, dtype)
        start = creation.zeros(n, dtype) if x0 is None else ops.convert_element_type(x0, dtype)
        return multiply, b, start
    if x0 is None:
        raise ArgumentError(
            "lsqr: if A is a function, pass x0, which shows the tree and the shapes of its operand; zeros will do"
        )
    out = eval_shape(multiply, x0)
    shapes = [[y.shape for y in tree.leaves(x)] for x in (out, b)]
    if tree.structure(out) != tree.structure(b) or shapes[0] != shapes[1]:
        raise ShapeError(f"lsqr: A must map x0 to a tree like b, of shapes {shapes[1]}, but its shapes are {shapes[0]}")
    b = tree.tree_map(lambda x, y: ops.convert_element_type(x, y.dtype), b, out)
    return multiply, b, x0


def _start(forward: Any, b: Any, x0: Any) -> Any:
    """Return ``x0``, or zero if the residual of zero is not larger.

    Derivatives solve equations with other right sides ``b``, and ``x0`` may be far from their solutions. ``forward``
    multiplies by A.
    """
    return ops.where(squared_norm(b - forward(x0)) < squared_norm(b), x0, 0)


def _iterate(
    forward: Any, backward: Any, b: Any, c: Any, x: Any, *, damp: Any, atol: Any, btol: Any, limit: Any
) -> tuple[Any, ...]:
    """Solve A* r - damp² x = c, where r = b - A x, from the starting point ``x`` by conjugate gradients.

    Args:
      forward: the function that multiplies by A.
      backward: the function that multiplies by A*.
      b, c: the right sides.
      x, damp: the starting point and the damping factor.
      atol, btol: the tolerances of ``lsqr``.
      limit: the largest number of steps.

    Returns:
      r, the solution x, and the other fields of :class:`LsqrResult`.
    """
    real = dtypes.to_real(b.dtype)
    convert = lambda v: ops.convert_element_type(operand("lsqr", v), real)
    atol, btol = convert(atol), convert(btol)
    cast = lambda v: ops.convert_element_type(v, x.dtype)
    square = damp * damp
    size_of_b = norm(b)

    def ended(state: Any) -> tuple[Any, Any]:
        solved = norm(state["r"]) <= btol * size_of_b + atol * state["size"] * norm(state["x"])
        # The right side c of the second equation, not zero in derivatives, must be met too.
        exact = squared_norm(c) == 0
        total = state["size"] * ops.sqrt(squared_norm(state["r"]) + square * squared_norm(state["x"]))
        least = ops.sqrt(state["gamma"]) <= atol * ops.where(exact, total, norm(c))
        return (solved & exact & (square == 0)) | (state["gamma"] == 0), least

    def going_on(state: Any) -> Any:
        solved, least = ended(state)
        return ~(solved | least) & (state["count"] < limit)

    def step(state: Any) -> Any:
        x, r, p, gamma = (state[name] for name in ("x", "r", "p", "gamma"))
        q = forward(p)
        length = squared_norm(q) + square * squared_norm(p)
        safe = ops.where(length > 0, length, 1)
        along = ops.where(length > 0, gamma / safe, 0)
        x, r = x + cast(along) * p, r - ops.convert_element_type(along, r.dtype) * q
        s = backward(r) - cast(square) * x - c
        new = squared_norm(s)
        size = ops.max_p.bind(state["size"], ops.sqrt(length / ops.where(squared_norm(p) > 0, squared_norm(p), 1)))
        p = s + cast(new / ops.where(gamma > 0, gamma, 1)) * p
        return {"x": x, "r": r, "p": p, "gamma": new, "size": size, "count": state["count"] + 1}

    r = b - forward(x)
    s = backward(r) - cast(square) * x - c
    gamma = squared_norm(s)
    size = ops.sqrt(gamma / ops.where(squared_norm(r) > 0, squared_norm(r), 1))
    start = {"x": x, "r": r, "p": s, "gamma": gamma, "size": size, "count": creation.array(np.int32(0))}
    end = while_loop(going_on, step, start)
    solved, least = ended(end)
    x, r = end["x"], b - forward(end["x"])
    zero = end["count"] * 0
    istop = ops.where(solved, ops.where(squared_norm(x) == 0, zero, 1), ops.where(least, zero + 2, 7))
    first = norm(r)
    return r, x, istop, end["count"], first, ops.sqrt(first * first + square * squared_norm(x)), ops.sqrt(end["gamma"])
