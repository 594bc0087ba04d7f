"""Random floats: uniform numbers, and samples computed from uniform numbers.

The other distributions apply quantile functions to uniform numbers (Devroye, *Non-Uniform Random Variate Generation*,
1986, chapter II.2), so that samples are differentiable in the parameters of their distributions.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.arguments import is_listed
from pullback.core.array import SCALARS, Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError
from pullback.core.types import Shape
from pullback.numpy.promotion import shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.primitives.arrays.shapes import squeeze
from pullback.primitives.random.bits import Words, above, fraction_bits, normal_of, random_bits, subkeys, unit_of
from pullback.random.arguments import DType, float_dtype, parameter, sample_shape
from pullback.random.keys import words_of
from pullback.transforms.programs.placement import constrained

# Uniform numbers ---------------------------------------------------------------------------------------------------


def bits(key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None) -> Array:
    """Random bits, as unsigned integers.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: an unsigned integer dtype, whose width is the number of bits; uint32 (or uint64) by default.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``; all values are equally likely.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not an unsigned integer dtype.
      ShapeError: ``shape`` is not a shape.

    >>> from pullback import random
    >>> random.bits(random.key(0), (2,), "uint8")
    Array([89,  1], dtype=uint8)
    """
    words = words_of("bits", key)
    found = dtypes.canonicalize_dtype("uint64") if dtype is None else dtypes.requested_dtype(dtype, "random.bits")
    if found.kind != "u":
        raise ArgumentError(
            f"bits returns unsigned integers: its dtype must be unsigned, got {dtypes.short_name(found)}"
        )
    return constrained(random_bits(words, found.itemsize * 8, shape_tuple(shape, "bits")), out_sharding, "random.bits")


def uniform(
    key: KeyArray,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Uniformly distributed numbers.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a floating-point dtype.
      minval, maxval: the bounds, arrays that broadcast to ``shape``; the upper one is excluded. The result is
        differentiable in them.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      ShapeError: the bounds do not fit the shape.

    >>> from pullback import random
    >>> random.uniform(random.key(0), (2,))
    Array([0.21629536, 0.8041241 ], dtype=float32)
    """
    words = words_of("uniform", key)
    found = float_dtype("uniform", dtype)
    size = shape_tuple(shape, "uniform")
    if type(minval) in SCALARS and type(maxval) in SCALARS and minval == 0 and maxval == 1:
        return constrained(unit(words, size, found), out_sharding, "random.uniform")
    low, high = parameter("uniform", "minval", minval, found), parameter("uniform", "maxval", maxval, found)
    if low.shape or high.shape:
        sample_shape("uniform", size, minval=low.shape, maxval=high.shape)
    return constrained(_between(unit(words, size, found), low, high), out_sharding, "random.uniform")


def unit(words: Words, shape: Shape, dtype: DType) -> Any:
    """Draw uniform numbers in [0, 1)."""
    return unit_of(random_bits(words, fraction_bits(dtype), shape), dtype)


def _between(u: Any, low: Any, high: Any) -> Any:
    """Map uniform numbers ``u`` in [0, 1) to [low, high); return ``low`` where ``high < low``."""
    width = ops.sub(high, low)
    return ops.max_p.bind(low, ops.add(ops.mul(u, width), low))


def _above(words: Words, shape: Shape, dtype: DType, low: float) -> Any:
    """Draw uniform numbers from ``low`` to 1, by the key ``words``."""
    return above(unit(words, shape, dtype), dtype, low)


# Normal numbers ----------------------------------------------------------------------------------------------------


def normal(key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None) -> Array:
    """Numbers of the standard normal distribution.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a floating-point or complex dtype; complex numbers have variance 1, and their real and
        imaginary parts variance 1/2.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not inexact.
      ShapeError: ``shape`` is not a shape.

    >>> from pullback import random
    >>> print(random.normal(random.key(0), (2,)).round(3))
    [-0.785  0.856]
    """
    words = words_of("normal", key)
    size = shape_tuple(shape, "normal")
    found = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "random.normal")
    if dtypes.is_complex(found):
        real, imag = (normal_of_key(k, size, dtypes.to_real(found)) for k in subkeys(words, 2))
        return constrained(ops.mul(ops.complex(real, imag), math.sqrt(0.5)), out_sharding, "random.normal")
    if not dtypes.is_float(found):
        raise ArgumentError(
            f"normal returns floats or complex numbers: its dtype must be inexact, got {dtypes.short_name(found)}"
        )
    return constrained(normal_of_key(words, size, found), out_sharding, "random.normal")


def normal_of_key(words: Words, shape: Shape, dtype: DType) -> Any:
    return normal_of(unit(words, shape, dtype))


