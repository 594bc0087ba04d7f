"""Slices at positions that may be traced, gathers and scatters, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.arguments import flag, quote
from pullback.core.array import Array, ArrayImpl, ArrayLike, scalar_array
from pullback.core.docs import describe
from pullback.core.elsewhere import is_here
from pullback.core.errors import IntegerRangeError, ShapeError
from pullback.core.naming import named
from pullback.core.trace import Primitive
from pullback.lax.arguments import axis_position, ints
from pullback.lax.reductions import reduce_max
from pullback.lax.shapes import expand_dims, slice_in_dim, squeeze
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import indexing, shapes, slicing
from pullback.primitives.arrays import scatter as scattering
from pullback.primitives.arrays.gather import as_weak_as
from pullback.primitives.arrays.indexing import GatherDimensionNumbers, GatherScatterMode, wide_enough
from pullback.primitives.arrays.scatter import ScatterDimensionNumbers
from pullback.primitives.checks import known_int
from pullback.primitives.operands import array_operand, bind

# Slices at dynamic positions ---------------------------------------------------------------------------------------


def _starts(name: str, x: Any, start_indices: Any, from_the_end: bool | Sequence[bool]) -> list[Any]:
    """Convert start indices to a list with a scalar for each axis of ``x``.

    Args:
      name: the name of the function, for errors.
      x: the array to index.
      start_indices: the indices.
      from_the_end: whether negative indices count from the end; one boolean, or a boolean for each axis.
    """
    if isinstance(start_indices, Array) or not isinstance(start_indices, (list, tuple)):
        vector = array_operand(name, start_indices)
        start_indices = [
            squeeze(slice_in_dim(vector, i, i + 1), (0,)) for i in range(len(vector.shape) and vector.shape[0])
        ]
    if len(start_indices) != len(x.shape):
        raise ShapeError(
            f"lax.{name} of an array of shape {x.shape} needs {len(x.shape)} start indices, got {len(start_indices)}"
        )
    may = [from_the_end] * len(x.shape) if isinstance(from_the_end, (bool, np.bool_)) else from_the_end
    if not isinstance(may, (list, tuple)):
        raise ShapeError(f"lax.{name}: allow_negative_indices must be a bool, or one for each axis, got {quote(may)}")
    if len(may) != len(x.shape):
        raise ShapeError(
            f"lax.{name}: allow_negative_indices must be a bool, or one for each axis, got {from_the_end!r}"
        )
    return [_from_the_end(name, i, n, wrap) for i, n, wrap in zip(start_indices, x.shape, may, strict=True)]


def _from_the_end(name: str, i: Any, n: int, may: bool) -> Any:
    if not isinstance(i, Array) or is_here(i) or (isinstance(i, ArrayImpl) and not dtypes.is_integer(i.dtype)):
        try:
            known: Any = None if type(i) is int else array_operand(name, i)
            index = i if type(i) is int else operator.index(known._value)
        except TypeError:
            raise ShapeError(f"lax.{name}: a start index must be an integer scalar, got {i!r}") from None
        if index < 0 and not may:
            raise ShapeError(f"lax.{name}: the index {index} is negative, but allow_negative_indices is False")
        if index >= 0 and isinstance(i, Array) and i.dtype == np.int32:
            return i
        index = index + n if index < 0 else index
        if not -(2**63) <= index < 2**63:
            raise IntegerRangeError(f"lax.{name}: the start index {index} does not fit in 64 bits")
        return scalar_array(np.int32(index) if -(2**31) <= index < 2**31 else np.int64(index))
    if not may:
        return i
    i = wide_enough(i, n)
    return ops.where(ops.lt(i, 0), ops.add(i, n), i) if not dtypes.issubdtype(i.dtype, np.unsignedinteger) else i


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A block of fixed size at a position that may be traced, which is clamped so that the block is inside.

    Args:
      operand: an array.
      start_indices: an integer scalar for each axis, or a vector; negative ones count from the end.
      slice_sizes: the shape of the block.
      allow_negative_indices: whether negative starts count from the end, for all axes or for each; otherwise concrete
        negative starts raise, and traced ones become 0.

    Returns:
      An array of shape ``slice_sizes`` and of the dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      ShapeError: the starts are not an integer for each axis, or the block does not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dynamic_slice(jnp.arange(6), (2,), (3,)))
    [2 3 4]
    """
    x = array_operand("dynamic_slice", operand)
    starts = _starts("dynamic_slice", x, start_indices, allow_negative_indices)
    return as_weak_as(x, bind(indexing.dynamic_slice_p, x, *starts, slice_sizes=ints(slice_sizes)))


