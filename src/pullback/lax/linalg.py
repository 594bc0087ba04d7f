"""Decompositions and triangular systems under JAX's names: ``pullback.lax.linalg``."""

from __future__ import annotations

import operator

from pullback.core.array import Array, ArrayLike
from pullback.core.faces import face
from pullback.lax.decompositions import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    cholesky_update,
    eig,
    eigh,
    hessenberg,
    householder_product,
    ormqr,
    qdwh,
    qr,
    schur,
    svd,
    symmetric_product,
    tridiagonal,
    tridiagonal_solve,
)
from pullback.primitives.linalg import lapack as linalg
from pullback.primitives.linalg.eigen import eig_p, eigh_p
from pullback.primitives.linalg.householder import householder_product_p, ormqr_p
from pullback.primitives.linalg.lapack import cholesky_p, triangular_solve_p
from pullback.primitives.linalg.lu import lu_p, lu_pivots_to_permutation_p
from pullback.primitives.linalg.qr import qr_p
from pullback.primitives.linalg.schur import hessenberg_p, schur_p, tridiagonal_p
from pullback.primitives.linalg.svd import svd_p
from pullback.primitives.linalg.tridiagonal import cholesky_update_p, tridiagonal_solve_p
from pullback.primitives.operands import array_operand, bind

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
    "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "householder_product",
    "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p",
    "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "triangular_solve",
    "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve", "tridiagonal_solve_p",
]  # fmt: skip
face(globals())


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The Cholesky factors of Hermitian positive-definite matrices.

    Args:
      x: an array (..., n, n) of float32, float64, complex64 or complex128.
      symmetrize_input: whether to factorise the means of the matrices and their adjoints; otherwise only the lower
        triangles are read, and have a gradient.

    Returns:
      Lower triangular L, of the shape and dtype of ``x``, for which L times its adjoint is the matrix. L is NaN, in its
      triangle, where a matrix is not positive definite.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).

    The derivative is Murray's (2016, arXiv:1602.07527).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.linalg.cholesky(pnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]
    """
    return linalg.factor(array_operand("linalg.cholesky", x), symmetrize_input)


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The solutions X of op(A) X = B, or of X op(A) = B, for triangular matrices A.

    Args:
      a: the matrices A, an array (..., n, n) of floats or complex numbers; one triangle is read.
      b: the matrices B, an array (..., n, k), or (..., k, n) where A is to the right, with the dtype and the leading
        axes of ``a``; or vectors (..., n).
      left_side: whether A is to the left of X.
      lower: whether to read the lower triangle of ``a``, not the upper one.
      transpose_a: whether op transposes.
      conjugate_a: whether op conjugates.
      unit_diagonal: whether the diagonal of A counts as one, and is not read.

    Returns:
      X, of the shape and dtype of ``b``; it is infinite or NaN where A is singular.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: operands of two dtypes, or of a dtype that is not inexact (a TypeError).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> a = pnp.array([[2.0, 0.0], [1.0, 1.0]])
    >>> print(lax.linalg.triangular_solve(a, pnp.array([2.0, 3.0]), left_side=True, lower=True))
    [1. 2.]
    """
    return linalg.solve_triangular(
        array_operand("linalg.triangular_solve", a),
        array_operand("linalg.triangular_solve", b),
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """The LU decomposition of matrices, with their rows permuted so that no element of L is larger than one.

    Args:
      x: an array (..., m, n) of float32, float64, complex64 or complex128.

    Returns:
      The factors in one array of the shape and dtype of ``x``: U is its upper triangle, and L is the rest, with ones on
      the diagonal; the pivots, int32 of shape (..., min(m, n)): row i was swapped with row ``pivots[i]``, for
      one i after the other; and the permutation, int32 of shape (..., m), for which ``x[permutation]`` is L times U.
      For a singular matrix, U has zeros on the diagonal.

    Raises:
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).

    The derivative is after Giles (2008, "An extended collection of matrix derivative results").

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> factors, pivots, permutation = lax.linalg.lu(pnp.array([[1.0, 3.0], [2.0, 4.0]]))
    >>> print(factors, pivots, permutation)
    [[2.  4. ]
     [0.5 1. ]] [1 1] [1 0]
    """
    factors, pivots, permutation = bind(lu_p, array_operand("linalg.lu", x))
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutations of rows that result from swapping them one after the other.

    Args:
      pivots: integers (..., k): row i is swapped with row ``pivots[i]``, for one i after the other.
      permutation_size: the number of rows, k or more.

    Returns:
      An int32 array (..., permutation_size): the position of each row before the first swap.

    Raises:
      ShapeError: there are more pivots than rows (a TypeError and a ValueError).
      DtypeError: the pivots are not integers (a TypeError).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.linalg.lu_pivots_to_permutation(pnp.array([2, 2]), 3))
    [2 0 1]
    """
    name = "linalg.lu_pivots_to_permutation"
    size = operator.index(permutation_size)
    return bind(lu_pivots_to_permutation_p, array_operand(name, pivots), permutation_size=size)
