"""Samples of the gamma, Poisson and binomial distributions by rejection, in loops over arrays of samples.

The methods: for the gamma distribution Marsaglia and Tsang (*A simple method for generating gamma variables*, ACM TOMS
26, 2000), with their power of a uniform number for parameters below 1; for the Poisson distribution Knuth (*The Art of
Computer Programming* 2, 3.4.1) for small means, and Hörmann (*The transformed rejection method for generating Poisson
random variables*, 1993) for others; for the binomial distribution sums of geometric numbers (Devroye, *Non-Uniform
Random Variate Generation*, 1986, X.4.3), or Hörmann (*The generation of binomial random variates*, 1993).

Each step draws the same random bits as in JAX. Each gamma sample has its own key. All Poisson or binomial samples of
one key share its chain of keys, and the n-th sample takes the n-th number of each array of uniform numbers; transformed
rejection draws all samples of a key until each was accepted at least once, and keeps the last accepted values.

An eager loop continues with the samples (or keys) that are not finished; a compiled one with all of them until the last
is finished.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core.array import SCALARS, ArrayImpl, scalar_array, shape_of
from pullback.core.elsewhere import on_host
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.axis_maps import mapped_to_front
from pullback.primitives.checks import FLOAT, broadcast_shape, check_dtype
from pullback.primitives.declare import batch_broadcasting
from pullback.primitives.elementwise import add, div, gt, log, lt, mul, neg, sub, where
from pullback.primitives.random.bits import STRIDE, fraction_bits, normal_of, threefry2x32, unit_of
from pullback.primitives.random.ciphers import CIPHERS
from pullback.primitives.random.philox import philox_blocks
from pullback.primitives.reductions import reduce_and, reduce_or
from pullback.primitives.rules import jvp_zero
from pullback.primitives.special.incomplete import gamma_slope_p

Arrays = list[Any]
Step = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Arrays, Arrays, Any]]
"""``step(shared, operands, state) -> shared, state, finished``: an iteration of a loop over arrays of samples."""

_word = np.dtype(np.uint32)
_floor, _ge, _le = ops.floor_p.bind, ops.ge_p.bind, ops.le_p.bind
_and, _or, _not, _lgamma = ops.and_p.bind, ops.or_p.bind, ops.not_p.bind, ops.lgamma_p.bind

# Keys and numbers of individual samples ----------------------------------------------------------------------------


def split_lanes(k0: Any, k1: Any, count: int, partitionable: bool) -> list[tuple[Any, Any]]:
    """Split each key into ``count`` new keys, with the same words as ``random_split``, by one hash for all keys.

    Args:
      k0, k1: arrays of the two words of the keys.
      count: the number of new keys for each key.
      partitionable: whether JAX's option ``jax_threefry_partitionable`` is on.

    Returns:
      ``count`` pairs: the two words of a new key for each key, as arrays of the shape of ``k0``.
    """
    rank = len(k0.shape)
    low = ArrayImpl(np.arange(count, dtype=_word).reshape(count, *(1,) * rank))
    high: Any = ArrayImpl(np.full_like(low._value, 0) if partitionable else low._value + _word.type(count))
    k0, k1 = (shapes.expand_dims(x, (0,)) for x in (k0, k1))
    first, second = threefry2x32(k0, k1, *((high, low) if partitionable else (low, high)))
    if partitionable:
        return list(zip(_rows(first), _rows(second), strict=True))
    words = [*_rows(first), *_rows(second)]
    return list(zip(words[::2], words[1::2], strict=True))


def _rows(x: Any) -> Arrays:
    if isinstance(x, ArrayImpl):
        return _wrapped(list(x._value))
    return [shapes.squeeze(slicing.slice_in_dim(x, i, i + 1, 0), (0,)) for i in range(x.shape[0])]


def _stack(xs: Sequence[Any]) -> Any:
    return slicing.concatenate([shapes.expand_dims(x, (0,)) for x in xs], 0)


def bits_at(k0: Any, k1: Any, index: Any, size: int, width: int, partitionable: bool) -> Any:
    """Return the elements at ``index`` of the random integers that ``random_bits`` would draw, and draw no others.

    Args:
      k0, k1: the two words of the keys.
      index: the indices of the elements.
      size: the number of elements that ``random_bits`` would draw from the key.
      width: the number of bits of each integer.
      partitionable: whether JAX's option ``jax_threefry_partitionable`` is on.
    """
    wide = np.dtype(np.uint64)
    if width == 64:
        y0, y1 = threefry2x32(k0, k1, *((0, index) if partitionable else (index, add(index, size))))
        high, low = (ops.convert_element_type(y, wide) for y in (y0, y1))
        return ops.or_p.bind(ops.shift_left_p.bind(high, 32), low)
    if partitionable:
        words = ops.xor_p.bind(*threefry2x32(k0, k1, 0, index))
    else:
        share = 32 // width
        count = -(-size // share)
        at = index if share == 1 else ops.div(index, share)
        half = -(-count // 2)
        first = lt(at, half)
        lower = where(first, at, sub(at, half))
        upper = add(lower, half)
        upper = where(ops.eq(upper, count), 0, upper) if count % 2 else upper
        words = where(first, *threefry2x32(k0, k1, lower, upper))
        if share > 1:
            words = ops.shift_right_logical_p.bind(words, mul(ops.rem_p.bind(index, share), width))
    return words if width == 32 else ops.convert_element_type(words, np.dtype(f"u{width // 8}"))


def _uniform(keys: Sequence[Any], index: Any, size: int, dtype: Any, partitionable: bool) -> Arrays:
    """Return, for each of ``keys``, the elements at ``index`` of the ``size`` uniform numbers that a key draws.

    One hash computes the bits of all keys. ``partitionable`` is JAX's option ``jax_threefry_partitionable``.
    """
    k0, k1 = (_stack(words) for words in zip(*keys, strict=True))
    if shape_of(index) and not keys[0][0].shape:
        k0, k1 = (shapes.reshape(k, (len(keys), *(1,) * len(index.shape))) for k in (k0, k1))
    bits = bits_at(k0, k1, index, size, fraction_bits(dtype), partitionable)
    return _rows(unit_of(bits, dtype))


class Generator(NamedTuple):
    """The algorithm that makes random bits from keys.

    Its methods take a batch of keys as a tuple of arrays: the first words of all keys, the second words, and so on.

    Attributes:
      name: ``threefry2x32``, ``rbg``, ``unsafe_rbg``, or the name of a cipher.
      partitionable: whether JAX's option ``jax_threefry_partitionable`` is on.
    """

    name: str
    partitionable: bool

    @property
    def width(self) -> int:
        """The number of words of a key."""
        if self.name in CIPHERS:
            return CIPHERS[self.name].width
        return 2 if self.name == "threefry2x32" else 4

    def split(self, key: Sequence[Any], count: int) -> list[tuple[Any, ...]]:
        """Split each key into ``count`` new keys, as ``random_split`` does; return ``count`` tuples of words."""
        if self.name in CIPHERS:
            return [CIPHERS[self.name].derived(key, scalar_array(_word.type(i))) for i in range(count)]
        if self.name == "unsafe_rbg":
            return [tuple(philox_blocks(key, scalar_array(_word.type(STRIDE * i)))) for i in range(count)]
        if self.name == "rbg":
            halves = [self._split_pair(half, count) for half in (key[:2], key[2:])]
            return [(*first, *second) for first, second in zip(*halves, strict=True)]
        return self._split_pair(key, count)

    def _split_pair(self, key: Sequence[Any], count: int) -> list[tuple[Any, ...]]:
        k0, k1 = key
        return list(split_lanes(k0, k1, count, self.partitionable))

    def uniform(self, keys: Sequence[Sequence[Any]], index: Any, size: int, dtype: Any) -> Arrays:
        """Return, for each of ``keys``, the elements at ``index`` of the ``size`` uniform numbers that a key draws."""
        if self.name in CIPHERS:
            cipher, width = CIPHERS[self.name], fraction_bits(dtype)
            return [unit_of(cipher.integers(key, index, width), dtype) for key in keys]
        if self.name == "threefry2x32":
            return _uniform(keys, index, size, dtype, self.partitionable)
        return [unit_of(block_bits_at(key, index, fraction_bits(dtype)), dtype) for key in keys]


def block_bits_at(key: Sequence[Any], index: Any, width: int) -> Any:
    """Return the elements at ``index`` of the array of random integers of ``width`` bits that XLA's generator draws.

    ``key`` holds the four words of a key.
    """
    share = 2 if width == 64 else 4
    words = philox_blocks(key, ops.div(index, share))
    if width == 64:
        wide = np.dtype(np.uint64)
        words = [ops.convert_element_type(x, wide) for x in words]
        words = [ops.or_p.bind(low, ops.shift_left_p.bind(high, 32)) for low, high in (words[:2], words[2:])]
    at = ops.rem_p.bind(index, share)
    found = words[0]
    for i in range(1, share):
        found = where(ops.eq(at, i), words[i], found)
    return found if width >= 32 else ops.convert_element_type(found, np.dtype(f"u{width // 8}"))


# Loops -------------------------------------------------------------------------------------------------------------


def _wrapped(values: Sequence[Any]) -> Arrays:
    return [ArrayImpl(x) for x in values]


def _loop_eagerly(
    step: Step, shared: Sequence[Any], operands: Sequence[Any], state: Sequence[Any], waiting: Any
) -> list[np.ndarray[Any, Any]]:
    """Repeat ``step`` on NumPy arrays, with samples along the first axis, until all samples are finished.

    Args:
      step: one iteration, ``step(shared, operands, state) -> shared, state, finished``; ``finished`` is a mask.
      shared: arrays that ``step`` replaces for all samples, such as keys, which may have no axes.
      operands: arrays that do not change.
      state: the initial state of each sample.
      waiting: booleans of one axis: the samples that need an iteration at all.

    Returns:
      The final state of all samples.
    """
    width = max(math.prod(x.shape[1:]) for x in state)
    count = max(1, _BLOCK // max(width, 1))
    if waiting.size <= count:
        return _block_eagerly(step, shared, operands, state, waiting)
    blocks = []
    for start in range(0, waiting.size, count):
        block = slice(start, start + count)
        keys, block_operands, before = ([x[block] if x.ndim else x for x in xs] for xs in (shared, operands, state))
        blocks.append(_block_eagerly(step, keys, block_operands, before, waiting[block]))
    return [np.concatenate(results) for results in zip(*blocks, strict=True)]


_BLOCK = 16384
"""The number of values in a block, which stay in the cache, and whose hash is not compiled for its shape."""


def _block_eagerly(step: Step, shared: Any, operands: Any, state: Any, waiting: Any) -> Any:
    out = [np.array(x) for x in state]
    going = np.flatnonzero(waiting)
    members = np.arange(waiting.size)
    while True:
        if going.size < members.size:
            members = members[going]
            shared, operands, state = ([x[going] if x.ndim else x for x in xs] for xs in (shared, operands, state))
        if not members.size:
            return out
        results = step(_wrapped(shared), _wrapped(operands), _wrapped(state))
        shared, state = ([x._value for x in xs] for xs in results[:2])
        for target, values in zip(out, state, strict=True):
            target[members] = values
        going = np.flatnonzero(~results[2]._value)


def _loop_compiled(
    hlo: Any, step: Step, shared: Sequence[Any], operands: Sequence[Any], state: Sequence[Any], waiting: Any
) -> Arrays:
    """Emit a loop of ``step`` over samples along the first axis, until all samples are finished.

    Args:
      hlo: the builder.
      step: one iteration, ``step(shared, operands, state) -> shared, state, finished``; ``finished`` is a mask.
      shared: arrays that ``step`` replaces for all samples, such as keys.
      operands: arrays that do not change.
      state: the initial state of each sample; the state of a finished sample stays.
      waiting: a mask of the samples that need an iteration at all.

    Returns:
      The final state of all samples.
    """
    n, m = len(shared), len(state)
    carry = [*shared, *state, waiting]
    kinds = [(x.shape, x.dtype) for x in carry]

    def turn(*values: Any) -> Arrays:
        before, waiting, operands = values[: n + m], values[n + m], values[n + m + 1 :]
        new, after, finished = step(before[:n], operands, before[n:])
        after = [where(_along_first(waiting, x), y, x) for x, y in zip(before[n:], after, strict=True)]
        return [*new, *after, _and(waiting, _not(finished))]

    body = hlo.region(kinds, lambda *values: hlo.inline(turn, *values, *operands))
    going = hlo.region(kinds, lambda *values: [hlo.inline(lambda x: reduce_or(x, (0,)), values[-1])])
    out: Arrays = hlo.multi_result("stablehlo.while", carry, kinds, regions=[going, body])[n : n + m]
    return out


def _along_first(x: Any, like: Any) -> Any:
    return shapes.reshape(x, (*x.shape, *(1,) * (len(like.shape) - 1)))


# The gamma distribution --------------------------------------------------------------------------------------------


def random_gamma(words: Sequence[Any], a: Any, log_space: bool, generator: Generator) -> Any:
    """Draw a sample of the gamma distribution with parameter ``a`` from each key, or its logarithm if ``log_space``.

    ``words`` holds the words of the keys: an array for each word of a key.
    """
    return random_gamma_p.bind(*words, a, log_space=log_space, generator=generator)


random_gamma_p = Primitive("random_gamma", keeps_weak_type=False)
random_gamma_p.batch_rule = batch_broadcasting(random_gamma_p)


@random_gamma_p.abstract_eval
def _gamma_abstract_eval(*avals: ShapedArray, log_space: bool, generator: Generator) -> ShapedArray:
    check_dtype("random_gamma", FLOAT, avals[-1].dtype)
    return ShapedArray(broadcast_shape("random_gamma", [x.shape for x in avals]), avals[-1].dtype)


def _gamma_constants(a: Any) -> tuple[Any, Any]:
    """Return the constants d = a - 1/3 and 1 / sqrt(9 d) of Marsaglia and Tsang's algorithm for gamma samples.

    An ``a`` below 1 is replaced by a + 1.
    """
    d = sub(where(_ge(a, 1), a, add(a, 1)), 1 / 3)
    return d, div(1 / 3, ops.sqrt(d))


def _where_if_any(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``where(condition, yes, no)``; if the condition is concrete and false everywhere, ``no`` itself."""
    if isinstance(condition, ArrayImpl) and not condition._value.any():
        return no
    return where(condition, yes, no)


