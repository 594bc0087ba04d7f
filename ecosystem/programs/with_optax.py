"""Optax: regression with Adam, a warm-up and cosine schedule, clipping, and two learning rates."""

import json

import jax
import jax.numpy as jnp
import optax

STEPS = 150


def predict(params, x):
    hidden = jnp.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return hidden @ params["out"]["w"] + params["out"]["b"]


def loss(params, x, y):
    return jnp.mean(optax.huber_loss(predict(params, x)[:, 0], y, delta=1.0))


keys = jax.random.split(jax.random.key(0), 3)
x = jax.random.uniform(keys[0], (64, 2), minval=-2.0, maxval=2.0)
y = jnp.sin(x[:, 0]) * x[:, 1]
params = {
    "hidden": {"w": jax.random.normal(keys[1], (2, 16)), "b": jnp.zeros(16)},
    "out": {"w": 0.3 * jax.random.normal(keys[2], (16, 1)), "b": jnp.zeros(1)},
}

schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-2, warmup_steps=20, decay_steps=STEPS)
optimizer = optax.multi_transform(
    {
        "hidden": optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-4)),
        "out": optax.chain(optax.add_decayed_weights(1e-4), optax.sgd(0.05, momentum=0.9, nesterov=True)),
    },
    {"hidden": "hidden", "out": "out"},
)
state = optimizer.init(params)


@jax.jit
def step(params, state):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value, optax.global_norm(grads)


losses = []
for _ in range(STEPS):
    params, state, value, norm = step(params, state)
    losses.append(float(value))

labels = jax.nn.one_hot(jnp.arange(4), 4)
logits = jax.random.normal(jax.random.key(1), (4, 4))
figures = {
    "losses": losses[::30] + losses[-1:],
    "gradient norm": float(norm),
    "schedule": [float(schedule(i)) for i in (0, 10, 20, 85, 150)],
    "weights": params["out"]["w"][:4, 0].tolist(),
    "cross entropy": optax.softmax_cross_entropy(logits, labels).tolist(),
    "projection": optax.projections.projection_simplex(logits[0]).tolist(),
}
print(json.dumps(figures))
