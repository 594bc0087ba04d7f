"""Eigenvalues, singular values, QR, polar and Schur's decompositions, with SciPy's arguments."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from pullback.control.fori_loop import fori_loop
from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.numpy import creation, decompositions, diagonals
from pullback.numpy import linalg as numpy_linalg
from pullback.numpy.promotion import inexact_operand, inexact_operands, known_int, sequence_of
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import indexing, shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.linalg.decompositions import hermitian_of_lower
from pullback.primitives.linalg.eigen import eigh_p
from pullback.primitives.linalg.householder import geqrf_p, householder_product_p
from pullback.primitives.linalg.lapack import adjoint, check_decomposable, matrix_transpose, product, triangular_solve
from pullback.primitives.linalg.qr import qr_p
from pullback.primitives.linalg.schur import hessenberg_p, schur_p
from pullback.primitives.linalg.svd import polar_p, svd_p
from pullback.primitives.operands import bind
from pullback.scipy.linalg.systems import cholesky
from pullback.transforms.autodiff.vmap import vmap

__all__ = ["eigh", "eigh_tridiagonal", "hessenberg", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "svd"]

# Hermitian matrices ------------------------------------------------------------------------------------------------


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any: ...
# long: half of it is its documentation
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """The eigenvalues and eigenvectors of Hermitian matrices, also of the generalised problem.

    Args:
      a: an array (..., n, n) of numbers, whose triangle is read; integers become floats.
      b: positive definite Hermitian matrices like ``a``, whose same triangle is read, or None for the identity.
      lower: whether to read the lower triangles, not the upper ones.
      eigvals_only: whether to return the eigenvalues alone.
      overwrite_a, overwrite_b, turbo, check_finite: without effect.
      eigvals: the positions ``(first, last)`` of the ascending eigenvalues to return; all by default.
      type: the problem, unless ``b`` is None: 1 for a v = w b v, 2 for a b v = w v, 3 for b a v = w v.

    Returns:
      The eigenvalues (..., k), real and ascending, and the eigenvectors as columns (..., n, k). In the generalised
      problem they have v* b v = 1, or v* b⁻¹ v = 1 where ``type`` is 3. NaN where a matrix is not finite, or ``b`` is
      not positive definite. As for derivatives, see :func:`pullback.numpy.linalg.eigh`.

    Raises:
      ShapeError: the matrices are not square, or not of one shape (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``type``, or ``eigvals`` that are no range (a TypeError and a ValueError).

    Source: G. H. Golub and C. F. Van Loan, Matrix Computations, section 8.7: by the Cholesky factor of ``b``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> w, v = linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> print(w)
    [1. 2.]
    >>> print(linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]), 4 * jnp.eye(2), eigvals_only=True))
    [0.25 0.5 ]
    """
    turbo = flag("eigh", "turbo", turbo)
    eigvals_only = flag("eigh", "eigvals_only", eigvals_only)
    lower = flag("eigh", "lower", lower)
    if not is_listed(type, (1, 2, 3)):
        raise ArgumentError(f"eigh: type must be 1, 2 or 3, got {type!r}")
    if b is None:
        w, v = _eigh(a, lower, eigvals_only)
    else:
        a, b = inexact_operands("eigh", a, b)
        numpy_linalg.require_square("eigh", a)
        if a.shape != b.shape:
            raise ShapeError(f"eigh: a and b must be matrices of the same shape, got {a.shape} and {b.shape}")
        a = hermitian_of_lower(a if lower else adjoint(a))
        factor = cholesky(b if lower else adjoint(b), lower=True)
        back = {"transpose_a": True, "conjugate_a": True}
        if type == 1:
            inner = triangular_solve(factor, a, left_side=True, lower=True)
            inner = triangular_solve(factor, inner, left_side=False, lower=True, **back)
        else:
            inner = product(adjoint(factor), product(a, factor))
        w, v = _eigh(inner, True, eigvals_only)
        if v is not None:
            v = product(factor, v) if type == 3 else triangular_solve(factor, v, left_side=True, lower=True, **back)
    if eigvals is not None:
        first, last = (known_int("eigh", "eigvals", i) for i in sequence_of("eigh", "eigvals", eigvals, 2))
        if not 0 <= first <= last < w.shape[-1]:
            raise ArgumentError(
                f"eigh: eigvals must be (first, last) with 0 <= first <= last < {w.shape[-1]}, got {eigvals!r}"
            )
        w, v = w[..., first : last + 1], None if v is None else v[..., first : last + 1]
    return w if eigvals_only else (w, v)


def _eigh(a: Any, lower: bool, values_only: bool) -> tuple[Any, Any]:
    triangle = "L" if lower else "U"
    if values_only:
        return decompositions.eigvalsh(a, triangle, symmetrize_input=False), None
    w, v = decompositions.eigh(a, triangle, symmetrize_input=False)
    return w, v


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: tuple[ArrayLike, ArrayLike] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: tuple[ArrayLike, ArrayLike] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[ArrayLike, ArrayLike] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Any: ...
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[ArrayLike, ArrayLike] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Any:
    """The eigenvalues and eigenvectors of Hermitian tridiagonal matrices.

    Args:
      d: the diagonals, an array (..., n), of which imaginary parts are ignored; integers become floats.
      e: the elements above the diagonals (..., n - 1), of the dtype of ``d``; those below are their conjugates.
      eigvals_only: whether to return the eigenvalues alone.
      select: "a" for all, or "i" for those from ``select_range[0]`` to ``select_range[1]`` in ascending order.
      select_range: the first and the last index, where ``select`` is "i".
      tol, key: without effect; all eigenvalues are found to the precision of the dtype, by LAPACK.

    Returns:
      The eigenvalues (..., k), ascending, and the eigenvectors as columns (..., n, k). The matrix is formed.

    Raises:
      ShapeError: the lengths do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits, or two dtypes (a TypeError).
      ArgumentError: an unknown ``select``, or no range (a TypeError and a ValueError).
      UnsupportedArgumentError: ``select="v"``, whose result would have a size that depends on values (a
        NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True))
    [1. 3.]
    """
    eigvals_only = flag("eigh_tridiagonal", "eigvals_only", eigvals_only)
    d, e = inexact_operand("eigh_tridiagonal", d), inexact_operand("eigh_tridiagonal", e)
    if d.dtype != e.dtype:
        raise DtypeError(
            "eigh_tridiagonal: d and e must have the same dtype, got "
            f"{dtypes.short_name(d.dtype)} and {dtypes.short_name(e.dtype)}"
        )
    if not d.shape or e.shape != (*d.shape[:-1], max(d.shape[-1] - 1, 0)):
        raise ShapeError(
            "eigh_tridiagonal: e must have one element less than d in its last axis, got shapes "
            f"{e.shape} and {d.shape}"
        )
    n = d.shape[-1]
    first, last = _index_range(select, select_range, n)
    a = d[..., None] * creation.eye(n, dtype=d.dtype)
    if n > 1:
        padded = [(0, 0, 0)] * (len(d.shape) - 1)
        below = slicing.pad(ops.conj(e), 0, [*padded, (0, 1, 0)])[..., None, :] * creation.eye(n, k=-1, dtype=d.dtype)
        a = a + below
    w, *v = bind(eigh_p, a, vectors=not eigvals_only)
    if (first, last) != (0, n):
        w, v = w[..., first:last], [x[..., first:last] for x in v]
    return w if eigvals_only else (w, v[0])


def _index_range(select: Any, select_range: Any, n: int) -> tuple[int, int]:
    """Return the indices of the selected eigenvalues as a range: the first index, and the index after the last.

    ``select`` and ``select_range`` are arguments of ``eigh_tridiagonal``, and ``n`` is the number of eigenvalues.
    """
    if select == "a":
        return 0, n
    if select == "v":
        raise UnsupportedArgumentError(
            "eigh_tridiagonal: with select='v' the number of results would depend on values; compute all "
            "eigenvalues, or select indices with select='i'"
        )
    if not is_listed(select, ("i",)):
        raise ArgumentError(f"eigh_tridiagonal: select must be 'a' or 'i', got {select!r}")
    if not isinstance(select_range, (tuple, list)) or len(select_range) != 2:
        raise ArgumentError(f"eigh_tridiagonal: select='i' needs select_range, two indices, got {select_range!r}")
    first, last = (known_int("eigh_tridiagonal", "select_range", i) for i in select_range)
    if not 0 <= first <= last < n:
        raise ArgumentError(
            f"eigh_tridiagonal: select_range must be two indices with 0 <= first <= last < {n}, got {select_range!r}"
        )
    return first, last + 1


# Singular values, QR -----------------------------------------------------------------------------------------------


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition of matrices; see :func:`pullback.numpy.linalg.svd`.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      full_matrices: whether U and V are square; otherwise there are k = min(m, n) singular vectors of each.
      compute_uv: whether to return the singular vectors.
      overwrite_a, check_finite: without effect.
      lapack_driver: "gesdd" or "gesvd", the method: divide and conquer, or by QR iterations.

    Returns:
      U, the descending singular values s, and V*, where U diag(s) V* is the matrix; or the singular values alone.

    Raises:
      ShapeError: ``a`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``lapack_driver`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False))
    [4. 3.]
    """
    full_matrices = flag("svd", "full_matrices", full_matrices)
    compute_uv = flag("svd", "compute_uv", compute_uv)
    if not is_listed(lapack_driver, ("gesdd", "gesvd")):
        raise ArgumentError(f"svd: lapack_driver must be 'gesdd' or 'gesvd', got {lapack_driver!r}")
    a = inexact_operand("scipy.linalg.svd", a)
    vectors = bool(compute_uv)
    full = bool(full_matrices) and vectors
    s, *factors = bind(svd_p, a, full_matrices=full, vectors=vectors, by_qr=lapack_driver == "gesvd")
    return (factors[0], s, factors[1]) if factors else s


