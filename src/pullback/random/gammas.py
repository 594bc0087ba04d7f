"""The gamma distribution, and distributions computed from gamma samples.

Samples are differentiable in the parameters: the derivative keeps the distribution function at the sample fixed
(Figurnov, Mohamed and Mnih, *Implicit reparameterization gradients*, NeurIPS 2018).
"""

from __future__ import annotations

import math
from typing import Any

from pullback.backends.devices.shardings import OutSharding
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.types import Shape
from pullback.numpy.promotion import shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.random.bits import Words, lane_keys, subkeys
from pullback.primitives.random.rejection import random_gamma
from pullback.primitives.reductions import reduce_max
from pullback.primitives.sums import reduce_sum
from pullback.random.arguments import check_method, float_dtype, parameter, sample_shape, size_of
from pullback.random.continuous import exponential_of, normal_of_key, signs, unit
from pullback.random.keys import generator_of, words_of
from pullback.transforms.programs.placement import constrained


def gamma_of(words: Words, a: Any, shape: Shape, log_space: bool) -> Any:
    """Draw gamma samples of shape parameter ``a`` by the key ``words``; if ``log_space``, return their logarithms."""
    if 0 in shape:
        return shapes.full(shape, 0, a.dtype)
    return random_gamma(lane_keys(words, shape), shapes.broadcast_to(a, shape), log_space, generator_of(words))


def _chisquare(words: Words, df: Any, shape: Shape) -> Any:
    return ops.mul(ops.exp(gamma_of(words, ops.div(df, 2), shape, True)), 2)


def gamma(
    key: KeyArray,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the gamma distribution of scale 1.

    Method: rejection (Marsaglia and Tsang, *A simple method for generating gamma variables*, 2000). Where ``a`` is so
    small that samples underflow, use :func:`loggamma`.

    Args:
      key: a key.
      a: the shape parameter, which broadcasts to ``shape``; the result is nan where it is negative or nan, and 0
        where it is 0.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      method: ``"exact"``, or ``"approximate"``, which draws the same numbers.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.gamma(random.key(0), 2.0, (2,)).round(3))
    [2.544 2.419]
    """
    check_method("gamma", method)
    words, found = words_of("gamma", key), float_dtype("gamma", dtype)
    a = parameter("gamma", "a", a, found)
    size = sample_shape("gamma", shape, a=a.shape)
    return constrained(gamma_of(words, a, size, False), out_sharding, "random.gamma")


def loggamma(
    key: KeyArray,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Logarithms of numbers of the gamma distribution of scale 1, which do not underflow.

    Args:
      key: a key.
      a: the shape parameter, as for :func:`gamma`; the result is -inf where it is 0.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      method: ``"exact"``, or ``"approximate"``, which draws the same numbers.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.loggamma(random.key(0), 0.01, (2,)).round(3))
    [ -32.424 -229.235]
    """
    check_method("loggamma", method)
    words, found = words_of("loggamma", key), float_dtype("loggamma", dtype)
    a = parameter("loggamma", "a", a, found)
    size = sample_shape("loggamma", shape, a=a.shape)
    return constrained(gamma_of(words, a, size, True), out_sharding, "random.loggamma")


def beta(
    key: KeyArray,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the beta distribution, from 0 to 1.

    Args:
      key: a key.
      a, b: the parameters, which broadcast to ``shape``; the result is nan where one is negative or both are 0.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      method: ``"exact"``, or ``"approximate"``, which draws the same numbers.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.beta(random.key(0), 2.0, 3.0, (2,)).round(3))
    [0.162 0.792]
    """
    check_method("beta", method)
    words, found = words_of("beta", key), float_dtype("beta", dtype)
    a = parameter("beta", "a", a, found)
    b = parameter("beta", "b", b, found)
    size = sample_shape("beta", shape, a=a.shape, b=b.shape)
    return constrained(beta_of(words, a, b, size), out_sharding, "random.beta")


def beta_of(words: Words, a: Any, b: Any, shape: Shape) -> Any:
    """Draw beta samples by the key ``words``."""
    first, second = (gamma_of(k, x, shape, True) for k, x in zip(subkeys(words, 2), (a, b), strict=True))
    largest = ops.stop_gradient_p.bind(ops.max_p.bind(first, second))
    first, second = (ops.exp(ops.sub(x, largest)) for x in (first, second))
    return ops.div(first, ops.add(first, second))


def chisquare(
    key: KeyArray,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the chi-squared distribution.

    Args:
      key: a key.
      df: the degrees of freedom, which broadcast to ``shape``; the result is nan where they are negative.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.
      method: ``"exact"``, or ``"approximate"``, which draws the same numbers.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.chisquare(random.key(0), 3.0, (2,)).round(3))
    [3.842 3.624]
    """
    check_method("chisquare", method)
    words, found = words_of("chisquare", key), float_dtype("chisquare", dtype)
    df = parameter("chisquare", "df", df, found)
    size = sample_shape("chisquare", shape, df=df.shape)
    return constrained(_chisquare(words, df, size), out_sharding, "random.chisquare")


