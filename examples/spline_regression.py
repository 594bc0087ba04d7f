"""Regression by splines whose knots, and whose smoothness, are found by derivatives.

A broken line is fitted to noisy measurements. For given knots the least squares spline is a linear fit, so that the
squares depend on the knots alone (variable projection, Golub and Pereyra 1973); its derivatives by the knots find them,
with their standard deviations. A smoothing spline is fitted to the same measurements. Its derivatives by the
measurements are the leverages, which give the leave-one-out error without leaving one out, and the derivative of that
error finds the smoothness. The process ends with a non-zero status if the knots are not found within four standard
deviations, if a leave-one-out error is not that of the fit without the measurement, or if the score is not at its
minimum. If matplotlib is installed, both fits are drawn.

    python examples/spline_regression.py [fits.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, grad, jacfwd, jacrev, jit, random
from pullback.scipy.interpolate import BSpline, make_interp_spline, make_lsq_spline, make_smoothing_spline
from pullback.scipy.optimize import least_squares, minimize_scalar

BREAKS = np.array([2.0, 4.5, 7.0])
HEIGHTS = np.array([0.0, 2.0, -1.0, 1.5, 1.0])
NOISE = 0.15


def line(breaks: Array, x: Array, y: Array) -> BSpline:
    """The broken line with these inner knots that is nearest to the measurements."""
    ends = jnp.array([0.0, 0.0]), jnp.array([10.0, 10.0])
    return make_lsq_spline(x, y, jnp.concatenate([ends[0], jnp.sort(breaks), ends[1]]), k=1)


def smooth(logarithm: Array, x: Array, y: Array) -> Array:
    """The values of the smoothing spline at the measurements, by the logarithm of its parameter."""
    return make_smoothing_spline(x, y, lam=jnp.exp(logarithm))(x)


def left_out(logarithm: Array, x: Array, y: Array) -> Array:
    """The errors at the measurements of the fits without them: the residuals over one minus the leverages."""
    leverage = jnp.diag(jacrev(smooth, 2)(logarithm, x, y))
    return (y - smooth(logarithm, x, y)) / (1 - leverage)


def draw(x: Array, y: Array, broken: BSpline, smoothed: BSpline, scores: list[Array], path: Path) -> None:
    """Both fits, and the score of the smoothness, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    fine = jnp.linspace(0, 10, 500)
    left.plot(x, y, ".")
    left.plot(fine, broken(fine), label="broken line")
    left.plot(fine, smoothed(fine), label="smoothing spline")
    left.plot(broken.t[1:-1], broken(broken.t[1:-1]), "o")
    left.legend()
    right.plot(*scores)
    right.set(xlabel="logarithm of the smoothness", ylabel="leave-one-out error", yscale="log")
    pyplot.savefig(path)
    print(f"the fits are drawn in {path}")


def main() -> int:
    """Fit both, and check them; the exit status is 0 if they are right."""
    x = jnp.linspace(0.05, 9.95, 120)
    truth = make_interp_spline(jnp.array([0.0, *BREAKS, 10.0]), HEIGHTS, k=1)
    y = truth(x) + NOISE * random.normal(random.key(0), x.shape)

    residuals = jit(lambda breaks: line(breaks, x, y)(x) - y)
    fit = least_squares(residuals, jnp.array([1.5, 5.0, 7.5]))
    jacobian = jacfwd(residuals)(fit.x)
    spread = NOISE * jnp.sqrt(jnp.diag(jnp.linalg.inv(jacobian.T @ jacobian)))
    for found, deviation, value in zip(fit.x, spread, BREAKS, strict=True):
        print(f"a knot at {float(found):.3f} +- {float(deviation):.3f}, measured with {value}")

    score = jit(lambda logarithm: jnp.mean(left_out(logarithm, x, y) ** 2))
    best = minimize_scalar(score, bounds=(-8.0, 4.0), method="bounded").x
    slope = float(grad(score)(best))
    print(f"the smoothness is exp({float(best):.2f}), where the slope of the score is {slope:.0e}")
    keep = np.arange(120) != 60
    without = make_smoothing_spline(x[keep], y[keep], lam=jnp.exp(best))
    difference = float(abs(y[60] - without(x[60]) - left_out(best, x, y)[60]))
    print(f"a leave-one-out error differs by {difference:.0e} from that of the fit without the measurement")

    logarithms = jnp.linspace(-8, 4, 40)
    scores = [logarithms, jnp.array([score(v) for v in logarithms])]
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "fits.png"
    draw(x, y, line(fit.x, x, y), make_smoothing_spline(x, y, lam=jnp.exp(best)), scores, path)
    right = bool((abs(fit.x - BREAKS) < 4 * spread).all()) and difference < 1e-9 and abs(slope) < 1e-5
    return 0 if right else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
