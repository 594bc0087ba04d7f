"""Loops and branches whose state is an array, a tuple or a named tuple."""

from typing import NamedTuple

import pullback.numpy as jnp
from pullback import Array, lax


class State(NamedTuple):
    x: Array
    steps: Array


def newton(start: Array) -> State:
    def going(state: State) -> Array:
        return jnp.abs(state.x**2 - 2) > 1e-5

    def step(state: State) -> State:
        return State(0.5 * (state.x + 2 / state.x), state.steps + 1)

    return lax.while_loop(going, step, State(start, jnp.asarray(0)))


def fibonacci(count: int) -> tuple[Array, Array]:
    def step(_: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        return pair[1], pair[0] + pair[1]

    return lax.fori_loop(0, count, step, (jnp.asarray(0), jnp.asarray(1)))


def running(xs: Array) -> tuple[Array, dict[str, Array]]:
    def step(total: Array, x: Array) -> tuple[Array, dict[str, Array]]:
        total = total + x
        return total, {"total": total, "share": x / total}

    return lax.scan(step, 0.0, xs)


def sign(x: Array) -> Array:
    positive = lax.cond(x > 0, lambda: 1.0, lambda: 0.0)
    named = lax.switch(jnp.sign(x).astype(int) + 1, [jnp.negative, jnp.zeros_like, lambda v: v], x)
    return positive + named + lax.select(x > 0, x, -x)


def mistaken(xs: Array) -> Array:
    return running(xs)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    found = newton(jnp.asarray(1.0))
    assert abs(found.x - 2**0.5) < 1e-4
    last, history = running(jnp.array([1.0, 2.0, 3.0]))
    assert last.item() == 6.0
    sums = lax.associative_scan(jnp.add, jnp.arange(4))
    squares = lax.map(lambda v: v**2, jnp.arange(4.0))
    print(found.steps, fibonacci(10)[0], history["share"].shape, sums[-1], squares.sum(), sign(jnp.asarray(-2.0)))
    ordered, order = lax.sort((jnp.array([3, 1, 2]), jnp.arange(3)), num_keys=1)
    print(ordered.tolist(), order.tolist(), lax.sort(jnp.array([2, 1]))[0], lax.cumsum(squares, axis=0)[-1])
    print(lax.reduce_max(squares, axes=(0,)), lax.argmax(squares, axis=0, index_dtype=jnp.int32).item())
