"""Random bits from the counter-based generator Threefry-2x32, and random keys.

The generator is a keyed bijection of pairs of 32-bit words (Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as
easy as 1, 2, 3*, SC 2011, section 4.2): the n-th pair of random words is the image of the n-th counter, so that each
pair is computed independently, and a key never changes.

The layout of counters over an array follows one of JAX's two conventions. In the *original* one the words 0, 1, ..., n
- 1 of an array are n counters, and counter i is hashed together with counter i + n/2: the first words of the pairs are
the first half of the results, and the second words the second half. In the *partitionable* one element i is hashed from
the 64-bit counter i alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host.pending import hold
from pullback.core import dtypes
from pullback.core.array import ArrayImpl
from pullback.core.config import config
from pullback.core.dims import is_symbolic
from pullback.core.elsewhere import is_here
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
from pullback.primitives.rules import axis_kept, jvp_zero


@dataclass(frozen=True, slots=True)
class BlockKey:
    """A key of ``rbg`` or ``unsafe_rbg``, the random algorithms whose bits XLA's generator draws.

    Attributes:
      words: the words of the key, uint32 of shape (4,).
      unsafe: whether the algorithm is ``unsafe_rbg``: new keys are bits drawn from the key, instead of hashes.
    """

    words: Any
    unsafe: bool


class Algorithm(NamedTuple):
    """A random generator by functions of the words of a key, uint32 of shape (1,), (2,) or (4,).

    Attributes:
      name: its name, for ``random.key(seed, impl=name)``.
      seed: ``seed(number) -> words``.
      split: ``split(words, shape) -> words`` of shape ``shape + (n,)``.
      random_bits: ``random_bits(words, bit_width, shape)`` returns unsigned integers.
      fold_in: ``fold_in(words, number) -> words``.
    """

    name: str
    seed: Callable[[Any], Any]
    split: Callable[[Any, Shape], Any]
    random_bits: Callable[[Any, int, Shape], Any]
    fold_in: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class OwnKey(BlockKey):
    """A key of a generator by functions."""

    algorithm: Algorithm


Words = tuple[Any, Any] | BlockKey
"""A key: two uint32 scalars, the words of a key of the default generator, or a key of another generator."""

_word = np.dtype(np.uint32)

# The hash ----------------------------------------------------------------------------------------------------------


def threefry2x32(k0: Any, k1: Any, x0: Any, x1: Any) -> list[Any]:
    """Hash counters by the Threefry cipher: return the two random words for the key ``k0, k1`` and counter ``x0, x1``.

    All operands broadcast against each other.
    """
    return threefry2x32_p.bind(k0, k1, x0, x1)  # type: ignore[no-any-return]


threefry2x32_p = Primitive("threefry2x32", multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE)
threefry2x32_p.jvp_rule = jvp_zero(threefry2x32_p)
threefry2x32_p.batch_rule = batch_broadcasting(threefry2x32_p)

_ODD, _EVEN = (tuple((r, 32 - r) for r in rotations) for rotations in ((13, 15, 26, 6), (17, 29, 16, 24)))
_SCHEDULE = (_ODD, _EVEN, _ODD, _EVEN, _ODD)  # the rotations of 20 rounds: to the left, and 32 minus that.
_PARITY = 0x1BD11BDA
_FEW = 256  # Up to this many counters, Python's integers are faster than 112 operations of NumPy.
_CHUNK = 16384  # This many counters stay in the CPU's cache.


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
    """Hash ``size`` counters by the Threefry cipher; return two arrays, of the first and second word of each.

    ``operands`` holds the two words of the keys and the two words of the counters. For speed, they are packed into
    Python integers.
    """
    k0, k1, x0, x1 = [_pack(x, size) for x in operands]
    y0, y1 = _hash_lanes(k0, k1, x0, x1, size)
    return _unpack(y0, size), _unpack(y1, size)


def _hash_lanes(k0: int, k1: int, a: int, b: int, size: int) -> tuple[int, int]:
    """Hash ``size`` counters, packed into Python integers; return the two random words, packed in the same way.

    Each number of 32 bits has a lane of 64 bits. ``k0, k1`` are the key words, and ``a, b`` the counter words. The
    overflow of a rotation or sum reaches only the upper halves of lanes, and is masked out.
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
    """Return two integers of ``size`` lanes of 64 bits each: with 1 in every lane, and with 2**32 - 1 in every lane."""
    ones = sum(1 << 64 * i for i in range(size))
    return ones, ones * 0xFFFFFFFF


