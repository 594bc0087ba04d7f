"""Equinox: an MLP with layer normalisation trained by `filter_jit`, a stateful layer, surgery on trees, and errors."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp


class Network(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm
    activation: callable = eqx.field(static=True)
    scale: jax.Array

    def __init__(self, key):
        first, second, third = jax.random.split(key, 3)
        self.layers = [
            eqx.nn.Linear(2, 16, key=first),
            eqx.nn.MLP(16, 16, 32, depth=1, key=second),
            eqx.nn.Linear(16, "scalar", key=third),
        ]
        self.norm = eqx.nn.LayerNorm(16)
        self.activation = jax.nn.gelu
        self.scale = jnp.array(1.0)

    def __call__(self, x):
        hidden = self.activation(self.layers[0](x))
        return self.scale * self.layers[2](self.norm(hidden + self.layers[1](hidden)))


@eqx.filter_value_and_grad
def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_jit
def step(model, x, y):
    value, grads = loss(model, x, y)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.02 * g, grads)), value


@eqx.filter_jit
def positive(x):
    return jnp.log(eqx.error_if(x, x <= 0, "x must be positive"))


x = jax.random.normal(jax.random.key(1), (32, 2))
y = x[:, 0] * x[:, 1]
model = Network(jax.random.key(0))
losses = []
for _ in range(40):
    model, value = step(model, x, y)
    losses.append(float(value))

frozen = eqx.tree_at(lambda m: m.scale, model, replace_fn=lambda s: 2 * s)
trained, static = eqx.partition(frozen, eqx.is_inexact_array)
batch_norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(2, axis_name="batch", mode="batch")
normed, state = jax.vmap(batch_norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
ensemble = eqx.filter_vmap(Network)(jax.random.split(jax.random.key(2), 3))
try:
    positive(jnp.array(-1.0))
    refused = 0
except Exception as error:
    refused = int("x must be positive" in str(error))

figures = {
    "losses": losses[::10] + losses[-1:],
    "doubled": float(eqx.combine(trained, static)(x[0]) / model(x[0])),
    "batch norm": normed[:3].ravel().tolist(),
    "ensemble": eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(ensemble, x[0]).tolist(),
    "dropout": eqx.nn.Dropout(0.5)(x[:2], key=jax.random.key(3)).ravel().tolist(),
    "log": [float(positive(jnp.array(2.0))), refused],
    "jacobian": jax.jacfwd(model)(x[0]).tolist(),
}
print(json.dumps(figures))