@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    *,
    mode: Literal["raw"],
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[tuple[Array, Array], Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: Literal["full", "economic", "r"] = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]: ...
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The QR decomposition of matrices.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      overwrite_a, lwork, check_finite: without effect.
      mode: "full" for square Q; "economic" for k = min(m, n) columns of Q and rows of R; "r" for R alone, as for
        "full"; "raw" for the results of LAPACK's ``geqrf``.
      pivoting: whether to swap columns, so that the diagonal of R descends in size.

    Returns:
      ``(Q, R)``; ``(R,)``; or for "raw" ``((H, tau), R)``, where H is the transpose of LAPACK's matrix of reflectors.
      With ``pivoting`` the order of the columns follows, int32 (..., n): ``a[:, order] = Q R``.

    Raises:
      ShapeError: ``a`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``mode`` (a TypeError and a ValueError).
      UnsupportedArgumentError: "raw" with ``pivoting`` (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> q, r = linalg.qr(jnp.array([[0.0, 2.0], [-1.0, 3.0]]))
    >>> print(r)
    [[-1.  3.]
     [ 0.  2.]]
    """
    pivoting = flag("qr", "pivoting", pivoting)
    if not is_listed(mode, ("full", "economic", "r", "raw")):
        raise ArgumentError(f"qr: mode must be 'full', 'economic', 'r' or 'raw', got {mode!r}")
    a = inexact_operand("scipy.linalg.qr", a)
    if mode == "raw":
        if pivoting:
            raise UnsupportedArgumentError("qr: mode='raw' does not support pivoting; leave one of them out")
        factors, tau = bind(geqrf_p, a)
        return (matrix_transpose(factors), tau), diagonals.triu(factors[..., : min(a.shape[-2:]), :])
    q, r, *order = bind(qr_p, a, full_matrices=mode != "economic", pivoting=bool(pivoting))
    return (r, *order) if mode == "r" else (q, r, *order)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The product of a matrix and Q of a QR decomposition, and R; at most k columns of Q are formed.

    Args:
      a: an array (..., m, n) of numbers; integers become floats. k is min(m, n).
      c: an array (..., p, m) where ``mode`` is "right", (..., k, p) where it is "left"; or a vector, (m) or (k).
      mode: "right" for c Q, "left" for Q c.
      pivoting: as for :func:`qr`.
      conjugate: whether to multiply by the conjugate of Q.
      overwrite_a, overwrite_c: without effect.

    Returns:
      The product (..., p, k) or (..., m, p), or a vector; R (..., k, n); and with ``pivoting`` the order of columns.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``mode`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> a = jnp.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    >>> b, r = linalg.qr_multiply(a, jnp.array([1.0, 2.0, 3.0]))
    >>> print(b.shape, r.shape)
    (2,) (2, 2)
    """
    conjugate = flag("qr_multiply", "conjugate", conjugate)
    pivoting = flag("qr_multiply", "pivoting", pivoting)
    if not is_listed(mode, ("right", "left")):
        raise ArgumentError(f"qr_multiply: mode must be 'right' or 'left', got {mode!r}")
    a, c = inexact_operands("qr_multiply", a, c)
    q, r, *order = qr(a, mode="economic", pivoting=pivoting)
    q = ops.conj(q) if conjugate else q
    vector = len(c.shape) == 1
    if not c.shape:
        raise ShapeError("qr_multiply: c must be a vector or a matrix, got shape ()")
    c = (c[:, None] if mode == "left" else c[None, :]) if vector else c
    expected = q.shape[-1] if mode == "left" else q.shape[-2]
    size = c.shape[-2] if mode == "left" else c.shape[-1]
    if size != expected:
        what = f"{expected} rows, as Q has columns" if mode == "left" else f"{expected} columns, as a has rows"
        raise ShapeError(f"qr_multiply: c must have {what}, for a of shape {a.shape}; got shape {c.shape}")
    out = numpy_linalg.matmul(q, c) if mode == "left" else numpy_linalg.matmul(c, q)
    if vector:
        out = out[..., 0] if mode == "left" else out[..., 0, :]
    return (out, r, *order)


# Polar decomposition -----------------------------------------------------------------------------------------------


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition of matrices, a unitary one times a Hermitian one that is not negative.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      side: "right" for a = u p, "left" for a = p u.
      method: "qdwh" or "svd"; both take singular values.
      eps, max_iterations: without effect.

    Returns:
      u (..., m, n), with orthonormal columns, or rows if there are fewer; and p (..., n, n), or (..., m, m) for "left".
      The derivative of u divides by sums of singular values, so that it is infinite or NaN where two are zero.

    Raises:
      ShapeError: ``a`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``side`` or ``method`` (a TypeError and a ValueError).

    Source: N. J. Higham 2008, "Functions of Matrices", chapter 8.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> u, p = linalg.polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> print(abs(u).round(4), p.round(4))
    [[0. 1.]
     [1. 0.]] [[3. 0.]
     [0. 2.]]
    """
    if not is_listed(side, ("right", "left")):
        raise ArgumentError(f"polar: side must be 'right' or 'left', got {side!r}")
    if not is_listed(method, ("qdwh", "svd")):
        raise ArgumentError(f"polar: method must be 'qdwh' or 'svd', got {method!r}")
    a = inexact_operand("polar", a)
    wide = len(a.shape) > 1 and a.shape[-2] < a.shape[-1]
    u = adjoint(bind(polar_p, adjoint(a))) if wide else bind(polar_p, a)
    p = product(adjoint(u), a) if side == "right" else product(a, adjoint(u))
    return u, ops.mul(ops.add(p, adjoint(p)), 0.5)