def _pack(x: Any, size: int) -> int:
    return int(x) * _lanes(size)[0] if x.ndim == 0 else int.from_bytes(x.astype("<u8").tobytes(), "little")


def _unpack(x: int, size: int) -> Any:
    return np.frombuffer(x.to_bytes(8 * size, "little"), "<u8").astype(_word)


def _hash_many(operands: Sequence[Any], size: int) -> tuple[Any, Any]:
    """Hash ``size`` counters by the Threefry cipher; return two arrays, of the first and second word of each.

    ``operands`` holds the two words of the keys and the two words of the counters. The work is done in chunks, which
    stay in the cache.
    """
    y0, y1 = np.empty(size, _word), np.empty(size, _word)
    scratch = np.empty(_CHUNK, _word)
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        piece = [x if x.ndim == 0 else x[start:stop] for x in operands]
        _hash_piece(piece, y0[start:stop], y1[start:stop], scratch[: stop - start])
    return y0, y1


def _hash_piece(operands: Sequence[Any], a: Any, b: Any, scratch: Any) -> None:
    """Hash a chunk of counters by the Threefry cipher; write the two words of each to the arrays ``a`` and ``b``.

    ``operands`` holds the two words of the keys and the two words of the counters; ``scratch`` is working memory.
    """
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
def _threefry_abstract_eval(*operands: ShapedArray) -> list[ShapedArray]:
    if any(x.dtype != _word for x in operands):
        raise DtypeError(f"threefry2x32 takes operands of uint32, got {', '.join(map(format, operands))}")
    shape = broadcast_shape("threefry2x32", [x.shape for x in operands])
    return [ShapedArray(shape, _word), ShapedArray(shape, _word)]


@threefry2x32_p.lowering
def _threefry_lowering(hlo: Any, *operands: Any) -> list[Any]:
    return written_once(hlo, "threefry2x32", _write_hash, operands)


def _write_hash(hlo: Any, shape: Shape, k0: Any, k1: Any, x0: Any, x1: Any) -> list[Any]:
    """Emit the Threefry hash of the counters ``x0, x1`` with the keys ``k0, k1``; return the two words of the hash.

    The words have the shape ``shape``. All rounds are unrolled: they run in a third of the time of a loop, and compile
    in half of the time.
    """

    def constant(number: int) -> Any:
        return hlo.splat(number, shape, _word)

    k0, k1, x0, x1 = (hlo.broadcast(x, shape) for x in (k0, k1, x0, x1))
    k2 = hlo.elementwise("stablehlo.xor", hlo.elementwise("stablehlo.xor", k0, k1), constant(_PARITY))
    schedule = (k0, k1, k2)
    a, b = hlo.elementwise("stablehlo.add", x0, k0), hlo.elementwise("stablehlo.add", x1, k1)
    for i, rotations in enumerate(_SCHEDULE):
        for left, right in rotations:
            a = hlo.elementwise("stablehlo.add", a, b)
            up = hlo.elementwise("stablehlo.shift_left", b, constant(left))
            down = hlo.elementwise("stablehlo.shift_right_logical", b, constant(right))
            b = hlo.elementwise("stablehlo.xor", hlo.elementwise("stablehlo.or", up, down), a)
        a = hlo.elementwise("stablehlo.add", a, schedule[(i + 1) % 3])
        b = hlo.elementwise("stablehlo.add", b, schedule[(i + 2) % 3])
        b = hlo.elementwise("stablehlo.add", b, constant(i + 1))
    return [a, b]


