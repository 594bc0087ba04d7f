"""Decompositions, eigenvalues, singular values and triangular systems, for ``pullback.lax.linalg``."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, overload

from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.lax.arguments import ints
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import pad, slice_in_dim
from pullback.primitives.checks import INEXACT, check_dtype, known_int
from pullback.primitives.linalg import lapack as linalg
from pullback.primitives.linalg.decompositions import upper_left
from pullback.primitives.linalg.eigen import eig_p, eigh_p
from pullback.primitives.linalg.householder import householder_product_p, ormqr_p
from pullback.primitives.linalg.lu import lu_p, lu_pivots_to_permutation_p
from pullback.primitives.linalg.qr import qr_p
from pullback.primitives.linalg.schur import hessenberg_p, schur_p, tridiagonal_p
from pullback.primitives.linalg.svd import polar_p, svd_p
from pullback.primitives.linalg.tridiagonal import cholesky_update_p, tridiagonal_solve_p
from pullback.primitives.operands import array_operand, bind
from pullback.primitives.reductions import reduce_and
from pullback.transforms.autodiff.tracing import eval_shape


class EigImplementation(enum.Enum):
    """Libraries with a routine for :func:`eig`; CPUs have ``LAPACK``.

    >>> from pullback import lax
    >>> lax.linalg.EigImplementation.LAPACK.value
    'lapack'
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Methods of :func:`eigh`; CPUs have LAPACK's, ``QR``.

    >>> from pullback import lax
    >>> lax.linalg.EighImplementation.QR.value
    'qr'
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Methods of :func:`svd`; CPUs have ``DIVIDE_AND_CONQUER``, the default, and ``QR``.

    >>> from pullback import lax
    >>> lax.linalg.SvdAlgorithm.QR.value
    'QR'
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _choice(name: str, what: str, kind: type[enum.Enum], value: Any, allowed: tuple[enum.Enum, ...]) -> Any:
    """Convert an argument to a member of the enumeration ``kind``; None becomes the first of ``allowed``.

    Args:
      name: the name of the function, for errors.
      what: the name of the argument, for errors.
      kind: the enumeration.
      value: the argument: a member, its value, or None.
      allowed: the members that the function supports.
    """
    if value is None:
        return allowed[0]
    try:
        member = kind(value)
    except ValueError:
        members = ", ".join(str(m) for m in kind)
        raise ArgumentError(f"linalg.{name}: {what} must be one of {members}, got {value!r}") from None
    if member not in allowed:
        names = " or ".join(str(m) for m in allowed)
        raise UnsupportedArgumentError(
            f"linalg.{name}: {what} {member} is not available on CPUs; leave it out, or pass {names}"
        )
    return member


def _range(name: str, subset: Any, size: int) -> tuple[int, int]:
    """Convert ``subset``, the argument ``subset_by_index`` of ``name``, to a pair of ints (first, end).

    None becomes the whole range. Raise unless the pair is a range of indices of ``size`` values.
    """
    if subset is None:
        return 0, size
    try:
        first, end = ints(subset)
    except ValueError:
        raise ArgumentError(f"linalg.{name}: subset_by_index must be two integers, got {subset!r}") from None
    if not 0 <= first <= end <= size:
        raise ArgumentError(
            f"linalg.{name}: subset_by_index must be a range of the {size} values, (first, end) with "
            f"0 <= first <= end <= {size}; got {subset!r}"
        )
    return first, end


def _columns(x: Any, selected: tuple[int, int]) -> Any:
    return x if selected == (0, x.shape[-1]) else slice_in_dim(x, *selected, len(x.shape) - 1)


def _rows(x: Any, selected: tuple[int, int]) -> Any:
    return x if selected == (0, x.shape[-2]) else slice_in_dim(x, *selected, len(x.shape) - 2)


