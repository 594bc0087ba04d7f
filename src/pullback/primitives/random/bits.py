"""Random bits: the counter-based generator Threefry-2x32, and what keys are made of.

The generator is a keyed bijection of pairs of 32-bit words (Salmon, Moraes, Dror and Shaw, *Parallel random
numbers: as easy as 1, 2, 3*, SC 2011, section 4.2): the n-th pair of random words is the image of the n-th
counter, so that any of them can be computed by itself, and a key is never changed.

How counters are laid out over an array is JAX's convention, of which there are two. In the *original* one the
words 0, 1, ..., n - 1 of an array are n counters, and counter i is hashed together with counter i + n/2, the
first half of the results coming from the first words of the pairs and the second half from the second words.
In the *partitionable* one element i is hashed from the 64-bit counter i alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import ArrayImpl, is_on_default_device
from pullback.core.config import config
from pullback.core.dims import is_symbolic
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.declare import batch_broadcasting
from pullback.primitives.large import compiled_from
from pullback.primitives.random.generator import RandomAlgorithm, rng_bit_generator_p
from pullback.primitives.random.philox import written_once
from pullback.primitives.rules import jvp_zero


@dataclass(frozen=True, slots=True)
class BlockKey:
    """A key of a generator whose bits are those of XLA's: ``rbg`` or ``unsafe_rbg``.

    Attributes:
      words: its words, uint32 of shape (4,).
      unsafe: whether new keys are random bits of the old one, too, and no hash of it.
    """

    words: Any
    unsafe: bool


Words = tuple[Any, Any] | BlockKey
"""A key: the two words of the default generator, each a uint32 scalar, or a key of another."""

_word = np.dtype(np.uint32)

# The hash ----------------------------------------------------------------------------------------------------------


def threefry2x32(k0: Any, k1: Any, x0: Any, x1: Any) -> list[Any]:
    """The pair of words of the key ``k0, k1`` for the counter ``x0, x1``; all broadcast."""
    return threefry2x32_p.bind(k0, k1, x0, x1)  # type: ignore[no-any-return]


threefry2x32_p = Primitive("threefry2x32", multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE)
threefry2x32_p.jvp_rule = jvp_zero(threefry2x32_p)
threefry2x32_p.batch_rule = batch_broadcasting(threefry2x32_p)

_ODD, _EVEN = (tuple((r, 32 - r) for r in rotations) for rotations in ((13, 15, 26, 6), (17, 29, 16, 24)))
_SCHEDULE = (_ODD, _EVEN, _ODD, _EVEN, _ODD)  # 20 rounds: how far each rotates left, that is to say, right.
_PARITY = 0x1BD11BDA
_FEW = 256  # Up to so many counters Python's integers are quicker than 112 operations of NumPy.
_CHUNK = 16384  # So many counters at a time stay in the processor's cache.


@threefry2x32_p.host
def _threefry_host(*operands: Any) -> list[Any]:
    k0, k1, x0, x1 = [np.asarray(x, _word) for x in operands]
    if k0.ndim == k1.ndim == 0 and (x0.shape == x1.shape or x0.ndim == 0):
        shape = x1.shape
    else:
        shape = np.broadcast_shapes(k0.shape, k1.shape, x0.shape, x1.shape)
    flat = [x if x.ndim == 0 or x.shape == shape else np.broadcast_to(x, shape) for x in (k0, k1, x0, x1)]
    flat = [x.ravel() if x.ndim > 1 else x for x in flat]
    size = math.prod(shape)
    y0, y1 = (_hash_few if size <= _FEW else _hash_many)(flat, size)
    return [y0, y1] if len(shape) == 1 else [y0.reshape(shape)[()], y1.reshape(shape)[()]]


compiled_from(threefry2x32_p, 60_000)  # 100,000: 1421 / 483; 1,000,000: 14891 / 1993


def _hash_few(operands: Sequence[Any], size: int) -> tuple[Any, Any]:
    """The hash of all counters at once."""
    k0, k1, x0, x1 = [_pack(x, size) for x in operands]
    y0, y1 = _hash_lanes(k0, k1, x0, x1, size)
    return _unpack(y0, size), _unpack(y1, size)


def _hash_lanes(k0: int, k1: int, a: int, b: int, size: int) -> tuple[int, int]:
    """The hash of counters that are one Python integer, with 64 bits for each of them.

    What a word's rotation or sum spills over stays in the upper half of its 64 bits, or falls into the upper half
    of its neighbour's, and is masked out.
    """
    ones, mask = _lanes(size)
    schedule = (k0, k1, k0 ^ k1 ^ _PARITY * ones)
    a, b = a + k0, b + k1 & mask
    for i, rotations in enumerate(_SCHEDULE):
        for left, right in rotations:
            a += b
            b = ((b << left | b >> right) ^ a) & mask
        a += schedule[(i + 1) % 3]
        b = b + schedule[(i + 2) % 3] + (i + 1) * ones & mask
    return a & mask, b


@cache
def _lanes(size: int) -> tuple[int, int]:
    """The numbers whose lanes are all 1, and all 2**32 - 1."""
    ones = sum(1 << 64 * i for i in range(size))
    return ones, ones * 0xFFFFFFFF


def _pack(x: Any, size: int) -> int:
    return int(x) * _lanes(size)[0] if x.ndim == 0 else int.from_bytes(x.astype("<u8").tobytes(), "little")


def _unpack(x: int, size: int) -> Any:
    return np.frombuffer(x.to_bytes(8 * size, "little"), "<u8").astype(_word)


def _hash_many(operands: Sequence[Any], size: int) -> tuple[Any, Any]:
    """The hash of many counters, a piece at a time."""
    y0, y1 = np.empty(size, _word), np.empty(size, _word)
    scratch = np.empty(_CHUNK, _word)
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        piece = [x if x.ndim == 0 else x[start:stop] for x in operands]
        _hash_piece(piece, y0[start:stop], y1[start:stop], scratch[: stop - start])
    return y0, y1


def _hash_piece(operands: Sequence[Any], a: Any, b: Any, scratch: Any) -> None:
    """The hash, into ``a`` and ``b``."""
    k0, k1, x0, x1 = operands
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    np.add(x0, k0, a)
    np.add(x1, k1, b)
    for i, rotations in enumerate(_SCHEDULE):
        for left, right in rotations:
            np.add(a, b, a)
            np.left_shift(b, left, scratch)
            np.right_shift(b, right, b)
            np.bitwise_or(b, scratch, b)
            np.bitwise_xor(b, a, b)
        np.add(a, schedule[(i + 1) % 3], a)
        np.add(b, schedule[(i + 2) % 3], b)
        np.add(b, i + 1, b)


@threefry2x32_p.abstract_eval
def _threefry_shape(*operands: ShapedArray) -> list[ShapedArray]:
    if any(x.dtype != _word for x in operands):
        raise DtypeError(f"threefry2x32 takes operands of uint32, got {', '.join(map(str, operands))}")
    shape = broadcast_shape("threefry2x32", [x.shape for x in operands])
    return [ShapedArray(shape, _word), ShapedArray(shape, _word)]


@threefry2x32_p.lowering
def _threefry_xla(hlo: Any, *operands: Any) -> list[Any]:
    return written_once(hlo, "threefry2x32", _write_hash, operands)


def _write_hash(hlo: Any, shape: Shape, k0: Any, k1: Any, x0: Any, x1: Any) -> list[Any]:
    """All rounds one after another: run in a third of the time of a loop over them, and compiled in half."""

    def constant(number: int) -> Any:
        return hlo.splat(number, shape, _word)

    k0, k1, x0, x1 = (hlo.spread(x, shape) for x in (k0, k1, x0, x1))
    k2 = hlo.same("stablehlo.xor", hlo.same("stablehlo.xor", k0, k1), constant(_PARITY))
    schedule = (k0, k1, k2)
    a, b = hlo.same("stablehlo.add", x0, k0), hlo.same("stablehlo.add", x1, k1)
    for i, rotations in enumerate(_SCHEDULE):
        for left, right in rotations:
            a = hlo.same("stablehlo.add", a, b)
            up = hlo.same("stablehlo.shift_left", b, constant(left))
            down = hlo.same("stablehlo.shift_right_logical", b, constant(right))
            b = hlo.same("stablehlo.xor", hlo.same("stablehlo.or", up, down), a)
        a = hlo.same("stablehlo.add", a, schedule[(i + 1) % 3])
        b = hlo.same("stablehlo.add", b, schedule[(i + 2) % 3])
        b = hlo.same("stablehlo.add", b, constant(i + 1))
    return [a, b]


# Typed keys --------------------------------------------------------------------------------------------------------


def random_wrap(words: Any, dtype: np.dtype[Any] = dtypes.key_dtype) -> Any:
    """Typed keys of shape ``S``, of a dtype, from uint32 words of shape ``S + (n,)``."""
    return random_wrap_p.bind(words, dtype=dtype)


def random_unwrap(keys: Any) -> Any:
    """The uint32 words of shape ``S + (n,)`` of typed keys of shape ``S``."""
    return random_unwrap_p.bind(keys)


random_wrap_p = Primitive("random_wrap", keeps_weak_type=False, cost=Cost.SIMPLE)
works_on_last(random_wrap_p, 1)
random_wrap_p.host_rule = lambda x, dtype: np.ascontiguousarray(x).view(np.dtype(dtype)).reshape(x.shape[:-1])
random_wrap_p.jvp_rule = jvp_zero(random_wrap_p)
random_unwrap_p = Primitive("random_unwrap", keeps_weak_type=False, cost=Cost.SIMPLE)
random_unwrap_p.host_rule = lambda x: x[dtypes.key_field(x.dtype)]
random_unwrap_p.jvp_rule = jvp_zero(random_unwrap_p)
_PART = np.dtype(np.float64)


@random_wrap_p.lowering
def _wrap_xla(hlo: Any, words: Any, *, dtype: np.dtype[Any]) -> Any:
    """Four words are the two parts of a complex number, which the compiler moves as it is."""
    shape = words.shape[:-1]
    if dtypes.key_words(dtype) == 2:
        return hlo.bitcast(words, shape, dtype)
    starts = [0] * len(shape)
    parts = hlo.bitcast(hlo.reshape(words, (*shape, 2, 2)), (*shape, 2), _PART)
    real, imag = (hlo.reshape(hlo.slice(parts, [*starts, i], [*shape, i + 1]), shape) for i in (0, 1))
    return hlo.op("stablehlo.complex", [real, imag], shape, dtype)


@random_unwrap_p.lowering
def _unwrap_xla(hlo: Any, keys: Any) -> Any:
    if dtypes.key_words(keys.dtype) == 2:
        return hlo.bitcast(keys, (*keys.shape, 2), _word)
    parts = [hlo.op(f"stablehlo.{part}", [keys], keys.shape, _PART) for part in ("real", "imag")]
    return hlo.concatenate([hlo.bitcast(x, (*keys.shape, 2), _word) for x in parts], len(keys.shape))


@random_wrap_p.abstract_eval
def _wrap_shape(words: ShapedArray, *, dtype: np.dtype[Any]) -> ShapedArray:
    count = dtypes.key_words(dtype)
    if words.dtype != _word or words.shape[-1:] != (count,):
        raise ShapeError(f"the words of keys must be uint32 of a shape that ends with {count}, got {words}")
    return ShapedArray(words.shape[:-1], dtype)


@random_unwrap_p.abstract_eval
def _unwrap_shape(keys: ShapedArray) -> ShapedArray:
    if not dtypes.is_key(keys.dtype):
        raise DtypeError(f"expected typed random keys, got {keys}")
    return ShapedArray((*keys.shape, dtypes.key_words(keys.dtype)), _word)


@random_unwrap_p.batch
def _unwrap_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    return random_unwrap(args[0]), dims[0]


# What is looked at to find keys that are used twice ------------------------------------------------------------------

random_use_p = Primitive("random_use", cost=Cost.SIMPLE, passes_nan=True)
random_clone_p = Primitive("random_clone", cost=Cost.SIMPLE)


def _unchanged(p: Primitive) -> None:
    """Make an operation one that returns typed keys as they are."""
    p.host_rule = lambda x, **params: x
    p.jvp_rule = jvp_zero(p)

    @p.abstract_eval
    def shape(keys: ShapedArray, **params: Any) -> ShapedArray:
        if not dtypes.is_key(keys.dtype):
            raise DtypeError(f"expected typed random keys, got {keys}")
        return keys

    p.batch(lambda axis, args, dims, **params: (p.bind(*args, **params), dims[0]))
    p.lowering(lambda hlo, keys, **params: keys)


_unchanged(random_use_p)
_unchanged(random_clone_p)


def random_use(keys: Any, name: str) -> Any:
    """Typed keys, said to be used by a function of ``random``."""
    return random_use_p.bind(keys, name=name)


def random_clone(keys: Any) -> Any:
    """Typed keys, said to be others than before."""
    return random_clone_p.bind(keys)


# Keys from seeds and from keys -------------------------------------------------------------------------------------


def words_at(words: Any, *index: int) -> tuple[Any, Any]:
    """The two words of one key of the default generator, from uint32 words of shape ``S + (2,)``."""
    if is_on_default_device(words):
        pair = words._value[index]
        return ArrayImpl(pair[0]), ArrayImpl(pair[1])
    for i in index:
        words = shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, 0), (0,))
    first, second = (shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, 0), (0,)) for i in range(2))
    return first, second


def random_seed(seed: Any) -> Any:
    """The words, of shape (2,), of the key of a seed: an array of integers without axes.

    The seed is split into its upper and lower 32 bits; one of 32 bits or fewer has no upper ones.
    """
    low = ops.convert_element_type(seed, _word)
    if seed.dtype.itemsize < 8:
        high: Any = shapes.full((), 0, _word)
    else:
        high = ops.convert_element_type(ops.shift_right_logical_p.bind(seed, 32), _word)
    return _stack(high, low)


def key_from(key: Words, words: Any) -> Words:
    """The key of some words, of shape (n,), of the same generator as another key."""
    return BlockKey(words, key.unsafe) if isinstance(key, BlockKey) else words_at(words)


def random_split(key: Words, shape: Shape) -> Any:
    """The words of new keys: an array of shape ``shape + (n,)``."""
    if isinstance(key, BlockKey):
        if key.unsafe:
            count = math.prod(shape)
            drawn = _block_bits(key, 32, (STRIDE * count, 4))
            return shapes.reshape(slicing.slice(drawn, (0, 0), drawn.shape, (STRIDE, 1)), (*shape, 4))
        return slicing.concatenate([random_split(half, shape) for half in _halves_of(key)], len(shape))
    if config.threefry_partitionable:
        return _stack(*threefry2x32(*key, 0, _counters(shape)))
    return random_bits(key, 32, (*shape, 2))


STRIDE = 10
"""Of the random blocks of an unsafe key, each so many there is one that is a new key."""


def _halves_of(key: BlockKey) -> list[tuple[Any, Any]]:
    """A key of four words as two keys of the default generator."""
    return [words_at(slicing.slice_in_dim(key.words, i, i + 2, 0)) for i in (0, 2)]


def lane_keys(key: Words, shape: Shape) -> tuple[Any, ...]:
    """The words of an array of new keys, each an array of ``shape``."""
    if not isinstance(key, BlockKey) and config.threefry_partitionable:
        return tuple(threefry2x32(*key, 0, _counters(shape)))
    return word_arrays(random_split(key, shape))


def word_arrays(words: Any) -> tuple[Any, ...]:
    """The words of keys, each an array of shape ``S``, from an array of shape ``S + (n,)``."""
    *shape, count = words.shape
    rank = len(shape)
    return tuple([shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, rank), (rank,)) for i in range(count)])


def subkeys(key: Words, count: int) -> list[Words]:
    """Some new keys, to draw from each of them."""
    words = random_split(key, (count,))
    if isinstance(key, BlockKey):
        return [
            BlockKey(shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, 0), (0,)), key.unsafe) for i in range(count)
        ]
    return [words_at(words, i) for i in range(count)]


def random_fold_in(key: Words, data: Any) -> Any:
    """The words, of shape (n,), of the key that a key and a uint32 number determine."""
    if isinstance(key, BlockKey):
        if key.unsafe:
            seeded = BlockKey(slicing.concatenate([random_seed(data)] * 2, 0), True)
            drawn = _block_bits(seeded, 32, (STRIDE, 4))
            last = shapes.squeeze(slicing.slice_in_dim(drawn, STRIDE - 1, STRIDE, 0), (0,))
            return ops.xor_p.bind(key.words, last)
        return slicing.concatenate([random_fold_in(half, data) for half in _halves_of(key)], 0)
    if _is_known(*key, data):
        k0, k1, x = (int(v._value) for v in (*key, data))
        return ArrayImpl(np.array(_hash_lanes(k0, k1, 0, x, 1), _word))
    return _stack(*threefry2x32(*key, 0, data))


def _stack(first: Any, second: Any) -> Any:
    """Two arrays of one shape, along a new last axis."""
    rank = len(first.shape)
    return slicing.concatenate([shapes.expand_dims(x, (rank,)) for x in (first, second)], rank)


# Bits --------------------------------------------------------------------------------------------------------------


def random_bits(key: Words, bit_width: int, shape: Shape) -> Any:
    """Random unsigned integers of 8, 16, 32 or 64 bits."""
    if isinstance(key, BlockKey):
        return _block_bits(key, bit_width, shape)
    size = math.prod(shape)
    if size * bit_width >= 1 << 37:
        raise ShapeError(
            f"cannot draw {size} numbers of {bit_width} bits from one key: it has 2**32 words; split it into several"
        )
    if config.threefry_partitionable:
        y0, y1 = threefry2x32(*key, 0, _counters(shape))
        return _join(y0, y1) if bit_width == 64 else _narrow(ops.xor_p.bind(y0, y1), bit_width)
    if bit_width == 64:
        return shapes.reshape(_join(*_halves(key, 2 * size)), shape)
    words = _words(key, -(-size * bit_width // 32))
    if bit_width < 32:
        shifts = ops.mul(_counters((32 // bit_width,)), bit_width)
        shifted = ops.shift_right_logical_p.bind(shapes.expand_dims(words, (1,)), shifts)
        words = shapes.reshape(_narrow(shifted, bit_width), (math.prod(shifted.shape),))
        words = slicing.slice(words, (0,), (size,)) if size != words.shape[0] else words
    return shapes.reshape(words, shape)


def _block_bits(key: BlockKey, bit_width: int, shape: Shape) -> Any:
    """The bits of XLA's own generator."""
    dtype = np.dtype(f"u{bit_width // 8}")
    return rng_bit_generator_p.bind(key.words, shape=shape, dtype=dtype, algorithm=RandomAlgorithm.RNG_DEFAULT)[1]