# Typed keys --------------------------------------------------------------------------------------------------------


def random_wrap(words: Any, dtype: np.dtype[Any] = dtypes.key_dtype) -> Any:
    """Make typed keys of ``dtype``, of shape ``S``, from their uint32 words, of shape ``S + (n,)``."""
    return random_wrap_p.bind(words, dtype=dtype)


def random_unwrap(keys: Any) -> Any:
    """Return the uint32 words, of shape ``S + (n,)``, of typed keys of shape ``S``."""
    return random_unwrap_p.bind(keys)


random_wrap_p = Primitive("random_wrap", keeps_weak_type=False, cost=Cost.SIMPLE)
works_on_last(random_wrap_p, 1)
random_wrap_p.host_rule = lambda x, dtype: np.ascontiguousarray(x).view(np.dtype(dtype)).reshape(x.shape[:-1])
random_wrap_p.jvp_rule = jvp_zero(random_wrap_p)
random_unwrap_p = Primitive("random_unwrap", keeps_weak_type=False, cost=Cost.SIMPLE)
random_unwrap_p.host_rule = lambda x: x[dtypes.key_field(x.dtype)]
random_unwrap_p.jvp_rule = jvp_zero(random_unwrap_p)
axis_kept(random_unwrap_p)(lambda axis, operand, keys: axis)
_HALF_KEY = np.dtype(np.float64)


@random_wrap_p.lowering
def _wrap_lowering(hlo: Any, words: Any, *, dtype: np.dtype[Any]) -> Any:
    """Emit the conversion of words to keys: two words become a 64-bit integer, four the bits of a complex number.

    A key of one word is the word itself.
    """
    shape = words.shape[:-1]
    count = dtypes.key_words(dtype)
    if count <= 2:
        return hlo.bitcast(words if count == 2 else hlo.reshape(words, shape), shape, dtype)
    starts = [0] * len(shape)
    halves = hlo.bitcast(hlo.reshape(words, (*shape, 2, 2)), (*shape, 2), _HALF_KEY)
    real, imag = (hlo.reshape(hlo.slice(halves, [*starts, i], [*shape, i + 1]), shape) for i in (0, 1))
    return hlo.op("stablehlo.complex", [real, imag], shape, dtype)


@random_unwrap_p.lowering
def _unwrap_lowering(hlo: Any, keys: Any) -> Any:
    count = dtypes.key_words(keys.dtype)
    if count <= 2:
        return hlo.reshape(hlo.bitcast(keys, keys.shape + (2,) * (count - 1), _word), (*keys.shape, count))
    halves = [hlo.op(f"stablehlo.{part}", [keys], keys.shape, _HALF_KEY) for part in ("real", "imag")]
    return hlo.concatenate([hlo.bitcast(x, (*keys.shape, 2), _word) for x in halves], len(keys.shape))


@random_wrap_p.abstract_eval
def _wrap_abstract_eval(words: ShapedArray, *, dtype: np.dtype[Any]) -> ShapedArray:
    count = dtypes.key_words(dtype)
    if words.dtype != _word or words.shape[-1:] != (count,):
        raise ShapeError(f"the words of keys must be uint32 of a shape that ends with {count}, got {words}")
    return ShapedArray(words.shape[:-1], dtype)


@random_unwrap_p.abstract_eval
def _unwrap_abstract_eval(keys: ShapedArray) -> ShapedArray:
    if not dtypes.is_key(keys.dtype):
        raise DtypeError(f"expected typed random keys, got {keys}")
    return ShapedArray((*keys.shape, dtypes.key_words(keys.dtype)), _word)


@random_unwrap_p.batch
def _unwrap_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    return random_unwrap(args[0]), dims[0]


# Marks for the check that keys are not reused ----------------------------------------------------------------------

