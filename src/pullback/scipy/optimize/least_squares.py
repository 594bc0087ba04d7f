"""Non-linear least squares: ``least_squares`` by the method of Levenberg and Marquardt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pullback.control.solves import custom_root
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.joining import concatenate
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg.lapack import matrix_transpose, product, triangular_solve
from pullback.primitives.linalg.lu import identity
from pullback.primitives.linalg.qr import qr
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.problems import (
    all_finite,
    count_of,
    dense_solution,
    dot,
    flat,
    integer,
    is_real,
    largest,
    options_of,
    run,
    start_of,
    times,
    tolerance_of,
)
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jacobian import jacfwd
from pullback.transforms.autodiff.tracing import eval_shape
from pullback.transforms.custom.closure import closure_convert


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
      method: "lm".
      ftol: the relative decrease of the cost with which to end.
      xtol: the relative size of a step with which to end.
      gtol: the largest element of the gradient with which to end. Each of the three is at least four times the
        precision of the dtype.
      options: ``maxiter``, by default 100 for each unknown.
      progress: whether to show a progress bar, or a text to show next to it; this needs the library ``tqdm``.

    Returns:
      A :class:`LeastSquaresResult`. The derivative of ``x`` solves an equation with the Hessian of the cost, which
      includes second derivatives of the residuals; it is infinite or NaN where that is singular.

    Raises:
      ArgumentError: an unknown method or option, ``args`` that are no tuple (a TypeError and a ValueError).
      ShapeError: ``fun`` does not return an array of real numbers (a TypeError and a ValueError).
      DtypeError: ``x0`` is complex (a TypeError).

    Source: J. J. More 1978, "The Levenberg-Marquardt algorithm: implementation and theory"; the damping after H. B.
    Nielsen 1999, "Damping parameter in Marquardt's method".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import optimize
    >>> t = jnp.arange(4.0)
    >>> found = optimize.least_squares(lambda x: x[0] * jnp.exp(-x[1] * t) - 3.0 * jnp.exp(-0.5 * t), jnp.ones(2))
    >>> print(found.x.round(3), found.success)
    [3.  0.5] True
    """
    if not is_listed(method, ("lm",)):
        raise ArgumentError(f"least_squares: method must be 'lm', got {method!r}")
    settings = options_of("least_squares", options, {"maxiter": None})
    start = start_of("least_squares", fun, x0, args)
    vector, function = flat(fun, start, args)
    out = eval_shape(function, vector)
    if not is_real(out):
        raise ShapeError(f"least_squares: fun must return an array of real numbers, got {out}")
    residuals = lambda x: ops.convert_element_type(shapes.reshape(function(x), (out.size,)), vector.dtype)
    converted, captured = closure_convert(residuals, vector)
    fixed = [stop_gradient(c) for c in captured]
    limit = 100 * max(vector.size, 1) if settings["maxiter"] is None else settings["maxiter"]
    maxiter = count_of("least_squares", "maxiter", limit)
    least = 4 * float(np.finfo(vector.dtype).eps)
    tolerances = [ops.max_p.bind(tolerance_of("least_squares", t, vector.dtype), least) for t in (ftol, xtol, gtol)]

    def solve(_: Any, x: Any) -> Any:
        end = _fitted(lambda x: converted(x, *fixed), x, tolerances, maxiter, progress)
        return end.pop("x"), end

    def gradient(x: Any) -> Any:
        values, back = vjp(lambda x: converted(x, *captured), x)
        return back(values)[0]

    x, end = custom_root(gradient, vector, solve, dense_solution, has_aux=True)
    values = converted(x, *captured)
    slope = shapes.reshape(end["g"], start.shape)
    return LeastSquaresResult(
        shapes.reshape(x, start.shape), end["status"] > 0, end["status"], 0.5 * dot(values, values),
        shapes.reshape(values, out.shape), end["jac"], slope, largest(end["g"]), end["nfev"], end["njev"], end["nit"],
    )  # fmt: skip


