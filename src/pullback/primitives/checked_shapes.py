"""Checked operations on shapes and indices, reductions and contractions: the rest of ``pullback.lax``."""

from __future__ import annotations

import builtins
import enum
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import ArrayImpl
from pullback.core.errors import OperandError, ShapeError
from pullback.core.naming import named
from pullback.core.trace import Primitive
from pullback.core.types import Shape
from pullback.primitives import contraction, indexing, reductions, shapes, slicing, sorting
from pullback.primitives import elementwise as ops
from pullback.primitives import scatter as scattering
from pullback.primitives.checked import array_operand, bind, operands
from pullback.primitives.declare import broadcast_shape
from pullback.primitives.indexing import GatherDimensionNumbers, GatherScatterMode
from pullback.primitives.scatter import ScatterDimensionNumbers

# Arguments ---------------------------------------------------------------------------------------------------------


def ints(values: Any) -> Shape:
    """A sequence of ints as a tuple."""
    return tuple(map(operator.index, values))


def axis_position(name: str, axis: int, rank: int) -> int:
    """An axis that may count from the end, as a position."""
    if not -rank <= axis < rank:
        raise ShapeError(f"lax.{name}: axis {axis} is out of bounds for an array of {rank} axes")
    return axis % rank


# Shapes ------------------------------------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """The array repeated along new axes in front, of the given sizes.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.broadcast(pnp.ones(3), (2,)).shape
    (2, 3)
    """
    x = array_operand("broadcast", operand)
    sizes = ints(sizes)
    return broadcast_in_dim(x, (*sizes, *x.shape), range(len(sizes), len(sizes) + len(x.shape)))


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape that arrays of some shapes broadcast to, of any ranks.

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


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """The array repeated to a shape, where its axis ``i`` becomes the axis ``broadcast_dimensions[i]``.

    Args:
      operand: an array.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of the operand, which axis of the result it becomes.

    Raises:
      ShapeError: the shapes and axes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.broadcast_in_dim(pnp.array([1, 2]), (2, 3), (0,)))
    [[1 1 1]
     [2 2 2]]
    """
    x = array_operand("broadcast_in_dim", operand)
    return bind(shapes.broadcast_in_dim_p, x, shape=ints(shape), broadcast_dimensions=ints(broadcast_dimensions))


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Any:
    """The elements in another shape, read in the order of the axes ``dimensions``.

    Args:
      operand: an array.
      new_sizes: the shape of the result, of equally many elements.
      dimensions: all axes of the operand, in the order in which they are read, the last one fastest; as they are by
        default.

    Raises:
      ShapeError: the sizes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.reshape(pnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0)))
    [1 3 2 4]
    """
    x = array_operand("reshape", operand)
    x = x if dimensions is None else transpose(x, dimensions)
    sizes = ints(new_sizes)
    return x if sizes == x.shape else bind(shapes.reshape_p, x, new_sizes=sizes)


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """The array with its axes permuted: axis ``i`` of the result is axis ``permutation[i]``.

    Raises:
      ShapeError: not a permutation (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.transpose(pnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    x, order = array_operand("transpose", operand), ints(permutation)
    return x if order == tuple(range(len(x.shape))) else bind(shapes.transpose_p, x, permutation=order)


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """The array without the given axes, which are of size one.

    Raises:
      ShapeError: an axis of another size (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.squeeze(pnp.ones((1, 3)), (0,)).shape
    (3,)
    """
    x = array_operand("squeeze", array)
    axes = tuple(axis_position("squeeze", d, len(x.shape)) for d in dimensions)
    return bind(shapes.squeeze_p, x, dimensions=axes) if axes else x


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """The array with axes of size one inserted, at the given positions of the result.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.expand_dims(pnp.ones(3), (0,)).shape
    (1, 3)
    """
    x = array_operand("expand_dims", array)
    rank = len(x.shape) + len(dimensions)
    axes = {axis_position("expand_dims", d, rank) for d in dimensions}
    if len(axes) != len(dimensions):
        raise ShapeError(f"lax.expand_dims: repeated axis in {tuple(dimensions)}")
    return shapes.expand_dims(x, tuple(axes))


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """The array with the axes from ``start_dimension`` to before ``stop_dimension`` made into one.

    Args:
      operand: an array.
      start_dimension: the first of the axes.
      stop_dimension: the axis after the last of them; None for all that follow.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.collapse(pnp.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = array_operand("collapse", operand)
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(x.shape))
    if stop < start:
        raise ShapeError(f"lax.collapse: axis {stop_dimension} is before axis {start_dimension} in shape {x.shape}")
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]))


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """The array with the order of its elements reversed along some axes.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.rev(pnp.array([1, 2, 3]), (0,)))
    [3 2 1]
    """
    return bind(slicing.rev_p, array_operand("rev", operand), dimensions=ints(dimensions))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """The array with a value around and between its elements.

    Args:
      operand: an array.
      padding_value: a scalar of the same dtype.
      padding_config: for each axis how many go before, after and between any two; negative ones are cut off.

    Raises:
      DtypeError, ShapeError: a value of another dtype, or a configuration that does not fit.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.pad(pnp.array([1, 2]), 0, [(1, 0, 1)]))
    [0 1 0 2]
    """
    x, value = operands("pad", (array_operand("pad", operand), padding_value))
    return bind(slicing.pad_p, x, value, padding_config=tuple(ints(c) for c in padding_config))


def concatenate(operands: Any, dimension: int) -> Any:
    """Arrays of one dtype put one after another along an axis.

    Raises:
      DtypeError, ShapeError: no operands, or dtypes or shapes that do not fit.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.concatenate([pnp.array([1, 2]), pnp.array([3])], 0))
    [1 2 3]
    """
    if isinstance(operands, (str, bytes)) or not hasattr(operands, "__iter__"):
        raise OperandError(
            f"lax.concatenate: expected a sequence of arrays, got {operands!r} of type {type(operands).__name__}"
        )
    arrays = [array_operand("concatenate", x) for x in operands]
    if not arrays:
        raise ShapeError("lax.concatenate needs at least one operand")
    return bind(slicing.concatenate_p, *arrays, dimension=operator.index(dimension))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """The array cut along an axis into parts of the given sizes, which must be those of all of it.

    Args:
      operand: an array.
      sizes: the sizes of the parts along the axis.
      axis: along which axis.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> [x.tolist() for x in lax.split(pnp.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    x = array_operand("split", operand)
    axis = axis_position("split", axis, len(x.shape))
    sizes = ints(sizes)
    if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):
        raise ShapeError(f"lax.split: the sizes {sizes} do not sum to axis {axis} of an array of shape {x.shape}")
    stops = np.cumsum(sizes).tolist()
    return [slicing.slice_in_dim(x, stop - n, stop, axis) for n, stop in zip(sizes, stops, strict=True)]


# Constants ---------------------------------------------------------------------------------------------------------


def iota(dtype: Any, size: int) -> Any:
    """0, 1, 2, ...

    >>> from pullback import lax
    >>> print(lax.iota("float32", 3))
    [0. 1. 2.]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """0, 1, 2, ... along one axis of an array.

    Args:
      dtype: a dtype of numbers.
      shape: the shape of the result.
      dimension: the axis along which the numbers rise.

    >>> from pullback import lax
    >>> print(lax.broadcasted_iota("int32", (2, 3), 0))
    [[0 0 0]
     [1 1 1]]
    """
    return bind(
        slicing.iota_p, dtype=dtypes.canonicalize_dtype(dtype), shape=ints(shape), dimension=operator.index(dimension)
    )


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None) -> Any:
    """An array of one value.

    Args:
      shape: its shape.
      fill_value: a scalar.
      dtype: its dtype; by default that of the value.

    >>> from pullback import lax
    >>> print(lax.full((2,), 7.0))
    [7. 7.]
    """
    value = array_operand("full", fill_value)
    if value.shape:
        raise ShapeError(f"lax.full: the fill value must be a scalar, got shape {value.shape}")
    if dtype is not None:
        value = ops.convert_element_type(value, dtypes.canonicalize_dtype(dtype))
    sizes = ints(shape)
    if isinstance(value, ArrayImpl):
        return ArrayImpl(shapes.full(sizes, value._value, value.dtype)._value, value.weak_type)
    return broadcast(value, sizes)


@named
def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None) -> Any:
    """An array of one value, of the shape and dtype of another unless they are given.

    Args:
      x: an array.
      fill_value: a scalar.
      dtype: the dtype of the result; that of ``x`` by default.
      shape: the shape of the result; that of ``x`` by default.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.full_like(pnp.ones(2), 7))
    [7. 7.]
    """
    plain = isinstance(x, (np.ndarray, np.generic)) or not (hasattr(x, "shape") and hasattr(x, "dtype"))
    aval = array_operand("full_like", x) if plain else x
    sizes = aval.shape if shape is None else shape
    if dtype is not None:
        return full(sizes, fill_value, dtype)
    value = ops.convert_element_type(
        array_operand("full_like", fill_value), aval.dtype, getattr(aval, "weak_type", False)
    )
    return full(sizes, value)


@named
def zeros_like_array(x: Any) -> Any:
    """Zeros of the shape and dtype of an array: the name that :func:`full_like` of 0 once had, and rules still use.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.zeros_like_array(pnp.ones(2)))
    [0. 0.]
    """
    return full_like(x, 0)


# Slices and indices ------------------------------------------------------------------------------------------------


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """The elements from ``start_indices`` to before ``limit_indices`` along each axis.

    Args:
      operand: an array.
      start_indices: the first position along each axis.
      limit_indices: the position after the last one.
      strides: the distance of neighbours along each axis; 1 by default.

    Raises:
      ShapeError: limits that do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.slice(pnp.arange(6), (1,), (6,), (2,)))
    [1 3 5]
    """
    x = array_operand("slice", operand)
    steps = (1,) * len(x.shape) if strides is None else ints(strides)
    starts, limits = ints(start_indices), ints(limit_indices)
    return bind(slicing.slice_p, x, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """A slice along one axis; indices may count from the end, and None is the one or the other end.

    Args:
      operand: an array.
      start_index: the first position.
      limit_index: the position after the last one.
      stride: the distance of neighbours.
      axis: along which axis.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.slice_in_dim(pnp.arange(6), 1, -1))
    [1 2 3 4]
    """
    x = array_operand("slice_in_dim", operand)
    rank = len(x.shape)
    axis = axis_position("slice_in_dim", axis, rank)
    n = x.shape[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = n if limit_index is None else operator.index(limit_index)
    starts, limits, steps = [0] * rank, list(x.shape), [1] * rank
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    steps[axis] = operator.index(stride)
    return slice(x, starts, limits, steps)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """The part of the array at one position of an axis.

    Args:
      operand: an array.
      index: the position; a negative one counts from the end.
      axis: along which axis.
      keepdims: whether to leave the axis, with size one.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.index_in_dim(pnp.arange(6), -1))
    [5]
    """
    x = array_operand("index_in_dim", operand)
    axis = axis_position("index_in_dim", axis, len(x.shape))
    n = x.shape[axis]
    if not -n <= index < n:
        raise ShapeError(f"lax.index_in_dim: index {index} is out of bounds for axis {axis} of shape {x.shape}")
    part = slice_in_dim(x, index % n, index % n + 1, axis=axis)
    return part if keepdims else squeeze(part, (axis,))


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: Any = None,
) -> Any:
    """One window of the array for each index vector; see XLA's operation semantics.

    Args:
      operand: an array.
      start_indices: integers; the last axis is the index vector, the position where a window starts.
      dimension_numbers: how the axes belong together.
      slice_sizes: the size of a window along each axis.
      unique_indices: a promise that the windows do not overlap.
      indices_are_sorted: a promise that the index vectors are in order.
      mode: what becomes of windows that are not inside.
      fill_value: what they hold with ``FILL_OR_DROP``.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> print(lax.gather(pnp.array([[0, 1], [2, 3]]), pnp.array([[1]]), numbers, (1, 2)))
    [[2 3]]
    """
    return bind(
        indexing.gather_p,
        array_operand("gather", operand),
        array_operand("gather", start_indices),
        dimension_numbers=dimension_numbers,
        slice_sizes=ints(slice_sizes),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=GatherScatterMode.from_any(mode),
        fill_value=fill_value,
    )


def _scatter(primitive: Primitive, what: str) -> Callable[..., Any]:
    """The checked function of a scatter."""
    name = primitive.name

    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode | str | None = None,
    ) -> Any:
        return bind(
            primitive,
            array_operand(name, operand),
            array_operand(name, scatter_indices),
            array_operand(name, updates),
            dimension_numbers=dimension_numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=GatherScatterMode.from_any(mode),
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The array with the windows at ``scatter_indices`` {what}; see XLA's operation semantics.\n\n"
        "    Args:\n      operand: an array.\n"
        "      scatter_indices: index vectors along the last axis, integers.\n"
        "      updates: the windows, of the dtype of ``operand``.\n"
        "      dimension_numbers: which axes are which.\n"
        "      indices_are_sorted: a promise that the index vectors are in order.\n"
        "      unique_indices: a promise that no two windows overlap.\n"
        "      mode: what becomes of windows that are not inside.\n\n"
        "    Raises:\n      DtypeError, ShapeError: operands that do not fit each other or the dimension numbers."
    )
    return function


scatter = _scatter(scattering.scatter_p, "replaced by ``updates``")
scatter_add = _scatter(scattering.scatter_add_p, "and ``updates`` summed")
scatter_mul = _scatter(scattering.scatter_mul_p, "and ``updates`` multiplied")
scatter_min = _scatter(scattering.scatter_min_p, "replaced by their minimum with ``updates``")
scatter_max = _scatter(scattering.scatter_max_p, "replaced by their maximum with ``updates``")

# Reductions --------------------------------------------------------------------------------------------------------


def _reduction(primitive: Primitive, what: str) -> Callable[..., Any]:
    """The checked function of a reduction."""
    name = primitive.name

    def function(operand: Any, axes: Sequence[int]) -> Any:
        return bind(primitive, array_operand(name, operand), axes=ints(axes))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {what} of the elements along some axes, in their dtype.\n\n"
        "    Raises:\n      DtypeError, ShapeError: a dtype that it does not take, or axes that do not exist."
    )
    return function


reduce_sum = _reduction(reductions.reduce_sum_p, "sum")
reduce_prod = _reduction(reductions.reduce_prod_p, "product")
reduce_max = _reduction(reductions.reduce_max_p, "maximum")
reduce_min = _reduction(reductions.reduce_min_p, "minimum")
reduce_and = _reduction(reductions.reduce_and_p, "conjunction")
reduce_or = _reduction(reductions.reduce_or_p, "disjunction")
reduce_xor = _reduction(reductions.reduce_xor_p, "exclusive disjunction")


def _position(primitive: Primitive, what: str) -> Callable[..., Any]:
    """The checked function of ``argmax`` or ``argmin``."""
    name = primitive.name

    def function(operand: Any, axis: int, index_dtype: Any) -> Any:
        x = array_operand(name, operand)
        axes = (axis_position(name, axis, len(x.shape)),)
        return bind(primitive, x, axes=axes, index_dtype=dtypes.canonicalize_dtype(index_dtype))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The position of the first {what} element along an axis, in an integer dtype.\n\n"
        "    Args:\n      operand: an array of real numbers or booleans.\n"
        "      axis: along which axis, which is not in the result.\n"
        "      index_dtype: the dtype of the result, to which all positions have to fit."
    )
    return function


argmax = _position(reductions.argmax_p, "largest")
argmin = _position(reductions.argmin_p, "smallest")


def _cumulative(primitive: Primitive, what: str) -> Callable[..., Any]:
    """The checked function of a cumulative operation."""
    name = primitive.name

    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        x = array_operand(name, operand)
        return bind(primitive, x, axis=axis_position(name, axis, len(x.shape)), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {what} of the elements up to each one along an axis; from each one on if ``reverse``.\n\n"
        "    Args:\n      operand: an array.\n      axis: along which axis.\n"
        "      reverse: whether to begin with the last element."
    )
    return function


cumsum = _cumulative(reductions.cumsum_p, "sum")
cumprod = _cumulative(reductions.cumprod_p, "product")
cummax = _cumulative(reductions.cummax_p, "maximum")
cummin = _cumulative(reductions.cummin_p, "minimum")
cumlogsumexp = _cumulative(reductions.cumlogsumexp_p, "logarithm of the sum of the exponentials")


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements in ascending order along an axis.

    Args:
      operand: an array; or several, as a list or tuple, of one shape, which are all put in the order of the first ones.
      dimension: along which axis.
      is_stable: whether equal elements keep their order.
      num_keys: how many of several operands are keys.

    Returns:
      An array, or a tuple of arrays.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.sort(pnp.array([3, 1, 2])))
    [1 2 3]
    """
    several = isinstance(operand, (list, tuple))
    xs = [array_operand("sort", x) for x in (operand if several else (operand,))]
    if not xs:
        raise ShapeError("lax.sort needs at least one operand")
    axis = axis_position("sort", dimension, len(xs[0].shape))
    out = bind(sorting.sort_p, *xs, dimension=axis, is_stable=bool(is_stable), num_keys=operator.index(num_keys))
    return tuple(out) if several else out[0]


