"""Softmax and related functions, standardisation, and one-hot encoding.

Exponentials are of differences from the largest element, so that none overflows. That element is a constant in
derivatives, since the results do not depend on it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np

import pullback.numpy as pnp
from pullback.backends.devices.shardings import OutSharding
from pullback.backends.host import native
from pullback.backends.host import reductions as host_reductions
from pullback.backends.host.rows import of_rows
from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.arguments import flag, is_listed
from pullback.core.array import LARGE, Array, ArrayLike
from pullback.core.config import config
from pullback.core.elsewhere import is_here
from pullback.core.errors import ArgumentError, PullbackError, ShapeError
from pullback.core.linear import LinearTracer
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO
from pullback.numpy.declare import inexact_pair
from pullback.numpy.promotion import axis_index, inexact_operand, named, strong
from pullback.numpy.reductions import all_axes, boolean_mask, count_of
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.declare import host_fused
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.programs.placement import constrained

Positions = tuple[int, ...]

# Shared by the functions ------------------------------------------------------------------------------------------


def _sum(x: Any, axes: Positions) -> Any:
    """Return the sum of ``x`` along ``axes``, which are kept with size one."""
    return shapes.expand_dims(reductions.reduce_sum(x, axes), axes) if axes else x


def _largest(x: Any, axes: Positions) -> Any:
    """Return the largest real part of the elements along ``axes``, which are kept with size one.

    The result counts as a constant in derivatives. It is -inf if there are no elements.
    """
    real = ops.real(x) if dtypes.is_complex(x.dtype) else x
    found = reductions.reduce_max(ops.stop_gradient_p.bind(real), axes)
    return shapes.expand_dims(found, axes) if axes else found


def _difference(x: Any, y: Any) -> Any:
    """Return ``x - y`` in the dtype of ``x``, which may be complex; ``y`` is real."""
    return ops.sub(x, ops.convert_element_type(y, x.dtype))


def _mask(name: str, where: Any, shape: tuple[int, ...]) -> Any:
    """Convert the argument ``where`` to booleans, and broadcast them to ``shape``; raise if they do not fit.

    ``name`` is the name of the function, for the error.
    """
    mask = boolean_mask(name, where)
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{name}: where, of shape {mask.shape}, does not broadcast to the array's shape {shape}")
    return shapes.broadcast_to(mask, shape)


# Sums of exponentials ----------------------------------------------------------------------------------------------


@overload
def logsumexp(
    a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False,
    return_sign: Literal[False] = False, where: ArrayLike | None = None,
) -> Array: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False, *,
    return_sign: Literal[True], where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False,
    return_sign: bool = False, where: ArrayLike | None = None,
) -> Any: ...  # fmt: skip
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Compute ``log(sum(b * exp(a)))`` without overflow.

    Args:
      a: an array of floats or complex numbers; integers are converted.
      axis: an axis, a tuple of axes, or None for all.
      b: factors of the exponentials, which broadcast against ``a``.
      keepdims: whether to keep the axes, with size one.
      return_sign: whether to return the logarithm of the absolute value of the sum, and the sign of the sum.
      where: booleans that broadcast to ``a``: which elements count.

    Returns:
      An array without the axes; NaN where a sum of real numbers is negative. It is -inf, with derivative zero, where
      there are no terms or all are zero. With ``return_sign`` a pair of arrays.

    Raises:
      ShapeError: an axis does not exist, or the operands do not broadcast (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(f"{nn.logsumexp(jnp.array([1000.0, 1000.0])):.4f}")
    1000.6932
    """
    return_sign = flag("logsumexp", "return_sign", return_sign)
    keepdims = flag("logsumexp", "keepdims", keepdims)
    factors = None
    if b is None:
        x = inexact_operand("logsumexp", a)
    else:
        x, factors = inexact_pair("logsumexp", a, b)
        shape = broadcast_shape("logsumexp", [x.shape, factors.shape])
        x, factors = shapes.broadcast_to(x, shape), shapes.broadcast_to(factors, shape)
    axes = all_axes(axis, len(x.shape), "logsumexp")
    if where is not None:
        x = ops.where(_mask("logsumexp", where, x.shape), x, -math.inf)
    if factors is None and not return_sign and _is_usual(x):
        out = strong(_logsumexp(x, axes=axes))
        return shapes.expand_dims(out, axes) if keepdims and axes else out
    results = _sum_of_terms(x, factors, axes, return_sign)
    if not keepdims:
        results = [shapes.squeeze(r, axes) for r in results]
    results = [strong(r) for r in results]
    return tuple(results) if return_sign else results[0]


