"""Functions that join arrays along axes, and split them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import OperandError, ShapeError
from pullback.core.host_operands import NUMPY_REFUSES
from pullback.core.trace import state
from pullback.numpy.manipulation import ravel, three_axes, transpose, two_axes, unstack
from pullback.numpy.promotion import axis_index, is_sequence, known_int, operand, promote_all
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.elementwise import convert_element_type

__all__ = [
    "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack",
    "row_stack", "split", "stack", "vsplit", "vstack",
]  # fmt: skip

# Joining -----------------------------------------------------------------------------------------------------------


def _sequence(name: str, arrays: Any) -> Sequence[Any]:
    """Return ``arrays`` if it is a list or tuple; if it is one array, return its slices along the first axis.

    Raise for other arguments. ``name`` is the name of the function, for errors.
    """
    if isinstance(arrays, (list, tuple)):
        if not arrays:
            raise ShapeError(f"{name} needs at least one array")
        return arrays
    if isinstance(arrays, (Array, np.ndarray)) and len(arrays.shape):
        return unstack(operand(name, arrays))
    raise OperandError(f"{name} takes a sequence of arrays, got {arrays!r} of type {type(arrays).__name__}")


def _by_numpy(arrays: Sequence[Any], function: Callable[..., Any], *args: Any) -> ArrayImpl | None:
    """Call a NumPy function with a list of concrete arrays of one dtype, and with ``args``.

    Return None for traced arrays, for arrays of several dtypes, and if NumPy raises.
    """
    if not state.trace.quick:
        return None
    for x in arrays:
        if type(x) is not ArrayImpl:
            return None
    values = [x._value for x in arrays]
    if len({v.dtype for v in values}) != 1:
        return None
    try:
        out = function(values, *args)
    except NUMPY_REFUSES:
        return None
    return ArrayImpl(out, all(x.weak_type for x in arrays))


def _promoted(name: str, arrays: Sequence[Any], dtype: Any) -> list[Any]:
    if dtype is None:
        return promote_all(name, arrays)
    dtype = dtypes.requested_dtype(dtype, name)
    return [convert_element_type(operand(name, x), dtype) for x in arrays]


def concatenate(arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike = None) -> Array:
    """The concatenation of arrays along an axis.

    Args:
      arrays: a sequence of arrays of one shape, except along ``axis``.
      axis: the axis; None to flatten the arrays first.
      dtype: the dtype of the result; by default the promoted dtype of the arrays.

    Returns:
      An array of as many axes as the arrays; a vector if ``axis`` is None.

    Raises:
      ShapeError: no arrays, scalars, or shapes that do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.concatenate([jnp.array([1, 2]), jnp.array([3])]))
    [1 2 3]
    """
    arrays = _sequence("concatenate", arrays)
    if dtype is None and (out := _by_numpy(arrays, np.concatenate, axis)) is not None:
        return out
    xs = _promoted("concatenate", arrays, dtype)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    return _joined("concatenate", xs, axis)


def _joined(name: str, xs: Sequence[Any], axis: int) -> Any:
    """Check the shapes of arrays of one dtype, and concatenate the arrays along ``axis``."""
    first = xs[0].shape
    if not first:
        raise ShapeError(f"{name}: scalar arrays cannot be concatenated; use stack")
    axis = axis_index(axis, len(first), name)
    rest = (first[:axis], first[axis + 1 :])
    if any(len(x.shape) != len(first) or (x.shape[:axis], x.shape[axis + 1 :]) != rest for x in xs):
        shown = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"{name}: shapes must agree in every axis but axis {axis}, got {shown}")
    return slicing.concatenate(xs, axis)


def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """The concatenation of arrays along an axis; see :func:`concatenate`.

    Args:
      arrays: a sequence of arrays of one shape, except along ``axis``.
      axis: the axis; None to flatten the arrays first.

    Returns:
      An array of the dtype to which the arrays promote.

    Raises:
      ShapeError: there are no arrays, or only scalars, or the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.concat([jnp.array([1, 2]), jnp.array([3])]))
    [1 2 3]
    """
    return concatenate(arrays, axis)


def stack(arrays: ArrayLike | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike = None) -> Array:
    """Arrays of one shape, joined along a new axis.

    Args:
      arrays: a sequence of arrays.
      axis: the position of the new axis in the result.
      out: must be None.
      dtype: the dtype of the result; by default the promoted dtype of the arrays.

    Returns:
      An array with one axis more.

    Raises:
      ShapeError: no arrays, or shapes that differ (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1))
    [[1 3]
     [2 4]]
    """
    if out is not None:
        raise ShapeError("stack: out must be None, because arrays are immutable")
    arrays = _sequence("stack", arrays)
    if type(axis) is not int:
        axis = known_int("stack", "axis", axis)
    if dtype is None and (done := _by_numpy(arrays, _stack_rows if axis == 0 else np.stack, axis)) is not None:
        return done
    xs = _promoted("stack", arrays, dtype)
    shape = xs[0].shape
    if any(x.shape != shape for x in xs):
        raise ShapeError(f"stack: all arrays must have the same shape, got {', '.join(str(x.shape) for x in xs)}")
    axis = axis_index(axis, len(shape) + 1, "stack")
    return slicing.concatenate([shapes.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in xs], axis)


def _stack_rows(values: list[Any], axis: int) -> Any:
    """Do the same as ``np.stack`` along the first axis, but without a view of each array; ``axis`` is always 0."""
    shape = values[0].shape
    if not shape:
        return np.stack(values)
    if any([v.shape != shape for v in values]):  # noqa: C419  (the hot path)
        raise ValueError("shapes that differ")
    return np.concatenate(values).reshape((len(values), *shape))


def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike = None) -> Array:
    """Arrays joined along the first axis; vectors are rows.

    Args:
      tup: a sequence of arrays of one shape, except along the first axis.
      dtype: the dtype of the result; by default the dtype to which the arrays promote.

    Returns:
      An array of at least two axes.

    Raises:
      OperandError: ``tup`` is not a sequence of arrays (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.vstack([jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]])]))
    [[1 2]
     [3 4]
     [5 6]]
    """
    arrays = _sequence("vstack", tup)
    if dtype is None and (out := _by_numpy(arrays, _vstack_values)) is not None:
        return out
    return _joined("vstack", [two_axes(x) for x in _promoted("vstack", arrays, dtype)], 0)


row_stack = vstack


def _vstack_values(values: list[Any]) -> Any:
    rank = len(values[0].shape)
    if rank == 1:
        return _stack_rows(values, 0)
    return np.concatenate(values) if rank else np.vstack(values)


def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike = None) -> Array:
    """Arrays joined along the second axis, vectors along their only axis.

    Args:
      tup: a sequence of arrays of one shape, except along the axis.
      dtype: the dtype of the result; by default the dtype to which the arrays promote.

    Returns:
      An array of at least one axis.

    Raises:
      OperandError: ``tup`` is not a sequence of arrays (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.hstack([jnp.array([[1], [2]]), jnp.array([[3], [4]])]))
    [[1 3]
     [2 4]]
    """
    arrays = _sequence("hstack", tup)
    if dtype is None and (out := _by_numpy(arrays, np.hstack)) is not None:
        return out
    xs = [x if x.shape else shapes.reshape(x, (1,)) for x in _promoted("hstack", arrays, dtype)]
    return _joined("hstack", xs, 0 if len(xs[0].shape) == 1 else 1)


def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike = None) -> Array:
    """Arrays joined along the third axis.

    Args:
      tup: a sequence of arrays; a vector of n elements counts as shape (1, n, 1), a matrix as (m, n, 1).
      dtype: the dtype of the result; by default the dtype to which the arrays promote.

    Returns:
      An array of at least three axes.

    Raises:
      OperandError: ``tup`` is not a sequence of arrays (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.dstack([jnp.ones((2, 3)), jnp.zeros((2, 3))]).shape
    (2, 3, 2)
    """
    arrays = _sequence("dstack", tup)
    if dtype is None and (out := _by_numpy(arrays, np.dstack)) is not None:
        return out
    return _joined("dstack", [three_axes(x) for x in _promoted("dstack", arrays, dtype)], 2)


def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Vectors, and the columns of matrices, as the columns of one matrix.

    Args:
      tup: a sequence of vectors and matrices with equally many elements or rows.

    Returns:
      A matrix of the dtype to which they promote.

    Raises:
      OperandError: ``tup`` is not a sequence of arrays (a TypeError).
      ShapeError: the arrays have different lengths (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])]))
    [[1 3]
     [2 4]]
    """
    arrays = _sequence("column_stack", tup)
    if (out := _by_numpy(arrays, np.column_stack)) is not None:
        return out
    xs = promote_all("column_stack", arrays)
    return _joined("column_stack", [transpose(two_axes(x)) if len(x.shape) < 2 else x for x in xs], 1)


def block(arrays: ArrayLike | Sequence[Any]) -> Array:
    """An array assembled from nested lists of blocks: the innermost lists are joined along the last axis.

    Args:
      arrays: an array or a number, or lists of these, all nested equally deep.

    Returns:
      An array of the dtype to which the blocks promote.

    Raises:
      ShapeError: lists are empty or not nested equally deep, or the shapes of blocks do not fit (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]]))
    [[1. 0. 0.]
     [0. 1. 0.]
     [1. 1. 1.]]
    """
    depth = _depth(arrays)
    leaves = _leaves(arrays)
    rank = max(depth, *(len(x.shape) for x in leaves))
    promoted = iter(promote_all("block", leaves))

    def build(item: Any, level: int) -> Any:
        if isinstance(item, list):
            return _joined("block", [build(p, level + 1) for p in item], rank - depth + level)
        x = next(promoted)
        return shapes.reshape(x, (*(1,) * (rank - len(x.shape)), *x.shape))

    return build(arrays, 0)


def _depth(item: Any) -> int:
    """Return how deeply the lists in ``item`` are nested: 0 if it is not a list. Raise if items differ in depth."""
    if not isinstance(item, list):
        return 0
    depths = {_depth(p) for p in item}
    if len(depths) != 1:
        raise ShapeError("block: lists must be non-empty and nested equally deep")
    return depths.pop() + 1


def _leaves(item: Any) -> list[Any]:
    return [leaf for p in item for leaf in _leaves(p)] if isinstance(item, list) else [operand("block", item)]


# Splitting ---------------------------------------------------------------------------------------------------------


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Split an array along an axis; return the list of its sections.

    Args:
      ary: an array.
      indices_or_sections: the number of equal sections, or the positions at which to cut.
      axis: the axis.

    Returns:
      A list of arrays of the dtype of ``ary``.

    Raises:
      ShapeError: the axis cannot be divided into equal sections (a TypeError and a ValueError).
      OperandError: ``ary`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> [x.tolist() for x in jnp.split(jnp.arange(5), [2, 4])]
    [[0, 1], [2, 3], [4]]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Split an array along an axis, into sections whose sizes may differ by one; return their list.

    Args:
      ary: an array.
      indices_or_sections: the number of sections, or the positions at which to cut.
      axis: the axis.

    Returns:
      A list of arrays of the dtype of ``ary``.

    Raises:
      OperandError: ``ary`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: there are no sections, or more than a program needs (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> [x.tolist() for x in jnp.array_split(jnp.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return _split("array_split", ary, indices_or_sections, axis, equal=False)


_MOST_EMPTY = 1 << 20
"""The most parts that an axis is divided into which has fewer elements, so that the others are empty."""


def _split(name: str, ary: Any, where: Any, axis: int, equal: bool = True) -> list[Any]:
    x = operand(name, ary)
    axis = axis_index(axis, len(x.shape), name)
    n = x.shape[axis]
    if is_sequence(where):
        cut_points = [known_int(name, "a position at which to cut", i) for i in where]
        cuts = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in cut_points), n]
    else:
        count = known_int(name, "the number of parts", where)
        if count < 1 or (equal and n % count):
            raise ShapeError(
                f"{name}: axis {axis} of an array of shape {x.shape} cannot be divided into {count} equal chunks"
            )
        if count > max(n, _MOST_EMPTY):
            raise ShapeError(f"{name}: an axis of {n} elements cannot be divided into {count} chunks")
        size, more = divmod(n, count)
        cuts = [i * size + min(i, more) for i in range(count + 1)]
    return [slicing.slice_in_dim(x, start, max(start, stop), axis) for start, stop in pairwise(cuts)]


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along its first axis; see :func:`split`.

    Args:
      ary: an array of at least one axis.
      indices_or_sections: the number of equal sections, or the positions at which to cut.

    Returns:
      A list of arrays of the dtype of ``ary``.

    Raises:
      OperandError: ``ary`` is neither an array nor a number (a TypeError).
      ShapeError: the axis cannot be divided into equal sections (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> [x.shape for x in jnp.vsplit(jnp.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along its second axis, a vector along its only axis; see :func:`split`.

    Args:
      ary: an array of at least one axis.
      indices_or_sections: the number of equal sections, or the positions at which to cut.

    Returns:
      A list of arrays of the dtype of ``ary``.

    Raises:
      OperandError: ``ary`` is neither an array nor a number (a TypeError).
      ShapeError: the axis cannot be divided into equal sections (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> [x.shape for x in jnp.hsplit(jnp.ones((4, 2)), 2)]
    [(4, 1), (4, 1)]
    """
    x = operand("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along its third axis; see :func:`split`.

    Args:
      ary: an array of at least three axes.
      indices_or_sections: the number of equal sections, or the positions at which to cut.

    Returns:
      A list of arrays of the dtype of ``ary``.

    Raises:
      OperandError: ``ary`` is neither an array nor a number (a TypeError).
      AxisError: ``ary`` has fewer than three axes (a ValueError and an IndexError).
      ShapeError: the axis cannot be divided into equal sections (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> [x.shape for x in jnp.dsplit(jnp.ones((4, 2, 2)), 2)]
    [(4, 2, 1), (4, 2, 1)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)
