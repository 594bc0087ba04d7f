"""jax-cosmo: distances, growth, spectra of weak lensing and galaxies, their derivatives, and a Fisher matrix."""

import json
import sys
import types

import jax
import jax.numpy as jnp

# The library asks pkg_resources for its version; newer releases of setuptools have none.
version = types.ModuleType("pkg_resources")
version.DistributionNotFound = LookupError
version.get_distribution = lambda name: types.SimpleNamespace(version="0.1.0")
sys.modules.setdefault("pkg_resources", version)

import jax_cosmo  # noqa: E402

scale = jnp.array([0.4, 0.7, 1.0])
k = jnp.logspace(-3, 0, 5)
multipoles = jnp.array([20.0, 1000.0])
lenses, sources = jax_cosmo.redshift.smail_nz(1.0, 2.0, 1.0), jax_cosmo.redshift.smail_nz(1.0, 2.0, 2.0)
probes = [
    jax_cosmo.probes.WeakLensing([sources]),
    jax_cosmo.probes.NumberCounts([lenses], jax_cosmo.bias.constant_linear_bias(1.2)),
]


def universe(parameters):
    return jax_cosmo.Planck15(Omega_c=parameters[0], sigma8=parameters[1])


def observed(parameters):
    cosmology = universe(parameters)
    spectra = jax_cosmo.cl.angular_cl(cosmology, multipoles, probes)
    return spectra, (spectra, jax_cosmo.background.growth_factor(cosmology, scale))


@jax.jit
def forecast(parameters):
    slope, (spectra, growth) = jax.jacfwd(observed, has_aux=True)(parameters)
    noise = jax_cosmo.cl.noise_cl(multipoles, probes)
    covariance = jax_cosmo.cl.gaussian_cl_covariance(multipoles, probes, spectra, noise, sparse=True)
    slope = slope.reshape(-1, 2)
    fisher = slope.T @ jax_cosmo.sparse.dot(jax_cosmo.sparse.inv(covariance), slope)
    shifted = (spectra * 1.01).flatten()
    fit = jax_cosmo.likelihood.gaussian_log_likelihood(shifted, spectra.flatten(), covariance, include_logdet=False)
    return spectra, growth, covariance, fisher, fit


@jax.jit
def background(parameters):
    cosmology = universe(parameters)
    power = jax_cosmo.power.linear_matter_power(cosmology, k, 0.8)
    return jax_cosmo.background.angular_diameter_distance(cosmology, scale), power


fiducial = jnp.array([0.2589, 0.8159])
distance, power = background(fiducial)
spectra, growth, covariance, fisher, fit = forecast(fiducial)
figures = {
    "distance": distance.tolist(),
    "growth": growth.tolist(),
    "power": power.tolist(),
    "spectra, logarithms": jnp.log(spectra).tolist(),
    "covariance, logarithms": jnp.log(jnp.abs(jax_cosmo.sparse.to_dense(covariance).diagonal())).tolist(),
    "Fisher matrix": fisher.tolist(),
    "log likelihood": float(fit),
}
print(json.dumps(figures))
