# long: because there are many functions, each with its docstring
"""Indexing: ``x[index]`` in all of NumPy's forms, and the functions that select elements by position.

On concrete arrays an index goes straight to NumPy. An int that is out of range means the first or last element, as
in JAX, and an array of integers is clipped alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback.backends.host.indexing import along_axis
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import flag, is_listed
from pullback.core.array import MOST_HOST_AXES, Absent, Array, ArrayImpl, ArrayLike, as_array
from pullback.core.dims import Dim, any_symbolic
from pullback.core.elsewhere import is_here
from pullback.core.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    IndexingError,
    OperandError,
    ShapeError,
)
from pullback.core.runtime import runtime
from pullback.core.trace import Tracer, state
from pullback.numpy.creation import listed
from pullback.numpy.index_lowering import checked_mode, position, read, unless_checked, write
from pullback.numpy.promotion import (
    another,
    axis_index,
    memory_for,
    named,
    number_operand,
    operand,
    positions_operand,
    promote_all,
    sequence,
    sequence_of,
    shape_tuple,
    size_of,
)
from pullback.numpy.symbolic_indexing import has_symbolic, is_simple, read_simple
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import indexing, shapes, slicing
from pullback.primitives.arrays.indexing import GatherDimensionNumbers, GatherScatterMode, wide_enough
from pullback.primitives.arrays.scatter import ScatterDimensionNumbers, scatter
from pullback.primitives.arrays.sorting import take_along_axis as along
from pullback.primitives.checks import check_positions
from pullback.primitives.declare import is_differentiated_here
from pullback.primitives.linalg.contraction import HIGHEST, dot_general_p
from pullback.transforms.programs.placement import committed_like

__all__ = [
    "argwhere", "choose", "compress", "extract", "flatnonzero", "nonzero", "place", "put", "put_along_axis",
    "ravel_multi_index", "take", "take_along_axis",
]  # fmt: skip

_INT32 = np.dtype(np.int32)

# x[index] ----------------------------------------------------------------------------------------------------------

_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def getitem(x: Any, index: Any) -> Any:
    """``x[index]`` in NumPy's forms: ints, slices, None, ``...``, arrays of integers and booleans, tuples of these.

    Args:
      x: an array.
      index: the index; booleans must be concrete, for the shape of the result depends on them.

    Returns:
      The selected elements, as NumPy arranges them. An int out of range means the first or last element.

    Raises:
      IndexingError: too many indices, a mask of another shape, or an index into an axis of size 0 (an IndexError).
      OperandError: an index of another type, such as a float, or a list outside a tuple (a TypeError).
      NonConcreteBooleanIndexError: a traced mask (an IndexError too).

    >>> import pullback.numpy as jnp
    >>> from pullback.numpy.indexing import getitem
    >>> print(getitem(jnp.arange(6).reshape(2, 3), (slice(None), 1)))
    [1 4]
    """
    kind = type(index)
    if type(x) is ArrayImpl:
        if state.trace.quick:
            value = x._host_value
            try:
                if kind is int or kind is slice:
                    return ArrayImpl(value[index], x.weak_type)
                if kind is tuple:
                    for item in index:
                        if type(item) not in _BASIC:
                            return ArrayImpl(value[_numpy_index(index)], x.weak_type)
                    out = value[index]
                    return ArrayImpl(out if out.shape else out[()], x.weak_type)
                if kind is ArrayImpl and index._host_value.dtype.kind in "iub":
                    return ArrayImpl(value[index._host_value], x.weak_type)
                if kind is np.ndarray and index.dtype.kind in "iub":
                    return ArrayImpl(value[index], x.weak_type)
            except (IndexError, TypeError):  # out of range, or an error to explain
                if type(value) is Absent:  # or the elements are still on the device
                    return getitem(ArrayImpl(x._value, x.weak_type), index)
        if has_symbolic(index) and is_simple(index):
            return read_simple(x, index)
    elif (any_symbolic(x.shape) or has_symbolic(index)) and is_simple(index):
        return read_simple(x, index)
    elif kind is slice:
        out = _slice_first(x, index)
        if out is not None:
            return out
    elif kind is int:
        shape = x.shape
        if shape and -shape[0] <= index < shape[0]:
            i = position(index, shape[0])
            rest = shape[1:]
            zeros = (0,) * len(rest)
            out = slicing.slice_p.bind(
                x, start_indices=(i, *zeros), limit_indices=(i + 1, *rest), strides=(1,) * len(shape)
            )
            return shapes.squeeze_p.bind(out, dimensions=(0,))
    return read(x, index)


def _numpy_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace arrays in an index by NumPy arrays; raise IndexError if NumPy cannot handle the index."""
    out = []
    for item in index:
        if type(item) is ArrayImpl:
            item = item._value
        if isinstance(item, (np.ndarray, np.generic)):
            if item.dtype.kind not in "iub":
                raise IndexError("only integers and booleans index")
        elif type(item) not in _BASIC:
            raise IndexError("not an index for NumPy")
        out.append(item)
    return tuple(out)


