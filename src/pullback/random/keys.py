"""Random keys: what every random function takes, and how to get more of them.

A key is an array without axes of the dtype of keys, made from a seed, or (as before there were typed keys) an
array of two uint32 words. A function draws the same numbers from the same key every time: split a key to draw
several times.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, is_at_home
from pullback.core.config import config
from pullback.core.errors import ArgumentError, OperandError, PullbackError
from pullback.numpy.promotion import shape_tuple
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.random_bits import (
    Words,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
    words_at,
)

_IMPLEMENTATION = "threefry2x32"
_word = np.dtype(np.uint32)


def key(seed: Any, *, impl: str | None = None, dtype: Any = None) -> Any:
    """The random key of a seed.

    Args:
      seed: an integer, or an array of integers without axes. Python's integers may have up to 64 bits; those
        above 32 count only where 64-bit types are enabled.
      impl: the generator; there is one, ``"threefry2x32"``.
      dtype: the dtype of the keys of a generator, as :func:`key_dtype` returns it, in place of ``impl``.

    Returns:
      A key: an array of shape () and the dtype of keys.

    Raises:
      OperandError: the seed is not an integer (a TypeError).
      ArgumentError: the seed has axes, or there is no such generator (a ValueError).
      OverflowError: the seed has more than 64 bits.

    >>> key(0).shape, dtypes.issubdtype(key(0).dtype, dtypes.prng_key)
    ((), True)
    """
    return random_wrap(_seeded("key", seed, _implementation("key", impl, dtype)))


def key_dtype(impl_spec: str | None = None) -> Any:
    """The dtype of the keys of a generator.

    Args:
      impl_spec: the generator; there is one, ``"threefry2x32"``.

    Raises:
      ArgumentError: there is no such generator (a ValueError).

    >>> key_dtype() == key(0).dtype
    True
    """
    _check_implementation(impl_spec)
    return dtypes.key_dtype


def PRNGKey(seed: Any, *, impl: str | None = None) -> Any:
    """The random key of a seed, as an array of two words; under ``enable_custom_prng`` it is :func:`key`.

    Args:
      seed: an integer, or an array of integers without axes.
      impl: the generator; there is one, ``"threefry2x32"``.

    Returns:
      An array of shape (2,) and dtype uint32.

    Raises:
      OperandError, ArgumentError, OverflowError: as :func:`key` does.

    >>> PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    words = _seeded("PRNGKey", seed, impl)
    return random_wrap(words) if config.enable_custom_prng else words


def key_data(keys: Any) -> Any:
    """The words of keys.

    Args:
      keys: keys of any shape ``S``, or words already.

    Returns:
      An array of shape ``S + (2,)`` and dtype uint32.

    Raises:
      OperandError: these are no keys (a TypeError).

    >>> key_data(key(7))
    Array([0, 7], dtype=uint32)
    """
    keys = _checked("key_data", keys)
    return random_unwrap(keys) if _is_typed(keys) else keys


def wrap_key_data(key_bits_array: Any, *, impl: str | None = None, dtype: Any = None) -> Any:
    """Keys from their words.

    Args:
      key_bits_array: an array of shape ``S + (2,)`` and dtype uint32.
      impl: the generator; there is one, ``"threefry2x32"``.
      dtype: the dtype of the keys of a generator, in place of ``impl``.

    Returns:
      Keys of shape ``S``.

    Raises:
      OperandError: these are no words of keys (a TypeError).
      ArgumentError: there is no such generator (a ValueError).

    >>> key_data(wrap_key_data(PRNGKey(7)))
    Array([0, 7], dtype=uint32)
    """
    _implementation("wrap_key_data", impl, dtype)
    words = _checked("wrap_key_data", key_bits_array)
    if _is_typed(words):
        raise OperandError(f"wrap_key_data takes the uint32 words of keys, got keys already, of shape {words.shape}")
    return random_wrap(words)


def key_impl(keys: Any) -> str:
    """The name of the generator of keys.

    Args:
      keys: keys of any shape, or their words.

    Raises:
      OperandError: these are no keys (a TypeError).

    >>> key_impl(key(0))
    'threefry2x32'
    """
    _checked("key_impl", keys)
    return _IMPLEMENTATION


def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """New keys from a key, which should not be used again.

    Args:
      key: a key.
      num: how many, or the shape of an array of them.

    Returns:
      An array of ``num`` keys; words of keys, with one more axis of size 2, if ``key`` is given as words.

    Raises:
      OperandError: ``key`` is not a key (a TypeError).
      ArgumentError: it is an array of keys: use ``vmap`` (a ValueError).
      ShapeError: ``num`` is not a shape.

    >>> first, second = split(PRNGKey(0))
    >>> first, second
    (Array([4146024105,  967050713], dtype=uint32), Array([2718843009, 1272950319], dtype=uint32))
    """
    words = random_split(words_of("split", key), shape_tuple(num, "split"))
    return random_wrap(words) if _is_typed(key) else words


