# long: because there are many reductions, each with its docstring
"""Reductions along axes: sums, products, extremes, truth, moments, cumulative results; variants that skip NaN."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.arguments import flag, typed
from pullback.core.array import Array, ArrayLike, as_array, scalar_array
from pullback.core.dims import is_symbolic
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.trace import Primitive, state
from pullback.numpy.promotion import (
    AllAxes,
    another,
    axes_tuple,
    axis_index,
    inexact_operand,
    number_operand,
    operand,
    refuse_out,
    strong,
)  # fmt: skip
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions as prims
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate
from pullback.primitives.checks import ORDERED, broadcast_shape, check_dtype
from pullback.primitives.elementwise import convert_element_type

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "max", "mean", "min", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
    "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip

_ALL_AXES = AllAxes()
_FAST = "fdFD"  # The codes of the dtypes that need no promotion and accumulate in themselves.

# Shared by the functions ------------------------------------------------------------------------------------------


def all_axes(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """Convert the argument ``axis`` to the positions of the axes to reduce over."""
    return _ALL_AXES[rank] if axis is None else axes_tuple(axis, rank, name)


def count_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """The number of elements along some axes."""
    return math.prod([shape[a] for a in axes])


def size_as(size: Any, dtype: np.dtype[Any]) -> Any:
    """Return a size as an operand for arrays of a dtype: an int unchanged, a symbolic size as an array."""
    return convert_element_type(as_array(size), dtype) if is_symbolic(size) else size


def _summed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a sum of elements of ``dtype``: narrow integers are widened to the default integer's size."""
    if dtypes.is_inexact(dtype):
        return dtype
    wide = dtypes.default_int()
    if dtypes.is_bool(dtype):
        return wide
    if dtypes.is_integer(dtype) and dtype.itemsize < wide.itemsize:
        return np.dtype(f"u{wide.itemsize}") if dtypes.short_name(dtype).startswith("u") else wide
    return dtype


def _boolean(name: str, x: Any) -> Any:
    """Convert an operand to booleans: True where an element is not zero. ``name`` is the function, for errors."""
    x = number_operand(name, x)
    return x if dtypes.is_bool(x.dtype) else ops.ne_p.bind(x, 0)


def boolean_mask(name: str, where: Any) -> Any:
    """Convert the argument ``where`` to an array; raise unless it has booleans."""
    mask = operand(name, where)
    if not dtypes.is_bool(mask.dtype):
        got = dtypes.dtype_name(mask.dtype)
        raise ArgumentError(f"{name}: where must be an array of booleans, got {got}; write where != 0")
    return mask


def _mask(name: str, where: Any, shape: tuple[int, ...]) -> Any:
    """Convert the argument ``where`` of the function ``name`` to booleans; raise unless they broadcast to ``shape``."""
    mask = boolean_mask(name, where)
    if broadcast_shape(name, [mask.shape, shape]) != shape:
        raise ShapeError(f"{name}: where, of shape {mask.shape}, does not broadcast to the array's shape {shape}")
    return mask


def _finish(name: str, result: Any, axes: tuple[int, ...], keepdims: bool, initial: Any, combine: Primitive) -> Any:
    """Finish a reduction: combine its result with ``initial``, and restore the reduced axes if ``keepdims``.

    Args:
      name: the name of the function, for errors.
      result: the reduced array.
      axes: the reduced axes.
      keepdims: whether to restore these axes, with size one.
      initial: a number, or None.
      combine: the primitive that combines two elements.
    """
    if initial is not None:
        first = operand(name, initial)
        if first.shape:
            raise ShapeError(f"{name}: initial must be a scalar, got shape {first.shape}")
        result = combine.bind(result, convert_element_type(first, result.dtype))
    if keepdims is not False and flag(name, "keepdims", keepdims):
        result = shapes.expand_dims(result, axes)
    return strong(result)


# Sums and products -------------------------------------------------------------------------------------------------


