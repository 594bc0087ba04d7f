"""Sparse matrices as their stored elements and positions, of whatever class they are."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Self

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import typed
from pullback.core.array import as_array
from pullback.core.errors import DtypeError, OperandError, ShapeError
from pullback.core.tree_nodes import register_pytree_node_class
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays.shapes import reshape
from pullback.primitives.linalg.sparse_products import blocks_times_dense


class Entries(NamedTuple):
    """The stored elements of a sparse matrix.

    Attributes:
      data: the elements, (nse,); those of one position are summed.
      indices: the row and column of each, integers (nse, 2); those outside of the matrix do not count.
      shape: the numbers of rows and columns.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import cholesky
    >>> l = cholesky(BCOO.fromdense(4 * jnp.eye(2))).L()
    >>> print(l.data, l.shape)
    [2. 2.] (2, 2)
    """

    data: Any
    indices: Any
    shape: tuple[int, int]

    def times(self, x: Any, transposed: bool = False) -> Any:
        """Multiply the matrix, or its transpose, by an array (n,) or (n, k) of the dtype of the elements."""
        blocks = reshape(self.data, (self.data.shape[0], 1, 1))
        columns = reshape(x, (x.shape[0], 1, x.shape[1] if x.ndim > 1 else 1))
        size = self.shape[1 if transposed else 0]
        product = blocks_times_dense(blocks, self.indices, columns, size, transposed)
        return reshape(product, (size, *x.shape[1:]))

    def of(self, dtype: Any) -> Entries:
        """Return the entries with elements of another dtype."""
        return self._replace(data=ops.convert_element_type(self.data, dtype))


@register_pytree_node_class
class Constant:
    """The entries of a known matrix, a tree of its arrays.

    Attributes:
      entries: the elements, their positions and the shape.
    """

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], PyTree]:
        """Return the arrays and the shape."""
        return self.entries[:2], self.entries.shape

    @classmethod
    def tree_unflatten(cls, shape: PyTree, leaves: PyTree) -> Self:
        """Rebuild the matrix from leaves of any type, without checks."""
        data, indices = leaves
        return cls(Entries(data, indices, shape))


def is_scipy_sparse(a: Any) -> bool:
    """Whether ``a`` is a sparse matrix or array of SciPy, which is not imported to find out."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(a))


def entries_of(name: str, a: Any, what: str = "A", square: bool = True) -> Entries:
    """Return the entries of a sparse matrix, of SciPy or of ``experimental.sparse``, with floats or complex numbers.

    Args:
      name: the name of the public function, for errors.
      a: the user's argument.
      what: its name.
      square: whether the matrix must be square.

    Raises:
      OperandError: ``a`` is no sparse matrix (a TypeError).
      ShapeError: it is not square, or has batch or dense axes (a TypeError and a ValueError).
      DtypeError: its elements have 16 bits (a TypeError).
    """
    if is_scipy_sparse(a):
        entries = _of_scipy(name, a, what)
    else:
        if hasattr(a, "indptr") or hasattr(a, "row"):
            a = a.to_bcoo() if hasattr(a, "to_bcoo") else a
        if not hasattr(a, "data") or not hasattr(a, "indices") or not hasattr(a, "n_dense"):
            raise OperandError(
                f"{name}: {what} must be a sparse matrix of experimental.sparse or of SciPy, got {typed(a)}; "
                "experimental.sparse.BCOO.fromdense converts a dense one"
            )
        if a.n_batch or a.n_dense or len(a.shape) != 2:
            raise ShapeError(f"{name}: {what} must be a single matrix; use vmap for its batch axes, got {a!r}")
        entries = Entries(a.data, a.indices, tuple(a.shape))
    if square and entries.shape[0] != entries.shape[1]:
        raise ShapeError(f"{name}: {what} must be a square matrix, got shape {entries.shape}")
    return entries.of(precise(name, what, entries.data.dtype))


def precise(name: str, what: str, dtype: Any) -> Any:
    """Return the dtype in which numbers of ``dtype`` are computed with: integers become floats.

    Raises:
      DtypeError: numbers of 16 bits, for which there are no solvers (a TypeError).
    """
    dtype = dtype if dtypes.is_inexact(dtype) else dtypes.default_float()
    if dtype.itemsize < 4:
        raise DtypeError(f"{name}: {what} must have 32 bits or more, got {dtypes.short_name(dtype)}: convert it")
    return dtype


def _of_scipy(name: str, a: Any, what: str) -> Entries:
    if a.ndim != 2:
        raise ShapeError(f"{name}: {what} must be a matrix, got shape {a.shape}")
    triples = a.tocoo()
    indices = np.stack([np.asarray(triples.row), np.asarray(triples.col)], axis=1).astype(np.int32)
    return Entries(as_array(triples.data), as_array(indices), (int(a.shape[0]), int(a.shape[1])))