def _gamma_step(generator: Generator) -> Step:
    """Make one iteration of the loop for gamma samples, which draws a normal and a uniform number for each sample.

    If the normal number is too small, the next iteration draws a new normal number, and keeps the uniform number. The
    state of a sample holds the words of three keys (for the next iteration, the normal numbers and the uniform number),
    a flag that its normal number was too small, and the sample divided by d = a - 1/3.
    """
    n = generator.width

    def step(shared: Any, operands: Any, state: Any) -> Any:
        d, width = operands
        before, (again, _) = state[: 3 * n], state[3 * n :]
        new = [word for key in generator.split(before[:n], 3) for word in key]
        words = [_where_if_any(again, old, word) for old, word in zip(before, new, strict=True)]
        following, for_normal, for_uniform = words[:n], words[n : 2 * n], words[2 * n :]
        (*for_normal,), drawn = generator.split(for_normal, 2)
        x, u = generator.uniform([drawn, for_uniform], scalar_array(_word.type(0)), 1, d.dtype)
        x = normal_of(x)
        v = x * width + 1
        again = _le(v, 0)
        square, cube = x * x, v * v * v
        outside = _ge(u, 1 - square * square * 0.0331)
        bound = square * 0.5 + d * (1 - cube + log(cube))
        rejected = _and(outside, _ge(log(u), bound))
        return [], [*following, *for_normal, *for_uniform, again, cube], _not(_or(again, rejected))

    return step


