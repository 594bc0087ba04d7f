"""The random generators Threefry-4x32, Philox-2x32 and Philox-4x32.

Each is a keyed bijection of blocks of two or four 32-bit words (Salmon, Moraes, Dror and Shaw, *Parallel random
numbers: as easy as 1, 2, 3*, SC 2011, sections 4.2 and 4.3). Element ``n`` of an array of random bits is computed from
the block that the counter ``n`` is mapped to, as in JAX, and from no other.

A bijection is written once, in terms of an arithmetic of words: that of NumPy, or one that emits a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from pullback.core.errors import DtypeError
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.declare import batch_broadcasting
from pullback.primitives.large import compiled_from
from pullback.primitives.random.bits import Algorithm, counters, join, narrow, word_arrays
from pullback.primitives.random.philox import written_once
from pullback.primitives.rules import jvp_zero

Words = Sequence[Any]
_word, _wide = np.dtype(np.uint32), np.dtype(np.uint64)

# Arithmetic of words -----------------------------------------------------------------------------------------------


class _OfNumPy:
    """The arithmetic of NumPy's arrays of uint32."""

    add, xor = staticmethod(np.add), staticmethod(np.bitwise_xor)

    def number(self, value: int) -> Any:
        return _word.type(value)

    def rotated(self, x: Any, left: int) -> Any:
        return np.bitwise_or(np.left_shift(x, _word.type(left)), np.right_shift(x, _word.type(32 - left)))

    def product(self, factor: int, x: Any) -> tuple[Any, Any]:
        """Return the upper and the lower 32 bits of products."""
        wide = np.multiply(_wide.type(factor), x)
        return np.right_shift(wide, _wide.type(32)).astype(_word), wide.astype(_word)


class _OfPrograms:
    """The arithmetic of uint32 values of one shape, in a program that a builder writes."""

    def __init__(self, hlo: Any, shape: Shape) -> None:
        self.hlo, self.shape = hlo, shape

    def _both(self, name: str, x: Any, y: Any) -> Any:
        return self.hlo.elementwise(f"stablehlo.{name}", x, y)

    def add(self, x: Any, y: Any) -> Any:
        return self._both("add", x, y)

    def xor(self, x: Any, y: Any) -> Any:
        return self._both("xor", x, y)

    def number(self, value: int, dtype: np.dtype[Any] = _word) -> Any:
        return self.hlo.splat(value, self.shape, dtype)

    def rotated(self, x: Any, left: int) -> Any:
        up = self._both("shift_left", x, self.number(left))
        return self._both("or", up, self._both("shift_right_logical", x, self.number(32 - left)))

    def product(self, factor: int, x: Any) -> tuple[Any, Any]:
        """Return the upper and the lower 32 bits of products."""
        wide = self._both("multiply", self.hlo.convert(x, _wide), self.number(factor, _wide))
        high = self._both("shift_right_logical", wide, self.number(32, _wide))
        return self.hlo.convert(high, _word), self.hlo.convert(wide, _word)


# Bijections: of a key and a counter, by an arithmetic -----------------------------------------------------------------

_PHILOX_ROUNDS = 10
_PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)  # what is added to the words of a key between rounds
_THREEFRY_PARITY = 0x1BD11BDA
_THREEFRY_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))  # of 8 rounds
_THREEFRY_ROUNDS = 20


def _philox2x32(of: Any, key: Words, counter: Words) -> Words:
    (k,), (x, y) = key, counter
    for i in range(_PHILOX_ROUNDS):
        k = of.add(k, of.number(_PHILOX_STEPS[0])) if i else k
        high, low = of.product(0xD256D193, x)
        x, y = of.xor(of.xor(high, y), k), low
    return x, y


def _philox4x32(of: Any, key: Words, counter: Words) -> Words:
    (k, m), (a, b, c, d) = key, counter
    for i in range(_PHILOX_ROUNDS):
        k, m = [of.add(word, of.number(step)) if i else word for word, step in zip((k, m), _PHILOX_STEPS, strict=True)]
        (high_a, low_a), (high_c, low_c) = of.product(0xD2511F53, a), of.product(0xCD9E8D57, c)
        a, b, c, d = of.xor(of.xor(high_c, b), k), low_c, of.xor(of.xor(high_a, d), m), low_a
    return a, b, c, d


def _threefry4x32(of: Any, key: Words, counter: Words) -> Words:
    schedule = [*key, reduce(of.xor, key, of.number(_THREEFRY_PARITY))]
    a, b, c, d = map(of.add, counter, key)
    for i in range(_THREEFRY_ROUNDS):
        left, right = _THREEFRY_ROTATIONS[i % 8]
        a, c = of.add(a, b), of.add(c, d)
        # The words b and d change their roles after each round.
        b, d = of.xor(of.rotated(d, right), c), of.xor(of.rotated(b, left), a)
        if i % 4 == 3:
            j = i // 4 + 1
            a, b, c, d = (of.add(x, schedule[(j + n) % 5]) for n, x in enumerate((a, b, c, d)))
            d = of.add(d, of.number(j))
    return a, b, c, d


