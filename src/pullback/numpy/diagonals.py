"""Diagonals and triangles of matrices, and their positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import flag, require_function
from pullback.core.array import LARGE, Array, ArrayImpl, ArrayLike
from pullback.core.dims import any_symbolic
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.trace import state
from pullback.numpy import declare
from pullback.numpy.creation import listed, ones
from pullback.numpy.index_lowering import read, write
from pullback.numpy.promotion import axis_index, known_int, memory_for, operand, shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import indexing, shapes, slicing
from pullback.primitives.arrays.scatter import scatter

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "fill_diagonal", "mask_indices", "tril",
    "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from",
]  # fmt: skip

# Diagonals ---------------------------------------------------------------------------------------------------------


def _diagonal_indices(rows: int, columns: int, k: int) -> tuple[Any, Any]:
    """Return the row indices and the column indices of the elements of diagonal ``k`` of a matrix of this size."""
    count = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    return np.arange(count) + max(-k, 0), np.arange(count) + max(k, 0)


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A diagonal of each matrix in an array.

    Args:
      a: an array with at least two axes.
      offset: which diagonal: 0 for the main one, positive above it, negative below it.
      axis1: the axis of the rows.
      axis2: the axis of the columns.

    Returns:
      The array without these axes, and with the diagonals along a new last axis.

    Raises:
      ShapeError: too few axes, or ``axis1`` and ``axis2`` are the same (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.diagonal(jnp.arange(6).reshape(2, 3), 1))
    [1 5]
    """
    x = operand("diagonal", a)
    rank = len(x.shape)
    if rank < 2:
        raise ShapeError(f"diagonal needs an array with at least two axes, got shape {x.shape}")
    first, second = axis_index(axis1, rank, "diagonal"), axis_index(axis2, rank, "diagonal")
    if first == second:
        raise ShapeError(f"diagonal: axis1 and axis2 must be different axes, both are axis {first}")
    k = known_int("diagonal", "offset", offset)
    k = max(-x.shape[first], min(k, x.shape[second])) if not any_symbolic(x.shape) else k
    if type(x) is ArrayImpl and state.trace.quick:
        return ArrayImpl(x._value.diagonal(k, first, second), x.weak_type)
    others = [i for i in range(rank) if i not in (first, second)]
    matrices = shapes.transpose(x, [*others, first, second])
    return read(matrices, (..., *_diagonal_indices(x.shape[first], x.shape[second], k)), unique=True)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """A diagonal of a matrix, or the matrix with a vector as a diagonal and zeros elsewhere.

    Args:
      v: a matrix, or a vector.
      k: which diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
      A vector or a matrix, of the dtype of ``v``.

    Raises:
      ShapeError: ``v`` is not a matrix or a vector (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.diag(jnp.array([1, 2])))
    [[1 0]
     [0 2]]
    """
    x = operand("diag", v)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise ShapeError(f"diag needs an array with one or two axes, got shape {x.shape}")
    k = known_int("diag", "k", k)
    n = x.shape[0] + abs(k)
    return write(scatter, indexing.zeros((n, n), x.dtype), _diagonal_indices(n, n, k), x, unique=True)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of an array as a diagonal; the arguments are those of :func:`diag`.

    Args:
      v: an array, whose elements are taken in row-major order.
      k: which diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
      A matrix of the dtype of ``v``, of ``v.size + abs(k)`` rows and columns.

    Raises:
      OperandError: ``v`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.diagflat(jnp.array([[1], [2]])))
    [[1 0]
     [0 2]]
    """
    x = operand("diagflat", v)
    return diag(shapes.reshape(x, (x.aval.size,)), k)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """The array with its main diagonal replaced: the elements whose indices along all axes are equal.

    Args:
      a: an array with at least two axes, of one size if there are more than two.
      val: a number, or the elements, repeated if there are too few.
      wrap: must be False.
      inplace: must be False, for arrays are immutable.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      ArgumentError: ``inplace`` or ``wrap`` is true (a ValueError).
      ShapeError: too few axes, or more than two of different sizes (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fill_diagonal(jnp.zeros((2, 2)), 3.0, inplace=False))
    [[3. 0.]
     [0. 3.]]
    """
    wrap = flag("fill_diagonal", "wrap", wrap)
    inplace = flag("fill_diagonal", "inplace", inplace)
    from pullback.numpy.indexing import repeated

    if inplace or wrap:
        raise ArgumentError(
            "fill_diagonal cannot change an array in place, because arrays are immutable, and does not wrap; "
            "inplace=False, wrap=False returns a new array"
        )
    x = operand("fill_diagonal", a)
    if len(x.shape) < 2 or (len(x.shape) > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal needs two axes, or more axes of the same size, got shape {x.shape}")
    positions = np.arange(min(x.shape))
    value = ops.convert_element_type(operand("fill_diagonal", val), x.dtype)
    value = repeated(value, len(positions)) if value.shape and len(positions) else value
    return write(scatter, x, (positions,) * len(x.shape), value, unique=True)


# Triangles ---------------------------------------------------------------------------------------------------------


def _triangle(name: str, m: Any, k: Any, lower: bool) -> Any:
    x = operand(name, m)
    if len(x.shape) < 2:
        raise ShapeError(f"{name} needs an array with at least two axes, got shape {x.shape}")
    k = known_int(name, "k", k)
    if any_symbolic(x.shape[-2:]) or not state.trace.eager:
        rows, columns = (slicing.iota_p.bind(dtype=np.dtype(np.int32), shape=x.shape[-2:], dimension=d) for d in (0, 1))
        rows = ops.add(rows, k) if k else rows
        inside = ops.ge_p.bind(rows, columns) if lower else ops.ge_p.bind(columns, rows)
        return ops.where(inside, x, shapes.full((), 0, x.dtype))
    is_small = type(x) is ArrayImpl and x.size <= _MOST_MASKED and not x.weak_type  # the zeros are strongly typed
    if is_small and (quick := declare.quickly(_host_triangle, x, _mask(*x.shape[-2:], k, lower))) is not None:
        return quick
    zero = shapes.full((), 0, x.dtype)
    if x.size >= LARGE and x.shape[-2] * x.shape[-1] >= LARGE:  # the mask may be pending
        row, column = (np.arange(n, dtype=np.int32) for n in x.shape[-2:])
        offset = np.int32(max(-x.shape[-2], min(k, x.shape[-1])))
        rows, columns = shapes.broadcast_to(ArrayImpl(row[:, None] + offset), x.shape[-2:]), ArrayImpl(column)
        return ops.where((ops.ge_p if lower else ops.le_p).bind(rows, columns), x, zero)
    return ops.where(ArrayImpl(_mask.__wrapped__(*x.shape[-2:], k, lower)), x, zero)


_MOST_MASKED = 1 << 12
"""The most elements of an array whose mask is kept for later calls."""


@lru_cache(maxsize=64)
def _mask(rows: int, columns: int, k: int, lower: bool) -> Any:
    """Return the booleans that tell which elements of a matrix are in its triangle."""
    mask = np.tri(rows, columns, max(-rows - 1, min(k, columns + 1)) - (not lower), bool)
    return mask if lower else ~mask


def _host_triangle(x: Any, mask: Any) -> Any:
    return np.where(mask, x, x.dtype.type(0))


def tril(m: ArrayLike, k: int = 0) -> Array:
    """Each matrix in an array with zeros above a diagonal.

    Args:
      m: an array with at least two axes; the matrices are in the last two.
      k: the diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
      An array of the shape and dtype of ``m``.

    Raises:
      ShapeError: too few axes (a ValueError).
      OperandError: ``m`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.tril(jnp.ones((2, 2))))
    [[1. 0.]
     [1. 1.]]
    """
    return _triangle("tril", m, k, lower=True)


def triu(m: ArrayLike, k: int = 0) -> Array:
    """Each matrix in an array with zeros below a diagonal; the arguments are those of :func:`tril`.

    Args:
      m: an array with at least two axes; the matrices are in the last two.
      k: the diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
      An array of the shape and dtype of ``m``.

    Raises:
      OperandError: ``m`` is neither an array nor a number (a TypeError).
      ShapeError: ``m`` has fewer than two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.triu(jnp.ones((2, 2))))
    [[1. 1.]
     [0. 1.]]
    """
    return _triangle("triu", m, k, lower=False)


# Positions ---------------------------------------------------------------------------------------------------------


def _arrays(positions: Any) -> tuple[Any, ...]:
    return tuple(ArrayImpl(p.astype(dtypes.default_int())) for p in positions)


def _sizes_and_diagonal(name: str, n: Any, k: Any, m: Any) -> tuple[int, int, int]:
    rows, columns = shape_tuple((n, n if m is None else m), name)
    return rows, known_int(name, "k", k), columns


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and the columns of the elements on and below a diagonal.

    Args:
      n: the number of rows.
      k: the diagonal: 0 for the main one, positive above it, negative below it.
      m: the number of columns; by default the number of rows.

    Returns:
      Two vectors of integers.

    Raises:
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.tril_indices(2))
    [0 1 1] [0 0 1]
    """
    sizes = _sizes_and_diagonal("tril_indices", n, k, m)
    return _arrays(memory_for("tril_indices", sizes, lambda: np.tril_indices(*sizes)))  # type: ignore[return-value]


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and the columns of the elements on and above a diagonal.

    Args:
      n: the number of rows.
      k: the diagonal: 0 for the main one, positive above it, negative below it.
      m: the number of columns; by default the number of rows.

    Returns:
      Two vectors of integers.

    Raises:
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.triu_indices(2))
    [0 0 1] [0 1 1]
    """
    sizes = _sizes_and_diagonal("triu_indices", n, k, m)
    return _arrays(memory_for("triu_indices", sizes, lambda: np.triu_indices(*sizes)))  # type: ignore[return-value]


def _matrix_sizes(name: str, arr: Any) -> tuple[int, int]:
    shape = listed(name, arr).shape
    if len(shape) != 2:
        raise ShapeError(f"{name} needs an array with two axes, got shape {shape}")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """:func:`tril_indices` for a matrix of the shape of ``arr``.

    Args:
      arr: a matrix, whose shape counts.
      k: the diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
      Two vectors of integers.

    Raises:
      ShapeError: ``arr`` is not a matrix (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.tril_indices_from(jnp.ones((2, 1))))
    [0 1] [0 0]
    """
    rows, columns = _matrix_sizes("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """:func:`triu_indices` for a matrix of the shape of ``arr``.

    Args:
      arr: a matrix, whose shape counts.
      k: the diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
      Two vectors of integers.

    Raises:
      ShapeError: ``arr`` is not a matrix (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.triu_indices_from(jnp.ones((1, 2))))
    [0 0] [0 1]
    """
    rows, columns = _matrix_sizes("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The positions of the elements of the main diagonal.

    Args:
      n: the size of each axis.
      ndim: the number of axes.

    Returns:
      ``ndim`` vectors of ``n`` integers.

    Raises:
      ShapeError: ``n`` or ``ndim`` is not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.diag_indices(2))
    [0 1] [0 1]
    """
    sizes = known_int("diag_indices", "n", n), known_int("diag_indices", "ndim", ndim)
    return _arrays(memory_for("diag_indices", sizes, lambda: np.diag_indices(*sizes)))


