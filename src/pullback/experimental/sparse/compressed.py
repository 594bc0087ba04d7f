"""BCSR arrays, and the matrix formats COO, CSR and CSC: conversions, by way of BCOO, and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.backends.devices.shardings import OutSharding
from pullback.core.annotations import DotDimensionNumbers, DTypeLike, PrecisionLike
from pullback.core.arguments import flag, typed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, OperandError, ShapeError
from pullback.experimental.sparse import layouts
from pullback.experimental.sparse.formats import BCOO, BCSR, COO, CSC, CSR, JAXSparse
from pullback.experimental.sparse.products import bcoo_dot_general, bcoo_extract, dense_operand
from pullback.experimental.sparse.structure import bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_transpose
from pullback.numpy.promotion import quote, sequence
from pullback.transforms.autodiff.vmap import vmap


def bcsr(name: str, x: Any) -> BCSR:
    """Return an argument, or raise an error unless it is a BCSR."""
    if not isinstance(x, BCSR):
        raise OperandError(f"{name} takes a BCSR, got {typed(x)}")
    return x


def rows_of(indptr: Any, count: int) -> Any:
    """Return the row of each of ``count`` elements; for padding, the number of rows."""
    numbers = np.arange(count, dtype=np.int32)
    find = lambda bounds: (pnp.searchsorted(bounds, numbers, side="right") - 1).astype(bounds.dtype)
    for _ in indptr.shape[:-1]:
        find = vmap(find)
    return find(indptr)


def bounds_of(rows: Any, count: int, dtype: Any) -> Any:
    """Return the row pointers of elements that are sorted by row: each row's offset, and the total."""
    numbers = np.arange(count + 1)
    find = lambda r: pnp.searchsorted(r, numbers.astype(np.int32)).astype(dtype)
    for _ in rows.shape[:-1]:
        find = vmap(find)
    return find(rows)


def to_bcoo(mat: Any) -> BCOO:
    """Convert a sparse array of any format to a BCOO.

    Args:
      mat: a sparse array of any format.

    Returns:
      A BCOO of the shape and the dtype of ``mat``.

    >>> from pullback.experimental import sparse
    >>> sparse.BCSR.from_bcoo(sparse.eye(2)).to_bcoo()
    BCOO(float32[2, 2], nse=2)
    """
    if isinstance(mat, BCOO):
        return mat
    if isinstance(mat, BCSR):
        batch = mat.shape[: mat.n_batch]
        indptr = pnp.broadcast_to(mat.indptr, (*batch, mat.indptr.shape[-1]))
        columns = pnp.broadcast_to(mat.indices, (*batch, mat.nse))
        indices = pnp.stack([rows_of(indptr, mat.nse).astype(columns.dtype), columns], axis=-1)
        flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
        return BCOO((mat.data, indices), shape=mat.shape, **flags)
    if isinstance(mat, COO):
        wide = pnp.promote_types(mat.row.dtype, mat.col.dtype)
        pairs = pnp.stack([mat.row.astype(wide), mat.col.astype(wide)], axis=1)
        return BCOO((mat.data, pairs), shape=mat.shape)
    if isinstance(mat, (CSR, CSC)):
        major = rows_of(mat.indptr, mat.nse).astype(mat.indices.dtype)
        pair = (major, mat.indices) if isinstance(mat, CSR) else (mat.indices, major)
        return BCOO((mat.data, pnp.stack(pair, axis=1)), shape=mat.shape)
    raise OperandError(f"expected a sparse array, got {typed(mat)}")


