"""The likelihood of an autoregressive moving average, its gradient through the filter, and its maximum.

A series y is made from noise e by y[n] = a1 y[n-1] + a2 y[n-2] + e[n] + b1 e[n-1]. Given coefficients, the filter the
other way, `lfilter`, takes the series back to the noise, whose density is the likelihood (conditional on a series at
rest before its beginning). Its gradient goes through the filter, which is again a filter, backwards. The gradient is
checked against differences, and Newton's method finds the coefficients in a few steps; the process ends with a non-
zero status if they are further from the true ones than three of their standard errors, which the Hessian tells. If
matplotlib is installed, the likelihood along the way and the spectrum are drawn.

    python examples/arma.py [fit.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, grad, hessian, jit, random
from pullback.scipy.signal import lfilter, welch

LENGTH = 2_000
TRUE = np.array([1.2, -0.6, 0.5])  # a1, a2, b1


def polynomials(theta: Any) -> tuple[Array, Array]:
    """The numerator and the denominator of the filter from the noise to the series."""
    one = jnp.ones(1, theta.dtype)
    return jnp.concatenate([one, theta[2:]]), jnp.concatenate([one, -theta[:2]])


def negative_log_likelihood(theta: Array, y: Array) -> Array:
    """By an element, with the best variance of the noise put in."""
    b, a = polynomials(theta)
    noise = lfilter(a, b, y)
    return 0.5 * jnp.log(jnp.mean(noise**2))


def fitted(y: Array) -> tuple[Array, list[float]]:
    """Newton's method, with steps that are halved until the likelihood grows."""
    value, slope, curve = (jit(f(negative_log_likelihood)) for f in (lambda f: f, grad, hessian))
    theta, values = jnp.zeros(3), []
    for _ in range(20):
        values.append(float(value(theta, y)))
        eigenvalues, vectors = jnp.linalg.eigh(curve(theta, y))
        g = slope(theta, y)
        step = vectors @ ((vectors.T @ g) / jnp.maximum(jnp.abs(eigenvalues), 1e-3))
        while float(value(theta - step, y)) > values[-1] and float(jnp.abs(step).max()) > 1e-12:
            step = step / 2
        theta = theta - step
        if float(jnp.abs(step).max()) < 1e-10:
            break
    return theta, values


def drawn(file: Path, theta: Array, y: Array, values: list[float]) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.semilogy(np.array(values[:-1]) - values[-1] + 1e-16, "o-")
    left.set(xlabel="step of Newton's method", ylabel="negative log likelihood, above its minimum")
    frequencies, density = welch(y, nperseg=256)
    b, a = polynomials(theta)
    turns = jnp.exp(-2j * jnp.pi * frequencies)
    gain = abs(jnp.polyval(b[::-1] + 0j, turns) / jnp.polyval(a[::-1] + 0j, turns)) ** 2
    right.semilogy(frequencies, density, label="the series, by Welch's method")
    right.semilogy(frequencies, 2 * float(jnp.mean(lfilter(a, b, y) ** 2)) * gain, label="the fitted model")
    right.set(xlabel="frequency", ylabel="spectral density")
    right.legend()
    figure.savefig(file)
    print(f"the fit is drawn in {file}")


def main() -> int:
    y = lfilter(*polynomials(jnp.array(TRUE)), random.normal(random.key(0), (LENGTH,)))
    start = jnp.array([0.5, -0.2, 0.1])
    gradient = grad(negative_log_likelihood)(start, y)
    differences = [
        float(negative_log_likelihood(start + h, y) - negative_log_likelihood(start - h, y)) / 2e-5
        for h in 1e-5 * jnp.eye(3)
    ]
    wrong = float(np.abs(np.asarray(gradient) - differences).max())
    print(f"the gradient is {np.asarray(gradient).round(6)}, and differs from differences by {wrong:.1e}")
    theta, values = fitted(y)
    errors = jnp.sqrt(jnp.diag(jnp.linalg.inv(hessian(negative_log_likelihood)(theta, y))) / LENGTH)
    for name, value, error, true in zip(("a1", "a2", "b1"), theta, errors, TRUE, strict=True):
        print(f"{name} = {float(value):.3f} ± {float(error):.3f}, the true one is {true}")
    drawn(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "arma.png", theta, y, values)
    right = wrong < 1e-8 and bool((abs(theta - TRUE) < 3 * errors).all())
    print(f"after {len(values)} steps of Newton's method the coefficients are {'right' if right else 'wrong'}")
    return 0 if right else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
