"""Random keys: made from seeds, split into new keys, and converted to words and back.

A key is a scalar array of a key dtype, or an array of two uint32 words, as before typed keys. A function draws the same
numbers from the same key every time: split a key to draw several times.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.array import (
    SCALARS,
    Array,
    ArrayImpl,
    ArrayLike,
    KeyArray,
    as_array,
    scalar_array,
)
from pullback.core.config import config
from pullback.core.elsewhere import is_here
from pullback.core.errors import (
    ArgumentError,
    IntegerRangeError,
    OperandError,
    PullbackError,
    UnsupportedArgumentError,
)
from pullback.numpy.promotion import shape_tuple
from pullback.primitives.arrays.slicing import concatenate
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.operands import made
from pullback.primitives.random.bits import (
    Algorithm,
    BlockKey,
    OwnKey,
    Words,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_use,
    random_wrap,
    word_arrays,
    words_at,
)
from pullback.primitives.random.ciphers import CIPHERS
from pullback.primitives.random.rejection import Generator

_word = np.dtype(np.uint32)


def key(seed: ArrayLike, *, impl: str | None = None, dtype: DTypeLike = None) -> Array:
    """The random key of a seed.

    Args:
      seed: an integer, or an array of integers without axes. Python's integers may have up to 64 bits; those
        above 32 are used only if 64-bit types are enabled.
      impl: the generator: ``"threefry2x32"``, ``"threefry4x32"``, ``"philox2x32"``, ``"philox4x32"``, ``"rbg"`` or
        ``"unsafe_rbg"``. By default the switch ``default_prng_impl`` names it.
      dtype: the dtype of the keys of a generator, as :func:`key_dtype` returns it, instead of ``impl``.

    Returns:
      A key: an array of shape () and the dtype of keys.

    Raises:
      OperandError: the seed is not an integer (a TypeError).
      ArgumentError: the seed has axes, or the generator is unknown (a ValueError).
      IntegerRangeError: the seed has more than 64 bits (an OverflowError).

    >>> from pullback import dtypes, random
    >>> random.key(0).shape, dtypes.issubdtype(random.key(0).dtype, dtypes.prng_key)
    ((), True)
    """
    kind = _dtype_of("key", impl, dtype)
    return random_wrap(_seeded("key", seed, kind), kind)


def key_dtype(impl_spec: str | None = None) -> np.dtype[Any]:
    """The dtype of the keys of a generator.

    Args:
      impl_spec: the name of the generator, as for :func:`key`.

    Returns:
      The dtype of arrays of keys, such as ``key<threefry2x32>``, which is none of NumPy's.

    Raises:
      ArgumentError: the generator is unknown (a ValueError).

    >>> from pullback import random
    >>> random.key_dtype() == random.key(0).dtype
    True
    """
    return _dtype_of("key_dtype", impl_spec)


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """The random key of a seed, as an array of its words; under ``enable_custom_prng`` it is :func:`key`.

    Args:
      seed: an integer, or an array of integers without axes.
      impl: the name of the generator, as for :func:`key`.

    Returns:
      An array of dtype uint32, of shape (2,); (1,) for ``"philox2x32"``, and (4,) for ``"threefry4x32"``, ``"rbg"`` and
      ``"unsafe_rbg"``.

    Raises:
      OperandError, ArgumentError, IntegerRangeError: as :func:`key` does.

    >>> from pullback import random
    >>> random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    kind = _dtype_of("PRNGKey", impl)
    words = _seeded("PRNGKey", seed, kind)
    return random_wrap(words, kind) if config.enable_custom_prng else made(words)


