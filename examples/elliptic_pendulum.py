"""A pendulum of any amplitude, in closed form: its motion by Jacobi's functions, its period by an elliptic integral.

The angle of a pendulum that is let go at rest is ``2 asin(k cd(w t | k**2))``, where ``k`` is the sine of half the
amplitude, ``w**2`` gravity over length, and ``cd`` the quotient of Jacobi's cn and dn (DLMF 22.19.1). The second
derivative of the formula solves the equation of motion to rounding, for derivatives of Jacobi's functions have all
digits. The amplitude, the length and the start are then fitted to noisy measurements of large swings, and the period
says how it depends on the amplitude. The process ends with a non-zero status if the equation does not hold, or if the
parameters are not found within four standard deviations. If matplotlib is installed, the swings are drawn.

    python examples/elliptic_pendulum.py [swings.png]
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, grad, jacfwd, random, vmap
from pullback.scipy.optimize import least_squares
from pullback.scipy.special import ellipj, ellipk

GRAVITY = 9.81
TRUE = np.array([2.8, 1.3, 0.4])
"""The amplitude in radians, the length in metres, and the time at which the pendulum is let go, in seconds."""
NOISE = 0.05


def angle(parameters: Array, t: Array) -> Array:
    """The angle in radians at a time."""
    amplitude, length, start = parameters
    k = jnp.sin(amplitude / 2)
    _, cn, dn, _ = ellipj(jnp.sqrt(GRAVITY / length) * (t - start), k**2)
    return 2 * jnp.arcsin(k * cn / dn)


def period(amplitude: Array, length: Array) -> Array:
    """The time of a swing to and fro, in seconds."""
    return 4 * jnp.sqrt(length / GRAVITY) * ellipk(jnp.sin(amplitude / 2) ** 2)


def acceleration(parameters: Array, t: Array) -> Array:
    """The second derivative of the angle at a time."""
    return grad(grad(lambda t: angle(parameters, t)))(t)


def draw(t: Array, measured: Array, fitted: Array, path: Path) -> None:
    """Swings of several amplitudes over their own periods, and the fit, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for amplitude in (0.5, 1.5, 2.5, 3.0, 3.13):
        parameters = jnp.array([amplitude, 1.0, 0.0])
        turn = jnp.linspace(0, 1, 300)
        left.plot(
            turn, angle(parameters, turn * period(parameters[0], parameters[1])) / amplitude, label=f"{amplitude} rad"
        )
    left.set(xlabel="part of a period", ylabel="angle, of the amplitude")
    left.legend()
    fine = jnp.linspace(float(t[0]), float(t[-1]), 600)
    right.plot(t, measured, ".")
    right.plot(fine, angle(fitted, fine))
    right.set(xlabel="seconds", ylabel="angle in radians")
    pyplot.savefig(path)
    print(f"the swings are drawn in {path}")


def main() -> int:
    """Check the equation, and fit the motion; the exit status is 0 if both succeed."""
    t = jnp.linspace(0.5, 9.0, 120)
    true = jnp.asarray(TRUE)
    force = GRAVITY / true[1] * jnp.sin(angle(true, t))
    error = float(abs(vmap(acceleration, (None, 0))(true, t) + force).max() / abs(force).max())
    print(f"the equation of motion holds to {error:.0e}")
    measured = angle(true, t) + NOISE * random.normal(random.key(0), t.shape)
    fit = least_squares(lambda p: angle(p, t) - measured, jnp.array([2.6, 1.2, 0.3]))
    jacobian = jacfwd(angle)(fit.x, t)
    spread = NOISE * jnp.sqrt(jnp.diag(jnp.linalg.inv(jacobian.T @ jacobian)))
    for name, value, found, deviation in zip(("amplitude", "length", "start"), TRUE, fit.x, spread, strict=True):
        print(f"{name:9} {float(found):.4f} +- {float(deviation):.4f}, measured with {value}")
    small, large = (float(period(a, fit.x[1])) for a in (jnp.array(1e-6), fit.x[0]))
    slope = float(grad(period)(fit.x[0], fit.x[1]))
    print(f"the period is {large:.3f} s, of small swings {small:.3f} s")
    print(f"an amplitude one degree larger makes it {slope * math.pi / 180:.3f} s longer")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "swings.png"
    draw(t, measured, fit.x, path)
    return 0 if error < 1e-12 and bool((abs(fit.x - TRUE) < 4 * spread).all()) else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
