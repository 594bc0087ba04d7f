"""Non-linear least squares: ``least_squares`` by Levenberg and Marquardt's method, or in a trust region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pullback.control.solves import custom_root
from pullback.core import tree
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.jacobians import Jacobian, jacobian_of
from pullback.scipy.optimize.problems import (
    all_finite,
    count_of,
    dot,
    flat,
    integer,
    is_real,
    largest,
    options_of,
    run,
    start_of,
    tolerance_of,
)
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jacobian import jacfwd
from pullback.transforms.autodiff.tracing import eval_shape
from pullback.transforms.custom.closure import without_tracers


class LeastSquaresResult(NamedTuple):
    """The result of :func:`least_squares`; ``x``, ``cost`` and ``fun`` have derivatives.

    Attributes:
      x: the solution, of the shape of ``x0``.
      success: whether ``x`` is a solution: ``status`` is positive.
      status: int32: 0 after ``maxiter``, 1 where the gradient is below ``gtol``, 2 where the decrease is below
        ``ftol``, 3 where the step is below ``xtol``, -1 where the function or its Jacobian is not finite at ``x0``.
      cost: half the sum of the squares.
      fun: the residuals.
      jac: the Jacobian, a matrix of as many rows as there are residuals and columns as there are unknowns.
      grad: the gradient of the cost, like ``x``.
      optimality: the largest element of ``grad``, in absolute value.
      nfev, njev, nit: how often the function and the Jacobian were evaluated, and the number of iterations.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import least_squares
    >>> found = least_squares(lambda x: x**2 - jnp.array([4.0, 9.0]), jnp.array([1.0, 1.0]))
    >>> print(found.x.round(3), found.success)
    [2. 3.] True
    """

    x: Any
    success: Any
    status: Any
    cost: Any
    fun: Any
    jac: Any
    grad: Any
    optimality: Any
    nfev: Any
    njev: Any
    nit: Any


# long: half of it is its documentation
def least_squares(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    jac: Callable[..., Any] | None = None,
    method: str = "lm",
    ftol: ArrayLike = 1e-8,
    xtol: ArrayLike = 1e-8,
    gtol: ArrayLike = 1e-8,
    options: Mapping[str, Any] | None = None,
    progress: bool | str = False,
) -> LeastSquaresResult:
    """A local minimum of the sum of the squares of residuals.

    Args:
      fun: ``fun(x, *args)`` returns an array of real residuals; it is differentiated.
      x0: the starting point, an array of real numbers of any shape; integers become floats.
      args: further arguments, with respect to which the result is differentiated.
      jac: ``jac(x, *args)`` returns the Jacobian, with a row for each residual; by default it is computed, dense.
        A sparse one, such as that of ``derivatives.sparse_jacobian(fun)``, has the same positions at every point, and
        ``x0`` and the residuals are vectors. It must depend on arrays with derivatives only by ``args``.
      method: "lm", Levenberg and Marquardt's; or "dogleg", Gauss and Newton's steps within a trust region, which needs
        fewer of them where the residuals are small or nearly linear.
      ftol: the relative decrease of the cost with which to end.
      xtol: the relative size of a step with which to end.
      gtol: the largest element of the gradient with which to end. Each of the three is at least four times the
        precision of the dtype.
      options: ``maxiter``, by default 100 for each unknown.
      progress: whether to show a progress bar, or a text to show next to it; this needs the library ``tqdm``.

    Returns:
      A :class:`LeastSquaresResult`. The derivative of ``x`` solves an equation with the Hessian of the cost, which
      includes second derivatives of the residuals; it is infinite or NaN where that is singular. With a sparse Jacobian
      the equation is solved by iteration, preconditioned by the Gauss-Newton matrix.

    Raises:
      ArgumentError: an unknown method or option, ``args`` that are no tuple (a TypeError and a ValueError).
      ShapeError: ``fun`` does not return an array of real numbers, or ``jac`` no matrix that fits (a TypeError and a
        ValueError).
      DtypeError: ``x0`` is complex (a TypeError).

    Source: J. J. More 1978, "The Levenberg-Marquardt algorithm: implementation and theory"; the damping after H. B.
    Nielsen 1999, "Damping parameter in Marquardt's method"; the dogleg after M. J. D. Powell 1970, "A hybrid method for
    nonlinear equations".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import optimize
    >>> t = jnp.arange(4.0)
    >>> found = optimize.least_squares(lambda x: x[0] * jnp.exp(-x[1] * t) - 3.0 * jnp.exp(-0.5 * t), jnp.ones(2))
    >>> print(found.x.round(3), found.success)
    [3.  0.5] True
    """
    if not is_listed(method, tuple(_METHODS)):
        raise ArgumentError(f"least_squares: method must be 'lm' or 'dogleg', got {method!r}")
    settings = options_of("least_squares", options, {"maxiter": None})
    start = start_of("least_squares", fun, x0, args)
    vector, function = flat(fun, start, args)
    out = eval_shape(function, vector)
    if not is_real(out):
        raise ShapeError(f"least_squares: fun must return an array of real numbers, got {out}")
    residuals = lambda x: ops.convert_element_type(shapes.reshape(function(x), (out.size,)), vector.dtype)
    converted, captured = without_tracers(residuals, vector)
    fixed = [stop_gradient(c) for c in captured]
    limit = 100 * max(vector.size, 1) if settings["maxiter"] is None else settings["maxiter"]
    maxiter = count_of("least_squares", "maxiter", limit)
    least = 4 * float(np.finfo(vector.dtype).eps)
    tolerances = [ops.max_p.bind(tolerance_of("least_squares", t, vector.dtype), least) for t in (ftol, xtol, gtol)]

    def solve(_: Any, x: Any) -> Any:
        f = lambda x: converted(x, *fixed)
        still = tree.tree_map(stop_gradient, args)
        jacobian = jacobian_of(jac, f, jacfwd, x, still, start.shape, out.size)
        end = _fitted(method, f, jacobian, x, tolerances, maxiter, progress)
        last.append((jacobian, end["jac"]))
        return end.pop("x"), {**end, "jac": jacobian.whole(end["jac"])}

    def tangent_solve(matvec: Any, y: Any) -> Any:
        jacobian, state = last[-1]
        return jacobian.solution(state, matvec, y)

    last: list[Any] = []  # the Jacobian at the solution

    def gradient(x: Any) -> Any:
        values, back = vjp(lambda x: converted(x, *captured), x)
        return back(values)[0]

    x, end = custom_root(gradient, vector, solve, tangent_solve, has_aux=True)
    values = converted(x, *captured)
    slope = shapes.reshape(end["g"], start.shape)
    return LeastSquaresResult(
        shapes.reshape(x, start.shape), end["status"] > 0, end["status"], 0.5 * dot(values, values),
        shapes.reshape(values, out.shape), end["jac"], slope, largest(end["g"]), end["nfev"], end["njev"], end["nit"],
    )  # fmt: skip


def _fitted(
    method: str, f: Any, jacobian: Jacobian, x: Any, tolerances: Any, maxiter: int, progress: bool | str
) -> dict[str, Any]:
    ftol, xtol, gtol = tolerances
    begin, propose, adapt = _METHODS[method]

    def step(s: Any) -> Any:
        p = propose(jacobian, s)
        usable = all_finite(p)
        p = ops.where(usable, p, 0)
        x = s["x"] + p
        values = f(x)
        predicted = s["f"] + jacobian.times(s["jac"], p)
        expected = dot(s["f"], s["f"]) - dot(predicted, predicted)
        decrease = dot(s["f"], s["f"]) - dot(values, values)
        finite = all_finite(values) & usable
        better = finite & (decrease > 0) & (expected > 0)
        ratio = ops.where(better, decrease / ops.where(expected > 0, expected, 1), 0)
        jac = jacobian.at(x)
        better = better & all_finite(jac)
        pick = lambda yes, no: ops.where(better, yes, no)
        g = pick(jacobian.transposed(jac, values), s["g"])
        small = ops.sqrt(dot(p, p)) <= xtol * (xtol + ops.sqrt(dot(s["x"], s["x"])))
        # Where rounding hides the remaining decrease, no step is better, and the expected decrease is small.
        slow = (ops.abs(expected) <= ftol * dot(s["f"], s["f"])) & (ops.abs(decrease) <= ftol * dot(s["f"], s["f"]))
        status = ops.where(largest(g) <= gtol, 1, s["status"])
        status = ops.where((status < -1) & finite & slow, 2, status)
        status = ops.where((status < -1) & finite & small, 3, status)
        return {
            **s, **adapt(s, p, better, ratio), "x": pick(x, s["x"]), "f": pick(values, s["f"]), "g": g,
            "jac": pick(jac, s["jac"]), "status": status,
            "scale": pick(ops.max_p.bind(s["scale"], jacobian.columns(jac)), s["scale"]),
            "nfev": s["nfev"] + 1, "njev": s["njev"] + 1,
        }  # fmt: skip

    values, jac = f(x), jacobian.at(x)
    g, sizes = jacobian.transposed(jac, values), jacobian.columns(jac)
    status = ops.where(largest(g) <= gtol, integer(1), -2)
    status = ops.where(all_finite(values) & all_finite(jac), status, -1)
    start = {
        "x": x, "f": values, "g": g, "jac": jac, "scale": sizes, **begin(x, sizes),
        "status": ops.where(status == -2, -2, status), "nit": integer(0), "nfev": integer(1), "njev": integer(1),
    }  # fmt: skip
    return _run(step, start, maxiter, progress)


def _begin_damping(x: Any, scale: Any) -> dict[str, Any]:
    one = ops.mul(dot(x, x), 0) + 1
    return {"damping": one * 1e-3, "growth": one * 2}


def _damped(jacobian: Jacobian, s: dict[str, Any]) -> Any:
    """Return the step of Levenberg and Marquardt's method."""
    return jacobian.step(s["jac"], s["f"], s["g"], s["damping"], s["scale"])