def f(
    key: KeyArray,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the F distribution.

    Args:
      key: a key.
      dfnum, dfden: the degrees of freedom of the numerator and the denominator, which broadcast to ``shape``; the
        result is nan where they are not positive.
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
    >>> print(random.f(random.key(0), 3.0, 5.0, (2,)).round(3))
    [3.982 0.064]
    """
    words, found = words_of("f", key), float_dtype("f", dtype)
    dfnum = parameter("f", "dfnum", dfnum, found)
    dfden = parameter("f", "dfden", dfden, found)
    size = sample_shape("f", shape, dfnum=dfnum.shape, dfden=dfden.shape)
    below, above = subkeys(words, 2)
    numerator = ops.div(_chisquare(above, dfnum, size), dfnum)
    return constrained(ops.div(numerator, ops.div(_chisquare(below, dfden, size), dfden)), out_sharding, "random.f")


def t(
    key: KeyArray,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of Student's t distribution.

    Args:
      key: a key.
      df: the degrees of freedom, which broadcast to ``shape``; the result is nan where they are not positive.
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
    >>> print(random.t(random.key(0), 3.0, (2,)).round(3))
    [-0.031 -2.333]
    """
    words, found = words_of("t", key), float_dtype("t", dtype)
    df = parameter("t", "df", df, found)
    size = sample_shape("t", shape, df=df.shape)
    for_normal, for_gamma = subkeys(words, 2)
    half = ops.div(df, 2)
    spread = ops.sqrt(ops.div(half, gamma_of(for_gamma, half, size, False)))
    return constrained(ops.mul(normal_of_key(for_normal, size, found), spread), out_sharding, "random.t")


def dirichlet(
    key: KeyArray,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Points of the Dirichlet distribution: non-negative numbers whose sum is 1.

    Args:
      key: a key.
      alpha: the concentrations along the last axis; the others broadcast to ``shape``. The result is nan where one is
        negative.
      shape: the shape of the result without its last axis, the concentrations; by default
        ``alpha.shape[:-1]``.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape + alpha.shape[-1:]`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: ``alpha`` has no axis, or does not fit the shape.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> print(random.dirichlet(random.key(0), jnp.array([1.0, 2.0, 3.0])).round(3))
    [0.05  0.394 0.557]
    """
    words, found = words_of("dirichlet", key), float_dtype("dirichlet", dtype)
    alpha = parameter("dirichlet", "alpha", alpha, found)
    if not alpha.shape:
        raise ShapeError("dirichlet: alpha must have an axis of concentrations, got a scalar")
    size = (*sample_shape("dirichlet", shape, alpha=alpha.shape[:-1]), alpha.shape[-1])
    if 0 in size:
        return constrained(shapes.full(size, 0, found), out_sharding, "random.dirichlet")
    logs, last = gamma_of(words, alpha, size, True), (len(size) - 1,)
    largest = ops.stop_gradient_p.bind(shapes.expand_dims(reduce_max(logs, last), last))
    scaled = ops.exp(ops.sub(logs, largest))
    return constrained(
        ops.div(scaled, shapes.expand_dims(reduce_sum(scaled, last), last)), out_sharding, "random.dirichlet"
    )


def generalized_normal(
    key: KeyArray, p: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the generalized normal distribution, of density proportional to ``exp(-abs(x) ** p)``.

    Args:
      key: a key.
      p: the exponent, which broadcasts to ``shape``; the result is nan where it is negative.
      shape: the shape of the result; () by default.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.generalized_normal(random.key(0), 3.0, (2,)).round(3))
    [-0.273  0.722]
    """
    words, found = words_of("generalized_normal", key), float_dtype("generalized_normal", dtype)
    exponent = parameter("generalized_normal", "p", p, found)
    size = shape_tuple(shape, "generalized_normal")
    sample_shape("generalized_normal", size, p=exponent.shape)
    return constrained(_generalized_normal(words, exponent, size), out_sharding, "random.generalized_normal")


def _generalized_normal(words: Words, p: Any, shape: Shape) -> Any:
    for_size, for_sign = subkeys(words, 2)
    size = gamma_of(for_size, ops.div(1, p), shape, False)
    sign, root = signs(for_sign, shape, p.dtype), ops.div(1, p)
    return ops.mul(sign, ops.pow_p.bind(size, root))


def ball(
    key: KeyArray,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Points that are uniformly distributed in the unit ball of the p-norm.

    Method: scaled points of the generalized normal distribution (Barthe, Guédon, Mendelson and Naor, *A
    probabilistic approach to the geometry of the l_p^n-ball*, 2005).

    Args:
      key: a key.
      d: the dimension of the ball, an integer that is not negative.
      p: the exponent of the norm, a positive number; infinity stands for the cube.
      shape: the shape of the result; () by default. The axis of coordinates follows it.
      dtype: a floating-point dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape + (d,)`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: ``shape`` is not a shape.

    >>> from pullback import random
    >>> print(random.ball(random.key(0), 2).round(3))
    [-0.619  0.083]
    """
    words, found = words_of("ball", key), float_dtype("ball", dtype)
    count = size_of("ball", "d", d)
    exponent = parameter("ball", "p", p, found)
    if exponent.shape:
        raise ArgumentError(f"ball: p must be a scalar, got an array of shape {exponent.shape}")
    size = shape_tuple(shape, "ball")
    if isinstance(p, (int, float)) and p == math.inf:
        out = ops.sub(ops.mul(unit(words, (*size, count), found), 2), 1)
    else:
        inside, outside = subkeys(words, 2)
        point = _generalized_normal(inside, exponent, (*size, count))
        powers = reduce_sum(ops.pow_p.bind(ops.abs(point), exponent), (len(size),))
        norm = ops.pow_p.bind(ops.add(powers, exponential_of(outside, size, found)), ops.div(1, exponent))
        out = ops.div(point, shapes.expand_dims(norm, (len(size),)))
    return constrained(out, out_sharding, "random.ball")
