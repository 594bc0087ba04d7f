"""Flax's Linen: a small convolutional network and a transformer block, with dropout and batch statistics, trained."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.core import freeze, unfreeze
from flax.training import train_state


class Block(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, train):
        attention = nn.MultiHeadDotProductAttention(self.heads, dropout_rate=0.1, deterministic=not train)
        x = x + attention(nn.LayerNorm()(x))
        return x + nn.Dropout(0.2, deterministic=not train)(nn.Dense(x.shape[-1])(nn.gelu(nn.LayerNorm()(x))))


class Network(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x, train=True):
        x = nn.Conv(8, (3, 3), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(x))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        block = nn.remat(Block, static_argnums=(2,))
        blocks = nn.scan(
            lambda block, x, _: (block(x, train), None), variable_axes={"params": 0},
            split_rngs={"params": True, "dropout": True}, length=2,
        )  # fmt: skip
        x, _ = blocks(block(2), x, None)
        return nn.Dense(self.classes)(x.mean(1))


class State(train_state.TrainState):
    batch_stats: dict


@jax.jit
def step(state, x, labels, key):
    def loss(params):
        variables = {"params": params, "batch_stats": state.batch_stats}
        logits, updates = state.apply_fn(variables, x, rngs={"dropout": key}, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), updates

    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"]), value


keys = jax.random.split(jax.random.key(0), 3)
labels = jnp.arange(16) % 3
x = jax.random.normal(keys[0], (16, 8, 8, 1)) + labels[:, None, None, None]
network = Network(3)
variables = network.init({"params": keys[1], "dropout": keys[2]}, x)
state = State.create(
    apply_fn=network.apply, params=variables["params"], tx=optax.adam(3e-3), batch_stats=variables["batch_stats"]
)
losses = []
for i in range(20):
    state, value = step(state, x, labels, jax.random.fold_in(keys[2], i))
    losses.append(float(value))
logits = network.apply({"params": state.params, "batch_stats": state.batch_stats}, x, train=False)
cells = nn.RNN(nn.LSTMCell(4))
sequence = x[:2, :, :, 0]
figures = {
    "losses": losses[::5] + losses[-1:],
    "logits": logits[:2].ravel().tolist(),
    "batch statistics": state.batch_stats["BatchNorm_0"]["mean"].tolist(),
    "parameters": sum(leaf.size for leaf in jax.tree.leaves(state.params)),
    "LSTM": cells.apply(cells.init(keys[1], sequence), sequence)[0, -1].tolist(),
    "frozen": len(jax.tree.leaves(unfreeze(freeze(variables)))),
}
print(json.dumps(figures))
