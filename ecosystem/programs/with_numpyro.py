"""NumPyro: eight schools by NUTS, and a regression by variational inference.

The figures of chains are compared in distribution; the rate of acceptance, which depends on the step found, to 0.02.
"""

import json

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.reparam import LocScaleReparam

effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(errors, effects=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(errors)), numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)}):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
    with numpyro.plate("observations", len(errors)):
        numpyro.sample("effects", dist.Normal(theta, errors), obs=effects)


def regression(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 2))
    noise = numpyro.sample("noise", dist.Gamma(2.0, 2.0))
    numpyro.sample("y", dist.StudentT(4.0, slope * x, noise).to_event(1), obs=y)


def summary(samples):
    size = effective_sample_size(jax.device_get(samples)[None])
    return {"mean": float(samples.mean()), "error": float(samples.std() / jnp.sqrt(size))}


mcmc = MCMC(NUTS(schools), num_warmup=500, num_samples=1000, progress_bar=False)
mcmc.run(jax.random.key(0), errors, effects, extra_fields=("diverging", "accept_prob"))
samples = mcmc.get_samples()
predictions = Predictive(schools, samples)(jax.random.key(1), errors)["effects"]

x = jnp.linspace(-1.0, 1.0, 40)
y = 1.5 * x + 0.3 * jax.random.normal(jax.random.key(2), (40,))
guide = AutoNormal(regression)
svi = SVI(regression, guide, numpyro.optim.Adam(0.02), Trace_ELBO())
fit = svi.run(jax.random.key(3), 200, x, y, progress_bar=False)
figures = {
    "mu": summary(samples["mu"]),
    "log tau": summary(jnp.log(samples["tau"])),
    "first school": summary(samples["theta"][:, 0]),
    "last school": summary(samples["theta"][:, 7]),
    "prediction": summary(predictions[:, 0]),
    "acceptance": {"mean": float(mcmc.get_extra_fields()["accept_prob"].mean()), "error": 0.02},
    "log density": float(dist.MultivariateNormal(jnp.zeros(8), jnp.diag(errors**2)).log_prob(effects)),
    "losses": fit.losses[::40].tolist(),
    "median": [float(value) for value in guide.median(fit.params).values()],
}
print(json.dumps(figures))