def fold_in(key: Any, data: Any) -> Any:
    """The key that a key and a number determine.

    Args:
      key: a key.
      data: an integer from 0 to 2**32 - 1, or an array of numbers without axes, which become uint32.

    Returns:
      A key; words of a key if ``key`` is given as words.

    Raises:
      OperandError: ``key`` is not a key, or ``data`` not a number (a TypeError).
      ArgumentError: either has axes: use ``vmap`` (a ValueError).
      OverflowError: ``data`` is an integer out of range.

    >>> fold_in(PRNGKey(0), 1)
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    words = random_fold_in(words_of("fold_in", key), _folded(data))
    return random_wrap(words) if _is_typed(key) else words


def clone(key: Any) -> Any:
    """The same key: says that it is meant to be used again.

    Args:
      key: keys of any shape, or their words.

    Raises:
      OperandError: these are no keys (a TypeError).

    >>> clone(PRNGKey(7))
    Array([0, 7], dtype=uint32)
    """
    return _checked("clone", key)


# What arguments mean -----------------------------------------------------------------------------------------------


def words_of(name: str, key: Any) -> Words:
    """The two words of one key, typed or not.

    Raises:
      OperandError: it is not a key.
      ArgumentError: it is an array of keys.
    """
    keys = key if isinstance(key, ArrayImpl) else _checked(name, key)
    if is_at_home(keys):
        value = keys._value
        if value.ndim == 0 and value.dtype == dtypes.key_dtype:
            return words_at(ArrayImpl(value["fry"]))
        keys = _checked(name, keys)
    typed = _is_typed(keys)
    shape = keys.shape if typed else keys.shape[:-1]
    if shape:
        raise ArgumentError(
            f"{name} takes one key, got an array of keys of shape {shape}; use vmap to do it with each of them"
        )
    return words_at(random_unwrap(keys) if typed else keys)


def threefry_words(name: str, words: Words) -> tuple[Any, Any]:
    """The two words of a key of the default generator."""
    k0, k1 = words
    return k0, k1


def _is_typed(key: Any) -> bool:
    return bool(key.dtype == dtypes.key_dtype)


def _checked(name: str, keys: Any) -> Any:
    """Keys or words of keys, as an array."""
    if type(keys) not in SCALARS:
        try:
            array = keys if isinstance(keys, Array) else as_array(keys)
        except PullbackError:
            pass
        else:
            if _is_typed(array) or (array.dtype == _word and array.shape[-1:] == (2,)):
                return array
            got = f"an array of shape {array.shape} and dtype {array.dtype}"
            raise OperandError(f"{name}: {_EXPECTED}, got {got}")
    raise OperandError(f"{name}: {_EXPECTED}, got {keys!r} of type {type(keys).__name__}")


_EXPECTED = "expected a random key, such as random.key(0), or its words as a uint32 array of shape (2,)"


def _check_implementation(impl: Any) -> None:
    if impl is not None and impl != _IMPLEMENTATION:
        raise ArgumentError(f"there is no random generator {impl!r}; there is {_IMPLEMENTATION!r}")


def _implementation(name: str, impl: Any, dtype: Any) -> str:
    """The generator that is asked for by its name or by the dtype of its keys."""
    if impl is not None and dtype is not None:
        raise ArgumentError(f"{name} takes impl or dtype, and got both: {impl!r} and {dtype!r}")
    if dtype is not None and not (isinstance(dtype, np.dtype) and dtype == dtypes.key_dtype):
        raise ArgumentError(f"{name}: dtype must be one of keys, as random.key_dtype() returns it, got {dtype!r}")
    _check_implementation(impl)
    return _IMPLEMENTATION


def _integer(x: Any) -> int | None:
    """A Python integer, or None if ``x`` is something else."""
    if isinstance(x, Array) or not hasattr(type(x), "__index__") or isinstance(x, (np.ndarray, np.generic)):
        return None
    return operator.index(x)


def _scalar(name: str, what: str, x: Any) -> Any:
    """An array without axes."""
    try:
        array: Any = as_array(x)
    except PullbackError:
        raise OperandError(f"{name}: {what} must be an integer, got {x!r} of type {type(x).__name__}") from None
    if array.shape:
        raise ArgumentError(
            f"{name}: {what} must be a scalar, got an array of shape {array.shape}; use vmap to do it with each element"
        )
    return array


def _seeded(name: str, seed: Any, impl: Any) -> Any:
    """The words of the key of a seed."""
    _check_implementation(impl)
    number = _integer(seed)
    if number is not None:
        if not -(1 << 63) <= number < 1 << 63:
            raise OverflowError(f"{name}: the seed {number} does not fit into 64 bits (from -2**63 to 2**63 - 1)")
        high = number >> 32 if dtypes.default_int().itemsize == 8 else 0
        return ArrayImpl(np.array((high & 0xFFFFFFFF, number & 0xFFFFFFFF), _word))
    array = _scalar(name, "the seed", seed)
    if not dtypes.is_integer(array.dtype):
        raise OperandError(f"{name}: the seed must be an integer, got {dtypes.short_name(array.dtype)}: {seed!r}")
    return random_seed(array)


def _folded(data: Any) -> Any:
    """The number that is folded into a key, as uint32."""
    number = _integer(data)
    if number is not None:
        if not 0 <= number < 1 << 32:
            raise OverflowError(f"fold_in: data must be from 0 to 2**32 - 1, got {number}")
        return ArrayImpl(_word.type(number))
    array = _scalar("fold_in", "data", data)
    if _is_typed(array) or dtypes.is_complex(array.dtype):
        raise OperandError(f"fold_in: data must be an integer, got {dtypes.short_name(array.dtype)}")
    return convert_element_type(array, _word)
