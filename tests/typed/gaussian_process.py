"""The logarithm of a Gaussian process's marginal likelihood, and its prediction."""

import math
from functools import partial

import pullback
import pullback.numpy as jnp
import pullback.scipy.linalg
from pullback import Array
from pullback.scipy.stats import norm
from pullback.typing import ArrayLike


def kernel(x: Array, y: Array, scale: ArrayLike = 1.0) -> Array:
    return jnp.exp(-0.5 * jnp.square((x[:, None] - y[None, :]) / scale))


def log_likelihood(scale: ArrayLike, x: Array, y: Array) -> Array:
    factor = jnp.linalg.cholesky(kernel(x, x, scale) + 1e-2 * jnp.eye(len(x)))
    z = pullback.scipy.linalg.solve_triangular(factor, y, lower=True)
    return -0.5 * z @ z - jnp.sum(jnp.log(jnp.diag(factor))) - 0.5 * x.size * math.log(2 * math.pi)


@partial(pullback.jit, static_argnames="samples")
def predict(x: Array, y: Array, at: Array, samples: int) -> tuple[Array, Array]:
    covariance = kernel(x, x) + 1e-2 * jnp.eye(x.shape[0])
    mean = kernel(at, x) @ jnp.linalg.solve(covariance, y)
    return mean, jnp.quantile(mean, jnp.linspace(0, 1, samples))


def mistaken(x: Array) -> Array:
    return kernel(x, "rbf")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    x = jnp.linspace(0.0, 3.0, 12)
    y = jnp.sin(2 * x)
    slope = pullback.grad(log_likelihood)(1.0, x, y)
    second = pullback.hessian(log_likelihood)(1.0, x, y)
    mean, quantiles = predict(x, y, x, samples=3)
    assert mean.shape == x.shape
    assert quantiles.ndim == 1
    assert jnp.abs(mean - y).max() < 0.1
    print(slope.shape, second.shape, norm.logpdf(mean).sum().item() < 0)
