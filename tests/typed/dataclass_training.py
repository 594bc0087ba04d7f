"""A classifier with parameters in a dataclass, an optimiser of its own, and devices."""

from dataclasses import dataclass, field

import pullback
import pullback.numpy as jnp
from pullback import Array, nn, random, tree
from pullback.tree_util import register_dataclass


@register_dataclass
@dataclass
class Model:
    weight: Array
    bias: Array
    scale: float = field(default=1.0, metadata={"static": True})

    def __call__(self, x: Array) -> Array:
        return self.scale * (x @ self.weight + self.bias)


def loss(model: Model, x: Array, labels: Array) -> tuple[Array, dict[str, Array]]:
    logits = model(x)
    cross = -jnp.sum(nn.one_hot(labels, 3) * nn.log_softmax(logits), axis=-1).mean()
    return cross, {"accuracy": jnp.mean(jnp.argmax(logits, axis=-1) == labels)}


@pullback.jit
def step(model: Model, velocity: Model, x: Array, labels: Array) -> tuple[Model, Model, Array]:
    (value, metrics), gradient = pullback.value_and_grad(loss, has_aux=True)(model, x, labels)
    velocity = tree.map(lambda v, g: 0.9 * v + g, velocity, gradient)
    model = tree.map(lambda p, v: p - 0.1 * v, model, velocity)
    return model, velocity, value + 0 * metrics["accuracy"]


def mistaken(model: Model, x: Array) -> Array:
    return step(model, model, x, "labels")[2]  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    key, other = random.split(random.key(3))
    x = random.normal(key, (30, 4))
    labels = random.randint(other, (30,), 0, 3)
    start = nn.initializers.lecun_normal(in_axis=0, out_axis=1)(key, (4, 3), jnp.float32)
    model = pullback.device_put(Model(start, jnp.zeros(3)), pullback.devices()[0])
    velocity = tree.map(jnp.zeros_like, model)
    values: list[float] = []
    for _ in range(5):
        model, velocity, value = step(model, velocity, x, labels)
        values.append(value.item())
    assert values[-1] < values[0]
    sizes = tree.map(jnp.size, model)
    print(sizes.bias, sum(leaf.size for leaf in tree.leaves(model)), pullback.device_get(model.bias).shape)