def _slice_first(x: Any, index: slice) -> Any:
    """Return ``x[index]`` by a single slice operation if the step is 1, otherwise None."""
    shape = x.shape
    step = index.step
    if not shape or not (step is None or (type(step) is int and step == 1)):
        return None
    size = shape[0]
    try:
        start, stop, _ = index.indices(size)
    except TypeError:
        return None
    if start == 0 and stop == size:
        return x
    rest = shape[1:]
    return slicing.slice_p.bind(
        x,
        start_indices=(start, *(0,) * len(rest)),
        limit_indices=(stop if stop > start else start, *rest),
        strides=(1,) * len(shape),
    )


def iterate(x: Any) -> Iterator[Any]:
    """Iterate over the slices of an array along its first axis.

    Args:
      x: an array.

    Returns:
      An iterator over arrays without that axis.

    Raises:
      OperandError: the array has no axes (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.numpy.indexing import iterate
    >>> [float(row.sum()) for row in iterate(jnp.ones((2, 3)))]
    [3.0, 3.0]
    """
    if not x.shape:
        raise OperandError("a scalar array cannot be iterated over")
    if type(x) is ArrayImpl and state.trace.quick:
        weak = x.weak_type
        return iter([ArrayImpl(row, weak) for row in x._value])
    return iter(slicing.unstack(x, 0) if x.shape[0] else ())


# Taking along an axis ----------------------------------------------------------------------------------------------


