# long: because there are many functions, each with its docstring
"""Sorting, searching, and sets of values.

Functions whose result has one element for each distinct value need concrete arrays, or ``size``, the number of elements
to return. Missing elements are then filled in, and further ones dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ConcretizationTypeError, DtypeValueError, ShapeError
from pullback.numpy.logic import equal
from pullback.numpy.promotion import axis_index, named, number_operand, operand, promote_all, sequence
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays import sorting as prims
from pullback.primitives.arrays.slicing import concatenate, iota, rev, slice_in_dim
from pullback.primitives.checks import check_positions, known_int
from pullback.primitives.elementwise import convert_element_type

__all__ = [
    "argpartition", "argsort", "intersect1d", "isin", "lexsort", "partition", "searchsorted", "setdiff1d", "setxor1d",
    "sort", "sort_complex", "top_k", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip

_INT32 = np.dtype(np.int32)

# Sorting -----------------------------------------------------------------------------------------------------------


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """Return ``a`` as an array, and ``axis`` as a position from 0 on; if ``axis`` is None, flatten the array.

    ``name`` is the name of the function, for errors.
    """
    x = number_operand(name, a)
    if axis is None:
        x = shapes.reshape(x, (x.size,))
    return x, axis_index(-1 if axis is None else axis, len(x.shape), name)


def _refuse(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise ArgumentError(f"{name}: the argument kind is not supported; pass stable=True or False; got {kind!r}")
    if order is not None:
        raise ArgumentError(
            f"{name}: the argument order is not supported, because arrays have no fields; got {order!r}"
        )


def sort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False,
) -> Array:  # fmt: skip
    """The elements in increasing order along an axis, NaN last.

    Args:
      a: an array; complex numbers are ordered by their real parts, then by their imaginary parts.
      axis: the axis; None for all elements.
      kind, order: not supported.
      stable: whether equal elements keep their order.
      descending: whether to return them in decreasing order, NaN first.

    Returns:
      An array of the shape and dtype of ``a``; a vector if ``axis`` is None.

    Raises:
      ShapeError: the axis is out of range (a  ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.sort(jnp.array([3.0, 1.0, 2.0])))
    [1. 2. 3.]
    """
    if stable is not True:
        stable = flag("sort", "stable", stable)
    if descending is not False:
        descending = flag("sort", "descending", descending)
    _refuse("sort", kind, order)
    x, axis = _along("sort", a, axis)
    if not descending:
        return prims.sort([x], axis, stable)[0]
    return rev(prims.sort([rev(x, (axis,))], axis, stable)[0], (axis,))


def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False, dtype: DTypeLike = None,
) -> Array:  # fmt: skip
    """The positions of the elements in increasing order along an axis, NaN last.

    Args:
      a, axis, kind, order, stable, descending: as in :func:`sort`.
      dtype: the dtype of the result; by default the default integer.

    Returns:
      Integers of the shape of ``a``; a vector if ``axis`` is None.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ArgumentError: ``stable`` or ``descending`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.argsort(jnp.array([3.0, 1.0, 2.0])))
    [1 2 0]
    """
    if stable is not True:
        stable = flag("argsort", "stable", stable)
    if descending is not False:
        descending = flag("argsort", "descending", descending)
    _refuse("argsort", kind, order)
    x, axis = _along("argsort", a, axis)
    index_dtype = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "argsort")
    if not descending:
        return prims.argsort([x], axis, index_dtype)[-1]
    backwards = prims.argsort([rev(x, (axis,))], axis, index_dtype)[-1]
    return rev(ops.sub(x.shape[axis] - 1, backwards), (axis,))


def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16) -> Array:
    """The positions of elements in increasing order of several keys; the last key is the most significant.

    Args:
      keys: a sequence of arrays of one shape, or an array with a key in each row.
      axis: the axis of the keys.
      batch_size: without effect: all keys are compared in one sort.

    Returns:
      Integers of the shape of one key.

    Raises:
      ArgumentError: there are no keys (a TypeError).
      ShapeError: the shapes of the keys differ, or ``keys`` is a scalar (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([1, 0, 1]))))
    [1 2 0]
    """
    if isinstance(keys, (Array, np.ndarray)):
        stacked = operand("lexsort", keys)
        if not stacked.shape:
            raise ShapeError("lexsort: an array of keys needs at least one axis, got shape ()")
        columns = [shapes.squeeze(slice_in_dim(stacked, i, i + 1, 0), (0,)) for i in range(stacked.shape[0])]
    else:
        columns = [operand("lexsort", k) for k in sequence("lexsort", keys)]
    if not columns:
        raise ArgumentError("lexsort needs at least one key, got none")
    index_dtype = dtypes.default_int()
    if not columns[0].shape:
        return shapes.full((), 0, index_dtype)
    axis = axis_index(axis, len(columns[0].shape), "lexsort")
    return prims.argsort(columns[::-1], axis, index_dtype)[-1]


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements in an order in which element ``kth`` has its sorted position, and no later element is smaller.

    Args:
      a, axis: as in :func:`sort`.
      kth: a position along the axis.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.partition(jnp.array([3.0, 1.0, 2.0]), 1)[1])
    2.0
    """
    x, axis = _along("partition", a, axis)
    axis_index(kth, x.shape[axis], "partition: kth")
    return prims.sort([x], axis)[0]


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions of the elements in the order of :func:`partition`.

    Args:
      a, kth, axis: as in :func:`partition`.

    Returns:
      Integers of the shape of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.argpartition(jnp.array([3.0, 1.0, 2.0]), 1)[1])
    2
    """
    x, axis = _along("argpartition", a, axis)
    axis_index(kth, x.shape[axis], "argpartition: kth")
    return prims.argsort([x], axis, dtypes.default_int())[-1]


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """Return the ``k`` largest or smallest elements along an axis, and their positions.

    Args:
      a: an array of real numbers or booleans.
      k: the number of elements, from 0 to the size of the axis; static.
      axis: the axis.
      mode: ``"largest"``, where NaN counts as the largest, or ``"smallest"``, where NaN comes last too.
      sorted: without effect: the elements are always in order, the largest or the smallest first.

    Returns:
      The elements, in the dtype of ``a``, and their int32 positions; both have ``k`` elements along the axis. Of equal
      elements the first come first.

    Raises:
      ShapeError: ``k`` or the axis is out of range (a ValueError).
      ArgumentError: ``mode`` is another word (a ValueError).
      DtypeError: complex numbers (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> values, positions = jnp.top_k(jnp.array([3, 1, 2]), 2, mode="smallest")
    >>> print(values, positions)
    [1 2] [1 2]
    """
    x, axis = _along("top_k", a, axis)
    k, size = known_int("top_k", "k", k), x.shape[axis]
    flag("top_k", "sorted", sorted)
    if mode not in ("largest", "smallest"):
        raise ArgumentError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    if dtypes.is_complex(x.dtype):
        raise DtypeValueError(f"top_k takes real numbers or booleans, got {dtypes.short_name(x.dtype)}")
    if not 0 <= k <= size:
        raise ShapeError(f"top_k: k must be from 0 to {size}, the size of axis {axis} of shape {x.shape}, got {k}")
    if mode == "largest":
        values, positions = prims.top_k_p.bind(x, k=k, axis=axis)
        return values, positions
    values, positions = prims.argsort([x], axis, _INT32)
    return slice_in_dim(values, 0, k, axis), slice_in_dim(positions, 0, k, axis)


def sort_complex(a: ArrayLike) -> Array:
    """The elements, as complex numbers, in order of their real parts, then of their imaginary parts.

    Args:
      a: an array, sorted along its last axis.

    Returns:
      Complex numbers of the shape of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.sort_complex(jnp.array([2.0, 1.0])))
    [1.+0.j 2.+0.j]
    """
    x = operand("sort_complex", a)
    return sort(convert_element_type(x, dtypes.to_complex(x.dtype)))


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """The positions at which to insert values in a sorted array.

    Args:
      a: an array of one axis, in increasing order.
      v: an array of values.
      side: ``"left"`` for the first suitable position, ``"right"`` for the last.
      sorter: positions that sort ``a``, if it is not sorted.
      method: accepted for compatibility.

    Returns:
      int32 positions of the shape of ``v``.

    Raises:
      ShapeError: ``a`` does not have one axis (a ValueError).
      ArgumentError: an unknown ``side`` or ``method`` (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.searchsorted(jnp.array([1.0, 2.0, 2.0, 3.0]), 2.0, side="right"))
    3
    """
    if not is_listed(side, ("left", "right")):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if not is_listed(method, ("compare_all", "scan", "scan_unrolled", "sort")):
        raise ArgumentError(
            f"searchsorted: method must be 'compare_all', 'scan', 'scan_unrolled' or 'sort', got {method!r}"
        )
    x, values = operand("searchsorted", a), operand("searchsorted", v)
    if len(x.shape) != 1:
        raise ShapeError(f"searchsorted takes a sorted array of one axis, got shape {x.shape}")
    if sorter is not None:
        if np.ndim(sorter) != 1:
            raise ShapeError(f"searchsorted: sorter must have one axis, got shape {np.shape(sorter)}")
        x = prims.take_along_axis(x, prims.clip_indices(operand("searchsorted", sorter), x.shape[0]), 0)
    return shapes.reshape(positions("searchsorted", x, shapes.reshape(values, (values.size,)), side), values.shape)


def positions(name: str, ordered: Any, values: Any, side: str) -> Any:
    """The positions at which to insert ``values`` in the sorted vector ``ordered``: ``side`` is as in ``searchsorted``.

    Integers of two dtypes are compared by value.
    """
    index_dtype = _INT32 if ordered.size < 2**31 else np.dtype(np.int64)
    if not (dtypes.is_integer(ordered.dtype) and dtypes.is_integer(values.dtype)):
        ordered, values = promote_all(name, (ordered, values))
        return prims.searchsorted(ordered, values, side, index_dtype)
    dtype = dtypes.integer_for(ordered.dtype, values.dtype)
    common = ordered.dtype if dtype is None else dtype
    pair = convert_element_type(ordered, common), convert_element_type(values, common)
    found = prims.searchsorted(*pair, side, index_dtype)
    if dtype is not None:
        return found
    if dtypes.is_unsigned(common):
        return ops.where(ops.lt(values, 0), 0, found)
    return ops.where(ops.gt(values, int(dtypes.iinfo(common).max)), ordered.shape[0], found)


# Selection of elements ---------------------------------------------------------------------------------------------


def _take(x: Any, indices: Any) -> Any:
    return prims.take_along_axis(x, indices, 0)


def _size_of(name: str, count: Any, size: int | None) -> int:
    """Return the number of elements of a result: ``size`` if it is not None, otherwise ``count``.

    Raise if ``count`` is needed and traced. ``name`` is the name of the function, for errors.
    """
    if size is None:
        try:
            return int(count)
        except ConcretizationTypeError as error:
            raise ConcretizationTypeError(
                f"{name}: the number of elements depends on traced values, so pass size. {error}"
            ) from None
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise ArgumentError(f"{name}: size must be a non-negative int, got {size!r}")
    return int(size)


def _selected(name: str, mask: Any, size: int | None) -> tuple[Any, Any]:
    """Return the positions of the true elements of a mask, padded or cut off to ``size`` elements if that is not None.

    Args:
      name: the name of the function, for errors.
      mask: a vector of booleans.
      size: the number of positions to return, or None for all.

    Returns:
      The positions, 0 for padding; and booleans: False for padding.
    """
    n = mask.shape[0]
    if n == 0:
        count = _size_of(name, shapes.full((), 0, _INT32), size)
        return shapes.full((count,), 0, _INT32), shapes.full((count,), False, np.dtype(bool))
    check_positions(name, n, _INT32)
    so_far = reductions.cumsum(convert_element_type(mask, _INT32))
    total = shapes.squeeze(slice_in_dim(so_far, n - 1, n, 0), (0,))
    count = _size_of(name, total, size)
    ranks = iota(_INT32, (count,), 0)
    indices = prims.searchsorted(so_far, ops.add(ranks, 1), "left", _INT32)
    found = ops.lt(ranks, total)
    return ops.where(found, indices, 0), found


def _fill(name: str, values: Any, found: Any, fill_value: Any, default: Any = None) -> Any:
    """Replace the elements, or rows, of ``values`` that are padding.

    Args:
      name: the name of the function, for errors.
      values: the array.
      found: for each element along the first axis whether it is not padding.
      fill_value: the value of the padding; None for ``default``.
      default: the value if ``fill_value`` is None; if this is None too, the first element of ``values``.
    """
    if fill_value is None:
        if default is not None:
            return ops.where(found, values, default)
        fill = slice_in_dim(values, 0, min(1, values.shape[0]), 0)
    else:
        fill = convert_element_type(operand(name, fill_value), values.dtype)
    missing = shapes.reshape(found, (*found.shape, *(1,) * (len(values.shape) - 1)))
    return ops.where(missing, values, fill)


def _flat_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = promote_all(name, (number_operand(name, x), number_operand(name, y)))
    return shapes.reshape(x, (x.size,)), shapes.reshape(y, (y.size,))


def _starts(x: Any, equal_nan: bool = True) -> Any:
    """Return a mask of the elements, or rows, of a sorted array that differ from the previous one: starts of groups.

    ``equal_nan`` says whether NaN equals NaN.
    """
    n = x.shape[0]
    first = shapes.full((min(n, 1),), True, np.dtype(bool))
    if n <= 1:
        return first
    this, previous = slice_in_dim(x, 1, n, 0), slice_in_dim(x, 0, n - 1, 0)
    differ = ops.ne_p.bind(this, previous)
    if equal_nan and dtypes.is_inexact(x.dtype):
        both_nan = ops.and_p.bind(ops.ne_p.bind(this, this), ops.ne_p.bind(previous, previous))
        differ = ops.and_p.bind(differ, ops.not_p.bind(both_nan))
    return concatenate([first, reductions.reduce_or(differ, range(1, len(x.shape)))], 0)


# Distinct values ---------------------------------------------------------------------------------------------------


@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = False, return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True,
) -> Array: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any: ...  # fmt: skip
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct elements, in increasing order.

    Args:
      ar: an array.
      return_index: whether to return the first position of each, too.
      return_inverse: whether to return, for each element, its index among the distinct elements, too.
      return_counts: whether to return the number of occurrences of each, too.
      axis: the axis whose slices are compared; None to compare elements.
      equal_nan: whether all NaN are one value.
      size: the number of values to return; required if ``ar`` is traced.
      fill_value: the value of missing elements; by default the smallest one.
      sorted: accepted for compatibility: the values are sorted.

    Returns:
      An array, or a tuple of it and the requested others.

    Raises:
      ConcretizationTypeError: ``ar`` is traced and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.unique(jnp.array([3, 1, 3, 2])))
    [1 2 3]
    """
    if sorted is not True:
        sorted = flag("unique", "sorted", sorted)
    if return_inverse is not False:
        return_inverse = flag("unique", "return_inverse", return_inverse)
    if return_index is not False:
        return_index = flag("unique", "return_index", return_index)
    if return_counts is not False:
        return_counts = flag("unique", "return_counts", return_counts)
    if equal_nan is not True:
        equal_nan = flag("unique", "equal_nan", equal_nan)
    x = number_operand("unique", ar)
    if axis is None:
        rows, shape = shapes.reshape(x, (x.size,)), x.shape
        axis = 0
    else:
        axis = axis_index(axis, len(x.shape), "unique")
        rows, shape = shapes.moveaxis(x, axis, 0), (x.shape[axis],)
    if rows.shape[0] == 0 and size and fill_value is None:
        raise ArgumentError(f"unique: there are no values for size={size}, so pass fill_value")
    values, index, inverse, counts = _unique(rows, equal_nan, size, fill_value)
    out = [shapes.moveaxis(values, 0, axis)]
    if return_index:
        out.append(index)
    if return_inverse:
        out.append(shapes.reshape(inverse, shape))
    if return_counts:
        out.append(counts)
    return out[0] if len(out) == 1 else tuple(out)


def _unique(x: Any, equal_nan: bool, size: int | None, fill_value: Any) -> tuple[Any, Any, Any, Any]:
    """Find the distinct rows of an array, or the distinct elements of a vector.

    Args:
      x: the array or vector.
      equal_nan: whether NaN equals NaN.
      size: the number of distinct rows to return, or None for all.
      fill_value: the value of the padding, if there are fewer than ``size``.

    Returns:
      The distinct rows; for each of these the position of its first occurrence; for each row of ``x`` its index among
      the distinct rows; and for each distinct row the number of occurrences.
    """
    n = x.shape[0]
    dtype = dtypes.default_int()
    if n == 0:
        fill = convert_element_type(operand("unique", 0 if fill_value is None else fill_value), x.dtype)
        values = shapes.broadcast_to(fill, (size or 0, *x.shape[1:]))
        none = shapes.full((size or 0,), 0, dtype)
        return values, none, shapes.full((0,), 0, dtype), none
    order, ordered = _sorted_rows(x, dtype)
    starts = _starts(ordered, equal_nan)
    indices, found = _selected("unique", starts, size)
    values = _take(ordered, shapes.reshape(indices, (*indices.shape, *(1,) * (len(x.shape) - 1))))
    index = _take(order, indices)
    group = ops.sub(reductions.cumsum(convert_element_type(starts, dtype)), 1)
    inverse = prims.add_along_axis(group, order, 0, n, unique=True)
    ranks = iota(dtype, indices.shape, 0)
    counts = ops.sub(*[prims.searchsorted(group, ranks, side, dtype) for side in ("right", "left")])
    return _fill("unique", values, found, fill_value), index, inverse, counts


def _sorted_rows(x: Any, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Sort the rows of ``x``; return the original positions of the sorted rows, and the sorted rows.

    The positions are integers of type ``dtype``.
    """
    if len(x.shape) == 1:
        ordered, order = prims.argsort([x], 0, dtype)
        return order, ordered
    if not x.size:
        return iota(dtype, (x.shape[0],), 0), x
    flat = shapes.reshape(x, (x.shape[0], x.size // x.shape[0]))
    columns = [shapes.squeeze(slice_in_dim(flat, j, j + 1, 1), (1,)) for j in range(flat.shape[1])]
    order = prims.argsort(columns, 0, dtype)[-1]
    return order, _take(x, shapes.reshape(order, (x.shape[0], *(1,) * (len(x.shape) - 1))))


class UniqueAll(NamedTuple):
    """The distinct values of an array, their first positions, the index of each element among them, their counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The distinct values of an array, and their counts."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The distinct values of an array, and the index of each element among them."""

    values: Array
    inverse_indices: Array


@named
def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements; each NaN is one.

    Args:
      x, size, fill_value: as in :func:`unique`.

    Returns:
      A vector of the dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``x`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.unique_values(jnp.array([3, 1, 3])))
    [1 3]
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


