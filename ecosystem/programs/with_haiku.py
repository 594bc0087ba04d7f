"""Haiku: `transform_with_state` with batch normalisation, an LSTM by `dynamic_unroll`, dropout, attention."""

import json

import haiku as hk
import jax
import jax.numpy as jnp
import optax


def forward(x, train):
    x = hk.Conv1D(8, 3, with_bias=False)(x)
    x = jax.nn.relu(hk.BatchNorm(True, True, decay_rate=0.9)(x, is_training=train))
    core = hk.DeepRNN([hk.LSTM(12), jnp.tanh, hk.GRU(6)])
    outputs, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[0]), time_major=False)
    if train:
        outputs = hk.dropout(hk.next_rng_key(), 0.1, outputs)
    calls = hk.get_state("calls", [], jnp.int32, init=jnp.zeros)
    hk.set_state("calls", calls + 1)
    return hk.nets.MLP([8, 1], w_init=hk.initializers.VarianceScaling(2.0))(outputs[:, -1])[:, 0]


network = hk.transform_with_state(forward)


@jax.jit
def step(params, state, opt_state, key):
    def loss(params):
        predictions, after = network.apply(params, state, key, x, True)
        return jnp.mean((predictions - y) ** 2), after

    (value, state_after), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), state_after, opt_state, value


x = jax.random.normal(jax.random.key(0), (16, 10, 2))
y = jnp.sum(x[:, -3:, 0], axis=1)
params, state = network.init(jax.random.key(1), x, True)
optimizer = optax.adam(1e-2)
opt_state = optimizer.init(params)
rngs = hk.PRNGSequence(2)
losses = []
for _ in range(20):
    params, state, opt_state, value = step(params, state, opt_state, next(rngs))
    losses.append(float(value))

recurrent, others = hk.data_structures.partition(
    lambda module, name, value: "lstm" in module or "gru" in module, params
)
attention = hk.without_apply_rng(hk.transform(lambda x: hk.MultiHeadAttention(2, 4, w_init_scale=1.0)(x, x, x)))
predictions, _ = network.apply(params, state, None, x, False)
figures = {
    "losses": losses[::5] + losses[-1:],
    "predictions": predictions[:4].tolist(),
    "calls": int(state["~"]["calls"]),
    "average": state["batch_norm/~/mean_ema"]["average"].ravel().tolist(),
    "parameters": [hk.data_structures.tree_size(tree) for tree in (recurrent, others)],
    "attention": attention.apply(attention.init(jax.random.key(3), x), x)[0, 0].tolist(),
}
print(json.dumps(figures))
