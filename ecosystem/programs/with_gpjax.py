"""GPJax: regression with a product of kernels, fitted by Adam and by SciPy's L-BFGS; classification; a sparse process.

scipy: to 1e-3, because the minimiser stops where the marginal likelihood is flat.
"""

import json

import jax

jax.config.update("jax_enable_x64", True)

import gpjax as gpx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402

keys = jax.random.split(jax.random.key(0), 4)
x = jnp.sort(jax.random.uniform(keys[0], (40, 1), maxval=6.0), axis=0)
y = jnp.sin(2 * x) + 0.3 * x + 0.1 * jax.random.normal(keys[1], x.shape)
data = gpx.Dataset(X=x, y=y)
at = jnp.linspace(0, 7, 5)[:, None]

kernel = gpx.kernels.RBF() * gpx.kernels.Matern52(lengthscale=2.0) + gpx.kernels.Linear()
prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Constant(), kernel=kernel)
model = prior * gpx.likelihoods.Gaussian()


def objective(model, data):
    return -gpx.objectives.conjugate_mll(model, data)


fitted, history = gpx.fit(
    model=model, objective=objective, train_data=data, optim=optax.adam(0.05), num_iters=60, verbose=False
)
by_scipy, minima = gpx.fit_scipy(model=model, objective=objective, train_data=data, max_iters=60, verbose=False)
predicted = fitted.condition(data).predict(at)

labels = gpx.Dataset(X=x, y=(y > 1.0).astype(jnp.float64))
classifier = (
    gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF()) * gpx.likelihoods.Bernoulli()
)
classifier, posterior = gpx.fit(
    model=classifier, objective=lambda model, data: -gpx.objectives.log_posterior_density(model, data),
    train_data=labels, optim=optax.adam(0.05), num_iters=60, verbose=False,
)  # fmt: skip

sparse = gpx.variational_families.VariationalGaussian(model, jnp.linspace(0, 6, 8)[:, None])
sparse, bound = gpx.fit(
    model=sparse, objective=lambda model, data: -gpx.objectives.elbo(model, data), train_data=data,
    optim=optax.adam(0.02), num_iters=60, batch_size=10, key=keys[2], verbose=False,
)  # fmt: skip
figures = {
    "gram": kernel.gram(x[:3]).as_matrix().tolist(),
    "history": history[::12].tolist(),
    "mean": predicted.mean.tolist(),
    "variance": predicted.variance.tolist(),
    "scipy": float(minima[-1]),
    "classification": posterior[::12].tolist(),
    "bound": bound[::12].tolist(),
}
print(json.dumps(figures))
