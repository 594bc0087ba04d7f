"""The method BDF of ``solve_ivp``: backward differentiation of orders 1 to 5, with differences of nearly equal steps.

Source: L. F. Shampine and M. W. Reichelt 1997, "The MATLAB ODE suite"; G. D. Byrne and A. C. Hindmarsh 1975, "A
polyalgorithm for the numerical solution of ordinary differential equations".
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.primitives import elementwise as ops
from pullback.primitives.linalg.lapack import product
from pullback.primitives.operands import stop_gradient
from pullback.scipy.integrate.implicit import Factored, Newton, attached, combination, mass_times, newton
from pullback.scipy.integrate.ivp_methods import GROW, SAFETY, SHRINK, Attempt, Made, finite, real, rms, weighted
from pullback.scipy.integrate.ivp_problems import System

HIGHEST = 5
_KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
_GAMMA = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, HIGHEST + 1))])
_ALPHA = (1 - _KAPPA) * _GAMMA
_ERROR = np.append(_KAPPA * _GAMMA + 1 / np.arange(1, HIGHEST + 2), 0.0)
_MOST = 4


def _basis() -> Any:
    """Return the coefficients of Newton's basis: row j is the product of ``(x - 1 + m) / (1 + m)`` over m < j."""
    rows = np.zeros((HIGHEST + 1, HIGHEST + 1))
    row = np.ones(1)
    for j in range(HIGHEST + 1):
        rows[j, : len(row)] = row
        row = np.convolve(row, [(j - 1) / (j + 1), 1 / (j + 1)])
    return rows


_BASIS = _basis()


def _resampling(factor: Any, dtype: Any) -> Any:
    """Return the matrix from differences to those of a step ``factor`` times as long, but for its second factor."""
    i = np.arange(1, HIGHEST + 1, dtype=dtype)
    inner = (i[:, None] - 1 - factor * i[None]) / i[:, None]
    first = pnp.ones((1, HIGHEST), dtype)
    below = pnp.cumprod(pnp.concatenate([first, inner]), axis=0)
    column = np.eye(HIGHEST + 1, 1, dtype=dtype)
    return pnp.concatenate([column, below], axis=1)


