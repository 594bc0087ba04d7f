"""Random integers, choices and orders."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.arguments import flag, is_listed
from pullback.core.array import SCALARS, Array, ArrayLike, KeyArray, scalar_array
from pullback.core.errors import ArgumentError, DtypeError, IntegerRangeError, ShapeError
from pullback.core.types import Shape
from pullback.numpy.promotion import axis_index, inexact_operand, operand, shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing, sorting
from pullback.primitives.random.bits import Words, random_bits, subkeys
from pullback.primitives.reductions import argmax, cumsum
from pullback.random.arguments import DType, integer_dtype, sample_shape
from pullback.random.continuous import gumbel_of, pair, unit
from pullback.random.keys import words_of
from pullback.transforms.programs.placement import constrained

# Integers ----------------------------------------------------------------------------------------------------------


def randint(
    key: KeyArray,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random integers.

    Each is the remainder of a random number of twice as many bits (at least 64), so that all integers within the
    bounds are almost equally likely.

    Args:
      key: a key.
      shape: the shape of the result.
      minval, maxval: the bounds, integers or arrays of them that broadcast to ``shape``; the upper one is excluded.
        Where it is not above the lower one, the lower one is the result.
      dtype: an integer dtype; int32 (or int64) by default.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or ``dtype`` is not an integer dtype.
      DtypeError: the bounds are not real numbers.
      IntegerRangeError: a bound is an integer that no default integer and no value of ``dtype`` is (an OverflowError).
      ShapeError: the bounds do not broadcast to the shape.

    >>> from pullback import random
    >>> random.randint(random.key(0), (4,), 0, 10)
    Array([8, 1, 7, 0], dtype=int32)
    """
    words = words_of("randint", key)
    found = integer_dtype("randint", dtype)
    size = shape_tuple(shape, "randint")
    bits, least, most = _limits(found)
    if bits not in (8, 16, 32, 64):
        raise ArgumentError(f"randint returns integers of 8, 16, 32 or 64 bits, not {dtypes.short_name(found)}")
    drawn = np.dtype(np.int32) if bits < 32 else found
    above = most + 1 if bits < 32 else most
    low, _ = _bound("minval", minval, drawn, least, most)
    high, beyond = _bound("maxval", maxval, drawn, least, above)
    beyond = bits >= 32 and beyond
    if type(low) is int and type(high) is int:
        out = _within(words, size, drawn, low, high + 1 if beyond and high > low else high)
    else:
        low, high = (scalar_array(drawn.type(x)) if type(x) is int else x for x in (low, high))
        sample_shape("randint", size, minval=low.shape, maxval=high.shape)
        out = _within_arrays(words, size, drawn, low, high, beyond)
    return constrained(ops.convert_element_type(out, found), out_sharding, "random.randint")


def _bound(what: str, x: Any, dtype: DType, least: int, most: int) -> tuple[Any, Any]:
    """Clip a bound ``x`` of random integers to [least, most], and convert it to ``dtype``.

    ``what`` names the bound in errors. Return the clipped bound, and whether ``x`` exceeded ``most``: a Python integer
    and a boolean, or arrays.
    """
    if type(x) in SCALARS and not isinstance(x, complex):
        number = int(x)
        _, default_least, default_most = _limits(dtypes.default_int())
        if not min(least, default_least) <= number <= max(most + 1, default_most):
            raise IntegerRangeError(f"randint: {what}={number} is out of the range of {dtypes.short_name(dtype)}")
        return min(max(number, least), most), number > most
    array = operand(f"randint: {what}", x)
    if not dtypes.is_integer(array.dtype):
        if not dtypes.is_float(array.dtype) and not dtypes.is_bool(array.dtype):
            raise DtypeError(f"randint: {what} must be an integer, got {dtypes.short_name(array.dtype)}")
        array = ops.convert_element_type(array, dtypes.default_int())
    _, own_least, own_most = _limits(array.dtype)
    bottom, top = max(least, own_least), min(most, own_most)
    clipped = ops.clamp_p.bind(bottom, array, top) if (bottom, top) != (own_least, own_most) else array
    beyond = ops.gt(array, top) if top < own_most else False
    return ops.convert_element_type(clipped, dtype), beyond


@lru_cache
def _limits(dtype: DType) -> tuple[int, int, int]:
    """Return the number of bits, the least integer and the greatest integer of an integer dtype."""
    info = dtypes.iinfo(dtype)
    return int(info.bits), int(info.min), int(info.max)


