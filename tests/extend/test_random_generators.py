"""Random generators that users define, with figures of JAX for the same functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, random, vmap
from pullback.extend import random as extended


def seed(number: Any) -> Any:
    return jnp.array([number, 7], dtype="uint32")


def split(words: Any, shape: tuple[int, ...]) -> Any:
    return jnp.broadcast_to(words, (*shape, 2)) + jnp.arange(2, dtype="uint32")


def random_bits(words: Any, width: int, shape: tuple[int, ...]) -> Any:
    return jnp.full(shape, words[0], dtype=f"uint{width}")


def fold_in(words: Any, number: Any) -> Any:
    return words + number.astype("uint32")


FUNCTIONS: Any = {"seed": seed, "split": split, "random_bits": random_bits, "fold_in": fold_in}
OWN = extended.define_prng_impl(key_shape=(2,), name="own", tag="ow", **FUNCTIONS)
KEY = random.key(5, impl=OWN)


def test_keys_of_an_own_generator() -> None:
    assert str(KEY.dtype) == "key<ow>"
    assert random.key_impl(KEY) == "own"
    assert (random.key(5, impl="own") == KEY).item()
    assert random.key_data(KEY).tolist() == [5, 7]
    assert random.key_data(random.split(KEY, 2)).tolist() == [[5, 8], [5, 8]]
    assert random.key_data(random.fold_in(KEY, 3)).tolist() == [8, 10]


def test_numbers_of_an_own_generator() -> None:
    assert random.bits(KEY, (3,)).tolist() == [5, 5, 5]
    assert jit(lambda key: random.bits(key, (3,), "uint8"))(KEY).tolist() == [5, 5, 5]
    assert vmap(random.bits)(random.split(KEY, 3)).tolist() == [5, 5, 5]
    np.testing.assert_allclose(random.normal(KEY, (2,)), [-5.4199834] * 2, rtol=1e-6)  # of JAX
    with pytest.raises(NotImplementedError, match="'own', which define_prng_impl has made, cannot draw"):
        random.gamma(KEY, 2.0)


def test_seeds_and_the_cipher() -> None:
    assert extended.random_seed(3, OWN) == extended.seed_with_impl(OWN, 3)
    for impl, name in ((extended.threefry_prng_impl, "threefry2x32"), (extended.rbg_prng_impl, "rbg")):
        assert random.key_impl(random.key(0, impl=impl)) == name
    for seeds in ([[3, 4], [5, 6]], np.zeros((0, 2), int)):
        for keys in (extended.random_seed(seeds, OWN), jit(lambda x: extended.random_seed(x, OWN))(jnp.array(seeds))):
            assert keys.shape == np.shape(seeds)
            assert keys.dtype == KEY.dtype
            assert all(key == random.key(n, impl=OWN) for key, n in zip(keys.ravel(), np.ravel(seeds), strict=True))
    with pytest.raises(TypeError, match="the seed must be an integer"):
        extended.random_seed([0.5], extended.rbg_prng_impl)
    hashed = extended.threefry_2x32(jnp.array([1, 2], "uint32"), jnp.arange(4, dtype="uint32"))
    assert hashed.tolist() == [4128513521, 3192206206, 2345921600, 3057534555]  # of JAX
    odd = extended.threefry_2x32(jnp.array([1, 2], "uint32"), jnp.arange(3, dtype="uint32").reshape(3, 1))
    assert odd.shape == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            {"key_shape": (3,), "name": "three"},
            NotImplementedError,
            r"key_shape must be \(1,\), .* or \(4,\), got \(3,\)",
        ),
        ({"key_shape": (2,), "name": "own", "tag": "x"}, ValueError, "'own' or key<x> already"),
        ({"key_shape": (2,), "name": "other", "tag": "ow"}, ValueError, "'other' or key<ow> already"),
    ],
)
def test_generators_that_cannot_be_defined(arguments: dict[str, Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        extended.define_prng_impl(**arguments, **FUNCTIONS)


def test_operands_of_the_cipher_are_checked() -> None:
    with pytest.raises(TypeError, match="uint32 words and counters, got i32, i32, u32"):
        extended.threefry_2x32(jnp.array([1, 2]), jnp.arange(4, dtype="uint32"))
    with pytest.raises(ValueError, match="the two words of a key, got 3"):
        extended.threefry_2x32(jnp.array([1, 2, 3], "uint32"), jnp.arange(4, dtype="uint32"))