def _words(key: tuple[Any, Any], count: int) -> Any:
    """The first words of a key in the original layout."""
    if not is_symbolic(count) and count <= 2 * _FEW and _is_known(*key):
        return ArrayImpl(_few_words(int(key[0]._value), int(key[1]._value), count))
    words = slicing.concatenate(_halves(key, count), 0)
    return slicing.slice(words, (0,), (count,)) if count % 2 else words


def _is_known(*values: Any) -> bool:
    """Whether a result for these values is computed at once, whatever traces there are."""
    return state.trace.quick and all(map(is_on_default_device, values))


def _few_words(k0: int, k1: int, count: int) -> Any:
    """The first words of a key: :func:`_words` without its six operations on arrays."""
    half = -(-count // 2)
    ones, _ = _lanes(half)
    y0, y1 = _hash_lanes(k0 * ones, k1 * ones, *_few_counters(count), half)
    return _unpack(y0 | y1 << 64 * half, 2 * half)[:count]


@lru_cache
def _few_counters(count: int) -> tuple[int, int]:
    half = -(-count // 2)
    upper = np.arange(half, 2 * half, dtype=_word)
    return _pack(np.arange(half, dtype=_word), half), _pack(np.where(upper == count, 0, upper), half)


def _halves(key: tuple[Any, Any], count: int) -> list[Any]:
    """The first and the second half of a key's words in the original layout; an odd last counter goes with 0."""
    half = -(-count // 2)
    lower = _counters((half,))
    upper = ops.add(lower, half)
    upper = ops.where(ops.eq(upper, count), 0, upper) if count % 2 else upper
    return threefry2x32(*key, lower, upper)


def _counters(shape: Shape) -> Any:
    """0, 1, 2, ... in row-major order."""
    size = math.prod(shape)
    if state.trace.quick:
        return ArrayImpl(np.arange(size, dtype=_word).reshape(shape))
    return shapes.reshape(slicing.iota(_word, (size,), 0), shape)


def _join(high: Any, low: Any) -> Any:
    """64-bit numbers from their upper and lower words."""
    wide = np.dtype(np.uint64)
    high, low = (ops.convert_element_type(x, wide) for x in (high, low))
    return ops.or_p.bind(ops.shift_left_p.bind(high, 32), low)


def _narrow(words: Any, bit_width: int) -> Any:
    """The lowest bits of words."""
    return ops.convert_element_type(words, np.dtype(f"u{bit_width // 8}"))


# Floats ------------------------------------------------------------------------------------------------------------


def unit_of(bits: Any, dtype: np.dtype[Any]) -> Any:
    """Uniform numbers from 0 to 1: as many random bits as the mantissa of ``dtype`` holds, behind the point."""
    _, mask, scale = _fraction(dtype)
    kept = ops.and_p.bind(bits, mask)
    if dtype.itemsize > 1:
        return ops.mul(ops.convert_element_type(kept, dtype), scale)
    wide = ops.mul(ops.convert_element_type(kept, np.dtype(np.float32)), scale)
    return ops.convert_element_type(wide, dtype)


def fraction_bits(dtype: np.dtype[Any]) -> int:
    """How many random bits to draw for a uniform number."""
    return _fraction(dtype)[0]


@lru_cache
def _fraction(dtype: np.dtype[Any]) -> tuple[int, int, float]:
    """How many random bits to draw for a fraction, the mask of those that count, and the unit of the lowest one."""
    info = dtypes.finfo(dtype)
    if info.bits not in (8, 16, 32, 64):
        raise ArgumentError(f"there are random floats of 8, 16, 32 and 64 bits, and none of {dtypes.short_name(dtype)}")
    width = info.bits if info.nmant >= 8 else 8
    return width, (1 << width) - (1 << width - info.nmant), 2.0**-width


def above(u: Any, dtype: np.dtype[Any], low: float) -> Any:
    """Uniform numbers between a constant and 1, for uniform ones from 0 to 1."""
    bottom, span = _range(dtype, low)
    return ops.add(ops.mul(u, span), bottom)


@lru_cache
def _range(dtype: np.dtype[Any], low: float) -> tuple[float, float]:
    """A constant in ``dtype``, and its distance from 1 in ``dtype``."""
    bottom = np.asarray(low).astype(dtype)
    return float(bottom), float(np.asarray(1).astype(dtype) - bottom)


def normal_of(u: Any) -> Any:
    """Numbers of the standard normal distribution, for uniform ones from 0 to 1."""
    return ops.mul(math.sqrt(2), ops.erf_inv_p.bind(above(u, u.dtype, _next_to_minus_one(u.dtype))))


@lru_cache
def _next_to_minus_one(dtype: np.dtype[Any]) -> float:
    return float(np.nextafter(np.asarray(-1).astype(dtype), np.asarray(0).astype(dtype)))
