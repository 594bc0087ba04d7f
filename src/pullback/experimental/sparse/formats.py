"""The classes of sparse arrays, as pytree nodes. ``methods`` attaches their methods and operators."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike, PyTree
from pullback.core.array import Array, ArrayLike, Index, as_array, typeof
from pullback.core.config import config
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.core.runtime import runtime
from pullback.core.tree_nodes import register_pytree_node_class
from pullback.core.types import Shape
from pullback.numpy.promotion import quote


class JAXSparse:
    """The base class of sparse arrays: a shape, a dtype, and arrays that are the leaves of the tree.

    Args:
      args: the arrays, in the order in which the format lists them: for a BCOO the data and the indices.
      shape: the shape of the dense array, a sequence of integers.

    Raises:
      ArgumentError: ``args`` has another number of arrays (a TypeError and a ValueError).
      OperandError: an element of ``args`` is no array (a TypeError).
      DtypeError: indices are no integers (a TypeError).

    Attributes:
      shape: the shape of the dense array that it represents.

    >>> from pullback.experimental import sparse
    >>> matrix = sparse.eye(2, 3)
    >>> print(isinstance(matrix, sparse.JAXSparse), matrix.shape, matrix.dtype, matrix.nse)
    True (2, 3) float32 2
    """

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100  # NumPy's arrays defer operators to this class
    _names: ClassVar[tuple[str, ...]] = ()
    shape: Shape
    data: Array

    if TYPE_CHECKING:  # attached by experimental/sparse/methods; declared here for type checkers

        @property
        def T(self) -> Self: ...
        def __abs__(self) -> Self: ...
        def __neg__(self) -> Self: ...
        def __pos__(self) -> Self: ...
        def __add__(self, other: Any) -> Any: ...
        def __getitem__(self, item: Index) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __add__
        __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = __add__

        def todense(self) -> Array: ...
        def sum(
            self, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False
        ) -> JAXSparse: ...
        def transpose(self, *axes: int | Sequence[int] | None) -> JAXSparse: ...
        def reshape(self, *shape: int | Sequence[int]) -> JAXSparse: ...
        def astype(self, dtype: DTypeLike) -> JAXSparse: ...
        def to_scipy_sparse(self) -> PyTree: ...
        def toarray(self) -> Array: ...
        def tocoo(self) -> PyTree: ...
        def tocsr(self) -> PyTree: ...
        def tocsc(self) -> PyTree: ...
        @property
        def nnz(self) -> int: ...
        def diagonal(self, k: int = 0) -> Array: ...

    def __init__(self, args: Sequence[ArrayLike], *, shape: Sequence[int]) -> None:
        name = type(self).__name__
        if not isinstance(args, (tuple, list)) or len(args) != len(self._names):
            raise ArgumentError(f"{name} takes a tuple ({', '.join(self._names)}), got {quote(args)}")
        for field, x in zip(self._names, args, strict=True):
            try:
                array = x if isinstance(x, Array) else as_array(x) if type(x) is np.ndarray else pnp.asarray(x)
            except (TypeError, ValueError) as error:
                raise OperandError(f"{name}: {field} must be an array, got {quote(x)}: {error}") from None
            if field != "data" and not dtypes.is_integer(array.dtype):
                raise DtypeError(f"{name}: {field} must be an array of integers, got {typeof(array)}")
            setattr(self, field, array)
        self.shape = shape_of(name, shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the dense array, not of stored elements."""
        return math.prod(self.shape)

    @property
    def nse(self) -> int:
        """The number of stored elements ("number of specified elements"), of each batch."""
        return int(self.data.shape[-1])

    def __len__(self) -> int:
        if not self.shape:
            raise OperandError(f"a scalar sparse array has no len(): {self!r}")
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            kind = f"{self.dtype}{list(self.shape)}"
            parts = [f"nse={self.nse}", *(f"{k}={v}" for k, v in self._layout().items() if v)]
        except Exception:  # a tree whose leaves are no arrays
            return f"{name}({', '.join(repr(getattr(self, field, None)) for field in self._names)})"
        return f"{name}({kind}, {', '.join(parts)})"

    def _repr_html_(self) -> str | None:
        return runtime.html_of(self) if config.rich_arrays else None

    def _layout(self) -> dict[str, int]:
        return {}

    def block_until_ready(self) -> JAXSparse:
        """Wait until the leaves are computed, and return the array."""
        for field in self._names:
            getattr(self, field).block_until_ready()
        return self

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], PyTree]:
        """Return the stored arrays and the static data."""
        return tuple(getattr(self, field) for field in self._names), self._static()

    def _static(self) -> tuple[Any, ...]:
        return (self.shape,)

    @classmethod
    def tree_unflatten(cls, static: PyTree, leaves: PyTree) -> Self:
        """Rebuild the sparse array from leaves of any type, without checks."""
        out = object.__new__(cls)
        for field, x in zip(cls._names, leaves, strict=True):
            setattr(out, field, x)
        out._restore(*static)
        return out

    def _restore(self, *static: Any) -> None:
        (self.shape,) = static


