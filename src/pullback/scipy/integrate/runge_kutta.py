"""Explicit Runge-Kutta methods of ``solve_ivp``: RK23, RK45 and DOP853, with SciPy's tables and choice of steps.

Source: E. Hairer, S. P. Nørsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., sections II.4 to
II.6 (the methods of Dormand and Prince); P. Bogacki and L. F. Shampine 1989, "A 3(2) pair of Runge-Kutta formulas".
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.scan import scan
from pullback.core.interrupts import imported
from pullback.primitives import elementwise as ops
from pullback.scipy.integrate.ivp_methods import GROW, SAFETY, SHRINK, Attempt, Made, finite, real, rms, weighted
from pullback.scipy.integrate.ivp_problems import System

LARGEST = 6
"""Methods with more stages than this compute them in a loop, which compiles several times faster."""


class Table(NamedTuple):
    """The numbers of a method.

    Attributes:
      nodes, stages: the times of the stages as fractions of the step, and the weights of the slopes before each.
      last: the weights of the slopes in the step.
      errors: the weights of the error; two rows for DOP853, those of the estimates of order 5 and 3.
      dense: the weights of the slopes in the coefficients of the polynomial, (slopes, degree); for DOP853 those in
        its last coefficients.
      more_nodes, more_stages: those of stages that only the polynomial needs.
      estimate: the order of the estimated error.
    """

    nodes: Any
    stages: Any
    last: Any
    errors: Any
    dense: Any
    more_nodes: Any
    more_stages: Any
    estimate: int


@cache
def table(name: str) -> Table:
    """Return the table of a method, RK23, RK45 or DOP853, from SciPy's class of this name."""
    c = getattr(imported("scipy.integrate"), name)
    if name == "DOP853":
        return Table(c.C, c.A, c.B, np.stack([c.E5, c.E3]), c.D, c.C_EXTRA, c.A_EXTRA, c.error_estimator_order)
    return Table(c.C, c.A, c.B, c.E[None], c.P, (), (), c.error_estimator_order)


@cache
def nested_powers() -> Any:
    """Return the matrix from the seven coefficients of DOP853's nested polynomial to those of powers.

    The polynomial is ``x (F0 + (1 - x) (F1 + x (F2 + (1 - x) (F3 + ...))))``.
    """
    matrix, factor = np.zeros((7, 8)), np.ones(1)
    for i in range(7):
        factor = np.convolve(factor, [0.0, 1.0] if i % 2 == 0 else [1.0, -1.0])
        matrix[i, : len(factor)] = factor
    return matrix


class RungeKutta:
    """An explicit method; see :class:`pullback.scipy.integrate.ivp_methods.Method`.

    The memory is the slope at the state. The trail is the time, the size, the state and the slopes of the last step.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.problem = system.problem
        self.table = table(self.problem.method)
        self.estimate = self.table.estimate
        self.degree = 7 if self.problem.method == "DOP853" else self.table.dense.shape[1]

    def start(self, t: Any, y: Any, h: Any) -> tuple[Any, Any]:
        slope = self.system.slope(t, y)
        count = len(self.table.last) + 1
        return slope, (t, real(t, y) * 0, y, y, pnp.zeros((count, *y.shape), y.dtype))

    def step(self, t: Any, y: Any, h: Any, memory: Any, note: Any = None) -> Made:
        table, size = self.table, real(h, y)
        if len(table.last) > LARGEST:
            return self._in_loop(t, y, h, memory)
        slopes = [memory]
        for weights, node in zip(table.stages[1:], table.nodes[1:], strict=True):
            change = weighted(weights[: len(slopes)], slopes) * size
            slopes.append(self.system.slope(t + h * float(node), y + change))
        after = y + size * weighted(table.last, slopes)
        slopes.append(self.system.slope(t + h, after))
        return Made(after, slopes[-1], (t, size, y, after, pnp.stack(slopes)))

    def _in_loop(self, t: Any, y: Any, h: Any, slope: Any) -> Made:
        """Make a step by a loop over the stages, whose program is small."""
        count, size = len(self.table.last), real(h, y)
        weights = np.zeros((count, count + 1))
        weights[:-1, :count] = self.table.stages[1:]
        weights[-1, :count] = self.table.last
        nodes = np.append(self.table.nodes[1:], 1.0)

        def stage(carry: Any, x: Any) -> tuple[Any, None]:
            known, _ = carry
            i, row, node = x
            after = y + size * pnp.matmul(row, known)
            return (known.at[i].set(self.system.slope(t + h * node, after)), after), None

        known = pnp.zeros((count + 1, *y.shape), y.dtype).at[0].set(slope)
        rows = np.arange(1, count + 1), weights.astype(y.dtype), nodes.astype(t.dtype)
        (known, after), _ = scan(stage, (known, y), tuple(map(pnp.asarray, rows)))
        return Made(after, known[-1], (t, size, y, after, known))

    def attempt(self, t: Any, y: Any, h: Any, memory: Any) -> Attempt:
        made = self.step(t, y, h, memory)
        scale = self.problem.tolerance(pnp.maximum(abs(y), abs(made.y)))
        slopes = made.trail[-1]
        estimates = [weighted(w, slopes) / scale for w in self.table.errors]
        error = rms(estimates[0]) * abs(real(h, y))
        if len(estimates) == 2:
            # The estimate of order 5, reduced by its proportion to that of order 3.
            fine, coarse = map(rms, estimates)
            whole = ops.sqrt(fine * fine + 0.01 * coarse * coarse)
            error = error * (fine / ops.where(whole > 0, whole, 1))
        error = ops.convert_element_type(finite(error), h.dtype)
        accepted = error < 1
        factor = SAFETY * ops.where(error > 0, error, 1e-30) ** (-1 / (self.estimate + 1))
        factor = ops.where(accepted, pnp.minimum(GROW, factor), pnp.maximum(SHRINK, factor))
        return Attempt(accepted, factor, made, np.int32(0), np.int32(len(self.table.last)))

    def polynomial(self, trail: Any) -> Any:
        t, size, y, after, slopes = trail
        if self.problem.method != "DOP853":
            rows = [weighted(column, slopes) * size for column in self.table.dense.T]
            return pnp.stack([y, *rows])
        known = [slopes[i] for i in range(slopes.shape[0])]
        step = ops.convert_element_type(size, t.dtype)
        for weights, node in zip(self.table.more_stages, self.table.more_nodes, strict=True):
            change = weighted(weights[: len(known)], known) * size
            known.append(self.system.slope(t + step * float(node), y + change))
        change, first, last = after - y, size * known[0], size * known[len(self.table.last)]
        nested = [change, first - change, 2 * change - first - last]
        nested += [weighted(weights, known) * size for weights in self.table.dense]
        powers = [weighted(column, nested) for column in nested_powers().T[1:]]
        return pnp.stack([y, *powers])