def key_data(keys: KeyArray) -> Array:
    """The words of keys.

    Args:
      keys: keys of any shape ``S``, or their words.

    Returns:
      An array of shape ``S + (n,)`` and dtype uint32; ``n`` is the number of words of a key, 2 by default.

    Raises:
      OperandError: the argument holds no keys (a TypeError).

    >>> from pullback import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    keys = _checked("key_data", keys)
    words: Any = keys
    return random_unwrap(keys) if _is_typed(keys) else words


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None, dtype: DTypeLike = None) -> Array:
    """Keys from their words.

    Args:
      key_bits_array: an array of shape ``S + (n,)`` and dtype uint32, with as many words as keys of the generator have.
      impl: the name of the generator, as for :func:`key`.
      dtype: the dtype of the keys of a generator, instead of ``impl``.

    Returns:
      Keys of shape ``S``.

    Raises:
      OperandError: the argument holds no words of keys (a TypeError).
      ArgumentError: the generator is unknown (a ValueError).

    >>> from pullback import random
    >>> random.key_data(random.wrap_key_data(random.PRNGKey(7)))
    Array([0, 7], dtype=uint32)
    """
    kind = _dtype_of("wrap_key_data", impl, dtype)
    words = _checked("wrap_key_data", key_bits_array, kind)
    if _is_typed(words):
        raise OperandError(
            f"wrap_key_data takes the uint32 words of keys, got an array of keys, of shape {words.shape}"
        )
    return random_wrap(words, kind)


def key_impl(keys: KeyArray) -> str:
    """The name of the generator of keys.

    Args:
      keys: keys of any shape, or their words.

    Returns:
      The name, such as ``"threefry2x32"``.

    Raises:
      OperandError: the argument holds no keys (a TypeError).

    >>> from pullback import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return _name_of(_checked("key_impl", keys))


def split(key: KeyArray, num: int | tuple[int, ...] = 2) -> Array:
    """New keys from a key, which should not be used again.

    Args:
      key: a key.
      num: how many, or the shape of an array of them.

    Returns:
      An array of ``num`` keys; words of keys, with one more axis, if ``key`` is an array of words.

    Raises:
      OperandError: ``key`` is not a key (a TypeError).
      ArgumentError: ``key`` is an array of keys: use ``vmap`` (a ValueError).
      ShapeError: ``num`` is not a shape.

    >>> from pullback import random
    >>> first, second = random.split(random.PRNGKey(0))
    >>> first, second
    (Array([4146024105,  967050713], dtype=uint32), Array([2718843009, 1272950319], dtype=uint32))
    """
    words = random_split(words_of("split", key), shape_tuple(num, "split"))
    return random_wrap(words, key.dtype) if _is_typed(key) else words