@named
def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """A block of fixed size along one axis.

    Args:
      operand: an array.
      start_index: an integer, which may be traced; it is clamped so that the block is inside.
      slice_size: the size of the block.
      axis: the axis.
      allow_negative_indices: whether a negative index counts from the end; otherwise a concrete negative index raises,
        and a traced one becomes 0.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the start is not an integer scalar, or the block does not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dynamic_slice_in_dim(jnp.arange(6), 4, 3))
    [3 4 5]
    """
    x = array_operand("dynamic_slice_in_dim", operand)
    axis = axis_position("dynamic_slice_in_dim", axis, len(x.shape))
    starts: list[Any] = [0] * len(x.shape)
    sizes = list(x.shape)
    starts[axis], sizes[axis] = start_index, known_int("lax.dynamic_slice_in_dim", "slice_size", slice_size)
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


@named
def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """The slice of the array at one position of an axis, which may be traced.

    Args:
      operand: an array.
      index: an integer, which may be traced; out of range it is clamped.
      axis: the axis.
      keepdims: whether to keep the axis, with size one.
      allow_negative_indices: whether a negative index counts from the end; otherwise a concrete negative index raises,
        and a traced one becomes 0.

    Returns:
      An array of the dtype of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the index is not an integer scalar, or negative where that is not allowed (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dynamic_index_in_dim(jnp.arange(6), 2, keepdims=False))
    2
    """
    keepdims = flag("lax.dynamic_index_in_dim", "keepdims", keepdims)
    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The array with a block replaced, at a position that may be traced, clamped so that the block is inside.

    Args:
      operand: an array.
      update: the block, of the same dtype.
      start_indices: an integer scalar for each axis, or a vector; negative ones count from the end.
      allow_negative_indices: as for :func:`dynamic_slice`.

    Returns:
      An array of the shape and dtype of ``operand``.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: the dtypes differ (a TypeError).
      ShapeError: the starts are not an integer for each axis, or the block does not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,)))
    [0. 1. 1. 0.]
    """
    x, block = array_operand("dynamic_update_slice", operand), array_operand("dynamic_update_slice", update)
    starts = _starts("dynamic_update_slice", x, start_indices, allow_negative_indices)
    return bind(indexing.dynamic_update_slice_p, x, block, *starts)


@named
def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The array with a block along one axis replaced.

    Args:
      operand: an array.
      update: the block, of the dtype and the number of axes of ``operand``.
      start_index: an integer, which may be traced; it is clamped so that the block is inside.
      axis: the axis.
      allow_negative_indices: whether a negative index counts from the end; otherwise a concrete negative index raises,
        and a traced one becomes 0.

    Returns:
      An array of the shape and dtype of ``operand``.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      DtypeError: the dtypes differ (a TypeError).
      ShapeError: the start is not an integer scalar, or the block does not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, axis=0))
    [0. 1. 1. 0.]
    """
    x = array_operand("dynamic_update_slice_in_dim", operand)
    starts: list[Any] = [0] * len(x.shape)
    starts[axis_position("dynamic_update_slice_in_dim", axis, len(x.shape))] = start_index
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


