# long: because there are many functions, each with its docstring
"""Averages, quantiles, covariances, and differences and integrals along an axis."""

from __future__ import annotations

import builtins
import math
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.arguments import flag, is_listed, typed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.core.trace import state
from pullback.core.types import Shape
from pullback.numpy.declare import REAL
from pullback.numpy.promotion import (
    another,
    axes_tuple,
    axis_index,
    inexact_operand,
    inexact_operands,
    known_int,
    named,
    operand,
    promote_all,
    refuse_out,
    several,
    strong,
)
from pullback.numpy.reductions import count_of, mean, sum
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, sorting
from pullback.primitives.arrays.slicing import concatenate, iota, slice_in_dim
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.linalg.contraction import dot_general
from pullback.transforms.programs.placement import spread

__all__ = [
    "average", "corrcoef", "cov", "diff", "ediff1d", "gradient", "median", "nanmedian", "nanpercentile", "nanquantile",
    "percentile", "quantile", "trapezoid",
]  # fmt: skip

_INT32 = np.dtype(np.int32)


# Averages ----------------------------------------------------------------------------------------------------------


@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any: ...
def average(
    a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The mean of the elements along some axes, weighted.

    Args:
      a: an array.
      axis: an axis, a tuple of axes, or None for all.
      weights: of the shape of ``a``; or of the sizes of the axes in ``axis``, in that order; 1 by default.
      returned: whether to return the sum of the weights, too.
      keepdims: whether to keep the axes, with size one.

    Returns:
      An array of floats or complex numbers; with ``returned`` a pair of it and of the sums of the weights.

    Raises:
      ShapeError: the shape of the weights does not fit (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.average(jnp.array([1.0, 2.0, 3.0]), weights=jnp.array([3.0, 1.0, 0.0])))
    1.25
    """
    if returned is not False:
        returned = flag("average", "returned", returned)
    if keepdims is not False:
        keepdims = flag("average", "keepdims", keepdims)
    x = inexact_operand("average", a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        axes = axes_tuple(axis, len(x.shape), "average")
        total: Any = shapes.full(result.shape, count_of(x.shape, axes), x.dtype) if returned else None
    else:
        x, w = inexact_operands("average", a, weights)
        if w.shape != x.shape:
            w = _along_axes(w, x.shape, axis)
        total = sum(w, axis, keepdims=keepdims)
        result = ops.div(sum(ops.mul(x, w), axis, keepdims=keepdims), total)
    return (result, total) if returned else result


def _along_axes(w: Any, shape: Shape, axis: Any) -> Any:
    """Broadcast weights along some axes, an argument of ``average``, to the shape of the averaged array.

    Args:
      w: the weights.
      shape: the shape of the averaged array.
      axis: the axis or axes of the array to which the axes of ``w`` correspond, in order.
    """
    if axis is None:
        raise ShapeError(f"average: weights of shape {w.shape} for an array of shape {shape} need axis")
    axes_tuple(axis, len(shape), "average")  # raises for a repeated axis
    positions = [axis_index(a, len(shape), "average") for a in several(axis)]
    expected = tuple(shape[i] for i in positions)
    if w.shape != expected:
        raise ShapeError(
            f"average: weights of shape {w.shape} do not fit axis {axis} of an array of shape {shape}: they must be of "
            f"that shape or of shape {expected}"
        )
    order = sorted(range(len(positions)), key=positions.__getitem__)
    return shapes.broadcast_in_dim(shapes.transpose(w, order), shape, sorted(positions))


# Quantiles: Hyndman and Fan, Sample quantiles in statistical packages (1996), definition 7 -------------------------

_CONTINUOUS = {
    "linear": (1, 1), "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
"""The methods that interpolate, by a and b in the position ``n q + a + q (1 - a - b)``, counted from one."""
_METHODS = (
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    *list(_CONTINUOUS)[1:],
)  # fmt: skip


def quantile(
    a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """The quantiles ``q`` of the elements along some axes; NaN if an element is NaN.

    Args:
      a: an array of real numbers.
      q: from 0 to 1, a number or an array of one axis.
      axis: an axis, a tuple of axes, or None for all.
      out, overwrite_input: not supported.
      method: the result between two elements: ``linear``, ``lower``, ``higher``, ``midpoint`` or ``nearest``; or
        ``inverted_cdf``, the first element at which the fraction ``q`` is reached, ``averaged_inverted_cdf``, its mean
        with the next element where ``q`` is reached exactly, ``closest_observation``; or, interpolating at other
        positions than ``linear``, ``interpolated_inverted_cdf``, ``hazen``, ``weibull``, ``median_unbiased`` or
        ``normal_unbiased``.
      keepdims: whether to keep the axes, with size one.
      weights: of the elements, for ``inverted_cdf``: of the shape of ``a``, or of the one axis.

    Returns:
      An array without the axes, with the axis of ``q`` first if it has one.

    Raises:
      ArgumentError: an unknown method (a ValueError).
      ShapeError: there are no elements, or ``q`` has more than one axis (a ValueError).

    The methods are the nine of Hyndman and Fan 1996, *Sample quantiles in statistical packages*, and four of NumPy's.

    >>> import pullback.numpy as jnp
    >>> print(jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.75))
    3.0
    """
    return _quantile("quantile", a, q, 1, axis, out, overwrite_input, method, keepdims, weights, False)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The percentiles ``q`` of the elements along some axes; NaN if an element is NaN.

    Args:
      q: from 0 to 100, a number or an array of one axis.
      a, axis, out, overwrite_input, method, keepdims, weights: as in :func:`quantile`.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.

    Returns:
      An array of floats; the axis of ``q``, if it has one, comes first.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: ``q`` has more than one axis, or there are no elements (a TypeError and a ValueError).
      ArgumentError: ``a`` is complex, or the method is unknown (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 75))
    3.0
    """
    if out_sharding is not None:
        function = partial(
            percentile, q=q, axis=axis, out=out, overwrite_input=overwrite_input, method=method, keepdims=keepdims,
            weights=weights,
        )  # fmt: skip
        return spread(function, [a], out_sharding, "percentile")
    return _quantile("percentile", a, q, 100, axis, out, overwrite_input, method, keepdims, weights, False)


