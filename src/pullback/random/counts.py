"""Random counts: the Poisson, binomial, multinomial and geometric distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray, scalar_array
from pullback.core.errors import ShapeError
from pullback.core.types import Shape
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.random.bits import Words, key_from, random_split
from pullback.primitives.random.rejection import random_binomial, random_poisson
from pullback.primitives.reductions import cumsum
from pullback.random.arguments import check_method, float_dtype, integer_dtype, parameter, sample_shape
from pullback.random.continuous import unit
from pullback.random.keys import generator_of, scalar_words, words_of
from pullback.transforms.programs.placement import constrained

_single = np.dtype(np.float32)


def _counted(x: Any, valid: Any, dtype: Any) -> Any:
    """Convert counts ``x`` to the integer ``dtype``; where ``valid`` is false return -1 instead.

    For an unsigned dtype it is the greatest integer instead of -1.
    """
    invalid = scalar_array(np.array(-1).astype(dtype)[()])
    return ops.where(valid, ops.convert_element_type(ops.where(valid, x, 0), dtype), invalid)


def poisson(
    key: KeyArray,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Poisson distribution.

    Method: products of uniform numbers for means below 10 (Knuth), transformed rejection above (Hörmann, *The
    transformed rejection method for generating Poisson random variables*, 1993).

    Args:
      key: a key.
      lam: the mean, which broadcasts to ``shape`` and becomes float32; the result is -1 where it is negative,
        infinite or nan.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: an integer dtype; the default one if it is None.
      method: ``"exact"``, or ``"approximate"``, which draws the same numbers.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not an integer dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.poisson(random.key(0), 3.0, (4,)))
    [2 2 3 4]
    """
    check_method("poisson", method)
    words, found = words_of("poisson", key), integer_dtype("poisson", dtype)
    lam = parameter("poisson", "lam", lam, _single)
    size = sample_shape("poisson", shape, lam=lam.shape)
    drawn = random_poisson(scalar_words(words), shapes.broadcast_to(lam, size), generator_of(words))
    return constrained(_counted(drawn, ops.ge_p.bind(drawn, 0), found), out_sharding, "random.poisson")


def binomial(
    key: KeyArray, n: ArrayLike, p: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Numbers of the binomial distribution, as floats.

    Method: sums of geometric numbers for means up to 10 (Devroye, *Non-Uniform Random Variate Generation*, 1986,
    X.4.3), transformed rejection above (Hörmann, *The generation of binomial random variates*, 1993).

    Args:
      key: a key.
      n: the number of trials, rounded down; it broadcasts to ``shape``.
      p: the probability of success, which broadcasts to ``shape`` too. The result is nan where ``n`` is negative or
        ``p`` is not between 0 and 1.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; the default one if it is None.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.binomial(random.key(0), 20, 0.3, (4,)))
    [10.  4.  4.  9.]
    """
    words, found = words_of("binomial", key), float_dtype("binomial", dtype)
    n, p = parameter("binomial", "n", n, found), parameter("binomial", "p", p, found)
    size = sample_shape("binomial", shape, n=n.shape, p=p.shape)
    return _binomial(words, n, p, size)


def _binomial(words: Words, n: Any, p: Any, shape: Shape) -> Any:
    n, p = (shapes.broadcast_to(x, shape) for x in (n, p))
    return random_binomial(scalar_words(words), n, p, generator_of(words))


def multinomial(
    key: KeyArray, n: ArrayLike, p: ArrayLike, *, shape: ShapeLike | None = None, dtype: DTypeLike = None,
    unroll: int | bool = 1,
) -> Array:  # fmt: skip
    """Numbers of the multinomial distribution: how often each outcome occurs in a number of trials, as floats.

    Each count is a binomial number of the remaining trials.

    Args:
      key: a key.
      n: the number of trials; it broadcasts to ``shape`` without its last axis.
      p: the probabilities along the last axis, up to a factor; the other axes broadcast to those of ``shape``.
        Results are nan where one is negative, or nan.
      unroll: how many counts are drawn in one step of the loop, as for ``lax.scan``.
      shape: the shape of the result, which ends with the number of probabilities; by default the broadcast shape of
        the parameters.
      dtype: a floating-point or integer dtype; the default one if it is None.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not a floating-point or integer dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> print(random.multinomial(random.key(0), 20, jnp.array([0.2, 0.3, 0.5])))
    [ 4.  4. 12.]
    """
    words = words_of("multinomial", key)
    wanted = float_dtype("multinomial", None) if dtype is None else dtypes.requested_dtype(dtype, "random.multinomial")
    found = wanted if dtypes.is_float(wanted) else dtypes.default_float()
    n, p = parameter("multinomial", "n", n, found), parameter("multinomial", "p", p, found)
    if not p.shape:
        raise ShapeError("multinomial: p must have an axis of probabilities, got a scalar")
    size = (*sample_shape("multinomial", None, n=n.shape, p=p.shape[:-1]), p.shape[-1])
    if shape is not None:
        size = sample_shape("multinomial", shape, parameters=size)
        if size[-1] != p.shape[-1]:
            raise ShapeError(f"multinomial: shape {size} must end with the number of probabilities, {p.shape[-1]}")
    if 0 in size:
        return shapes.full(size, 0, wanted)
    last, batch = len(size) - 1, size[:-1]
    p = shapes.broadcast_to(p, size)
    rest = cumsum(p, last, reverse=True)
    shares = shapes.moveaxis(ops.div(p, ops.where(ops.eq(rest, 0), 1, rest)), last, 0)

    def draw(left: Any, each: Any) -> Any:
        subkey, share = each
        count = _binomial(key_from(words, subkey), left, share, batch)
        return ops.sub(left, count), count

    each = random_split(words, (size[-1],)), shares
    _, counts = scan(draw, shapes.broadcast_to(n, batch), each, unroll=unroll)
    return ops.convert_element_type(shapes.moveaxis(counts, 0, last), wanted)


def geometric(
    key: KeyArray,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the geometric distribution: the number of trials up to the first success, at least 1.

    Args:
      key: a key.
      p: the probability of success, which broadcasts to ``shape``. The result is -1 where it is not between
        0 and 1, and the greatest integer where it is 0.
      shape: the shape of the result; by default the broadcast shape of the parameters.
      dtype: an integer dtype; the default one if it is None.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not an integer dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the parameters do not fit the shape.

    >>> from pullback import random
    >>> print(random.geometric(random.key(0), 0.3, (4,)))
    [1 5 2 4]
    """
    words, found = words_of("geometric", key), integer_dtype("geometric", dtype)
    p = parameter("geometric", "p", p, dtypes.default_float())
    size = sample_shape("geometric", shape, p=p.shape)
    u = unit(words, size, p.dtype)
    trials = ops.div(ops.log(ops.where(ops.eq(u, 0), 1, u)), ops.log1p_p.bind(ops.neg(p)))
    drawn = ops.add(ops.floor_p.bind(trials), 1)
    most = ops.convert_element_type(ops.where(ops.eq(p, 0), math.inf, drawn), found)
    valid = ops.and_p.bind(ops.ge_p.bind(p, 0), ops.le_p.bind(p, 1))
    return constrained(_counted(most, valid, found), out_sharding, "random.geometric")
