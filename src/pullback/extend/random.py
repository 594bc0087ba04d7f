"""Random generators: the built-in ones, and those that users define: ``jax.extend.random``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from pullback import numpy as jnp
from pullback import random
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.dtypes import key_dtype as threefry_prng_impl
from pullback.core.dtypes import rbg_key_dtype as rbg_prng_impl
from pullback.core.dtypes import unsafe_rbg_key_dtype as unsafe_rbg_prng_impl
from pullback.core.errors import DtypeError, ShapeError, UnsupportedArgumentError
from pullback.core.faces import face
from pullback.core.types import Shape
from pullback.primitives.random.bits import Algorithm, threefry2x32_p
from pullback.random.keys import define
from pullback.transforms.autodiff.vmap import vmap

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_2x32",
    "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip
face(globals())

_numbers = itertools.count()


def define_prng_impl(
    *,
    key_shape: Shape,
    seed: Callable[[Array], Array],
    split: Callable[[Array, Shape], Array],
    random_bits: Callable[[Array, int, Shape], Array],
    fold_in: Callable[[Array, Array], Array],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Any:
    """Define a random generator, by functions of the words of a key, uint32 of shape ``key_shape``.

    Its keys draw uniform and normal numbers, integers, permutations and all that is computed from these, under all
    transformations; they do not draw by rejection, as ``random.gamma`` and ``random.poisson`` do.

    Args:
      key_shape: ``(1,)``, ``(2,)`` or ``(4,)``.
      seed: ``seed(number) -> words``.
      split: ``split(words, shape)`` returns the words of new keys, of shape ``shape + key_shape``.
      random_bits: ``random_bits(words, bit_width, shape)`` returns unsigned integers of 8, 16, 32 or 64 bits.
      fold_in: ``fold_in(words, number) -> words``; the number is a uint32.
      name: the name of the generator, for ``random.key(seed, impl=name)``.
      tag: the short name that the dtype of the keys shows.

    Returns:
      The generator, a dtype of keys: ``random.key(seed, impl=generator)``.

    Raises:
      UnsupportedArgumentError: another ``key_shape`` (a NotImplementedError).
      ArgumentError: there is a generator of that name or tag (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.extend.random import define_prng_impl
    >>> counting = define_prng_impl(
    ...     key_shape=(2,), name="counting", tag="cnt",
    ...     seed=lambda number: jnp.array([0, number], "uint32"),
    ...     split=lambda words, shape: words + jnp.ones((*shape, 2), "uint32"),
    ...     random_bits=lambda words, width, shape: jnp.full(shape, words[1], f"uint{width}"),
    ...     fold_in=lambda words, number: words + number,
    ... )
    >>> print(random.bits(random.key(5, impl=counting), (3,)))
    [5 5 5]
    """
    if tuple(key_shape) not in ((1,), (2,), (4,)):
        raise UnsupportedArgumentError(f"define_prng_impl: key_shape must be (1,), (2,) or (4,), got {key_shape!r}")
    if name == "<unnamed>":
        name = f"<unnamed {next(_numbers)}>"
    return define(Algorithm(name, seed, split, random_bits, fold_in), tag, math.prod(key_shape))


def random_seed(seeds: ArrayLike, impl: Any) -> Array:
    """Return the random key of each seed, for a generator, as ``random.key(seed, impl=impl)`` for one.

    Args:
      seeds: integers of any shape.
      impl: the generator: its name, or the dtype of its keys.

    Returns:
      An array of keys, of the shape of ``seeds``.

    Raises:
      OperandError: the seeds are not integers (a TypeError).
      ArgumentError: the generator is unknown (a ValueError).

    >>> from pullback.extend.random import random_seed, rbg_prng_impl
    >>> random_seed(0, rbg_prng_impl).dtype
    key<rbg>
    >>> random_seed([[0, 1, 2], [3, 4, 5]], rbg_prng_impl).shape
    (2, 3)
    """
    if not jnp.ndim(seeds):
        return random.key(seeds, impl=impl)
    keys = jnp.asarray(seeds)
    one: Any = partial(random.key, impl=impl)
    for _ in range(keys.ndim):
        one = vmap(one)
    return one(keys)  # type: ignore[no-any-return]


def seed_with_impl(impl: Any, seed: ArrayLike) -> Array:
    """Return the random key of each seed, for a generator: :func:`random_seed` with its arguments exchanged.

    Args:
      impl: the generator: its name, or the dtype of its keys.
      seed: integers of any shape.

    Returns:
      An array of keys, of the shape of ``seed``.

    >>> from pullback.extend.random import seed_with_impl, threefry_prng_impl
    >>> seed_with_impl(threefry_prng_impl, 0).dtype
    key<fry>
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: tuple[ArrayLike, ArrayLike], count: ArrayLike) -> Array:
    """Hash counters by Threefry-2x32, the first half of them together with the second.

    The cipher is that of Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3* (SC 2011).

    Args:
      keypair: the two words of a key, uint32.
      count: the counters, a uint32 array; an odd one is extended by a zero.

    Returns:
      A uint32 array of the shape of ``count``.

    Raises:
      DtypeError: other dtypes than uint32 (a TypeError).
      ShapeError: a key that is no pair (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.extend.random import threefry_2x32
    >>> print(threefry_2x32(jnp.array([1, 2], "uint32"), jnp.arange(4, dtype="uint32")))
    [4128513521 3192206206 2345921600 3057534555]
    """
    if len(keypair) != 2:  # type: ignore[arg-type]
        raise ShapeError(f"threefry_2x32 takes the two words of a key, got {len(keypair)}")
    first, second, counters = (jnp.asarray(x) for x in (*keypair, count))
    kinds = [dtypes.short_name(x.dtype) for x in (first, second, counters)]
    if kinds != ["u32"] * 3:
        raise DtypeError(f"threefry_2x32 takes uint32 words and counters, got {', '.join(kinds)}")
    flat = jnp.ravel(counters)
    low, high = jnp.split(jnp.pad(flat, (0, flat.size % 2)), 2)
    hashed = jnp.concatenate(threefry2x32_p.bind(first, second, low, high))
    return jnp.reshape(hashed[: flat.size], counters.shape)
