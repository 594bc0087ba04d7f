"""Collectives in halves, exchanges of slices of different sizes, and numbers without a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, enable_x64, grad, jit, lax, vmap

AROUND = [(0, 1), (1, 2), (2, 0)]


# psend and precv -----------------------------------------------------------------------------------------------------


def there(tree: Any) -> Any:
    like = {name: ShapeDtypeStruct(x.shape, x.dtype) for name, x in tree.items()}
    token = lax.after_all(lax.create_token(), lax.psend(tree, "i", AROUND))
    return lax.precv(token, like, "i", AROUND)


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_what_is_sent_is_received(transform: Any) -> None:
    sent = {"x": jnp.arange(3.0), "n": jnp.arange(6).reshape(3, 2)}
    got = transform(vmap(there, axis_name="i"))(sent)
    assert got["x"].tolist() == [2, 0, 1]
    assert got["n"].tolist() == [[4, 5], [0, 1], [2, 3]]
    gradient = grad(lambda x: vmap(there, axis_name="i")({"x": x})["x"] @ jnp.array([1.0, 2.0, 3.0]))
    assert gradient(jnp.arange(3.0)).tolist() == [2, 3, 1]


def test_tokens_pass_through_compiled_functions() -> None:
    token = jit(lambda t: lax.after_all(t, lax.create_token()))(lax.create_token())
    assert repr(token.block_until_ready()) == "Token()"


@pytest.mark.parametrize(
    ("receive", "text"),
    [
        (lambda x: lax.precv(lax.create_token(), x, "i", AROUND), "nothing was sent by the permutation"),
        (lambda x: lax.precv(lax.psend(x, "i", AROUND), x, "i", [(0, 1)]), "nothing was sent by the permutation"),
        (lambda x: lax.precv(lax.psend(x, "i", AROUND), (x, x), "i", AROUND), "out_shape says"),
        (lambda x: lax.precv(x, x, "i", AROUND), "precv takes tokens"),
        (lambda x: lax.after_all(x), "after_all takes tokens"),
    ],
)
def test_halves_that_do_not_fit(receive: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        vmap(receive, axis_name="i")(jnp.arange(3.0))


# ragged_all_to_all ---------------------------------------------------------------------------------------------------

SIZE, SLICES, ROWS, INTO = 4, 2, 12, 20
RNG = np.random.default_rng(0)


def exchange(groups: Any = None) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return lax.ragged_all_to_all(*args, axis_name="i", axis_index_groups=groups)

    return vmap(call, axis_name="i")


def problem(size: int) -> tuple[list[Any], Any, Any]:
    """The arguments for an axis of ``size`` indices, the result, and the gradient of half the sum of its squares."""
    count = size * SLICES
    operand = RNG.normal(size=(size, ROWS, 2)).astype("float32")
    output = RNG.normal(size=(size, INTO, 2)).astype("float32")
    send, begin = RNG.integers(0, 3, (size, count)), RNG.integers(0, ROWS - 3, (size, count))
    into, receive = RNG.integers(0, INTO - 3, (size, count)), np.zeros((size, count), int)
    expected, owner = output.copy(), np.full((size, INTO, 2), -1)
    for target in range(size):
        for i in range(count):
            source, j = i // SLICES, target * SLICES + i % SLICES
            n = receive[target, i] = send[source, j]
            expected[target, into[source, j] :][:n] = operand[source, begin[source, j] :][:n]
            owner[target, into[source, j] :][:n, 0] = source
            owner[target, into[source, j] :][:n, 1] = begin[source, j] + np.arange(n)
    gradient = np.zeros_like(operand)
    for target, row in np.argwhere(owner[..., 0] >= 0):
        gradient[tuple(owner[target, row])] += expected[target, row]
    return [operand, output, begin, send, into, receive], expected, gradient


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_slices_of_different_sizes_are_exchanged(transform: Any) -> None:
    arguments, expected, gradient = problem(SIZE)
    np.testing.assert_array_equal(transform(exchange())(*arguments), expected)
    found = transform(grad(lambda x: jnp.sum(exchange()(x, *arguments[1:]) ** 2) / 2))(arguments[0])
    np.testing.assert_allclose(found, gradient, rtol=1e-5)


def test_exchanges_within_groups() -> None:
    halves = [problem(2), problem(2)]
    arguments = [np.concatenate(parts) for parts in zip(*(h[0] for h in halves), strict=True)]
    expected = np.concatenate([h[1] for h in halves])
    np.testing.assert_array_equal(exchange([[0, 1], [2, 3]])(*arguments), expected)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            {1: np.zeros((SIZE, INTO, 3), "float32")},
            ValueError,
            r"differ in the first axis at most, got shapes \(12, 2\)",
        ),
        ({1: np.zeros((SIZE, INTO, 2), "int32")}, TypeError, "of one dtype"),
        ({3: np.zeros((SIZE, 3), int)}, ValueError, r"offsets and sizes of one shape \(K,\), got input_offsets \(8,\)"),
        ({2: np.zeros((SIZE, 8), "float32")}, TypeError, "integers as offsets and sizes"),
    ],
)
def test_what_cannot_be_exchanged(change: dict[int, Any], error: type, text: str) -> None:
    arguments = problem(SIZE)[0]
    for i, x in change.items():
        arguments[i] = x
    with pytest.raises(error, match=text):
        exchange()(*arguments)


@pytest.mark.parametrize("place", range(6))
def test_what_is_no_array_is_refused_in_each_place(place: int) -> None:
    arguments = [x[0] for x in problem(SIZE)[0]]
    arguments[place] = "a"
    with pytest.raises(TypeError, match="ragged_all_to_all: expected an array or a number, got 'a'"):
        lax.ragged_all_to_all(*arguments, axis_name="i")


# Numbers without a key -----------------------------------------------------------------------------------------------


def test_numbers_without_a_key_differ_from_call_to_call() -> None:
    draw = jit(lambda: lax.rng_uniform(jnp.float32(2), jnp.float32(3), (50,)))
    first, second = np.asarray(draw()), np.asarray(draw())
    assert (first != second).any()
    assert first.min() >= 2
    assert first.max() < 3
    whole = np.asarray(lax.rng_uniform(jnp.int32(-2), jnp.int32(2), (100,)))
    assert set(whole.tolist()) == {-2, -1, 0, 1}


def test_bounds_that_are_not_alike_are_refused() -> None:
    with pytest.raises(TypeError, match="rng_uniform takes two scalars of one dtype, floats or integers, got f32"):
        lax.rng_uniform(jnp.float32(0), jnp.int32(1), (2,))
    with pytest.raises(TypeError, match=r"of shape \(2,\)"):
        lax.rng_uniform(jnp.zeros(2), jnp.ones(2), (2,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "uint64"])
def test_shared_numbers_lie_between_bounds_at_the_edges_of_dtypes(dtype: str) -> None:
    with enable_x64():
        limits = (jnp.iinfo if "int" in dtype else jnp.finfo)(dtype)
        whole = lax.rng_uniform(jnp.array(limits.min, dtype), jnp.array(limits.max, dtype), (200,))
        assert whole.dtype == dtype
        assert bool(jnp.isfinite(whole).all())
        assert bool((whole < jnp.array(limits.max, dtype)).all())
        assert len(set(np.asarray(whole).tolist())) > 50
        low = jnp.array(3, dtype)
        above = low + 1 if "int" in dtype else jnp.nextafter(low, jnp.array(4, dtype))
        assert set(np.asarray(lax.rng_uniform(low, above, (20,))).tolist()) == {3}
        assert set(np.asarray(lax.rng_uniform(low, low, (2,))).tolist()) == {3}


def test_large_integers_are_drawn_without_rounding() -> None:
    drawn = np.asarray(lax.rng_uniform(jnp.int32(2**30), jnp.int32(2**30 + 3), (100,)))
    assert set(drawn.tolist()) == {2**30, 2**30 + 1, 2**30 + 2}