def _sum_of_terms(x: Any, factors: Any, axes: Positions, return_sign: bool) -> list[Any]:
    """Return the logarithm of the sum of terms, and its sign if ``return_sign``; ``axes`` are kept with size one."""
    largest = _largest(x if factors is None else ops.where(ops.eq(factors, 0), -math.inf, x), axes)
    shift = ops.where(ops.is_finite_p.bind(largest), largest, 0)
    nothing = ops.eq(largest, -math.inf)
    total = ops.where(nothing, 1, _sum(_terms(_difference(x, shift), factors), axes))
    size = ops.log(ops.abs(total) if return_sign else total)
    out = ops.where(nothing, -math.inf, ops.add(size, ops.convert_element_type(shift, size.dtype)))
    return [out, ops.where(nothing, 0, ops.sign(total))] if return_sign else [out]


def _terms(exponents: Any, factors: Any) -> Any:
    """Return ``factors * exp(exponents)``; or 0 where a factor is 0 and the exponential would overflow.

    If ``factors`` is None, all factors are 1.
    """
    if factors is None:
        return ops.exp(exponents)
    real = ops.real(exponents) if dtypes.is_complex(exponents.dtype) else exponents
    safe = ops.lt(real, math.log(float(dtypes.finfo(real.dtype).max)))
    dropped = ops.and_p.bind(ops.eq(factors, 0), ops.not_p.bind(safe))
    return ops.mul(factors, ops.exp(ops.where(dropped, -math.inf, exponents)))


def _logsumexp_by_operations(x: Any, *, axes: Positions) -> Any:
    return shapes.squeeze(_sum_of_terms(x, None, axes, return_sign=False)[0], axes)


def _host_logsumexp(x: Any, *, axes: Positions) -> Any:
    if _are_rows(x, axes=axes):
        return of_rows("logsumexp", x, axes=axes, reduces=True)[()]
    shift = _host_shift(x, axes)
    return np.squeeze(np.log(_host_sum(np.exp(x - shift), axes)) + shift, axes)[()]


def _host_shift(x: Any, axes: Positions) -> Any:
    """Return the largest elements along ``axes``, which are kept with size one; 0 where they are not finite."""
    largest = np.max(x, axes, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(largest), largest, largest.dtype.type(0))


def _logsumexp_slope_by_operations(x: Any, *, axes: Positions) -> Any:
    largest = _largest(x, axes)
    exponentials = ops.exp(_difference(x, ops.where(ops.is_finite_p.bind(largest), largest, 0)))
    return ops.div(exponentials, ops.where(ops.eq(largest, -math.inf), 1, _sum(exponentials, axes)))


def _host_logsumexp_slope(x: Any, *, axes: Positions) -> Any:
    if _are_rows(x, axes=axes):
        return of_rows("logsumexp_slope", x, axes=axes)
    exponentials = np.exp(x - _host_shift(x, axes))
    total = _host_sum(exponentials, axes)
    return np.divide(exponentials, np.where(total == 0, total.dtype.type(1), total))


