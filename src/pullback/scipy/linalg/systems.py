"""The Cholesky and LU decompositions, and systems of equations.

Matrices are the last two axes of an array; the axes in front of them broadcast. Arrays are immutable, and are not
searched for infinities and NaN: ``overwrite_a``, ``overwrite_b`` and ``check_finite`` have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed, typed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, OperandError, ShapeError
from pullback.numpy import creation, diagonals
from pullback.numpy import linalg as numpy_linalg
from pullback.numpy.promotion import inexact_operand, named, operand
from pullback.primitives.linalg.lapack import adjoint, matrix_transpose
from pullback.primitives.linalg.lapack import solve_triangular as by_substitution
from pullback.primitives.linalg.lu import linear_solve, lu_p, lu_pivots_to_permutation_p, unpermuted
from pullback.primitives.linalg.lu import lu_solve as solve_by_factors
from pullback.primitives.operands import bind

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "inv", "lu", "lu_factor", "lu_solve", "solve", "solve_triangular",
]  # fmt: skip

# The Cholesky decomposition, and triangular systems ----------------------------------------------------------------


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factors of Hermitian positive-definite matrices.

    Args:
      a: an array (..., n, n) of numbers, whose triangle of the factors is read; integers become floats.
      lower: whether to return lower triangular factors L, with L times its adjoint the matrix, rather than upper
        triangular U, with the adjoint of U times U the matrix.
      overwrite_a: without effect.
      check_finite: without effect.

    Returns:
      U or L, of the shape of ``a``; NaN, in its triangle, where a matrix is not positive definite. The gradient with
      respect to ``a`` is in the triangle that is read.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 1.]
     [0. 2.]]
    """
    return numpy_linalg.cholesky(a, upper=not flag("cholesky", "lower", lower), symmetrize_input=False)


