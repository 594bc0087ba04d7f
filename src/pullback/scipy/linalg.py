"""SciPy's functions for triangular and positive-definite matrices, on Pullback's arrays: ``pullback.scipy.linalg``.

Matrices are the last two axes of an array; the axes in front of them broadcast. Arrays are immutable, and are not
searched for infinities and NaN: ``overwrite_a``, ``overwrite_b`` and ``check_finite`` have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy import linalg as numpy_linalg
from pullback.numpy.manipulation import broadcast_shapes
from pullback.numpy.promotion import inexact_operand, promote_all
from pullback.primitives import checked_linalg, shapes
from pullback.transforms.vmap import vmap

__all__ = ["cho_factor", "cho_solve", "cholesky", "solve_triangular"]


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Cholesky factors of Hermitian positive-definite matrices.

    Args:
      a: an array (..., n, n) of numbers, of which the triangles that the factors have are read; integers become floats.
      lower: whether to give lower triangular factors L, with L times its adjoint the matrix, rather than upper
        triangular U, with the adjoint of U times U the matrix.
      overwrite_a: without effect.
      check_finite: without effect.

    Returns:
      U or L, of the shape of ``a``; NaN, in its triangle, where a matrix is not positive definite. The gradient with
      respect to ``a`` is in the triangle that is read.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as pnp
    >>> print(cholesky(pnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 1.]
     [0. 2.]]
    """
    return numpy_linalg.cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """The Cholesky factors of matrices, as :func:`cho_solve` takes them; the arguments are those of :func:`cholesky`.

    Returns:
      The factors, with zeros in the other triangle, and ``lower``.

    >>> import pullback.numpy as pnp
    >>> factor, lower = cho_factor(pnp.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    >>> print(factor, lower)
    [[2. 0.]
     [1. 2.]] True
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The solutions x of A x = b, where the Cholesky factors of the matrices A are known.

    Args:
      c_and_lower: the factors, an array (..., n, n), and whether they are lower triangular, as :func:`cho_factor` gives
        them.
      b: a vector (n), or matrices (..., n, k).
      overwrite_b: without effect.
      check_finite: without effect.

    Returns:
      x, of the shape of ``b`` with the leading axes broadcast.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> print(cho_solve(cho_factor(pnp.array([[4.0, 2.0], [2.0, 5.0]])), pnp.array([6.0, 7.0])))
    [1. 1.]
    """
    factor, lower = c_and_lower
    plain, adjoint = {"lower": lower}, {"lower": lower, **_ADJOINT}
    return _solve("cho_solve", factor, b, [plain, adjoint] if lower else [adjoint, plain])


_TRANSPOSE = {"transpose_a": True}
_ADJOINT = {"transpose_a": True, "conjugate_a": True}
_OPERATIONS: dict[Any, dict[str, bool]] = {
    0: {}, "N": {}, 1: _TRANSPOSE, "T": _TRANSPOSE, 2: _ADJOINT, "C": _ADJOINT,
}  # fmt: skip


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Any:
    """The solutions x of op(A) x = b, for triangular matrices A.

    Args:
      a: the matrices A, an array (..., n, n) of numbers, of which one triangle is read; integers become floats.
      b: a vector (n), or matrices (..., n, k).
      trans: 0 or "N" for A itself, 1 or "T" for its transpose, 2 or "C" for its adjoint.
      lower: whether to read the lower triangle of ``a``, not the upper one.
      unit_diagonal: whether to take the diagonal of A to be one, and not to read it.
      overwrite_b: without effect.
      debug: without effect.
      check_finite: without effect.

    Returns:
      x, of the shape of ``b`` with the leading axes broadcast; it is infinite or NaN where A is singular.

    Raises:
      ArgumentError: there is no such ``trans`` (a TypeError and a ValueError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> print(solve_triangular(pnp.array([[2.0, 1.0], [0.0, 3.0]]), pnp.array([3.0, 3.0])))
    [1. 1.]
    """
    if trans not in _OPERATIONS:
        raise ArgumentError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    params = {"lower": lower, "unit_diagonal": unit_diagonal, **_OPERATIONS[trans]}
    return _solve("solve_triangular", a, b, [params])


def _solve(name: str, a: Any, b: Any, steps: Sequence[dict[str, bool]]) -> Any:
    """The solution of one system after another, with the same triangular matrices."""
    a, b = (inexact_operand(name, x) for x in promote_all(name, (a, b)))
    numpy_linalg.require_square(name, a)
    vector = len(b.shape) == 1
    x = shapes.expand_dims(b, (-1,)) if vector else b
    if not b.shape or x.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"{name}: b must be a vector or matrices with {a.shape[-1]} rows, for matrices in an array of shape "
            f"{a.shape}; got shape {b.shape}"
        )
    for params in steps:
        x = _broadcast(partial(checked_linalg.triangular_solve, left_side=True, **params), a, x)
    return shapes.squeeze(x, (-1,)) if vector else x


def _broadcast(solve: Any, a: Any, b: Any) -> Any:
    """A solution for matrices whose leading axes broadcast; one matrix A is not copied for each b."""
    if len(a.shape) == 2:
        for _ in b.shape[:-2]:
            solve = vmap(solve, (None, 0))
        return solve(a, b)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return solve(*[shapes.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)])