def logmeanexp(x: ArrayLike, axis: Axes = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """Compute ``log(mean(exp(x)))`` without overflow.

    Args:
      x, axis, where, keepdims: as ``a``, ``axis``, ``where``, ``keepdims`` of :func:`logsumexp`.

    Returns:
      An array of floats or complex numbers, of the shape of ``x`` without these axes, or with size one for
      ``keepdims``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ArgumentError: ``keepdims`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.logmeanexp(jnp.array([1000.0, 1000.0])))
    1000.0
    """
    keepdims = flag("logmeanexp", "keepdims", keepdims)
    x = inexact_operand("logmeanexp", x)
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    axes = all_axes(axis, len(x.shape), "logmeanexp")
    if where is None:
        return ops.sub(total, math.log(max(count_of(x.shape, axes), 1)))
    ones = ops.convert_element_type(_mask("logmeanexp", where, x.shape), total.dtype)
    count = _sum(ones, axes)
    return ops.sub(total, ops.log(count if keepdims else shapes.squeeze(count, axes)))


# Softmax -----------------------------------------------------------------------------------------------------------


def _softmax_by_operations(x: Any, *, axes: Positions) -> Any:
    exponentials = ops.exp(_difference(x, _largest(x, axes)))
    total = _sum(exponentials, axes)
    # It is at least 1, so that its reciprocal is safe unless subnormal; one quotient for each row instead of many.
    narrow = exponentials.dtype.itemsize < 4
    return ops.div(exponentials, total) if narrow else ops.mul(exponentials, ops.div(1, total))


def _log_softmax_by_operations(x: Any, *, axes: Positions) -> Any:
    shifted = _difference(x, _largest(x, axes))
    return ops.sub(shifted, ops.log(_sum(ops.exp(shifted), axes)))


def _host_softmax(x: Any, *, axes: Positions) -> Any:
    if _are_rows(x, axes=axes):
        return of_rows("softmax", x, axes=axes)
    exponentials = x - np.max(x, axes, keepdims=True, initial=-np.inf)
    out = exponentials if x.ndim else None  # in place, for new memory takes as long as the sum
    exponentials = np.exp(exponentials, out=out)
    return np.multiply(exponentials, 1 / _host_sum(exponentials, axes), out=out)


def _host_log_softmax(x: Any, *, axes: Positions) -> Any:
    if _are_rows(x, axes=axes):
        return of_rows("log_softmax", x, axes=axes)
    shifted = x - np.max(x, axes, keepdims=True, initial=-np.inf)
    return np.subtract(shifted, np.log(_host_sum(np.exp(shifted), axes)), out=shifted if x.ndim else None)


def _host_sum(x: Any, axes: Positions) -> Any:
    return np.expand_dims(host_reductions.reduce_sum(x, axes=axes), axes)


def _are_rows(x: Any, *, axes: Positions) -> bool:
    return native.are_rows(x.shape, axes)


def _softmax_slope(out: Any, t: Any, *, axes: Positions) -> Any:
    total = _sum(ops.mul(out, t), axes)
    return ops.mul(out, ops.sub(t, total))


def _log_softmax_slope(out: Any, t: Any, *, axes: Positions) -> Any:
    weighted = ops.mul(ops.exp(out), t)
    return ops.sub(t, _sum(weighted, axes))


def _log_softmax_pull(out: Any, ct: Any, *, axes: Positions) -> Any:
    total = _sum(ct, axes)
    return ops.sub(ct, ops.mul(ops.exp(out), total))


def _of_rows(name: str, formula: Callable[..., Any]) -> tuple[Primitive, Callable[..., Any]]:
    """Make a function of rows that is linear in the second of two arrays, and one call of the module in eager code.

    Args:
      name: that of the loop.
      formula: ``formula(out, t, axes=axes)``, the function composed of other operations.

    Returns:
      The operation, which lacks its transpose, and the function.
    """
    p = Primitive(name, cost=Cost.SIMPLE)
    p.host_rule = partial(of_rows, name)
    p.decomposition(formula)
    p.abstract_eval(lambda out, t, *, axes: t)

    def function(out: Any, t: Any, *, axes: Positions) -> Any:
        is_now = state.trace.quick and is_here(out) and (is_here(t) or type(t) is LinearTracer)
        are_alike = is_now and out.aval.dtype == t.aval.dtype and out.shape == t.shape and not config.masked_zeros
        return (p.bind if are_alike and _are_rows(out, axes=axes) else formula)(out, t, axes=axes)

    @p.batch
    def batch(axis: Any, args: Any, dims: Any, *, axes: Positions) -> Any:
        args = [
            shapes.expand_dims(x, (0,)) if d is None else pnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)
        ]
        return formula(*args, axes=tuple([i + 1 for i in axes])), 0

    @p.jvp
    def rule(primals: Any, tangents: Any, *, axes: Positions) -> Any:
        tangents = [pnp.zeros_like(x) if t is ZERO else t for x, t in zip(primals, tangents, strict=True)]
        return jvp(partial(formula, axes=axes), tuple(primals), tuple(tangents))

    return p, function


