"""Operations on shapes, and slices at fixed positions, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.devices.shardings import NamedSharding, OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import flag, quote
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.elsewhere import is_here
from pullback.core.errors import OperandError, ShapeError
from pullback.core.naming import named
from pullback.core.trace import Tracer
from pullback.core.types import Shape
from pullback.lax.arguments import axis_position, ints, size
from pullback.lax.elementwise import converted
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape, known_int
from pullback.primitives.operands import array_operand, bind, made, operands
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.placement import committed_like, constrained, spread


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: OutSharding = None) -> Array:
    """The array repeated along new axes in front, of the sizes ``sizes``.

    Args:
      operand: an array.
      sizes: the sizes of the new axes.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``(*sizes, *operand.shape)``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      ShapeError: ``sizes`` is not a sequence of ints (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.broadcast(jnp.ones(3), (2,)).shape
    (2, 3)
    """
    x = array_operand("broadcast", operand)
    sizes = ints(sizes)
    dims = range(len(sizes), len(sizes) + len(x.shape))
    return broadcast_in_dim(x, (*sizes, *x.shape), dims, out_sharding=out_sharding)


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape that arrays of some shapes broadcast to, of any ranks.

    Args:
      shapes: shapes, sequences of ints.

    Returns:
      A tuple of ints.

    Raises:
      ShapeError: sizes that differ and are not 1 (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        sizes = [ints(shape) for shape in shapes]
    except TypeError:
        raise ShapeError(f"lax.broadcast_shapes takes shapes, sequences of ints, got {shapes}") from None
    return broadcast_shape("lax.broadcast_shapes", sizes) if sizes else ()


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: OutSharding = None
) -> Array:
    """The array repeated to a shape, where its axis ``i`` becomes the axis ``broadcast_dimensions[i]``.

    Args:
      operand: an array.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of the operand, its axis in the result.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape`` and of the dtype of ``operand``.

    Raises:
      ShapeError: the shapes and axes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,)))
    [[1 1 1]
     [2 2 2]]
    """
    x = array_operand("broadcast_in_dim", operand)
    dims = ints(broadcast_dimensions)
    if len(dims) == len(x.shape):  # the primitive takes increasing axes
        order = sorted(range(len(dims)), key=dims.__getitem__)
        x, dims = shapes.transpose(x, order), tuple([dims[i] for i in order])
    function = partial(bind, shapes.broadcast_in_dim_p, shape=ints(shape), broadcast_dimensions=dims)
    return spread(function, [x], out_sharding, "lax.broadcast_in_dim")


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The elements in another shape, read in the order of the axes ``dimensions``.

    Args:
      operand: an array.
      new_sizes: the shape of the result, of equally many elements.
      dimensions: all axes of the operand, in the order in which they are read, the last one fastest; by default in
        their own order.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``new_sizes`` and of the dtype of ``operand``.

    Raises:
      ShapeError: the sizes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0)))
    [1 3 2 4]
    """
    sizes = ints(new_sizes)

    def function(x: Any) -> Any:
        x = x if dimensions is None else transpose(x, dimensions)
        return x if sizes == x.shape else bind(shapes.reshape_p, x, new_sizes=sizes)

    return spread(function, [array_operand("reshape", operand)], out_sharding, "lax.reshape")


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """The array with its axes permuted: axis ``i`` of the result is axis ``permutation[i]``.

    Args:
      operand: an array.
      permutation: for each axis of the result, the axis of ``operand``.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      ShapeError: not a permutation (a TypeError and a ValueError).
      OperandError: ``operand`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.transpose(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    x, order = array_operand("transpose", operand), ints(permutation)
    return x if order == tuple(range(len(x.shape))) else bind(shapes.transpose_p, x, permutation=order)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array without the axes ``dimensions``, which are of size one.

    Args:
      array: an array.
      dimensions: the axes.

    Returns:
      An array of the dtype of ``array``.

    Raises:
      ShapeError: an axis of another size (a TypeError and a ValueError).
      OperandError: ``array`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.squeeze(jnp.ones((1, 3)), (0,)).shape
    (3,)
    """
    x = array_operand("squeeze", array)
    axes = tuple(axis_position("squeeze", d, len(x.shape)) for d in ints(dimensions))
    return bind(shapes.squeeze_p, x, dimensions=axes) if axes else x


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with axes of size one inserted, at the given positions of the result.

    Args:
      array: an array.
      dimensions: the positions of the new axes in the result.

    Returns:
      An array of the dtype of ``array``.

    Raises:
      OperandError: ``array`` is neither an array nor a number (a TypeError).
      AxisError: a position is out of range (a ValueError and an IndexError).
      ShapeError: a position is repeated (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.expand_dims(jnp.ones(3), (0,)).shape
    (1, 3)
    """
    x = array_operand("expand_dims", array)
    if not isinstance(dimensions, (tuple, list)):
        dimensions = ints(dimensions)
    rank = len(x.shape) + len(dimensions)
    axes = {axis_position("expand_dims", d, rank) for d in dimensions}
    if len(axes) != len(dimensions):
        raise ShapeError(f"lax.expand_dims: repeated axis in {tuple(dimensions)}")
    return shapes.expand_dims(x, tuple(axes))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The array with the axes from ``start_dimension`` to before ``stop_dimension`` merged into one.

    Args:
      operand: an array.
      start_dimension: the first of the axes.
      stop_dimension: the axis after the last of them; None for all that follow.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      ShapeError: ``stop_dimension`` is before ``start_dimension`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.collapse(jnp.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = array_operand("collapse", operand)
    first = known_int("lax.collapse", "start_dimension", start_dimension)
    last = None if stop_dimension is None else known_int("lax.collapse", "stop_dimension", stop_dimension)
    start, stop, _ = builtins.slice(first, last).indices(len(x.shape))
    if stop < start:
        raise ShapeError(f"lax.collapse: axis {stop_dimension} is before axis {start_dimension} in shape {x.shape}")
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with the order of its elements reversed along some axes.

    Args:
      operand: an array.
      dimensions: the axes.

    Returns:
      An array of the shape and dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      ShapeError: an axis does not exist, or occurs twice (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.rev(jnp.array([1, 2, 3]), (0,)))
    [3 2 1]
    """
    return bind(slicing.rev_p, array_operand("rev", operand), dimensions=ints(dimensions))


def _triples(config: Any) -> tuple[Any, ...]:
    if not hasattr(config, "__iter__"):
        raise ShapeError(f"lax.pad: padding_config must be a sequence of triples of ints, got {quote(config)}")
    return tuple(ints(c) for c in config)


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """The array with a value around and between its elements.

    Args:
      operand: an array.
      padding_value: a scalar of the same dtype.
      padding_config: for each axis the numbers of values before, after and between elements; negative numbers crop.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      DtypeError, ShapeError: a value of another dtype, or a configuration that does not fit.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.pad(jnp.array([1, 2]), 0, [(1, 0, 1)]))
    [0 1 0 2]
    """
    x, value = operands("pad", (array_operand("pad", operand), padding_value))
    return bind(slicing.pad_p, x, value, padding_config=_triples(padding_config))


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """The concatenation of arrays of one dtype along an axis.

    Args:
      operands: a sequence of arrays of one dtype, and of one shape except along the axis.
      dimension: the axis.

    Returns:
      An array of the dtype of the operands.

    Raises:
      DtypeError, ShapeError: no operands, or dtypes or shapes that do not fit.
      OperandError: ``operands`` is not a sequence of arrays (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0))
    [1 2 3]
    """
    if isinstance(operands, (str, bytes)) or not hasattr(operands, "__iter__"):
        raise OperandError(
            f"lax.concatenate: expected a sequence of arrays, got {operands!r} of type {type(operands).__name__}"
        )
    arrays = [array_operand("concatenate", x) for x in operands]
    if not arrays:
        raise ShapeError("lax.concatenate needs at least one operand")
    return bind(slicing.concatenate_p, *arrays, dimension=known_int("lax.concatenate", "dimension", dimension))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split the array along an axis into sections, whose sizes must add up to the size of the axis.

    Args:
      operand: an array.
      sizes: the sizes of the sections along the axis.
      axis: the axis.

    Returns:
      A list of arrays of the dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the sizes do not sum to the size of the axis (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> [x.tolist() for x in lax.split(jnp.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    x = array_operand("split", operand)
    axis = axis_position("split", axis, len(x.shape))
    sizes = ints(sizes)
    if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):
        raise ShapeError(f"lax.split: the sizes {sizes} do not sum to axis {axis} of an array of shape {x.shape}")
    stops = np.cumsum(sizes).tolist()
    return [slicing.slice_in_dim(x, stop - n, stop, axis) for n, stop in zip(sizes, stops, strict=True)]


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape and dtype, joined along a new axis.

    Args:
      operands: the arrays, at least one.
      axis: the position of the new axis in the result.

    Returns:
      An array with one axis more.

    Raises:
      ShapeError: there are no arrays, their shapes differ, or the axis is out of range (a TypeError and a ValueError).
      DtypeError: different dtypes (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1))
    [[1 3]
     [2 4]]
    """
    if not isinstance(operands, (tuple, list, Array)):
        raise OperandError(
            f"lax.stack: expected a sequence of arrays, got {operands!r} of type {type(operands).__name__}"
        )
    arrays = [array_operand("stack", x) for x in operands]
    if not arrays:
        raise ShapeError("lax.stack needs at least one array")
    return bind(slicing.stack_p, *arrays, dimension=axis_position("stack", axis, len(arrays[0].shape) + 1))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, without that axis.

    Args:
      x: an array.
      axis: the axis.

    Returns:
      A tuple of arrays of the dtype of ``x``.

    Raises:
      ShapeError: the axis is out of range (a  TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(*lax.unstack(jnp.array([[1, 2], [3, 4]]), axis=1))
    [1 3] [2 4]
    """
    array = array_operand("unstack", x)
    return tuple(bind(slicing.unstack_p, array, dimension=axis_position("unstack", axis, len(array.shape))))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Copies of the array, joined along each axis.

    Args:
      operand: an array.
      reps: the number of copies, an int for each axis.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      ShapeError: ``reps`` has not one int for each axis, or a negative one (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.tile(jnp.array([1, 2]), (3,)))
    [1 2 1 2 1 2]
    """
    x, counts = array_operand("tile", operand), ints(reps)
    if len(counts) != len(x.shape) or any(n < 0 for n in counts):
        raise ShapeError(f"lax.tile needs a non-negative count for each axis of shape {x.shape}, got {counts}")
    spread = tuple(n for pair in zip(counts, x.shape, strict=True) for n in pair)
    repeated = shapes.broadcast_in_dim(x, spread, range(1, len(spread), 2))
    return shapes.reshape(repeated, [n * c for n, c in zip(x.shape, counts, strict=True)])


def _rank(name: str, rank: Any) -> int:
    """Return a number of axes; raise if it is not an int, or more than any array has."""
    found = known_int(f"lax.{name}", "rank", rank)
    if found > MOST_AXES:
        raise ShapeError(f"lax.{name}: arrays have at most {MOST_AXES} axes, got {quote(rank)}")
    return found


MOST_AXES = 1 << 16
"""More axes than any program has."""


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """The array with axes of size 1 in front, so that it has ``rank`` axes; unchanged if it has as many or more.

    Args:
      x: an array.
      rank: the number of axes.

    Returns:
      An array of the dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: ``rank`` is not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.broadcast_to_rank(jnp.ones(3), 2).shape
    (1, 3)
    """
    array = array_operand("broadcast_to_rank", x)
    return shapes.expand_dims(array, range(_rank("broadcast_to_rank", rank) - len(array.shape)))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike | ShapeDtypeStruct) -> Array:
    """The array repeated to the shape of another, as NumPy does it.

    Args:
      arr: an array.
      like_arr: the array with the shape of the result, or its description.

    Returns:
      An array of the dtype of ``arr`` and of the shape of ``like_arr``. It has the sharding of ``like_arr``. If that is
      traced, the compiler chooses the sharding.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.broadcast_like(jnp.ones(3), jnp.zeros((2, 3))).shape
    (2, 3)
    """
    like: Any = like_arr if isinstance(like_arr, ShapeDtypeStruct) else array_operand("broadcast_like", like_arr)
    x, shape = array_operand("broadcast_like", arr), like.shape
    if broadcast_shape("lax.broadcast_like", [x.shape, shape]) != shape:
        raise ShapeError(f"lax.broadcast_like: an array of shape {x.shape} cannot be broadcast to {shape}")
    out = shapes.broadcast_to(x, shape)
    sharding = None if isinstance(like, Tracer) else like.sharding
    return constrained(out, sharding, "lax.broadcast_like") if isinstance(sharding, NamedSharding) else out


def stage(x: ArrayLike, /) -> Array:
    """The value as an array of the current trace: within a function that is staged, a variable of its program.

    Args:
      x: an array, or a number.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> from pullback import lax, make_jaxpr
    >>> print(make_jaxpr(lambda: lax.stage(2.0))().eqns[0].primitive)
    copy
    """
    return ops.copy_p.bind(array_operand("stage", x))


# Constants ---------------------------------------------------------------------------------------------------------


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the numbers 0, 1, 2, ... as a vector.

    Args:
      dtype: a dtype of numbers.
      size: how many numbers, an int.

    Returns:
      A vector of dtype ``dtype``.

    Raises:
      ShapeError: ``size`` is not an int (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.iota("float32", 3))
    [0. 1. 2.]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: OutSharding = None
) -> Array:
    """Return the numbers 0, 1, 2, ... along one axis of an array, repeated along the others.

    Args:
      dtype: a dtype of numbers.
      shape: the shape of the result.
      dimension: the axis along which the numbers rise.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape`` and dtype ``dtype``.

    Raises:
      ShapeError: ``shape`` is not a sequence of ints, or has no axis ``dimension`` (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.broadcasted_iota("int32", (2, 3), 0))
    [[0 0 0]
     [1 1 1]]
    """
    out = bind(
        slicing.iota_p,
        dtype=dtypes.requested_dtype(dtype, "broadcasted_iota"),
        shape=ints(shape),
        dimension=operator.index(dimension),
    )
    return constrained(out, out_sharding, "lax.broadcasted_iota")


def full(
    shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike = None, *, sharding: OutSharding = None
) -> Array:
    """Make an array of one value.

    Args:
      shape: its shape.
      fill_value: a scalar.
      dtype: its dtype; by default the dtype of the value.
      sharding: its sharding, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of shape ``shape``.

    Raises:
      ShapeError: the fill value is not a scalar, or ``shape`` is not a sequence of ints (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> from pullback import lax
    >>> print(lax.full((2,), 7.0))
    [7. 7.]
    """
    if dtype is None:
        value: Any = array_operand("full", fill_value)
    else:
        value = converted("full", fill_value, dtypes.requested_dtype(dtype, "full"))
    if value.shape:
        raise ShapeError(f"lax.full: the fill value must be a scalar, got shape {value.shape}")
    sizes = ints(shape)
    if is_here(value):
        out = made(shapes.full(sizes, value._value, value.dtype, value.weak_type))
        return constrained(out, sharding, "lax.full")
    return broadcast(value, sizes, out_sharding=sharding)


@named
def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: Sequence[int] | None = None,
    sharding: OutSharding = None,
) -> Array:
    """An array of one value, of the shape and dtype of another unless others are passed.

    Args:
      x: an array.
      fill_value: a scalar.
      dtype: the dtype of the result; by default the dtype of ``x``.
      shape: the shape of the result; by default the shape of ``x``.
      sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of the shape and dtype of ``x``, unless others are passed.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: the fill value is not a scalar (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.full_like(jnp.ones(2), 7))
    [7. 7.]
    """
    plain = isinstance(x, (np.ndarray, np.generic)) or not (hasattr(x, "shape") and hasattr(x, "dtype"))
    aval: Any = array_operand("full_like", x) if plain else x
    sizes = aval.shape if shape is None else shape
    if dtype is not None:
        out = full(sizes, fill_value, dtype, sharding=sharding)
    else:
        weak = getattr(aval, "weak_type", False)
        value = ops.convert_element_type(array_operand("full_like", fill_value), aval.dtype, weak)
        out = full(sizes, value, sharding=sharding)
    return out if sharding is not None or type(x) is ArrayImpl else committed_like(out, x)


def empty(shape: int | Sequence[int], dtype: DTypeLike, *, out_sharding: OutSharding = None) -> Array:
    """An array of unspecified elements; here they are zero.

    Args:
      shape: its shape, or its size if it has one axis.
      dtype: its dtype.
      out_sharding: its sharding, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of zeros.

    Raises:
      ShapeError: ``shape`` is not an int or a sequence of ints (a TypeError and a ValueError).
      AllocationError: the result does not fit into memory (a MemoryError).

    >>> from pullback import lax
    >>> lax.empty((2, 3), "float32").shape
    (2, 3)
    """
    sizes = ints(shape) if hasattr(shape, "__iter__") else (known_int("lax.empty", "shape", shape),)
    return full(sizes, 0, dtype, sharding=out_sharding)


@named
def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros of the shape and dtype of an array: the former name of :func:`full_like` of 0, which rules still use.

    Args:
      x: an array, or a number.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.zeros_like_array(jnp.ones(2)))
    [0. 0.]
    """
    return full_like(x, 0)


# Slices and indices ------------------------------------------------------------------------------------------------


def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """The elements from ``start_indices`` to before ``limit_indices`` along each axis.

    Args:
      operand: an array.
      start_indices: the first position along each axis.
      limit_indices: the position after the last one.
      strides: the distance of neighbours along each axis; 1 by default.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      ShapeError: the limits do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.slice(jnp.arange(6), (1,), (6,), (2,)))
    [1 3 5]
    """
    x = array_operand("slice", operand)
    steps = (1,) * len(x.shape) if strides is None else ints(strides)
    starts, limits = ints(start_indices), ints(limit_indices)
    return bind(slicing.slice_p, x, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """A slice along one axis; indices may count from the end, and None means the start or the end.

    Args:
      operand: an array.
      start_index: the first position.
      limit_index: the position after the last one.
      stride: the distance of neighbours.
      axis: the axis.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the limits do not fit the axis, or the stride is not positive (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.slice_in_dim(jnp.arange(6), 1, -1))
    [1 2 3 4]
    """
    x = array_operand("slice_in_dim", operand)
    rank = len(x.shape)
    axis = axis_position("slice_in_dim", axis, rank)
    n = x.shape[axis]
    start = 0 if start_index is None else size("slice_in_dim", "start_index", start_index)
    limit = n if limit_index is None else size("slice_in_dim", "limit_index", limit_index)
    starts, limits, steps = [0] * rank, list(x.shape), [1] * rank
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    steps[axis] = known_int("lax.slice_in_dim", "stride", stride)
    return slice(x, starts, limits, steps)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice of the array at one position of an axis.

    Args:
      operand: an array.
      index: the position; a negative one counts from the end.
      axis: the axis.
      keepdims: whether to keep the axis, with size one.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the index is out of range (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.index_in_dim(jnp.arange(6), -1))
    [5]
    """
    keepdims = flag("lax.index_in_dim", "keepdims", keepdims)
    x = array_operand("index_in_dim", operand)
    axis = axis_position("index_in_dim", axis, len(x.shape))
    n = x.shape[axis]
    index = known_int("lax.index_in_dim", "index", index)
    if not -n <= index < n:
        raise ShapeError(f"lax.index_in_dim: index {index} is out of bounds for axis {axis} of shape {x.shape}")
    row = slice_in_dim(x, index % n, index % n + 1, axis=axis)
    return row if keepdims else squeeze(row, (axis,))