def from_bcoo(mat: Any) -> BCSR:
    """Convert a BCOO with two sparse axes to a BCSR.

    Args:
      mat: a BCOO.

    Returns:
      A BCSR of the shape and the dtype of ``mat``.

    Raises:
      ArgumentError: the array has another number of sparse axes (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.BCSR.from_bcoo(sparse.eye(2))
    BCSR(float32[2, 2], nse=2)
    """
    if not isinstance(mat, BCOO):
        raise OperandError(f"BCSR.from_bcoo takes a BCOO, got {quote(mat)}")
    if mat.n_sparse != 2:
        raise ArgumentError(f"BCSR.from_bcoo: a BCSR has two sparse axes, got {mat!r} with n_sparse={mat.n_sparse}")
    ordered = layouts.bcoo_sort_indices(mat)
    data, indices = layouts.spread(ordered)
    batch, (rows, _), _ = layouts.kinds(mat)
    known = layouts.inside(indices, mat.shape[len(batch) : len(batch) + 2])
    major = pnp.where(known, indices[..., 0], rows)
    indptr = bounds_of(major.astype(np.int32), rows, indices.dtype)
    flags = {"indices_sorted": True, "unique_indices": mat.unique_indices}
    return BCSR((data, indices[..., 1], indptr), shape=mat.shape, **flags)