@named
def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Keys in ascending order along an axis, and values in the order of their keys.

    Args:
      keys: an array.
      values: an array of the same shape.
      dimension: along which axis.
      is_stable: whether values of equal keys keep their order.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.sort_key_val(pnp.array([3, 1, 2]), pnp.array([30, 10, 20]))[1])
    [10 20 30]
    """
    ordered, carried = sort((keys, values), dimension, is_stable)
    return ordered, carried


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Any, Any]:
    """The ``k`` largest elements along an axis, in descending order, and their positions.

    Args:
      operand: an array of real numbers.
      k: how many, at most the size of the axis.
      axis: along which axis.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> values, positions = lax.top_k(pnp.array([1, 3, 2]), 2)
    >>> print(values, positions)
    [3 2] [1 2]
    """
    x = array_operand("top_k", operand)
    values, positions = bind(sorting.top_k_p, x, k=operator.index(k), axis=axis_position("top_k", axis, len(x.shape)))
    return values, positions


# Contractions ------------------------------------------------------------------------------------------------------


class Precision(enum.Enum):
    """How exactly products are computed: accepted for compatibility, for here they are computed in full precision."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The sum of products over some axes, for each index of others.

    Args:
      lhs, rhs: arrays; of different dtypes they are converted to their common one.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``.
      precision: accepted for compatibility.
      preferred_element_type: the dtype to sum in and to return; that of the operands by default.

    Returns:
      An array with the batch axes, then the other axes of ``lhs``, then those of ``rhs``.

    Raises:
      DtypeError, ShapeError: operands that do not fit each other or the axes.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.dot_general(pnp.ones((2, 3, 4)), pnp.ones((2, 4, 5)), (((2,), (1,)), ((0,), (0,)))).shape
    (2, 3, 5)
    """
    x, y = array_operand("dot_general", lhs), array_operand("dot_general", rhs)
    (xc, yc), (xb, yb) = dimension_numbers
    numbers = ((ints(xc), ints(yc)), (ints(xb), ints(yb)))
    if preferred_element_type is None:
        if x.dtype != y.dtype:
            wide = dtypes.promote_types(x.dtype, y.dtype)
            x, y = ops.convert_element_type(x, wide, x.weak_type), ops.convert_element_type(y, wide, y.weak_type)
        return bind(contraction.dot_general_p, x, y, dimension_numbers=numbers)
    dtype = dtypes.canonicalize_dtype(preferred_element_type)
    wide = dtypes.promote_types(dtypes.promote_types(x.dtype, y.dtype), dtype)
    x, y = ops.convert_element_type(x, wide), ops.convert_element_type(y, wide)
    return ops.convert_element_type(bind(contraction.dot_general_p, x, y, dimension_numbers=numbers), dtype)


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The product of two vectors, of two matrices, or of a matrix and a vector; or what the dimension numbers say.

    Args:
      lhs, rhs: arrays; of different dtypes they are converted to their common one.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``; None for the usual
        product.
      precision: accepted for compatibility.
      preferred_element_type: the dtype to sum in and to return; that of the operands by default.

    Raises:
      DtypeError, ShapeError: operands that do not fit each other.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.dot(pnp.array([1.0, 2.0]), pnp.array([3.0, 4.0])))
    11.0
    """
    x, y = array_operand("dot", lhs), array_operand("dot", rhs)
    if dimension_numbers is None:
        if len(x.shape) not in (1, 2) or len(y.shape) not in (1, 2) or x.shape[-1] != y.shape[0]:
            raise ShapeError(
                "lax.dot: without dimension_numbers the operands must be matrices or vectors that fit, got shapes "
                f"{x.shape} and {y.shape}"
            )
        dimension_numbers = (((len(x.shape) - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """The products of matrices in the last two axes, for each index of the others, which are equal.

    Args:
      lhs, rhs: arrays of shapes ``(..., n, k)`` and ``(..., k, m)``.
      precision: accepted for compatibility.

    Raises:
      DtypeError, ShapeError: operands that do not fit each other.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.batch_matmul(pnp.ones((2, 3, 4)), pnp.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    x, y = array_operand("batch_matmul", lhs), array_operand("batch_matmul", rhs)
    rank = len(x.shape)
    if rank < 2 or len(y.shape) != rank:
        raise ShapeError(f"lax.batch_matmul needs operands of one rank of at least 2, got {x.shape} and {y.shape}")
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)