random_use_p = Primitive("random_use", cost=Cost.SIMPLE, passes_nan=True)
random_clone_p = Primitive("random_clone", cost=Cost.SIMPLE)


def _unchanged(p: Primitive) -> None:
    """Register the rules of the primitive ``p``, which takes typed keys and returns them unchanged."""
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
    """Return typed keys unchanged; for the check of key reuse, the program records that ``random.<name>`` used them."""
    return random_use_p.bind(keys, name=name)


def random_clone(keys: Any) -> Any:
    """Return typed keys unchanged; for the check of key reuse, the program records them as new keys."""
    return random_clone_p.bind(keys)


# Keys from seeds and from keys -------------------------------------------------------------------------------------


def words_at(words: Any, *index: int) -> tuple[Any, Any]:
    """Return the two words of one key of the default generator, as two arrays without axes.

    ``words`` holds the words of keys, of shape ``S + (2,)``, and ``index`` selects a key.
    """
    if is_here(words):
        pair = words._value[index]
        return ArrayImpl(pair[0]), ArrayImpl(pair[1])
    for i in index:
        words = shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, 0), (0,))
    first, second = (shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, 0), (0,)) for i in range(2))
    return first, second


def random_seed(seed: Any) -> Any:
    """Return the two words of the key for ``seed``, an integer array without axes: its upper and its lower 32 bits.

    The result has shape (2,). For a seed of at most 32 bits the upper word is zero.
    """
    low = ops.convert_element_type(seed, _word)
    if seed.dtype.itemsize < 8:
        high: Any = shapes.full((), 0, _word)
    else:
        high = ops.convert_element_type(ops.shift_right_logical_p.bind(seed, 32), _word)
    return _stack(high, low)


def key_from(key: Words, words: Any) -> Words:
    """Make a key for drawing, of the same generator as ``key``, from its words, of shape (n,)."""
    return replace(key, words=words) if isinstance(key, BlockKey) else words_at(words)


def random_split(key: Words, shape: Shape) -> Any:
    """Split ``key``: return the words of new keys, in an array of shape ``shape + (n,)``, with n words for each key."""
    if isinstance(key, OwnKey):
        return key.algorithm.split(key.words, shape)
    if isinstance(key, BlockKey):
        if key.unsafe:
            count = math.prod(shape)
            drawn = _block_bits(key, 32, (STRIDE * count, 4))
            return shapes.reshape(slicing.slice(drawn, (0, 0), drawn.shape, (STRIDE, 1)), (*shape, 4))
        return slicing.concatenate([random_split(half, shape) for half in _halves_of(key)], len(shape))
    if config.threefry_partitionable:
        return _stack(*threefry2x32(*key, 0, counters(shape)))
    return random_bits(key, 32, (*shape, 2))


STRIDE = 10
"""The number of random blocks of an unsafe key for each new key."""


def _halves_of(key: BlockKey) -> list[tuple[Any, Any]]:
    """Return two keys of the default generator: the first two and the last two words of ``key``."""
    return [words_at(slicing.slice_in_dim(key.words, i, i + 2, 0)) for i in (0, 2)]


def lane_keys(key: Words, shape: Shape) -> tuple[Any, ...]:
    """Split ``key`` into keys of ``shape``; return a tuple with an array of ``shape`` for each word of a key."""
    if not isinstance(key, BlockKey) and config.threefry_partitionable:
        return tuple(threefry2x32(*key, 0, counters(shape)))
    return word_arrays(random_split(key, shape))


def word_arrays(words: Any) -> tuple[Any, ...]:
    """Split the words of keys, of shape ``S + (n,)``, into n arrays of shape ``S``."""
    *shape, count = words.shape
    rank = len(shape)
    return tuple([shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, rank), (rank,)) for i in range(count)])