# BCSR --------------------------------------------------------------------------------------------------------------


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCSR:
    """Convert a dense array to a BCSR; the arguments are those of :func:`bcoo_fromdense`.

    Args:
      mat: an array of ``n_batch + 2 + n_dense`` axes.
      nse: the number of elements to store for each index of the batch axes.
      n_batch, n_dense: the numbers of leading batch axes and of trailing dense axes.
      index_dtype: the dtype of the indices.

    Returns:
      A BCSR of the shape and the dtype of ``mat``.

    Raises:
      ArgumentError: another number of axes (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.bcsr_fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]])).indptr)
    [0 1 2]
    """
    mat = dense_operand("bcsr_fromdense", mat)
    if layouts.check_layout("bcsr_fromdense", n_batch, n_dense, mat.ndim) != 2:
        raise ArgumentError(
            f"bcsr_fromdense: an array of shape {mat.shape} with n_batch={n_batch} and n_dense={n_dense} must have "
            f"two more axes, for rows and columns"
        )
    return from_bcoo(layouts.bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """Convert a BCSR to a dense array.

    Args:
      mat: a BCSR.

    Returns:
      An array of the shape and the dtype of ``mat``; duplicates are added up.

    Raises:
      OperandError: ``mat`` is no BCSR (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """
    return layouts.bcoo_todense(to_bcoo(bcsr("bcsr_todense", mat)))


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of a dense array at the indices of a BCSR.

    Args:
      indices: the columns, integers ``(*batch, nse)``.
      indptr: the row pointers, ``(*batch, rows + 1)``.
      mat: an array ``(*batch, rows, columns, *dense)``.

    Returns:
      Data ``(*batch, nse, *dense)``; zero for padding.

    Raises:
      ShapeError: the shapes do not fit one another (a TypeError and a ValueError).
      OperandError: ``mat`` is no dense array (a TypeError).
      DtypeError: ``indices`` or ``indptr`` are no integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> print(sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), x))
    [2. 3.]
    """
    mat = dense_operand("bcsr_extract", mat)
    indices = pnp.asarray(indices)
    n = indices.ndim - 1
    if n < 0 or mat.ndim < n + 2:
        raise ShapeError(f"bcsr_extract: indices of shape {indices.shape} do not fit an array of shape {mat.shape}")
    shape = mat.shape
    empty = pnp.zeros((*shape[:n], indices.shape[-1], *shape[n + 2 :]), mat.dtype)
    positions = BCSR((empty, indices, indptr), shape=shape)
    return bcoo_extract(to_bcoo(positions), mat, assume_unique=True).data


def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Contract a BCSR with another array; see :func:`bcoo_dot_general`.

    Args:
      lhs, rhs: a BCSR and an array, an array and a BCSR, or two sparse arrays.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``.
      precision: how exactly products are computed, a ``lax.Precision`` or its name.
      preferred_element_type: the dtype of the result; by default that to which the operands promote.
      out_sharding: the sharding of the result, or None.

    Returns:
      An array of the batch axes, then the other axes of ``lhs``, then those of ``rhs``; sparse if both operands are.

    Raises:
      OperandError: no operand is a BCSR, or one is no array (a TypeError).
      ShapeError: the axes do not fit the shapes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.bcsr_fromdense(jnp.eye(2))
    >>> print(sparse.bcsr_dot_general(matrix, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ()))))
    [1. 1.]
    """
    if not isinstance(lhs, BCSR) and not isinstance(rhs, BCSR):
        raise OperandError(f"bcsr_dot_general: lhs or rhs must be a BCSR, got {quote(lhs)} and {quote(rhs)}")
    x, y = (to_bcoo(a) if isinstance(a, JAXSparse) else a for a in (lhs, rhs))
    options: Any = {
        "precision": precision,
        "preferred_element_type": preferred_element_type,
        "out_sharding": out_sharding,
    }
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers, **options)


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """Repeat a BCSR along new axes, before rows or after columns; see :func:`bcoo_broadcast_in_dim`.

    Args:
      mat: a BCSR.
      shape: the shape of the result, a sequence of integers.
      broadcast_dimensions: for each axis of ``mat`` the axis of the result, in ascending order.
      sharding: None.

    Returns:
      A BCSR of the shape ``shape``, and of the dtype of ``mat``.

    Raises:
      OperandError: ``mat`` is no BCSR (a TypeError).
      ShapeError: the shape or the axes do not fit (a TypeError and a ValueError).
      UnsupportedArgumentError: ``sharding`` is not None (a NotImplementedError).

    >>> from pullback.experimental import sparse
    >>> matrix = sparse.BCSR.from_bcoo(sparse.eye(2))
    >>> sparse.bcsr_broadcast_in_dim(matrix, shape=(3, 2, 2), broadcast_dimensions=(1, 2)).shape
    (3, 2, 2)
    """
    x = to_bcoo(bcsr("bcsr_broadcast_in_dim", mat))
    return from_bcoo(
        bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding)
    )


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Concatenate BCSRs along an axis; see :func:`bcoo_concatenate`.

    Args:
      operands: a sequence of BCSRs, whose shapes are the same except along ``dimension``.
      dimension: the axis, an integer.

    Returns:
      A BCSR.

    Raises:
      OperandError: an operand is no BCSR (a TypeError).
      ArgumentError: there are no operands (a TypeError and a ValueError).
      ShapeError: the shapes do not fit, or ``dimension`` is no axis (a TypeError and a ValueError).

    >>> from pullback.experimental import sparse
    >>> matrix = sparse.BCSR.from_bcoo(sparse.eye(2))
    >>> print(sparse.bcsr_concatenate([matrix, matrix], dimension=0).indptr)
    [0 1 2 3 4]
    """
    mats = [to_bcoo(bcsr("bcsr_concatenate", x)) for x in sequence("bcsr_concatenate", operands)]
    return from_bcoo(relaid_to_rows(bcoo_concatenate(mats, dimension=dimension)))


def relaid_to_rows(mat: BCOO) -> BCOO:
    """Convert batch and dense axes so that two axes are sparse, if possible."""
    return mat if mat.n_sparse == 2 else layouts.relaid(mat, n_dense=max(mat.ndim - mat.n_batch - 2, 0))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Sum the elements of a BCSR that have the same indices; see :func:`bcoo_sum_duplicates`.

    Args:
      mat: a BCSR.
      nse: the number of elements that the result stores for each index of the batch axes; by default as many as are
        needed, which requires concrete indices.

    Returns:
      A BCSR of the same shape and dtype.

    Raises:
      OperandError: ``mat`` is no BCSR (a TypeError).
      ArgumentError: ``nse`` is no integer, or is missing and the indices are traced (a TypeError and a ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.bcsr_sum_duplicates(sparse.BCSR.from_bcoo(sparse.eye(2)))
    BCSR(float32[2, 2], nse=2)
    """
    return from_bcoo(layouts.sum_duplicates(to_bcoo(bcsr("bcsr_sum_duplicates", mat)), nse, False))


# One matrix --------------------------------------------------------------------------------------------------------