# Schur's and Hessenberg's forms ------------------------------------------------------------------------------------


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Schur's decomposition of square matrices.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      output: "real" or "complex": whether real matrices have real factors; complex matrices have complex ones.

    Returns:
      T, upper triangular, or in "real" with blocks of two on the diagonal for complex eigenvalues; and unitary Z, for
      which Z T Z* is the matrix. NaN where a matrix is not finite. They have no derivative.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``output`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> t, z = linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> print(t)
    [[1. 2.]
     [0. 3.]]
    """
    if not is_listed(output, ("real", "complex")):
        raise ArgumentError(f"schur: output must be 'real' or 'complex', got {output!r}")
    a = inexact_operand("scipy.linalg.schur", a)
    if output == "complex":
        a = ops.convert_element_type(a, dtypes.to_complex(a.dtype))
    t, z = bind(schur_p, a, vectors=True)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form from the real one, by Givens' rotations.

    Args:
      T: matrices (..., n, n) with blocks of at most two on their diagonals, as for :func:`schur`.
      Z: the unitary matrices (..., n, n) that belong to them; leading axes broadcast.
      check_finite: without effect.

    Returns:
      Two arrays (..., n, n) of complex numbers: T, which is upper triangular, and Z.

    Raises:
      ShapeError: not two square matrices of one shape (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> t, z = linalg.rsf2csf(*linalg.schur(jnp.array([[0.0, -1.0], [1.0, 0.0]])))
    >>> print(abs(t).round(4))
    [[1. 0.]
     [0. 1.]]
    """
    t, z = inexact_operands("rsf2csf", T, Z)
    if min(len(t.shape), len(z.shape)) < 2 or t.shape[-2] != t.shape[-1] or t.shape[-2:] != z.shape[-2:]:
        raise ShapeError(f"rsf2csf: T and Z must be square matrices of one shape, got {t.shape} and {z.shape}")
    shape = broadcast_shape("rsf2csf", [t.shape, z.shape])
    t, z = shapes.broadcast_to(t, shape), shapes.broadcast_to(z, shape)
    check_decomposable("rsf2csf", t.aval)
    dtype = dtypes.to_complex(t.dtype)
    t, z = ops.convert_element_type(t, dtype), ops.convert_element_type(z, dtype)
    n = t.shape[-1]
    if n < 2:
        return t, z
    function: Any = lambda t, z: fori_loop(0, n - 1, lambda i, tz: _rotated(n - 1 - i, *tz), (t, z))
    if len(shape) == 2:
        return function(t, z)  # type: ignore[no-any-return]
    factors = vmap(function)(*(shapes.reshape(x, (math.prod(shape[:-2]), *shape[-2:])) for x in (t, z)))
    return tuple(shapes.reshape(x, shape) for x in factors)  # type: ignore[return-value]


def _rotated(m: Any, t: Any, z: Any) -> tuple[Any, Any]:
    """Return the Schur factors ``t`` and ``z`` after a rotation that makes the element ``t[m, m - 1]`` zero."""
    n = t.shape[0]
    block = indexing.dynamic_slice(t, (m - 1, m - 1), (2, 2))
    a, b, c, d = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
    half = (a - d) / 2
    shift = half + ops.sqrt_p.bind(half * half + b * c)  # an eigenvalue of the block, less its last element
    size = ops.sqrt_p.bind(ops.abs(shift) ** 2 + ops.abs(c) ** 2)
    # A zero element needs no rotation, whose phase would reach the next block.
    needed = ops.abs(c) > float(np.finfo(t.dtype).eps) * (ops.abs(a) + ops.abs(d))
    size = ops.where(needed, size, 1).astype(t.dtype)
    cosine, sine = ops.where(needed, shift / size, 1), ops.where(needed, c / size, 0)
    turn = creation.array([[ops.conj(cosine), ops.conj(sine)], [-sine, cosine]])
    rows = indexing.dynamic_slice(t, (m - 1, 0), (2, n))
    t = indexing.dynamic_update_slice(t, product(turn, rows), (m - 1, 0))
    back = adjoint(turn)
    columns = product(indexing.dynamic_slice(t, (0, m - 1), (n, 2)), back)
    t = indexing.dynamic_update_slice(t, columns, (0, m - 1))
    z = indexing.dynamic_update_slice(z, product(indexing.dynamic_slice(z, (0, m - 1), (n, 2)), back), (0, m - 1))
    corner = ops.mul(indexing.dynamic_slice(t, (m, m - 1), (1, 1)), 0)
    return indexing.dynamic_update_slice(t, corner, (m, m - 1)), z


@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[False] = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any: ...
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Hessenberg's form of square matrices, which is zero below the first subdiagonal.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      calc_q: whether to return Q too.
      overwrite_a, check_finite: without effect.

    Returns:
      H, or with ``calc_q`` H and unitary Q, for which Q H Q* is the matrix. They have no derivative.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.hessenberg(jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.0, 8.0, 9.0]])))
    [[1. 2. 3.]
     [4. 5. 6.]
     [0. 8. 9.]]
    """
    calc_q = flag("hessenberg", "calc_q", calc_q)
    a = inexact_operand("scipy.linalg.hessenberg", a)
    factors, taus = bind(hessenberg_p, a)
    h = diagonals.triu(factors, -1)
    if not calc_q:
        return h
    n = a.shape[-1]
    if n < 2:
        return h, creation.eye(n, dtype=a.dtype) + ops.mul(a, 0)
    inner = bind(householder_product_p, factors[..., 1:, :-1], taus)
    padding = [(0, 0, 0)] * (len(a.shape) - 2)
    corner = creation.zeros((n, n), a.dtype).at[0, 0].set(1)
    return h, slicing.pad(inner, 0, [*padding, (1, 0, 0), (1, 0, 0)]) + corner