class Bdf:
    """The method BDF; see :class:`pullback.scipy.integrate.ivp_methods.Method`.

    The memory is the backward differences, (8, n), the order, the size of their steps, and how many steps had it. A
    step is repeated with its order.
    """

    degree = HIGHEST
    estimate = 1

    def __init__(self, system: System) -> None:
        self.system = system
        self.problem = system.problem

    def start(self, t: Any, y: Any, h: Any) -> tuple[Any, Any]:
        slope = self.system.slope(t, y) * real(h, y)
        differences = pnp.zeros((HIGHEST + 3, *y.shape), y.dtype).at[0].set(y)
        if not self.problem.has_mass:
            differences = differences.at[1].set(slope)
        one = pnp.ones((), np.int32)
        return (differences, one, h, one * 0), differences[: HIGHEST + 1].at[1].set(0)

    def _resampled(self, differences: Any, order: Any, factor: Any) -> Any:
        """Return the differences for steps that are ``factor`` times as long."""
        dtype = factor.dtype
        within = pnp.arange(HIGHEST + 1) <= order
        block = within[:, None] & within[None]
        first = ops.where(block, _resampling(factor, dtype), 0)
        second = ops.where(block, _resampling(np.ones((), dtype), dtype), 0)
        matrix = product(first, second)
        outside = np.eye(HIGHEST + 1, dtype=dtype) * ~within
        changed = product((matrix + outside).T, differences[: HIGHEST + 1])
        return pnp.concatenate([changed, differences[HIGHEST + 1 :]])

    def _predicted(self, differences: Any, order: Any, h: Any, like: Any) -> tuple[Any, Any, Any]:
        """Return the predicted state, the part of its slope that is known, and the weight of the right-hand side."""
        within = (pnp.arange(HIGHEST + 1) <= order)[:, None]
        used = ops.where(within, differences[: HIGHEST + 1], 0)
        alpha = pnp.asarray(_ALPHA, like.dtype)[order]
        slope = weighted(_GAMMA, used) / alpha
        return pnp.sum(used, axis=0), slope, real(h, like) / alpha

    def _residual(self, t: Any, y: Any, slope: Any, weight: Any, mass: Any, d: Any) -> Any:
        return weight * self.system.slope(t, y + d) - mass_times(mass, slope + d)

    def _solved(self, t: Any, y: Any, slope: Any, weight: Any, tolerance: float, most: int) -> Newton:
        """Solve for the correction of a predicted state ``y`` at the time ``t``."""
        mass = self.system.mass(t, y)
        matrix = Factored(combination(mass, 1.0, self.system.jacobian(t, y), weight))
        scale = self.problem.tolerance(abs(y))

        def change(d: Any) -> Any:
            return matrix.solve(self._residual(t, y, slope, weight, mass, d))

        return newton(ops.mul(y, 0), change, lambda x: rms(x / scale), tolerance, most)

    def _after(self, differences: Any, order: Any, d: Any) -> Any:
        """Return the differences after a step with the correction ``d``."""
        rows = pnp.arange(HIGHEST + 3)[:, None]
        before = ops.where(rows <= order, differences, 0)
        sums = pnp.cumsum(before[::-1], axis=0)[::-1] + d
        second = d - differences[order + 1]
        return ops.where(rows <= order, sums, ops.where(rows == order + 1, d, second))

    def attempt(self, t: Any, y: Any, h: Any, memory: Any) -> Attempt:
        differences, order, before, equal = memory
        factor = real(h / before, y)
        equal = ops.where(abs(factor - 1) < 1e-6, equal, 0)
        differences = self._resampled(differences, order, factor)
        guess, slope, weight = self._predicted(differences, order, h, y)
        tolerance = max(10 * np.finfo(y.dtype).eps / self.problem.rtol, min(0.03, self.problem.rtol**0.5))
        found = self._solved(t + h, guess, slope, weight, float(tolerance), _MOST)
        d, converged = found.x, found.status > 0
        after = guess + d
        scale = self.problem.tolerance(abs(after))
        constants = pnp.asarray(_ERROR, y.dtype)
        error = finite(rms(constants[order] * d / scale))
        accepted = converged & (error <= 1)
        updated = self._after(differences, order, d)
        safety = SAFETY * (2 * _MOST + 1) / (2 * _MOST + ops.convert_element_type(found.count, y.dtype))
        change = pnp.where(error > 0, safety * pnp.maximum(error, 1e-30) ** (-1 / (order + 1)), GROW)
        below = rms(constants[order - 1] * updated[order] / scale)
        above = rms(constants[order + 1] * updated[order + 2] / scale)
        errors = pnp.stack([
            ops.where(order > 1, below, np.inf), error, ops.where(order < HIGHEST, above, np.inf),
        ])  # fmt: skip
        powers = pnp.maximum(errors, 1e-30) ** (-1 / ops.convert_element_type(order + np.arange(3), y.dtype))
        best = pnp.argmax(powers)
        often = equal >= order  # with this step there were more than the order
        next_order = ops.convert_element_type(pnp.where(often, order + best - 1, order), np.dtype(np.int32))
        grown = ops.where(often, pnp.minimum(GROW, safety * powers[best]), 1)
        factor = ops.where(accepted, grown, ops.where(converged, pnp.clip(change, SHRINK, 0.9), 0.5))
        memory = updated, next_order, h, ops.where(often, 0, equal + 1)
        made = Made(after, memory, self._trail(updated, order))
        return Attempt(accepted, ops.convert_element_type(factor, h.dtype), made, order, found.count)

    def _trail(self, updated: Any, order: Any) -> Any:
        return ops.where((pnp.arange(HIGHEST + 1) <= order)[:, None], updated[: HIGHEST + 1], 0)

    def step(self, t: Any, y: Any, h: Any, memory: Any, note: Any) -> Made:
        differences, _, before, equal = memory
        differences = self._resampled(differences, note, real(h / before, y))
        guess, slope, weight = self._predicted(differences, note, h, y)
        eps = float(np.finfo(y.dtype).eps)
        time, *known = (stop_gradient(x) for x in (t + h, guess, slope, weight))
        d = self._solved(time, known[0], known[1], known[2], 100 * eps / max(self.problem.rtol, eps), 12).x

        def equation(d: Any) -> Any:
            return self._residual(t + h, guess, slope, weight, self.system.mass(t + h, guess), d)

        d = attached(equation, d)
        updated = self._after(differences, note, d)
        return Made(guess + d, (updated, note, h, equal), self._trail(updated, note))

    def polynomial(self, trail: Any) -> Any:
        return product(pnp.asarray(_BASIS.T, trail.dtype), trail)
