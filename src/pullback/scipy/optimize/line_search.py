"""Line search along a direction of descent for a step that satisfies the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pullback.control.loops import while_loop
from pullback.primitives import elementwise as ops
from pullback.scipy.optimize.problems import all_finite, dot, integer

_DECREASE, _CURVATURE = 1e-4, 0.9


class LineSearchStep(NamedTuple):
    """The result of :func:`line_search`.

    Attributes:
      length: the step, in units of the direction; zero if no point was lower.
      value, gradient: the function and its gradient after the step.
      count: the number of evaluations.
      unbounded: whether the function was minus infinity at a trial.
    """

    length: Any
    value: Any
    gradient: Any
    count: Any
    unbounded: Any


def line_search(
    evaluate: Callable[[Any], Any], x: Any, f: Any, g: Any, p: Any, first: Any, most: int, going: Any = True
) -> LineSearchStep:
    """Search for a step by bracketing, cubic interpolation and bisection, with one evaluation for each trial.

    Near a minimum, where values differ by rounding errors only, the slope decides (W. W. Hager and H. Zhang 2005, "A
    new conjugate gradient method with guaranteed descent and an efficient line search").

    Args:
      evaluate: returns the function and its gradient.
      x: the starting point.
      f, g: the function and the gradient at ``x``.
      p: the direction.
      first: the first trial step.
      most: the largest number of evaluations.
      going: whether to search at all.

    Source: J. Nocedal and S. J. Wright, Numerical Optimization, 2nd ed., section 3.5.
    """
    slope = dot(g, p)
    slack = ops.abs(f) * (8 * float(np.finfo(f.dtype).eps))
    zero = ops.mul(f, 0)
    start = {
        "a": ops.convert_element_type(first, f.dtype), "low": zero, "f_low": f, "d_low": slope, "g_low": g,
        "high": zero + np.inf, "f_high": zero, "d_high": zero, "count": integer(0), "done": slope >= 0,
        "unbounded": zero > 1,
    }  # fmt: skip

    def step(s: Any) -> Any:
        a = s["a"]
        value, gradient = evaluate(x + a * p)
        d = dot(gradient, p)
        finite = all_finite(gradient) & ops.is_finite_p.bind(value)
        flat = ops.abs(d) <= -_CURVATURE * slope
        decreased = (value <= f + _DECREASE * a * slope) | ((value <= f + slack) & flat)
        lower = finite & decreased & ((value <= s["f_low"] + slack) | (s["low"] == 0))
        done = lower & flat
        infinite = ~ops.is_finite_p.bind(s["high"])
        # The low end is the best point; the slope there points to the high end.
        turned = lower & ~done & ops.where(infinite, d >= 0, d * (s["high"] - s["low"]) >= 0)
        pick = lambda which, yes, no: ops.where(which, yes, no)
        new = {
            "low": pick(lower, a, s["low"]), "f_low": pick(lower, value, s["f_low"]),
            "d_low": pick(lower, d, s["d_low"]),
            "g_low": pick(lower, gradient, s["g_low"]),
            "high": pick(lower, pick(turned, s["low"], s["high"]), a),
            "f_high": pick(lower, pick(turned, s["f_low"], s["f_high"]), pick(finite, value, np.nan)),
            "d_high": pick(lower, pick(turned, s["d_low"], s["d_high"]), pick(finite, d, np.nan)),
            "count": s["count"] + 1, "done": done, "unbounded": s["unbounded"] | (value == -np.inf),
        }  # fmt: skip
        return {**new, "a": _next(new, a)}

    def going_on(s: Any) -> Any:
        return ~s["done"] & (s["count"] < most) & going & ~s["unbounded"]

    end = while_loop(going_on, step, start)
    return LineSearchStep(end["low"], end["f_low"], end["g_low"], end["count"], end["unbounded"])


def _next(s: Any, a: Any) -> Any:
    """Return the next trial step length, from the state ``s`` of the line search and the last step length ``a``.

    It is the minimum of the cubic with the values and slopes at both ends of the bracket. If the bracket has no upper
    end yet, it is ``4 * a``.
    """
    low, high = s["low"], s["high"]
    infinite = ~ops.is_finite_p.bind(high)
    width = ops.where(infinite, 1, high - low)
    distance = ops.where(width == 0, 1, width)
    theta = 3 * (s["f_low"] - s["f_high"]) / distance + s["d_low"] + s["d_high"]
    root = ops.sqrt(ops.max_p.bind(theta * theta - s["d_low"] * s["d_high"], 0)) * ops.sign_p.bind(distance)
    below = s["d_high"] - s["d_low"] + 2 * root
    position = (s["d_high"] + root - theta) / ops.where(below == 0, 1, below)
    usable = ops.is_finite_p.bind(position) & (below != 0)
    fraction = ops.where(usable, ops.min_p.bind(ops.max_p.bind(1 - position, 0.1), 0.9), 0.5)
    return ops.where(infinite, 4 * a, low + fraction * width)
