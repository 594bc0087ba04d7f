"""Functions that pad and trim arrays, and that insert, append and delete elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import Axes, ShapeLike
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike, refuse_masked, typeof
from pullback.core.errors import DtypeValueError, ShapeError, UnsupportedFunctionError
from pullback.core.trace import Tracer
from pullback.numpy.creation import listed
from pullback.numpy.index_lowering import write
from pullback.numpy.indexing import nonzero
from pullback.numpy.joining import concatenate
from pullback.numpy.manipulation import broadcast_to, ravel, take_slices, tile
from pullback.numpy.promotion import another, axis_index, concrete, operand, quote, several, shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, slicing, sorting
from pullback.primitives.arrays.indexing import wide_enough
from pullback.primitives.arrays.scatter import scatter, scatter_add
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.linalg.contraction import HIGHEST, dot_general

__all__ = ["append", "delete", "insert", "pad", "resize", "trim_zeros"]

# Padding -----------------------------------------------------------------------------------------------------------

Widths = tuple[int, int]
_INT32 = np.dtype(np.int32)


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[Any] | Mapping[int, int | tuple[int, int]],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """The array with elements added before and after it along its axes.

    Args:
      array: an array.
      pad_width: the widths: an int, a pair (before, after), a pair for each axis, or a dict from axes to these.
      mode: their values: ``"constant"`` (``constant_values=0``), ``"edge"``, ``"reflect"`` and ``"symmetric"``
        (``reflect_type="even"`` or ``"odd"``), ``"wrap"``, ``"linear_ramp"`` (``end_values=0``), ``"maximum"``,
        ``"minimum"``, ``"mean"``, ``"median"`` (``stat_length=None``), ``"empty"``; or a function of a padded vector,
        its pair of widths, its axis and the other arguments, that returns the vector filled.
      kwargs: the options of the mode.

    Returns:
      An array of the dtype of ``array``.

    Raises:
      ShapeError: the widths are negative or do not fit, or the mode is unknown (a TypeError and a ValueError).
      OperandError: ``array`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.pad(jnp.array([1, 2, 3]), (1, 2)), jnp.pad(jnp.array([1, 2, 3]), 2, mode="reflect"))
    [0 1 2 3 0 0] [3 2 1 2 3 2 1]
    """
    x = operand("pad", array)
    widths = _pairs("pad_width", pad_width, len(x.shape))
    if any(n < 0 for pair in widths for n in pair):
        raise ShapeError(f"pad: widths must not be negative, got {pad_width!r}")
    if callable(mode):
        return _pad_by(mode, x, widths, kwargs)
    known = _KEYWORDS.get(mode) if isinstance(mode, str) else None
    if known is None:
        raise ShapeError(f"pad: unknown mode {mode!r}; the modes are: {', '.join(_KEYWORDS)}")
    if unknown := [name for name in kwargs if name != known]:
        raise ShapeError(f"pad: mode {mode!r} does not take the argument {unknown[0]!r}")
    option = kwargs.get(known)
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, 0 if option is None else option)
    if mode == "linear_ramp":
        option = _values("end_values", 0 if option is None else option, x)
    elif known == "stat_length" and option is not None:
        option = _pairs("stat_length", option, len(x.shape))
    fill = _FILLS[mode]
    for axis, pair in enumerate(widths):
        if not any(pair):
            continue
        if x.shape[axis] == 0:
            raise ShapeError(f"pad: axis {axis} of shape {x.shape} is empty: mode {mode!r} has no elements to pad with")
        x = fill(x, pair, axis, mode, option[axis] if isinstance(option, list) else option)
    return x


_KEYWORDS = {
    "constant": "constant_values", "edge": "", "reflect": "reflect_type", "symmetric": "reflect_type", "wrap": "",
    "linear_ramp": "end_values", "maximum": "stat_length", "minimum": "stat_length", "mean": "stat_length",
    "median": "stat_length", "empty": "",
}  # fmt: skip


def _pairs(name: str, value: Any, rank: int) -> list[Widths]:
    """Broadcast the argument ``name`` of ``pad`` to a pair of ints, (before, after), for each of ``rank`` axes.

    ``value`` is the argument: an int, a pair, pairs, or a dictionary from axes to these.
    """
    if type(value) is int:
        return [(value, value)] * rank
    if isinstance(value, dict):
        pairs = {axis_index(i, rank, "pad"): v for i, v in value.items()}
        return [_pairs(name, pairs.get(i, 0), 1)[0] for i in range(rank)]
    try:
        wide = np.broadcast_to(np.asarray(value), (rank, 2))
    except ValueError:
        raise ShapeError(f"pad: {name} must be an int, a pair, or {rank} pairs, got {value!r}") from None
    if wide.size and wide.dtype.kind not in "iu":
        raise ShapeError(f"pad: {name} must be of ints, got {value!r}")
    return [(int(before), int(after)) for before, after in wide]


def _values(name: str, value: Any, x: Any) -> list[tuple[Any, Any]]:
    """Broadcast the argument ``name`` of ``pad`` to a pair of scalars, (before, after), for each axis of ``x``.

    ``value`` is the argument: a number, a pair or pairs. The scalars have the dtype of ``x``.
    """
    value = concatenate_nested(value)
    rank = len(x.shape)
    if len(value.shape) > 2 or any(n not in (1, m) for n, m in zip(value.shape[::-1], (2, rank))):
        raise ShapeError(f"pad: {name} must be a number, a pair or {rank} pairs, one for each axis, got {value.shape}")
    wide = convert_element_type(broadcast_to(value, (rank, 2)), x.dtype)

    def at(i: int, j: int) -> Any:
        return shapes.reshape(slicing.slice(wide, (i, j), (i + 1, j + 1)), ())

    return [(at(i, 0), at(i, 1)) for i in range(rank)]


def concatenate_nested(value: Any) -> Any:
    """Convert a number, or nested sequences of numbers, to an array."""
    if not isinstance(value, (list, tuple)):
        return operand("pad", value)
    pieces = [concatenate_nested(v) for v in value]
    return concatenate([shapes.reshape(p, (1, *p.shape)) for p in pieces])


def _pad_constant(x: Any, widths: list[Widths], value: Any) -> Any:
    if not isinstance(value, (list, tuple)) and (type(value) is int or not operand("pad", value).shape):
        is_zero = type(value) is int and value == 0 and type(x) is ArrayImpl and not x.weak_type
        fill = 0 if is_zero else convert_element_type(operand("pad", value), x.dtype)
        return slicing.pad(x, fill, [(before, after, 0) for before, after in widths])
    for axis, (pair, (before, after)) in enumerate(zip(widths, _values("constant_values", value, x), strict=True)):
        for fill, (lo, hi) in ((before, (pair[0], 0)), (after, (0, pair[1]))):
            x = slicing.pad(x, fill, [(lo, hi, 0) if i == axis else (0, 0, 0) for i in range(len(x.shape))])
    return x


def _fill_from_positions(x: Any, pair: Widths, axis: int, mode: str, option: Any) -> Any:
    """Pad an axis of ``x`` in a mode that repeats elements.

    The positions of the repeated elements are found by padding a range with ``np.pad``.

    Args:
      x: the array.
      pair: the widths of the padding before and after the axis.
      axis: the axis.
      mode: the mode of ``np.pad``.
      option: NumPy's ``reflect_type``, or None.
    """
    if option == "odd":
        return _fill_linearly(x, pair, axis, mode, option)
    if not is_listed(option, (None, "even")):
        raise ShapeError(f"pad: reflect_type must be 'even' or 'odd', got {option!r}")
    return take_slices(x, np.pad(np.arange(x.shape[axis]), pair, mode=mode), axis)  # type: ignore[call-overload]


def _fill_linearly(x: Any, pair: Widths, axis: int, mode: str, option: Any) -> Any:
    """Pad an axis of ``x`` in a mode whose padding is a linear function of the elements, such as odd reflection.

    The padding is the product of the elements with a matrix, found by padding the identity matrix with ``np.pad``.

    Args:
      x: the array.
      pair: the widths of the padding before and after the axis.
      axis: the axis.
      mode: the mode of ``np.pad``.
      option: NumPy's ``reflect_type``.
    """
    n = x.shape[axis]
    matrix = np.pad(np.eye(n), (pair, (0, 0)), mode=mode, reflect_type=option)  # type: ignore[call-overload]
    before, after = (_apply(block, x, axis) for block in (matrix[: pair[0]], matrix[pair[0] + n :]))
    return slicing.concatenate([before, x, after], axis)


def _apply(matrix: np.ndarray[Any, Any], x: Any, axis: int) -> Any:
    weights = convert_element_type(operand("pad", matrix), x.dtype)
    out = dot_general(weights, x, (((1,), (axis,)), ((), ())), HIGHEST)
    return shapes.moveaxis(out, 0, axis)


def _fill_ramp(x: Any, pair: Widths, axis: int, mode: str, option: Any) -> Any:
    """Pad an axis of ``x`` with evenly spaced values, from an end value at the far end to the element at the border.

    Args:
      x: the array.
      pair: the widths of the padding before and after the axis.
      axis: the axis.
      mode: not used.
      option: the end values before and after the axis.
    """
    n = x.shape[axis]
    pieces = [x]
    for width, end, edge, first in ((pair[0], option[0], 0, True), (pair[1], option[1], n - 1, False)):
        if width:
            dtype = x.dtype if dtypes.is_inexact(x.dtype) else dtypes.default_float()
            start = convert_element_type(slicing.slice_in_dim(x, edge, edge + 1, axis), dtype)
            weights = np.arange(width) / width if first else np.arange(width)[::-1] / width
            shape = [width if i == axis else 1 for i in range(len(x.shape))]
            ramp = shapes.reshape(convert_element_type(operand("pad", weights), dtype), shape)
            end = convert_element_type(end, dtype)
            line = _rounded(end + (start - end) * ramp, x.dtype, "floor")
            line = convert_element_type(line, x.dtype)
            pieces = [line, *pieces] if first else [*pieces, line]
    return slicing.concatenate(pieces, axis)


def _rounded(x: Any, dtype: np.dtype[Any], how: str) -> Any:
    """Round floats that will be converted to an integer ``dtype``; return them unchanged for an inexact ``dtype``.

    ``how`` is "floor" to round down; otherwise floats are rounded to the nearest integer.
    """
    if dtypes.is_inexact(dtype):
        return x
    return (ops.floor_p if how == "floor" else ops.round_p).bind(x)


def _fill_statistic(x: Any, pair: Widths, axis: int, mode: str, option: Any) -> Any:
    """Pad an axis of ``x`` with a statistic, such as the mean, of the elements nearest to each border.

    Args:
      x: the array.
      pair: the widths of the padding before and after the axis.
      axis: the axis.
      mode: the name of the statistic.
      option: the numbers of elements to use at each border; None for all elements.
    """
    n = x.shape[axis]
    near = option if option is not None else (n, n)
    if min(near) < 1 and mode in ("maximum", "minimum"):
        raise ShapeError(f"pad: stat_length must be positive for mode {mode!r}, got {option!r}")
    pieces = []
    for width, block in (
        (pair[0], slicing.slice_in_dim(x, 0, min(near[0], n), axis)),
        (pair[1], slicing.slice_in_dim(x, max(n - near[1], 0), n, axis)),
    ):
        value = shapes.expand_dims(_statistic(mode, block, axis), (axis,))
        pieces.append(shapes.broadcast_to(value, (*x.shape[:axis], width, *x.shape[axis + 1 :])))
    return slicing.concatenate([pieces[0], x, pieces[1]], axis)


def _statistic(mode: str, block: Any, axis: int) -> Any:
    if mode == "maximum":
        return reductions.reduce_max(block, (axis,))
    if mode == "minimum":
        return reductions.reduce_min(block, (axis,))
    n = block.shape[axis]
    if mode == "median":
        (ordered,) = sorting.sort([block], axis)
        block = slicing.slice_in_dim(ordered, (n - 1) // 2, n // 2 + 1, axis)
        n = block.shape[axis]
    dtype = block.dtype
    wide = dtype if dtypes.is_inexact(dtype) else dtypes.default_float()
    mean = ops.div(reductions.reduce_sum(convert_element_type(block, wide), (axis,)), n)
    return convert_element_type(_rounded(mean, dtype, "round"), dtype)


_FILLS: dict[str, Callable[..., Any]] = {
    "edge": _fill_from_positions, "reflect": _fill_from_positions, "symmetric": _fill_from_positions,
    "wrap": _fill_from_positions, "linear_ramp": _fill_ramp, "maximum": _fill_statistic, "minimum": _fill_statistic,
    "mean": _fill_statistic, "median": _fill_statistic,
}  # fmt: skip


def _pad_by(function: Callable[..., Any], x: Any, widths: list[Widths], options: dict[str, Any]) -> Any:
    from pullback.numpy.mapping import apply_along_axis

    x = _pad_constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        x = apply_along_axis(function, axis, x, pair, axis, options)
        if x is None or typeof(x).shape == ():
            raise UnsupportedFunctionError(
                "pad: the function must return the padded vector, because arrays are immutable"
            )
    return x


# Insertion and deletion --------------------------------------------------------------------------------------------


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append ``values`` to ``arr`` along an axis; by default both as vectors.

    Args:
      arr: an array.
      values: an array; with ``axis``, of the shape of ``arr`` except along that axis.
      axis: the axis; None for the elements of both in row-major order.

    Returns:
      An array of the dtype to which both promote; a vector if ``axis`` is None.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.append(jnp.array([1, 2]), 3))
    [1 2 3]
    """
    x, v = operand("append", arr), operand("append", values)
    return concatenate([ravel(x), ravel(v)]) if axis is None else concatenate([x, v], axis)


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[int],
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """The array without the slices at some indices of an axis.

    Args:
      arr: an array.
      obj: an int, a slice, integers or a boolean mask. The shape of the result depends on the mask, or on the number of
        distinct integers: these may be traced if there is only one, or with ``assume_unique_indices``.
      axis: the axis; by default the array is flattened.
      assume_unique_indices: a promise that no index occurs twice.

    Returns:
      An array of the dtype of ``arr``; a vector if ``axis`` is None.

    Raises:
      ShapeError: an index is out of range (a TypeError and a ValueError).
      OperandError: ``arr`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.delete(jnp.arange(5), jnp.array([1, 3])))
    [0 2 4]
    """
    assume_unique_indices = flag("delete", "assume_unique_indices", assume_unique_indices)
    x = operand("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, len(x.shape), "delete")
    refuse_masked(obj)
    if is_traced_integer(obj) and (assume_unique_indices or obj.aval.size <= 1):
        return take_slices(x, _others(obj, x.shape[axis]), axis)
    try:
        remaining = np.delete(np.arange(x.shape[axis]), _positions(obj))
    except (IndexError, ValueError) as error:
        raise ShapeError(f"delete: {obj!r} does not fit axis {axis} of an array of shape {x.shape}: {error}") from None
    return take_slices(x, remaining, axis)


def _others(obj: Any, n: int) -> Any:
    """Return the integers from 0 to ``n - 1`` that are not among the traced indices ``obj``, in ascending order.

    The indices must be distinct. The result always has ``n`` minus the size of ``obj`` elements, so that its shape is
    static. If some indices are out of range, the largest integers are left out.
    """
    count = obj.aval.size
    mask = write(scatter, shapes.full((n,), 1, _INT32), _from_start(shapes.reshape(obj, (count,)), n), _zero(_INT32))
    return nonzero(mask, size=max(n - count, 0))[0]


def _from_start(positions: Any, n: int) -> Any:
    """Convert traced positions to the range from 0 to ``n``: add ``n`` to negative positions, then clip."""
    positions = wide_enough(convert_element_type(positions, dtypes.default_int()), n)
    positions = ops.where(ops.lt(positions, 0), ops.add(positions, n), positions)
    return ops.min_p.bind(ops.max_p.bind(positions, 0), n)


def _zero(dtype: Any) -> Any:
    return shapes.full((), 0, dtype)


def is_traced_integer(x: Any) -> TypeGuard[Tracer]:
    """Whether an argument is a traced array of integers."""
    return isinstance(x, Tracer) and dtypes.is_integer(x.dtype) and x.concrete() is None


def _positions(obj: Any) -> Any:
    if isinstance(obj, slice):
        return obj
    positions = np.asarray(obj)
    return positions if positions.size else positions.astype(np.intp)


def insert(arr: ArrayLike, obj: ArrayLike | slice | Sequence[int], values: ArrayLike, axis: int | None = None) -> Array:
    """The array with slices inserted before some indices of an axis.

    Args:
      arr: an array.
      obj: an int, a slice, integers or a boolean mask: indices of ``arr``. Integers may be traced; a traced index out
        of range means the beginning or the end.
      values: what to insert; it broadcasts.
      axis: the axis; by default the array is flattened.

    Returns:
      An array of the dtype of ``arr``; a vector if ``axis`` is None.

    Raises:
      ShapeError: an index is out of range, or ``values`` does not fit (a TypeError and a ValueError).
      OperandError: ``arr`` is neither an array nor a number (a TypeError).
      DtypeValueError: ``obj`` does not hold integers (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.insert(jnp.array([1, 2, 3]), 1, 9), jnp.insert(jnp.array([1, 2, 3]), jnp.array([0, 3]), 9))
    [1 9 2 3] [9 1 2 3 9]
    """
    x, v = operand("insert", arr), operand("insert", values)
    v = convert_element_type(v, x.dtype, x.weak_type)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, len(x.shape), "insert")
    n = x.shape[axis]
    index: Any = obj if isinstance(obj, slice) else listed("insert", obj)
    if is_traced_integer(index) and len(index.shape) < 2:
        return _inserted(x, index, v, axis)
    where = np.arange(*index.indices(n)) if isinstance(index, slice) else concrete(index)
    if where.dtype.kind == "b":
        where = np.flatnonzero(where)
    if where.dtype.kind not in "iu" and where.size:
        raise DtypeValueError(f"insert: positions must be integers, got {quote(obj)}")
    if where.ndim > 1 or (where.size and (where.min() < -n or where.max() > n)):
        raise ShapeError(f"insert: {obj!r} does not fit axis {axis} of an array of shape {x.shape}")
    where = np.where(where < 0, where + n, where).astype(np.intp)
    if where.size == 1:  # all values are inserted at this index
        v = _as_slices(x, where, v, axis)
        where = np.full(v.shape[axis], where)
    count = where.size
    v = broadcast_to(v, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    order = where.argsort(kind="stable")
    targets = where.copy()
    targets[order] += np.arange(count)
    source = np.empty(n + count, np.intp)
    source[targets] = n + np.arange(count)
    source[np.delete(np.arange(n + count), targets)] = np.arange(n)
    return take_slices(slicing.concatenate([x, v], axis), source, axis)


def _as_slices(x: Any, where: Any, v: Any, axis: int) -> Any:
    """Reshape the values ``v``, which ``np.insert`` inserts into ``x`` at one index ``where``, to the rank of ``x``.

    If ``where`` is a scalar, the first axis of ``v`` becomes ``axis``, as in NumPy.
    """
    v = shapes.reshape(v, (*(1,) * (len(x.shape) - len(v.shape)), *v.shape))
    return shapes.moveaxis(v, 0, axis) if not where.shape else v


def _inserted(x: Any, where: Any, v: Any, axis: int) -> Any:
    """Insert the values ``v`` into ``x`` along ``axis``, before the slices of ``x`` at the traced indices ``where``."""
    n = x.shape[axis]
    if where.aval.size == 1:
        v = _as_slices(x, where, v, axis)
        where = shapes.broadcast_to(shapes.reshape(where, (1,)), (v.shape[axis],))
    count = where.shape[0]
    v = broadcast_to(v, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    where = _from_start(where, n)
    *_, order = sorting.argsort([where], 0, where.dtype)
    targets = write(scatter_add, where, order, slicing.iota(where.dtype, (count,), 0))
    occupied = write(scatter, shapes.full((n + count,), 0, where.dtype), targets, shapes.full((), 1, where.dtype))
    source = ops.sub(slicing.iota(where.dtype, (n + count,), 0), reductions.cumsum(occupied))
    source = write(scatter, source, targets, ops.add(slicing.iota(where.dtype, (count,), 0), n))
    return take_slices(slicing.concatenate([x, v], axis), source, axis)


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The elements in another shape, repeated from the start or cut off to fill it.

    Args:
      a: an array.
      new_shape: the shape of the result: an int, or several.

    Returns:
      An array of that shape and of the dtype of ``a``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      ShapeError: a size is negative or not an int (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.resize(jnp.array([1, 2, 3]), (2, 2)))
    [[1 2]
     [3 1]]
    """
    x = ravel(operand("resize", a))
    shape = shape_tuple(new_shape, "resize")
    size = math.prod(shape)
    if x.shape[0] == 0:
        return shapes.full(shape, 0, x.dtype)
    repeated = tile(x, -(-size // x.shape[0]))
    return shapes.reshape(slicing.slice_in_dim(repeated, 0, size, 0), shape)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axes = None) -> Array:
    """The array without the zeros at its borders.

    Args:
      filt: an array; it must not be traced, for the shape of the result depends on its values.
      trim: ``"f"`` at the front, ``"b"`` at the back, ``"fb"`` at both.
      axis: along which axes; all by default.

    Returns:
      An array of the dtype of ``filt``.

    Raises:
      OperandError: ``filt`` is neither an array nor a number (a TypeError).
      ShapeError: ``trim`` is another text (a TypeError and a ValueError).
      TracerArrayConversionError: ``filt`` is traced (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0])))
    [1 0 2]
    """
    x = operand("trim_zeros", filt)
    rank = len(x.shape)
    trim = trim.lower() if isinstance(trim, str) else trim
    if not is_listed(trim, ("f", "b", "fb", "bf")):
        raise ShapeError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    axes = range(rank) if axis is None else several(axis)
    if not rank:
        return another(x)
    found = np.nonzero(np.asarray(x))
    for i in (axis_index(a, rank, "trim_zeros") for a in axes):
        n = x.shape[i]
        first, last = (int(found[i].min()), int(found[i].max()) + 1) if found[i].size else (0, 0)
        x = slicing.slice_in_dim(x, first if "f" in trim else 0, last if "b" in trim or not found[i].size else n, i)
    return x
