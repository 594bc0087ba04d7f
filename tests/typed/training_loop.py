"""A network is trained: parameters are a nested tree, steps are compiled."""

import pullback
import pullback.numpy as jnp
from pullback import Array, nn, random

Layer = dict[str, Array]
Params = list[Layer]


def init(key: Array, sizes: list[int]) -> Params:
    keys = random.split(key, len(sizes) - 1)
    glorot = nn.initializers.glorot_normal()
    return [
        {"w": glorot(k, (m, n), jnp.float32), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params: Params, x: Array) -> Array:
    for layer in params[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params: Params, x: Array, y: Array) -> Array:
    return jnp.mean((predict(params, x) - y) ** 2)


@pullback.jit
def step(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
    value, gradients = pullback.value_and_grad(loss)(params, x, y)
    return pullback.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def mistaken(params: Params, x: Array) -> Array:
    return step(params, x)[1]  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def main() -> None:
    key, data = random.split(random.key(0))
    x = random.uniform(data, (32, 2))
    y = jnp.sum(x, axis=1, keepdims=True)
    params = init(key, [2, 8, 1])
    first = loss(params, x, y)
    value = first
    for _ in range(20):
        params, value = step(params, x, y)
    assert float(value) < float(first)
    print(f"{value:.3f}")