def sum(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Array:  # fmt: skip
    """The sum of the elements along some axes.

    Args:
      a: an array.
      axis: an axis, a tuple of axes, or None for all.
      dtype: the dtype of the result; by default the dtype of ``a``, where booleans and narrow integers become the
        default integer.
      out: not supported.
      keepdims: whether to keep the axes, with size one.
      initial: a number to start with.
      where: booleans that broadcast to ``a``: which elements to sum.
      promote_integers: whether narrow integers become wider.

    Returns:
      An array without the axes that are summed.

    Raises:
      ShapeError: an axis does not exist or occurs twice (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.sum(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0))
    [4. 6.]
    """
    if keepdims is not False:
        keepdims = flag("sum", "keepdims", keepdims)
    if promote_integers is not True:
        promote_integers = flag("sum", "promote_integers", promote_integers)
    if dtype is None and where is None and initial is None and out is None and isinstance(a, Array):
        shape = a.shape
        if a.dtype.char in _FAST and not a.weak_type and shape:
            axes = _ALL_AXES[len(shape)] if axis is None else axes_tuple(axis, len(shape), "sum")
            result = state.trace.process(prims.reduce_sum_p, (a,), {"axes": axes}) if axes else another(a)
            return shapes.expand_dims(result, axes) if keepdims else result
    return _total("sum", prims.reduce_sum_p, ops.add_p, 0, a, axis, dtype, out, keepdims, initial, where,
                  promote_integers)  # fmt: skip


def prod(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Array:  # fmt: skip
    """The product of the elements along some axes. Its derivative is right where elements are zero.

    Args:
      a, axis, dtype, out, keepdims, initial, where, promote_integers: as in :func:`sum`.

    Returns:
      An array, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.prod(jnp.array([2.0, 3.0, 4.0])))
    24.0
    """
    if promote_integers is not True:
        promote_integers = flag("prod", "promote_integers", promote_integers)
    return _total("prod", prims.reduce_prod_p, ops.mul_p, 1, a, axis, dtype, out, keepdims, initial, where,
                  promote_integers)  # fmt: skip


def _total(
    name: str, primitive: Primitive, combine: Primitive, identity: int, a: Any, axis: Any, dtype: Any, out: Any,
    keepdims: bool, initial: Any, where: Any, promote_integers: bool,
) -> Any:  # fmt: skip
    refuse_out(name, out)
    x = number_operand(name, a)
    if dtype is not None:
        x = convert_element_type(x, dtypes.requested_dtype(dtype, name))
        if dtypes.is_bool(x.dtype):
            primitive, combine, identity = _OF_BOOLEANS[primitive], _OF_BOOLEANS[combine], bool(identity)
    elif promote_integers or dtypes.is_bool(x.dtype):
        x = convert_element_type(x, _summed_dtype(x.dtype))
    axes = all_axes(axis, len(x.shape), name)
    if where is not None:
        x = ops.where(_mask(name, where, x.shape), x, identity)
    result = primitive.bind(x, axes=axes) if axes else another(x)
    return _finish(name, result, axes, keepdims, initial, combine)


_OF_BOOLEANS = {
    prims.reduce_sum_p: prims.reduce_or_p, prims.reduce_prod_p: prims.reduce_and_p,
    ops.add_p: ops.or_p, ops.mul_p: ops.and_p,
}  # fmt: skip
"""The operations instead of sums and products if the requested dtype is boolean."""


# Extremes ----------------------------------------------------------------------------------------------------------


def max(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The largest element along some axes; NaN if there is one. Elements that tie share the derivative evenly.

    Args:
      a: an array; complex numbers are ordered by their real parts, then by their imaginary parts.
      axis, out, keepdims: as in :func:`sum`.
      initial: a lower bound of the result; required if there may be no elements to compare.
      where: booleans that broadcast to ``a``: which elements count.

    Returns:
      An array of the dtype of ``a``, of its shape without these axes, or with size one for ``keepdims``.

    Raises:
      ShapeError: there are no elements to compare and no ``initial`` (a ValueError).
      ArgumentError: ``where`` is passed without ``initial`` (a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.max(jnp.array([[1.0, 5.0], [3.0, 4.0]]), axis=1))
    [5. 4.]
    """
    return _extreme("max", prims.reduce_max_p, ops.max_p, False, a, axis, out, keepdims, initial, where)


def min(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The smallest element along some axes; NaN if there is one. Elements that tie share the derivative evenly.

    Args:
      a, axis, out, keepdims, initial, where: as in :func:`max`.

    Returns:
      An array of the dtype of ``a``, of its shape without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: there are no elements to compare and no ``initial`` (a TypeError and a ValueError).
      ArgumentError: ``where`` is passed without ``initial`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.min(jnp.array([[1.0, 5.0], [3.0, 4.0]]), axis=1))
    [1. 3.]
    """
    return _extreme("min", prims.reduce_min_p, ops.min_p, True, a, axis, out, keepdims, initial, where)


amax = max
amin = min


def minmax(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None, where: ArrayLike | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the smallest and the largest element along some axes.

    Args:
      a, axis, out, keepdims, where: as in :func:`max`.
      initial: an upper bound of the smallest element and a lower bound of the largest one: a pair, or one number for
        both; required if there may be no elements to compare.

    Returns:
      Two arrays of the dtype of ``a``, without these axes.

    Raises:
      ShapeError: there are no elements to compare and no ``initial`` (a ValueError).
      ArgumentError: ``where`` is passed without ``initial``, or ``initial`` has another number of elements than two (a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.minmax(jnp.array([[1.0, 5.0], [3.0, 4.0]]), axis=1))
    [1. 3.] [5. 4.]
    """
    pair = initial if isinstance(initial, tuple) else (initial, initial)
    if len(pair) != 2:
        raise ArgumentError(f"minmax: initial must be a number or a pair of numbers, got {len(pair)} of them")
    low, high = pair
    return (
        _extreme("minmax", prims.reduce_min_p, ops.min_p, True, a, axis, out, keepdims, low, where),
        _extreme("minmax", prims.reduce_max_p, ops.max_p, False, a, axis, out, keepdims, high, where),
    )


def _extreme(
    name: str, primitive: Primitive, combine: Primitive, largest: bool, a: Any, axis: Any, out: Any, keepdims: bool,
    initial: Any, where: Any,
) -> Any:  # fmt: skip
    refuse_out(name, out)
    x = number_operand(name, a)
    axes = all_axes(axis, len(x.shape), name)
    if initial is None:
        if where is not None:
            raise ArgumentError(f"{name}: where needs initial, because there is no {name} of no elements")
        if any_empty(x.shape, axes):
            raise ShapeError(
                f"{name}: an array of shape {x.shape} has no elements to compare along {axes}; pass initial"
            )
    if where is not None:
        fill = scalar_array(prims.extreme(x.dtype, largest=largest))
        x = ops.where(_mask(name, where, x.shape), x, fill)
    result = primitive.bind(x, axes=axes) if axes else another(x)
    return _finish(name, result, axes, keepdims, initial, combine)


def any_empty(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether one of the axes to reduce over is empty."""
    return 0 in [shape[a] for a in axes]


def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """The difference of the largest and the smallest element along some axes.

    Args:
      a, axis, out, keepdims: as in :func:`max`.

    Returns:
      An array of the dtype of ``a``, of its shape without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: there are no elements to compare (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.ptp(jnp.array([3.0, 1.0, 5.0])))
    4.0
    """
    if keepdims is not False:
        keepdims = flag("ptp", "keepdims", keepdims)
    refuse_out("ptp", out)
    x = operand("ptp", a)
    return ops.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The position of the first largest element; of the first NaN if there is one.

    Args:
      a: an array of real numbers or booleans.
      axis: the axis; None for a position among all elements in row-major order.
      out: not supported.
      keepdims: whether to keep the axis, with size one.

    Returns:
      Integers, of the shape of ``a`` without the axis, or with size one for ``keepdims``.

    Raises:
      ShapeError: there are no elements to compare (a ValueError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.argmax(jnp.array([1.0, 3.0, 3.0])))
    1
    """
    refuse_out("argmax", out)
    return _position("argmax", prims.argmax_p, operand("argmax", a), axis, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The position of the first smallest element; of the first NaN if there is one.

    Args:
      a, axis, out, keepdims: as in :func:`argmax`.

    Returns:
      Integers, of the shape of ``a`` without the axis, or with size one for ``keepdims``.

    Raises:
      ShapeError: there are no elements to compare (a TypeError and a ValueError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.argmin(jnp.array([[4.0, 3.0], [1.0, 3.0]]), axis=0))
    [1 0]
    """
    refuse_out("argmin", out)
    return _position("argmin", prims.argmin_p, operand("argmin", a), axis, keepdims)


def _position(name: str, primitive: Primitive, x: Any, axis: int | None, keepdims: bool | None) -> Any:
    check_dtype(name, ORDERED, x.dtype)
    keepdims = keepdims is not None and flag(name, "keepdims", keepdims)
    rank = len(x.shape)
    if axis is None:
        along, position = shapes.reshape(x, (x.size,)), 0
    else:
        along, position = x, axis_index(axis, rank, name)
    if along.shape[position] == 0:
        raise ShapeError(f"{name}: an array of shape {x.shape} has no elements to compare along axis {axis}")
    result = primitive.bind(along, axes=(position,), index_dtype=dtypes.default_int())
    return shapes.expand_dims(result, _ALL_AXES[rank] if axis is None else (position,)) if keepdims else result


# Truth -------------------------------------------------------------------------------------------------------------


def all(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether all elements along some axes are true, or not zero.

    Args:
      a, axis, out, keepdims, where: as in :func:`sum`.

    Returns:
      Booleans, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.all(jnp.array([[True, False], [True, True]]), axis=1))
    [False  True]
    """
    return _truth("all", prims.reduce_and_p, a, axis, out, keepdims, where, True)


def any(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether any element along some axes is true, or not zero.

    Args:
      a, axis, out, keepdims, where: as in :func:`sum`.

    Returns:
      Booleans, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.any(jnp.array([[True, False], [False, False]]), axis=1))
    [ True False]
    """
    return _truth("any", prims.reduce_or_p, a, axis, out, keepdims, where, False)


def _truth(
    name: str, primitive: Primitive, a: Any, axis: Any, out: Any, keepdims: bool, where: Any, identity: bool
) -> Any:
    refuse_out(name, out)
    x = _boolean(name, a)
    axes = all_axes(axis, len(x.shape), name)
    if where is not None:
        x = ops.where(_mask(name, where, x.shape), x, identity)
    result = primitive.bind(x, axes=axes) if axes else another(x)
    return shapes.expand_dims(result, axes) if keepdims is not False and flag(name, "keepdims", keepdims) else result


def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """The number of elements along some axes that are true, or not zero.

    Args:
      a, axis, keepdims: as in :func:`sum`.

    Returns:
      Integers, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ArgumentError: ``keepdims`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.count_nonzero(jnp.array([0.0, 1.0, 2.0])))
    2
    """
    if keepdims is not False:
        keepdims = flag("count_nonzero", "keepdims", keepdims)
    return sum(_boolean("count_nonzero", a), axis, keepdims=keepdims)


# Means and variances -----------------------------------------------------------------------------------------------


def mean(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The mean of the elements along some axes; NaN if there are none.

    Args:
      a, axis, out, keepdims, where: as in :func:`sum`.
      dtype: the dtype of the result; by default the dtype of ``a``, as a float.

    Returns:
      An array of floats or complex numbers, of the shape of ``a`` without these axes, or with size one for
      ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.mean(jnp.array([[1, 2], [3, 5]]), axis=0))
    [2.  3.5]
    """
    if keepdims is not False:
        keepdims = flag("mean", "keepdims", keepdims)
    refuse_out("mean", out)
    x = inexact_operand("mean", a)
    axes = all_axes(axis, len(x.shape), "mean")
    if dtype is None and where is None and x.dtype.char in _FAST:
        result = ops.div(prims.reduce_sum(x, axes), size_as(count_of(x.shape, axes), x.dtype))
        if keepdims:
            result = shapes.expand_dims(result, axes)
        return strong(result)
    wanted = x.dtype if dtype is None else dtypes.requested_dtype(dtype, "mean")
    result = _mean(convert_element_type(x, _computed(x.dtype, wanted)), axes, where, keepdims)
    return convert_element_type(result, wanted)


def _computed(have: np.dtype[Any], wanted: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which to compute moments, such as the mean, of elements of the dtype ``have``.

    This is ``have``, promoted with the dtype ``wanted`` of the result if ``wanted`` is inexact. It has at least 32
    bits.
    """
    dtype = dtypes.common_dtype(have, wanted) if dtypes.is_inexact(wanted) else have
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def _mean(x: Any, axes: tuple[int, ...], where: Any, keepdims: bool) -> Any:
    if where is None:
        result = ops.div(prims.reduce_sum(x, axes), size_as(count_of(x.shape, axes), x.dtype))
    else:
        mask = _mask("mean", where, x.shape)
        result = ops.div(prims.reduce_sum(ops.where(mask, x, 0), axes), _counted(mask, x, axes))
    return shapes.expand_dims(result, axes) if keepdims else result


def _counted(mask: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return the number of elements along ``axes`` that ``mask`` selects, in the dtype of ``x``."""
    counted = convert_element_type(shapes.broadcast_to(mask, x.shape), dtypes.default_int())
    return convert_element_type(prims.reduce_sum(counted, axes), x.dtype)


def var(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """The variance of the elements along some axes; for complex numbers by their distances from the mean.

    Args:
      a, axis, out, keepdims, where: as in :func:`sum`.
      dtype: the dtype of the result; by default the dtype of ``a``, as a real float.
      ddof: the degrees of freedom to subtract from the number of elements, by which the sum of squares is divided.
      mean: the mean, with the axes kept, if it is known.
      correction: another name for ``ddof``.

    Returns:
      An array without the axes; NaN where no degree of freedom is left.

    Raises:
      ArgumentError: both ``ddof`` and ``correction`` are passed, or a real dtype for complex elements (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.var(jnp.array([1.0, 2.0, 3.0]), ddof=1))
    1.0
    """
    return _var("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _var(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any, mean: Any,
    correction: Any,
) -> Any:  # fmt: skip
    refuse_out(name, out)
    keepdims = flag(name, "keepdims", keepdims)
    if correction is not None:
        if ddof:
            raise ArgumentError(f"{name}: pass either ddof or correction, got {ddof} and {correction}")
        ddof = correction
    if not isinstance(ddof, (int, float, np.number, Array)):
        raise ArgumentError(f"{name}: ddof must be a number, got {typed(ddof)}")
    x = inexact_operand(name, a)
    wanted = dtypes.to_real(x.dtype)
    if dtype is not None:
        wanted = dtypes.to_inexact(dtypes.requested_dtype(dtype, name))
        if dtypes.is_complex(x.dtype) and not dtypes.is_complex(wanted):
            raise ArgumentError(f"{name} of complex numbers in a real dtype is not defined, got dtype={dtype!r}")
    axes = all_axes(axis, len(x.shape), name)
    x = convert_element_type(x, _computed(x.dtype, wanted))
    mask = None if where is None else _mask(name, where, x.shape)
    middle = _mean(x, axes, mask, True) if mean is None else convert_element_type(operand(name, mean), x.dtype)
    off = ops.sub(x, middle)
    if dtypes.is_complex(x.dtype):
        squares = ops.add(ops.square(ops.real(off)), ops.square(ops.imag(off)))
    else:
        squares = ops.square(off)
    if mask is None:
        freedom: Any = count_of(x.shape, axes) - ddof
        freedom = size_as(freedom, squares.dtype) if freedom > 0 else math.nan
    else:
        squares = ops.where(mask, squares, 0)
        freedom = ops.sub(_counted(mask, squares, axes), ddof)
        freedom = ops.where(ops.gt(freedom, 0), freedom, math.nan)
    result = ops.div(prims.reduce_sum(squares, axes), freedom)
    return convert_element_type(shapes.expand_dims(result, axes) if keepdims else result, wanted)


def std(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """The standard deviation of the elements along some axes: the square root of :func:`var`.

    Args:
      a, axis, dtype, out, ddof, keepdims, where, mean, correction: as in :func:`var`.

    Returns:
      An array of floats, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ArgumentError: both ``ddof`` and ``correction`` are passed, or ``dtype`` is real and ``a`` is complex (a TypeError
        and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.std(jnp.array([1.0, 3.0])))
    1.0
    """
    return ops.sqrt(_var("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction))


# Cumulative results ------------------------------------------------------------------------------------------------


def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """The cumulative sums of the elements.

    Args:
      a: an array.
      axis: the axis; None for all elements in row-major order.
      dtype: the dtype of the result; by default the dtype of ``a``, where booleans become the default integer.
      out: not supported.

    Returns:
      An array of the shape of ``a``; a vector if ``axis`` is None.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.cumsum(jnp.array([1.0, 2.0, 3.0])))
    [1. 3. 6.]
    """
    return _cumulate("cumsum", prims.cumsum, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """The cumulative products of the elements. Its derivative is right where elements are zero.

    Args:
      a, axis, dtype, out: as in :func:`cumsum`.

    Returns:
      An array of the shape of ``a``; a vector if ``axis`` is None.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.cumprod(jnp.array([1.0, 2.0, 3.0])))
    [1. 2. 6.]
    """
    return _cumulate("cumprod", prims.cumprod, a, axis, dtype, out)


def _cumulate(
    name: str, function: Any, a: Any, axis: int | None, dtype: Any, out: Any, skipped: int | None = None
) -> Any:
    """Check the arguments of a cumulative function such as ``cumsum``, and compute its result.

    Args:
      name: the name of the function, for errors.
      function: the primitive function that computes cumulative sums or products.
      a, axis, dtype, out: as in NumPy; ``out`` must be None.
      skipped: the number that replaces NaN, or None to keep NaN.
    """
    refuse_out(name, out)
    x = operand(name, a)
    if skipped is not None and dtypes.is_inexact(x.dtype):
        x = ops.where(_is_nan(x), skipped, x)
    if axis is None:
        x = shapes.reshape(x, (x.size,))
    position = axis_index(0 if axis is None else axis, len(x.shape), name)
    if dtype is not None:
        x = convert_element_type(x, dtypes.requested_dtype(dtype, name))
    elif dtypes.is_bool(x.dtype):
        x = convert_element_type(x, dtypes.default_int())
    return strong(_cumulated(function, x, position))


def _cumulated(function: Any, x: Any, axis: int) -> Any:
    """Apply ``function``, which computes cumulative sums or products, along ``axis``.

    For booleans return whether any (for sums) or all (for products) of the elements so far are true.
    """
    if not dtypes.is_bool(x.dtype):
        return function(x, axis)
    of_integers = prims.cummax if function is prims.cumsum else prims.cummin
    return convert_element_type(of_integers(convert_element_type(x, np.dtype(np.int8)), axis), x.dtype)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None, include_initial: bool = False
) -> Array:
    """The cumulative sums of the elements, as in the array API standard.

    Args:
      x: an array of at least one axis.
      axis: the axis; may be left out if there is only one.
      dtype: the dtype of the result; by default as of :func:`sum`.
      include_initial: whether to begin with the sum of no elements, 0.

    Returns:
      An array of the shape of ``x``; one larger along the axis with ``include_initial``.

    Raises:
      ShapeError: there is more than one axis, or none, and ``axis`` is not passed (a ValueError).
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True))
    [0 1 3 6]
    """
    if include_initial is not False:
        include_initial = flag("cumulative_sum", "include_initial", include_initial)
    return _cumulate_from("cumulative_sum", prims.cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None, include_initial: bool = False
) -> Array:
    """The cumulative products of the elements, as in the array API standard.

    Args:
      x, axis, dtype: as in :func:`cumulative_sum`.
      include_initial: whether to begin with the product of no elements, 1.

    Returns:
      An array of the shape of ``x``; one larger along the axis with ``include_initial``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      ShapeError: there is more than one axis, or none, and ``axis`` is not passed (a TypeError and a ValueError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True))
    [1 1 2 6]
    """
    if include_initial is not False:
        include_initial = flag("cumulative_prod", "include_initial", include_initial)
    return _cumulate_from("cumulative_prod", prims.cumprod, x, axis, dtype, include_initial, 1)


def _cumulate_from(
    name: str, function: Any, x: Any, axis: int | None, dtype: Any, include_initial: bool, identity: int
) -> Any:
    x = operand(name, x)
    rank = len(x.shape)
    if rank == 0 or (axis is None and rank > 1):
        raise ShapeError(f"{name} takes an array of one axis, or axis= for more axes; got shape {x.shape}")
    position = axis_index(0 if axis is None else axis, rank, name)
    x = convert_element_type(x, _summed_dtype(x.dtype) if dtype is None else dtypes.requested_dtype(dtype, name))
    result = strong(_cumulated(function, x, position))
    if not include_initial:
        return result
    first = shapes.full((*x.shape[:position], 1, *x.shape[position + 1 :]), identity, x.dtype)
    return concatenate([first, result], position)


# Without NaN -------------------------------------------------------------------------------------------------------


def _is_nan(x: Any) -> Any:
    return ops.ne_p.bind(x, x)


def _numbers(name: str, a: Any, where: Any) -> tuple[Any, Any]:
    """Replace NaN in an operand by 0; return the result, and a mask of the elements that count.

    An element counts if it is not NaN and ``where`` is true. If ``where`` is None and no element can be NaN, the mask
    is None. ``name`` is the function, for errors.
    """
    x = operand(name, a)
    if not dtypes.is_inexact(x.dtype):
        return x, where if where is None else _mask(name, where, x.shape)
    valid = ops.eq(x, x)
    return ops.where(valid, x, 0), valid if where is None else ops.and_p.bind(valid, _mask(name, where, x.shape))


def nansum(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The sum of the elements along some axes that are not NaN; 0 if there are none.

    Args:
      a, axis, dtype, out, keepdims, initial, where: as in :func:`sum`.

    Returns:
      An array, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nansum(jnp.array([1.0, jnp.nan, 2.0])))
    3.0
    """
    if keepdims is not False:
        keepdims = flag("nansum", "keepdims", keepdims)
    x, valid = _numbers("nansum", a, where)
    return sum(x, axis, dtype, out, keepdims, initial, valid)


