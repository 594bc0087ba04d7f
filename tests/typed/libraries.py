"""The example libraries: layers, optimisers, and schedules."""

import pullback
import pullback.numpy as jnp
from pullback import Array, random
from pullback.example_libraries import optimizers, stax

init_fun, apply_fun = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(1))
adam = optimizers.adam(optimizers.exponential_decay(1e-2, 10, 0.5), b1=0.8)


def loss(params: list[tuple[Array, Array]], x: Array, y: Array) -> Array:
    return jnp.mean((apply_fun(params, x) - y) ** 2)


@pullback.jit
def step(i: int, state: optimizers.OptimizerState, x: Array, y: Array) -> optimizers.OptimizerState:
    params = adam.params_fn(state)
    return adam.update_fn(i, optimizers.clip_grads(pullback.grad(loss)(params, x, y), 1.0), state)


def mistaken(state: optimizers.OptimizerState) -> optimizers.OptimizerState:
    return adam.update_fn("first", (), state)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    x = random.normal(random.key(0), (16, 2))
    y = x.sum(axis=1, keepdims=True)
    shape, params = init_fun(random.key(1), (-1, 2))
    state = adam.init_fn(params)
    before = loss(params, x, y)
    for i in range(5):
        state = step(i, state, x, y)
    assert loss(adam.params_fn(state), x, y) < before
    print(shape, optimizers.l2_norm(params).shape)