def truncated_normal(
    key: KeyArray,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the standard normal distribution, truncated to an interval.

    Args:
      key: a key.
      lower, upper: the bounds, arrays that broadcast to ``shape``; both are excluded. The result is differentiable
        in them.
      shape: the shape of the result; by default the broadcast shape of the bounds.
      dtype: a floating-point dtype.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      ShapeError: the bounds do not fit the shape.

    >>> from pullback import random
    >>> print(random.truncated_normal(random.key(0), 1.0, 2.0, (2,)).round(3))
    [1.13  1.651]
    """
    words = words_of("truncated_normal", key)
    found = float_dtype("truncated_normal", dtype)
    low = parameter("truncated_normal", "lower", lower, found)
    high = parameter("truncated_normal", "upper", upper, found)
    size = sample_shape("truncated_normal", shape, lower=low.shape, upper=high.shape)
    root = math.sqrt(2)
    ends = [ops.erf_p.bind(ops.div(x, root)) for x in (low, high)]
    out = ops.mul(root, ops.erf_inv_p.bind(_between(unit(words, size, found), *ends)))
    inside = ops.max_p.bind(out, ops.nextafter_p.bind(low, math.inf))
    return constrained(
        ops.min_p.bind(inside, ops.nextafter_p.bind(high, -math.inf)), out_sharding, "random.truncated_normal"
    )


# Other distributions -----------------------------------------------------------------------------------------------


def exponential(
    key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the exponential distribution of mean 1.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a floating-point dtype.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.

    >>> from pullback import random
    >>> print(random.exponential(random.key(0), (2,)).round(3))
    [0.244 1.63 ]
    """
    words, found = words_of("exponential", key), float_dtype("exponential", dtype)
    return constrained(
        exponential_of(words, shape_tuple(shape, "exponential"), found), out_sharding, "random.exponential"
    )


def exponential_of(words: Words, shape: Shape, dtype: DType) -> Any:
    return ops.neg(ops.log1p_p.bind(ops.neg(unit(words, shape, dtype))))


def gumbel(
    key: KeyArray,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the standard Gumbel distribution.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a floating-point dtype.
      mode: ``"high"`` draws twice the bits, for a more precise upper tail; ``"low"`` is the default.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, ``dtype`` is not a floating-point dtype, or the mode
        is unknown.

    >>> from pullback import random
    >>> print(random.gumbel(random.key(0), (2,)).round(3))
    [-0.426  1.523]
    """
    words = words_of("gumbel", key)
    found, size = float_dtype("gumbel", dtype), shape_tuple(shape, "gumbel")
    return constrained(gumbel_of(words, size, found, mode), out_sharding, "random.gumbel")


def gumbel_of(words: Words, shape: Shape, dtype: DType, mode: str | None) -> Any:
    info = dtypes.finfo(dtype)
    tiny = float(info.tiny)
    if is_listed(mode, (None, "low")):
        exponential = ops.neg(ops.log(_above(words, shape, dtype, tiny)))
    elif is_listed(mode, ("high",)):
        coarse, fine = pair(unit(words, (2, *shape), dtype))
        refined = coarse + fine * 2.0**-info.nmant + tiny
        upper = ops.where(ops.ge_p.bind(coarse, 0.5), coarse, refined)
        exponential = ops.neg(ops.log1p_p.bind(ops.neg(upper)))
    else:
        raise ArgumentError(f"gumbel: mode must be 'low' or 'high', got {mode!r}")
    return ops.neg(ops.log(exponential))


def pair(x: Any) -> list[Any]:
    """Return the two slices along the first axis, which has size 2."""
    return [squeeze(slicing.slice_in_dim(x, i, i + 1, 0), (0,)) for i in range(2)]


def laplace(
    key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the Laplace distribution of mean 0 and scale 1.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a floating-point dtype.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.

    >>> from pullback import random
    >>> print(random.laplace(random.key(0), (2,)).round(3))
    [ 0.838 -0.937]
    """
    words = words_of("laplace", key)
    found = float_dtype("laplace", dtype)
    low = -1.0 + float(dtypes.finfo(found).epsneg)
    u = _above(words, shape_tuple(shape, "laplace"), found, low)
    return constrained(ops.mul(ops.sign(u), ops.log1p_p.bind(ops.neg(ops.abs(u)))), out_sharding, "random.laplace")


def logistic(
    key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the standard logistic distribution.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a floating-point dtype.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.

    >>> from pullback import random
    >>> print(random.logistic(random.key(0), (2,)).round(3))
    [-1.287  1.412]
    """
    words = words_of("logistic", key)
    found = float_dtype("logistic", dtype)
    u = _above(words, shape_tuple(shape, "logistic"), found, float(dtypes.finfo(found).tiny))
    return constrained(ops.sub(ops.log(u), ops.log1p_p.bind(ops.neg(u))), out_sharding, "random.logistic")


def cauchy(key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None) -> Array:
    """Numbers of the standard Cauchy distribution.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a floating-point dtype.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.

    >>> from pullback import random
    >>> print(random.cauchy(random.key(0), (2,)).round(3))
    [-1.238  1.415]
    """
    words = words_of("cauchy", key)
    found = float_dtype("cauchy", dtype)
    u = _above(words, shape_tuple(shape, "cauchy"), found, float(dtypes.finfo(found).eps))
    return constrained(ops.tan_p.bind(ops.mul(math.pi, ops.sub(u, 0.5))), out_sharding, "random.cauchy")


def signs(words: Words, shape: Shape, dtype: DType) -> Any:
    """Draw signs: -1 and 1 with equal probability."""
    return ops.sub(ops.mul(ops.convert_element_type(ops.lt(unit(words, shape, dtype), 0.5), dtype), 2), 1)