def _transposes(p: Primitive, function: Callable[..., Any]) -> None:
    """Declare that ``function`` is the transpose of an operation of :func:`_of_rows`."""
    p.transpose(lambda ct, out, t, *, axes: (None, function(out, ct, axes=axes)), linear_in=(1,))


_softmax_slope_p, _softmax_tangent = _of_rows("softmax_slope", _softmax_slope)
_log_softmax_slope_p, _log_softmax_tangent = _of_rows("log_softmax_slope", _log_softmax_slope)
_log_softmax_pull_p, _log_softmax_cotangent = _of_rows("log_softmax_pull", _log_softmax_pull)
_transposes(_softmax_slope_p, _softmax_tangent)
_transposes(_log_softmax_slope_p, _log_softmax_cotangent)
_transposes(_log_softmax_pull_p, _log_softmax_tangent)

_logsumexp_slope = host_fused(
    "logsumexp_slope", host=_host_logsumexp_slope, otherwise=_logsumexp_slope_by_operations, large=LARGE,
    fused=_are_rows,
)  # fmt: skip
_logsumexp = host_fused(
    "logsumexp", host=_host_logsumexp, otherwise=_logsumexp_by_operations, large=LARGE, fused=_are_rows,
    jvp=lambda t, x, ans, axes: reductions.reduce_sum(ops.mul(t, _logsumexp_slope(x, axes=axes)), axes),
)  # fmt: skip
native.REDUCTIONS |= {_host_softmax: "softmax", _host_log_softmax: "log_softmax"}
_softmax = host_fused(
    "softmax", host=_host_softmax, otherwise=_softmax_by_operations, large=LARGE, fused=_are_rows,
    jvp=lambda t, x, ans, axes: _softmax_tangent(ans, t, axes=axes),
)  # fmt: skip
_log_softmax = host_fused(
    "log_softmax", host=_host_log_softmax, otherwise=_log_softmax_by_operations, large=LARGE, fused=_are_rows,
    jvp=lambda t, x, ans, axes: _log_softmax_tangent(ans, t, axes=axes),
)  # fmt: skip


def _is_usual(x: Any) -> bool:
    """Return whether ``x`` has the dtype float32 or float64, in which NumPy computes without widening."""
    return dtypes.is_float(x.dtype) and x.dtype.itemsize >= 4


def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Exponentials divided by their sum, so that they are positive and add up to 1.

    Args:
      x: an array of real numbers; integers are converted.
      axis: the axis to sum over, a tuple of axes, or None for all.
      where: booleans that broadcast to ``x``: which elements count. The others are 0 in the result.

    Returns:
      An array of the shape of ``x``.

    Raises:
      ShapeError: an axis does not exist, or the operands do not broadcast (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.softmax(jnp.array([1000.0, 1000.0])))
    [0.5 0.5]
    """
    x = strong(inexact_operand("softmax", x))
    axes = all_axes(axis, len(x.shape), "softmax")
    mask = None if where is None else _mask("softmax", where, x.shape)
    if mask is not None:
        x = ops.where(mask, x, -math.inf)
    out = (_softmax if _is_usual(x) else _softmax_by_operations)(x, axes=axes)
    return out if mask is None else ops.where(mask, out, 0)


def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of :func:`softmax`, without underflow.

    Args:
      x, axis, where: as in :func:`softmax`. The elements that do not count are -inf in the result.

    Returns:
      An array of floats, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: ``where`` does not broadcast to the shape of ``x`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.log_softmax(jnp.array([0.0, 1000.0])))
    [-1000.     0.]
    """
    x = strong(inexact_operand("log_softmax", x))
    axes = all_axes(axis, len(x.shape), "log_softmax")
    mask = None if where is None else _mask("log_softmax", where, x.shape)
    if mask is not None:
        x = ops.where(mask, x, -math.inf)
    out = (_log_softmax if _is_usual(x) else _log_softmax_by_operations)(x, axes=axes)
    return out if mask is None else ops.where(mask, out, -math.inf)


