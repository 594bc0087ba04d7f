"""Gaussian process regression: the marginal likelihood's gradient, by way of a Cholesky factor and solves.

The length, the height and the noise of the process are those that make the data most likely. The gradient at the start
is compared with the formula by traces (Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", equation
5.9). The process ends with a non-zero status if the two differ, or if the noise of the data is not found again. If
matplotlib is installed, the posterior is drawn.

    python examples/gaussian_process.py [posterior.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pullback.numpy as jnp
from pullback import Array, enable_x64, grad, hessian, jacfwd, jit, random, vmap
from pullback.scipy.linalg import cho_solve, cholesky, solve_triangular
from pullback.scipy.optimize import minimize

COUNT, NOISE = 60, 0.2


def data(key: Any) -> tuple[Array, Array]:
    """Places from 0 to 10, and values of a curve there with noise."""
    place_key, noise_key = random.split(key)
    x = jnp.sort(random.uniform(place_key, (COUNT,), minval=0.0, maxval=10.0))
    return x, jnp.sin(x) + 0.3 * jnp.cos(3 * x) + NOISE * random.normal(noise_key, (COUNT,))


def covariance(logarithms: Array, x: Array, y: Array) -> Array:
    """The covariances of the process at places x and y; of a length and a height, given by their logarithms."""
    length, height = jnp.exp(logarithms[:2])
    return height**2 * jnp.exp(-0.5 * ((x[:, None] - y) / length) ** 2)


def of_data(logarithms: Array, x: Array) -> Array:
    """The covariances of the data, which have noise."""
    return covariance(logarithms, x, x) + jnp.exp(2 * logarithms[2]) * jnp.eye(len(x))


def negative_log_likelihood(logarithms: Array, x: Array, y: Array) -> Array:
    factor = cholesky(of_data(logarithms, x), lower=True)
    whitened = solve_triangular(factor, y, lower=True)
    return 0.5 * whitened @ whitened + jnp.log(jnp.diag(factor)).sum() + 0.5 * len(x) * jnp.log(2 * jnp.pi)


def by_traces(logarithms: Array, x: Array, y: Array) -> Array:
    """The gradient by the formula of the book."""
    inverse = jnp.linalg.inv(of_data(logarithms, x))
    weights = inverse @ y
    changes = jacfwd(of_data)(logarithms, x)
    return -0.5 * jnp.einsum("ij,jik->k", jnp.outer(weights, weights) - inverse, changes)


def posterior(logarithms: Array, x: Array, y: Array, new: Array) -> tuple[Array, Array]:
    """The means and standard deviations of the process at new places."""
    factor = cholesky(of_data(logarithms, x), lower=True), True
    across = covariance(logarithms, x, new)
    lost = vmap(lambda c: c @ cho_solve(factor, c), in_axes=1)(across)
    return across.T @ cho_solve(factor, y), jnp.sqrt(jnp.exp(2 * logarithms[1]) - lost)


def draw(x: Array, y: Array, new: Array, mean: Array, deviation: Array, path: Path) -> None:
    """The data, and the posterior with two standard deviations, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, alpha=0.3)
    pyplot.plot(new, mean)
    pyplot.plot(x, y, ".")
    pyplot.savefig(path)
    print(f"the posterior is drawn in {path}")


def main() -> int:
    """Fit the process; the exit status is 0 if the gradients agree and the noise is found."""
    x, y = data(random.key(3))
    start = jnp.log(jnp.array([1.0, 1.0, 1.0]))
    found = jit(grad(negative_log_likelihood))(start, x, y)
    error = float(abs(found - by_traces(start, x, y)).max() / abs(found).max())
    print(f"gradient by reverse mode and by traces: relative difference {error:.1e}")
    fit = minimize(negative_log_likelihood, start, args=(x, y), method="BFGS")
    length, height, noise = (float(v) for v in jnp.exp(fit.x))
    spread = jnp.sqrt(jnp.diag(jnp.linalg.inv(hessian(negative_log_likelihood)(fit.x, x, y))))
    print(f"length {length:.3f}, height {height:.3f}, noise {noise:.3f} (+- {100 * float(spread[2]):.0f} %)")
    new = jnp.linspace(0.0, 10.0, 201)
    mean, deviation = jit(posterior)(fit.x, x, y, new)
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "posterior.png"
    draw(x, y, new, mean, deviation, path)
    return 0 if error < 1e-9 and abs(jnp.log(noise / NOISE)) < 3 * spread[2] else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