def diag_indices_from(arr: ArrayLike | Sequence[Any]) -> tuple[Array, ...]:
    """:func:`diag_indices` for an array of the shape of ``arr``, whose axes are all of one size.

    Args:
      arr: an array of at least two axes, all of one size.

    Returns:
      A vector of integers for each axis.

    Raises:
      ShapeError: ``arr`` has fewer than two axes, or axes of different sizes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.diag_indices_from(jnp.ones((2, 2))))
    [0 1] [0 1]
    """
    shape = listed("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ShapeError(f"diag_indices_from needs at least two axes of the same size, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The positions at which a function of a matrix, such as :func:`triu`, keeps elements.

    Args:
      n: the size of the matrix.
      mask_func: takes a matrix of ones and ``k``.
      k: passed to the function; it may be traced if there is a ``size``.
      size: how many positions to return; zeros follow where there are fewer. All by default.

    Returns:
      Two vectors of integers: the rows, and the columns.

    Raises:
      ArgumentError: ``mask_func`` is not a function (a TypeError and a ValueError).
      ShapeError: ``n`` is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.mask_indices(2, jnp.triu))
    [0 0 1] [0 1 1]
    """
    from pullback.numpy.indexing import nonzero

    require_function("mask_indices", "mask_func", mask_func)
    rows = known_int("mask_indices", "n", n)
    return nonzero(mask_func(ones((rows, rows), np.int32), k), size=size)