def _wrapped(name: str, positions: Any, size: int, mode: Any) -> tuple[Any, GatherScatterMode]:
    """Adjust positions along an axis of ``size`` elements for ``mode``, such as "wrap" or "clip".

    Return the adjusted positions, and the mode of the gather that reads them. ``name`` is the function, for errors.
    """
    if mode == "raise":
        raise ArgumentError(f"{name}: mode='raise' does not work with traced indices; choose 'fill', 'clip' or 'wrap'")
    if mode == "wrap":
        if size == 0:
            raise IndexingError(f"{name}: an empty axis has no positions to wrap to")
        positions = wide_enough(positions, size)
        size_ = shapes.full((), size, positions.dtype)
        rest = ops.rem_p.bind(positions, size_)
        return ops.where(ops.lt(rest, 0), ops.add(rest, size_), rest), GatherScatterMode.PROMISE_IN_BOUNDS
    if mode == "clip":
        return ops.max_p.bind(positions, shapes.full((), 0, positions.dtype)), GatherScatterMode.CLIP
    return positions, GatherScatterMode.from_any(mode)


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements at some positions along an axis.

    Args:
      a: an array.
      indices: integers of any shape; negative ones count from the end.
      axis: the axis; None for the elements in row-major order.
      out: must be None.
      mode: the result at a position out of range: "fill" (the default) the ``fill_value``, "clip" the first or last
        element (negative positions are then out of range), "wrap" the element at the remainder.
      unique_indices: a promise that no position occurs twice.
      indices_are_sorted: a promise that the positions are sorted.
      fill_value: by default NaN, or the least signed, the greatest unsigned integer, or True.

    Returns:
      An array with the axes of ``indices`` instead of the axis.

    Raises:
      DtypeError: ``indices`` are not integers (a TypeError).
      ShapeError: the axis is out of range (a ValueError).
      IndexingError: the axis is empty, and ``indices`` is not (an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.take(jnp.array([1.0, 2.0]), jnp.array([1, 0, 5])))
    [ 2.  1. nan]
    """
    unique_indices = flag("take", "unique_indices", unique_indices)
    indices_are_sorted = flag("take", "indices_are_sorted", indices_are_sorted)
    if out is not None:
        raise ArgumentError("take: out must be None, because arrays are immutable")
    x, positions = operand("take", a), positions_operand("take", indices)
    x = shapes.reshape(x, (x.aval.size,)) if axis is None else x
    where = 0 if axis is None else axis_index(axis, len(x.shape), "take")
    if not x.shape[where] and positions.aval.size:
        raise IndexingError(f"take: axis {where} of an array of shape {x.shape} has no elements to take")
    quick = state.trace.quick and mode in (None, "fill") and len(x.shape) + len(positions.shape) <= MOST_HOST_AXES
    if quick and type(x) is ArrayImpl and type(positions) is ArrayImpl:
        try:
            return ArrayImpl(x._value.take(positions._value, axis=where), x.weak_type)
        except IndexError:
            pass
    operand("take: fill_value", 0 if fill_value is None else fill_value)
    positions, gather_mode = _wrapped("take", positions, x.shape[where], unless_checked(mode))
    index = (*(slice(None),) * where, positions) if where else positions
    return read(x, index, gather_mode, fill_value, indices_are_sorted, unique_indices)


def _aligned(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Any, Any, int]:
    """Convert the arguments of functions such as ``take_along_axis``; return the array, the indices and the axis.

    The array is flattened if ``axis`` is None. Raise unless the array and the indices have equal sizes along all other
    axes; a size of 1 broadcasts. ``name`` is the function, for errors.
    """
    x, positions = operand(name, arr), positions_operand(name, indices)
    if axis is None:
        x, axis = shapes.reshape(x, (x.aval.size,)), 0
    rank = len(x.shape)
    if len(positions.shape) != rank:
        raise ShapeError(
            f"{name}: indices must have as many axes as the array, got shapes {positions.shape} and {x.shape}"
        )
    where = axis_index(axis, rank, name)
    for i, (n, m) in enumerate(zip(x.shape, positions.shape, strict=True)):
        if i != where and n != m and 1 not in (n, m):
            raise ShapeError(
                f"{name}: an array of shape {x.shape} and indices of shape {positions.shape} must have equal sizes, or "
                f"1, in every axis but axis {where}"
            )
    return x, positions, where


def _spread(x: Any, like: Any, axis: int) -> Any:
    """Broadcast axes of ``x`` of size 1, except the axis ``axis``, to the sizes that these axes have in ``like``."""
    shape = tuple(n if i == axis or n != 1 else m for i, (n, m) in enumerate(zip(x.shape, like.shape, strict=True)))
    return shapes.broadcast_to(x, shape)


def _numbers_along(rank: int, axis: int) -> tuple[Any, ...]:
    others = tuple(i for i in range(rank) if i != axis)
    return (), (axis,), (axis,), others, others


def _index_vectors(positions: Any, size: int, wrap: bool = True) -> Any:
    if positions.dtype.itemsize < 4:
        positions = ops.convert_element_type(positions, _INT32)
    positions = wide_enough(positions, size)
    if isinstance(size, Dim):
        size_ = ops.convert_element_type(as_array(size), positions.dtype)
    else:
        size_ = shapes.full((), size, positions.dtype)
    if positions.dtype.kind == "i" and wrap and not _are_none_negative(positions):
        positions = ops.where(ops.lt(positions, 0), ops.add(positions, size_), positions)
    return shapes.reshape(positions, (*positions.shape, 1))


def _are_none_negative(positions: Any) -> bool:
    """Whether positions are concrete, and none is negative: one look at them takes less time than three operations."""
    return type(positions) is ArrayImpl and (positions.size == 0 or bool(positions._value.min() >= 0))


def _are_inside(positions: Any, x: Any, axis: int) -> bool:
    """Whether concrete positions, for each vector of ``x`` along an axis, are in range, and none is negative."""
    if not is_here(positions) or x.weak_type or not positions.size:
        return False
    shape, whole = positions.shape, x.shape
    if (shape[:axis], shape[axis + 1 :]) != (whole[:axis], whole[axis + 1 :]):
        return False
    numbers = positions._value
    return bool(numbers.min() >= 0 and numbers.max() < whole[axis])


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """The elements at positions along an axis, with separate positions for each vector along it.

    Args:
      arr: an array.
      indices: integers, with as many axes as ``arr``; negative ones count from the end.
      axis: the axis; None for the elements in row-major order.
      mode: the treatment of positions out of range: "fill" (the default) or "clip". "one_hot" multiplies by a one-hot
        array, which is faster on accelerators; out of range it reads 0.
      fill_value: as in :func:`take`.
      wrap_negative_indices: whether negative positions count from the end; otherwise they are out of range.

    Returns:
      An array of the shape of ``indices``, broadcast along the other axes.

    Raises:
      ShapeError: the shapes do not fit (a ValueError).
      DtypeError: ``indices`` are not integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> x = jnp.array([[3, 1, 2], [5, 6, 4]])
    >>> print(jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1))
    [[1 2 3]
     [4 5 6]]
    """
    wrap_negative_indices = flag("take_along_axis", "wrap_negative_indices", wrap_negative_indices)
    x, positions, where = _aligned("take_along_axis", arr, indices, axis)
    if (
        type(x) is ArrayImpl
        and type(positions) is ArrayImpl
        and state.trace.quick
        and mode is None
        and wrap_negative_indices
    ):
        try:
            out = along_axis(x._value, positions._value, where)
            return ArrayImpl(out, x.weak_type)
        except IndexError:
            pass
    if mode is None and wrap_negative_indices and is_differentiated_here(x) and _are_inside(positions, x, where):
        return along(x, positions, where)  # in eager code one operation, whose transpose is one
    if is_listed(mode, ("one_hot",)):
        return _by_product(_spread(x, positions, where), _spread(positions, x, where), where)
    mode = checked_mode("take_along_axis", positions, x, where, mode, wrap_negative_indices)
    vectors = _index_vectors(_spread(positions, x, where), x.shape[where], wrap_negative_indices)
    x = _spread(x, positions, where)
    if 0 in vectors.shape or 0 in x.shape:
        return committed_like(indexing.zeros(vectors.shape[:-1], x.dtype), x)
    numbers = GatherDimensionNumbers(*_numbers_along(len(x.shape), where))
    return indexing.gather(x, vectors, numbers, (1,) * len(x.shape), mode=mode, fill_value=fill_value)


def _by_product(x: Any, positions: Any, axis: int) -> Any:
    """Return the elements of ``x`` at ``positions`` along ``axis``, as ``take_along_axis`` does.

    They are computed by a product with a one-hot array, instead of a gather.
    """
    n = x.shape[axis]
    rank = len(x.shape)
    positions = shapes.moveaxis(_index_vectors(positions, n), axis, rank - 1)  # an axis of size 1 is the last
    hot = ops.eq(positions, slicing.iota(positions.dtype, (1,) * rank + (n,), rank))
    dtype = _INT32 if dtypes.is_bool(x.dtype) else x.dtype
    others = tuple(range(rank - 1))
    out = dot_general_p.bind(
        ops.convert_element_type(shapes.moveaxis(x, axis, rank - 1), dtype),
        ops.convert_element_type(hot, dtype),
        dimension_numbers=(((rank - 1,), (rank,)), (others, others)), precision=HIGHEST,
    )  # fmt: skip
    return ops.convert_element_type(shapes.moveaxis(out, rank - 1, axis), x.dtype)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with values at the elements that :func:`take_along_axis` reads.

    Args:
      arr: an array.
      indices: integers, with as many axes as ``arr``; negative ones count from the end.
      values: broadcast to the shape of ``indices``.
      axis: the axis; None for the elements in row-major order.
      inplace: must be False, for arrays are immutable.
      mode: the treatment of positions out of range: "drop" (the default) or "clip".

    Returns:
      An array of the shape and dtype of ``arr``.

    Raises:
      ArgumentError: ``inplace`` is true (a ValueError).
      ShapeError: the shapes do not fit (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[0], [1]]), 9.0, axis=1, inplace=False))
    [[9. 0.]
     [0. 9.]]
    """
    inplace = flag("put_along_axis", "inplace", inplace)
    _not_in_place("put_along_axis", inplace)
    x, positions, where = _aligned("put_along_axis", arr, indices, axis)
    mode = checked_mode("put_along_axis", positions, x, where, mode)
    vectors = _index_vectors(_spread(positions, x, where), x.shape[where])
    target = vectors.shape[:-1]
    if any(n != 1 and i != where and n < m for i, (n, m) in enumerate(zip(x.shape, target, strict=True))):
        raise ShapeError(f"put_along_axis: indices of shape {positions.shape} do not fit an array of shape {x.shape}")
    value = ops.convert_element_type(operand("put_along_axis", values), x.dtype)
    numbers = ScatterDimensionNumbers(*_numbers_along(len(x.shape), where))
    out = scatter(x, vectors, shapes.broadcast_to(value, target), numbers, mode=mode)
    return shapes.reshape(out, np.shape(arr))