def as_coo(mat: BCOO) -> COO:
    """Convert a BCOO that is one matrix to a COO."""
    return COO((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape, rows_sorted=mat.indices_sorted)


def as_csr(mat: BCOO) -> CSR:
    """Convert a BCOO that is one matrix to a CSR."""
    rows = from_bcoo(mat)
    return CSR((rows.data, rows.indices, rows.indptr), shape=mat.shape)


def as_csc(mat: BCOO) -> CSC:
    """Convert a BCOO that is one matrix to a CSC."""
    rows = from_bcoo(bcoo_transpose(mat, permutation=(1, 0)))
    return CSC((rows.data, rows.indices, rows.indptr), shape=mat.shape)


def matrix_fromdense(name: str, mat: Any, nse: int | None, index_dtype: Any) -> BCOO:
    mat = dense_operand(name, mat)
    if mat.ndim != 2:
        raise ShapeError(f"{name} takes a matrix, got an array of shape {mat.shape}")
    return layouts.bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
    """Convert a dense matrix to a COO; see :func:`bcoo_fromdense`.

    Args:
      mat: a matrix (m, n).
      nse: the number of elements to store; by default as many as are not zero, which requires a concrete matrix.
      index_dtype: the dtype of the indices.

    Returns:
      A COO of the shape and the dtype of ``mat``.

    Raises:
      ShapeError: ``mat`` is no matrix (a TypeError and a ValueError).
      OperandError: ``mat`` is neither an array nor a number (a TypeError).
      ArgumentError: ``nse`` is no integer, or is missing and the matrix is traced (a TypeError and a ValueError).
      DtypeError: ``index_dtype`` is no dtype of integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.coo_fromdense(jnp.eye(2))
    COO(float32[2, 2], nse=2)
    """
    return as_coo(matrix_fromdense("coo_fromdense", mat, nse, index_dtype))


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """Convert a dense matrix to a CSR; see :func:`bcoo_fromdense`.

    Args:
      mat: a matrix (m, n).
      nse: the number of elements to store; by default as many as are not zero, which requires a concrete matrix.
      index_dtype: the dtype of the indices.

    Returns:
      A CSR of the shape and the dtype of ``mat``.

    Raises:
      ShapeError: ``mat`` is no matrix (a TypeError and a ValueError).
      OperandError: ``mat`` is neither an array nor a number (a TypeError).
      ArgumentError: ``nse`` is no integer, or is missing and the matrix is traced (a TypeError and a ValueError).
      DtypeError: ``index_dtype`` is no dtype of integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.csr_fromdense(jnp.eye(2))
    CSR(float32[2, 2], nse=2)
    """
    return as_csr(matrix_fromdense("csr_fromdense", mat, nse, index_dtype))


def csc_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
    """Convert a dense matrix to a CSC; see :func:`bcoo_fromdense`.

    Args:
      mat: a matrix (m, n).
      nse: the number of elements to store; by default as many as are not zero, which requires a concrete matrix.
      index_dtype: the dtype of the indices.

    Returns:
      A CSC of the shape and the dtype of ``mat``.

    Raises:
      ShapeError: ``mat`` is no matrix (a TypeError and a ValueError).
      ArgumentError: ``nse`` is no integer, or is missing and the matrix is traced (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.CSC.fromdense(jnp.eye(2))
    CSC(float32[2, 2], nse=2)
    """
    return as_csc(matrix_fromdense("csc_fromdense", mat, nse, index_dtype))


def _of(name: str, mat: Any, kind: type) -> BCOO:
    if not isinstance(mat, kind):
        raise OperandError(f"{name} takes a {kind.__name__}, got {typed(mat)}")
    return to_bcoo(mat)


def coo_todense(mat: COO) -> Array:
    """Convert a COO to a dense matrix.

    Args:
      mat: a COO.

    Returns:
      An array of the shape and the dtype of ``mat``; duplicates are added up.

    Raises:
      OperandError: ``mat`` is no COO (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.coo_todense(sparse.coo_fromdense(jnp.eye(1))))
    [[1.]]
    """
    return layouts.bcoo_todense(_of("coo_todense", mat, COO))


def csr_todense(mat: CSR) -> Array:
    """Convert a CSR to a dense matrix.

    Args:
      mat: a CSR.

    Returns:
      An array of the shape and the dtype of ``mat``; duplicates are added up.

    Raises:
      OperandError: ``mat`` is no CSR (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.csr_todense(sparse.csr_fromdense(jnp.eye(1))))
    [[1.]]
    """
    return layouts.bcoo_todense(_of("csr_todense", mat, CSR))


def _product(name: str, mat: BCOO, x: Any, rank: int, transpose: bool) -> Any:
    x = dense_operand(name, x)
    axis = 0 if transpose else 1
    if x.ndim != rank:
        raise ShapeError(f"{name} takes an array of {rank} axes, got shape {x.shape}")
    layouts.fitting(x, f"{name}: the operand of a matrix of shape {mat.shape}", (mat.shape[axis], *x.shape[1:]))
    return bcoo_dot_general(mat, x, dimension_numbers=(((axis,), (0,)), ((), ())))


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a COO and a vector.

    Args:
      mat: a COO of the shape (m, n).
      v: a vector of n numbers; of m, if ``transpose``.
      transpose: whether to multiply by the transpose of ``mat``.

    Returns:
      A vector of m numbers; of n, if ``transpose``.

    Raises:
      OperandError: ``mat`` is no COO, or ``v`` is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: ``transpose`` is no bool (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.coo_matvec(sparse.coo_fromdense(jnp.eye(2)), jnp.ones(2)))
    [1. 1.]
    """
    transpose = flag("coo_matvec", "transpose", transpose)
    return _product("coo_matvec", _of("coo_matvec", mat, COO), v, 1, transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a COO and a matrix.

    Args:
      mat: a COO of the shape (m, n).
      B: a matrix (n, k); (m, k), if ``transpose``.
      transpose: whether to multiply by the transpose of ``mat``.

    Returns:
      A matrix (m, k); (n, k), if ``transpose``.

    Raises:
      OperandError: ``mat`` is no COO, or ``B`` is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: ``transpose`` is no bool (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.coo_matmat(sparse.coo_fromdense(jnp.eye(2)), jnp.ones((2, 3))).shape
    (2, 3)
    """
    transpose = flag("coo_matmat", "transpose", transpose)
    return _product("coo_matmat", _of("coo_matmat", mat, COO), B, 2, transpose)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a CSR and a vector.

    Args:
      mat: a CSR of the shape (m, n).
      v: a vector of n numbers; of m, if ``transpose``.
      transpose: whether to multiply by the transpose of ``mat``.

    Returns:
      A vector of m numbers; of n, if ``transpose``.

    Raises:
      OperandError: ``mat`` is no CSR, or ``v`` is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: ``transpose`` is no bool (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.csr_matvec(sparse.csr_fromdense(jnp.eye(2)), jnp.ones(2)))
    [1. 1.]
    """
    transpose = flag("csr_matvec", "transpose", transpose)
    return _product("csr_matvec", _of("csr_matvec", mat, CSR), v, 1, transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a CSR and a matrix.

    Args:
      mat: a CSR of the shape (m, n).
      B: a matrix (n, k); (m, k), if ``transpose``.
      transpose: whether to multiply by the transpose of ``mat``.

    Returns:
      A matrix (m, k); (n, k), if ``transpose``.

    Raises:
      OperandError: ``mat`` is no CSR, or ``B`` is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      ArgumentError: ``transpose`` is no bool (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.csr_matmat(sparse.csr_fromdense(jnp.eye(2)), jnp.ones((2, 3))).shape
    (2, 3)
    """
    transpose = flag("csr_matmat", "transpose", transpose)
    return _product("csr_matmat", _of("csr_matmat", mat, CSR), B, 2, transpose)
