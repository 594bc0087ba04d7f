"""Linear equations with Hermitian matrices: ``cg`` and ``minres``."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import numpy as np

from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.array import ArrayLike, scalar_array
from pullback.numpy.promotion import operand
from pullback.primitives import elementwise as ops
from pullback.scipy.sparse.linalg.programs import Shared
from pullback.scipy.sparse.linalg.systems import (
    Operator,
    System,
    dot,
    most_iterations,
    norm,
    squared_norm,
    tolerance,
)

T = TypeVar("T")


def _count() -> Any:
    return scalar_array(np.int32(0))


def _like(x: Any, dtype: Any) -> Any:
    """Convert the real number ``x`` to ``dtype``, the dtype of the vectors that it multiplies."""
    return ops.convert_element_type(x, dtype)


# long: half of it is its documentation
def cg(
    A: Operator,
    b: T,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[T, None]:
    """The solution x of A x = b by conjugate gradients, for Hermitian positive definite A.

    Args:
      A: a matrix (n, n), a sparse one, or a linear function of trees like ``b``.
      b: the right side, a vector (n), or a tree of arrays; integers become floats.
      x0: the starting point, like ``b``; zero by default, or if its residual is smaller. It has no derivative.
      tol: the relative size of the residual with which to end.
      atol: its absolute size; the larger of both applies.
      maxiter: the largest number of iterations, by default 10 for each element of ``b``.
      M: the preconditioner, like ``A``: a Hermitian positive definite approximation of its inverse.

    Returns:
      x, like ``b``, and ``info``, int32: zero where the residual is small enough, and otherwise the number
      of iterations. A ``tol`` below the precision of the dtype may not be reached.

    Raises:
      ShapeError: ``A`` is not square, or the operands do not fit (a TypeError and a ValueError).
      OperandError: something that is no matrix, function or array (a TypeError).

    Source: M. R. Hestenes and E. Stiefel 1952, "Methods of conjugate gradients for solving linear systems".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import cg
    >>> x, info = cg(jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([1.0, 2.0]))
    >>> print(x.round(4), info)
    [0.0909 0.6364] 0
    """
    return _cg(A, M, b, x0, tol, atol, maxiter)


@partial(Shared, "cg")
def _cg(A: Any, M: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any) -> Any:
    """Run :func:`cg`."""
    system = System("cg", A, b, x0, M)
    without = M is None

    def method(a: Any, b: Any, x: Any, r: Any, m: Any, maxiter: Any) -> Any:
        bound = tolerance("cg", b, tol, atol) ** 2

        def inner(r: Any) -> tuple[Any, Any]:
            z = r if without else m(r)
            return z, squared_norm(r) if without else ops.real_part(dot(r, z))

        def going_on(state: Any) -> Any:
            _, r, size, _, count = state
            return ((size if without else squared_norm(r)) > bound) & (count < maxiter)

        def step(state: Any) -> Any:
            x, r, size, p, count = state
            product = a(p)
            length = _like(size / ops.real_part(dot(p, product)), x.dtype)
            x, r = x + length * p, r - length * product
            z, new = inner(r)
            return x, r, new, z + _like(new / size, x.dtype) * p, count + 1

        z, size = inner(r)
        x, r, _, _, count = while_loop(going_on, step, (x, r, size, z, _count()))
        return x, ops.where(squared_norm(r) <= bound, 0, ops.max_p.bind(count, 1))

    return system.solved(method, most_iterations("cg", maxiter, 10 * system.vectors.size), symmetric=True)


# long: half of it is its documentation
def minres(
    A: Operator,
    b: T,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[T, None]:
    """The solution x of A x = b by minimal residuals, for Hermitian A that may be indefinite.

    Args:
      A: a matrix (n, n), a sparse one, or a linear function of trees like ``b``.
      b: the right side, a vector (n), or a tree of arrays; integers become floats.
      x0: the starting point, like ``b``; zero by default, or if its residual is smaller. It has no derivative.
      tol: the relative size of the residual with which to end.
      atol: its absolute size; the larger of both applies. With a preconditioner sizes are in the norm r* M r.
      maxiter: the largest number of iterations, by default 10 for each element of ``b``.
      M: the preconditioner, like ``A``: a Hermitian positive definite approximation of the inverse of A, or of the
        inverse of its absolute value.

    Returns:
      x, like ``b``, and ``info``, int32: zero where the residual is small enough, and otherwise the number
      of iterations. For a singular equation without a solution, the residual of x is nearly minimal.

    Raises:
      ShapeError: ``A`` is not square, or the operands do not fit (a TypeError and a ValueError).
      OperandError: something that is no matrix, function or array (a TypeError).

    Source: C. C. Paige and M. A. Saunders 1975, "Solution of sparse indefinite systems of linear equations".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.sparse.linalg import minres
    >>> x, info = minres(jnp.array([[1.0, 2.0], [2.0, 1.0]]), jnp.array([3.0, 0.0]))
    >>> print(x.round(4), info)
    [-1.  2.] 0
    """
    return _minres(A, M, b, x0, tol, atol, maxiter)


@partial(Shared, "minres")
def _minres(A: Any, M: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any) -> Any:
    """Run :func:`minres`."""
    system = System("minres", A, b, x0, M)

    def method(a: Any, b: Any, x: Any, r: Any, m: Any, maxiter: Any) -> Any:
        real = dtypes.to_real(b.dtype)
        epsilon = float(np.finfo(real).eps)
        scale = norm(b) if M is None else ops.sqrt(ops.real_part(dot(b, m(b))))
        convert = lambda value: ops.convert_element_type(value, real)
        bound = ops.max_p.bind(convert(operand("minres", tol)) * scale, convert(operand("minres", atol)))
        cast = lambda value: _like(value, b.dtype)

        # Lanczos' vectors are r / beta before, and y / beta after the preconditioner. Rotations (cosine, sine) make the
        # tridiagonal matrix triangular; its last column has the elements epsilon, delta and gamma.
        def going_on(s: Any) -> Any:
            return (s["residual"] > bound) & (s["count"] < maxiter) & (s["beta"] > 10 * epsilon * s["size"])

        def step(s: Any) -> Any:
            v = s["y"] / cast(s["beta"])
            y = a(v) - cast(s["beta"] / ops.where(s["old"] > 0, s["old"], 1)) * s["r_old"]
            alpha = ops.real_part(dot(v, y))
            y = y - cast(alpha / s["beta"]) * s["r"]
            z = m(y)
            beta = ops.sqrt(ops.max_p.bind(ops.real_part(dot(y, z)), 0))
            delta = s["cosine"] * s["dbar"] + s["sine"] * alpha
            gbar = s["sine"] * s["dbar"] - s["cosine"] * alpha
            gamma = ops.hypot_p.bind(gbar, beta)
            size = ops.max_p.bind(s["size"], ops.max_p.bind(ops.abs(alpha), beta))
            # Where A maps a direction to zero, no step along it makes the residual smaller.
            singular = gamma <= 10 * epsilon * size
            gamma = ops.where(singular, 1, gamma)
            cosine, sine = gbar / gamma, beta / gamma
            w = (v - cast(s["extra"]) * s["w_old"] - cast(delta) * s["w"]) / cast(gamma)
            return {
                "x": s["x"] + cast(ops.where(singular, 0, cosine * s["phi"])) * w,
                "w": w, "w_old": s["w"], "r": y, "r_old": s["r"], "y": z, "beta": beta, "old": s["beta"],
                "cosine": cosine, "sine": sine, "dbar": -s["cosine"] * beta, "extra": s["sine"] * beta,
                "phi": sine * s["phi"], "residual": ops.where(singular, s["residual"], ops.abs(sine * s["phi"])),
                "count": s["count"] + 1,
                "size": size,
            }  # fmt: skip

        y = m(r)
        beta = ops.sqrt(ops.max_p.bind(ops.real_part(dot(r, y)), 0))
        zero, zeros = ops.mul(beta, 0), ops.mul(x, 0)
        start = {
            "x": x, "w": zeros, "w_old": zeros, "r": r, "r_old": zeros, "y": y, "beta": beta, "old": zero,
            "cosine": zero - 1, "sine": zero, "dbar": zero, "extra": zero, "phi": beta, "residual": beta,
            "count": _count(), "size": zero,
        }  # fmt: skip
        end = while_loop(going_on, step, start)
        return end["x"], ops.where(end["residual"] <= bound, 0, ops.max_p.bind(end["count"], 1))

    return system.solved(method, most_iterations("minres", maxiter, 10 * system.vectors.size), symmetric=True)