# Eigenvalues -------------------------------------------------------------------------------------------------------


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """The eigenvectors and eigenvalues of Hermitian matrices.

    Args:
      x: an array (..., n, n) of float32, float64, complex64 or complex128.
      lower: whether the lower triangles are read, where ``symmetrize_input`` is False; otherwise the upper ones.
      symmetrize_input: whether to decompose the means of the matrices and their adjoints.
      sort_eigenvalues: accepted; the eigenvalues ascend in any case.
      subset_by_index: (first, end): which of the ascending eigenvalues to return; all by default.
      implementation: the method; CPUs have ``QR``.

    Returns:
      The eigenvectors, as columns, (..., n, k), and the eigenvalues, real and ascending, (..., k). They are NaN where a
      matrix is not finite.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).
      ArgumentError: ``subset_by_index`` is not a range of the eigenvalues (a TypeError and a ValueError).
      UnsupportedArgumentError: an implementation that CPUs lack (a NotImplementedError).

    The derivative is after Giles (2008). Where eigenvalues are equal, the eigenvectors have none; derivatives of
    quantities that do not depend on their choice are then right, or NaN, as ``docs/decompositions.md`` says.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> _, w = lax.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> print(w.round(4))
    [1. 3.]
    """
    sort_eigenvalues = flag("lax.linalg.eigh", "sort_eigenvalues", sort_eigenvalues)
    symmetrize_input = flag("lax.linalg.eigh", "symmetrize_input", symmetrize_input)
    lower = flag("lax.linalg.eigh", "lower", lower)
    _choice("eigh", "implementation", EighImplementation, implementation, (EighImplementation.QR,))
    x = array_operand("linalg.eigh", x)
    eigh_p.abstract_eval_rule(linalg.typeof(x), vectors=True)  # type: ignore[misc]
    selected = _range("eigh", subset_by_index, x.shape[-1])
    w, v = eigh_p.bind(hermitian(x, lower, symmetrize_input), vectors=True)
    return _columns(v, selected), _columns(w, selected)


def hermitian(x: Any, lower: bool, symmetrize: bool) -> Any:
    """Return the Hermitian matrices to decompose, whose lower triangles are read."""
    if symmetrize:
        return linalg.hermitian_part(x)
    return x if lower else linalg.adjoint(x)


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """The eigenvalues and eigenvectors of square matrices.

    Args:
      x: an array (..., n, n) of float32, float64, complex64 or complex128.
      compute_left_eigenvectors: whether to return left eigenvectors u, for which u* A = w u*.
      compute_right_eigenvectors: whether to return right eigenvectors v, for which A v = w v.
      enable_eigvec_derivs: accepted; eigenvectors have derivatives in any case.
      implementation: the library; CPUs have ``LAPACK``.
      use_magma: accepted; it is for GPUs.

    Returns:
      A list: the eigenvalues (..., n), in any order, and the left and the right eigenvectors (..., n, n), as
      columns of
      length one whose largest element is real. All are complex. They are NaN where a matrix is not finite.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).
      UnsupportedArgumentError: an implementation that CPUs lack (a NotImplementedError).

    The derivative is after Giles (2008) and Boeddeker et al. (2017); for a matrix without n independent eigenvectors it
    does not exist, and the result is not finite.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> w, _, _ = lax.linalg.eig(jnp.array([[1.0, 5.0], [0.0, 2.0]]))
    >>> print(w)
    [1.+0.j 2.+0.j]
    """
    enable_eigvec_derivs = flag("lax.linalg.eig", "enable_eigvec_derivs", enable_eigvec_derivs)
    _choice("eig", "implementation", EigImplementation, implementation, (EigImplementation.LAPACK,))
    left = flag("lax.linalg.eig", "compute_left_eigenvectors", compute_left_eigenvectors)
    right = flag("lax.linalg.eig", "compute_right_eigenvectors", compute_right_eigenvectors)
    out: list[Any] = bind(eig_p, array_operand("linalg.eig", x), left=left, right=right)
    return out


# Singular values ---------------------------------------------------------------------------------------------------


