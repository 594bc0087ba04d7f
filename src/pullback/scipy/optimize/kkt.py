"""The conditions of Karush, Kuhn and Tucker on the host: multipliers, active constraints, and precise solutions.

A solver of SciPy ends near a solution. From there Newton's method on the optimality conditions finds it to rounding,
while it changes which constraints are active by the signs of multipliers and slacks: the primal-dual active set method.

Source: M. Hintermueller, K. Ito and K. Kunisch 2002, "The primal-dual active set strategy as a semismooth Newton
method".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pullback.core.interrupts import imported
from pullback.scipy.optimize.sensitivities import DEPENDENT, KINK, NOT_SOLVED, NOT_UNIQUE, REGULAR

_STEPS = 20
_NEAR = 1e-3  # how near its limit a constraint may have a first multiplier, relative to the size of the point
_REACH = 0.1  # how far the solution may be from where SciPy ended, relative to the size of the point


class Model(NamedTuple):
    """A problem at a point: the gradient, (n,), the Hessian of the Lagrange function, (n, n), and the constraints.

    Attributes:
      gradient, hessian: of the objective, and of it less the products of multipliers and constraints.
      values, jacobian: the constraints, (m,), and their Jacobian, (m, n).
    """

    gradient: Any
    hessian: Any
    values: Any
    jacobian: Any


class Limits(NamedTuple):
    """The least and the greatest values of the constraints, (m,), and of the unknowns, (n,)."""

    low: Any
    high: Any
    lower: Any
    upper: Any


class Solution(NamedTuple):
    """A point that satisfies the optimality conditions.

    Attributes:
      x: the point.
      multipliers: of the constraints: the derivative of the objective by the active limit.
      active, at_bound: 1 where a constraint or an unknown stands at its least value, -1 at its greatest, otherwise 0.
      degeneracy: why the solution has no derivative, or ``REGULAR``.
    """

    x: Any
    multipliers: Any
    active: Any
    at_bound: Any
    degeneracy: int


def refined(evaluate: Callable[[Any, Any], Model], x: Any, limits: Limits, eps: float) -> Solution:
    """Return the solution near ``x``; ``x`` itself, as not solved, if the optimality conditions do not lead there.

    Args:
      evaluate: from a point and the multipliers to the :class:`Model` there.
      x: a point near the solution.
      limits: the constraints' limits.
      eps: the precision of the values of ``evaluate``.
    """
    start = x
    low, _, lower, upper = limits
    x = np.clip(x, lower, upper)
    model = evaluate(x, np.zeros(len(low)))
    y = _multipliers(model, x, limits)
    best, found = np.inf, None
    for _ in range(_STEPS):
        model = evaluate(x, y)
        if not all(np.isfinite(part).all() for part in model):
            break
        state = _State(model, x, y, limits)
        error = state.error()
        if found is not None and error >= best / 2 and state.same(found):
            break  # rounding hides further progress
        if error < best:
            best, found = error, state
        x, y = state.newton()
    far = found is None or np.abs(found.x - start).max(initial=0.0) > _REACH * found.size
    if found is None or far or not best <= eps ** (2 / 3):
        return Solution(start, np.full(len(low), np.nan), np.zeros(len(low)), np.zeros(len(x)), NOT_SOLVED)
    active = found.active * np.where(found.limit == low, 1.0, -1.0)
    at_bound = found.at_bound * np.where(found.bound == lower, 1.0, -1.0)
    return Solution(found.x, found.y, active, at_bound, found.degeneracy(np.sqrt(eps)))


class _State:
    """A point, its multipliers, and the constraints that are active there.

    Attributes:
      slope: the gradient of the Lagrange function, which is the multiplier of an active bound.
      active, at_bound: masks of the constraints and the unknowns at a limit.
      limit, bound: the limit at which each would stand.
    """

    def __init__(self, model: Model, x: Any, y: Any, limits: Limits) -> None:
        self.model, self.x, self.y, self.limits = model, x, y, limits
        low, high, lower, upper = limits
        self.slope = model.gradient - y @ model.jacobian
        # A multiplier divided by the curvature is the distance that the constraint holds back: it is compared with the
        # distance from the limit. Where nothing is curved, every multiplier above rounding holds its constraint.
        self.size = max(1.0, np.abs(x).max(initial=0.0))
        self.force = max(np.abs(model.gradient).max(initial=0.0), np.finfo(float).tiny)
        curvature = max(np.abs(model.hessian).max(initial=0.0), self.force / self.size)
        self.norms = np.linalg.norm(model.jacobian, axis=1)
        self.norms[self.norms == 0] = 1
        self.force_of_bounds = self.slope / curvature
        self.force_of_rows = y * self.norms / curvature
        self.limit, self.slack, self.active = _side(model.values, low, high, self.force_of_rows, self.norms)
        self.bound, self.room, self.at_bound = _side(x, lower, upper, self.force_of_bounds, np.ones(len(x)))

    def same(self, other: _State) -> bool:
        return bool((self.active == other.active).all() and (self.at_bound == other.at_bound).all())

    def error(self) -> float:
        """Return the largest violation of the conditions of the active constraints, relative to what it consists of."""
        terms = np.abs(self.model.gradient) + np.abs(self.y) @ np.abs(self.model.jacobian)
        free = ~self.at_bound
        parts = [
            np.abs(self.slope[free]) / max(self.force, terms.max(initial=0.0), np.finfo(float).tiny),
            np.abs(self.x - self.bound)[self.at_bound] / self.size,
            np.abs(self.model.values - self.limit)[self.active] / self.norms[self.active] / self.size,
            np.abs(self.force_of_rows[~self.active]) / self.size,
            np.maximum(-self.slack[~self.active], 0) / self.norms[~self.active] / self.size,
        ]
        return max(float(part.max(initial=0.0)) for part in parts)

    def newton(self) -> tuple[Any, Any]:
        """Return the point and the multipliers after a step with these active constraints."""
        free, held = ~self.at_bound, self.active
        moved = np.where(self.at_bound, self.bound - self.x, 0.0)
        matrix = self._matrix()
        right = -self.model.gradient[free] - self.model.hessian[free] @ moved
        rest = (self.limit - self.model.values - self.model.jacobian @ moved)[held]
        right = np.concatenate([right, rest])
        try:
            found = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:  # one of several solutions
            found = np.linalg.lstsq(matrix, right, rcond=None)[0]
        count = int(free.sum())
        moved[free] = found[:count]
        y = np.zeros(len(self.y))
        y[held] = -found[count:]
        return self.x + moved, y

    def _matrix(self) -> Any:
        free, held = ~self.at_bound, self.active
        rows = self.model.jacobian[held][:, free]
        corner = np.zeros((len(rows), len(rows)))
        return np.block([[self.model.hessian[free][:, free], rows.T], [rows, corner]])

    def degeneracy(self, tolerance: float) -> int:
        """Return why the solution has no derivative, or ``REGULAR``."""
        near = tolerance * self.size
        equal = self.limits.low == self.limits.high
        weak = ~equal & (np.abs(self.slack) / self.norms <= near) & (np.abs(self.force_of_rows) <= near)
        fixed = self.limits.lower == self.limits.upper
        weak_bounds = ~fixed & (np.abs(self.room) <= near) & (np.abs(self.force_of_bounds) <= near)
        touching = self.active | weak
        rows = (self.model.jacobian / self.norms[:, None])[touching][:, ~(self.at_bound | weak_bounds)]
        if len(rows) > rows.shape[1] or _least_part(rows.T) <= tolerance:
            return DEPENDENT
        if weak.any() or weak_bounds.any():
            return KINK
        matrix = self._matrix()
        scale = np.sqrt(np.abs(matrix).max(axis=1, initial=0.0))
        scale[scale == 0] = 1
        if not len(matrix):
            return REGULAR
        factors, _, _ = imported("scipy.linalg.lapack").dgetrf(matrix / scale[:, None] / scale)
        pivots = np.abs(np.diag(factors))
        return REGULAR if pivots.min() > tolerance**2 * len(matrix) * pivots.max() else NOT_UNIQUE


def _least_part(columns: Any) -> float:
    """Return the last diagonal element of a pivoted QR decomposition, relative to the first; 1 without columns."""
    if not columns.size:
        return 1.0
    diagonal = np.abs(np.diag(imported("scipy.linalg").qr(columns, mode="r", pivoting=True)[0]))
    return float(diagonal[-1] / diagonal[0]) if diagonal[0] > 0 else 0.0


def _side(values: Any, low: Any, high: Any, force: Any, norms: Any) -> tuple[Any, Any, Any]:
    """Return the limit at which each value would stand, its distance to the limit, and whether it stands there.

    A positive force presses against the least value, and a negative one against the greatest.
    """
    nearer_low = values - low <= high - values
    above = np.where(force == 0, nearer_low, force > 0) & np.isfinite(low) | ~np.isfinite(high)
    limit = np.where(above, low, high)
    slack = np.where(above, values - low, high - values)
    pressed = np.where(above, force, -force)
    active = (low == high) | (np.isfinite(limit) & (pressed * norms - slack > 0))
    return limit, slack, active


def _multipliers(model: Model, x: Any, limits: Limits) -> Any:
    """Return multipliers of the constraints near their limits, by least squares with the right signs."""
    y = np.zeros(len(limits.low))
    reach = _NEAR * max(1.0, np.abs(x).max(initial=0.0))
    norms = np.linalg.norm(model.jacobian, axis=1)
    at_low, at_high = (
        np.flatnonzero(np.abs(model.values - end) <= reach * np.where(norms > 0, norms, 1)) for end in limits[:2]
    )
    if len(at_low) + len(at_high) == 0:
        return y
    unit = np.eye(len(x))
    parts = [
        model.jacobian[at_low].T, -model.jacobian[at_high].T, unit[:, x - limits.lower <= reach],
        -unit[:, limits.upper - x <= reach],
    ]  # fmt: skip
    try:
        found, _ = imported("scipy.optimize").nnls(np.concatenate(parts, axis=1), model.gradient)
    except RuntimeError:  # too many steps: zeros are a start, too
        return y
    np.add.at(y, at_low, found[: len(at_low)])
    np.subtract.at(y, at_high, found[len(at_low) : len(at_low) + len(at_high)])
    return y