def _adapt_damping(s: dict[str, Any], p: Any, better: Any, ratio: Any) -> dict[str, Any]:
    factor = ops.max_p.bind(1 / 3, 1 - (2 * ratio - 1) ** 3)
    pick = lambda yes, no: ops.where(better, yes, no)
    return {
        "damping": pick(s["damping"] * factor, s["damping"] * s["growth"]),
        "growth": pick(s["growth"] * 0 + 2, s["growth"] * 2),
    }


def _begin_region(x: Any, scale: Any) -> dict[str, Any]:
    size = ops.sqrt(dot(scale * x, scale * x))
    return {"radius": ops.where(size > 0, size, 1)}


def _dogleg(jacobian: Jacobian, s: dict[str, Any]) -> Any:
    """Return Gauss and Newton's step if it is in the trust region, else the end of the dogleg in the region.

    The dogleg goes from zero to the minimum along the gradient, and then to Gauss and Newton's step; lengths are those
    of the scaled unknowns. A damping at the level of rounding makes Gauss and Newton's step unique.
    """
    scale, radius = s["scale"], s["radius"]
    rounding = float(np.finfo(scale.dtype).eps) ** (2 / 3)
    newton = scale * jacobian.step(s["jac"], s["f"], s["g"], ops.mul(radius, 0) + rounding, scale)
    slope = s["g"] / scale
    size = dot(slope, slope)
    along = jacobian.times(s["jac"], slope / scale)
    bend = dot(along, along)
    cauchy = -ops.where(bend > 0, size / ops.where(bend > 0, bend, 1), 0) * slope
    # The point between the two at which the dogleg leaves the region.
    rest = newton - cauchy
    a, b, c = dot(rest, rest), dot(cauchy, rest), radius * radius - dot(cauchy, cauchy)
    root = ops.sqrt(ops.max_p.bind(b * b + a * c, 0))
    part = ops.where(b > 0, c / ops.where(b > 0, b + root, 1), (root - b) / ops.where(a > 0, a, 1))
    short = -radius / ops.sqrt(ops.where(size > 0, size, 1)) * slope
    bent = ops.where(c > 0, cauchy + part * rest, short)
    inside = all_finite(newton) & (dot(newton, newton) <= radius * radius)
    return ops.where(inside, newton, ops.where(all_finite(newton), bent, ops.where(c > 0, cauchy, short))) / scale