# Standardisation and one-hot encoding ------------------------------------------------------------------------------


def standardize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Normalize elements along some axes: ``(x - mean) / sqrt(variance + epsilon)``.

    Args:
      x: an array of real numbers; integers are converted.
      axis: the axes of the mean and the variance: an axis, a tuple of axes, or None for all.
      mean: the mean, if it is known, of a shape that broadcasts against ``x``.
      variance: the variance, if it is known, likewise.
      epsilon: a number to add to the variance, against divisions by zero.
      where: booleans that broadcast to ``x``: which elements count for mean and variance.
      algorithm: ``"fast"`` takes the mean square minus the square of the mean, ``"stable"`` the mean square of the
        differences from the mean, which is also right if the mean is large compared with the differences.

    Returns:
      An array of the shape of ``x``.

    Raises:
      ArgumentError: an unknown algorithm (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.standardize(jnp.array([1.0, 3.0]), epsilon=0))
    [-1.  1.]
    """
    if not is_listed(algorithm, ("fast", "stable")):
        raise ArgumentError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = strong(inexact_operand("standardize", x))
    dtype = x.dtype
    narrow = dtypes.is_float(dtype) and dtype.itemsize < 4
    wide = ops.convert_element_type(x, np.dtype(np.float32)) if narrow else x
    known_mean = mean
    if mean is None:
        mean = pnp.mean(wide, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = pnp.mean(pnp.square(wide - mean), axis, keepdims=True, where=where)
        else:
            spread = pnp.mean(ops.square(wide), axis, keepdims=True, where=where) - pnp.square(mean)
            variance = pnp.where(spread < 0, 0, spread)
    scale = ops.rsqrt_p.bind(inexact_operand("standardize", pnp.add(variance, epsilon)))
    out = pnp.multiply(pnp.subtract(wide, mean), scale)
    return ops.convert_element_type(out, dtype) if narrow and known_mean is None else out


@named
def one_hot(
    x: ArrayLike | Sequence[Any],
    num_classes: int,
    *,
    dtype: DTypeLike = None,
    axis: int = -1,
    out_sharding: OutSharding = None,
) -> Array:
    """Vectors of zeros with a one at each index; only zeros for an index out of range.

    Args:
      x: an array of indices.
      num_classes: the size of the vectors.
      dtype: the dtype of the result; by default the default float.
      axis: the axis of the result along which the vectors are.
      out_sharding: how the result is spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

    Returns:
      An array with one axis more than ``x``.

    Raises:
      ShapeError: the axis is out of range (a  ValueError).
      ArgumentError: ``num_classes`` is negative or not an integer (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> print(nn.one_hot(jnp.array([2, 0, 7]), 3))
    [[0. 0. 1.]
     [1. 0. 0.]
     [0. 0. 0.]]
    """
    count = _class_count(num_classes)
    indices = pnp.asarray(x)
    if not dtypes.is_inexact(indices.dtype) and indices.dtype.itemsize < 4:
        indices = ops.convert_element_type(indices, np.dtype(np.int32))
    position = axis_index(axis, len(indices.shape) + 1, "one_hot")
    shape = tuple(count if i == position else 1 for i in range(len(indices.shape) + 1))
    hit = ops.eq(shapes.expand_dims(indices, (position,)), slicing.iota(indices.dtype, shape, position))
    wanted = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "one_hot")
    return constrained(ops.convert_element_type(hit, wanted), out_sharding, "nn.one_hot")


def _class_count(num_classes: Any) -> int:
    try:
        count = operator.index(num_classes)
    except PullbackError:  # it is traced
        raise
    except TypeError:
        count = -1
    if count < 0:
        raise ArgumentError(
            f"one_hot: num_classes, the size of the vectors, must be a non-negative integer, got {num_classes!r}"
        )
    return count
