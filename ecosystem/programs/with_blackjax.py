"""BlackJAX: NUTS and HMC after window adaptation, on a correlated Gaussian; chains are compared in distribution."""

import json

import blackjax
import jax
import jax.numpy as jnp

covariance = jnp.array([[1.0, 0.6], [0.6, 2.0]])
location = jnp.array([1.0, -2.0])
precision = jnp.linalg.inv(covariance)


def log_density(x):
    return -0.5 * (x - location) @ precision @ (x - location)


def sample(algorithm, key, **options):
    adaptation = blackjax.window_adaptation(algorithm, log_density, **options)
    first, second = jax.random.split(key)
    (state, parameters), _ = adaptation.run(first, jnp.zeros(2), num_steps=300)
    kernel = algorithm(log_density, **parameters)

    @jax.jit
    def chain(state, keys):
        return jax.lax.scan(lambda state, key: (kernel.step(key, state)[0],) * 2, state, keys)[1].position

    return chain(state, jax.random.split(second, 2000))


def summary(values):
    batches = values.reshape(20, -1).mean(1)
    return {"mean": float(values.mean()), "error": float(batches.std() / jnp.sqrt(19.0))}


nuts = sample(blackjax.nuts, jax.random.key(0))
hmc = sample(blackjax.hmc, jax.random.key(1), num_integration_steps=8)
random_walk = blackjax.additive_step_random_walk(log_density, blackjax.mcmc.random_walk.normal(jnp.ones(2)))
state = random_walk.init(jnp.zeros(2))
for key in jax.random.split(jax.random.key(2), 3):
    state, info = jax.jit(random_walk.step)(key, state)
resampled = blackjax.smc.resampling.systematic(jax.random.key(3), jnp.array([0.1, 0.2, 0.3, 0.4]), 8)
figures = {
    "NUTS, first": summary(nuts[:, 0]),
    "NUTS, second": summary(nuts[:, 1]),
    "NUTS, product": summary(jnp.prod(nuts - location, axis=1)),
    "HMC, first": summary(hmc[:, 0]),
    "HMC, square": summary((hmc[:, 1] - location[1]) ** 2),
    "random walk": state.position.tolist(),
    "resampled": resampled.tolist(),
}
print(json.dumps(figures))