@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any: ...
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """The singular value decomposition of matrices.

    Args:
      x: an array (..., m, n) of float32, float64, complex64 or complex128.
      full_matrices: whether U and V are square; otherwise there are k = min(m, n) singular vectors of each.
      compute_uv: whether to return the singular vectors.
      subset_by_index: (first, end): which of the descending singular values to return; all by default. Others need
        ``full_matrices=False`` if singular vectors are returned.
      algorithm: ``DIVIDE_AND_CONQUER``, the default, or ``QR``, which is slower.

    Returns:
      U (..., m, k), whose columns are orthonormal, the singular values (..., k), descending, and the adjoint of V,
      (..., k, n), with product U diag(s) V*; or the singular values alone. They are NaN where a matrix
      is not
      finite.

    Raises:
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).
      ArgumentError: ``subset_by_index`` is not a range of the values, or is partial with ``full_matrices`` (a TypeError
        and a ValueError).
      UnsupportedArgumentError: an algorithm that CPUs lack (a NotImplementedError).

    The derivative is after Townsend (2016) and Wan and Zhang (2019). Where singular values are equal, the notes of
    :func:`eigh` hold. At a zero singular value, only even functions of it have derivatives.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False))
    [4. 3.]
    """
    kind = SvdAlgorithm
    method = _choice("svd", "algorithm", kind, algorithm, (kind.DEFAULT, kind.DIVIDE_AND_CONQUER, kind.QR))
    x = array_operand("linalg.svd", x)
    vectors = flag("lax.linalg.svd", "compute_uv", compute_uv)
    full = flag("lax.linalg.svd", "full_matrices", full_matrices) and vectors
    params = {"full_matrices": full, "vectors": vectors, "by_qr": method is kind.QR}
    svd_p.abstract_eval_rule(linalg.typeof(x), **params)  # type: ignore[misc]
    size = min(x.shape[-2:])
    selected = _range("svd", subset_by_index, size)
    if full and selected != (0, size):
        raise ArgumentError(
            f"linalg.svd: subset_by_index={subset_by_index!r} selects some singular vectors, but full_matrices=True "
            f"returns all of them; pass full_matrices=False"
        )
    s, *factors = svd_p.bind(x, **params)
    if not vectors:
        return _columns(s, selected)
    u, vh = factors
    return (u, s, vh) if full else (_columns(u, selected), _columns(s, selected), _rows(vh, selected))


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition of a matrix.

    Args:
      x: a matrix (m, n), with n at most m, of float32, float64, complex64 or complex128.
      is_hermitian: accepted, without effect.
      max_iterations, eps: accepted; there is no iteration.
      dynamic_shape: the numbers of rows and columns of ``x`` that count; beyond them the factors are zero.

    Returns:
      U (m, n), whose columns are orthonormal; the Hermitian H (n, n), with no negative eigenvalue, for which U H is the
      matrix; the number of iterations, which is zero, for both are computed by the singular value decomposition; and
      whether they are finite.

    Raises:
      ShapeError: not a matrix, or one with more columns than rows (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).

    U and H have derivatives of every order at matrices of full rank, also where singular values are equal. Where the
    rank is less, U has none.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> u, h, _, _ = lax.linalg.qdwh(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> print(u, h)
    [[0. 1.]
     [1. 0.]] [[1. 0.]
     [0. 2.]]
    """
    is_hermitian = flag("lax.linalg.qdwh", "is_hermitian", is_hermitian)
    x = array_operand("linalg.qdwh", x)
    if len(x.shape) != 2:
        raise ShapeError(f"linalg.qdwh takes a matrix, got shape {x.shape}")
    m, n = x.shape
    rows, columns = (m, n) if dynamic_shape is None else (*ints(dynamic_shape), -1, -1)[:2]
    if not (0 <= rows <= m and 0 <= columns <= n):
        raise ArgumentError(f"linalg.qdwh: dynamic_shape must be at most the shape {x.shape}, got {dynamic_shape!r}")
    inner = upper_left(x, rows, columns)
    u = bind(polar_p, inner)
    h = linalg.hermitian_part(linalg.product(linalg.adjoint(u), inner))
    finite = reduce_and(ops.is_finite_p.bind(ops.abs(h)), (0, 1))
    u = pad(u, 0, [(0, m - rows, 0), (0, n - columns, 0)])
    h = pad(h, 0, [(0, n - columns, 0)] * 2)
    return u, h, shapes.full((), 0, "int32"), finite


# QR ----------------------------------------------------------------------------------------------------------------


@overload
def qr(
    x: ArrayLike, *, pivoting: Literal[False] = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array]: ...
@overload
def qr(
    x: ArrayLike, *, pivoting: Literal[True], full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array, Array]: ...
@overload
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any: ...
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any:
    """The QR decomposition of matrices.

    Args:
      x: an array (..., m, n) of float32, float64, complex64 or complex128.
      pivoting: whether to put the columns in an order in which the diagonal of R does not increase.
      full_matrices: whether Q is square; otherwise it has k = min(m, n) columns.
      use_magma: accepted; it is for GPUs.

    Returns:
      Q (..., m, k), whose columns are orthonormal, and upper triangular R (..., k, n); with ``pivoting`` also the
      order, int32 (..., n), for which Q R is ``x[..., order]``.

    Raises:
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).

    The derivative is after Walter and Lehmann (2010) and Seeger et al. (2017); there is none if the first k columns are
    dependent. Columns of a square Q that ``x`` does not determine are not rotated among themselves.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> q, r = lax.linalg.qr(jnp.array([[3.0, 5.0], [4.0, 5.0]]))
    >>> print(abs(r).round(4))
    [[5. 7.]
     [0. 1.]]
    """
    pivoting = flag("lax.linalg.qr", "pivoting", pivoting)
    full_matrices = flag("lax.linalg.qr", "full_matrices", full_matrices)
    x = array_operand("linalg.qr", x)
    return tuple(bind(qr_p, x, full_matrices=full_matrices, pivoting=pivoting))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of products of Householder's reflections.

    Args:
      a: an array (..., m, n), with n at most m, of float32, float64, complex64 or complex128. Column i has below the
        diagonal the vector of reflection i, 1 - tau v v*, whose element i is one and not read.
      taus: the numbers tau (..., k), k at most n.

    Returns:
      The first n columns of the product of the k reflections, of the shape of ``a``.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: another dtype, or two (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.linalg.householder_product(jnp.array([[0.0], [1.0]]), jnp.array([1.0])))
    [[ 0.]
     [-1.]]
    """
    name = "linalg.householder_product"
    return bind(householder_product_p, array_operand(name, a), array_operand(name, taus))


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Matrices times products of Householder's reflections, which are not formed.

    Args:
      a: an array (..., r, n) that holds reflections as in :func:`householder_product`.
      taus: their factors (..., k), k at most min(r, n).
      c: the matrices, (..., r, j), or (..., j, r) where they are to the left.
      left: whether the product Q of the reflections is to the left of the matrices.
      transpose: whether to multiply by the adjoint of Q.

    Returns:
      An array of the shape and dtype of ``c``.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: another dtype, or two (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.linalg.ormqr(jnp.array([[0.0], [0.0]]), jnp.array([2.0]), jnp.array([[3.0], [4.0]])))
    [[-3.]
     [ 4.]]
    """
    transpose = flag("lax.linalg.ormqr", "transpose", transpose)
    a, taus, c = (array_operand("linalg.ormqr", x) for x in (a, taus, c))
    if flag("lax.linalg.ormqr", "left", left):
        return bind(ormqr_p, a, taus, c, transpose=transpose)
    # C Q is the adjoint of Q* C*.
    turned = linalg.adjoint(c) if len(c.shape) > 1 else c
    return linalg.adjoint(bind(ormqr_p, a, taus, turned, transpose=not transpose))


# Other forms -------------------------------------------------------------------------------------------------------


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Array, ...]:
    """Schur's decomposition of square matrices.

    Args:
      x: an array (..., n, n) of float32, float64, complex64 or complex128.
      compute_schur_vectors: whether to return Z.
      sort_eig_vals, select_callable: not supported: they would sort the eigenvalues by a function.

    Returns:
      T, of the shape of ``x``: upper triangular; for real matrices with complex eigenvalues with blocks of two on the
      diagonal. And unitary Z, for which Z T Z* is the matrix. They are NaN where a matrix is not finite. They have no
      derivative.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).
      UnsupportedArgumentError: ``sort_eig_vals`` is true (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> t, _ = lax.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> print(t)
    [[1. 2.]
     [0. 3.]]
    """
    if flag("lax.linalg.schur", "sort_eig_vals", sort_eig_vals) or select_callable is not None:
        raise UnsupportedArgumentError(
            "linalg.schur: sorting eigenvalues with a Python function is not supported, because compiled code "
            "cannot call it; leave out sort_eig_vals and select_callable"
        )
    vectors = flag("lax.linalg.schur", "compute_schur_vectors", compute_schur_vectors)
    return tuple(bind(schur_p, array_operand("linalg.schur", x), vectors=vectors))


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Square matrices reduced to Hessenberg's form, which is zero below the first subdiagonal.

    Args:
      a: an array (..., n, n) of float32, float64, complex64 or complex128.

    Returns:
      An array of the shape of ``a``: Hessenberg's form, and below it the vectors of Householder's reflections; and
      their factors (..., n - 1). They are NaN where a matrix is not finite. They have no derivative.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> h, taus = lax.linalg.hessenberg(jnp.eye(2))
    >>> print(h, taus)
    [[1. 0.]
     [0. 1.]] [0.]
    """
    h, taus = bind(hessenberg_p, array_operand("linalg.hessenberg", a))
    return h, taus


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Hermitian matrices reduced to real tridiagonal form.

    Args:
      a: an array (..., n, n) of float32, float64, complex64 or complex128.
      lower: whether the lower triangles are read; otherwise the upper ones.

    Returns:
      An array of the shape of ``a`` with the vectors of Householder's reflections in the triangle that was read; the
      diagonal (..., n) and the off-diagonal (..., n - 1), which are real; and the factors of the reflections. They are
      NaN where a matrix is not finite. They have no derivative.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: another dtype (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> _, d, e, _ = lax.linalg.tridiagonal(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> print(d, e)
    [2. 3.] [1.]
    """
    lower = flag("lax.linalg.tridiagonal", "lower", lower)
    reflections, d, e, taus = bind(tridiagonal_p, array_operand("linalg.tridiagonal", a), lower=lower)
    return reflections, d, e, taus


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """The solutions X of A X = B, for tridiagonal matrices A.

    Args:
      dl: the diagonal below the main diagonal of A, (..., n); its first element is not read.
      d: the diagonal of A, (..., n).
      du: the diagonal above, (..., n); its last element is not read.
      b: the matrices B, (..., n, k).
      perturb_singular: whether to move pivots that are too small by a rounding error of the largest, so that the result
        is finite where A is singular, as for eigenvectors by inverse iteration.

    Returns:
      X, of the shape and dtype of ``b``; it is NaN where A is singular, unless ``perturb_singular``.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: another dtype than float32, float64, complex64 or complex128, or several (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> d = jnp.array([2.0, 2.0])
    >>> print(lax.linalg.tridiagonal_solve(jnp.array([0.0, 1.0]), d, jnp.array([1.0, 0.0]), jnp.array([[3.0], [3.0]])))
    [[1.]
     [1.]]
    """
    operands = [array_operand("linalg.tridiagonal_solve", x) for x in (dl, d, du, b)]
    if flag("lax.linalg.tridiagonal_solve", "perturb_singular", perturb_singular):
        from pullback.lax import perturbed_tridiagonal

        eval_shape(lambda *xs: bind(tridiagonal_solve_p, *xs), *operands)  # checks the operands
        return perturbed_tridiagonal.solve(*operands) if operands[3].aval.size else operands[3]
    return bind(tridiagonal_solve_p, *operands)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The Cholesky factors of matrices to which the product of a vector with itself was added.

    Args:
      r_matrix: upper triangular R, an array (..., n, n) of float32, float64, complex64 or complex128.
      w_vector: vectors w (..., n) of the same dtype.

    Returns:
      The upper triangular matrices, with a diagonal that is not negative, whose adjoint times themselves is
      R* R + w w*; by n rotations each (Golub and Van Loan, "Matrix computations", section 6.5.4).

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: another dtype, or two (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.linalg.cholesky_update(3 * jnp.eye(2), jnp.array([4.0, 0.0])))
    [[5. 0.]
     [0. 3.]]
    """
    name = "linalg.cholesky_update"
    return bind(cholesky_update_p, array_operand(name, r_matrix), array_operand(name, w_vector))


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """The products of matrices with their transposes, plus symmetric matrices: ``alpha * A @ A.T + beta * C``.

    Args:
      a_matrix: the matrices A, an array (..., n, k) of floats or complex numbers.
      c_matrix: the symmetric matrices C (..., n, n), of the same dtype.
      alpha, beta: numbers.
      symmetrize_output: whether to copy the lower triangle of the result to the upper one; it matters where C is not
        symmetric.

    Returns:
      An array of the shape and dtype of ``c_matrix``.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: two dtypes, or others (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.eye(2), alpha=2.0, beta=1.0))
    [[3. 4.]
     [4. 9.]]
    """
    symmetrize_output = flag("lax.linalg.symmetric_product", "symmetrize_output", symmetrize_output)
    a, c = (array_operand("linalg.symmetric_product", x) for x in (a_matrix, c_matrix))
    linalg.same_dtype("symmetric_product", [linalg.typeof(a), linalg.typeof(c)])
    check_dtype("lax.linalg.symmetric_product", INEXACT, a.dtype)
    if len(a.shape) < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ShapeError(
            "symmetric_product takes matrices A (..., n, k) and C (..., n, n) with the same leading axes, got shapes "
            f"{a.shape} and {c.shape}"
        )
    out = ops.add(ops.mul(linalg.product(a, a, -1, -1), alpha), ops.mul(c, beta))
    if not symmetrize_output:
        return out
    n = out.shape[-1]
    below = ops.ge_p.bind(linalg.rows_minus_columns(n, n), 0)
    return ops.where(below, out, linalg.matrix_transpose(out))


# Cholesky and LU decompositions, triangular systems ------------------------------------------------------------------


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

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]
    """
    symmetrize_input = flag("lax.linalg.cholesky", "symmetrize_input", symmetrize_input)
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

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> a = jnp.array([[2.0, 0.0], [1.0, 1.0]])
    >>> print(lax.linalg.triangular_solve(a, jnp.array([2.0, 3.0]), left_side=True, lower=True))
    [1. 2.]
    """
    flags = {
        "left_side": left_side, "lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a,
        "unit_diagonal": unit_diagonal,
    }  # fmt: skip
    return linalg.solve_triangular(
        array_operand("linalg.triangular_solve", a),
        array_operand("linalg.triangular_solve", b),
        **{what: flag("lax.linalg.triangular_solve", what, value) for what, value in flags.items()},
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

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> factors, pivots, permutation = lax.linalg.lu(jnp.array([[1.0, 3.0], [2.0, 4.0]]))
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

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2]), 3))
    [2 0 1]
    """
    name = "linalg.lu_pivots_to_permutation"
    size = known_int(f"lax.{name}", "permutation_size", permutation_size)
    return bind(lu_pivots_to_permutation_p, array_operand(name, pivots), permutation_size=size)
