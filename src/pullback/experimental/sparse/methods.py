"""Methods and operators of sparse arrays; ``attach`` adds them to the classes, which are defined earlier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.errors import ArgumentError, OperandError, ShapeError
from pullback.core.interrupts import imported
from pullback.experimental.sparse import arithmetic, compressed, creation, layouts, structure
from pullback.experimental.sparse.arithmetic import elementwise, is_operand, keeps_sums
from pullback.experimental.sparse.formats import BCOO, BCSR, COO, CSC, CSR, JAXSparse
from pullback.experimental.sparse.products import cast
from pullback.experimental.sparse.sparsify import sparsify

__all__: list[str] = []


def _binary(function: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    return method


def _compared(name: str) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        return sparsify(lambda x, y: getattr(x, name)(y))(self, other)

    return method


def _getitem(self: Any, item: Any) -> Any:
    """Index the array as a dense array is indexed; return a sparse array."""
    return sparsify(lambda x: x[item])(self)


def _iterate(self: Any) -> Any:
    if not self.shape:
        raise ShapeError(f"a scalar sparse array cannot be iterated over: {self!r}")
    return (self[i] for i in range(self.shape[0]))


def _todense(self: Any) -> Any:
    """Convert this sparse array to a dense array.

    Returns:
      An array of the same shape and dtype.
    """
    return layouts.bcoo_todense(compressed.to_bcoo(self))


def _as_numpy(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    raise OperandError(
        f"{self!r} is not converted to a dense array implicitly: use x.todense(), or x.to_scipy_sparse() for a "
        f"SciPy array"
    )


def _sum(self: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Return the sum over some axes, as a sparse array; or the sum over all axes, as a dense scalar.

    Args:
      axis: an axis, a sequence of axes, or None for all.
      dtype: the dtype of the result; that of the array by default.
      out: must be None, for arrays are immutable.
      keepdims: whether the result keeps the axes, with the size 1.

    Returns:
      A sparse array, or for all axes a dense scalar.

    >>> from pullback.experimental import sparse
    >>> print(sparse.eye(3).sum(), sparse.eye(3).sum(0).todense())
    3.0 [1. 1. 1.]
    """
    if out is not None:
        raise ArgumentError("sum of a sparse array does not support out")
    return arithmetic.reduce_sum(self, axis, keepdims, dtype)


def _order(self: Any, axes: tuple[Any, ...]) -> Any:
    given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
    return tuple(reversed(range(self.ndim))) if given is None or not axes else given


def _transpose(self: Any, *axes: Any, **kwargs: Any) -> Any:
    """Permute the axes of the array by ``axes``; without ``axes``, reverse them."""
    given = (kwargs.pop("axes"),) if "axes" in kwargs else axes
    if kwargs:
        raise ArgumentError(f"transpose takes axes, got {', '.join(kwargs)}")
    order = _order(self, given)
    out = structure.bcoo_transpose(compressed.to_bcoo(self), permutation=order)
    turned = tuple(order) != tuple(range(self.ndim))
    if isinstance(self, BCSR):
        return compressed.from_bcoo(out) if out.n_sparse == 2 else out
    if isinstance(self, COO):
        return compressed.as_coo(out)
    if isinstance(self, (CSR, CSC)):
        kind = type(self) if not turned else CSC if isinstance(self, CSR) else CSR
        return kind((self.data, self.indices, self.indptr), shape=out.shape)
    return out