def _within(key: Words, shape: Shape, dtype: DType, low: int, high: int) -> Any:
    """Draw integers of ``dtype`` in [low, high), where ``low`` and ``high`` are Python integers."""
    width = dtype.itemsize * 8
    upper, lower = subkeys(key, 2)
    span = max(high - low, 1) % (1 << width)  # 0: all integers of the dtype
    offset = random_bits(lower, width, shape)
    if span:
        half = (1 << width // 2) % span
        carry = half * half % (1 << width) % span  # 2**width modulo span; the product wraps, as JAX's does
        offset = ops.rem_p.bind(offset, span)
        if carry:
            higher = ops.mul(ops.rem_p.bind(random_bits(upper, width, shape), span), carry)
            offset = ops.rem_p.bind(ops.add(higher, offset), span)
    offset = ops.convert_element_type(offset, dtype)
    return ops.add(offset, low) if low else offset


def _within_arrays(key: Words, shape: Shape, dtype: DType, low: Any, high: Any, beyond: Any) -> Any:
    """Draw integers of ``dtype`` in [low, high), where ``low`` and ``high`` are arrays.

    Where ``beyond`` is true, ``high`` is the greatest integer, and is included in the range.
    """
    width = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}")
    filled = ops.gt(high, low)
    span = ops.where(filled, ops.convert_element_type(ops.sub(high, low), unsigned), 1)
    if beyond is not False:
        further = filled if beyond is True else ops.and_p.bind(filled, beyond)
        span = ops.where(further, ops.add(span, 1), span)
    half = ops.rem_p.bind(1 << width // 2, span)
    carry = ops.rem_p.bind(ops.mul(half, half), span)
    higher, offset = (ops.rem_p.bind(random_bits(k, width, shape), span) for k in subkeys(key, 2))
    offset = ops.rem_p.bind(ops.add(ops.mul(higher, carry), offset), span)
    return ops.add(low, ops.convert_element_type(offset, dtype))


def bernoulli(
    key: KeyArray,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random booleans.

    Args:
      key: a key.
      p: the probability of True, floats that broadcast to ``shape``.
      shape: the shape of the result; by default the shape of ``p``.
      mode: ``"high"`` draws twice the bits, for more precise small probabilities; ``"low"`` is the default.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      A boolean array of ``shape``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or the mode is unknown.
      DtypeError: ``p`` is not of a floating-point dtype.
      ShapeError: ``p`` does not fit the shape.

    >>> from pullback import random
    >>> random.bernoulli(random.key(0), 0.5, (3,))
    Array([False,  True, False], dtype=bool)
    """
    words = words_of("bernoulli", key)
    if not is_listed(mode, ("low", "high")):
        raise ArgumentError(f"bernoulli: mode must be 'low' or 'high', got {mode!r}")
    chance = operand("bernoulli: p", p)
    dtype = chance.dtype
    if not dtypes.is_float(dtype):
        raise DtypeError(f"bernoulli: p must have a floating-point dtype, got {dtypes.short_name(dtype)}: {p!r}")
    size = sample_shape("bernoulli", shape, p=chance.shape)
    if mode == "low":
        return constrained(ops.lt(unit(words, size, dtype), chance), out_sharding, "random.bernoulli")
    coarse, fine = pair(unit(words, (2, *size), dtype))
    return constrained(
        ops.lt(ops.mul(fine, 2.0 ** -dtypes.finfo(dtype).nmant), ops.sub(chance, coarse)),
        out_sharding,
        "random.bernoulli",
    )


def rademacher(
    key: KeyArray, shape: ShapeLike = (), dtype: DTypeLike = None, *, out_sharding: OutSharding = None
) -> Array:
    """Random signs: -1 and 1 with equal probability.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: a dtype of numbers; int32 (or int64) by default.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of ``shape`` and ``dtype``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key.
      ShapeError: ``shape`` is not a shape.

    >>> from pullback import random
    >>> random.rademacher(random.key(0), (3,))
    Array([-1,  1, -1], dtype=int32)
    """
    words = words_of("rademacher", key)
    found = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "random.rademacher")
    positive = ops.lt(unit(words, shape_tuple(shape, "rademacher"), dtypes.default_float()), 0.5)
    return constrained(
        ops.sub(ops.mul(ops.convert_element_type(positive, found), 2), 1), out_sharding, "random.rademacher"
    )


# Orders and choices ------------------------------------------------------------------------------------------------


def permutation(
    key: KeyArray, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: OutSharding = None
) -> Array:
    """An array in random order.

    Args:
      key: a key.
      x: an array, or an integer n, which stands for 0, 1, ..., n - 1.
      axis: along which axis.
      independent: whether each row along the axis is shuffled independently.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key.
      DtypeError: ``x`` is a number but no integer.
      ShapeError: the axis is out of range.

    >>> from pullback import random
    >>> random.permutation(random.key(0), 5)
    Array([1, 0, 4, 3, 2], dtype=int32)
    """
    independent = flag("permutation", "independent", independent)
    words = words_of("permutation", key)
    array = operand("permutation: x", x)
    rank = len(array.shape)
    along = axis_index(axis, max(rank, 1), "permutation")
    if not rank:
        return constrained(
            _shuffled_range(words, _count("permutation: x", x, array)), out_sharding, "random.permutation"
        )
    if independent and rank > 1:
        return constrained(_shuffled(words, array, along), out_sharding, "random.permutation")
    return constrained(
        _take(array, _shuffled_range(words, array.shape[along]), along), out_sharding, "random.permutation"
    )


def _count(what: str, x: Any, array: Any) -> int:
    """Return the integer scalar ``array`` as a Python integer; raise unless its dtype is an integer dtype.

    ``what`` names the argument, and ``x`` is the user's value of it, for errors.
    """
    if not dtypes.is_integer(array.dtype):
        raise DtypeError(f"{what} must be an integer or an array with axes, got {x!r}")
    return int(array)


def _shuffled_range(key: Words, count: int) -> Any:
    return _shuffled(key, slicing.iota(dtypes.default_int(), (count,), 0), 0)


def _shuffled(key: Words, x: Any, axis: int) -> Any:
    """Return ``x`` shuffled along an axis.

    Each round sorts by random words. There are so many rounds that equal words in all of them are improbable.
    """
    size = math.prod(x.shape)
    rounds = math.ceil(3 * math.log(max(1, size)) / math.log((1 << 32) - 1))
    for _ in range(rounds):
        key, subkey = subkeys(key, 2)
        _, x = sorting.sort([random_bits(subkey, 32, x.shape), x], axis)
    return x


def _take(x: Any, indices: Any, axis: int) -> Any:
    """Take the elements of ``x`` at ``indices`` along an axis; the axes of ``indices`` replace this axis."""
    rank = len(x.shape)
    flat = math.prod(indices.shape)
    column = shapes.reshape(indices, [flat if i == axis else 1 for i in range(rank)])
    out = sorting.take_along_axis(x, column, axis)
    return shapes.reshape(out, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def choice(
    key: KeyArray,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of an array.

    Args:
      key: a key.
      a: an array, or an integer n, which stands for 0, 1, ..., n - 1.
      shape: the shape of the sample.
      replace: whether an element may be drawn more than once.
      p: the probabilities of the elements, of shape ``(a.shape[axis],)``; all are equal by default.
      axis: the axis of ``a`` along which to draw.
      mode: how to draw without replacement by probabilities: see :func:`gumbel`.

    Returns:
      An array of the shape of ``a`` in which ``shape`` replaces the axis ``axis``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or the sample is larger than the population.
      ShapeError: the axis is out of range, or ``p`` does not fit.

    >>> from pullback import random
    >>> random.choice(random.key(0), 10, (3,), replace=False)
    Array([2, 7, 9], dtype=int32)
    """
    replace = flag("choice", "replace", replace)
    words = words_of("choice", key)
    size = shape_tuple(shape, "choice")
    array = operand("choice: a", a)
    along = axis_index(axis, max(len(array.shape), 1), "choice")
    population = array.shape[along] if array.shape else _count("choice: a", a, array)
    draws = math.prod(size)
    if draws and population < 1:
        raise ArgumentError(f"choice: cannot draw from a population of {population}")
    if not replace and draws > population:
        raise ArgumentError(f"choice: {draws} elements cannot be drawn from {population} without replacement")
    chances = None if p is None else _chances(p, population)
    if replace:
        indices = _with_replacement(words, size, population, chances)
    else:
        indices = shapes.reshape(_without_replacement(words, draws, population, chances, mode), size)
    indices = ops.convert_element_type(indices, dtypes.default_int())
    return _take(array, indices, along) if array.shape else indices


def _chances(p: Any, population: int) -> Any:
    chances = inexact_operand("choice: p", p)
    if chances.shape != (population,):
        raise ShapeError(
            f"choice: p must have shape ({population},), one probability for each element, got shape {chances.shape}"
        )
    return chances


def _with_replacement(key: Words, shape: Shape, population: int, p: Any) -> Any:
    if p is None:
        return _within(key, shape, dtypes.default_int(), 0, population)
    sums = cumsum(p, 0)
    total = shapes.squeeze(slicing.slice_in_dim(sums, population - 1, population, 0), (0,))
    levels = ops.mul(total, ops.sub(1, unit(key, shape, p.dtype)))
    flat = shapes.reshape(levels, (math.prod(shape),))
    return shapes.reshape(sorting.searchsorted(sums, flat, "left", np.int32), shape)


def _without_replacement(key: Words, draws: int, population: int, p: Any, mode: str | None) -> Any:
    """Draw ``draws`` distinct indices below ``population``.

    If ``p`` is None, they are the first indices in a random order. Otherwise ``p`` holds the probabilities, and they
    are the indices of the greatest elements of log p plus Gumbel noise (Vieira 2014). ``mode`` is the precision mode of
    the noise.
    """
    if p is None:
        return slicing.slice(_shuffled_range(key, population), (0,), (draws,))
    noisy = ops.add(gumbel_of(key, (population,), p.dtype, mode), ops.log(p))
    return sorting.top_k(noisy, draws, 0)[1]


def categorical(
    key: KeyArray,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random categories, given the logarithms of their probabilities: the argmax of these plus Gumbel noise.

    Args:
      key: a key.
      logits: an array of floats, the logarithms of probabilities up to a constant, along ``axis``.
      axis: the axis of the categories.
      shape: the shape of the result; it ends with the shape of ``logits`` without ``axis``, which is the default.
      replace: whether a category may be drawn more than once along the leading axes of ``shape``.
      mode: how to draw the noise, a text or None: see :func:`gumbel`.
      out_sharding: how the result is spread over devices; None leaves it open.

    Returns:
      An array of integers of ``shape``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, or there are not enough categories.
      ShapeError: the shapes do not fit.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> random.categorical(random.key(0), jnp.log(jnp.array([0.1, 0.2, 0.7])), shape=(4,))
    Array([2, 2, 2, 2], dtype=int32)
    """
    replace = flag("categorical", "replace", replace)
    words = words_of("categorical", key)
    scores = inexact_operand("categorical: logits", logits)
    if not scores.shape:
        raise ShapeError("categorical: logits must have an axis of categories, got a scalar")
    if dtypes.is_complex(scores.dtype):
        raise DtypeError(f"categorical: logits must be real, got {scores.aval}")
    along = axis_index(axis, len(scores.shape), "categorical")
    batch = (*scores.shape[:along], *scores.shape[along + 1 :])
    size = sample_shape("categorical", batch if shape is None else shape, logits=batch)
    extra = size[: len(size) - len(batch)]
    if replace:
        rest = list(size[len(extra) :])
        rest.insert(along, scores.shape[along])
        noisy = ops.add(gumbel_of(words, (*extra, *rest), scores.dtype, mode), scores)
        return constrained(argmax(noisy, len(extra) + along, dtypes.default_int()), out_sharding, "random.categorical")
    return constrained(
        _distinct_categories(words, scores, along, extra, batch, size, mode), out_sharding, "random.categorical"
    )


def _distinct_categories(
    key: Words, scores: Any, axis: int, extra: Shape, batch: Shape, shape: Shape, mode: str | None
) -> Any:
    draws = math.prod(extra)
    if draws > scores.shape[axis]:
        raise ArgumentError(
            f"categorical: {draws} categories cannot be drawn from {scores.shape[axis]} without replacement"
        )
    if shape[len(extra) :] != batch:
        raise ShapeError(f"categorical: without replacement shape {shape} must end with {batch}")
    noisy = ops.add(scores, gumbel_of(key, scores.shape, scores.dtype, mode))
    return shapes.reshape(shapes.moveaxis(sorting.top_k(noisy, draws, axis)[1], axis, 0), shape)