def _gamma_result(a: Any, d: Any, cube: Any, *key: Any, log_space: bool, generator: Generator) -> Any:
    """Return the gamma sample ``d * cube``, or its logarithm if ``log_space``; NaN for an invalid parameter ``a``.

    For ``a`` below 1 the sample is also multiplied by u**(1 / a), where u is a uniform number drawn from ``key``.
    """
    large = _ge(a, 1)
    if isinstance(large, ArrayImpl) and large._value.all():
        return log(d) + log(cube) if log_space else d * cube
    (u,) = generator.uniform([key], scalar_array(_word.type(0)), 1, a.dtype)
    if log_space:
        out = log(d) + log(cube) + where(large, 0, ops.log1p_p.bind(-u) / a)
    else:
        out = d * cube * where(large, 1, ops.pow_p.bind(1 - u, 1 / a))
    return where(_ge(a, 0), out, math.nan)


@random_gamma_p.impl
@on_host(random_gamma_p)
def _gamma_eager(operands: Sequence[Any], params: dict[str, Any]) -> Any:
    generator = params["generator"]
    shape, (*words, a) = _flattened(operands)
    d, width = _gamma_constants(a)
    first, for_small = generator.split(words, 2)
    zero = np.zeros(a.shape, _word)
    state = [x._value for x in first] + [zero] * (2 * generator.width) + [zero > 0, np.zeros(a.shape, a.dtype)]
    out = _loop_eagerly(_gamma_step(generator), [], [d._value, width._value], state, _ge(a, 0)._value)
    return shapes.reshape(_gamma_result(a, d, ArrayImpl(out[-1]), *for_small, **params), shape)