def _adapt_region(s: dict[str, Any], p: Any, better: Any, ratio: Any) -> dict[str, Any]:
    length = ops.sqrt(dot(s["scale"] * p, s["scale"] * p))
    wide = ops.where((ratio > 0.75) & (length > 0.95 * s["radius"]), 2 * s["radius"], s["radius"])
    return {"radius": ops.where(better & (ratio >= 0.25), wide, 0.25 * length)}


_METHODS = {"lm": (_begin_damping, _damped, _adapt_damping), "dogleg": (_begin_region, _dogleg, _adapt_region)}


def _run(step: Any, start: Any, maxiter: int, progress: bool | str) -> dict[str, Any]:
    """Apply ``step`` to the state until its status is final, at most ``maxiter`` times; return the last state.

    ``step`` leaves the status at -2 to go on; other statuses are final. ``start`` is the first state, and ``progress``
    an option of the loop.
    """
    shifted = lambda status: ops.where(status == -2, -1, status + 100)

    def body(s: Any) -> Any:
        new = step({**s, "status": s["status"] * 0 - 2})
        return {**new, "status": shifted(new["status"])}

    end = run("least_squares", body, {**start, "status": shifted(start["status"])}, maxiter, progress)
    return {**end, "status": ops.where(end["status"] == 1, 0, end["status"] - 100)}
