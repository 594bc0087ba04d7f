"""The generators but for the default one: their keys under every transformation, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import config, dtypes, jit, lax, random, vmap
from pullback.core.errors import ArgumentError, DtypeError, OperandError
from pullback.primitives.random.generator import _LARGEST_BY_NUMPY
from pullback.primitives.random.philox import philox_blocks
from tests.helpers import assert_same

BLOCKS = ["rbg", "unsafe_rbg"]
CIPHERS = ["threefry4x32", "philox2x32", "philox4x32"]
ALL = ["threefry2x32", *BLOCKS, *CIPHERS]
words = random.key_data


def draws(key: Any) -> list[Any]:
    """What most functions are made of."""
    return [
        words(random.split(key, (2, 3))), words(random.fold_in(key, 5)), random.bits(key, (5,), "uint8"),
        random.bits(key, (3,), "uint16"), random.uniform(key, (2, 3)), random.normal(key),
        random.randint(key, (4,), 0, 9), random.permutation(key, 6), random.choice(key, 5, (3,), replace=False),
    ]  # fmt: skip


def moved(keys: Any) -> list[Any]:
    """Operations that move the elements of three keys, whatever bits they have."""
    parts = (
        keys[::-1], keys[1:], keys.reshape(3, 1).T, pnp.stack([keys, keys]), pnp.concatenate([keys, keys[:1]]),
        pnp.broadcast_to(keys[0], (2, 2)), pnp.where(np.array([True, False, True]), keys, keys[0]),
        keys[pnp.array([2, 0])], lax.dynamic_slice(keys, (1,), (2,)), keys.at[0].set(keys[2]),
    )  # fmt: skip
    return [words(x) for x in parts]


@pytest.mark.parametrize("impl", ALL)
def test_under_jit(impl: str) -> None:
    key = random.key(3, impl=impl)
    bits = np.arange(12, dtype=np.uint32) * np.uint32(0x9E3779B9) | np.uint32(0x7FF00000)  # as floats, many are nan
    odd = random.wrap_key_data(bits[: 3 * words(key).size].reshape(3, -1), impl=impl)

    def every(key: Any, keys: Any) -> list[Any]:
        _, carried = lax.scan(lambda c, _: tuple(random.split(c)), key, length=3)
        count, last = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, random.split(c[1])[1]), (0, key))
        taken = lax.cond(count > 2, lambda k: k, lambda k: random.fold_in(k, 1), last)
        slope = pullback.grad(lambda x: (x * random.normal(key, (3,))).sum())(2.0)
        mapped = [vmap(random.uniform)(keys), words(vmap(random.fold_in, (0, None))(keys, 3))]
        captured = words(odd[1:]), words(odd[0])
        return [*draws(key), *moved(keys), words(carried), words(last), words(taken), slope, *mapped, *captured]

    expected = every(key, odd)
    for x, y in zip(jit(every)(key, odd), expected, strict=True):
        if x.dtype == np.float32:
            np.testing.assert_allclose(x, y, rtol=1e-6)
        else:
            np.testing.assert_array_equal(x, y)
    returned = jit(lambda k: (k, random.split(k)))(odd[0])
    assert_same([*map(words, returned)], [words(odd[0]), words(random.split(odd[0]))])
    assert returned[0].dtype == random.key_dtype(impl)


@pytest.mark.parametrize("impl", BLOCKS)
def test_batches_of_keys(impl: str) -> None:
    """As in JAX all bits of a batch are those of its first key, and a hash of each key is its own."""
    keys = random.split(random.key(0, impl=impl), 3)
    drawn = vmap(lambda k: random.bits(k, (2,)))(keys)
    np.testing.assert_array_equal(drawn, random.bits(keys[0], (3, 2)))
    twice = vmap(vmap(random.bits))(keys.reshape(3, 1))
    np.testing.assert_array_equal(twice[:, 0], random.bits(keys[0], (3,)))
    folded = words(vmap(random.fold_in, (0, None))(keys, 5))
    np.testing.assert_array_equal(folded, [words(random.fold_in(k, 5)) for k in keys])
    split = words(vmap(random.split)(keys))
    each = np.stack([words(random.split(k)) for k in keys])
    assert np.array_equal(split, each) == (impl == "rbg")
    assert vmap(random.bits)(keys[:0]).shape == (0,)
    samples = vmap(lambda k: random.gamma(k, 2.0))(keys)
    np.testing.assert_allclose(samples, [random.gamma(k, 2.0) for k in keys] if impl == "rbg" else samples, rtol=1e-6)


@pytest.mark.parametrize("impl", BLOCKS)
def test_large_arrays_are_compiled(impl: str) -> None:
    key = random.key(1, impl=impl)
    many = random.bits(key, (_LARGEST_BY_NUMPY + 1,))
    np.testing.assert_array_equal(many[:100], random.bits(key, (100,)))
    assert many.shape == (_LARGEST_BY_NUMPY + 1,)


def test_blocks() -> None:
    """The known answers of the generator's authors: counters and keys of zeros, of ones, and of the digits of pi."""
    ones = 0xFFFFFFFF
    known = [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ones, ones), (ones, ones, ones, ones), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ]
    for key, counter, expected in known:
        assert counter[2:] == key  # which XLA's convention asks for
        found = philox_blocks([np.uint32(w) for w in (*key, *counter[:2])], np.uint32(0))
        assert tuple(int(x) for x in found) == expected
    carried = philox_blocks([np.uint32(w) for w in (1, 2, ones, ones)], np.uint32(1))
    np.testing.assert_array_equal(carried, [67759320, 265751716, 222428074, 2049345928])


