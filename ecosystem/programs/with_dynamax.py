"""Dynamax: a hidden Markov model fitted by EM and by gradients, a Kalman smoother, and an extended Kalman filter."""

import json

import jax
import jax.numpy as jnp
import optax
from dynamax.hidden_markov_model import GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM
from dynamax.nonlinear_gaussian_ssm import ParamsNLGSSM, extended_kalman_filter

keys = jax.random.split(jax.random.key(0), 3)
times = jnp.arange(40.0)
observed = jnp.stack([jnp.sign(jnp.sin(times / 5)), jnp.cos(times / 5)], 1) + 0.2 * jax.random.normal(keys[0], (40, 2))

hmm = GaussianHMM(num_states=2, emission_dim=2)
means = jnp.array([[-1.0, 0.0], [1.0, 0.0]])
start, properties = hmm.initialize(keys[1], emission_means=means)
by_em, log_likelihoods = hmm.fit_em(start, properties, observed, num_iters=6, verbose=False)
_, losses = hmm.fit_sgd(start, properties, observed[None], optimizer=optax.adam(1e-2), num_epochs=8)

tracker = LinearGaussianSSM(state_dim=2, emission_dim=2)
linear, _ = tracker.initialize(keys[2], dynamics_weights=jnp.array([[0.98, 0.2], [-0.2, 0.98]]))
smoothed = tracker.smoother(linear, observed)
pendulum = ParamsNLGSSM(
    initial_mean=jnp.array([0.5, 0.0]), initial_covariance=0.1 * jnp.eye(2),
    dynamics_function=lambda x: jnp.array([x[0] + 0.1 * x[1], x[1] - 0.98 * jnp.sin(x[0])]),
    dynamics_covariance=0.01 * jnp.eye(2), emission_function=lambda x: jnp.sin(x[:1]),
    emission_covariance=0.05 * jnp.eye(1),
)  # fmt: skip
filtered = extended_kalman_filter(pendulum, observed[:, 1:])
figures = {
    "EM": log_likelihoods[1:].tolist(),
    "means": by_em.emissions.means.tolist(),
    "gradients": losses.tolist(),
    "states": hmm.most_likely_states(by_em, observed).tolist(),
    "smoother": smoothed.smoothed_means[::10].tolist(),
    "marginal": float(smoothed.marginal_loglik),
    "slope": jax.grad(lambda y: tracker.marginal_log_prob(linear, y))(observed)[3].tolist(),
    "extended": filtered.filtered_means[::10].tolist(),
}
print(json.dumps(figures))