def _fitted(f: Any, x: Any, tolerances: Any, maxiter: int, progress: bool | str) -> dict[str, Any]:
    ftol, xtol, gtol = tolerances
    jacobian = jacfwd(f)

    def step(s: Any) -> Any:
        p = _step(s["jac"], s["f"], s["damping"], s["scale"])
        usable = all_finite(p)
        p = ops.where(usable, p, 0)
        x = s["x"] + p
        values = f(x)
        predicted = s["f"] + times(s["jac"], p)
        expected = dot(s["f"], s["f"]) - dot(predicted, predicted)
        decrease = dot(s["f"], s["f"]) - dot(values, values)
        finite = all_finite(values) & usable
        better = finite & (decrease > 0) & (expected > 0)
        ratio = ops.where(better, decrease / ops.where(expected > 0, expected, 1), 0)
        jac = jacobian(x)
        better = better & all_finite(jac)
        pick = lambda yes, no: ops.where(better, yes, no)
        g = pick(times(matrix_transpose(jac), values), s["g"])
        small = ops.sqrt(dot(p, p)) <= xtol * (xtol + ops.sqrt(dot(s["x"], s["x"])))
        # Where rounding hides the remaining decrease, no step is better, and the expected decrease is small.
        slow = (ops.abs(expected) <= ftol * dot(s["f"], s["f"])) & (ops.abs(decrease) <= ftol * dot(s["f"], s["f"]))
        status = ops.where(largest(g) <= gtol, 1, s["status"])
        status = ops.where((status < -1) & finite & slow, 2, status)
        status = ops.where((status < -1) & finite & small, 3, status)
        factor = ops.max_p.bind(1 / 3, 1 - (2 * ratio - 1) ** 3)
        return {
            **s, "x": pick(x, s["x"]), "f": pick(values, s["f"]), "g": g, "jac": pick(jac, s["jac"]),
            "damping": pick(s["damping"] * factor, s["damping"] * s["growth"]),
            "growth": pick(s["growth"] * 0 + 2, s["growth"] * 2), "status": status,
            "scale": pick(ops.max_p.bind(s["scale"], _columns(jac)), s["scale"]),
            "nfev": s["nfev"] + 1, "njev": s["njev"] + 1,
        }  # fmt: skip

    values, jac = f(x), jacobian(x)
    g = times(matrix_transpose(jac), values)
    status = ops.where(largest(g) <= gtol, integer(1), -2)
    status = ops.where(all_finite(values) & all_finite(jac), status, -1)
    one = ops.mul(dot(values, values), 0) + 1
    start = {
        "x": x, "f": values, "g": g, "jac": jac, "damping": one * 1e-3, "growth": one * 2, "scale": _columns(jac),
        "status": ops.where(status == -2, -2, status), "nit": integer(0), "nfev": integer(1), "njev": integer(1),
    }  # fmt: skip
    return _run(step, start, maxiter, progress)


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


def _columns(jac: Any) -> Any:
    """Return the norm of each column of the Jacobian ``jac``, or 1 where the column is zero."""
    sizes = ops.sqrt((jac * jac).sum(0))
    return ops.where(sizes > 0, sizes, 1)


def _step(jac: Any, values: Any, damping: Any, scale: Any) -> Any:
    """Return the step p of the Levenberg-Marquardt method, by a QR decomposition.

    It minimises the sum of the squares of ``jac @ p + values`` and of ``sqrt(damping) * scale * p``.
    """
    n = jac.shape[1]
    matrix = concatenate([jac, ops.sqrt(damping) * scale * identity(n, jac.dtype)])
    q, r = qr(matrix)
    right = product(matrix_transpose(q[: jac.shape[0]]), -values[:, None])
    return triangular_solve(r, right, left_side=True, lower=False)[:, 0]