def _not_in_place(name: str, inplace: bool) -> None:
    if flag(name, "inplace", inplace):
        raise ArgumentError(
            f"{name} cannot change an array in place, because arrays are immutable; inplace=False returns a new array"
        )


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """The array with values at some positions in row-major order.

    Args:
      a: an array.
      ind: integers.
      v: the values, repeated if there are too few.
      mode: the treatment of positions out of range: "clip" (negative positions become 0), "wrap", or "drop". By default
        negative ones count from the end first, and are then clipped.
      inplace: must be False, for arrays are immutable.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      ArgumentError: ``inplace`` is true (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.put(jnp.zeros(4), jnp.array([0, -1]), jnp.array([5.0, 6.0]), inplace=False))
    [5. 0. 0. 6.]
    """
    inplace = flag("put", "inplace", inplace)
    _not_in_place("put", inplace)
    x, positions = operand("put", a), positions_operand("put", ind)
    value = ops.convert_element_type(operand("put", v), x.dtype)
    count = positions.aval.size
    if count == 0 or value.aval.size == 0:
        return another(x)
    flat = shapes.reshape(x, (x.aval.size,))
    positions = shapes.reshape(positions, (count,))
    if positions.dtype.itemsize < 4:  # a narrow dtype may not hold the size
        positions = ops.convert_element_type(positions, dtypes.default_int())
    if mode is None:
        size = shapes.full((), x.aval.size, positions.dtype)
        positions, mode = ops.where(ops.lt(positions, 0), ops.add(positions, size), positions), "clip"
    positions, scatter_mode = _wrapped("put", positions, x.aval.size, mode)
    out = write(scatter, flat, positions, repeated(value, count), scatter_mode)
    return shapes.reshape(out, x.shape)