@named
def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The array with the slice at one position of an axis replaced; ``update`` may lack that axis.

    Args:
      operand: an array.
      update: the new slice, of the dtype of ``operand``; its axis has size one, or is missing.
      index: an integer, which may be traced; out of range it is clamped.
      axis: the axis.
      allow_negative_indices: whether a negative index counts from the end; otherwise a concrete negative index raises,
        and a traced one becomes 0.

    Returns:
      An array of the shape and dtype of ``operand``.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      DtypeError: the dtypes differ (a TypeError).
      ShapeError: the slice does not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dynamic_update_index_in_dim(jnp.zeros(3), 7.0, 1, axis=0))
    [0. 7. 0.]
    """
    x, part = (
        array_operand("dynamic_update_index_in_dim", operand),
        array_operand("dynamic_update_index_in_dim", update),
    )
    axis = axis_position("dynamic_update_index_in_dim", axis, len(x.shape))
    if len(part.shape) != len(x.shape):
        part = expand_dims(part, (axis,))
    return dynamic_update_slice_in_dim(x, part, index, axis, allow_negative_indices=allow_negative_indices)


# Gathers and scatters ------------------------------------------------------------------------------------------------


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """One window of the array for each index vector; see XLA's operation semantics.

    Args:
      operand: an array.
      start_indices: integers; the last axis is the index vector, the position where a window starts.
      dimension_numbers: the roles of the axes.
      slice_sizes: the size of a window along each axis.
      unique_indices: a promise that the windows do not overlap.
      indices_are_sorted: a promise that the index vectors are sorted.
      mode: the treatment of windows that are not inside.
      fill_value: their elements with ``FILL_OR_DROP``.

    Returns:
      An array of the dtype of ``operand``, with the batch axes of the indices and the axes of the windows.

    Raises:
      DtypeError: the indices are not integers (a TypeError).
      ShapeError: the operands, dimension numbers and sizes do not fit each other (a TypeError and a ValueError).
      ArgumentError: the mode is unknown, or a promise is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> print(lax.gather(jnp.array([[0, 1], [2, 3]]), jnp.array([[1]]), numbers, (1, 2)))
    [[2 3]]
    """
    indices_are_sorted = flag("lax.gather", "indices_are_sorted", indices_are_sorted)
    unique_indices = flag("lax.gather", "unique_indices", unique_indices)
    return indexing.gather(
        array_operand("gather", operand),
        array_operand("gather", start_indices),
        dimension_numbers,
        ints(slice_sizes),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        fill_value=fill_value,
    )


class Scatter(Protocol):
    """The signature of the checked functions of scatters."""

    def __call__(
        self,
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode | str | None = None,
    ) -> Array: ...


_OF_SCATTER = """The array with the windows at ``scatter_indices`` {what}; see XLA's operation semantics.

Args:
  operand: an array.
  scatter_indices: index vectors along the last axis, integers.
  updates: the windows, of the dtype of ``operand``.
  dimension_numbers: the roles of the axes.
  indices_are_sorted: whether the index vectors are sorted; the compiler relies on it.
  unique_indices: whether no two windows overlap; the compiler relies on it.
  mode: the treatment of windows out of range.

Returns:
  An array of the shape and dtype of ``operand``.

Raises:
  DtypeError, ShapeError: the operands do not fit each other or the dimension numbers.

