"""Quax: structured values under `quaxify`: units, LoRA matrices, zeros and a type of its own, with derivatives."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
from quax.examples import lora, structured_matrices, unitful, zero


class Diagonal(quax.ArrayValue):
    """A square matrix, held by its diagonal."""

    entries: jax.Array

    def aval(self):
        return jax.core.ShapedArray(2 * self.entries.shape, self.entries.dtype)

    def materialise(self):
        return jnp.diag(self.entries)


@quax.register(jax.lax.add_p)
def _(x: Diagonal, y: Diagonal, **_):
    return Diagonal(x.entries + y.entries)


@quax.register(jax.lax.mul_p)
def _(x: Diagonal, y: Diagonal, **_):
    return Diagonal(x.entries * y.entries)


keys = jax.random.split(jax.random.key(0), 5)
x = Diagonal(jnp.array([1.0, 2.0]))
added = quax.quaxify(lambda x, y: x + y * y)(x, x)
dense = quax.quaxify(jnp.sin)(jnp.ones((2, 2)) * 0.5)

layer = eqx.nn.Linear(4, 3, key=keys[0])
adapted = lora.loraify(layer, rank=2, key=keys[1])
vector = jax.random.normal(keys[2], (4,))


@jax.jit
@jax.grad
def slope(weight, vector):
    linear = eqx.tree_at(lambda layer: layer.weight, adapted, weight)
    return jnp.sum(quax.quaxify(linear)(vector) ** 2)


length = unitful.Unitful(jnp.array([1.0, 3.0]), {unitful.meters: 1})
area = quax.quaxify(jnp.multiply)(length, length)
tridiagonal = structured_matrices.TridiagonalMatrix(
    jnp.array([1.0, 1.0]), jnp.array([2.0, 3.0, 4.0]), jnp.array([0.5, -0.5])
)
nothing = zero.Zero((2,), jnp.dtype("float32"))
gradient = slope(adapted.weight, vector)
figures = {
    "sum": added.entries.tolist(),
    "sine": dense.tolist(),
    "adapted": quax.quaxify(adapted)(vector).tolist(),
    "gradient": [jnp.sum(jnp.abs(leaf)).item() for leaf in jax.tree.leaves(gradient)],
    "area": area.array.tolist(),
    "units": len(area.units),
    "tridiagonal": quax.quaxify(jnp.matmul)(tridiagonal, jnp.arange(3.0)).tolist(),
    "zero": quax.quaxify(jnp.add)(nothing, jnp.ones(2)).tolist(),
}
print(json.dumps(figures))