def _flattened(operands: Sequence[Any]) -> tuple[Any, Arrays]:
    """Return the shape to which the operands broadcast, and the operands, broadcast to it and then flattened."""
    shape = broadcast_shape("random", [shape_of(x) for x in operands])
    return shape, [_flat(x, shape) for x in operands]


def _flat(x: Any, shape: Any) -> Any:
    return ArrayImpl(np.broadcast_to(x if type(x) in SCALARS else np.asarray(x._value), shape).reshape(-1))


@random_gamma_p.lowering
def _gamma_lowering(hlo: Any, *operands: Any, log_space: bool, generator: Generator) -> Any:
    size = (math.prod(hlo.result.shape),)
    *words, a = (hlo.reshape(hlo.broadcast(x, hlo.result.shape), size) for x in operands)
    d, width = hlo.inline(_gamma_constants, a)
    keys = hlo.inline(lambda *words: [word for key in generator.split(words, 2) for word in key], *words)
    first, for_small = keys[: generator.width], keys[generator.width :]
    zero = hlo.splat(0, size, _word)
    blank = [hlo.splat(False, size, np.dtype(bool)), hlo.splat(0, size, a.dtype)]
    state = [*first, *[zero] * (2 * generator.width), *blank]
    waiting = hlo.inline(lambda a: _ge(a, 0), a)
    out = _loop_compiled(hlo, _gamma_step(generator), [], [d, width], state, waiting)
    finish = partial(_gamma_result, log_space=log_space, generator=generator)
    out = hlo.inline(finish, a, d, out[-1], *for_small)
    return hlo.reshape(out, hlo.result.shape)


