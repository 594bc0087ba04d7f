"""TensorFlow Probability on JAX: HMC and NUTS, bijectors with their determinants, a joint distribution, a filter.

HMC and NUTS are compared in distribution.
"""

import json

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfb, tfd = tfp.bijectors, tfp.distributions
keys = jax.random.split(jax.random.key(0), 4)
target = tfd.MultivariateNormalTriL(jnp.array([1.0, -2.0]), jnp.linalg.cholesky(jnp.array([[1.0, 0.6], [0.6, 2.0]])))


def summary(values):
    batches = values.reshape(20, -1).mean(1)
    return {"mean": float(values.mean()), "error": float(batches.std() / jnp.sqrt(19.0))}


def sample(kernel, key):
    return tfp.mcmc.sample_chain(
        1000, current_state=jnp.zeros(2), kernel=kernel, num_burnin_steps=100, trace_fn=None, seed=key
    )


hmc = tfp.mcmc.HamiltonianMonteCarlo(target.log_prob, step_size=0.4, num_leapfrog_steps=3)
adapted = tfp.mcmc.DualAveragingStepSizeAdaptation(hmc, num_adaptation_steps=80)
by_hmc = jax.jit(lambda key: sample(adapted, key))(keys[0])
by_nuts = jax.jit(lambda key: sample(tfp.mcmc.NoUTurnSampler(target.log_prob, step_size=0.7), key))(keys[1])

joint = tfd.JointDistributionSequential(
    [tfd.Gamma(2.0, 1.0), lambda rate: tfd.Sample(tfd.Poisson(rate), 4)], validate_args=False
)
chain = tfb.Chain([tfb.Softplus(), tfb.Scale(2.0)])
spline = tfb.RationalQuadraticSpline(
    jnp.array([1.0, 2.0, 1.0]), jnp.array([2.0, 1.0, 1.0]), jnp.array([0.5, 1.5]), range_min=-2.0
)
positive = tfd.TransformedDistribution(tfd.Normal(jnp.zeros(2), 1.0), tfb.Softplus())
model = tfd.LinearGaussianStateSpaceModel(
    6, transition_matrix=jnp.eye(1), transition_noise=tfd.MultivariateNormalDiag(scale_diag=jnp.array([0.5])),
    observation_matrix=jnp.eye(1), observation_noise=tfd.MultivariateNormalDiag(scale_diag=jnp.array([1.0])),
    initial_state_prior=tfd.MultivariateNormalDiag(scale_diag=jnp.array([1.0])),
)  # fmt: skip
observed = jnp.array([0.1, 0.5, 1.2, 0.9, 1.7, 2.0])[:, None]
x = jnp.array([-1.0, 0.2, 1.5])
figures = {
    "HMC, first": summary(by_hmc[:, 0]),
    "HMC, square": summary((by_hmc[:, 1] + 2.0) ** 2),
    "NUTS, second": summary(by_nuts[:, 1]),
    "NUTS, product": summary(jnp.prod(by_nuts - target.loc, axis=1)),
    "chain": [chain.forward(x).tolist(), chain.forward_log_det_jacobian(x, 0).tolist()],
    "spline": [spline.forward(x).tolist(), spline.inverse_log_det_jacobian(x, 0).tolist()],
    "cholesky": tfb.FillScaleTriL().forward(x).tolist(),
    "simplex": tfb.SoftmaxCentered().inverse(jnp.array([0.2, 0.3, 0.5])).tolist(),
    "joint": float(joint.log_prob([jnp.array(1.5), jnp.array([0.0, 1.0, 2.0, 3.0])])),
    "samples": target.sample(3, seed=keys[2]).tolist(),
    "transformed": jax.grad(lambda x: positive.log_prob(x).sum())(jnp.array([0.3, 1.2])).tolist(),
    "filter": float(model.log_prob(observed)),
    "divergence": float(tfd.kl_divergence(tfd.Beta(2.0, 3.0), tfd.Beta(1.0, 1.5))),
    "von Mises": tfd.VonMises(0.0, 2.0).log_prob(x).tolist(),
}
print(json.dumps(figures))