@pytest.mark.parametrize(("impl", "tag"), list(zip(ALL, ["fry", "rbg", "urbg", "fry4", "phx2", "phx4"], strict=True)))
def test_names(impl: str, tag: str) -> None:
    key = random.key(3, impl=impl)
    assert random.key_impl(key) == impl
    assert key.dtype == random.key_dtype(impl)
    assert dtypes.issubdtype(key.dtype, dtypes.prng_key)
    shown = str(np.asarray(words(key)))[1:-1] if impl in CIPHERS else "0 3"
    assert repr(key).startswith(f"Array((), dtype=key<{tag}>) overlaying:\n[{shown}")
    assert f"key<{tag}>[]" in str(pullback.make_jaxpr(random.split)(key))
    np.testing.assert_array_equal(words(random.key(3, dtype=key.dtype)), words(key))
    np.testing.assert_array_equal(random.PRNGKey(3, impl=impl), words(key))
    assert random.wrap_key_data(words(key), impl=impl).dtype == key.dtype
    assert pullback.device_put(key).dtype == key.dtype
    with pullback.default_prng_impl(impl):
        assert random.key(0).dtype == key.dtype
        assert random.key_impl(random.PRNGKey(0)) == impl
        np.testing.assert_array_equal(random.bits(random.PRNGKey(3), (3,)), random.bits(key, (3,)))
        np.testing.assert_array_equal(jit(random.bits)(random.PRNGKey(3)), random.bits(key))
        with pullback.enable_custom_prng():
            assert random.PRNGKey(0).dtype == key.dtype


def test_the_default_is_for_the_process_too() -> None:
    config.update("jax_default_prng_impl", "rbg")
    try:
        assert random.PRNGKey(0).shape == (4,)
    finally:
        config.update("jax_default_prng_impl", "threefry2x32")
    assert random.PRNGKey(0).shape == (2,)


LONG = random.PRNGKey(0, impl="rbg")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.bits(LONG), OperandError, r"bits: expected a random key.*of shape \(2,\).*got .*\(4,\)"),
        (lambda: random.wrap_key_data(random.PRNGKey(0), impl="rbg"), OperandError, r"of shape \(4,\).*got .*\(2,\)"),
        (lambda: random.wrap_key_data(LONG), OperandError, "wrap_key_data: expected"),
        (lambda: random.key(0, impl="dice"), ArgumentError, "key: unknown random generator 'dice'; the generators are"),
        (lambda: random.key(0, impl=3), ArgumentError, "unknown random generator 3"),
        (
            lambda: random.key(0, impl="rbg", dtype=random.key_dtype()),
            ArgumentError,
            "takes impl or dtype, but got both",
        ),
        (lambda: random.split(random.split(random.key(0, impl="rbg"))), ArgumentError, "split takes one key"),
        (lambda: random.key(0, impl="rbg").astype(random.key_dtype()), DtypeError, "random keys cannot be converted"),
        (lambda: pnp.stack([random.key(0), random.key(0, impl="rbg")]), ValueError, "no common dtype"),
        (lambda: random.key(0, impl="rbg") + 1, ValueError, "key<rbg> is not a dtype of numbers"),
        (lambda: np.asarray(random.key(0, impl="rbg")), TypeError, "no NumPy equivalent"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["threefry2x32", "rbg", "philox2x32"])
def test_a_generator_by_the_dtype_of_its_keys_or_its_name(name):
    key = random.key(3, impl=name)
    same = [
        random.key(3, impl=key.dtype), random.key(3, dtype=name), random.key(3, dtype=key.dtype),
        random.wrap_key_data(random.key_data(key), impl=key.dtype),
    ]  # fmt: skip
    for other in same:
        assert other.dtype == key.dtype
        np.testing.assert_array_equal(random.key_data(other), random.key_data(key))
    with pytest.raises(ValueError, match="unknown random generator dtype"):
        random.key(0, impl=np.dtype("float32"))
    with pytest.raises(ValueError, match="unknown random generator 'mine'"):
        random.key(0, dtype="mine")
