"""Brax: 100 steps of a pendulum on a cart by two engines, a policy's gradient through time, and vectorised resets.

spring: to 1e-3, because a hundred steps of a pendulum that stands on end enlarge the rounding of float32.
"""

import json

import jax
import jax.numpy as jnp
from brax import envs
from brax.training.agents.ppo import networks

key = jax.random.key(0)


def rollout(environment, weights, steps):
    def step(state, _):
        action = jnp.tanh(state.obs @ weights)[None]
        state = environment.step(state, action)
        return state, (state.obs, state.reward)

    return jax.lax.scan(step, environment.reset(key), None, length=steps)[1]


weights = jnp.array([0.1, 1.0, 0.2, 0.3])
figures = {}
for backend in ("generalized", "spring"):
    pendulum = envs.get_environment("inverted_pendulum", backend=backend)
    observed, _ = jax.jit(lambda weights, pendulum=pendulum: rollout(pendulum, weights, 100))(weights)
    figures[backend] = observed[::20].tolist()
pendulum = envs.get_environment("inverted_pendulum", backend="generalized")
balance = lambda weights: jnp.mean(rollout(pendulum, weights, 20)[0][:, 1] ** 2)
figures["gradient"] = jax.jit(jax.grad(balance))(weights).tolist()
batch = envs.create("inverted_pendulum", backend="spring", batch_size=3, episode_length=5)
state = jax.jit(batch.reset)(key)
for _ in range(3):
    state = jax.jit(batch.step)(state, jnp.full((3, 1), 0.2))
figures["batch"] = state.obs.tolist()
figures["steps"] = state.info["steps"].tolist()
policy = networks.make_ppo_networks(4, 1, policy_hidden_layer_sizes=(8,), value_hidden_layer_sizes=(8,))
figures["policy"] = policy.policy_network.apply(None, policy.policy_network.init(key), state.obs).tolist()
print(json.dumps(figures))