def shape_of(name: str, shape: Any) -> Shape:
    """Check a shape: a tuple of nonnegative integers."""
    try:
        sizes = tuple(operator.index(n) for n in shape)
    except TypeError:
        sizes = (-1,)
    if any(n < 0 for n in sizes):
        raise ArgumentError(f"{name}: shape must be a tuple of non-negative integers, got {quote(shape)}")
    return sizes


class _Batched(JAXSparse):
    """The base class of BCOO and BCSR, the formats with batch axes, sparse axes and dense axes, in this order."""

    indices: Array
    indices_sorted: bool
    unique_indices: bool
    _sparse_rank: int | None = None

    def __init__(
        self,
        args: Sequence[ArrayLike],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self._check()

    def _check(self) -> None:
        raise NotImplementedError

    @property
    def nse(self) -> int:
        """The number of stored elements at each batch index ("number of specified elements")."""
        return int(self.data.shape[self.n_batch])

    @property
    def n_batch(self) -> int:
        """The number of leading batch axes: each index along them has its own indices and data."""
        return len(self.indices.shape) - self._after_batch

    _after_batch = 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes, whose positions are stored as indices."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """The number of trailing dense axes, along which all elements are stored."""
        return len(self.data.shape) - 1 - self.n_batch

    def _layout(self) -> dict[str, int]:
        return {"n_batch": self.n_batch, "n_dense": self.n_dense}

    def _static(self) -> tuple[Any, ...]:
        return self.shape, self.indices_sorted, self.unique_indices, self.n_dense

    def _restore(self, *static: Any) -> None:
        shape, self.indices_sorted, self.unique_indices, n_dense = static
        self.shape = self._mapped_shape(shape, n_dense)

    def _mapped_shape(self, shape: Shape, n_dense: int) -> Shape:
        """Return the array's shape after a transformation such as ``vmap`` or ``scan`` added or removed batch axes.

        The sizes of the batch axes are those of the transformed data and indices.

        Args:
          shape: the shape before the transformation.
          n_dense: the number of dense axes before. If the number of dense axes has changed, ``shape`` is returned
            unchanged.
        """
        leaves = [getattr(self, field) for field in self._names]
        if not all(hasattr(x, "shape") and hasattr(x, "dtype") for x in leaves):
            return shape
        try:
            extra = self.n_batch + self.n_sparse + self.n_dense - len(shape)
            count = self.n_batch
        except IndexError:
            return shape
        if not extra or self.n_dense != n_dense or min(count, count - extra) < 0:
            return shape
        sizes = [tuple(x.shape[:count]) for x in leaves]
        batch = tuple(max(n) if min(n) else 0 for n in zip(*sizes, strict=True))
        return batch + shape[count - extra :]


def _check_batches(name: str, fields: dict[str, Any], count: int, shape: Shape) -> None:
    for field, x in fields.items():
        lead = x.shape[:count]
        if len(lead) < count or any(n not in (1, m) for n, m in zip(lead, shape, strict=False)):
            raise ShapeError(
                f"{name}: {field} of shape {x.shape} does not fit shape={shape} with n_batch={count}: its first "
                f"{count} axes must be {shape[:count]}, or 1 to repeat them"
            )


@register_pytree_node_class
class BCOO(_Batched):
    """A sparse array by the indices of its elements, with batch, sparse and dense axes.

    Elements with equal indices are summed. Elements with indices outside of the shape are padding, and ignored.

    Args:
      args: ``(data, indices)``: data of shape ``(*batch, nse, *dense)`` and integers of shape
        ``(*batch, nse, n_sparse)``. A batch axis has size 1 in data, or indices, that are shared along it.
      shape: the shape of the dense array: the sizes of batch, sparse and dense axes.
      indices_sorted: a promise that the indices are in order, padding last.
      unique_indices: a promise that no two elements have the same indices, except padding.

    Raises:
      DtypeError: indices that are no integers (a TypeError).
      ShapeError, ArgumentError: shapes that do not fit each other (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[0, 1], [2, 0]])), shape=(3, 2))
    >>> matrix
    BCOO(float32[3, 2], nse=2)
    >>> print(matrix @ jnp.array([10.0, 100.0]))
    [100.   0.  20.]
    """

    if TYPE_CHECKING:  # attached by experimental/sparse/methods

        @staticmethod
        def fromdense(
            mat: ArrayLike,
            *,
            nse: int | None = None,
            n_batch: int = 0,
            n_dense: int = 0,
            index_dtype: DTypeLike = np.int32,
        ) -> BCOO: ...
        @staticmethod
        def from_scipy_sparse(
            mat: PyTree, *, index_dtype: DTypeLike = None, n_dense: int = 0, n_batch: int = 0
        ) -> BCOO: ...
        def sort_indices(self) -> BCOO: ...
        def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO: ...
        def update_layout(
            self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
        ) -> BCOO: ...

    _names = ("data", "indices")

    def _check(self) -> None:
        data, indices, shape = self.data, self.indices, self.shape
        if indices.ndim < 2:
            raise ShapeError(
                f"BCOO: indices must have at least two axes, (*batch, nse, n_sparse), got shape {indices.shape}"
            )
        batch, sparse, dense = self.n_batch, self.n_sparse, self.n_dense
        if dense < 0 or batch + sparse + dense != len(shape):
            raise ShapeError(
                f"BCOO: indices of shape {indices.shape}, (*batch, nse, n_sparse), and data of shape {data.shape}, "
                f"(*batch, nse, *dense), do not make an array of {len(shape)} axes: n_batch={batch}, "
                f"n_sparse={sparse}, n_dense={dense}, shape={shape}"
            )
        _check_batches("BCOO", {"data": data, "indices": indices}, batch, shape)
        if data.shape[batch] != indices.shape[batch]:
            raise ShapeError(
                f"BCOO: data of shape {data.shape} has {data.shape[batch]} elements and indices of shape "
                f"{indices.shape} "
                f"have {indices.shape[batch]}, with n_batch={batch}, n_dense={dense}: the numbers must be the same"
            )
        if data.shape[batch + 1 :] != shape[batch + sparse :]:
            raise ShapeError(
                f"BCOO: data of shape {data.shape} with n_batch={batch} has dense axes {data.shape[batch + 1 :]}, "
                f"which must be the last of shape={shape}"
            )

    def _with_data(self, data: Any) -> BCOO:
        """Return a copy of this array with other data and the same indices, without checks: in 3 instead of 20 µs."""
        made = object.__new__(BCOO)
        made.__dict__.update(self.__dict__)
        made.data = data
        return made


@register_pytree_node_class
class BCSR(_Batched):
    """A sparse array by compressed rows, with batch axes, one axis of rows and one of columns, and dense axes.

    Args:
      args: ``(data, indices, indptr)``: data of shape ``(*batch, nse, *dense)``, the columns of the elements, integers
        ``(*batch, nse)``, and the row pointers, ``(*batch, rows + 1)``.
      shape: the shape of the dense array: the sizes of batch axes, of rows, columns, and dense axes.
      indices_sorted: a promise that columns are in order within each row.
      unique_indices: a promise that no two elements have the same indices, except padding.

    Raises:
      DtypeError: indices that are no integers (a TypeError).
      ShapeError, ArgumentError: shapes that do not fit each other (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.BCSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> print(matrix.indptr, matrix @ jnp.ones(2))
    [0 1 3] [1. 5.]
    """

    if TYPE_CHECKING:  # attached by experimental/sparse/methods

        @staticmethod
        def fromdense(
            mat: ArrayLike,
            *,
            nse: int | None = None,
            n_batch: int = 0,
            n_dense: int = 0,
            index_dtype: DTypeLike = np.int32,
        ) -> BCSR: ...
        @staticmethod
        def from_bcoo(mat: BCOO) -> BCSR: ...
        @staticmethod
        def from_scipy_sparse(
            mat: PyTree, *, index_dtype: DTypeLike = None, n_dense: int = 0, n_batch: int = 0
        ) -> BCSR: ...
        def to_bcoo(self) -> BCOO: ...
        def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR: ...

    _names = ("data", "indices", "indptr")
    _after_batch = 1
    indptr: Array

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes, always 2."""
        return 2

    def _check(self) -> None:
        data, indices, indptr, shape = self.data, self.indices, self.indptr, self.shape
        batch, dense = self.n_batch, self.n_dense
        if indices.ndim < 1 or indptr.ndim != indices.ndim or dense < 0 or batch + 2 + dense != len(shape):
            raise ShapeError(
                f"BCSR: data of shape {data.shape}, indices of shape {indices.shape} and indptr of shape "
                f"{indptr.shape} do not make an array of shape {shape}: they must be (*batch, nse, *dense), (*batch, "
                "nse), (*batch, rows + 1)"
            )
        _check_batches("BCSR", {"data": data, "indices": indices, "indptr": indptr}, batch, shape)
        if data.shape[batch] != indices.shape[batch] or data.shape[batch + 1 :] != shape[batch + 2 :]:
            raise ShapeError(
                f"BCSR: data of shape {data.shape} and indices of shape {indices.shape} do not fit each other and "
                f"shape={shape}, with n_batch={batch}"
            )
        if indptr.shape[-1] != shape[batch] + 1:
            raise ShapeError(
                f"BCSR: indptr of shape {indptr.shape} must have {shape[batch] + 1} elements along its last axis, one "
                f"more than there are rows in shape={shape}"
            )


class _Matrix(JAXSparse):
    """The base class of the formats without batch and dense axes, which store a single matrix."""

    def __init__(self, args: Sequence[ArrayLike], *, shape: Sequence[int]) -> None:
        super().__init__(args, shape=shape)
        name = type(self).__name__
        if len(self.shape) != 2 or any(getattr(self, f).ndim != 1 for f in self._names):
            raise ShapeError(
                f"{name} takes vectors ({', '.join(self._names)}) and a shape of two axes, got shapes "
                f"{', '.join(str(getattr(self, f).shape) for f in self._names)} and shape={self.shape}"
            )
        self._check()

    def _check(self) -> None:
        raise NotImplementedError


@register_pytree_node_class
class COO(_Matrix):
    """A sparse matrix by the rows and columns of its elements.

    Args:
      args: ``(data, row, col)``, vectors of one length.
      shape: the numbers of rows and columns.
      rows_sorted, cols_sorted: promises that the rows, or the columns, are in order.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> matrix = sparse.COO((jnp.array([1.0]), jnp.array([1]), jnp.array([0])), shape=(2, 2))
    >>> print(matrix.todense())
    [[0. 0.]
     [1. 0.]]
    """

    if TYPE_CHECKING:  # attached by experimental/sparse/methods

        @staticmethod
        def fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO: ...

    _names = ("data", "row", "col")
    row: Array
    col: Array

    def __init__(
        self, args: Sequence[ArrayLike], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    def _check(self) -> None:
        if not self.data.shape == self.row.shape == self.col.shape:
            raise ShapeError(
                f"COO: data, row and col must have one length, got {self.data.shape}, {self.row.shape}, "
                f"{self.col.shape}"
            )

    def _static(self) -> tuple[Any, ...]:
        return self.shape, self._rows_sorted, self._cols_sorted

    def _restore(self, *static: Any) -> None:
        self.shape, self._rows_sorted, self._cols_sorted = static


class _Compressed(_Matrix):
    _names = ("data", "indices", "indptr")
    _major: ClassVar[int] = 0
    indices: Array
    indptr: Array

    def _check(self) -> None:
        name = type(self).__name__
        wanted = self.shape[self._major] + 1
        if self.data.shape != self.indices.shape or self.indptr.shape != (wanted,):
            raise ShapeError(
                f"{name}: data and indices must have one length, and indptr {wanted} elements for shape={self.shape}; "
                f"got {self.data.shape}, {self.indices.shape}, {self.indptr.shape}"
            )


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix by compressed rows.

    Args:
      args: ``(data, indices, indptr)``: elements and their columns, and for each row the position of its first element,
        and the end.
      shape: the numbers of rows and columns.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.CSR.fromdense(jnp.eye(2)).T
    CSC(float32[2, 2], nse=2)
    """

    if TYPE_CHECKING:  # attached by experimental/sparse/methods

        @staticmethod
        def fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR: ...


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix by compressed columns: the transpose of a :class:`CSR`.

    Args:
      args: ``(data, indices, indptr)``: elements and their rows, and for each column the position of its first element,
        and the end.
      shape: the numbers of rows and columns.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.CSC.fromdense(jnp.eye(2)) @ jnp.ones(2))
    [1. 1.]
    """

    if TYPE_CHECKING:  # attached by experimental/sparse/methods

        @staticmethod
        def fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC: ...

    _major = 1


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of new elements, the default float for None."""
    return dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "a sparse array")
