"""Distrax: distributions, mixtures, bijectors and a flow trained by its log density, and a hidden Markov model."""

import json

import distrax
import jax
import jax.numpy as jnp
import optax

keys = jax.random.split(jax.random.key(0), 5)
normal = distrax.MultivariateNormalTri(jnp.array([0.5, -1.0]), jnp.array([[1.0, 0.0], [0.5, 0.8]]))
mixture = distrax.MixtureSameFamily(
    distrax.Categorical(logits=jnp.array([0.1, 0.9])), distrax.Normal(jnp.array([-1.0, 2.0]), jnp.array([0.5, 1.0]))
)
squashed = distrax.Transformed(
    distrax.Normal(jnp.zeros(3), 1.0), distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(0.2, 0.5)])
)
x, density = squashed.sample_and_log_prob(seed=keys[0], sample_shape=(2,))


def flow(weights):
    def conditioner(x):
        return (jnp.tanh(x @ weights["first"]) @ weights["second"]).reshape(*x.shape, 13)

    def spline(parameters):
        return distrax.RationalQuadraticSpline(parameters, range_min=-4.0, range_max=4.0)

    coupling = distrax.MaskedCoupling(jnp.array([True, False]), conditioner, spline)
    return distrax.Transformed(distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)), distrax.Inverse(coupling))


data = normal.sample(seed=keys[1], sample_shape=(50,))
weights = {"first": jax.random.normal(keys[2], (2, 8)), "second": 0.1 * jax.random.normal(keys[3], (8, 26))}
optimizer = optax.adam(0.02)


@jax.jit
def train(weights):
    def step(carry, _):
        weights, state = carry
        value, gradient = jax.value_and_grad(lambda weights: -flow(weights).log_prob(data).mean())(weights)
        updates, state = optimizer.update(gradient, state)
        return (optax.apply_updates(weights, updates), state), value

    return jax.lax.scan(step, (weights, optimizer.init(weights)), None, length=10)


(weights, _), losses = train(weights)
chain = distrax.HMM(
    init_dist=distrax.Categorical(probs=jnp.array([0.6, 0.4])),
    trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
    obs_dist=distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 1.0])),
)
observed = jnp.array([-1.2, -0.7, 0.9, 1.4, -0.1])
alphas, _, marginals, likelihood = chain.forward_backward(observed)
figures = {
    "samples": normal.sample(seed=keys[4], sample_shape=(2,)).tolist(),
    "entropy": float(normal.entropy()),
    "divergence": float(distrax.Gamma(2.0, 1.0).kl_divergence(distrax.Gamma(3.0, 2.0))),
    "mixture": jax.grad(mixture.log_prob)(0.3).tolist(),
    "squashed": [x.tolist(), density.tolist()],
    "losses": losses.tolist(),
    "marginals": marginals.tolist(),
    "likelihood": float(likelihood),
    "path": chain.viterbi(observed).tolist(),
    "one-hot": distrax.OneHotCategorical(logits=jnp.arange(3.0)).sample(seed=keys[0], sample_shape=(4,)).tolist(),
}
print(json.dumps(figures))