@random_gamma_p.jvp
def _gamma_jvp(primals: Any, tangents: Any, *, log_space: bool, generator: Generator) -> Any:
    """Return gamma samples and their tangents, for samples at fixed quantiles (Figurnov, Mohamed and Mnih 2018)."""
    a, t = primals[-1], tangents[-1]
    out = random_gamma_p.bind(*primals, log_space=log_space, generator=generator)
    if t is ZERO:
        return out, ZERO
    slope = log_slope(a, out if log_space else log(out))
    return out, mul(t, slope if log_space else mul(out, slope))


def log_slope(a: Any, log_x: Any) -> Any:
    """Return the derivative of the logarithm of gamma samples with respect to the parameter ``a``, at a fixed quantile.

    ``log_x`` holds the logarithms of the samples. For small samples the distribution function is x**a / Γ(a + 1), whose
    derivative works even where x underflows.
    """
    small = lt(log_x, _SMALL)
    limit = (ops.digamma(a + 1) - log_x) / a
    x = ops.exp(where(small, 0, log_x))
    return where(small, limit, neg(gamma_slope_p.bind(a, x, order=1)))


_SMALL = -36.0
"""The logarithm below which the second term of the distribution function's series is negligible."""


# Arrays of samples from one key ------------------------------------------------------------------------------------