def median(
    a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median of the elements along some axes: the middle element, or the mean of the two in the middle.

    Args:
      a, axis, out, overwrite_input, keepdims: as in :func:`quantile`.

    Returns:
      An array of floats, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ArgumentError: ``a`` is complex (a TypeError and a ValueError).
      ShapeError: there are no elements (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.median(jnp.array([5.0, 1.0, 2.0, 3.0])))
    2.5
    """
    return _quantile("median", a, 0.5, 1, axis, out, overwrite_input, "midpoint", keepdims, None, False)


def nanquantile(
    a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """:func:`quantile` of the elements that are not NaN; NaN if there are none.

    Args:
      a, q, axis, out, overwrite_input, method, keepdims, weights: as in :func:`quantile`.

    Returns:
      An array of floats; the axis of ``q``, if it has one, comes first.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: ``q`` has more than one axis, or there are no elements (a TypeError and a ValueError).
      ArgumentError: ``a`` is complex, or the method is unknown (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanquantile(jnp.array([1.0, jnp.nan, 2.0]), 0.5))
    1.5
    """
    return _quantile("nanquantile", a, q, 1, axis, out, overwrite_input, method, keepdims, weights, True)


def nanpercentile(
    a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """:func:`percentile` of the elements that are not NaN; NaN if there are none.

    Args:
      a, q, axis, out, overwrite_input, method, keepdims, weights: as in :func:`percentile`.

    Returns:
      An array of floats; the axis of ``q``, if it has one, comes first.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: ``q`` has more than one axis, or there are no elements (a TypeError and a ValueError).
      ArgumentError: ``a`` is complex, or the method is unknown (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanpercentile(jnp.array([1.0, jnp.nan, 2.0]), 50))
    1.5
    """
    return _quantile("nanpercentile", a, q, 100, axis, out, overwrite_input, method, keepdims, weights, True)


def nanmedian(
    a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """:func:`median` of the elements that are not NaN; NaN if there are none.

    Args:
      a, axis, out, overwrite_input, keepdims: as in :func:`quantile`.

    Returns:
      An array of floats, of the shape of ``a`` without these axes, or with size one for ``keepdims``.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ArgumentError: ``a`` is complex (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.nanmedian(jnp.array([1.0, jnp.nan, 2.0])))
    1.5
    """
    return _quantile("nanmedian", a, 0.5, 1, axis, out, overwrite_input, "midpoint", keepdims, None, True)


def _quantile(
    name: str, a: Any, q: Any, unit: int, axis: Any, out: Any, overwrite_input: bool, method: str, keepdims: bool,
    weights: Any, skip_nan: bool,
) -> Any:  # fmt: skip
    refuse_out(name, out)
    keepdims = flag(name, "keepdims", keepdims)
    if flag(name, "overwrite_input", overwrite_input):
        raise UnsupportedArgumentError(
            f"{name}: the argument overwrite_input is not supported, because arrays are immutable"
        )
    if not is_listed(method, _METHODS):
        raise ArgumentError(f"{name}: method must be one of {', '.join(_METHODS)}, got {method!r}")
    x = inexact_operand(name, a)
    dtype = x.dtype
    if dtypes.is_complex(dtype):
        raise ArgumentError(f"{name} takes real numbers, because complex numbers have no order")
    x = convert_element_type(x, np.dtype(np.float32) if dtype.itemsize < 4 else dtype)
    fraction = ops.div(convert_element_type(operand(name, q), x.dtype), unit)
    if len(fraction.shape) > 1:
        raise ShapeError(f"{name}: q must be a number or an array of one axis, got shape {fraction.shape}")
    axes = axes_tuple(axis, len(x.shape), name)
    if 0 in [x.shape[i] for i in axes]:
        raise ShapeError(f"{name}: an array of shape {x.shape} has no elements along {axes}")
    w = None if weights is None else _weights_like(name, weights, x, axis, method)
    fractions = shapes.reshape(fraction, (fraction.size,))
    rows, row_weights = (None if v is None else _rows(v, axes) for v in (x, w))
    if method == "inverted_cdf":
        result = _inverted_cdf(rows, row_weights, fractions, skip_nan)
    else:
        result = _interpolated(rows, fractions, method, skip_nan)
    result = shapes.moveaxis(result, len(result.shape) - 1, 0) if fraction.shape else shapes.squeeze(result, (-1,))
    if keepdims:
        result = shapes.expand_dims(result, [i + len(fraction.shape) for i in axes])
    return convert_element_type(result, dtype)


def _weights_like(name: str, weights: Any, x: Any, axis: Any, method: str) -> Any:
    if method != "inverted_cdf":
        raise UnsupportedArgumentError(f"{name}: only the method inverted_cdf takes weights, got method={method!r}")
    w = convert_element_type(operand(name, weights), x.dtype)
    if w.shape == x.shape:
        return w
    if not isinstance(axis, int) or w.shape != (x.shape[axis_index(axis, len(x.shape), name)],):
        raise ShapeError(f"{name}: weights of shape {w.shape} do not fit axis {axis} of shape {x.shape}")
    return shapes.broadcast_in_dim(w, x.shape, (axis_index(axis, len(x.shape), name),))


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """Move ``axes`` to the end, and merge them to one axis."""
    others = [i for i in range(len(x.shape)) if i not in axes]
    moved = shapes.transpose(x, [*others, *axes])
    return shapes.reshape(moved, (*moved.shape[: len(others)], count_of(x.shape, axes)))


def _interpolated(x: Any, fractions: Any, method: str, skip_nan: bool) -> Any:
    """Return the quantiles ``fractions`` of the elements along the last axis of ``x``.

    Args:
      x: the array.
      fractions: the quantiles, from 0 to 1; they are along the last axis of the result.
      method: a method of ``np.quantile`` that selects or interpolates elements.
      skip_nan: whether to ignore NaN; otherwise NaN makes the quantiles NaN.
    """
    last = len(x.shape) - 1
    ordered = sorting.sort([x], last)[0]
    number = ops.eq(x, x)
    if skip_nan:
        counted = convert_element_type(reductions.reduce_sum(convert_element_type(number, _INT32), (last,)), x.dtype)
        end = shapes.expand_dims(ops.max_p.bind(ops.sub(counted, 1), 0), (last,))
        valid = reductions.reduce_or(number, (last,))
    else:
        end = shapes.full((1,) * len(x.shape), x.shape[last] - 1, x.dtype)
        valid = reductions.reduce_and(number, (last,))
    position = _position(shapes.reshape(fractions, (*(1,) * last, fractions.size)), end, method)
    exact = ops.floor_p.bind(position)
    position = ops.min_p.bind(ops.max_p.bind(unclipped := position, 0), end)
    low, high = ops.floor_p.bind(position), ops.ceil_p.bind(position)

    def at(index: Any) -> Any:
        return sorting.take_along_axis(ordered, convert_element_type(index, _INT32), last)

    if method == "averaged_inverted_cdf":
        after = at(ops.min_p.bind(ops.max_p.bind(ops.add(exact, 1), 0), end))
        mean_of_two = ops.add(ops.mul(at(low), 0.5), ops.mul(after, 0.5))
        inside = ops.and_p.bind(ops.eq(unclipped, exact), ops.lt(low, end))
        result = ops.where(inside, mean_of_two, after)
    elif method == "closest_observation":
        odd = ops.ne_p.bind(ops.mul(ops.floor_p.bind(ops.mul(exact, 0.5)), 2), exact)
        stays = ops.and_p.bind(ops.eq(unclipped, exact), odd)
        result = at(ops.min_p.bind(ops.max_p.bind(ops.where(stays, exact, ops.add(exact, 1)), 0), end))
    elif method == "lower":
        result = at(low)
    elif method == "higher":
        result = at(high)
    elif method == "nearest":
        result = at(ops.round_p.bind(position))
    else:
        a, b = at(low), at(high)
        weight: Any = 0.5 if method == "midpoint" else ops.sub(position, low)
        rest: Any = 0.5 if method == "midpoint" else ops.sub(1, weight)
        between = ops.add(ops.mul(a, rest), ops.mul(b, weight))
        # An infinite element next to the position must not make NaN with a weight of zero.
        result = ops.where(ops.eq(low, high), a, between)
    return ops.where(shapes.expand_dims(valid, (last,)), result, math.nan)


def _position(q: Any, end: Any, method: str) -> Any:
    """Return the positions of quantiles among sorted elements; a position between two elements is fractional.

    Args:
      q: the quantiles, from 0 to 1.
      end: the position of the last element, where the first has position 0.
      method: the method of ``np.quantile``.
    """
    if method in ("averaged_inverted_cdf", "closest_observation"):
        return q * (end + 1) - (1 if method.startswith("averaged") else 1.5)
    a, b = _CONTINUOUS.get(method, (1, 1))
    if a == b == 1:
        return q * end
    return q * (end + (2 - a - b)) + (a - 1)


def _inverted_cdf(x: Any, weights: Any, fractions: Any, skip_nan: bool) -> Any:
    """Return weighted quantiles along the last axis.

    A quantile is the first of the sorted elements at which the sum of the weights so far reaches a fraction of the
    total.

    Args:
      x: the array.
      weights: a weight for each element, or None for equal weights.
      fractions: the fractions of the total weight.
      skip_nan: whether to ignore NaN; otherwise NaN makes the quantiles NaN.
    """
    last = len(x.shape) - 1
    number = ops.eq(x, x)
    weights = shapes.full(x.shape, 1, x.dtype) if weights is None else weights
    ordered, so_far = sorting.sort([x, ops.where(number, weights, 0)], last)
    so_far = reductions.cumsum(so_far, last)
    total = slice_in_dim(so_far, x.shape[last] - 1, x.shape[last], last)
    wanted = ops.mul(shapes.reshape(fractions, (*(1,) * last, fractions.size)), total)
    rows = (*x.shape[:last], fractions.size)
    position = sorting.searchsorted(so_far, shapes.broadcast_to(wanted, rows), "left", _INT32)
    result = sorting.take_along_axis(ordered, sorting.clip_indices(position, x.shape[last]), last)
    valid = (reductions.reduce_or if skip_nan else reductions.reduce_and)(number, (last,))
    return ops.where(shapes.expand_dims(valid, (last,)), result, math.nan)


# Covariance --------------------------------------------------------------------------------------------------------


# long: half of it is its documentation
def cov(
    m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, dtype: DTypeLike = None,
) -> Array:  # fmt: skip
    """The covariance matrix of variables.

    Args:
      m: an array of at most two axes, each row of which is a variable.
      y: more variables.
      rowvar: whether rows are variables; otherwise columns are.
      bias: whether to divide by the number of observations, instead of one less.
      ddof: the degrees of freedom to subtract from the number of observations; overrides ``bias``.
      fweights: the number of occurrences of each observation, integers.
      aweights: the importance of each observation.
      dtype: the dtype of the result, of floats or complex numbers.

    Returns:
      A matrix of shape (variables, variables), of floats or complex numbers; a scalar for one variable.

    Raises:
      ArgumentError: the dtype is not of floats or complex numbers (a ValueError).
      ShapeError: the arrays have too many axes, or weights do not fit (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    rowvar, bias = flag("cov", "rowvar", rowvar), flag("cov", "bias", bias)
    arrays = inexact_operands("cov", m) if y is None else inexact_operands("cov", m, y)
    if dtype is not None:
        wanted = dtypes.requested_dtype(dtype, "cov")
        if not dtypes.is_inexact(wanted):
            raise ArgumentError(f"cov: dtype must be one of floats or complex numbers, got {dtypes.dtype_name(wanted)}")
        arrays = [convert_element_type(p, wanted) for p in arrays]
    for what, p in zip("my", arrays, strict=False):
        if len(p.shape) > 2:
            raise ShapeError(f"cov: {what} must have at most two axes, got shape {p.shape}")
    x = concatenate([_variables_in_rows(p, rowvar) for p in arrays], 0)
    n = x.shape[1]
    w = _observation_weights(n, fweights, aweights, x.dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    elif not isinstance(ddof, (int, float, np.number, Array)):
        raise ArgumentError(f"cov: ddof must be a number, got {typed(ddof)}")
    if w is None:
        center = mean(x, 1, keepdims=True)
        freedom: Any = builtins.max(n - ddof, 0)
    else:
        total = sum(w)
        center = ops.div(sum(ops.mul(x, w), 1, keepdims=True), total)
        if not ddof:
            freedom = total
        elif aweights is None:
            freedom = ops.sub(total, ddof)
        else:
            important = convert_element_type(operand("cov", aweights), x.dtype)
            freedom = total - sum(w * important) / total * ddof
    off = ops.sub(x, center)
    weighted = off if w is None else ops.mul(off, w)
    result = ops.div(dot_general(weighted, ops.conj(off), (((1,), (1,)), ((), ()))), freedom)
    return shapes.reshape(result, ()) if result.shape == (1, 1) else strong(result)


def _variables_in_rows(x: Any, rowvar: bool) -> Any:
    if len(x.shape) == 2:
        return x if rowvar else shapes.transpose(x, (1, 0))
    return shapes.reshape(x, (1, x.size))


def _observation_weights(n: int, fweights: Any, aweights: Any, dtype: np.dtype[Any]) -> Any:
    """Return the weight of each of ``n`` observations, the product of ``fweights`` and ``aweights``, in ``dtype``.

    Weights that are None count as 1. Return None if both are None.
    """
    result = None
    for what, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        w = operand(f"cov: {what}", weights)
        if w.shape != (n,):
            raise ShapeError(f"cov: {what} must have shape ({n},), one for each observation, got {w.shape}")
        if what == "fweights" and not dtypes.is_integer(w.dtype):
            raise DtypeError(f"cov: fweights must be integers, got {dtypes.short_name(w.dtype)}")
        w = convert_element_type(w, dtype)
        result = w if result is None else ops.mul(result, w)
    return result


@named
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike = None) -> Array:
    """The correlation coefficients of variables: their covariances over their standard deviations.

    Args:
      x, y, rowvar, dtype: as ``m, y, rowvar, dtype`` of :func:`cov`.

    Returns:
      A matrix of shape (variables, variables), of floats or complex numbers; a scalar for one variable.

    Raises:
      ShapeError: the arrays have too many axes (a TypeError and a ValueError).
      ArgumentError: ``rowvar`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    if rowvar is not True:
        rowvar = flag("corrcoef", "rowvar", rowvar)
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return ops.div(c, c)
    n = c.shape[0]
    diagonal = sorting.take_along_axis(c, iota(_INT32, (n, 1), 0), 1)
    spread = ops.sqrt(ops.real(diagonal) if dtypes.is_complex(c.dtype) else diagonal)
    spread = convert_element_type(spread, c.dtype)
    c = ops.div(ops.div(c, spread), shapes.reshape(spread, (1, n)))
    # Rounding may have moved a coefficient out of its bounds.
    if dtypes.is_complex(c.dtype):
        return ops.complex(ops.clamp_p.bind(-1, ops.real(c), 1), ops.clamp_p.bind(-1, ops.imag(c), 1))
    return ops.clamp_p.bind(-1, c, 1)


# Differences and integrals -----------------------------------------------------------------------------------------


def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """The differences of consecutive elements along an axis.

    Args:
      a: an array; for booleans the result is whether neighbours differ.
      n: the order of the differences.
      axis: the axis.
      prepend, append: values to put before or after ``a`` first: numbers, or arrays that fit it.

    Returns:
      An array that is smaller by ``n`` along the axis.

    Raises:
      ShapeError: ``a`` has no axes (a ValueError).
      ArgumentError: ``n`` is negative (a ValueError).
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.diff(jnp.array([1.0, 4.0, 9.0])))
    [3. 5.]
    """
    x = operand("diff", a)
    n = known_int("diff", "n", n)
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}")
    if not x.shape:
        raise ShapeError("diff takes an array of at least one axis, got shape ()")
    if n == 0:
        return another(x)
    axis = axis_index(axis, len(x.shape), "diff")
    pieces = [v for v in (prepend, x, append) if v is not None]
    if len(pieces) > 1:
        edge = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        promoted = promote_all("diff", pieces)
        x = concatenate([p if p.shape else shapes.broadcast_to(p, edge) for p in promoted], axis)
    subtract = ops.ne_p.bind if dtypes.is_bool(x.dtype) else ops.sub
    for _ in builtins.range(n):
        size = x.shape[axis]
        if size == 0:
            break
        x = subtract(slice_in_dim(x, 1, size, axis), slice_in_dim(x, 0, size - 1, axis))
    return x


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of consecutive elements, in row-major order.

    Args:
      ary: an array.
      to_end, to_begin: values to put after or before the differences; they are converted to the dtype of ``ary``.

    Returns:
      A vector of the dtype of ``ary``.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.ediff1d(jnp.array([1.0, 4.0, 9.0]), to_begin=0.0))
    [0. 3. 5.]
    """
    x = operand("ediff1d", ary)
    pieces = [diff(shapes.reshape(x, (x.size,)))]
    for values, index in ((to_begin, 0), (to_end, 2)):
        if values is not None:
            v = convert_element_type(operand("ediff1d", values), x.dtype)
            pieces.insert(index, shapes.reshape(v, (v.size,)))
    return concatenate(pieces, 0)


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y: the values of the integrand.
      x: the points: an array of one axis, or of the shape of ``y``.
      dx: the distance between them, if there is no ``x``: a number, or an array that is broadcast with the intervals,
        which have the shape of ``y`` with one element less along the axis.
      axis: the axis.

    Returns:
      An array of floats or complex numbers, of the shape of ``y`` without the axis.

    Raises:
      ShapeError: ``dx`` has more axes than ``y`` (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.trapezoid(jnp.array([1.0, 2.0, 3.0])))
    4.0
    """
    operands = (inexact_operand("trapezoid", y), dx) if x is None else (y, x)
    f, step = inexact_operands("trapezoid", *operands)
    rank = len(f.shape)
    axis = axis_index(axis, rank, "trapezoid")
    f = shapes.moveaxis(f, axis, rank - 1)
    if x is not None:
        step = diff(step if len(step.shape) == 1 else shapes.moveaxis(step, axis, len(step.shape) - 1))
    elif step.shape:
        if len(step.shape) > rank:
            raise ShapeError(f"trapezoid: dx must not have more axes than y, got shapes {step.shape} and {f.shape}")
        step = shapes.moveaxis(shapes.expand_dims(step, range(rank - len(step.shape))), axis, rank - 1)
    last, n = len(f.shape) - 1, f.shape[-1]
    pairs = ops.add(slice_in_dim(f, builtins.min(1, n), n, last), slice_in_dim(f, 0, builtins.max(n - 1, 0), last))
    return ops.mul(strong(sum(ops.mul(step, pairs), -1)), 0.5)


@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int | None = None) -> Array: ...
@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: int | None = None) -> Any: ...
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: int | None = None) -> Any:
    """The derivatives of a function from its values on a grid, by central differences, one-sided at the edges.

    Args:
      f: the values, an array; integers become floats.
      *varargs: the spacing of the grid: none for 1; a number for all axes; or for each axis a number, or a vector of
        the coordinates of its points.
      axis: an axis, or several; all by default.
      edge_order: the order of the error at the edges, 1, which is the default, or 2.

    Returns:
      The derivatives along the axis, an array of the shape of ``f``; a list of arrays unless there is exactly one axis.

    Raises:
      ShapeError: an axis has too few points for ``edge_order``, or not one coordinate for each point (a ValueError).
      ArgumentError: the number of ``varargs`` is not 0, 1 or the number of axes, or ``edge_order`` is not 1 or 2 (a
        TypeError and a ValueError).

    Method: Fornberg 1988, for points that are not equally spaced.

    >>> import pullback.numpy as jnp
    >>> print(jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0])))
    [3. 4. 6. 7.]
    >>> print(jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]), edge_order=2))
    [2. 4. 6. 8.]
    """
    values = inexact_operand("gradient", f)
    rank = len(values.shape)
    along = tuple(builtins.range(rank)) if axis is None else several(axis)
    axes = [axis_index(a, rank, "gradient") for a in along]
    if len(set(axes)) != len(axes):
        raise ShapeError(f"gradient: duplicate axes in {axis!r}")
    order = 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentError(
            f"gradient: pass no spacing, one for all axes, or one for each of {len(axes)} axes; got {len(varargs)}"
        )
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    out = [_differences(values, i, step, order) for i, step in zip(axes, steps, strict=True)]
    return out[0] if len(out) == 1 else out


def _even_differences(axis: int, f: Any, h: Any) -> Any:
    """Return the gradient of a NumPy array along ``axis``, at points with the distance ``h``.

    Differences are central, and one-sided at the ends. This takes half the time of ``np.gradient``.
    """
    out = np.empty_like(f)
    g, d = (np.moveaxis(x, axis, 0) for x in (f, out)) if axis else (f, out)
    np.subtract(g[2:], g[:-2], d[1:-1])
    np.multiply(d[1:-1], 0.5, d[1:-1])
    np.subtract(g[1], g[0], d[:1])
    np.subtract(g[-1], g[-2], d[-1:])
    return out if h == 1 else np.divide(out, h, out)


def _differences(f: Any, axis: int, spacing: Any, order: int) -> Any:
    n = f.shape[axis]
    if n <= order:
        raise ShapeError(
            f"gradient: axis {axis} of shape {f.shape} is too short: with edge_order={order} an axis needs at least "
            f"{order + 1} points"
        )
    h = convert_element_type(operand("gradient", spacing), dtypes.to_real(f.dtype))
    if len(h.shape) > 1 or (h.shape and h.shape != (n,)):
        raise ShapeError(
            f"gradient: a spacing must be a number, or a vector of the {n} coordinates along axis {axis}; got shape "
            f"{h.shape}"
        )
    if order == 1 and state.trace.quick and type(f) is type(h) is ArrayImpl and not h.shape and f.dtype in REAL:
        return ArrayImpl(state.silently(partial(_even_differences, axis), f._value, h._value))
    f = shapes.moveaxis(f, axis, 0)
    rows = lambda start, stop: slice_in_dim(f, start, stop, 0)
    slopes = ops.sub(rows(1, n), rows(0, n - 1))
    if not h.shape:  # first h times the derivative, without rounding errors of quotients
        inner = ops.mul(ops.sub(rows(2, n), rows(0, n - 2)), 0.5)
        first, last = slice_in_dim(slopes, 0, 1, 0), slice_in_dim(slopes, n - 2, n - 1, 0)
        if order == 2:
            first = ops.sub(ops.mul(first, 1.5), ops.mul(slice_in_dim(slopes, 1, 2, 0), 0.5))
            last = ops.sub(ops.mul(last, 1.5), ops.mul(slice_in_dim(slopes, n - 3, n - 2, 0), 0.5))
        out = ops.div(concatenate([first, inner, last], 0), convert_element_type(h, f.dtype))
        return shapes.moveaxis(out, 0, axis)
    steps = shapes.reshape(convert_element_type(diff(h), f.dtype), (n - 1,) + (1,) * (len(f.shape) - 1))
    slopes = ops.div(slopes, steps)
    before, after = slice_in_dim(steps, 0, n - 2, 0), slice_in_dim(steps, 1, n - 1, 0)
    left, right = slice_in_dim(slopes, 0, n - 2, 0), slice_in_dim(slopes, 1, n - 1, 0)
    # Each slope is exact halfway along its step: the derivative lies between them, or beyond at the edges.
    bend = ops.div(ops.sub(right, left), ops.add(before, after))
    inner = ops.add(left, ops.mul(before, bend))
    first, last = slice_in_dim(slopes, 0, 1, 0), slice_in_dim(slopes, n - 2, n - 1, 0)
    if order == 2:
        first = ops.sub(first, ops.mul(slice_in_dim(steps, 0, 1, 0), slice_in_dim(bend, 0, 1, 0)))
        last = ops.add(last, ops.mul(slice_in_dim(steps, n - 2, n - 1, 0), slice_in_dim(bend, n - 3, n - 2, 0)))
    return shapes.moveaxis(concatenate([first, inner, last], 0), 0, axis)
