"""The results of ``solve_ivp``: states at times, polynomials within steps, and the times of events."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.errors import ShapeError
from pullback.core.trace import Tracer
from pullback.core.tree_nodes import register_pytree_node_class
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import real_floats

_MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
    -1: "Required step size is less than spacing between numbers.",
    -2: "More steps are needed than max_steps.",
}


@register_pytree_node_class
class OdeSolution:
    """The solution of an initial value problem at any time: a polynomial in each step.

    It is a pytree of arrays, so that compiled functions may take and return it. :func:`solve_ivp` makes it.

    Attributes:
      ts: the times between the steps, a vector of one more than there are steps; beyond ``count`` all are the last.
      widths: the signed sizes of the steps.
      pieces: the coefficients of the polynomials, (steps, degree + 1, n), from the constant to the highest power of the
        time from 0 to 1 within each step.
      count: the number of steps.

    >>> from pullback.scipy.integrate import solve_ivp
    >>> found = solve_ivp(lambda t, y: -y, (0.0, 2.0), [1.0], dense_output=True, rtol=1e-5)
    >>> print(found.sol(1.0).round(3), found.sol([0.0, 2.0]).round(3))
    [0.368] [[1.    0.135]]
    """

    def __init__(self, ts: Array, widths: Array, pieces: Array, count: Array) -> None:
        self.ts, self.widths, self.pieces, self.count = ts, widths, pieces, count

    def __repr__(self) -> str:
        return f"OdeSolution({self.pieces.shape[0]} steps of degree {self.pieces.shape[1] - 1})"

    def tree_flatten(self) -> Any:
        return (self.ts, self.widths, self.pieces, self.count), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> OdeSolution:
        made = object.__new__(cls)
        made.ts, made.widths, made.pieces, made.count = children
        return made

    def __call__(self, t: Any) -> Array:
        """The state at some times.

        Args:
          t: a number or a vector of real numbers; times beyond both ends extrapolate.

        Returns:
          An array of shape (n,), or (n, times).
        """
        t = ops.convert_element_type(real_floats("OdeSolution", t, "the times"), self.ts.dtype)
        if len(t.shape) > 1:
            raise ShapeError(f"OdeSolution: the times must be a number or a vector, got shape {t.shape}")
        sign = pnp.where(self.ts[-1] >= self.ts[0], 1, -1)
        index = pnp.searchsorted(sign * self.ts, sign * t)
        return self._within(pnp.clip(index - 1, 0, pnp.maximum(self.count - 1, 0)), t).T

    def _within(self, step: Any, t: Any) -> Any:
        """Return the states at times, (times, n), by the polynomials of some steps."""
        width = self.widths[step]
        x = (t - self.ts[step]) / ops.where(ops.eq(width, 0), 1, width)
        x = ops.convert_element_type(x[..., None], dtypes.to_real(self.pieces.dtype))
        pieces = self.pieces[step]
        value = pieces[..., -1, :]
        for i in range(self.pieces.shape[1] - 2, -1, -1):
            value = value * x + pieces[..., i, :]
        return value


class OdeResult(NamedTuple):
    """The result of :func:`solve_ivp`.

    Attributes:
      t: the times, a vector.
      y: the states at these times, (n, times).
      sol: an :class:`OdeSolution`, or None.
      t_events: for each event the vector of its times, or None.
      y_events: for each event the states at these times, (times, n), or None.
      nfev: how often the right-hand side was evaluated.
      njev, nlu: how often its Jacobian was evaluated and factorised; None in compiled functions.
      status: 0 if the end was reached, 1 after a terminal event, -1 if steps became too small, -2 if there would be
        more than ``max_steps``.

    >>> from pullback.scipy.integrate import solve_ivp
    >>> found = solve_ivp(lambda t, y: -y, (0.0, 2.0), [1.0], t_eval=[0.0, 1.0, 2.0])
    >>> print(found.y.round(2), found.success, found.message)
    [[1.   0.37 0.14]] True The solver successfully reached the end of the integration interval.
    """

    t: Array
    y: Array
    sol: OdeSolution | None
    t_events: list[Array] | None
    y_events: list[Array] | None
    nfev: Array
    njev: Array | None
    nlu: Array | None
    status: Array

    @property
    def success(self) -> Any:
        """Whether the end or a terminal event was reached."""
        return self.status >= 0

    @property
    def message(self) -> str:
        """Why the solution ended, in words."""
        if isinstance(self.status, Tracer) or np.ndim(self.status):
            return "The status is traced, or differs between solutions."
        return _MESSAGES[int(self.status)]
