"""The problems: right-hand sides for any library with NumPy's functions, and accurate solutions at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.sparse as sp

POINTS = 1000
"""The points of the Brusselator's line; each has two unknowns."""


class Problem(NamedTuple):
    """An initial value problem.

    Attributes:
      title: its name on the page.
      slope: ``slope(m, t, y)`` for a module ``m`` with NumPy's functions.
      end: the time of the end; it begins at 0.
      start: the state at the beginning.
      stiff: whether it is solved by implicit methods.
      tolerances: the relative tolerances.
      absolute: the absolute tolerance relative to the relative one.
      published: a published solution at the end, or None.
      pattern: the pattern of a sparse Jacobian, or None.
    """

    title: str
    slope: Callable[[Any, Any, Any], Any]
    end: float
    start: Any
    stiff: bool
    tolerances: Sequence[float]
    absolute: float = 1.0
    published: Sequence[float] | None = None
    pattern: Any = None

    def reference(self) -> Any:
        """Return an accurate solution at the end, by SciPy with tolerances far below those measured."""
        tight = max(1e-13, self.tolerances[-1] * 1e-3)
        options: dict[str, Any] = {} if self.pattern is None else {"jac_sparsity": self.pattern}
        found = scipy.integrate.solve_ivp(
            lambda t, y: self.slope(np, t, y), (0.0, self.end), self.start, "Radau" if self.stiff else "DOP853",
            rtol=tight, atol=tight * self.absolute * 0.1, **options,
        )  # fmt: skip
        return found.y[:, -1]


def error(found: Any, reference: Any) -> float:
    """The largest relative error of an unknown."""
    found, reference = np.asarray(found), np.asarray(reference)
    return float(np.max(np.abs(found - reference) / np.abs(reference)))


def _pendulum(m: Any, t: Any, y: Any) -> Any:
    return m.array([y[1], -m.sin(y[0])])


def _van_der_pol(m: Any, t: Any, y: Any) -> Any:
    return m.array([y[1], 1000.0 * (1.0 - y[0] * y[0]) * y[1] - y[0]])


def _robertson(m: Any, t: Any, y: Any) -> Any:
    first, second, third = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]
    return m.array([second - first, first - second - third, third])


def _hires(m: Any, t: Any, y: Any) -> Any:
    light = 280.0 * y[5] * y[7]
    return m.array([
        -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
        1.71 * y[0] - 8.75 * y[1],
        -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
        8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
        -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
        -light + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
        light - 1.81 * y[6],
        -light + 1.81 * y[6],
    ])  # fmt: skip


def _brusselator(m: Any, t: Any, y: Any) -> Any:
    u, v = y[0::2], y[1::2]
    one, three = m.ones(1), 3.0 * m.ones(1)
    spread = 0.02 * (POINTS + 1) ** 2

    def diffusion(x: Any, at_ends: Any) -> Any:
        return spread * (m.concatenate([at_ends, x[:-1]]) - 2.0 * x + m.concatenate([x[1:], at_ends]))

    reaction = u * u * v
    du = 1.0 + reaction - 4.0 * u + diffusion(u, one)
    dv = 3.0 * u - reaction + diffusion(v, three)
    return m.stack([du, dv], axis=1).reshape(-1)


def _brusselator_start() -> Any:
    x = np.arange(1, POINTS + 1) / (POINTS + 1)
    return np.stack([1.0 + np.sin(2 * np.pi * x), np.full(POINTS, 3.0)], axis=1).reshape(-1)


def _brusselator_pattern() -> Any:
    line = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(POINTS, POINTS))
    return sp.csc_array(sp.kron(line, sp.eye_array(2)) + sp.kron(sp.eye_array(POINTS), np.ones((2, 2))))


FIVE = tuple(10.0**-k for k in (3, 4, 5, 7, 9))
PROBLEMS = {
    "pendulum": Problem("Pendulum", _pendulum, 20.0, np.array([2.0, 0.0]), False, FIVE),
    "van_der_pol": Problem(
        "Van der Pol, μ = 1000", _van_der_pol, 2000.0, np.array([2.0, 0.0]), True, FIVE, 1e-2,
        published=(0.1706167732170483e1, -0.8928097010247975e-3),
    ),
    "robertson": Problem("Robertson", _robertson, 1e4, np.array([1.0, 0.0, 0.0]), True, FIVE, 1e-6),
    "hires": Problem(
        "HIRES", _hires, 321.8122, np.array([1.0, 0, 0, 0, 0, 0, 0, 0.0057]), True, FIVE, 1e-3,
        published=(
            0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
            0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
        ),
    ),
    "brusselator": Problem(
        "Brusselator, 2,000 unknowns", _brusselator, 10.0, _brusselator_start(), True,
        tuple(10.0**-k for k in range(2, 7)), pattern=_brusselator_pattern(),
    ),
}  # fmt: skip
"""By name. The stiff ones with published solutions, and Robertson's equations, are of F. Mazzia and C. Magherini 2008,
*Test set for initial value problem solvers*; the Brusselator is that of E. Hairer and G. Wanner 1996, *Solving
ordinary differential equations II*, IV.10."""
