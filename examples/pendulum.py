"""A damped pendulum: its parameters are found from noisy observations, through the solution of its equation.

``odeint`` is differentiated in forward mode, for the Jacobian of what is observed by three parameters, and Gauss and
Newton's method does the rest. The gradient in reverse mode, by the adjoint equation, agrees. The process ends with a
non-zero status if the parameters are not found. If matplotlib is installed, the fit is drawn.

    python examples/pendulum.py [fit.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pullback.numpy as jnp
from pullback import Array, grad, jacfwd, jit, random
from pullback.experimental.ode import odeint

TRUTH = {"damping": 0.3, "frequency": 2.0, "angle": 1.2}
TIMES = jnp.linspace(0.0, 8.0, 60)
NOISE = 0.02


def angles(parameters: dict[str, Array], times: Array) -> Array:
    """The angle of the pendulum, which is let go at rest."""

    def motion(state: tuple[Array, Array], t: Array, p: dict[str, Array]) -> tuple[Array, Array]:
        angle, speed = state
        return speed, -p["damping"] * speed - p["frequency"] ** 2 * jnp.sin(angle)

    start = (parameters["angle"], 0.0 * parameters["angle"])
    return odeint(motion, start, times, parameters, rtol=1e-6, atol=1e-6)[0]


def misfit(parameters: dict[str, Array], observed: Array) -> Array:
    return jnp.sum((angles(parameters, TIMES) - observed) ** 2)


@jit
def improved(parameters: dict[str, Array], observed: Array) -> dict[str, Array]:
    """A step of Gauss and Newton: the least squares of the linearised residuals."""
    residuals = angles(parameters, TIMES) - observed
    jacobian = jnp.stack(list(jacfwd(lambda p: angles(p, TIMES))(parameters).values()), axis=1)
    step = jnp.linalg.solve(jacobian.T @ jacobian, jacobian.T @ residuals)
    return {name: p - s for (name, p), s in zip(sorted(parameters.items()), step, strict=True)}


def draw(parameters: dict[str, Array], observed: Array, path: Path) -> None:
    """Observations and the fitted motion as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    fine = jnp.linspace(0.0, 8.0, 400)
    pyplot.plot(fine, angles(parameters, fine), label="fitted")
    pyplot.plot(TIMES, observed, ".", label="observed")
    pyplot.xlabel("time")
    pyplot.ylabel("angle")
    pyplot.legend()
    pyplot.savefig(path)
    print(f"the fit is drawn in {path}")


def main() -> int:
    """Fit the pendulum; the exit status is 0 if its parameters are found."""
    truth = {name: jnp.asarray(value) for name, value in TRUTH.items()}
    observed = angles(truth, TIMES) + NOISE * random.normal(random.key(0), TIMES.shape)
    parameters: dict[str, Any] = {"angle": jnp.asarray(1.0), "damping": jnp.asarray(0.1), "frequency": jnp.asarray(1.8)}
    forward, backward = jacfwd(misfit)(parameters, observed), grad(misfit)(parameters, observed)
    agree = all(bool(jnp.allclose(forward[name], backward[name], rtol=1e-3)) for name in forward)
    print(f"gradients by forward mode and by the adjoint equation {'agree' if agree else 'DISAGREE'}: {backward}")
    for i in range(8):
        print(f"step {i}: misfit {float(misfit(parameters, observed)):.5f}")
        parameters = improved(parameters, observed)
    found = all(abs(float(parameters[name]) - value) < 0.02 for name, value in TRUTH.items())
    print(f"found { ({name: round(float(p), 4) for name, p in parameters.items()}) }, true {TRUTH}")
    draw(parameters, observed, Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "pendulum.png")
    return 0 if agree and found else 1


if __name__ == "__main__":
    sys.exit(main())