def repeated(value: Any, count: int) -> Any:
    """A vector of ``count`` elements: the elements of an array, repeated from the start as needed."""
    size = value.aval.size
    flat = shapes.reshape(value, (size,))
    if size == 0:
        raise ShapeError("fill_diagonal needs at least one value")
    if size >= count:
        return slicing.slice_in_dim(flat, 0, count, 0)
    return slicing.slice_in_dim(slicing.concatenate([flat] * -(-count // size), 0), 0, count, 0)


def place(arr: ArrayLike, mask: ArrayLike | Sequence[Any], vals: ArrayLike, *, inplace: bool = True) -> Array:
    """The array with values, one after another, where a mask is true.

    Args:
      arr: an array.
      mask: booleans of as many elements.
      vals: the values, repeated if there are too few.
      inplace: must be False, for arrays are immutable.

    Returns:
      An array of the shape and dtype of ``arr``.

    Raises:
      ArgumentError: ``inplace`` is true (a ValueError).
      ShapeError: ``mask`` and ``arr`` differ in size, or there is no value (a ValueError).

    >>> import pullback.numpy as jnp
    >>> x = jnp.arange(4)
    >>> print(jnp.place(x, x > 1, jnp.array([7, 8]), inplace=False))
    [0 1 7 8]
    """
    inplace = flag("place", "inplace", inplace)
    _not_in_place("place", inplace)
    x, selected = operand("place", arr), operand("place", np.asarray(mask) if isinstance(mask, (list, tuple)) else mask)
    count = x.aval.size
    if selected.aval.size != count:
        raise ShapeError(f"place: mask and array must have one size, got shapes {selected.shape} and {x.shape}")
    values = ops.convert_element_type(operand("place", vals), x.dtype)
    values = shapes.reshape(values, (values.aval.size,))
    if values.shape == (0,):
        raise ShapeError(f"place needs at least one value, got an array of shape {np.shape(vals)}")
    if count == 0:
        return another(x)
    if not dtypes.is_bool(selected.dtype):
        selected = ops.ne_p.bind(selected, 0)
    selected = shapes.reshape(selected, (count,))
    # The k-th true element of the mask takes value k.
    rank = ops.sub(reductions.cumsum(ops.convert_element_type(selected, dtypes.default_int())), 1)
    rank = ops.where(selected, ops.rem_p.bind(rank, shapes.full((), values.shape[0], rank.dtype)), 0)
    updated = ops.where(selected, read(values, rank), shapes.reshape(x, (count,)))
    return shapes.reshape(updated, x.shape)


# Conditions --------------------------------------------------------------------------------------------------------


def _known(name: str, x: Any) -> Any:
    """Return the concrete values of ``x``, on which the shape of a result depends; raise if ``x`` is traced.

    ``name`` is the name of the function.
    """
    x = listed(name, x)
    known = x.concrete() if isinstance(x, Tracer) else x
    if known is None:
        raise ConcretizationTypeError(
            f"the shape of the result of {name} depends on traced values: {x!r}. It comes from {x.origin()}\n"
            "Pass the size of the result as size=..., or use jnp.where(condition, x, y)."
        )
    return np.asarray(known._value)


def nonzero(
    a: ArrayLike | Sequence[Any], *, size: int | None = None, fill_value: ArrayLike | Sequence[ArrayLike] | None = None
) -> tuple[Array, ...]:
    """The positions of the elements that are not zero, as one array for each axis.

    Args:
      a: an array; concrete, unless ``size`` is passed.
      size: the number of positions to return: further ones are dropped, missing ones filled.
      fill_value: the value of missing positions: a number, or one for each axis; 0 by default.

    Returns:
      A vector of integers for each axis of ``a``.

    Raises:
      ShapeError: the array has no axes (a ValueError).
      ConcretizationTypeError: the array is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nonzero(jnp.array([3, 0, 4]), size=3, fill_value=-1)[0])
    [ 0  2 -1]
    """
    a = listed("nonzero", a)
    if not a.shape:
        raise ShapeError("nonzero takes arrays with at least one axis; use jnp.atleast_1d first")
    x = number_operand("nonzero", a)
    if size is None:
        check_positions("nonzero", max(x.shape) - 1, dtypes.default_int())
        found = _known("nonzero", x).nonzero()
        results = tuple(ArrayImpl(i.astype(dtypes.default_int())) for i in found)
        return results if type(x) is ArrayImpl else tuple(runtime.following(i, [x]) for i in results)
    check_positions("nonzero", x.aval.size, _INT32)
    count = size_of("nonzero", "size", size)
    rank = len(x.shape)
    fills = fill_value if isinstance(fill_value, (tuple, list)) else (0 if fill_value is None else fill_value,) * rank
    if len(fills) != rank:
        raise ShapeError(f"nonzero: fill_value needs a number for each of the {rank} axes, got {fill_value!r}")
    mask = shapes.reshape(ops.ne_p.bind(x, shapes.full((), 0, x.dtype)), (x.aval.size,))
    so_far = reductions.cumsum(ops.convert_element_type(mask, _INT32))
    # The k-th element that is not zero goes to position k; zeros go to count, out of range, and are dropped.
    targets = shapes.reshape(ops.where(mask, ops.sub(so_far, 1), count), (x.aval.size, 1))
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    out = []
    for axis, fill in enumerate(fills):
        start = shapes.broadcast_to(ops.convert_element_type(operand("nonzero", fill), dtypes.default_int()), (count,))
        coordinates = shapes.reshape(slicing.iota(dtypes.default_int(), x.shape, axis), (x.aval.size,))
        out.append(scatter(start, targets, coordinates, numbers, unique_indices=True) if x.aval.size else start)
    return tuple(out)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The positions, in row-major order, of the elements that are not zero.

    Args:
      a: an array; concrete, unless ``size`` is passed.
      size: the number of positions to return: further ones are dropped, missing ones filled.
      fill_value: the value of missing positions; 0 by default.

    Returns:
      A vector of integers.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``a`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.flatnonzero(jnp.array([[0, 1], [2, 0]])))
    [1 2]
    """
    return nonzero(_raveled("flatnonzero", a), size=size, fill_value=fill_value)[0]


def _raveled(name: str, a: Any) -> Any:
    x = listed(name, a)
    return shapes.reshape(x, (x.aval.size,))


def argwhere(
    a: ArrayLike | Sequence[Any], *, size: int | None = None, fill_value: ArrayLike | Sequence[ArrayLike] | None = None
) -> Array:
    """The positions of the elements that are not zero, as rows.

    Args:
      a: an array; concrete, unless ``size`` is passed.
      size: the number of positions to return: further ones are dropped, missing ones filled.
      fill_value: the value of missing positions: a number, or one for each axis; 0 by default.

    Returns:
      Integers of shape (number of positions, number of axes of ``a``).

    Raises:
      OperandError: ``a`` is neither an array nor nested lists of numbers (a TypeError).
      ConcretizationTypeError: ``a`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.argwhere(jnp.array([[0, 1], [2, 0]])))
    [[0 1]
     [1 0]]
    """
    a = listed("argwhere", a)
    if not a.shape:
        if size is None:
            size = int(bool(_known("argwhere", number_operand("argwhere", a))))
        count = size_of("argwhere", "size", size)
        return ArrayImpl(memory_for("argwhere", (count, 0), lambda: np.zeros((count, 0), dtypes.default_int())))
    return slicing.stack(nonzero(a, size=size, fill_value=fill_value), 1)


def compress(
    condition: ArrayLike | Sequence[Any],
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices of an array along an axis for which a condition holds.

    Args:
      condition: booleans, one for each slice; concrete, unless ``size`` is passed. Missing ones are False.
      a: an array.
      axis: the axis; None for the elements in row-major order.
      size: the number of slices to return: further ones are dropped, missing ones filled.
      fill_value: the elements of missing slices.
      out: must be None.

    Returns:
      An array of the dtype of ``a``, whose size along the axis is the number of slices.

    Raises:
      ShapeError: the condition is not one-dimensional, or holds beyond the end of the axis (a ValueError).
      ConcretizationTypeError: the condition is traced, and there is no ``size`` (a TypeError).
      ArgumentError: ``out`` is not None (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.compress([True, False, True], jnp.arange(6).reshape(2, 3), axis=1))
    [[0 2]
     [3 5]]
    """
    if out is not None:
        raise ArgumentError("compress: out must be None, because arrays are immutable")
    holds = listed("compress", condition)
    if len(holds.shape) != 1:
        raise ShapeError(f"compress: the condition must be one-dimensional, got shape {holds.shape}")
    x = _raveled("compress", a) if axis is None else operand("compress", a)
    where = axis_index(0 if axis is None else axis, len(x.shape), "compress")
    length = x.shape[where]
    if holds.shape[0] > length:
        if isinstance(holds, ArrayImpl) and holds._value[length:].any():
            raise ShapeError(
                f"compress: the condition, of {holds.shape[0]} elements, holds beyond the {length} of axis {where}"
            )
        holds = slicing.slice_in_dim(holds, 0, length, 0)
    if size is None:
        (positions,) = _known("compress", holds).nonzero()
        return take(x, positions, where)
    (positions_,) = nonzero(holds, size=size, fill_value=length)
    return take(x, positions_, where, mode="fill", fill_value=fill_value)


@named
def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements for which a condition holds, in row-major order.

    Args:
      condition: booleans, as many as ``arr`` has elements; concrete, unless ``size`` is passed.
      arr: an array.
      size: the number of elements to return: further ones are dropped, missing ones filled.
      fill_value: the value of missing elements.

    Returns:
      A vector of the dtype of ``arr``.

    Raises:
      OperandError: ``arr`` is neither an array nor a number (a TypeError).
      ConcretizationTypeError: ``condition`` is traced, and there is no ``size`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> x = jnp.arange(4)
    >>> print(jnp.extract(x > 1, x))
    [2 3]
    """
    return compress(number_operand("extract", _raveled("extract", condition)), arr, size=size, fill_value=fill_value)


# Positions along several axes --------------------------------------------------------------------------------------


# long: half of it is its documentation
def ravel_multi_index(
    multi_index: Sequence[ArrayLike] | Array,
    dims: Sequence[int],
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike = None,
) -> Array:
    """Convert positions along each axis to positions in row-major order.

    Args:
      multi_index: for each axis an array of integers.
      dims: the shape of the array.
      mode: the meaning of a position out of range: "raise" an error (indices must be concrete), "clip" the first or
        last position, "wrap" the remainder, "ignore" itself, multiplied and added as the others; or one of these for
        each axis.
      order: "C" for row-major, "F" for column-major order.
      dtype: the dtype to compute in, of integers; by default the dtype of the positions.

    Returns:
      Integers of the shape to which the positions broadcast.

    Raises:
      ShapeError: positions out of range with "raise", or not one array for each axis (a ValueError).
      ArgumentError: ``mode`` or ``order`` is another text (a TypeError and a ValueError).
      DtypeError: ``dtype`` is not a dtype of integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.ravel_multi_index((jnp.array([1, 0]), jnp.array([2, 1])), (2, 3)))
    [5 1]
    """
    sizes = shape_tuple(dims, "ravel_multi_index")
    modes = (mode,) * len(sizes) if isinstance(mode, str) else sequence_of("ravel_multi_index", "mode", mode)
    multi_index = sequence_of("ravel_multi_index", "multi_index", multi_index)
    if len(multi_index) != len(sizes) or len(modes) != len(sizes):
        raise ShapeError(
            f"ravel_multi_index needs an array of positions for each of the axes {sizes}, got {len(multi_index)}"
        )
    if not is_listed(order, ("C", "F")):
        raise ArgumentError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    if any(each not in ("raise", "clip", "wrap", "ignore") for each in modes):
        raise ArgumentError(f"ravel_multi_index: mode must be 'raise', 'clip', 'wrap' or 'ignore', got {mode!r}")
    positions = promote_all("ravel_multi_index", [positions_operand("ravel_multi_index", i) for i in multi_index])
    if dtype is not None:
        wanted = dtypes.requested_dtype(dtype, "ravel_multi_index")
        if not dtypes.is_integer(wanted):
            raise DtypeError(f"ravel_multi_index: dtype must be an integer dtype, got {dtypes.short_name(wanted)}")
        positions = [ops.convert_element_type(p, wanted) for p in positions]
    total: Any = shapes.full((), 0, positions[0].dtype)
    stride = 1
    axes = reversed(range(len(sizes))) if order == "C" else range(len(sizes))
    for axis in axes:
        coordinate, n = positions[axis], sizes[axis]
        if modes[axis] == "raise":
            known = _known("ravel_multi_index with mode='raise'", coordinate)
            if ((known < 0) | (known >= n)).any():
                raise ShapeError(f"ravel_multi_index: positions along axis {axis} are not all in range({n}): {known}")
        elif modes[axis] == "clip":
            coordinate = ops.min_p.bind(ops.max_p.bind(coordinate, 0), n - 1)
        elif modes[axis] == "wrap":
            coordinate, _ = _wrapped("ravel_multi_index", coordinate, n, "wrap")
        total = ops.add(total, ops.mul(coordinate, stride))
        stride *= n
    return total


def choose(a: ArrayLike, choices: Sequence[ArrayLike] | Array, out: None = None, mode: str = "raise") -> Array:
    """The elements of several arrays, selected by integers: element i comes from array ``a[i]``.

    Args:
      a: integers.
      choices: arrays, or one array whose slices along the first axis are the choices; they broadcast with ``a``.
      out: must be None.
      mode: the meaning of an integer out of range: "raise" an error (``a`` must be concrete), "clip" or "wrap".

    Returns:
      An array of the shape to which ``a`` and the choices broadcast, of the dtype to which the choices promote.

    Raises:
      ShapeError: an integer out of range with "raise" (a ValueError).
      ArgumentError: ``out`` is not None, or the mode is unknown (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.choose(jnp.array([0, 1, 0]), [jnp.array([1, 2, 3]), jnp.array([4, 5, 6])]))
    [1 5 3]
    """
    if out is not None:
        raise ArgumentError("choose: out must be None, because arrays are immutable")
    which = positions_operand("choose", a)
    arrays = (
        list(iterate(operand("choose", choices)))
        if isinstance(choices, (Array, np.ndarray))
        else sequence("choose", choices)
    )
    cases = promote_all("choose", arrays)
    n = len(cases)
    if mode == "raise":
        known = _known("choose with mode='raise'", which)
        if ((known < 0) | (known >= n)).any():
            raise ShapeError(f"choose: integers must be in range({n}), because there are {n} choices, got {known}")
    elif mode == "wrap":
        which, _ = _wrapped("choose", which, n, "wrap")
    elif mode != "clip":
        raise ArgumentError(f"choose: mode must be 'raise', 'clip' or 'wrap', got {mode!r}")
    which = ops.min_p.bind(ops.max_p.bind(which, 0), n - 1)
    return ops.select_n(ops.convert_element_type(which, _INT32), *cases)