@named
def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The distinct elements, and their counts; each NaN is one.

    Args:
      x, size, fill_value: as in :func:`unique`.

    Returns:
      A pair of vectors: ``values`` and ``counts``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``x`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.unique_counts(jnp.array([3, 1, 3])).counts)
    [1 2]
    """
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


@named
def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The distinct elements, and the index of each element among them; each NaN is one.

    Args:
      x, size, fill_value: as in :func:`unique`.

    Returns:
      A pair: ``values``, a vector, and ``inverse_indices``, integers of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``x`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices)
    [1 0 1]
    """
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


@named
def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements, their first positions, the index of each element, their counts; each NaN is one.

    Args:
      x, size, fill_value: as in :func:`unique`.

    Returns:
      A tuple of four arrays: ``values``, ``indices``, ``inverse_indices`` and ``counts``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``x`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.unique_all(jnp.array([3, 1, 3])).indices)
    [1 0]
    """
    return UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


# Sets --------------------------------------------------------------------------------------------------------------


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among ``test_elements``; NaN never is.

    Args:
      element: an array.
      test_elements: an array of elements to compare with.
      assume_unique: accepted for compatibility.
      invert: whether to invert the result.
      method: accepted for compatibility.

    Returns:
      Booleans of the shape of ``element``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ArgumentError: the method is unknown (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1])))
    [ True False  True]
    """
    if invert is not False:
        invert = flag("isin", "invert", invert)
    if assume_unique is not False:
        assume_unique = flag("isin", "assume_unique", assume_unique)
    if not is_listed(method, ("auto", "compare_all", "binary_search", "sort")):
        raise ArgumentError(f"isin: method must be 'auto', 'compare_all', 'binary_search' or 'sort', got {method!r}")
    x, tests = operand("isin", element), operand("isin", test_elements)
    flat = shapes.reshape(x, (x.size,))
    member = _is_member(flat, _ordered(tests, x.dtype))
    return shapes.reshape(ops.not_p.bind(member) if invert else member, x.shape)


def _ordered(tests: Any, dtype: np.dtype[Any]) -> Any:
    """Return the elements of an array as a sorted vector; a weak integer is converted to ``dtype`` if that is inexact.

    What is compared with elements of ``dtype`` is then promoted under strict promotion too.
    """
    if tests.weak_type and dtypes.is_inexact(dtype) and not dtypes.is_inexact(tests.dtype):
        tests = ops.convert_element_type(tests, dtype)
    return prims.sort([shapes.reshape(tests, (tests.size,))], 0)[0]


def _is_member(x: Any, ordered: Any) -> Any:
    """Return for each element of the vector ``x`` whether it is in the sorted vector ``ordered``.

    The dtypes of the vectors may differ.
    """
    n = ordered.shape[0]
    if n == 0:
        return shapes.full(x.shape, False, np.dtype(bool))
    return equal(_take(ordered, prims.clip_indices(positions("isin", ordered, x, "left"), n)), x)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of two arrays, in increasing order.

    Args:
      ar1, ar2: arrays.
      size, fill_value: as in :func:`unique`.

    Returns:
      A vector of the dtype to which both promote.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``ar1`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3])))
    [1 2 3]
    """
    return unique(concatenate(_flat_pair("union1d", ar1, ar2), 0), size=size, fill_value=fill_value)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of one array that are not in another, in increasing order.

    Args:
      ar1, ar2: arrays.
      assume_unique: a promise that no element of ``ar1`` occurs twice; the result keeps their order.
      size, fill_value: as in :func:`unique`, but 0 is filled in by default.

    Returns:
      A vector of the dtype of ``ar1``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``ar1`` is traced, and there is no ``size`` (a TypeError).
      ArgumentError: ``assume_unique`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2])))
    [1 3]
    """
    if assume_unique is not False:
        assume_unique = flag("setdiff1d", "assume_unique", assume_unique)
    x, y = number_operand("setdiff1d", ar1), number_operand("setdiff1d", ar2)
    x = shapes.reshape(x, (x.size,))
    if not assume_unique:
        x = prims.sort([x], 0)[0]
    mask = ops.not_p.bind(_is_member(x, _ordered(y, x.dtype)))
    if not assume_unique:
        mask = ops.and_p.bind(mask, _starts(x))
    return _compressed("setdiff1d", x, mask, size, fill_value, 0)


def _compressed(name: str, x: Any, mask: Any, size: int | None, fill_value: Any, default: Any = None) -> Any:
    """Return the elements of ``x`` where ``mask`` is true, padded or cut off to ``size`` elements if that is not None.

    Args:
      name: the name of the function, for errors.
      x: the vector.
      mask: a vector of booleans.
      size: the number of elements to return, or None for all.
      fill_value: the value of the padding; None for ``default``.
      default: the value if ``fill_value`` is None; if this is None too, the first element.
    """
    indices, found = _selected(name, mask, size)
    if x.shape[0] == 0:
        x = shapes.full((1,), 0, x.dtype)
    return _fill(name, _take(x, indices), found, fill_value, default)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    return_indices: Literal[True],
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any: ...
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """The distinct elements that two arrays have in common, in increasing order.

    Args:
      ar1, ar2: arrays.
      assume_unique: accepted for compatibility.
      return_indices: whether to return the first position of each in both arrays, too.
      size, fill_value: as in :func:`unique`; missing positions are the size of the array.

    Returns:
      An array, or a tuple of three if ``return_indices``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``ar1`` is traced, and there is no ``size`` (a TypeError).
      ArgumentError: a flag is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 5])))
    [2 3]
    """
    if return_indices is not False:
        return_indices = flag("intersect1d", "return_indices", return_indices)
    if assume_unique is not False:
        assume_unique = flag("intersect1d", "assume_unique", assume_unique)
    x, y = _flat_pair("intersect1d", ar1, ar2)
    dtype = dtypes.default_int()
    (x, x_order), (y, y_order) = prims.argsort([x], 0, dtype), prims.argsort([y], 0, dtype)
    mask = ops.and_p.bind(_starts(x), _is_member(x, y))
    values = _compressed("intersect1d", x, mask, size, fill_value)
    if not return_indices:
        return values
    indices, found = _selected("intersect1d", mask, values.shape[0])
    if not x.size or not y.size:
        behind = [shapes.full(values.shape, v.size, dtype) for v in (x, y)]
        return values, *behind
    y_indices = prims.clip_indices(prims.searchsorted(y, _take(x, indices), "left", _INT32), y.size)
    return (
        values,
        ops.where(found, _take(x_order, indices), x.size),
        ops.where(found, _take(y_order, y_indices), y.size),
    )


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements that are in only one of two arrays, in increasing order.

    Args:
      ar1, ar2: arrays.
      assume_unique: accepted for compatibility.
      size, fill_value: as in :func:`unique`.

    Returns:
      A vector of the dtype to which both promote.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``ar1`` is traced, and there is no ``size`` (a TypeError).
      ArgumentError: ``assume_unique`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.setxor1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 5])))
    [1 5]
    """
    if assume_unique is not False:
        assume_unique = flag("setxor1d", "assume_unique", assume_unique)
    x, y = _flat_pair("setxor1d", ar1, ar2)
    both = prims.sort([concatenate([x, y], 0)], 0)[0]
    shared = ops.and_p.bind(*[_is_member(both, prims.sort([v], 0)[0]) for v in (x, y)])
    return _compressed("setxor1d", both, ops.and_p.bind(_starts(both), ops.not_p.bind(shared)), size, fill_value)