def subkeys(key: Words, count: int) -> list[Words]:
    """Split ``key`` into ``count`` new keys, and return them in the form in which numbers are drawn from them."""
    words = random_split(key, (count,))
    if isinstance(key, BlockKey):
        return [
            replace(key, words=shapes.squeeze(slicing.slice_in_dim(words, i, i + 1, 0), (0,))) for i in range(count)
        ]
    return [words_at(words, i) for i in range(count)]


def random_fold_in(key: Words, data: Any) -> Any:
    """Return the words, of shape (n,), of a new key that is derived from ``key`` and the uint32 number ``data``."""
    if isinstance(key, OwnKey):
        return key.algorithm.fold_in(key.words, data)
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
    """Stack two arrays along a new last axis."""
    rank = len(first.shape)
    return slicing.concatenate([shapes.expand_dims(x, (rank,)) for x in (first, second)], rank)


# Bits --------------------------------------------------------------------------------------------------------------


def random_bits(key: Words, bit_width: int, shape: Shape) -> Any:
    """Draw an array of random unsigned integers of ``bit_width`` bits: 8, 16, 32 or 64."""
    if isinstance(key, BlockKey):
        return _block_bits(key, bit_width, shape)
    size = math.prod(shape)
    if size * bit_width >= 1 << 37:
        raise ShapeError(
            f"cannot draw {size} numbers of {bit_width} bits from one key, which has 2**32 words; split the key"
        )
    return hold(_threefry_bits(key, bit_width, shape, size))