def _bijection(name: str, function: Callable[[Any, Words, Words], Words], key: int, counter: int) -> Primitive:
    """Declare a bijection: an operation on the words of keys and of counters, which broadcast against each other.

    Args:
      name: its name.
      function: ``function(arithmetic, key, counter) -> words``.
      key: the number of words of a key.
      counter: the number of words of a counter.
    """
    p = Primitive(name, multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE)
    p.jvp_rule = jvp_zero(p)
    p.batch_rule = batch_broadcasting(p)

    @p.abstract_eval
    def shape(*operands: ShapedArray) -> list[ShapedArray]:
        if len(operands) != key + counter or any(x.dtype != _word for x in operands):
            raise DtypeError(
                f"{name} takes {key + counter} operands of uint32: {key} of a key and {counter} of a counter; "
                f"got {', '.join(map(format, operands))}"
            )
        return [ShapedArray(broadcast_shape(name, [x.shape for x in operands]), _word)] * counter

    @p.host
    def host(*operands: Any) -> list[Any]:
        words = [np.asarray(x, _word) for x in operands]
        found = function(_OfNumPy(), words[:key], words[key:])
        shape = np.broadcast_shapes(*(x.shape for x in words))
        return [x if x.shape == shape else np.array(np.broadcast_to(x, shape)) for x in found]

    @p.lowering
    def lowering(hlo: Any, *operands: Any) -> list[Any]:
        return written_once(hlo, name, write, operands)

    def write(hlo: Any, shape: Shape, *operands: Any) -> list[Any]:
        words = [hlo.broadcast(x, shape) for x in operands]
        return list(function(_OfPrograms(hlo, shape), words[:key], words[key:]))

    compiled_from(p, 60_000)
    return p


threefry4x32_p = _bijection("threefry4x32", _threefry4x32, 4, 4)
philox2x32_p = _bijection("philox2x32", _philox2x32, 1, 2)
philox4x32_p = _bijection("philox4x32", _philox4x32, 2, 4)

# Generators --------------------------------------------------------------------------------------------------------


class Cipher(NamedTuple):
    """A random generator by a bijection of counters.

    A counter of 64 bits, its upper and its lower word, is the first half of a block of which bits are drawn, and the
    second half of one that becomes a key. The methods take keys as a tuple of arrays: the first words of all keys, the
    second words, and so on.

    Attributes:
      bijection: the operation.
      width: the number of words of a key.
      seeded: ``seeded(high, low) -> block``: the block whose first words are the key of a seed.
      pair: ``pair(block) -> high, low``: the words of numbers of 64 bits.
    """

    bijection: Primitive
    width: int
    seeded: Callable[[Any, Any], Words]
    pair: Callable[[Words], tuple[Any, Any]]

    def derived(self, key: Words, low: Any) -> tuple[Any, ...]:
        """Return the words of the keys that are number ``low`` among those derived from ``key``."""
        counter = (0, 0, 0, low) if self.bijection is not philox2x32_p else (0, low)
        return tuple(self.bijection.bind(*key, *counter)[: self.width])

    def integers(self, key: Words, low: Any, bit_width: int) -> Any:
        """Return the elements at the indices ``low`` of the random integers of ``bit_width`` bits of ``key``."""
        counter = (0, low, 0, 0) if self.bijection is not philox2x32_p else (0, low)
        block = self.bijection.bind(*key, *counter)
        return join(*self.pair(block)) if bit_width == 64 else narrow(reduce(ops.xor_p.bind, block), bit_width)

    def algorithm(self, name: str) -> Algorithm:
        """Return the generator as functions of arrays with all words of a key."""

        def seed(words: Any) -> Any:
            return _stacked(self.seeded(*word_arrays(words))[: self.width])

        def split(words: Any, shape: Shape) -> Any:
            return _stacked(self.derived(word_arrays(words), counters(shape)))

        def random_bits(words: Any, bit_width: int, shape: Shape) -> Any:
            return self.integers(word_arrays(words), counters(shape), bit_width)

        def fold_in(words: Any, number: Any) -> Any:
            return _stacked(self.derived(word_arrays(words), number))

        return Algorithm(name, seed, split, random_bits, fold_in)


def _stacked(words: Words) -> Any:
    """Stack arrays along a new last axis."""
    rank = len(words[0].shape)
    return slicing.concatenate([shapes.expand_dims(x, (rank,)) for x in words], rank)


def _first_two(block: Words) -> tuple[Any, Any]:
    return block[0], block[1]


def _all_four(block: Words) -> tuple[Any, Any]:
    return ops.xor_p.bind(block[0], block[2]), ops.xor_p.bind(block[1], block[3])


CIPHERS = {
    "threefry4x32": Cipher(threefry4x32_p, 4, lambda *seed: threefry4x32_p.bind(*seed, *[0] * 6), _all_four),
    "philox2x32": Cipher(philox2x32_p, 1, partial(philox2x32_p.bind, 0), _first_two),
    "philox4x32": Cipher(philox4x32_p, 2, lambda *seed: philox4x32_p.bind(0, 0, *seed, 0, 0), _first_two),
}
"""The generators, by name."""
