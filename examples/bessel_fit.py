"""A Bessel function fitted to measurements: its order, its scale and its height, by least squares.

The order is a real number, and the derivative by it is taken like the others. The derivatives at the start are compared
with differences. The process ends with a non-zero status if they differ, or if the parameters of the measurements are
not found again within three standard deviations. If matplotlib is installed, the curve is drawn.

    python examples/bessel_fit.py [curve.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, jacfwd, jit, random
from pullback.scipy.optimize import least_squares
from pullback.scipy.special import jv

TRUE = np.array([1.3, 2.1, 1.7])
"""The order, the scale of the argument, and the height."""
NOISE = 0.03


def curve(parameters: Array, x: Array) -> Array:
    order, scale, height = parameters
    return height * jv(order, scale * x)


def residuals(parameters: Array, x: Array, y: Array) -> Array:
    return curve(parameters, x) - y


def draw(x: Array, y: Array, fitted: Array, path: Path) -> None:
    """The measurements and the curve as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.plot(x, y, ".")
    pyplot.plot(x, fitted)
    pyplot.savefig(path)
    print(f"the curve is drawn in {path}")


def main() -> int:
    """Fit the curve; the exit status is 0 if the derivatives agree and the parameters are found."""
    x = jnp.linspace(0.1, 8.0, 80)
    y = curve(jnp.asarray(TRUE), x) + NOISE * random.normal(random.key(0), x.shape)
    start = jnp.array([1.0, 1.8, 1.0])
    steps = 1e-5 * np.eye(3)
    differences = np.stack([(curve(start + h, x) - curve(start - h, x)) / 2e-5 for h in steps], 1)
    error = float(abs(jit(jacfwd(curve))(start, x) - differences).max())
    print(f"derivatives, and differences of 1e-5: they differ by {error:.1e}")
    fit = least_squares(residuals, start, args=(x, y))
    jacobian = jacfwd(curve)(fit.x, x)
    spread = NOISE * jnp.sqrt(jnp.diag(jnp.linalg.inv(jacobian.T @ jacobian)))
    for name, true, found, deviation in zip(("order", "scale", "height"), TRUE, fit.x, spread, strict=True):
        print(f"{name:6} {float(found):.4f} +- {float(deviation):.4f}, measured with {true}")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "bessel.png"
    draw(x, y, curve(fit.x, x), path)
    return 0 if error < 1e-8 and bool((abs(fit.x - TRUE) < 3 * spread).all()) else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