>>> import pullback.numpy as jnp
>>> from pullback import lax
>>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
>>> print(lax.{name}(jnp.array([2.0, 3.0, 4.0]), jnp.array([[1]]), jnp.array([5.0]), numbers))
{result}
"""


def _scatter(primitive: Primitive, what: str, result: str) -> Scatter:
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

    return describe(function, name, _OF_SCATTER.format(name=name, what=what, result=result))


scatter = _scatter(scattering.scatter_p, "replaced by ``updates``", "[2. 5. 4.]")
scatter_add = _scatter(scattering.scatter_add_p, "and ``updates`` summed", "[2. 8. 4.]")
scatter_mul = _scatter(scattering.scatter_mul_p, "and ``updates`` multiplied", "[ 2. 15.  4.]")
scatter_min = _scatter(scattering.scatter_min_p, "replaced by their minimum with ``updates``", "[2. 3. 4.]")
scatter_max = _scatter(scattering.scatter_max_p, "replaced by their maximum with ``updates``", "[2. 5. 4.]")


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """The array with the windows at ``scatter_indices`` minus ``updates``; see XLA's operation semantics.

    Args:
      operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode: as for
        :func:`scatter_add`.

    Returns:
      An array of the shape and dtype of ``operand``.

    Raises:
      DtypeError, ShapeError: the operands do not fit each other or the dimension numbers.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter_sub(jnp.zeros(3), jnp.array([[1], [1]]), jnp.array([1.0, 2.0]), numbers))
    [ 0. -3.  0.]
    """
    unique_indices = flag("lax.scatter_sub", "unique_indices", unique_indices)
    indices_are_sorted = flag("lax.scatter_sub", "indices_are_sorted", indices_are_sorted)
    x, indices, lost = (array_operand("scatter_sub", a) for a in (operand, scatter_indices, updates))
    return scatter_add(
        x, indices, ops.neg(lost), dimension_numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], ArrayLike],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """The array with a function applied to the elements of the windows at ``scatter_indices``.

    It is applied repeatedly to an element in several windows, in rounds over the whole array.

    Args:
      operand: an array.
      scatter_indices: index vectors along the last axis, integers.
      func: takes and returns an array of the shape and dtype of ``operand``, element by element.
      dimension_numbers: the roles of the axes, as for :func:`scatter_add`.
      update_shape: the shape that the updates of :func:`scatter_add` would have.
      indices_are_sorted, unique_indices, mode: as for :func:`scatter_add`.

    Returns:
      An array of the shape and dtype of ``operand``.

    Raises:
      DtypeError, ShapeError: the operands do not fit each other or the dimension numbers.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter_apply(jnp.ones(3), jnp.array([[1], [1]]), lambda x: 2 * x, numbers, update_shape=(2,)))
    [1. 4. 1.]
    """
    unique_indices = flag("lax.scatter_apply", "unique_indices", unique_indices)
    indices_are_sorted = flag("lax.scatter_apply", "indices_are_sorted", indices_are_sorted)
    x, indices = array_operand("scatter_apply", operand), array_operand("scatter_apply", scatter_indices)
    once = shapes.full(ints(update_shape), 1, np.dtype(np.int32))
    counts = scatter_add(
        shapes.full(x.shape, 0, np.dtype(np.int32)), indices, once, dimension_numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip

    def round_of_all(state: tuple[Any, Any]) -> tuple[Any, Any]:
        values, left = state
        return ops.where(ops.gt(left, 0), func(values), values), ops.sub(left, 1)

    return while_loop(lambda state: ops.gt(reduce_max(state[1], range(len(x.shape))), 0), round_of_all, (x, counts))[0]


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The elements at some positions of some axes, along a new first axis, for each index of the other axes.

    Args:
      src: an array.
      idxs: for each axis of ``axes`` a vector of positions, all of one length; negative ones count from the end, and
        those out of range are clamped.
      axes: the axes.

    Returns:
      An array whose first axis is the axis of the positions; the others are the axes of ``src`` that are not in
      ``axes``.

    Raises:
      ShapeError: not as many axes as vectors, or not vectors of one length (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.index_take(jnp.array([[0, 1], [2, 3]]), (jnp.array([1, 0]), jnp.array([0, 1])), (0, 1)))
    [2 1]
    """
    x = array_operand("index_take", src)
    where = [axis_position("index_take", a, len(x.shape)) for a in axes]
    if not isinstance(idxs, (tuple, list)):
        raise ShapeError(f"lax.index_take: idxs must be a sequence of vectors, got {type(idxs).__name__}")
    positions = [array_operand("index_take", i) for i in idxs]
    if len(positions) != len(where) or len(set(where)) != len(where) or not where:
        raise ShapeError(f"lax.index_take needs one vector of positions for each axis, got {len(positions)} for {axes}")
    if len(positions[0].shape) != 1 or any(i.shape != positions[0].shape for i in positions):
        shown = ", ".join(str(i.shape) for i in positions)
        raise ShapeError(f"lax.index_take: the positions must be vectors of one length, got shapes {shown}")
    columns = []
    for i, a in zip(positions, where, strict=True):
        i = wide_enough(i, x.shape[a])
        signed = not dtypes.issubdtype(i.dtype, np.unsignedinteger)
        columns.append(ops.where(ops.lt(i, 0), ops.add(i, x.shape[a]), i) if signed else i)
    common = max((c.dtype for c in columns), key=lambda d: d.itemsize)
    vectors = [expand_dims(ops.convert_element_type(c, common), (1,)) for c in columns]
    rank = len(x.shape)
    numbers = GatherDimensionNumbers(tuple(range(1, rank - len(where) + 1)), tuple(sorted(where)), tuple(where))
    sizes = [1 if a in where else n for a, n in enumerate(x.shape)]
    return gather(x, slicing.concatenate(vectors, 1), numbers, sizes, mode="clip")
