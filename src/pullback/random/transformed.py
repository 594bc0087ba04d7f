"""Random floats computed from uniform and normal numbers, differentiable in the parameters of their distributions."""

from __future__ import annotations

import math
from typing import Any

from pullback.backends.devices.shardings import OutSharding
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.types import Shape
from pullback.numpy.promotion import shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.random.bits import Words, subkeys
from pullback.primitives.reductions import norm
from pullback.random.arguments import DType, float_dtype, parameter, sample_shape
from pullback.random.continuous import exponential_of, normal_of_key, signs, unit
from pullback.random.keys import words_of
from pullback.transforms.programs.placement import constrained


def _valid(valid: Any, x: Any) -> Any:
    """Return ``x``, with NaN where ``valid`` is false."""
    return ops.where(valid, x, math.nan)


def lognormal(
    key: KeyArray,
    sigma: ArrayLike = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers whose logarithms are normally distributed, with mean 0.

    Args:
      key: a key.
      sigma: the standard deviation of the logarithms, which broadcasts to ``shape``.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.lognormal(random.key(0), 0.5, (2,)).round(3))
    [0.675 1.535]
    """
    words, found = words_of("lognormal", key), float_dtype("lognormal", dtype)
    sigma = parameter("lognormal", "sigma", sigma, found)
    size = sample_shape("lognormal", shape, sigma=sigma.shape)
    return constrained(ops.exp(ops.mul(normal_of_key(words, size, found), sigma)), out_sharding, "random.lognormal")


def maxwell(
    key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the Maxwell distribution: lengths of vectors of three standard normal numbers.

    Args:
      key: a key.
      shape: the shape of the result; () by default.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: ``shape`` is not a shape.

    >>> from pullback import random
    >>> print(random.maxwell(random.key(0), (2,)).round(3))
    [1.451 1.278]
    """
    words, found = words_of("maxwell", key), float_dtype("maxwell", dtype)
    return constrained(_maxwell(words, shape_tuple(shape, "maxwell"), found), out_sharding, "random.maxwell")


def _maxwell(words: Words, shape: Shape, dtype: DType) -> Any:
    return norm(normal_of_key(words, (*shape, 3), dtype), (len(shape),))


def double_sided_maxwell(
    key: KeyArray, loc: ArrayLike, scale: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = None
) -> Array:
    """Numbers of the Maxwell distribution with random signs, scaled and moved.

    Args:
      key: a key.
      loc, scale: the centre and the scale, which broadcast to a shape ``S``.
      shape: the axes of the result in front of ``S``, as in JAX; () stands for ``S``.
      dtype: a floating-point dtype; the default one if it is None.

    Returns:
      An array of ``shape + S`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not broadcast against each other.

    >>> from pullback import random
    >>> print(random.double_sided_maxwell(random.key(0), 1.0, 2.0, (2,)).round(3))
    [-0.836  4.41 ]
    """
    words, found = words_of("double_sided_maxwell", key), float_dtype("double_sided_maxwell", dtype)
    loc = parameter("double_sided_maxwell", "loc", loc, found)
    scale = parameter("double_sided_maxwell", "scale", scale, found)
    own = sample_shape("double_sided_maxwell", None, loc=loc.shape, scale=scale.shape)
    size = (*(shape_tuple(shape, "double_sided_maxwell") or own), *own)
    for_size, for_sign = subkeys(words, 2)
    out = ops.mul(signs(for_sign, size, found), _maxwell(for_size, size, found))
    return ops.add(ops.mul(out, scale), loc)


def pareto(
    key: KeyArray,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Pareto distribution, at least 1.

    Args:
      key: a key.
      b: the shape parameter, which broadcasts to ``shape``; the result is nan where it is not positive.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.pareto(random.key(0), 3.0, (2,)).round(3))
    [1.085 1.722]
    """
    words, found = words_of("pareto", key), float_dtype("pareto", dtype)
    b = parameter("pareto", "b", b, found)
    size = sample_shape("pareto", shape, b=b.shape)
    out = ops.exp(ops.div(exponential_of(words, size, found), b))
    return constrained(_valid(ops.gt(b, 0), out), out_sharding, "random.pareto")


def rayleigh(
    key: KeyArray,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Rayleigh distribution.

    Args:
      key: a key.
      scale: the scale, which broadcasts to ``shape``; the result is nan where it is negative.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.rayleigh(random.key(0), 2.0, (2,)).round(3))
    [3.5   1.321]
    """
    words, found = words_of("rayleigh", key), float_dtype("rayleigh", dtype)
    scale = parameter("rayleigh", "scale", scale, found)
    size = sample_shape("rayleigh", shape, scale=scale.shape)
    out = ops.mul(scale, ops.sqrt(ops.mul(ops.log(unit(words, size, found)), -2)))
    return constrained(_valid(ops.ge_p.bind(scale, 0), out), out_sharding, "random.rayleigh")


