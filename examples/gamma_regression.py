"""A Gamma regression: the mean is the exponential of a line, and the shape is estimated with its coefficients.

The likelihood is maximised by Newton's method, with the gradient and the Hessian with respect to all three.
The process ends with a non-zero status if the gradient at the end is not zero. If matplotlib is installed, the
samples and the quantiles of the fitted distribution are drawn.

    python examples/gamma_regression.py [fit.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pullback.numpy as jnp
from pullback import Array, config, grad, hessian, jit, random
from pullback.scipy.stats import gamma

config.update("jax_enable_x64", True)
SAMPLES, STEPS = 400, 12
TRUE = jnp.array([1.1, 0.5, -0.8])
"""The logarithm of the shape, and the coefficients of the line."""


def loss(parameters: Array, x: Array, y: Array) -> Array:
    """The mean of the negative logarithm of the likelihood."""
    shape = jnp.exp(parameters[0])
    mean = jnp.exp(parameters[1] + parameters[2] * x)
    return -jnp.mean(gamma.logpdf(y, shape, scale=mean / shape))


@jit
def newton(parameters: Array, x: Array, y: Array) -> Array:
    """One step of Newton's method."""
    return parameters - jnp.linalg.solve(hessian(loss)(parameters, x, y), grad(loss)(parameters, x, y))


def draw(parameters: Array, x: Array, y: Array, path: Path) -> None:
    """The samples, and the quantiles of the fitted distribution, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    line = jnp.linspace(-2, 2, 80)
    shape, mean = jnp.exp(parameters[0]), jnp.exp(parameters[1] + parameters[2] * line)
    figure, axes = pyplot.subplots()
    axes.plot(x, y, ".", color="grey")
    for share in (0.05, 0.5, 0.95):
        axes.plot(line, gamma.ppf(share, shape, scale=mean / shape), label=f"quantile {share}")
    axes.set(xlabel="x", ylabel="y", title="a Gamma regression")
    axes.legend()
    figure.savefig(path)
    print(f"the picture is {path}")


def main() -> int:
    where, what = random.split(random.key(0))
    x = random.uniform(where, (SAMPLES,), minval=-2.0, maxval=2.0)
    y = random.gamma(what, jnp.exp(TRUE[0]), (SAMPLES,)) * jnp.exp(TRUE[1] + TRUE[2] * x - TRUE[0])
    slope, start = jnp.polyfit(x, jnp.log(y), 1)
    parameters = jnp.array([0.0, start, slope])
    for _ in range(STEPS):
        parameters = newton(parameters, x, y)
    slope = grad(loss)(parameters, x, y)
    print(f"shape {float(jnp.exp(parameters[0])):.3f}, of {float(jnp.exp(TRUE[0])):.3f}")
    print(f"line {float(parameters[1]):.3f} {float(parameters[2]):.3f}, of {float(TRUE[1])} {float(TRUE[2])}")
    print(f"largest slope {float(jnp.max(jnp.abs(slope))):.1e}")
    draw(
        parameters,
        x,
        y,
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "gamma_regression.png",
    )
    return int(not jnp.max(jnp.abs(slope)) < 1e-10)


if __name__ == "__main__":
    raise SystemExit(main())
