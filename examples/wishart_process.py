"""A covariance that changes with time: the generalised Wishart process, fitted to measurements.

At each time the covariance is a sum of squares of vectors whose components are Gaussian processes of the time, so that
at one time it is of Wishart's distribution, and near times have near covariances (Wilson and Ghahramani 2011,
"Generalised Wishart processes"). Measurements of two quantities are drawn with a correlation that goes from strong to
none and back. A normal distribution of the process is fitted to them by the gradient of the evidence lower bound, whose
samples have derivatives by its means, its deviations, the length scale and the covariance of the vectors.

The process ends with a non-zero status if samples of the process at one time do not have the moments and the density of
Wishart's distribution, if the correlation is not found with a smaller error than by moving windows of the best width,
or if it is not within the band of 95 % nearly always. If matplotlib is installed, the measurements and the correlation
are drawn.

    python examples/wishart_process.py [correlation.png]
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, jit, lax, random, value_and_grad, vmap
from pullback.example_libraries import optimizers
from pullback.scipy.linalg import solve_triangular
from pullback.scipy.special import digamma
from pullback.scipy.stats import multivariate_normal, wishart

TIMES, KNOTS, SIZE, DEGREES = 500, 25, 2, 3
STEPS, DRAWS = 1200, 1
TRUE = 0.85 * np.cos(np.linspace(0, 2 * np.pi, TIMES)) ** 2
DEVIATIONS = np.array([1.0, 0.6])


def truth() -> np.ndarray[Any, Any]:
    """The covariances with which measurements are drawn, (times, 2, 2)."""
    correlation = np.stack([np.stack([np.ones(TIMES), TRUE], -1), np.stack([TRUE, np.ones(TIMES)], -1)], -1)
    return correlation * DEVIATIONS[:, None] * DEVIATIONS


def kernel(s: Array, t: Array, scale: Array) -> Array:
    return jnp.exp(-(((s[:, None] - t) / scale) ** 2) / 2)


def paths(noise: Array, scale: Array) -> Array:
    """Gaussian processes at all times, from normal numbers at the knots; they have the length ``scale``.

    Between the knots they are the means given the values there, times the factor that keeps the variance one.
    """
    knots, t = jnp.linspace(0, 1, KNOTS), jnp.linspace(0, 1, TIMES)
    factor = jnp.linalg.cholesky(kernel(knots, knots, scale) + 1e-6 * jnp.eye(KNOTS))
    weights = solve_triangular(factor, kernel(knots, t, scale), lower=True)
    weights = weights / jnp.linalg.norm(weights, axis=0)
    return jnp.einsum("kt,kid->tid", weights, noise)


def covariances(noise: Array, root: Array, scale: Array) -> Array:
    """The process, (times, 2, 2), from normal numbers (knots, 2, degrees) and the root of a covariance."""
    spread = jnp.einsum("ij,tjd->tid", root, paths(noise, scale))
    return jnp.einsum("tid,tjd->tij", spread, spread) / DEGREES


def root_of(p: dict[str, Array]) -> Array:
    return jnp.tril(p["root"])


def draws(p: dict[str, Array], key: Array, count: int) -> Array:
    """Samples of the covariances of the fitted distribution, (count, times, 2, 2)."""
    noise = p["mean"] + jnp.exp(p["deviation"]) * random.normal(key, (count, *p["mean"].shape))
    return vmap(partial(covariances, root=root_of(p), scale=jnp.exp(p["scale"])))(noise)


def loss(p: dict[str, Array], key: Array, y: Array) -> Array:
    """Minus the evidence lower bound: the divergence from standard normal numbers, minus the log likelihood."""
    fitted = draws(p, key, DRAWS) + 1e-3 * jnp.eye(SIZE)
    likelihood = multivariate_normal.logpdf(y, jnp.zeros(SIZE), fitted).sum(-1).mean()
    variance = jnp.exp(2 * p["deviation"])
    divergence = jnp.sum(p["mean"] ** 2 + variance - 1 - 2 * p["deviation"]) / 2
    return divergence - likelihood


@jit
def fit(key: Array, y: Array) -> tuple[dict[str, Array], Array]:
    """The parameters of the fitted distribution, and the loss of each step."""
    shape = (KNOTS, SIZE, DEGREES)
    start = {
        "mean": 0.5 * random.normal(random.fold_in(key, STEPS), shape), "deviation": jnp.full(shape, -2.0),
        "root": jnp.linalg.cholesky(jnp.cov(y.T)), "scale": jnp.log(0.2),
    }  # fmt: skip
    begin, update, get = optimizers.adam(optimizers.exponential_decay(0.05, STEPS, 0.05))

    def step(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, losses = carry
        value, slopes = value_and_grad(loss)(get(state), random.fold_in(key, i), y)
        return update(i, slopes, state), losses.at[i].set(value)

    state, losses = lax.fori_loop(0, STEPS, step, (begin(start), jnp.zeros(STEPS)))
    return get(state), losses


def correlation(covariance: Array) -> Array:
    return covariance[..., 0, 1] / jnp.sqrt(covariance[..., 0, 0] * covariance[..., 1, 1])


def is_wishart(key: Array) -> bool:
    """Whether the process at one time has Wishart's moments, and a density whose mean ratio to another one is one."""
    root = jnp.array([[1.0, 0.0], [0.5, 0.8]])
    noise = random.normal(key, (4000, KNOTS, SIZE, DEGREES))
    x = DEGREES * jit(vmap(lambda z: covariances(z, root, jnp.array(0.1))[TIMES // 3]))(noise)
    centre, logarithms = root @ root.T, jnp.linalg.slogdet(x)[1]
    expected = jnp.sum(digamma((DEGREES - jnp.arange(SIZE)) / 2)) + SIZE * jnp.log(2) + jnp.linalg.slogdet(centre)[1]
    # The mean over samples of the quotient of another density and this one.
    ratios = jnp.exp(wishart.logpdf(x, DEGREES, 0.9 * centre) - wishart.logpdf(x, DEGREES, centre))
    right = True
    for name, values, target in (
        ("covariance", x[:, 0, 1] / DEGREES, centre[0, 1]), ("log determinant", logarithms, expected),
        ("ratio of densities", ratios, 1.0),
    ):  # fmt: skip
        error = float(values.std() / np.sqrt(len(values)))
        print(f"at one time the {name} is {float(values.mean()):.3f} +- {error:.3f}, by Wishart {float(target):.3f}")
        right &= bool(abs(values.mean() - target) < 5 * error + 1e-5)
    return right


def windows(y: Array, width: int) -> Array:
    """The correlation by moving windows, the sums of squares of near measurements."""
    near = jnp.abs(jnp.arange(TIMES)[:, None] - jnp.arange(TIMES)) <= width // 2
    return correlation(jnp.einsum("st,ti,tj->sij", near.astype(y.dtype), y, y))


def draw(y: Array, samples: Array, moving: Array, path: Path) -> None:
    """The measurements, and the correlations, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    left.plot(y)
    left.set(xlabel="time", ylabel="measurements")
    low, middle, high = jnp.quantile(samples, jnp.array([0.025, 0.5, 0.975]), axis=0)
    right.fill_between(np.arange(TIMES), low, high, alpha=0.3)
    right.plot(middle, label="Wishart process")
    right.plot(moving, label="moving windows", alpha=0.6)
    right.plot(TRUE, "k--", label="with which it was drawn")
    right.set(xlabel="time", ylabel="correlation")
    right.legend()
    pyplot.tight_layout()
    pyplot.savefig(path)
    print(f"the correlations are drawn in {path}")


def main() -> int:
    """Check the process, and fit it; the exit status is 0 if both succeed."""
    for_check, for_data, for_fit, for_draws = random.split(random.key(3), 4)
    right = is_wishart(for_check)
    y = random.multivariate_normal(for_data, jnp.zeros(SIZE), truth())
    parameters, losses = fit(for_fit, y)
    print(f"the loss goes from {float(losses[:20].mean()):.0f} to {float(losses[-20:].mean()):.0f}")
    samples = correlation(draws(parameters, for_draws, 400))
    error = lambda found: float(jnp.abs(found - TRUE).mean())
    moving = min((windows(y, width) for width in (30, 50, 70, 100, 140)), key=error)
    errors = error(jnp.median(samples, axis=0)), error(moving)
    low, high = jnp.quantile(samples, jnp.array([0.025, 0.975]), axis=0)
    inside = float(((low <= TRUE) & (high >= TRUE)).mean())
    print(f"the length scale is {float(jnp.exp(parameters['scale'])):.2f} of the whole time")
    print(f"the error of the correlation is {errors[0]:.3f}, of the best moving windows {errors[1]:.3f}")
    print(f"it is within the band of 95 % at {100 * inside:.0f} % of the times")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "correlation.png"
    draw(y, samples, moving, path)
    return 0 if right and errors[0] < errors[1] and inside > 0.85 else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