def triangular(
    key: KeyArray,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the triangular distribution.

    Args:
      key: a key.
      left, mode, right: where the density begins, is greatest, and ends; arrays that broadcast to ``shape``. The
        result is nan where they are not in order.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.triangular(random.key(0), 0.0, 1.0, 3.0, (2,)).round(3))
    [0.806 1.916]
    """
    words, found = words_of("triangular", key), float_dtype("triangular", dtype)
    left = parameter("triangular", "left", left, found)
    mode = parameter("triangular", "mode", mode, found)
    right = parameter("triangular", "right", right, found)
    size = sample_shape("triangular", shape, left=left.shape, mode=mode.shape, right=right.shape)
    u, width = unit(words, size, found), ops.sub(right, left)
    rises = ops.lt(u, ops.div(ops.sub(mode, left), width))
    up = ops.where(rises, ops.mul(ops.mul(u, width), ops.sub(mode, left)), 1)  # the square root has no derivative at 0
    rest = ops.mul(ops.sub(1, u), width)
    down = ops.where(rises, 1, ops.mul(rest, ops.sub(right, mode)))
    out = ops.where(rises, ops.add(left, ops.sqrt(up)), ops.sub(right, ops.sqrt(down)))
    ordered = ops.and_p.bind(ops.le_p.bind(left, mode), ops.le_p.bind(mode, right))
    return constrained(_valid(ordered, out), out_sharding, "random.triangular")


def wald(
    key: KeyArray,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Wald (inverse Gaussian) distribution of scale 1.

    One of the two roots of a quadratic equation (Michael, Schucany and Haas, *Generating random variates using
    transformations with multiple roots*, 1976); derivatives treat the choice of the root as constant.

    Args:
      key: a key.
      mean: the mean, which broadcasts to ``shape``; the result is nan where it is negative.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.wald(random.key(0), 2.0, (2,)).round(3))
    [2.145 0.76 ]
    """
    words, found = words_of("wald", key), float_dtype("wald", dtype)
    mean = parameter("wald", "mean", mean, found)
    size = sample_shape("wald", shape, mean=mean.shape)
    for_normal, for_root = subkeys(words, 2)
    mean = shapes.broadcast_to(mean, size)
    y = ops.square(normal_of_key(for_normal, size, found))
    square = ops.square(mean)
    root = ops.sqrt(4 * mean * y + square * ops.square(y))
    x = mean + square * y / 2 - mean / 2 * root
    smaller = ops.le_p.bind(unit(for_root, size, found), ops.div(mean, ops.add(mean, x)))
    out = ops.where(smaller, x, ops.div(square, x))
    return constrained(_valid(ops.ge_p.bind(mean, 0), out), out_sharding, "random.wald")


def weibull_min(
    key: KeyArray, scale: ArrayLike, concentration: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = None
) -> Array:
    """Numbers of the Weibull distribution.

    Args:
      key: a key.
      scale, concentration: the parameters, which broadcast against samples of ``shape``. The result is nan where the
        scale is negative or the concentration not positive.
      shape: the shape of the result; () by default.
      dtype: a floating-point dtype; the default one if it is None.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters and ``shape`` do not broadcast against each other.

    >>> from pullback import random
    >>> print(random.weibull_min(random.key(0), 2.0, 3.0, (2,)).round(3))
    [1.249 2.354]
    """
    words, found = words_of("weibull_min", key), float_dtype("weibull_min", dtype)
    scale = parameter("weibull_min", "scale", scale, found)
    concentration = parameter("weibull_min", "concentration", concentration, found)
    drawn = exponential_of(words, shape_tuple(shape, "weibull_min"), found)
    sample_shape("weibull_min", None, drawn=drawn.shape, scale=scale.shape, concentration=concentration.shape)
    exponent = ops.div(1, concentration)
    out = ops.mul(ops.pow_p.bind(drawn, exponent), scale)
    return _valid(ops.and_p.bind(ops.ge_p.bind(scale, 0), ops.gt(concentration, 0)), out)