def _threefry_bits(key: tuple[Any, Any], bit_width: int, shape: Shape, size: int) -> Any:
    """Draw ``size`` random unsigned integers of ``bit_width`` bits by Threefry, as an array of a shape."""
    if config.threefry_partitionable:
        y0, y1 = threefry2x32(*key, 0, counters(shape))
        return join(y0, y1) if bit_width == 64 else narrow(ops.xor_p.bind(y0, y1), bit_width)
    if bit_width == 64:
        return shapes.reshape(join(*_halves(key, 2 * size)), shape)
    words = _words(key, -(-size * bit_width // 32))
    if bit_width < 32:
        shifts = ops.mul(counters((32 // bit_width,)), bit_width)
        shifted = ops.shift_right_logical_p.bind(shapes.expand_dims(words, (1,)), shifts)
        words = shapes.reshape(narrow(shifted, bit_width), (math.prod(shifted.shape),))
        words = slicing.slice(words, (0,), (size,)) if size != words.shape[0] else words
    return shapes.reshape(words, shape)


def _block_bits(key: BlockKey, bit_width: int, shape: Shape) -> Any:
    """Draw an array of random unsigned integers of ``bit_width`` bits by XLA's generator."""
    if isinstance(key, OwnKey):
        return key.algorithm.random_bits(key.words, bit_width, shape)
    dtype = np.dtype(f"u{bit_width // 8}")
    return rng_bit_generator_p.bind(key.words, shape=shape, dtype=dtype, algorithm=RandomAlgorithm.RNG_DEFAULT)[1]


def _words(key: tuple[Any, Any], count: int) -> Any:
    """Return the first ``count`` random words of a key, as JAX draws them without ``jax_threefry_partitionable``."""
    if not is_symbolic(count) and count <= 2 * _FEW and _is_known(*key):
        return ArrayImpl(_few_words(int(key[0]._value), int(key[1]._value), count))
    words = slicing.concatenate(_halves(key, count), 0)
    return slicing.slice(words, (0,), (count,)) if count % 2 else words


def _is_known(*values: Any) -> bool:
    """Return whether evaluation is eager, and all ``values`` are concrete arrays on the default device."""
    return state.trace.quick and all(map(is_here, values))


def _few_words(k0: int, k1: int, count: int) -> Any:
    """Return the first ``count`` random words of the key ``k0, k1``.

    The arithmetic is on Python integers, which for few words is faster than six array operations.
    """
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
    """Return the first and the second half of ``count`` random words of a key.

    They are the words that JAX draws without ``jax_threefry_partitionable``. With n words in a half, the words i and n
    + i are the hash of the counters i and n + i. If ``count`` is odd, the second half has an extra word, whose counter
    is 0.
    """
    half = -(-count // 2)
    lower = counters((half,))
    upper = ops.add(lower, half)
    upper = ops.where(ops.eq(upper, count), 0, upper) if count % 2 else upper
    return threefry2x32(*key, lower, upper)


def counters(shape: Shape) -> Any:
    """An array of ``shape`` that counts 0, 1, 2, ... in row-major order."""
    size = math.prod(shape)
    if state.trace.quick:
        return ArrayImpl(np.arange(size, dtype=_word).reshape(shape))
    return shapes.reshape(slicing.iota(_word, (size,), 0), shape)


def join(high: Any, low: Any) -> Any:
    """Join upper and lower words of 32 bits into integers of 64 bits."""
    wide = np.dtype(np.uint64)
    high, low = (ops.convert_element_type(x, wide) for x in (high, low))
    return ops.or_p.bind(ops.shift_left_p.bind(high, 32), low)


def narrow(words: Any, bit_width: int) -> Any:
    """Truncate words to their lowest ``bit_width`` bits."""
    return ops.convert_element_type(words, np.dtype(f"u{bit_width // 8}"))


# Floats ------------------------------------------------------------------------------------------------------------


def unit_of(bits: Any, dtype: np.dtype[Any]) -> Any:
    """Convert random ``bits`` to uniform numbers of ``dtype`` from 0 (included) to 1 (excluded).

    The upper bits, as many as the mantissa of ``dtype`` holds, are the digits of a binary fraction.
    """
    _, mask, scale = _fraction(dtype)
    fraction = ops.and_p.bind(bits, mask)
    if dtype.itemsize > 1:
        return ops.mul(ops.convert_element_type(fraction, dtype), scale)
    wide = ops.mul(ops.convert_element_type(fraction, np.dtype(np.float32)), scale)
    return ops.convert_element_type(wide, dtype)


def fraction_bits(dtype: np.dtype[Any]) -> int:
    """Return how many random bits to draw for a uniform number of ``dtype``."""
    return _fraction(dtype)[0]


@lru_cache
def _fraction(dtype: np.dtype[Any]) -> tuple[int, int, float]:
    """Return how to make a uniform number of ``dtype`` from random bits.

    Returns:
      The number of bits to draw, the mask of the bits to use, and the value of the lowest of the drawn bits.
    """
    info = dtypes.finfo(dtype)
    if info.bits not in (8, 16, 32, 64):
        raise ArgumentError(f"random floats have 8, 16, 32 or 64 bits, got {dtypes.short_name(dtype)}")
    width = info.bits if info.nmant >= 8 else 8
    return width, (1 << width) - (1 << width - info.nmant), 2.0**-width


def above(u: Any, dtype: np.dtype[Any], low: float) -> Any:
    """Scale uniform numbers ``u`` from 0 to 1 to the interval from ``low`` to 1, in ``dtype``."""
    bottom, span = _range(dtype, low)
    return ops.add(ops.mul(u, span), bottom)


@lru_cache
def _range(dtype: np.dtype[Any], low: float) -> tuple[float, float]:
    """Return two numbers: ``low`` rounded to ``dtype``, and the distance from there to 1, computed in ``dtype``."""
    bottom = np.asarray(low).astype(dtype)
    return float(bottom), float(np.asarray(1).astype(dtype) - bottom)


def normal_of(u: Any) -> Any:
    """Map uniform numbers from 0 to 1 to standard normal numbers."""
    return ops.mul(math.sqrt(2), ops.erf_inv_p.bind(above(u, u.dtype, _next_to_minus_one(u.dtype))))


@lru_cache
def _next_to_minus_one(dtype: np.dtype[Any]) -> float:
    return float(np.nextafter(np.asarray(-1).astype(dtype), np.asarray(0).astype(dtype)))