def fold_in(key: KeyArray, data: ArrayLike) -> Array:
    """A new key, computed from a key and a number.

    Args:
      key: a key.
      data: an integer from 0 to 2**32 - 1, or a scalar array of a number, which is converted to uint32.

    Returns:
      A key; words of a key if ``key`` is an array of words.

    Raises:
      OperandError: ``key`` is not a key, or ``data`` not a number (a TypeError).
      ArgumentError: either has axes: use ``vmap`` (a ValueError).
      IntegerRangeError: ``data`` is an integer out of range (an OverflowError).

    >>> from pullback import random
    >>> random.fold_in(random.PRNGKey(0), 1)
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    words = random_fold_in(words_of("fold_in", key, use=False), _folded(data))
    return random_wrap(words, key.dtype) if _is_typed(key) else words


def clone(key: KeyArray) -> Array:
    """The same key, which ``debug_key_reuse`` then allows to be used again.

    Args:
      key: an array of keys of any shape, or their words, uint32.

    Returns:
      An array of keys, of the shape and the dtype of ``key``.

    Raises:
      OperandError: the argument holds no keys (a TypeError).

    >>> from pullback import random
    >>> random.clone(random.PRNGKey(7))
    Array([0, 7], dtype=uint32)
    """
    keys = _checked("clone", key)
    return random_clone(keys) if config.debug_key_reuse and _is_typed(keys) else keys


# Arguments ---------------------------------------------------------------------------------------------------------


def words_of(name: str, key: Any, use: bool = True) -> Words:
    """Return the words of a single key, typed or not, in the form that the generators take.

    Args:
      name: the calling function, for errors.
      key: the key.
      use: whether the call uses the key up, which ``debug_key_reuse`` records.

    Raises:
      OperandError: ``key`` is not a key.
      ArgumentError: ``key`` is an array of keys.
    """
    keys = key if isinstance(key, ArrayImpl) else _checked(name, key)
    if config.debug_key_reuse and use and _is_typed(keys) and not keys.shape:
        keys = random_use(keys, name)
    if is_here(keys):
        value = keys._value
        if value.ndim == 0 and value.dtype == dtypes.key_dtype:
            return words_at(ArrayImpl(value["fry"]))
        keys = _checked(name, keys)
    typed = _is_typed(keys)
    generator = _name_of(keys)
    shape = keys.shape if typed else keys.shape[:-1]
    if shape:
        raise ArgumentError(
            f"{name} takes one key, got an array of keys of shape {shape}; use vmap to treat each of them"
        )
    words = random_unwrap(keys) if typed else keys
    if generator in ALGORITHMS:
        return OwnKey(words, False, ALGORITHMS[generator])
    return words_at(words) if generator == _DEFAULT else BlockKey(words, generator == "unsafe_rbg")


def scalar_words(key: Words) -> tuple[Any, ...]:
    """Return the words of a key as a tuple of scalars."""
    return word_arrays(key.words) if isinstance(key, BlockKey) else key


def generator_of(key: Words) -> Generator:
    """Return the generator that a key belongs to, with the layout of its random bits.

    Raises:
      UnsupportedArgumentError: a user has defined the generator (a NotImplementedError).
    """
    if isinstance(key, OwnKey):
        if key.algorithm.name in CIPHERS:
            return Generator(key.algorithm.name, False)
        raise UnsupportedArgumentError(
            f"keys of the generator {key.algorithm.name!r}, which define_prng_impl has made, cannot draw numbers by "
            "rejection, such as gamma and poisson: use random.key(seed) for these"
        )
    name = ("unsafe_rbg" if key.unsafe else "rbg") if isinstance(key, BlockKey) else _DEFAULT
    return Generator(name, config.threefry_partitionable)


def _is_typed(key: Any) -> bool:
    return dtypes.is_key(key.dtype)


def _checked(name: str, keys: Any, kind: Any = None) -> Any:
    """Return ``keys``, an argument of the function ``name``, as an array; raise unless it holds random keys.

    The array has typed keys, or uint32 words of keys of the key dtype ``kind``. If ``kind`` is None, it is the key
    dtype of the default generator.
    """
    width = dtypes.key_words(kind or dtypes.KEY_DTYPES[config.default_prng_impl])
    expected = (
        f"expected a random key, such as random.key(0), or its words as a uint32 array of shape ({width},), "
        "or with leading axes"
    )
    if type(keys) not in SCALARS:
        try:
            array = keys if isinstance(keys, Array) else as_array(keys)
        except PullbackError:
            pass
        else:
            if _is_typed(array) or (array.dtype == _word and array.shape[-1:] == (width,)):
                return array
            got = f"an array of shape {array.shape} and dtype {array.dtype}"
            raise OperandError(f"{name}: {expected}, got {got}")
    raise OperandError(f"{name}: {expected}, got {keys!r} of type {type(keys).__name__}")


ALGORITHMS: dict[str, Algorithm] = {name: cipher.algorithm(name) for name, cipher in CIPHERS.items()}
"""The generators by functions of the words of keys, by name; users define more of them."""


def define(algorithm: Algorithm, field: str, words: int) -> Any:
    """Register a random generator; return the dtype of its keys.

    Args:
      algorithm: the generator.
      field: the short name that printed programs show.
      words: the number of words of a key, 1, 2 or 4.

    Raises:
      ArgumentError: there is a generator of that name or short name (a ValueError).
    """
    dtype: Any = dtypes.KeyDtype(field, words)
    if algorithm.name in dtypes.KEY_DTYPES or np.dtype(dtype) in dtypes.SHOWN:
        raise ArgumentError(f"there is a random generator {algorithm.name!r} or {dtype} already: choose other names")
    ALGORITHMS[algorithm.name] = algorithm
    dtypes.KEY_DTYPES[algorithm.name] = dtypes.SHOWN[np.dtype(dtype)] = dtype
    _NAMES[dtype] = algorithm.name
    return dtype


_DEFAULT = "threefry2x32"
_NAMES = {dtype: name for name, dtype in dtypes.KEY_DTYPES.items()}


def _name_of(keys: Any) -> str:
    """Return the name of the random generator to which ``keys`` belong.

    The dtype of typed keys determines the generator. An array of words belongs to the default generator.
    """
    return _NAMES[keys.dtype] if _is_typed(keys) else config.default_prng_impl


def _dtype_of(name: str, impl: Any, dtype: Any = None) -> Any:
    """Return the key dtype that a user requested for the function ``name``; by default, that of the default generator.

    ``impl`` and ``dtype`` may each be the name of a generator, a key dtype, or None. Raise if both are set.
    """
    if impl is not None and dtype is not None:
        raise ArgumentError(f"{name} takes impl or dtype, but got both: {impl!r} and {dtype!r}")
    if not isinstance(impl, str) and impl in dtypes.KEY_DTYPES.values():
        impl, dtype = None, impl
    elif isinstance(dtype, str):
        impl, dtype = dtype, None
    if dtype is not None:
        if dtype not in dtypes.KEY_DTYPES.values():
            raise ArgumentError(f"{name}: dtype must be a key dtype, as random.key_dtype() returns it, got {dtype!r}")
        return dtype
    generator = config.default_prng_impl if impl is None else impl
    if not isinstance(generator, str) or generator not in dtypes.KEY_DTYPES:
        shown = ", ".join(map(repr, dtypes.KEY_DTYPES))
        raise ArgumentError(f"{name}: unknown random generator {impl!r}; the generators are {shown}")
    return dtypes.KEY_DTYPES[generator]


def _integer(x: Any) -> int | None:
    """Return ``x`` as a Python integer; None if ``x`` is an array, or is not an integer."""
    if isinstance(x, Array) or not hasattr(type(x), "__index__") or isinstance(x, (np.ndarray, np.generic)):
        return None
    return operator.index(x)


def _scalar(name: str, what: str, x: Any) -> Any:
    """Convert ``x`` to a scalar array; raise unless it is a number or a scalar.

    ``name`` is the function, and ``what`` the argument, for errors.
    """
    try:
        array: Any = as_array(x)
    except PullbackError:
        raise OperandError(f"{name}: {what} must be an integer, got {x!r} of type {type(x).__name__}") from None
    if array.shape:
        raise ArgumentError(
            f"{name}: {what} must be a scalar, got an array of shape {array.shape}; use vmap to treat each element"
        )
    return array


def _seeded(name: str, seed: Any, kind: Any) -> Any:
    """Return the words of the key of dtype ``kind`` for a seed.

    A key of Threefry-2x32 has two words. Keys of XLA's generators have the same two words twice, and those of a cipher
    hash them. A user's generator takes the seed itself.
    """
    generator = _NAMES[kind]
    if generator in ALGORITHMS and generator not in CIPHERS:
        return ALGORITHMS[generator].seed(_scalar(name, "the seed", seed))
    words = _default_seeded(name, seed)
    if generator in CIPHERS:
        return ALGORITHMS[generator].seed(words)
    return words if dtypes.key_words(kind) == 2 else concatenate([words, words], 0)


def _default_seeded(name: str, seed: Any) -> Any:
    number, offset = _integer(seed), config.random_seed_offset
    if number is not None:
        number += offset
        if not -(1 << 63) <= number < 1 << 63:
            raise IntegerRangeError(f"{name}: the seed {number} does not fit into 64 bits (from -2**63 to 2**63 - 1)")
        high = number >> 32 if dtypes.default_int().itemsize == 8 else 0
        return ArrayImpl(np.array((high & 0xFFFFFFFF, number & 0xFFFFFFFF), _word))
    array = _scalar(name, "the seed", seed)
    if not dtypes.is_integer(array.dtype):
        raise OperandError(f"{name}: the seed must be an integer, got {dtypes.short_name(array.dtype)}: {seed!r}")
    return random_seed(array + offset if offset else array)


def _folded(data: Any) -> Any:
    """Convert ``data``, the number that is folded into a key, to a uint32 scalar; raise unless it is an integer."""
    number = _integer(data)
    if number is not None:
        if not 0 <= number < 1 << 32:
            raise IntegerRangeError(f"fold_in: data must be from 0 to 2**32 - 1, got {number}")
        return scalar_array(_word.type(number))
    array = _scalar("fold_in", "data", data)
    if _is_typed(array) or dtypes.is_complex(array.dtype):
        raise OperandError(f"fold_in: data must be an integer, got {dtypes.short_name(array.dtype)}")
    return convert_element_type(array, _word)
