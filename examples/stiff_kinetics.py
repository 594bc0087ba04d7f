"""The rates of stiff chemical reactions, found from measurements by gradients through an implicit solver.

Robertson's three reactions have rates that differ by nine orders of magnitude, so that explicit methods need millions
of steps. Concentrations are measured, with an error of two percent, at thirty times from 1/100 to 10,000. From rates
that are wrong by factors of two to four, Gauss and Newton's method finds the logarithms of the rates; the Jacobian is
the derivative of the steps of Rodas5P, compiled. The same equations with a singular mass matrix, in which the sum of
the concentrations is kept exactly, serve as a check. The process ends with a non-zero status if a rate is not found
within four standard deviations, if the derivatives are not those of differences, or if the check fails. If matplotlib
is installed, the fit is drawn.

Source: H. H. Robertson 1966, "The solution of a set of reaction rate equations"; E. Hairer and G. Wanner, Solving
Ordinary Differential Equations II, section IV.1.

    python examples/stiff_kinetics.py [kinetics.png]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, jacfwd, jit, random
from pullback.scipy.integrate import solve_ivp

RATES = np.array([0.04, 3e7, 1e4])
SCALE = np.array([1.0, 3e-5, 1.0])
NOISE = 0.02
TIMES = np.logspace(-2, 4, 30)
START = np.array([1.0, 0.0, 0.0])


def reactions(t: Array, y: Array, rates: Array) -> Array:
    """A becomes B; B becomes C with the help of B; B and C become A and C."""
    first, second, third = rates[0] * y[0], rates[1] * y[1] ** 2, rates[2] * y[1] * y[2]
    return jnp.array([third - first, first - third - second, second])


def conserving(t: Array, y: Array, rates: Array) -> Array:
    """The same, whose last equation says that the concentrations add up to one."""
    slope = reactions(t, y, rates)
    return jnp.array([slope[0], slope[1], y[0] + y[1] + y[2] - 1.0])


def concentrations(logarithms: Array, times: Array = TIMES) -> Array:
    """The concentrations at some times, in units in which they are about one: an array (3, times)."""
    span = 0.0, times[-1]
    options = {"method": "Rodas5P", "rtol": 1e-6, "atol": 1e-10}
    found = solve_ivp(reactions, span, START, t_eval=times, args=(jnp.exp(logarithms),), **options)
    return found.y / SCALE[:, None]


def fitted(residuals: Callable[[Array], Array], derivative: Callable[[Array], Array], start: Array) -> Array:
    """The arguments with the least squares, by Gauss and Newton's method; a step is halved until it makes them less."""
    point, values = start, residuals(start)
    for _ in range(20):
        step = jnp.linalg.lstsq(derivative(point), -values)[0]
        while not jnp.sum(residuals(point + step) ** 2) <= jnp.sum(values**2) and jnp.max(abs(step)) > 1e-9:
            step = step / 2
        point = point + step
        values = residuals(point)
        if jnp.max(abs(step)) < 1e-6:
            break
    return point


def draw(measured: Array, fitted: Array, path: Path) -> None:
    """Measurements and the fit, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(7, 4))
    fine = np.logspace(-2, 4, 200)
    curves = concentrations(fitted, fine)
    for name, points, curve in zip(("A", "B, times 33,000", "C"), measured, curves, strict=True):
        (line,) = axes.plot(fine, curve, label=name)
        axes.plot(TIMES, points, ".", color=line.get_color())
    axes.set(xscale="log", xlabel="time", ylabel="concentration")
    axes.legend()
    pyplot.savefig(path)
    print(f"the fit is drawn in {path}")


def main() -> int:
    """Find the rates, and check them; the exit status is 0 if they are right."""
    truth = jnp.log(RATES)
    model = jit(concentrations)
    measured = model(truth) + NOISE * random.normal(random.key(1), (3, len(TIMES)))

    residuals = lambda logarithms: ((model(logarithms) - measured) / NOISE).reshape(-1)
    derivative = jit(jacfwd(residuals))
    fit = fitted(residuals, derivative, truth + jnp.log(jnp.array([2.0, 0.25, 3.0])))
    jacobian = derivative(fit)
    spread = jnp.sqrt(jnp.diag(jnp.linalg.inv(jacobian.T @ jacobian)))
    for found, deviation, rate in zip(jnp.exp(fit), spread, RATES, strict=True):
        print(f"a rate of {float(found):.4g}, +- {100 * float(deviation):.1f} %, measured with {rate:.4g}")

    step = jnp.array([1e-4, 0.0, 0.0])
    difference = (residuals(fit + step) - residuals(fit - step)) / 2e-4
    error = float(jnp.max(abs(jacobian[:, 0] - difference)) / jnp.max(abs(difference)))
    print(f"the derivative differs by {error:.0e} from a difference quotient")

    mass = np.diag([1.0, 1.0, 0.0])
    options = {"t_eval": TIMES, "method": "Radau", "rtol": 1e-6, "atol": 1e-10, "mass_matrix": mass}
    other = solve_ivp(conserving, (0.0, TIMES[-1]), START, args=(jnp.exp(fit),), **options).y / SCALE[:, None]
    apart = float(jnp.max(abs(other - model(fit))))
    print(f"the equations with a singular mass matrix have a solution that differs by {apart:.0e}")

    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "kinetics.png"
    draw(measured, fit, path)
    right = bool((abs(fit - truth) < 4 * spread).all()) and error < 1e-3 and apart < 1e-3
    return 0 if right else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
