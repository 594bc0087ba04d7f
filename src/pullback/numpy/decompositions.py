"""Eigenvalues, singular values and QR decompositions, and least squares by them, for ``pullback.numpy.linalg``."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy import reductions
from pullback.numpy.promotion import inexact_operand, inexact_operands, known_int, sequence_of
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import slice_in_dim
from pullback.primitives.arrays.sorting import argsort, take_along_axis
from pullback.primitives.linalg.decompositions import column_scaled
from pullback.primitives.linalg.eigen import eig_p, eigh_p
from pullback.primitives.linalg.householder import geqrf_p
from pullback.primitives.linalg.lapack import (
    adjoint,
    check_decomposable,
    hermitian_part,
    matrix_transpose,
    product,
    typeof,
)
from pullback.primitives.linalg.qr import qr_p
from pullback.primitives.linalg.svd import pinv_p, svd_p
from pullback.primitives.operands import bind

_INT32 = np.dtype(np.int32)

# Eigenvalues -------------------------------------------------------------------------------------------------------


class EigResult(NamedTuple):
    """The result of :func:`eig`.

    Attributes:
      eigenvalues: in no particular order.
      eigenvectors: as columns, in the order of the eigenvalues.

    >>> import pullback.numpy as jnp
    >>> result = jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
    >>> print(result.eigenvalues)
    [2.+0.j 3.+0.j]
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The result of :func:`eigh`.

    Attributes:
      eigenvalues: ascending.
      eigenvectors: as columns, in the order of the eigenvalues.

    >>> import pullback.numpy as jnp
    >>> result = jnp.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]]))
    >>> print(result.eigenvalues)
    [2. 3.]
    """

    eigenvalues: Array
    eigenvectors: Array


def hermitian(name: str, a: Any, triangle: Any, symmetrize: bool) -> Any:
    """Return the Hermitian matrices that ``eigh`` decomposes, which reads their lower triangles."""
    if triangle is None:
        triangle = "L"
    if not isinstance(triangle, str) or triangle.upper() not in ("L", "U"):
        raise ArgumentError(f'{name}: UPLO must be "L" or "U", got {triangle!r}')
    a = inexact_operand(name, a)
    eigh_p.abstract_eval_rule(typeof(a), vectors=True)  # type: ignore[misc]  # raises before the sum below can
    if symmetrize:
        return hermitian_part(a)
    return a if triangle.upper() == "L" else adjoint(a)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      UPLO: "L" or "U", which triangle to read, where ``symmetrize_input`` is False; by default the lower one.
      symmetrize_input: whether to decompose the means of the matrices and their adjoints.

    Returns:
      ``eigenvalues`` (..., n), real and ascending, and ``eigenvectors`` (..., n, n), as columns. They are NaN where a
      matrix is not finite.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: another ``UPLO`` (a TypeError and a ValueError).

    Where eigenvalues are equal, eigenvectors have no derivatives. Derivatives of quantities that do not depend on the
    choice of the eigenvectors are then right, or NaN, as ``docs/decompositions.md`` says. Where eigenvalues are nearly
    equal, digits are lost. For functions of matrices, ``(v * f(w)) @ v.T``, use :func:`matrix_function`, which has no
    such faults. The derivative is after Giles (2008).

    >>> import pullback.numpy as jnp
    >>> w, v = jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> print(w.round(4))
    [1. 3.]
    """
    symmetrize_input = flag("linalg.eigh", "symmetrize_input", symmetrize_input)
    return EighResult(*eigh_p.bind(hermitian("linalg.eigh", a, UPLO, symmetrize_input), vectors=True))


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices; see :func:`eigh`.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      UPLO: "L" or "U", which triangle to read, where ``symmetrize_input`` is False.
      symmetrize_input: whether to take the means of the matrices and their adjoints.

    Returns:
      The eigenvalues (..., n), real and ascending. Symmetric functions of equal eigenvalues have right first
      derivatives, and right second derivatives if the outer one is taken in forward mode; see
      ``docs/decompositions.md``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      ArgumentError: ``UPLO`` is another text, or ``symmetrize_input`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).round(4))
    [1. 3.]
    """
    symmetrize_input = flag("linalg.eigvalsh", "symmetrize_input", symmetrize_input)
    return eigh_p.bind(hermitian("linalg.eigvalsh", a, UPLO, symmetrize_input), vectors=False)[0]


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and right eigenvectors of square matrices.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.

    Returns:
      ``eigenvalues`` (..., n), in no order, and ``eigenvectors`` (..., n, n), as columns of length one whose largest
      element is real. Both are complex. They are NaN where a matrix is not finite.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    The derivative is after Giles (2008) and Boeddeker et al. (2017); for a matrix without n independent eigenvectors it
    does not exist, and the result is not finite.

    >>> import pullback.numpy as jnp
    >>> w, v = jnp.linalg.eig(jnp.array([[1.0, 5.0], [0.0, 2.0]]))
    >>> print(w)
    [1.+0.j 2.+0.j]
    """
    return EigResult(*bind(eig_p, inexact_operand("linalg.eig", a), left=False, right=True))


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, complex, in no order; see :func:`eig`.

    Args:
      a: an array of shape (..., n, n), of numbers; integers become floats.

    Returns:
      Complex numbers of shape (..., n).

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      ShapeError: the matrices are not square (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.eigvals(jnp.array([[1.0, 5.0], [0.0, 2.0]])))
    [1.+0.j 2.+0.j]
    """
    return bind(eig_p, inexact_operand("linalg.eigvals", a), left=False, right=False)[0]


# Singular values ---------------------------------------------------------------------------------------------------


class SVDResult(NamedTuple):
    """The result of :func:`svd`.

    Attributes:
      U: the left singular vectors, as columns.
      S: the singular values, descending.
      Vh: the right singular vectors, as conjugated rows.

    >>> import pullback.numpy as jnp
    >>> result = jnp.linalg.svd(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
    >>> print(result.S)
    [3. 2.]
    """

    U: Array
    S: Array
    Vh: Array


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any: ...  # fmt: skip
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """The singular value decomposition of matrices.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      full_matrices: whether U and V are square; otherwise there are k = min(m, n) singular vectors of each.
      compute_uv: whether to return the singular vectors.
      hermitian: a promise that the matrices are Hermitian, so that eigenvalues are computed instead.
      subset_by_index: (first, end): which of the descending singular values to return; all by default. Others need
        ``full_matrices=False`` if singular vectors are returned.

    Returns:
      ``U``, ``S`` and ``Vh``, with product U diag(S) Vh; or the singular values alone. They are NaN
      where a
      matrix is not finite.

    Raises:
      ShapeError: ``a`` has fewer than two axes, or is not square although ``hermitian`` is true (a TypeError and a
        ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: ``subset_by_index`` is not a range of the values, or is partial with ``full_matrices`` (a TypeError
        and a ValueError).

    The derivative is after Townsend (2016) and Wan and Zhang (2019). Where singular values are equal, the notes of
    :func:`eigh` hold. At a zero singular value, only even functions of it have derivatives.

    >>> import pullback.numpy as jnp
    >>> u, s, vh = jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> print(s)
    [4. 3.]
    """
    hermitian = flag("linalg.svd", "hermitian", hermitian)
    full_matrices = flag("linalg.svd", "full_matrices", full_matrices)
    compute_uv = flag("linalg.svd", "compute_uv", compute_uv)
    a = inexact_operand("linalg.svd", a)
    full = bool(full_matrices) and not hermitian
    size = min(a.shape[-2:], default=0)
    selected = _range(subset_by_index, size)
    if full_matrices and compute_uv and selected != (0, size):
        raise ArgumentError(
            f"linalg.svd: subset_by_index={subset_by_index!r} chooses some of the singular vectors, and "
            "full_matrices=True all of them; pass full_matrices=False"
        )
    if hermitian:
        u, s, vh = _svd_of_hermitian(a)
    else:
        s, *factors = bind(svd_p, a, full_matrices=full and bool(compute_uv), vectors=bool(compute_uv), by_qr=False)
        u, vh = factors or (None, None)
    if selected != (0, size):
        s = slice_in_dim(s, *selected, len(s.shape) - 1)
        if compute_uv:
            rank = len(u.shape)
            u, vh = slice_in_dim(u, *selected, rank - 1), slice_in_dim(vh, *selected, rank - 2)
    return SVDResult(u, s, vh) if compute_uv else s


def _range(requested: Any, size: int) -> tuple[int, int]:
    if requested is None:
        return 0, size
    pair = sequence_of("linalg.svd", "subset_by_index", requested, 2)
    first, end = (known_int("linalg.svd", "subset_by_index", i) for i in pair)
    if not 0 <= first <= end <= size:
        raise ArgumentError(
            f"linalg.svd: subset_by_index must be a range of the {size} singular values, (first, end) with "
            f"0 <= first <= end <= {size}; got {requested!r}"
        )
    return first, end


def _svd_of_hermitian(a: Any) -> tuple[Any, Any, Any]:
    w, v = bind(eigh_p, a, vectors=True)
    order = argsort([ops.neg(ops.abs(w))], len(w.shape) - 1, _INT32)[-1]
    w = take_along_axis(w, order, len(w.shape) - 1, unique=True)
    u = take_along_axis(v, shapes.expand_dims(order, (-2,)), len(v.shape) - 1, unique=True)
    sign = ops.where(ops.lt_p.bind(w, 0), -1, shapes.broadcast_to(shapes.full((), 1, w.dtype), w.shape))
    return u, ops.abs(w), adjoint(column_scaled(u, sign))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices, descending; see :func:`svd`.

    Args:
      x: an array of shape (..., m, n), of numbers; integers become floats.

    Returns:
      Floats of shape (..., min(m, n)).

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]])))
    [4. 3.]
    """
    return bind(svd_p, inexact_operand("linalg.svdvals", x), full_matrices=False, vectors=False, by_qr=False)[0]


# QR ----------------------------------------------------------------------------------------------------------------


class QRResult(NamedTuple):
    """The result of :func:`qr`.

    Attributes:
      Q: matrices with orthonormal columns.
      R: upper triangular matrices.

    >>> import pullback.numpy as jnp
    >>> result = jnp.linalg.qr(jnp.ones((3, 2)))
    >>> result.Q.shape, result.R.shape
    ((3, 2), (2, 2))
    """

    Q: Array
    R: Array


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str = "reduced") -> Any: ...
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """The QR decomposition of matrices.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      mode: "reduced", for Q with k = min(m, n) columns; "complete", for square Q; "r", for R alone; or "raw".

    Returns:
      ``Q`` (..., m, k) with orthonormal columns, and upper triangular ``R`` (..., k, n). With "raw": an array
      (..., n, m) of the transposed reflections, as LAPACK returns them, with the transpose of R, and the factors of the
      reflections (..., k); these have no derivative.

    Raises:
      ShapeError: ``a`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: another mode (a TypeError and a ValueError).

    The derivative is after Walter and Lehmann (2010) and Seeger et al. (2017); there is none if the first k columns are
    dependent. Columns of a complete Q that ``a`` does not determine are not rotated among themselves.

    >>> import pullback.numpy as jnp
    >>> print(abs(jnp.linalg.qr(jnp.array([[3.0, 5.0], [4.0, 5.0]]), "r")).round(4))
    [[5. 7.]
     [0. 1.]]
    """
    if not is_listed(mode, ("reduced", "complete", "r", "raw")):
        raise ArgumentError(f'linalg.qr: mode must be "reduced", "complete", "r" or "raw", got {mode!r}')
    a = inexact_operand("linalg.qr", a)
    if mode == "raw":
        reflections, taus = bind(geqrf_p, a)
        return QRResult(matrix_transpose(reflections), taus)
    q, r = bind(qr_p, a, full_matrices=mode == "complete", pivoting=False)
    return r if mode == "r" else QRResult(q, r)


# By singular values ------------------------------------------------------------------------------------------------


def _tolerances(name: str, x: Any, requested: Any, factor: float) -> Any:
    """Return the tolerance of each matrix of ``x``: singular values up to this fraction of the largest count as zero.

    Args:
      name: the name of the function, for errors.
      x: the matrices.
      requested: the tolerance that the user passed, or None.
      factor: without a requested tolerance, the tolerance is this times the larger size of a matrix times the machine
        epsilon.
    """
    real = dtypes.to_real(x.dtype)
    if requested is None:
        value: Any = shapes.full((), factor * max(x.shape[-2:]) * float(np.finfo(real).eps), real)
    else:
        value = ops.convert_element_type(ops.real(requested) if dtypes.is_complex(requested.dtype) else requested, real)
    batch = x.shape[:-2]
    if value.shape != batch and len(value.shape) > len(batch):
        raise ShapeError(f"{name}: expected a tolerance for each matrix, shape {batch}, got shape {value.shape}")
    return ops.stop_gradient_p.bind(shapes.broadcast_to(value, batch))


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The pseudo-inverses of matrices (Moore and Penrose), by their singular values.

    Args:
      a: an array (..., m, n) of numbers; integers become floats.
      rtol: numbers (...): singular values up to this fraction of the largest count as zero; by default 10 max(m, n)
        times the precision of the dtype.
      hermitian: a promise that the matrices are Hermitian, so that the eigenvalues of their means with their adjoints
        are used.
      rcond: the older name of ``rtol``.

    Returns:
      An array (..., n, m); NaN where a matrix is not finite.

    Raises:
      ShapeError: ``a`` has fewer than two axes (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: both ``rtol`` and ``rcond`` (a TypeError and a ValueError).

    Derivatives of every order exist along matrices of the same rank (Golub and Pereyra 1973), also where singular
    values are equal. Where the rank changes there are none, since the pseudo-inverse jumps.

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    hermitian = flag("linalg.pinv", "hermitian", hermitian)
    if rtol is not None and rcond is not None:
        raise ArgumentError("linalg.pinv: rcond is the old name of rtol; pass only one of them")
    a = inexact_operand("linalg.pinv", a)
    svd_p.abstract_eval_rule(typeof(a), full_matrices=False, vectors=True, by_qr=False)  # type: ignore[misc]
    requested = rtol if rcond is None else rcond
    requested = None if requested is None else inexact_operand("linalg.pinv", requested)
    if 0 in a.shape:
        return shapes.broadcast_to(shapes.full((), 0, a.dtype), (*a.shape[:-2], a.shape[-1], a.shape[-2]))
    if hermitian:
        eigh_p.abstract_eval_rule(typeof(a), vectors=True)  # type: ignore[misc]
        a = hermitian_part(a)
    return bind(pinv_p, a, _tolerances("linalg.pinv", a, requested, 10), hermitian=bool(hermitian))


def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """The ranks of matrices: the numbers of singular values that are not zero.

    Args:
      M: an array (..., m, n) of numbers; integers become floats. A vector has rank one, unless it is zero.
      rtol: numbers (...): singular values up to this fraction of the largest count as zero; by default max(m, n) times
        the precision of the dtype.
      hermitian: a promise that the matrices are Hermitian, with eigenvalues instead; lower triangles are read.
      tol: numbers (...), instead of ``rtol``: singular values up to this number count as zero.

    Returns:
      An array (...) of the default integers. A matrix that is not finite has rank zero.

    Raises:
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: both ``rtol`` and ``tol`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.linalg.matrix_rank(jnp.ones((3, 2))))
    1
    """
    hermitian = flag("linalg.matrix_rank", "hermitian", hermitian)
    name = "linalg.matrix_rank"
    if rtol is not None and tol is not None:
        raise ArgumentError(f"{name}: pass either rtol (relative) or tol (absolute)")
    x = inexact_operand(name, M)
    if len(x.shape) < 2:
        return reductions.any(ops.ne_p.bind(x, 0)).astype(dtypes.default_int())
    sizes = ops.abs(bind(eigh_p, x, vectors=False)[0]) if hermitian else svdvals(x)
    if 0 in x.shape:
        return shapes.broadcast_to(shapes.full((), 0, dtypes.default_int()), x.shape[:-2])
    if tol is not None:
        bound = _tolerances(name, x, inexact_operand(name, tol), 1)
    else:
        bound = _tolerances(name, x, None if rtol is None else inexact_operand(name, rtol), 1)
        bound = ops.mul(bound, reductions.max(sizes, -1))
    return _rank(sizes, bound)


def _rank(sizes: Any, bound: Any) -> Any:
    """Return the rank of each matrix: the number of its singular values ``sizes`` that exceed its ``bound``."""
    return reductions.sum(ops.gt_p.bind(sizes, shapes.expand_dims(bound, (-1,))), -1)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The least-squares solution x of a x = b; of several, the one of minimal norm.

    Args:
      a: a matrix (m, n) of numbers; integers become floats.
      b: a vector (m), or a matrix (m, k) of right sides.
      rcond: singular values of ``a`` up to this fraction of the largest count as zero; by default, and if negative,
        max(m, n) times the precision of the dtype.
      numpy_resid: whether to omit the residuals where NumPy does: for a matrix with fewer rows than columns, or of rank
        less than n, which must be concrete then.

    Returns:
      x, of shape (n) or (n, k); the squared norms of the residuals, (1) or (k); the rank of ``a``, an integer; its
      singular values (min(m, n)).

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    x is the pseudo-inverse times b, and has the derivatives of :func:`pinv`, also where the rank is less than full.

    >>> import pullback.numpy as jnp
    >>> x, left, rank, s = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> print(x.round(4), left.round(4), rank)
    [2.] [2.] 1
    """
    numpy_resid = flag("linalg.lstsq", "numpy_resid", numpy_resid)
    name = "linalg.lstsq"
    a, b = inexact_operands(name, a, b)
    if len(a.shape) != 2 or len(b.shape) not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ShapeError(
            f"{name} takes a matrix (m, n), and a vector (m) or a matrix (m, k), got shapes {a.shape} and {b.shape}"
        )
    check_decomposable(name, typeof(a))
    m, n = a.shape
    vector = len(b.shape) == 1
    sides = shapes.expand_dims(b, (-1,)) if vector else b
    if rcond is not None:
        requested = inexact_operand(name, rcond)
        default = float(np.finfo(a.dtype).eps) * max(m, n)
        rcond = ops.where(ops.lt_p.bind(requested, 0), default, requested)
    x = product(pinv(a, rcond if rcond is not None else _tolerances(name, a, None, 1)), sides)
    s = svdvals(a)
    if s.size:
        rank = _rank(s, ops.mul(_tolerances(name, a, rcond, 1), reductions.max(s, -1)))
    else:
        rank = shapes.full((), 0, dtypes.default_int())
    errors = ops.sub(sides, product(a, x))
    squares = ops.mul(ops.conj(errors), errors) if dtypes.is_complex(a.dtype) else ops.mul(errors, errors)
    left = reductions.sum(ops.real(squares) if dtypes.is_complex(a.dtype) else squares, 0)
    if numpy_resid and (m <= n or int(rank) < n):
        left = shapes.full((0,), 0, left.dtype)
    return (shapes.squeeze(x, (-1,)) if vector else x), left, rank, s