def nanprod(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The product of the elements along some axes that are not NaN; 1 if there are none.

    Args:
      a, axis, dtype, out, keepdims, initial, where: as in :func:`sum`.

    Returns:
      An array, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0])))
    6.0
    """
    if keepdims is not False:
        keepdims = flag("nanprod", "keepdims", keepdims)
    x, valid = _numbers("nanprod", a, where)
    return prod(x, axis, dtype, out, keepdims, initial, valid)


def nanmax(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The largest element along some axes that is not NaN; NaN if there are none.

    Args:
      a, axis, out, keepdims, initial, where: as in :func:`max`.

    Returns:
      An array of the dtype of ``a``, of its shape without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: there are no elements to compare and no ``initial`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanmax(jnp.array([1.0, jnp.nan, 2.0])))
    2.0
    """
    if keepdims is not False:
        keepdims = flag("nanmax", "keepdims", keepdims)
    return _nan_extreme("nanmax", max, False, a, axis, out, keepdims, initial, where)


def nanmin(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The smallest element along some axes that is not NaN; NaN if there are none.

    Args:
      a, axis, out, keepdims, initial, where: as in :func:`max`.

    Returns:
      An array of the dtype of ``a``, of its shape without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: there are no elements to compare and no ``initial`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanmin(jnp.array([1.0, jnp.nan, 2.0])))
    1.0
    """
    if keepdims is not False:
        keepdims = flag("nanmin", "keepdims", keepdims)
    return _nan_extreme("nanmin", min, True, a, axis, out, keepdims, initial, where)


def _nan_extreme(
    name: str, function: Any, largest: bool, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    x = operand(name, a)
    if not dtypes.is_inexact(x.dtype):
        return function(x, axis, out, keepdims, initial, where)
    missing = _is_nan(x)
    fill = scalar_array(prims.extreme(x.dtype, largest=largest))
    result = function(ops.where(missing, fill, x), axis, out, keepdims, initial, where)
    return ops.where(all(missing, axis, keepdims=keepdims), math.nan, result) if initial is None else result


def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The position of the first largest element that is not NaN; -1 if there are none.

    Args:
      a, axis, out, keepdims: as in :func:`argmax`.

    Returns:
      Integers, of the shape of ``a`` without the axis, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the axis has no elements (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0])))
    2
    """
    return _nan_position("nanargmax", argmax, False, a, axis, out, keepdims)


def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The position of the first smallest element that is not NaN; -1 if there are none.

    Args:
      a, axis, out, keepdims: as in :func:`argmax`.

    Returns:
      Integers, of the shape of ``a`` without the axis, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the axis has no elements (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanargmin(jnp.array([2.0, jnp.nan, 1.0])))
    2
    """
    return _nan_position("nanargmin", argmin, True, a, axis, out, keepdims)


def _nan_position(
    name: str, function: Any, largest: bool, a: Any, axis: int | None, out: Any, keepdims: bool | None
) -> Any:
    x = operand(name, a)
    if not dtypes.is_inexact(x.dtype):
        return function(x, axis, out, keepdims)
    missing = _is_nan(x)
    fill = scalar_array(prims.extreme(x.dtype, largest=largest))
    result = function(ops.where(missing, fill, x), axis, out, keepdims)
    return ops.where(all(missing, axis, keepdims=builtins.bool(keepdims)), -1, result)


def nanmean(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The mean of the elements along some axes that are not NaN; NaN if there are none.

    Args:
      a, axis, dtype, out, keepdims, where: as in :func:`mean`.

    Returns:
      An array of floats or complex numbers, of the shape of ``a`` without these axes, or with size one for
      ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanmean(jnp.array([1.0, jnp.nan, 2.0])))
    1.5
    """
    if keepdims is not False:
        keepdims = flag("nanmean", "keepdims", keepdims)
    x, valid = _numbers("nanmean", a, where)
    return mean(x, axis, dtype, out, keepdims, where=valid)


def nanvar(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: ArrayLike | None = None, mean: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The variance of the elements along some axes that are not NaN; NaN if no degree of freedom is left.

    Args:
      a, axis, dtype, out, ddof, keepdims, where, mean: as in :func:`var`.

    Returns:
      An array of floats, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0])))
    1.0
    """
    if keepdims is not False:
        keepdims = flag("nanvar", "keepdims", keepdims)
    x, valid = _numbers("nanvar", a, where)
    return _var("nanvar", x, axis, dtype, out, ddof, keepdims, valid, mean, None)


def nanstd(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: ArrayLike | None = None, mean: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The standard deviation of the elements along some axes that are not NaN.

    Args:
      a, axis, dtype, out, ddof, keepdims, where, mean: as in :func:`var`.

    Returns:
      An array of floats, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0])))
    1.0
    """
    if keepdims is not False:
        keepdims = flag("nanstd", "keepdims", keepdims)
    x, valid = _numbers("nanstd", a, where)
    return ops.sqrt(_var("nanstd", x, axis, dtype, out, ddof, keepdims, valid, mean, None))


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """The cumulative sums of the elements that are not NaN.

    Args:
      a, axis, dtype, out: as in :func:`cumsum`.

    Returns:
      An array of the shape of ``a``; a vector if ``axis`` is None.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0])))
    [1. 1. 3.]
    """
    return _cumulate("nancumsum", prims.cumsum, a, axis, dtype, out, 0)


def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """The cumulative products of the elements that are not NaN.

    Args:
      a, axis, dtype, out: as in :func:`cumsum`.

    Returns:
      An array of the shape of ``a``; a vector if ``axis`` is None.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      UnsupportedArgumentError: ``out`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nancumprod(jnp.array([3.0, jnp.nan, 2.0])))
    [3. 3. 6.]
    """
    return _cumulate("nancumprod", prims.cumprod, a, axis, dtype, out, 1)
