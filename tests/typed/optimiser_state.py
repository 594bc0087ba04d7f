"""An optimiser with a named tuple as its state, and trees that are mapped and flattened."""

from typing import Any, NamedTuple

import pullback
import pullback.numpy as jnp
from pullback import Array, tree
from pullback.flatten_util import ravel_pytree


class AdamState(NamedTuple):
    steps: Array
    first: Any
    second: Any


def init(params: Any) -> AdamState:
    zeros = tree.map(jnp.zeros_like, params)
    return AdamState(jnp.zeros((), jnp.int32), zeros, zeros)


@pullback.jit
def update(gradient: Any, state: AdamState) -> tuple[Any, AdamState]:
    count = state.steps + 1
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.first, gradient)
    second = tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, state.second, gradient)
    moved = tree.map(
        lambda m, v: -0.1 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8), first, second
    )
    return moved, state._replace(steps=count, first=first, second=second)


def mistaken(state: AdamState) -> AdamState:
    return update(state.first, state)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    params = {"w": jnp.array([1.0, -2.0]), "b": jnp.asarray(0.5)}
    state = init(params)
    loss_and_grad = pullback.value_and_grad(lambda p: (p["w"] ** 2).sum() + p["b"] ** 2)
    value = jnp.inf
    for _ in range(5):
        value, gradient = loss_and_grad(params)
        moved, state = update(gradient, state)
        params = tree.map(jnp.add, params, moved)
    flat, unravel = ravel_pytree(params)
    leaves, definition = tree.flatten(params)
    assert flat.shape == (3,)
    assert unravel(flat).keys() == params.keys()
    assert len(leaves) == definition.num_leaves
    print(int(state.steps), f"{value:.2f}", jnp.allclose(flat, flat))