def _reshape(self: Any, *shape: Any) -> Any:
    """Reshape the array.

    Args:
      *shape: the sizes, or one sequence of them; one may be -1.

    Returns:
      A BCOO of the new shape.

    Raises:
      ShapeError: the sizes do not fit (a TypeError and a ValueError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.eye(2).reshape(4).todense())
    [1. 0. 0. 1.]
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if sizes.count(-1) == 1:
        known = 1
        for n in sizes:
            known *= n if n != -1 else 1
        if not known or self.size % known:
            raise ShapeError(f"cannot reshape a sparse array of shape {self.shape} into {sizes}")
        sizes = tuple(self.size // known if n == -1 else n for n in sizes)
    return structure.bcoo_reshape(compressed.to_bcoo(self), new_sizes=sizes)


def _astype(self: Any, dtype: Any) -> Any:
    """Return the array with its elements converted to another dtype.

    Args:
      dtype: the dtype.

    Returns:
      A sparse array of the same format.
    """
    mat = compressed.to_bcoo(self)
    target = dtypes.requested_dtype(dtype, "astype")
    return cast(mat, target) if keeps_sums(mat.dtype, target) else elementwise(lambda data: data.astype(target), mat)


def _sort_indices(self: BCOO) -> BCOO:
    """Sort the stored elements of the array by their indices, with padding last.

    Returns:
      A BCOO of the same shape.
    """
    return layouts.bcoo_sort_indices(self)


def _sum_duplicates(self: Any, nse: int | None = None, remove_zeros: bool = True) -> Any:
    """Sum stored elements with equal indices.

    Args:
      nse: the number of elements to store in the result; by default the number of distinct indices.
      remove_zeros: whether to drop zeros.

    Returns:
      A sparse array of the same format.
    """
    out = layouts.sum_duplicates(compressed.to_bcoo(self), nse, remove_zeros)
    return compressed.from_bcoo(out) if isinstance(self, BCSR) else out


def _update_layout(
    self: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """Convert the array to other numbers of batch and dense axes.

    Args:
      n_batch, n_dense: the numbers of batch and dense axes of the result; by default those of the array.
      on_inefficient: the reaction if the result would store many zeros: "error", "warn", or None for no reaction.

    Returns:
      A BCOO of the same shape.

    Raises:
      SparseEfficiencyError: the result would store many zeros (a ValueError).
      ArgumentError: invalid numbers of axes, or another ``on_inefficient`` (a TypeError and a ValueError).
    """
    return layouts.bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


def _to_scipy_sparse(self: Any) -> Any:
    """Convert to SciPy's sparse array of the same format: a BCOO to COO, a BCSR to CSR.

    Returns:
      A ``scipy.sparse.coo_array`` or the like, with elements of NumPy.

    Raises:
      ArgumentError: the array has batch or dense axes, which SciPy's do not have (a TypeError and ValueError).
    """
    sparse = imported("scipy.sparse")
    mat = compressed.to_bcoo(self)
    if mat.n_batch or mat.n_dense or mat.ndim != 2:
        raise ArgumentError(f"SciPy's sparse arrays are single matrices, without batch and dense axes, got {self!r}")
    known = np.asarray(layouts.inside(mat.indices, mat.shape))
    data, indices = np.asarray(mat.data)[known], np.asarray(mat.indices)[known]
    triples = sparse.coo_array((data, (indices[:, 0], indices[:, 1])), shape=mat.shape)
    return triples.tocsr() if isinstance(self, (BCSR, CSR)) else triples.tocsc() if isinstance(self, CSC) else triples


def _to_coo(self: Any) -> Any:
    """Convert to SciPy's ``coo_array``; see :meth:`to_scipy_sparse`.

    Returns:
      A ``scipy.sparse.coo_array``.
    """
    return _to_scipy_sparse(self).tocoo()


def _to_csr(self: Any) -> Any:
    """Convert to SciPy's ``csr_array``; see :meth:`to_scipy_sparse`.

    Returns:
      A ``scipy.sparse.csr_array``.
    """
    return _to_scipy_sparse(self).tocsr()


def _to_csc(self: Any) -> Any:
    """Convert to SciPy's ``csc_array``; see :meth:`to_scipy_sparse`.

    Returns:
      A ``scipy.sparse.csc_array``.
    """
    return _to_scipy_sparse(self).tocsc()


def _stored(self: Any) -> int:
    """Return the number of stored elements, as SciPy counts these: stored zeros count, padding does not."""
    mat = compressed.to_bcoo(self)
    return int(layouts.inside(mat.indices, mat.shape).sum())


def _diagonal(self: Any, k: int = 0) -> Any:
    """Return a diagonal of a matrix as a dense array.

    Args:
      k: the offset of the diagonal: positive to the right of the main diagonal, negative below it.

    Returns:
      A vector of the elements of the diagonal.

    Raises:
      ShapeError: the array is not a matrix, or has batch or dense axes (a TypeError and ValueError).

    >>> from pullback.experimental import sparse
    >>> print(sparse.eye(3).diagonal())
    [1. 1. 1.]
    """
    mat = compressed.to_bcoo(self)
    if mat.n_batch or mat.n_dense or mat.ndim != 2:
        raise ShapeError(f"diagonal takes a single sparse matrix, without batch and dense axes, got {self!r}")
    rows, columns = mat.indices[:, 0], mat.indices[:, 1]
    length = max(0, min(mat.shape[0] + min(k, 0), mat.shape[1] - max(k, 0)))
    position = rows if k >= 0 else columns
    on = layouts.inside(mat.indices, mat.shape) & (columns == rows + k)
    return pnp.zeros(length, mat.dtype).at[pnp.where(on, position, length)].add(mat.data, mode="drop")


_OF_ALL: dict[str, Any] = {
    "T": property(_transpose, doc="The array with its axes reversed."),
    "__abs__": arithmetic.absolute,
    "__add__": _binary(arithmetic.add),
    "__radd__": _binary(arithmetic.add, True),
    "__sub__": _binary(arithmetic.subtract),
    "__rsub__": _binary(arithmetic.subtract, True),
    "__mul__": _binary(arithmetic.multiply),
    "__rmul__": _binary(arithmetic.multiply, True),
    "__truediv__": _binary(arithmetic.divide),
    "__rtruediv__": _binary(arithmetic.divide, True),
    "__pow__": _binary(arithmetic.power),
    "__matmul__": _binary(arithmetic.matmul),
    "__rmatmul__": _binary(arithmetic.matmul, True),
    "__neg__": arithmetic.negative,
    "__pos__": lambda self: self,
    "__getitem__": _getitem,
    "__iter__": _iterate,
    **{name: _compared(name) for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")},
    "__array__": _as_numpy,
    "todense": _todense,
    "sum": _sum,
    "transpose": _transpose,
    "reshape": _reshape,
    "astype": _astype,
    "to_scipy_sparse": _to_scipy_sparse,
    "toarray": _todense,
    "tocoo": _to_coo,
    "tocsr": _to_csr,
    "tocsc": _to_csc,
    "nnz": property(_stored, doc=_stored.__doc__),
    "diagonal": _diagonal,
}


_METHODS: dict[type, dict[str, Any]] = {
    JAXSparse: _OF_ALL,
    BCOO: {
        "sort_indices": _sort_indices,
        "sum_duplicates": _sum_duplicates,
        "update_layout": _update_layout,
        "fromdense": staticmethod(layouts.bcoo_fromdense),
        "from_scipy_sparse": staticmethod(creation.bcoo_from_scipy_sparse),
    },
    BCSR: {
        "sum_duplicates": _sum_duplicates,
        "to_bcoo": compressed.to_bcoo,
        "fromdense": staticmethod(compressed.bcsr_fromdense),
        "from_bcoo": staticmethod(compressed.from_bcoo),
        "from_scipy_sparse": staticmethod(creation.bcsr_from_scipy_sparse),
    },
    COO: {"fromdense": staticmethod(compressed.coo_fromdense)},
    CSR: {"fromdense": staticmethod(compressed.csr_fromdense)},
    CSC: {"fromdense": staticmethod(compressed.csc_fromdense)},
}


def attach() -> None:
    """Attach the methods and operators to the classes."""
    for kind, methods in _METHODS.items():
        for name, method in methods.items():
            setattr(kind, name, method)


attach()