@named
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factors of matrices, as :func:`cho_solve` takes them.

    Args:
      a: positive definite Hermitian matrices, an array (..., n, n) of floats or complex numbers; integers are
        converted.
      lower: whether to return lower triangular factors.
      overwrite_a: without effect.
      check_finite: without effect.

    Returns:
      A pair: the factors, an array of the shape of ``a`` with zeros in the other triangle, and ``lower``. The factors
      of a matrix that is not positive definite are NaN.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      ArgumentError: ``lower`` is no bool (a TypeError and a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> factor, lower = linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    >>> print(factor, lower)
    [[2. 0.]
     [1. 2.]] True
    """
    lower = flag("cho_factor", "lower", lower)
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solutions x of A x = b, where the Cholesky factors of the matrices A are known.

    Args:
      c_and_lower: the factors, an array (..., n, n), and whether they are lower triangular, as from
        :func:`cho_factor`.
      b: a vector (n), or matrices (..., n, k).
      overwrite_b: without effect.
      check_finite: without effect.

    Returns:
      x, of the shape of ``b`` with the leading axes broadcast.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.cho_solve(linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]])), jnp.array([6.0, 7.0])))
    [1. 1.]
    """
    factor, lower = _pair("cho_solve", "c_and_lower", c_and_lower)
    return numpy_linalg.solve_systems("cho_solve", _cholesky_solver(lower), (factor,), b)


def _pair(name: str, argument: str, x: Any) -> Any:
    """Return ``x``, the value of the argument named ``argument``; raise unless it is a pair."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise OperandError(f"{name}: {argument} must be a pair, got {typed(x)}")
    return x


def _cholesky_solver(lower: bool) -> Callable[..., Any]:
    plain = partial(by_substitution, left_side=True, lower=lower)
    adjoint = partial(plain, **_ADJOINT)
    first, second = (plain, adjoint) if lower else (adjoint, plain)
    return lambda factor, b: second(factor, first(factor, b))


_TRANSPOSE = {"transpose_a": True}
_ADJOINT = {"transpose_a": True, "conjugate_a": True}
_OPERATIONS: dict[Any, dict[str, bool]] = {
    0: {}, "N": {}, 1: _TRANSPOSE, "T": _TRANSPOSE, 2: _ADJOINT, "C": _ADJOINT,
}  # fmt: skip


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """The solutions x of op(A) x = b, for triangular matrices A.

    Args:
      a: the matrices A, an array (..., n, n) of numbers, with one triangle that is read; integers become floats.
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
      ArgumentError: ``trans`` is unknown (a TypeError and a ValueError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.solve_triangular(jnp.array([[2.0, 1.0], [0.0, 3.0]]), jnp.array([3.0, 3.0])))
    [1. 1.]
    """
    operation = _operation("solve_triangular", trans)
    params = {"lower": lower, "unit_diagonal": unit_diagonal, **operation}
    solver = partial(by_substitution, left_side=True, **params)
    return numpy_linalg.solve_systems("solve_triangular", solver, (a,), b)


def _operation(name: str, trans: Any) -> dict[str, bool]:
    if not is_listed(trans, _OPERATIONS):
        raise ArgumentError(f"{name}: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    return _OPERATIONS[trans]


# The LU decomposition ----------------------------------------------------------------------------------------------


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """The LU decomposition of matrices, A = P L U.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      permute_l: whether to return P L instead of P and L.
      overwrite_a: without effect.
      check_finite: without effect.

    Returns:
      P, permutation matrices (..., m, m), real; L, lower triangular (..., m, k) with ones on the diagonal, and U, upper
      triangular (..., k, n), where k is the smaller of m and n. Or P L and U.

    Raises:
      ShapeError: ``a`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> for factor in linalg.lu(jnp.array([[1, 3], [2, 4]])):
    ...     print(factor)
    [[0. 1.]
     [1. 0.]]
    [[1.  0. ]
     [0.5 1. ]]
    [[2. 4.]
     [0. 1.]]
    """
    permute_l = flag("lu", "permute_l", permute_l)
    factors, _, permutation = bind(lu_p, inexact_operand("scipy.linalg.lu", a))
    *_, m, n = factors.shape
    size = min(m, n)
    lower = diagonals.tril(factors[..., :size], -1) + creation.eye(m, size, dtype=factors.dtype)
    upper = diagonals.triu(factors[..., :size, :])
    if permute_l:
        return unpermuted(lower, permutation), upper
    matrix = permutation[..., None, :] == creation.arange(m)[:, None]
    return matrix.astype(dtypes.to_real(factors.dtype)), lower, upper


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The LU decomposition of matrices, as :func:`lu_solve` takes it.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      overwrite_a: without effect.
      check_finite: without effect.

    Returns:
      An array of the shape of ``a``, with U in its upper triangle and L below, whose diagonal is one; and the pivots,
      int32 of shape (..., min(m, n)): row i was swapped with row ``pivots[i]``, for each i in order.

    Raises:
      ShapeError: ``a`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> factors, pivots = linalg.lu_factor(jnp.array([[1, 3], [2, 4]]))
    >>> print(factors, pivots)
    [[2.  4. ]
     [0.5 1. ]] [1 1]
    """
    factors, pivots, _ = bind(lu_p, inexact_operand("lu_factor", a))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int | str = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solutions x of op(A) x = b, where the LU decomposition of the matrices A is known.

    Args:
      lu_and_piv: the factors (..., n, n) and the pivots (..., n), as :func:`lu_factor` returns them.
      b: a vector (n), or matrices (..., n, k).
      trans: 0 or "N" for A itself, 1 or "T" for its transpose, 2 or "C" for its adjoint.
      overwrite_b: without effect.
      check_finite: without effect.

    Returns:
      x, of the shape of ``b`` with the leading axes broadcast; it is infinite or NaN where A is singular.

    Raises:
      ArgumentError: ``trans`` is unknown (a TypeError and a ValueError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.lu_solve(linalg.lu_factor(jnp.array([[2.0, 1.0], [1.0, 3.0]])), jnp.array([3.0, 4.0])))
    [1. 1.]
    """
    operation = _operation("lu_solve", trans)
    factors, pivots = (operand("lu_solve", x) for x in _pair("lu_solve", "lu_and_piv", lu_and_piv))
    numpy_linalg.require_square("lu_solve", factors)
    if pivots.shape != factors.shape[:-1]:
        raise ShapeError(
            f"lu_solve: factors of shape {factors.shape} have pivots of shape {factors.shape[:-1]}, got {pivots.shape}"
        )
    permutation = bind(lu_pivots_to_permutation_p, pivots, permutation_size=factors.shape[-1])
    names = {"transpose_a": "transpose", "conjugate_a": "conjugate"}
    solver = partial(solve_by_factors, **{names[name]: flag for name, flag in operation.items()})
    return numpy_linalg.solve_systems("lu_solve", solver, (factors, permutation), b)


# Systems of equations ----------------------------------------------------------------------------------------------


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The solutions x of A x = b, for square matrices A of a known structure.

    Args:
      a: the matrices A, an array (..., n, n) of numbers; integers become floats.
      b: a vector (n), or matrices (..., n, k).
      lower: whether to read the lower triangles of symmetric, Hermitian or positive-definite matrices, not the upper
        ones.
      overwrite_a: without effect.
      overwrite_b: without effect.
      debug: without effect.
      check_finite: without effect.
      assume_a: "gen", "sym", "her" or "pos", or in full "general", "symmetric", "hermitian", "positive definite"; or
        "upper triangular", "lower triangular".

    Returns:
      x, of the shape of ``b`` with the leading axes broadcast; infinite or NaN where A is singular, and NaN where it
      is assumed to be positive definite and is not.

    Raises:
      ArgumentError: ``assume_a`` is unknown (a TypeError and a ValueError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.solve(jnp.array([[4, 2], [2, 5]]), jnp.array([6, 7]), assume_a="pos"))
    [1. 1.]
    """
    lower = flag("solve", "lower", lower)
    if not is_listed(assume_a, _SOLVERS):
        raise ArgumentError(f"solve: assume_a must be one of {', '.join(map(repr, _SOLVERS))}, got {assume_a!r}")
    return numpy_linalg.solve_systems("scipy.linalg.solve", partial(_SOLVERS[assume_a], bool(lower)), (a,), b)


def _solve_general(lower: bool, a: Any, b: Any) -> Any:
    return linear_solve(a, b)


def _solve_symmetric(lower: bool, a: Any, b: Any) -> Any:
    triangle = diagonals.tril(a) if lower else diagonals.triu(a)
    other = diagonals.tril(a, -1) if lower else diagonals.triu(a, 1)
    return linear_solve(triangle + matrix_transpose(other), b)


def _solve_hermitian(lower: bool, a: Any, b: Any) -> Any:
    other = diagonals.tril(a, -1) if lower else diagonals.triu(a, 1)
    diagonal = (a + adjoint(a)) * (0.5 * creation.eye(a.shape[-1], dtype=a.dtype))
    return linear_solve(diagonal + other + adjoint(other), b)


def _solve_positive(lower: bool, a: Any, b: Any) -> Any:
    return _cholesky_solver(lower)(cholesky(a, lower), b)


def _solve_triangular(upper: bool, lower: bool, a: Any, b: Any) -> Any:
    return by_substitution(a, b, left_side=True, lower=not upper)


_SOLVERS: dict[str, Callable[..., Any]] = {
    "gen": _solve_general, "general": _solve_general, "sym": _solve_symmetric, "symmetric": _solve_symmetric,
    "her": _solve_hermitian, "hermitian": _solve_hermitian,
    "pos": _solve_positive, "positive definite": _solve_positive,
    "upper triangular": partial(_solve_triangular, True), "lower triangular": partial(_solve_triangular, False),
}  # fmt: skip


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices; see :func:`pullback.numpy.linalg.inv`.

    Args:
      a: an array (..., n, n) of floats or complex numbers; integers are converted.
      overwrite_a: without effect.
      check_finite: without effect.

    Returns:
      An array (..., n, n) of the inexact dtype of ``a``; the inverse of a singular matrix has elements that are not
      finite.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.inv(jnp.array([[2, 0], [0, 4]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return numpy_linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices; see :func:`pullback.numpy.linalg.det`.

    Args:
      a: an array (..., n, n) of floats or complex numbers; integers are converted.
      overwrite_a: without effect.
      check_finite: without effect.

    Returns:
      An array (...) of the inexact dtype of ``a``.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.det(jnp.array([[2, 0], [0, 4]])))
    8.0
    """
    return numpy_linalg.det(a)