def _of_arrays(name: str, evaluate: Callable[..., Any]) -> Primitive:
    """Declare a primitive that draws samples, several from each key.

    It takes the words of the keys, arrays of a shape ``S``, and the parameters of the samples, such as means, of a
    shape that begins with ``S``.

    Args:
      name: the name in jaxprs and errors.
      evaluate: ``evaluate(draws, *parameters)`` returns the samples. ``draws`` is a source of random numbers
        (``_Draws``); the parameters are reshaped to two axes: keys, then samples of a key.
    """
    p = Primitive(name, keeps_weak_type=False)
    p.jvp_rule = jvp_zero(p)

    @p.abstract_eval
    def shape(*avals: ShapedArray, generator: Generator) -> ShapedArray:
        check_dtype(name, FLOAT, avals[-1].dtype)
        return ShapedArray(avals[-1].shape, avals[-1].dtype)

    @p.batch
    def batch(axis: MappedAxis, args: Any, dims: Any, **params: Any) -> Any:
        return p.bind(*mapped_to_front(axis, args, dims), **params), 0

    def by_key(*operands: Any, loop: Any, generator: Generator) -> Any:
        words, parameters = operands[: generator.width], operands[generator.width :]
        shape, count = parameters[0].shape, math.prod(words[0].shape)
        keys = [shapes.reshape(k, (count,)) for k in words]
        size = math.prod(shape[len(words[0].shape) :])
        rows = [shapes.reshape(x, (count, size)) for x in parameters]
        return shapes.reshape(evaluate(_Draws(loop, keys, count, size, generator), *rows), shape)

    def loop_eagerly(step: Step, *groups: Any) -> Arrays:
        shared, operands, state = ([x._value for x in xs] for xs in groups[:3])
        return _wrapped(_loop_eagerly(step, shared, operands, state, groups[3]._value))

    @p.impl
    @on_host(p)
    def eager(operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return by_key(*operands, loop=loop_eagerly, **params)

    @p.lowering
    def lowering(hlo: Any, *operands: Any, **params: Any) -> Any:
        return hlo.inline(lambda *xs: by_key(*xs, loop=_loop_inlined, **params), *operands)

    return p


def _loop_inlined(step: Step, shared: Arrays, operands: Arrays, state: Arrays, waiting: Any) -> Arrays:
    counts = (len(shared), len(operands), len(state))
    out: Arrays = random_loop_p.bind(*shared, *operands, *state, waiting, step=step, counts=counts)
    return out


# A loop within the lowering of an operation of this file, which transformations never process.
random_loop_p = Primitive("random_loop", multiple_results=True, keeps_weak_type=False)


@random_loop_p.abstract_eval
def _loop_abstract_eval(*avals: ShapedArray, step: Step, counts: tuple[int, int, int]) -> list[ShapedArray]:
    return list(avals[counts[0] + counts[1] : -1])


@random_loop_p.lowering
def _loop_lowering(hlo: Any, *values: Any, step: Step, counts: tuple[int, int, int]) -> Arrays:
    first, second = counts[0], counts[0] + counts[1]
    return _loop_compiled(hlo, step, values[:first], values[first:second], values[second:-1], values[-1])


class _Draws:
    """A source of random numbers for samples, ``size`` from each of ``count`` keys, with loops for rejection."""

    def __init__(self, loop: Any, keys: Arrays, count: int, size: int, generator: Generator) -> None:
        self.loop, self.keys, self.count, self.size, self.generator = loop, keys, count, size, generator

    def split(self, keys: Any, count: int) -> list[tuple[Any, ...]]:
        return self.generator.split(keys, count)

    def uniform(self, keys: Any, index: Any, dtype: Any) -> Arrays:
        return self.generator.uniform(keys, index, self.size, dtype)

    def index(self) -> Any:
        """Return the index of each number among the numbers of its key, in an array (keys, numbers of a key)."""
        return slicing.iota(_word, (self.count, self.size), 1)

    def each(self, step: Step, operands: Arrays, state: Arrays, waiting: Any) -> Any:
        """Repeat ``step`` for all numbers, each until it is finished; return the first array of the final state.

        Args:
          step: one iteration, ``step(keys, operands, state) -> keys, state, finished``. Its ``operands`` begin with the
            index of each number among the numbers of its key.
          operands: further operands, arrays with an element for each number.
          state: the initial state, arrays with an element for each number.
          waiting: a mask of the numbers that need an iteration at all.
        """
        flat = (self.count * self.size,)
        shape = () if self.count == 1 else flat
        wide = [
            shapes.reshape(shapes.broadcast_to(_along_first(k, waiting), waiting.shape) if shape else k, shape)
            for k in self.keys
        ]
        operands, state = ([shapes.reshape(x, flat) for x in xs] for xs in ([self.index(), *operands], state))
        return shapes.reshape(self.loop(step, wide, operands, state, shapes.reshape(waiting, flat))[0], waiting.shape)

    def together(self, attempt: Callable[..., Any], operands: Arrays) -> Any:
        """Draw all numbers of a key again and again, until each number was accepted at least once.

        Args:
          attempt: ``attempt(u, v, *operands)`` makes numbers from uniform numbers u and v; it returns the numbers, and
            a mask of the accepted ones.
          operands: arrays with an element for each number.

        Returns:
          The last accepted value of each number.
        """
        dtype = operands[0].dtype

        def step(shared: Any, operands: Any, state: Any) -> Any:
            value, accepted = state
            following, first, second = self.split(shared, 3)
            new, good = attempt(*self.uniform([first, second], operands[0], dtype), *operands[1:])
            accepted = _or(accepted, good)
            return list(following), [where(good, new, value), accepted], reduce_and(accepted, (1,))

        keys = [shapes.reshape(k, (self.count, 1)) for k in self.keys]
        state = [_filled(operands[0], -1), _filled(operands[0], False, np.dtype(bool))]
        waiting = shapes.full((self.count,), self.size > 0, np.dtype(bool))
        return self.loop(step, keys, [self.index(), *operands], state, waiting)[0]


def _filled(like: Any, value: Any, dtype: Any = None) -> Any:
    return shapes.full(like.shape, value, like.dtype if dtype is None else dtype)


_FEW = 10.0
"""The mean from which the Poisson and binomial distributions are sampled by transformed rejection."""


# The Poisson distribution ------------------------------------------------------------------------------------------


def random_poisson(words: Sequence[Any], mean: Any, generator: Generator) -> Any:
    """Draw samples of Poisson distributions with means ``mean``, as floats; -1 where a mean is invalid.

    ``words`` holds an array of a shape ``S`` for each word of the keys. The shape of ``mean`` begins with ``S``: each
    key draws the samples of the other axes.
    """
    return random_poisson_p.bind(*words, mean, generator=generator)


def _poisson(draws: _Draws, mean: Any) -> Any:
    def product_step(shared: Any, operands: Any, state: Any) -> Any:
        index, mean = operands
        count, total = state
        following, drawn = draws.split(shared, 2)
        (u,) = draws.uniform([drawn], index, mean.dtype)
        total = add(total, log(u))
        return list(following), [add(count, 1), total], _not(gt(total, neg(mean)))

    def attempt(u: Any, v: Any, mean: Any, log_mean: Any, a: Any, b: Any, inverse_alpha: Any, limit: Any) -> Any:
        u = u - 0.5
        distance = 0.5 - ops.abs(u)
        count = _floor((2 * a / distance + b) * u + mean + 0.43)
        height = log(v * inverse_alpha / (a / (distance * distance) + b))
        chance = -mean + count * log_mean - _lgamma(count + 1)
        inside = _and(_ge(distance, 0.07), _le(v, limit))
        outside = _or(lt(count, 0), _and(lt(distance, 0.013), gt(v, distance)))
        return count, _or(inside, _and(_not(outside), _le(height, chance)))

    valid = _and(gt(mean, 0), lt(mean, math.inf))
    few = lt(mean, _FEW)
    state = [_filled(mean, 0), _filled(mean, 0)]
    small = sub(draws.each(product_step, [mean], state, _and(valid, few)), 1)
    many = where(_and(valid, _not(few)), mean, 1e5)
    b = ops.sqrt(many) * 2.53 + 0.931
    a = b * 0.02483 + -0.059
    inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
    limit = 0.9277 - 3.6224 / (b - 2)
    large = draws.together(attempt, [many, log(many), a, b, inverse_alpha, limit])
    return where(valid, where(few, small, large), where(ops.eq(mean, 0), _filled(mean, 0), -1))


random_poisson_p = _of_arrays("random_poisson", _poisson)


# The binomial distribution -----------------------------------------------------------------------------------------


def random_binomial(words: Sequence[Any], n: Any, p: Any, generator: Generator) -> Any:
    """Draw samples of binomial distributions, with ``n`` trials of probability ``p``; NaN for invalid parameters.

    ``words`` holds an array of a shape ``S`` for each word of the keys. ``n`` and ``p`` have one shape, which begins
    with ``S``: each key draws the samples of the other axes.
    """
    return random_binomial_p.bind(*words, n, p, generator=generator)


_TAILS = tuple(
    math.lgamma(k + 1) - 0.5 * math.log(2 * math.pi) - (k + 0.5) * math.log(k + 1) + (k + 1) for k in range(10)
)
"""The logarithm of k! minus Stirling's formula (Hörmann 1993, section 2)."""


def _tail(k: Any) -> Any:
    inside = ops.clamp_p.bind(0, k, 9)
    after = inside + 1
    square = after * after
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / after
    known: Any = _filled(k, _TAILS[9])
    for i in range(8, -1, -1):
        known = where(lt(inside, i + 1), _filled(k, _TAILS[i]), known)
    return where(_le(k, 9), known, series)


def _binomial(draws: _Draws, n: Any, p: Any) -> Any:
    def inversion_step(shared: Any, operands: Any, state: Any) -> Any:
        index, n, log_failure = operands
        count, total = state
        drawn, following = draws.split(shared, 2)
        (u,) = draws.uniform([drawn], index, n.dtype)
        total = add(total, ops.ceil_p.bind(div(log(u), log_failure)))
        return list(following), [add(count, 1), total], _not(_le(total, n))

    def attempt(u: Any, v: Any, n: Any, a: Any, b: Any, c: Any, alpha: Any, mode: Any, odds: Any, limit: Any) -> Any:
        u = u - 0.5
        distance = 0.5 - ops.abs(u)
        inside = _and(_ge(distance, 0.07), _le(v, limit))
        count = _floor((2 * a / distance + b) * u + c)
        outside = _or(lt(count, 0), gt(count, n))
        height = log(v * alpha / (a / (distance * distance) + b))
        rest, rest_of_mode = n - count, n - mode
        chance = (mode + 0.5) * log((mode + 1) / (odds * (rest_of_mode + 1)))
        chance = chance + (n + 1) * log((rest_of_mode + 1) / (rest + 1))
        chance = chance + (count + 0.5) * log(odds * (rest + 1) / (count + 1))
        tails = _tail(mode) + _tail(rest_of_mode) - _tail(count) - _tail(rest)
        return count, _or(inside, _and(_not(outside), _le(height, chance + tails)))

    low = lt(p, 0.5)
    q = where(low, p, 1 - p)
    valid = _and(_ge(n, 0), _ge(q, 0))
    finite = _and(valid, lt(n, math.inf))
    few = _le(n * q, _FEW)
    trials = _floor(where(finite, n, 0))
    log_failure = ops.log1p_p.bind(neg(where(valid, q, 0.01)))
    state = [_filled(n, 0), _filled(n, 0)]
    small = sub(draws.each(inversion_step, [trials, log_failure], state, _and(finite, few)), 1)
    by_rejection = _and(finite, _not(few))
    many, chance = where(by_rejection, trials, 1e4), where(by_rejection, q, 0.5)
    deviation = ops.sqrt(many * chance * (1 - chance))
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 + -0.0873 + chance * 0.01
    c = many * chance + 0.5
    limit = 0.92 - 4.2 / b
    alpha = (5.1 / b + 2.83) * deviation
    mode = _floor((many + 1) * chance)
    large = draws.together(attempt, [many, a, b, c, alpha, mode, chance / (1 - chance), limit])
    out = where(few, small, large)
    out = where(low, out, trials - out)
    return where(finite, out, where(valid, _filled(n, math.inf), math.nan))


random_binomial_p = _of_arrays("random_binomial", _binomial)
