"""Flax's NNX: layers made by `nnx.vmap` and applied by `nnx.scan`, dropout and batch statistics, trained."""

import json

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Layer(nnx.Module):
    def __init__(self, features, rngs):
        self.linear = nnx.Linear(features, features, rngs=rngs)
        self.norm = nnx.LayerNorm(features, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        return x + self.dropout(nnx.gelu(self.linear(self.norm(x))))


class Calls(nnx.Variable):
    pass


class Network(nnx.Module):
    def __init__(self, features, depth, rngs):
        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def layers(rngs):
            return Layer(features, rngs)

        self.first = nnx.Linear(2, features, use_bias=False, rngs=rngs)
        self.batch_norm = nnx.BatchNorm(features, rngs=rngs)
        self.layers = layers(rngs)
        self.last = nnx.Linear(features, 1, rngs=rngs)
        self.calls = Calls(jnp.array(0))

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def through(x, layer):
            return layer(x)

        self.calls[...] += 1
        return self.last(through(nnx.relu(self.batch_norm(self.first(x))), self.layers))[:, 0]


@nnx.jit
def step(model, optimizer, x, y):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


x = jax.random.normal(jax.random.key(1), (32, 2))
y = jnp.sin(x[:, 0]) + x[:, 1]
model = Network(8, 3, nnx.Rngs(0, dropout=1))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
losses = [float(step(model, optimizer, x, y)) for _ in range(30)]
model.eval()
graph, parameters, rest = nnx.split(model, nnx.Param, ...)
copy = nnx.merge(graph, jax.tree.map(lambda p: 0.5 * p, parameters), rest)
figures = {
    "losses": losses[::10] + losses[-1:],
    "predictions": model(x[:3]).tolist(),
    "halved": copy(x[:3]).tolist(),
    "calls": int(model.calls[...]),
    "statistics": model.batch_norm.mean[...].tolist(),
    "parameters": sum(leaf.size for leaf in jax.tree.leaves(parameters)),
    "kernels": list(model.layers.linear.kernel.shape),
}
print(json.dumps(figures))
