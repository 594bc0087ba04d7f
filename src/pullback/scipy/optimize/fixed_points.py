"""Fixed points: ``fixed_point`` by iteration, accelerated by Aitken's or Steffensen's method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.control.loops import while_loop
from pullback.control.solves import custom_root
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.waiting import waiting
from pullback.numpy.promotion import quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.problems import count_of, dense_solution, flat, integer, is_real, largest, start_of
from pullback.transforms.autodiff.tracing import eval_shape
from pullback.transforms.custom.closure import without_tracers


# long: half of it is its documentation
def fixed_point(
    func: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
) -> Array:
    """Find a point that a function maps to itself.

    It is differentiated by the implicit function theorem, in both modes and to any order, with respect to ``args`` and
    to arrays that ``func`` closes over; the equation of the derivative has the matrix of all elements.

    Args:
      func: ``func(x, *args)`` returns an array like ``x``.
      x0: the starting point, an array of real numbers; integers become floats.
      args: further arguments of ``func``.
      xtol: the relative change of a step with which to end.
      maxiter: the largest number of steps.
      method: "del2", Steffensen's method, which accelerates each element by Aitken's formula; or "iteration".

    Returns:
      The fixed point, of the shape of ``x0``; NaN where ``maxiter`` steps did not suffice.

    Raises:
      ArgumentError: an unknown method, ``args`` that are no tuple (a TypeError and a ValueError).
      ShapeError: ``func`` returns no array like ``x0`` (a TypeError and a ValueError).
      DtypeError: ``x0`` is complex (a TypeError).

    Source: R. L. Burden and J. D. Faires, Numerical Analysis, 9th ed., section 2.5.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.optimize import fixed_point
    >>> print(fixed_point(lambda x, c: jnp.sqrt(x + c), 1.0, (2.0,)).round(4))
    2.0
    >>> print(grad(lambda c: fixed_point(lambda x: jnp.sqrt(x + c), 1.0))(2.0).round(4))
    0.3333
    """
    if not is_listed(method, ("del2", "iteration")):
        raise ArgumentError(f"fixed_point: method must be 'del2' or 'iteration', got {quote(method)}")
    start = start_of("fixed_point", func, x0, args)
    vector, function = flat(func, start, args)
    out = eval_shape(function, vector)
    if not is_real(out) or out.shape != start.shape:
        raise ShapeError(f"fixed_point: func must return an array of real numbers of shape {start.shape}, got {out}")
    mapped = lambda x: ops.convert_element_type(shapes.reshape(function(x), vector.shape), vector.dtype)
    most = count_of("fixed_point", "maxiter", maxiter)
    converted, captured = without_tracers(mapped, vector)
    fixed = [stop_gradient(c) for c in captured]
    step = _step(method, lambda x: converted(x, *fixed))

    def solve(_: Any, x: Any) -> Any:

        def body(state: Any) -> Any:
            x, _, count = state
            new = step(x)
            change = ops.where(x != 0, (new - x) / ops.where(x != 0, x, 1), new)
            return new, ops.abs(change), count + 1

        going = lambda state: ~(largest(state[1]) < xtol) & (state[2] < most)
        first = ops.mul(x, 0) + np.inf
        with waiting("fixed_point"):
            x, change, _ = while_loop(going, body, (x, first, integer(0)))
        return ops.where(largest(change) < xtol, x, np.nan)

    x = custom_root(lambda x: x - converted(x, *captured), vector, solve, dense_solution)
    return shapes.reshape(x, start.shape)


def _step(method: str, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def accelerated(x: Any) -> Any:
        once = f(x)
        twice = f(once)
        bend = twice - 2 * once + x
        usable = bend != 0
        return ops.where(usable, x - (once - x) ** 2 / ops.where(usable, bend, 1), twice)

    return accelerated if method == "del2" else f
