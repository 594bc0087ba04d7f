# long: because there are many functions, each with its docstring
"""Functions that change shapes and axes, broadcast arrays, and repeat and reorder their elements."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, overload

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.backends.host import moves
from pullback.core.annotations import Axes, ShapeLike
from pullback.core.arguments import typed
from pullback.core.array import Array, ArrayImpl, ArrayLike, refuse_masked
from pullback.core.elsewhere import is_here
from pullback.core.errors import DtypeError, InconclusiveDimensionOperation, ShapeError, TracerArrayConversionError
from pullback.core.trace import state
from pullback.core.types import Shape
from pullback.numpy.promotion import (
    AllAxes,
    another,
    axis_index,
    known_int,
    memory_for,
    named,
    operand,
    sequence_of,
    several,
    shape_tuple,
    size_of,
)
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.transforms.programs.placement import spread

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims",
    "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "repeat", "reshape", "roll",
    "rollaxis", "rot90", "squeeze", "swapaxes", "tile", "transpose", "unstack",
]  # fmt: skip

# Shapes ------------------------------------------------------------------------------------------------------------


def reshape(
    a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None, out_sharding: OutSharding = None
) -> Array:
    """The elements in another shape.

    Args:
      a: an array.
      shape: an int or a sequence of ints, one of them may be -1: the size that fits.
      order: ``"C"`` if the last axis changes fastest, ``"F"`` if the first one does.
      copy: accepted for compatibility; arrays are immutable.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape`` and of the dtype of ``a``.

    Raises:
      ShapeError: the sizes do not fit (a TypeError and a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.reshape(jnp.arange(6), (2, -1)))
    [[0 1 2]
     [3 4 5]]
    """
    if out_sharding is not None:
        return spread(partial(reshape, shape=shape, order=order, copy=copy), [a], out_sharding, "reshape")
    x = a if isinstance(a, Array) else operand("reshape", a)
    have = x.shape
    if type(shape) is not tuple or not all([type(n) is int for n in shape]):  # noqa: C419  (the hot path)
        shape = _sizes_and_unknown(shape)
    sizes = _target_shape(have, shape)
    if type(order) is not str or order not in ("C", "F", "A"):
        raise ShapeError(f"reshape: order must be 'C', 'F' or 'A', got {order!r}")
    if order == "F":
        return transpose(shapes.reshape(transpose(x), sizes[::-1]))
    return x if sizes == have else state.trace.process(shapes.reshape_p, (x,), {"new_sizes": sizes})


def _sizes_and_unknown(shape: Any) -> Shape:
    """Convert a shape to a tuple of ints, among them perhaps -1 for a size that is not known."""
    return tuple([-1 if _is_unknown(n) else shape_tuple(n, "reshape")[0] for n in several(shape)])


def _is_unknown(size: Any) -> bool:
    try:
        return operator.index(size) == -1
    except (TypeError, InconclusiveDimensionOperation):  # symbolic, traced, or no integer
        return False


@lru_cache(maxsize=4096)
def _target_shape(have: Shape, shape: Shape) -> Shape:
    """Replace -1 in the new shape ``shape`` of an array of shape ``have`` by the size that fits; raise if none fits."""
    size = math.prod(have)
    if -1 not in shape:
        if math.prod(shape) != size or any(type(n) is int and n < 0 for n in shape):
            raise ShapeError(f"cannot reshape an array of shape {have} (size {size}) into shape {shape}")
        return shape
    rest = -math.prod(shape)
    if shape.count(-1) > 1:
        raise ShapeError(f"reshape: only one size may be -1, got {shape} for an array of shape {have}")
    if rest <= 0 or size % rest:
        raise ShapeError(
            f"cannot reshape an array of shape {have} (size {size}) into shape {shape}, for any value of -1"
        )
    return tuple(size // rest if n == -1 else n for n in shape)


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """The elements as a vector.

    Args:
      a: an array.
      order: ``"C"`` if the last axis changes fastest, ``"F"`` if the first one does.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      A vector of the dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      ShapeError: ``order`` is another text (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.ravel(jnp.array([[1, 2], [3, 4]])))
    [1 2 3 4]
    """
    if out_sharding is not None:
        return spread(partial(ravel, order=order), [a], out_sharding, "ravel")
    x = a if isinstance(a, Array) else operand("ravel", a)
    have = x.shape
    if type(order) is not str or order != "C":
        return reshape(x, -1, order)
    if len(have) == 1:
        return another(x)
    return state.trace.process(shapes.reshape_p, (x,), {"new_sizes": (math.prod(have),)})


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """The array with axes of size one inserted, at the given positions of the result.

    Args:
      a: an array.
      axis: the positions of the new axes in the result: an int, or several.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: a position is out of range (a ValueError and an IndexError).
      ShapeError: a position is repeated (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.expand_dims(jnp.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = operand("expand_dims", a)
    axes = several(axis)
    rank = len(x.shape) + len(axes)
    where = {axis_index(i, rank, "expand_dims") for i in axes}
    if len(where) != len(axes):
        raise ShapeError(f"expand_dims: repeated axis in {axis!r} for an array of shape {x.shape}")
    return shapes.expand_dims(x, tuple(where)) if axes else another(x)


def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """The array without axes of size one: all of them, or those in ``axis``.

    Args:
      a: an array.
      axis: an axis, or a tuple of axes, all of size one; None for all that are.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ShapeError: an axis in ``axis`` is not of size one (a TypeError and a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
    (3,)
    """
    x = operand("squeeze", a)
    have = x.shape
    if axis is None:
        axes: tuple[int, ...] = tuple(i for i, n in enumerate(have) if n == 1)
    else:
        axes = tuple(axis_index(i, len(have), "squeeze") for i in several(axis))
        if any(have[i] != 1 for i in axes) or len(set(axes)) != len(axes):
            raise ShapeError(f"squeeze: the axes {axis!r} of shape {have} must have size 1, and each must occur once")
    return shapes.squeeze(x, axes) if axes else another(x)


@overload
def atleast_1d(arys: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays with at least one axis: a scalar becomes a vector. One array returns one, several a list.

    Args:
      arys: arrays or numbers, of any shapes and dtypes.

    Returns:
      An array, or a list of arrays if there are several.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.atleast_1d(2.0).shape
    (1,)
    """
    return _each("atleast_1d", arys, lambda x: another(x) if x.shape else shapes.reshape(x, (1,)))


@overload
def atleast_2d(arys: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with at least two axes: new ones go in front. One array returns one, several a list.

    Args:
      arys: arrays or numbers, of any shapes and dtypes.

    Returns:
      An array, or a list of arrays if there are several.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.atleast_2d(jnp.ones(3)).shape
    (1, 3)
    """
    return _each("atleast_2d", arys, lambda x: two_axes(x) if len(x.shape) < 2 else another(x))


def two_axes(x: Any) -> Any:
    """Reshape an array to at least two axes, with new ones in front."""
    return x if len(x.shape) >= 2 else shapes.reshape(x, (*(1,) * (2 - len(x.shape)), *x.shape))


@overload
def atleast_3d(arys: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with at least three axes: a vector becomes (1, n, 1), a matrix (m, n, 1). Several return a list.

    Args:
      arys: arrays or numbers, of any shapes and dtypes.

    Returns:
      An array, or a list of arrays if there are several.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.atleast_3d(jnp.ones(3)).shape
    (1, 3, 1)
    """
    return _each("atleast_3d", arys, lambda x: three_axes(x) if len(x.shape) < 3 else another(x))


def three_axes(x: Any) -> Any:
    """Reshape an array to at least three axes: a vector to (1, n, 1), a matrix to (m, n, 1)."""
    if len(x.shape) >= 3:
        return x
    return shapes.reshape(x, (1, *x.shape, *(1,) * (2 - len(x.shape))) if len(x.shape) < 2 else (*x.shape, 1))


def _each(name: str, arrays: Sequence[Any], function: Callable[[Any], Any]) -> Any:
    results = [function(operand(name, x)) for x in arrays]
    return results[0] if len(results) == 1 else results


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array at each position of an axis, without that axis.

    Args:
      x: an array of at least one axis.
      axis: the axis.

    Returns:
      A tuple of arrays of the dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> [part.tolist() for part in jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    x = operand("unstack", x)
    axis = axis_index(axis, len(x.shape), "unstack")
    slices = (slicing.slice_in_dim(x, i, i + 1, axis) for i in range(x.shape[axis]))
    return tuple(shapes.squeeze(each, (axis,)) for each in slices)


# Broadcasting ------------------------------------------------------------------------------------------------------


def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: OutSharding = None) -> Array:
    """The array repeated along axes of size one, and along new axes in front, to a shape.

    Args:
      array: an array.
      shape: an int or a sequence of ints, to which the shape of ``array`` broadcasts.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape`` and of the dtype of ``array``.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: ``array`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.broadcast_to(jnp.array([1, 2]), (2, 2)))
    [[1 2]
     [1 2]]
    """
    if out_sharding is not None:
        return spread(partial(broadcast_to, shape=shape), [array], out_sharding, "broadcast_to")
    x = operand("broadcast_to", array)
    shape, have = shape_tuple(shape, "broadcast_to"), x.shape
    trailing = shape[len(shape) - len(have) :]
    if len(have) > len(shape) or any(n not in (1, m) for n, m in zip(have, trailing, strict=True)):
        raise ShapeError(f"broadcast_to: incompatible shapes for broadcasting: {have} and requested shape {shape}")
    return shapes.broadcast_to(x, shape)


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Arrays repeated to the shape to which all broadcast, as a list.

    Args:
      args: arrays or numbers.

    Returns:
      A list of arrays of one shape, each of its own dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    if not args:
        return []
    xs = [operand("broadcast_arrays", x) for x in args]
    shape = broadcast_shape("broadcast_arrays", [x.shape for x in xs])
    return [shapes.broadcast_to(x, shape) for x in xs]


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape to which arrays of the given shapes broadcast.

    Args:
      shapes: shapes: an int, or a sequence of ints.

    Returns:
      A tuple of ints.

    Raises:
      ShapeError: they do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.broadcast_shapes((2, 1), (3,), 1)
    (2, 3)
    """
    if not shapes:
        return ()
    return broadcast_shape("broadcast_shapes", [shape_tuple(s, "broadcast_shapes") for s in shapes])


# Permuting axes ----------------------------------------------------------------------------------------------------

_REVERSED = AllAxes(-1)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes permuted, in reverse order by default.

    Args:
      a: an array.
      axes: for each axis of the result, the axis of ``a``.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ShapeError: ``axes`` is not a permutation (a TypeError and a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = a if isinstance(a, Array) else operand("transpose", a)
    rank = len(x.shape)
    if axes is None:
        return x if rank < 2 else state.trace.process(shapes.transpose_p, (x,), {"permutation": _REVERSED[rank]})
    order = tuple([axis_index(i, rank, "transpose") for i in several(axes)])
    if len(order) != rank or len(set(order)) != rank:
        raise ShapeError(f"transpose: {axes} is not a permutation of the axes of an array of shape {x.shape}")
    return shapes.transpose(x, order)


@named
def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The array with its axes permuted; see :func:`transpose`.

    Args:
      a: an array.
      axes: for each axis of the result, the axis of ``a``.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      ShapeError: ``axes`` is not a permutation (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes exchanged.

    Args:
      x: an array of shape (..., m, n).

    Returns:
      An array of shape (..., n, m), of the dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: ``x`` has fewer than two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.matrix_transpose(jnp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = operand("matrix_transpose", x)
    rank = len(x.shape)
    if rank < 2:
        raise ShapeError(f"matrix_transpose needs an array of at least two axes, got shape {x.shape}")
    return shapes.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    Args:
      a: an array.
      axis1, axis2: the axes; negative ones count from the end.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = operand("swapaxes", a)
    rank = len(x.shape)
    i, j = axis_index(axis1, rank, "swapaxes"), axis_index(axis2, rank, "swapaxes")
    order = list(range(rank))
    order[i], order[j] = j, i
    out = shapes.transpose(x, order)
    return another(out) if out is a else out


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with some axes moved to other positions; the others keep their order.

    Args:
      a: an array.
      source: an axis, or several.
      destination: the positions of these axes in the result.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ShapeError: the axes do not exist, are repeated, or are not equally many (a TypeError and a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = operand("moveaxis", a)
    rank = len(x.shape)
    sources, targets = ([axis_index(i, rank, "moveaxis") for i in several(each)] for each in (source, destination))
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ShapeError(f"moveaxis: {source!r} and {destination!r} must be equally many distinct axes")
    order = [i for i in range(rank) if i not in sources]
    for target, i in sorted(zip(targets, sources, strict=True)):
        order.insert(target, i)
    out = shapes.transpose(x, order)
    return another(out) if out is a else out


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with one axis moved back until it lies before the position ``start``.

    Args:
      a: an array.
      axis: the axis that is moved.
      start: the axis before which it is inserted, from 0 to the number of axes.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: ``start`` is out of range (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = operand("rollaxis", a)
    rank = len(x.shape)
    i = axis_index(axis, rank, "rollaxis")
    start = known_int("rollaxis", "start", start)
    if not -rank <= start <= rank:
        raise ShapeError(f"rollaxis: start {start} is out of bounds for an array of {rank} axes")
    start = start + rank if start < 0 else start
    out = shapes.moveaxis(x, i, start - (i < start))
    return another(out) if out is a else out


# Repeating and reordering ------------------------------------------------------------------------------------------


def tile(A: ArrayLike, reps: ArrayLike | Sequence[int]) -> Array:
    """Copies of the array, joined ``reps`` times along each axis.

    Args:
      A: an array.
      reps: the number of copies: an int, or an int for each axis.

    Returns:
      An array of the dtype of ``A``.

    Raises:
      OperandError: ``A`` is neither an array nor a number (a TypeError).
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.tile(jnp.array([1, 2]), (2, 2)))
    [[1 2 1 2]
     [1 2 1 2]]
    """
    x = operand("tile", A)
    counts = shape_tuple(reps, "tile")
    rank = max(len(counts), len(x.shape))
    counts = (*(1,) * (rank - len(counts)), *counts)
    have = (*(1,) * (rank - len(x.shape)), *x.shape)
    spread = tuple(n for c, size in zip(counts, have, strict=True) for n in (c, size))
    own_axes = [2 * i + 1 for i in range(rank - len(x.shape), rank)]
    repeated = shapes.broadcast_in_dim(x, spread, own_axes) if any(c != 1 for c in counts) else x
    out = shapes.reshape(repeated, [c * size for c, size in zip(counts, have, strict=True)])
    return another(out) if out is A else out


# long: half of it is its documentation
def repeat(
    a: ArrayLike,
    repeats: ArrayLike | Sequence[int],
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The array with each element, or each slice along an axis, repeated.

    Args:
      a: an array.
      repeats: the number of repetitions: an int, or an int for each slice.
      axis: the axis; by default the array is flattened.
      total_repeat_length: the size of the result along the axis, which is cut off, or filled with the last slice;
        required if ``repeats`` is traced.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the dtype of ``a``; a vector if ``axis`` is None.

    Raises:
      ShapeError: ``repeats`` does not fit the axis, or is negative (a TypeError and a ValueError).
      TracerArrayConversionError: ``repeats`` is traced, and there is no ``total_repeat_length``.
      DtypeError: ``repeats`` is not of integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.repeat(jnp.array([1, 2]), 2), jnp.repeat(jnp.array([1, 2]), jnp.array([1, 3])))
    [1 1 2 2] [1 2 2 2]
    """
    if out_sharding is not None:
        function = partial(repeat, axis=axis, total_repeat_length=total_repeat_length)
        return spread(function, [a, repeats], out_sharding, "repeat")
    x = operand("repeat", a)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, len(x.shape), "repeat")
    n = x.shape[axis]
    refuse_masked(repeats)
    try:
        counts = np.asarray(repeats)
    except TracerArrayConversionError:
        if total_repeat_length is None:
            raise
        return _repeat_traced(x, repeats, axis, total_repeat_length)
    except ValueError as error:  # of a ragged list
        raise DtypeError(f"repeat: repeats must be an int or integers, got {typed(repeats)}: {error}") from None
    if counts.dtype.kind not in "iub" and counts.size:
        raise DtypeError(f"repeat: repeats must be an int or integers, got {typed(repeats)}")
    counts = counts.astype(np.intp)
    if counts.ndim > 1 or (counts.ndim == 1 and counts.size not in (1, n)) or (counts < 0).any():
        raise ShapeError(f"repeat: the counts {counts} do not fit axis {axis} of an array of shape {x.shape}")
    if counts.size == 1 and total_repeat_length is None:
        count = int(counts.reshape(()))
        before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
        own_axes = [i for i in range(len(x.shape) + 1) if i != axis + 1]
        repeated = shapes.broadcast_in_dim(x, (*before, count, *after), own_axes)
        return shapes.reshape(repeated, (*before[:-1], n * count, *after))
    positions = memory_for("repeat", (int(counts.sum()),), lambda: np.repeat(np.arange(n), counts))
    if n == 0:
        return _repeat_empty(x, axis, total_repeat_length)
    if total_repeat_length is not None:
        length = size_of("repeat", "total_repeat_length", total_repeat_length)
        positions = np.append(positions, memory_for("repeat", (length,), lambda: np.full(length, n - 1)))[:length]
    return take_slices(x, positions, axis)


def _repeat_empty(x: Any, axis: int, total: int | None) -> Any:
    if total:
        raise ShapeError(f"repeat: total_repeat_length={total} slices cannot be taken from an array of shape {x.shape}")
    return x


def _repeat_traced(x: Any, repeats: Any, axis: int, total: int) -> Any:
    """Repeat each slice of ``x`` along ``axis``, slice i ``repeats[i]`` times, where ``repeats`` is traced.

    The result has ``total`` slices. The slice at each position is found by a search in the cumulative counts.
    """
    from pullback.primitives.arrays.sorting import searchsorted
    from pullback.primitives.reductions import cumsum

    n = x.shape[axis]
    if n == 0:
        return _repeat_empty(x, axis, total)
    counts = shapes.broadcast_to(operand("repeat", repeats), (n,))
    positions = slicing.iota(counts.dtype, (total,), 0)
    source = searchsorted(cumsum(counts), positions, "right", np.dtype(np.int32))
    return take_slices(x, ops.min_p.bind(source, n - 1), axis)


def take_slices(x: Any, positions: Any, axis: int) -> Any:
    """The slices of an array at positions along an axis, all in bounds."""
    from pullback.primitives.arrays.indexing import GatherDimensionNumbers, gather

    rank = len(x.shape)
    others = tuple(i for i in range(rank) if i != axis)
    indices = ArrayImpl(np.asarray(positions, np.int32)) if isinstance(positions, np.ndarray) else positions
    numbers = GatherDimensionNumbers(others, (axis,), (axis,))
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return gather(x, shapes.expand_dims(indices, (1,)), numbers, sizes, mode="promise_in_bounds")


def flip(m: ArrayLike, axis: Axes = None) -> Array:
    """The array with the order of its elements reversed along some axes, along all by default.

    Args:
      m: an array.
      axis: an axis, a tuple of axes, or None for all.

    Returns:
      An array of the shape and dtype of ``m``.

    Raises:
      OperandError: ``m`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.flip(jnp.array([[1, 2], [3, 4]])))
    [[4 3]
     [2 1]]
    """
    x = operand("flip", m)
    rank = len(x.shape)
    axes = range(rank) if axis is None else several(axis)
    return slicing.rev(x, [axis_index(i, rank, "flip") for i in axes])


@named
def flipud(m: ArrayLike) -> Array:
    """The array with the order of its rows reversed.

    Args:
      m: an array of at least one axis.

    Returns:
      An array of the shape and dtype of ``m``.

    Raises:
      OperandError: ``m`` is neither an array nor a number (a TypeError).
      AxisError: ``m`` has no axes (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.flipud(jnp.array([1, 2])))
    [2 1]
    """
    return flip(m, 0)


@named
def fliplr(m: ArrayLike) -> Array:
    """The array with the order of its columns reversed.

    Args:
      m: an array of at least two axes.

    Returns:
      An array of the shape and dtype of ``m``.

    Raises:
      OperandError: ``m`` is neither an array nor a number (a TypeError).
      AxisError: ``m`` has fewer than two axes (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.fliplr(jnp.array([[1, 2]])))
    [[2 1]]
    """
    return flip(m, 1)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned ``k`` times by 90 degrees, from the first of two axes towards the second.

    Args:
      m: an array of at least two axes.
      k: how many times; backwards if negative.
      axes: the two axes of the plane.

    Returns:
      An array of the dtype of ``m``.

    Raises:
      OperandError: ``m`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: the axes are not two different ones (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.rot90(jnp.array([[1, 2], [3, 4]])))
    [[2 4]
     [1 3]]
    """
    x = operand("rot90", m)
    i, j = (axis_index(axis, len(x.shape), "rot90") for axis in sequence_of("rot90", "axes", axes, 2))
    if i == j:
        raise ShapeError(f"rot90 needs two different axes, got {axes} for an array of shape {x.shape}")
    k = known_int("rot90", "k", k) % 4
    if k == 2:
        return slicing.rev(x, (i, j))
    if k == 1:
        return swapaxes(slicing.rev(x, (j,)), i, j)
    return slicing.rev(swapaxes(x, i, j), (j,)) if k == 3 else another(x)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axes = None) -> Array:
    """The array with its elements moved along axes; those that leave at the end come in at the beginning.

    Args:
      a: an array.
      shift: how far, for each axis; it may be traced.
      axis: the axes; by default the array is flattened.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: the shifts do not fit the axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.roll(jnp.arange(5), 2))
    [3 4 0 1 2]
    """
    if type(a) is ArrayImpl and type(shift) is int and (axis is None or type(axis) is int) and state.trace.quick:
        value, at = a._value, 0 if axis is None else axis
        if value.size and -value.ndim <= at < value.ndim:
            flat = value.reshape(-1) if axis is None else value
            at %= flat.ndim
            return ArrayImpl(moves.rolled(flat, shift % flat.shape[at], at).reshape(value.shape), a.weak_type)
    x = operand("roll", a)
    if axis is None:
        return shapes.reshape(roll(ravel(x), shift, 0), x.shape)
    axes, steps = list(several(axis)), list(several(shift))
    if (len(axes) != len(steps) and 1 not in (len(axes), len(steps))) or not axes or not steps:
        raise ShapeError(f"roll: the shifts {shift!r} do not fit the axes {axis!r}")
    count = max(len(axes), len(steps))
    for step, i in zip(steps * (count // len(steps)), axes * (count // len(axes)), strict=True):
        x = _roll_one(x, step, axis_index(i, len(x.shape), "roll"))
    return another(x) if x is a else x


def _roll_one(x: Any, shift: Any, axis: int) -> Any:
    n = x.shape[axis]
    if n == 0:
        return x
    if not isinstance(shift, Array) or is_here(shift):
        k = known_int("roll", "a shift", shift) % n
        if type(n) is int:
            return slicing.roll(x, k, axis)
        if k == 0:
            return x
        halves = slicing.slice_in_dim(x, n - k, n, axis), slicing.slice_in_dim(x, 0, n - k, axis)
        return slicing.concatenate(halves, axis)
    positions = ops.rem_p.bind(ops.sub(slicing.iota(shift.dtype, (n,), 0), ops.rem_p.bind(shift, n)), n)
    return take_slices(x, ops.where(ops.lt(positions, 0), ops.add(positions, n), positions), axis)
