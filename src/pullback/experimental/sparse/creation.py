"""New sparse arrays: empty, identity, random, and those of SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import flag, is_listed, require_function, typed
from pullback.core.array import KeyArray
from pullback.core.errors import ArgumentError, OperandError
from pullback.core.interrupts import imported
from pullback.experimental.sparse import layouts
from pullback.experimental.sparse.compressed import as_coo, as_csc, as_csr, from_bcoo
from pullback.experimental.sparse.formats import BCOO, BCSR, JAXSparse, as_dtype, shape_of
from pullback.numpy.promotion import known_int, memory_for
from pullback.primitives.linalg.sparse_products import index_dtype as wide_index
from pullback.random.continuous import uniform
from pullback.random.discrete import permutation, randint
from pullback.random.keys import split
from pullback.transforms.autodiff.vmap import vmap

FORMATS: dict[str, Callable[[BCOO], Any]] = {
    "bcoo": lambda mat: mat,
    "bcsr": from_bcoo,
    "coo": as_coo,
    "csr": as_csr,
    "csc": as_csc,
}


def _in_format(name: str, mat: BCOO, sparse_format: Any, kwds: dict[str, Any]) -> Any:
    if not is_listed(sparse_format, FORMATS):
        raise ArgumentError(
            f"{name}: sparse_format must be one of {', '.join(map(repr, FORMATS))}, got {sparse_format!r}"
        )
    if sparse_format in ("coo", "csr", "csc") and (mat.ndim != 2 or mat.n_batch or mat.n_dense):
        raise ArgumentError(f"{name}: a {sparse_format} is one matrix, without batch and dense axes, got {mat!r}")
    if kwds:
        raise ArgumentError(f"{name}: unknown options {', '.join(kwds)}; the options are n_batch, n_dense and nse")
    return FORMATS[sparse_format](mat)


def empty(
    shape: Sequence[int],
    dtype: DTypeLike = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Return a sparse array of zeros, which stores no elements.

    Args:
      shape: the shape, a sequence of integers.
      dtype: the dtype of the elements; the default float by default.
      index_dtype: the dtype of the indices.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      kwds: ``n_batch`` and ``n_dense``, the numbers of batch and dense axes, and ``nse``, the number of stored
        elements, all of them padding.

    Returns:
      A sparse array of this format.

    Raises:
      ArgumentError: an argument that makes no sense (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    sizes = shape_of("sparse.empty", shape)
    n_batch, n_dense = kwds.pop("n_batch", 0), kwds.pop("n_dense", 0)
    nse = layouts.known_nse("sparse.empty", kwds.pop("nse", 0))
    count = layouts.check_layout("sparse.empty", n_batch, n_dense, len(sizes))
    sparse = sizes[n_batch : n_batch + count]
    data = pnp.zeros((*sizes[:n_batch], nse, *sizes[n_batch + count :]), as_dtype(dtype))
    kind = layouts.index_type("sparse.empty", index_dtype)
    indices = pnp.broadcast_to(pnp.asarray(np.asarray(sparse, kind)), (*sizes[:n_batch], nse, count))
    mat = BCOO((data, indices), shape=sizes, indices_sorted=True, unique_indices=True)
    return _in_format("sparse.empty", mat, sparse_format, kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Return a sparse matrix with ones on a diagonal.

    Args:
      N, M: the numbers of rows and columns; as many columns as rows by default.
      k: the diagonal: 0 for the main one, positive numbers for those above it.
      dtype: the dtype of the elements; the default float by default.
      index_dtype: the dtype of the indices.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      kwds: ``n_batch`` and ``n_dense``, the numbers of batch and dense axes.

    Returns:
      A sparse matrix (N, M) of this format.

    Raises:
      ArgumentError: an argument that makes no sense (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.eye(2, 3, k=1).todense())
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    rows = known_int("sparse.eye", "N", N)
    columns = rows if M is None else known_int("sparse.eye", "M", M)
    diagonal = known_int("sparse.eye", "k", k)
    shape = shape_of("sparse.eye", (rows, columns))
    n_batch, n_dense = kwds.pop("n_batch", 0), kwds.pop("n_dense", 0)
    layouts.check_layout("sparse.eye", n_batch, n_dense, 2)
    last = max(min(rows, columns - diagonal), max(-diagonal, 0))
    first = memory_for("sparse.eye", (rows, columns), lambda: np.arange(max(-diagonal, 0), last))
    kind = layouts.index_type("sparse.eye", index_dtype)
    indices = np.stack([first, first + diagonal], axis=1).astype(kind)
    parts = pnp.ones(len(first), as_dtype(dtype)), pnp.asarray(indices)
    mat = BCOO(parts, shape=shape, indices_sorted=True, unique_indices=True)
    if n_batch or n_dense:
        mat = layouts.sum_duplicates(layouts.relaid(mat, n_batch=n_batch, n_dense=n_dense), None, not n_dense)
    return _in_format("sparse.eye", mat, sparse_format, kwds)


def _stored_count(name: str, nse: Any, cells: int) -> int:
    """Return the number of elements to store: ``nse``, or below 1 this fraction of ``cells``."""
    if isinstance(nse, bool) or not isinstance(nse, (int, float, np.integer, np.floating)) or not nse >= 0:
        raise ArgumentError(f"{name}: nse must be a non-negative number, got {nse!r}")
    return math.ceil(nse * cells) if nse < 1 else int(nse)


def random_bcoo(
    key: KeyArray,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = np.float64,
    indices_dtype: DTypeLike = None,
    nse: float | int = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = uniform,
    **kwds: Any,
) -> BCOO:
    """Return a sparse array with random elements at random indices.

    Args:
      key: a random key.
      shape: the shape.
      dtype: the dtype of the elements.
      indices_dtype: the dtype of the indices; int32 by default.
      nse: the number of elements to store for each index of the batch axes; below 1, their fraction of all elements.
      n_batch, n_dense: the numbers of batch and dense axes.
      unique_indices: whether the indices of all elements differ.
      sorted_indices: whether the elements are sorted by their indices.
      generator: draws the elements: ``generator(key, shape, dtype, **kwds)``.
      kwds: further arguments of ``generator``.

    Returns:
      A BCOO of the shape ``shape`` and of the dtype ``dtype``, with half its bits if 64 bits are not enabled.

    Raises:
      ArgumentError: an invalid argument, such as more unique elements than the axes have (a TypeError and ValueError).

    >>> from pullback import random
    >>> from pullback.experimental import sparse
    >>> sparse.random_bcoo(random.key(0), (4, 5), nse=0.5, dtype="float32")
    BCOO(float32[4, 5], nse=10)
    """
    unique_indices = flag("random_bcoo", "unique_indices", unique_indices)
    sorted_indices = flag("random_bcoo", "sorted_indices", sorted_indices)
    name = "random_bcoo"
    require_function(name, "generator", generator)
    sizes = shape_of(name, shape)
    count = layouts.check_layout(name, n_batch, n_dense, len(sizes))
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch : n_batch + count], sizes[n_batch + count :]
    cells = math.prod(sparse)
    stored = _stored_count(name, nse, cells)
    if unique_indices and stored > cells:
        raise ArgumentError(
            f"{name}: axes of sizes {sparse} do not have {stored} different indices; set unique_indices=False"
        )
    of_positions, of_data = split(key)
    kind = layouts.index_type(name, np.int32 if indices_dtype is None else indices_dtype)
    rows = math.prod(batch)
    positions = _random_positions(of_positions, rows, cells, stored, unique_indices)
    indices = layouts.unravelled(positions, sparse, kind).reshape(*batch, stored, count)
    data = generator(of_data, (*batch, stored, *dense), dtypes.canonicalize_dtype(dtype), **kwds)
    mat = BCOO((data, indices), shape=sizes, unique_indices=bool(unique_indices))
    return layouts.bcoo_sort_indices(mat) if sorted_indices else mat


def _random_positions(key: Any, rows: int, cells: int, count: int, distinct: bool) -> Any:
    """Draw ``count`` random integers from 0 to ``cells - 1`` for each of ``rows`` rows.

    With ``distinct``, the integers of a row are all different. The result has the shape (rows, count).
    """
    dtype = wide_index(cells)
    if not distinct or not count:
        return randint(key, (rows, count), 0, max(cells, 1), dtype)
    if not rows:
        return pnp.zeros((0, count), dtype)
    return vmap(lambda k: _distinct(k, cells, count, dtype))(split(key, rows))


def _distinct(key: Any, cells: int, count: int, dtype: Any) -> Any:
    """Draw ``count`` distinct random integers from 0 to ``cells - 1``, in memory proportional to ``count``.

    Draw more integers, and drop repetitions. Let n be ``count``: of 2 n + 64 draws from at least 16 n integers, about
    n/8 are repetitions, so that at least n are distinct.
    """
    if cells < 16 * count:
        return permutation(key, cells)[:count].astype(dtype)
    drawn = randint(key, (2 * count + 64,), 0, cells, dtype)
    order = pnp.argsort(drawn, stable=True)
    ordered = drawn[order]
    again = pnp.concatenate([pnp.zeros(1, bool), ordered[1:] == ordered[:-1]])
    back = pnp.zeros_like(again).at[order].set(again)
    return drawn[pnp.argsort(back, stable=True)[:count]]


# SciPy -------------------------------------------------------------------------------------------------------------


def bcoo_from_scipy_sparse(mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
    """Convert a sparse array or matrix of SciPy, of any format, to a BCOO.

    Args:
      mat: SciPy's array.
      index_dtype: the dtype of the indices; int32 by default.
      n_dense, n_batch: must be 0, since SciPy's arrays have no batch and dense axes.

    Returns:
      A BCOO of the shape of ``mat``, and of its dtype or the narrower one of the switch for 64 bits.

    Raises:
      OperandError: ``mat`` is not a sparse array of SciPy (a TypeError).

    >>> import numpy as np
    >>> import scipy.sparse
    >>> from pullback.experimental import sparse
    >>> sparse.BCOO.from_scipy_sparse(scipy.sparse.eye_array(3, dtype=np.float32))
    BCOO(float32[3, 3], nse=3)
    """
    name = "from_scipy_sparse"
    if n_dense or n_batch:
        raise ArgumentError(
            f"{name}: SciPy's arrays have no batch and dense axes, got n_batch={n_batch}, n_dense={n_dense}"
        )
    if not imported("scipy.sparse").issparse(mat):
        raise OperandError(f"{name} takes a sparse array of SciPy, got {typed(mat)}")
    triples = mat.tocoo()
    kind = layouts.index_type(name, np.int32 if index_dtype is None else index_dtype)
    coords = getattr(triples, "coords", None) or (triples.row, triples.col)
    indices = np.stack([np.asarray(c) for c in coords], axis=1).astype(kind)
    return BCOO((pnp.asarray(triples.data), pnp.asarray(indices)), shape=triples.shape)


def bcsr_from_scipy_sparse(mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
    """Convert a sparse matrix of SciPy to a BCSR.

    Args:
      mat: SciPy's matrix or two-dimensional array, of any format.
      index_dtype: the dtype of the indices; int32 by default.
      n_dense, n_batch: must be 0, since SciPy's arrays have no batch and dense axes.

    Returns:
      A BCSR of the shape of ``mat``.

    >>> import numpy as np
    >>> import scipy.sparse
    >>> from pullback.experimental import sparse
    >>> sparse.BCSR.from_scipy_sparse(scipy.sparse.eye_array(3, dtype=np.float32))
    BCSR(float32[3, 3], nse=3)
    """
    return from_bcoo(bcoo_from_scipy_sparse(mat, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch))


__all__ = ["empty", "eye", "random_bcoo"]
