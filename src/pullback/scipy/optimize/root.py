"""Roots of systems of equations: ``root`` by Newton's and by Broyden's method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pullback.control.conditional import cond
from pullback.control.loops import while_loop
from pullback.control.solves import custom_root
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg.lapack import product
from pullback.primitives.linalg.lu import identity, inverse, linear_solve
from pullback.scipy.optimize.problems import (
    OptimizeResults,
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
from pullback.transforms.autodiff.jacobian import jacfwd
from pullback.transforms.autodiff.tracing import eval_shape

_HALVINGS = 30


# long: half of it is its documentation
def root(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    method: str = "newton",
    *,
    tol: ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
    progress: bool | str = False,
) -> OptimizeResults:
    """A root of a function from vectors to vectors.

    Args:
      fun: ``fun(x, *args)`` returns an array of the shape of ``x``; it is differentiated.
      x0: the starting point, an array of real numbers of any shape; integers become floats.
      args: further arguments, with respect to which the result is differentiated.
      method: "newton", with the Jacobian of each step; or "broyden", with one Jacobian, corrected after each step, and
        computed anew where a step fails. SciPy's "hybr" and "broyden1" stand for these.
      tol: the largest element of ``fun`` with which to end, relative to the largest at ``x0`` if this exceeds one; by
        default the precision of the dtype to the power 2/3.
      options: ``maxiter``, by default 100, or 200 for "broyden".
      progress: whether to show a progress bar, or a text to show next to it; this needs the library ``tqdm``.

    Returns:
      An :class:`OptimizeResults`. ``status`` is 0 where a root was found; 1 after ``maxiter``; 3 where no fraction of
      the step made the function smaller, as near a local minimum of its size; 4 where the Jacobian is singular; 6 where
      the function is not finite at ``x0``. The derivative solves an equation with the Jacobian.

    Raises:
      ArgumentError: an unknown method or option, ``args`` that are no tuple (a TypeError and a ValueError).
      ShapeError: ``fun`` does not return an array like ``x0`` (a TypeError and a ValueError).
      DtypeError: ``x0`` is complex (a TypeError).

    Source: J. Nocedal and S. J. Wright, Numerical Optimization, 2nd ed., chapter 11; C. G. Broyden 1965, "A class of
    methods for solving nonlinear simultaneous equations".

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy import optimize
    >>> circle = lambda x, r: jnp.array([x[0] ** 2 + x[1] ** 2 - r**2, x[0] - x[1]])
    >>> found = optimize.root(circle, jnp.array([1.0, 0.5]), (2.0,))
    >>> print(found.x.round(4), found.success)
    [1.4142 1.4142] True
    >>> print(grad(lambda r: optimize.root(circle, jnp.array([1.0, 0.5]), (r,)).x[0])(2.0).round(4))
    0.7071
    """
    name = {"hybr": "newton", "broyden1": "broyden"}.get(str(method).lower(), str(method).lower())
    if not is_listed(name, ("newton", "broyden")):
        raise ArgumentError(f"root: method must be 'newton' or 'broyden', got {method!r}")
    settings = options_of("root", options, {"maxiter": 100 if name == "newton" else 200})
    maxiter = count_of("root", "maxiter", settings["maxiter"])
    start = start_of("root", fun, x0, args)
    vector, function = flat(fun, start, args)
    out = eval_shape(function, vector)
    if getattr(out, "shape", None) != start.shape or not is_real(out):
        raise ShapeError(f"root: fun must return an array of real numbers of the shape of x0, {start.shape}, got {out}")
    equation = lambda x: ops.convert_element_type(shapes.reshape(function(x), vector.shape), vector.dtype)
    tol = float(np.finfo(vector.dtype).eps) ** (2 / 3) if tol is None else tol

    def solve(f: Any, x: Any) -> Any:
        end = _found(name, f, x, tolerance_of("root", tol, x.dtype), maxiter, progress)
        return end.pop("x"), end

    x, end = custom_root(equation, vector, solve, dense_solution, has_aux=True)
    x = shapes.reshape(x, start.shape)
    values = shapes.reshape(end["f"], start.shape)
    return OptimizeResults(
        x, end["status"] == 0, end["status"], values, None, None, end["nfev"], end["njev"], end["nit"]
    )


def _found(name: str, f: Any, x: Any, tol: Any, maxiter: int, progress: bool | str) -> dict[str, Any]:
    """Search a root of ``f`` from ``x`` by the method ``name``, "newton" or "broyden"; return the final state.

    The state is a dict with the point, the values there, the status and the counts. A point is accepted as a root if
    the largest absolute value of ``f`` is at most ``tol * max(1, the largest absolute value at the start)``.
    """
    first = f(x)
    bound = tol * ops.max_p.bind(largest(first), 1)
    n = x.shape[0]

    def newton(s: Any) -> Any:
        return linear_solve(jacfwd(f)(s["x"]), -s["f"][:, None])[:, 0], {}, 1

    def broyden(s: Any) -> Any:
        anew = lambda: inverse(jacfwd(f)(s["x"]))
        matrix = cond(s["anew"], anew, lambda: s["inverse"])
        return -times(matrix, s["f"]), {"inverse": matrix}, s["anew"].astype(np.int32)

    def step(s: Any) -> Any:
        p, memory, jacobians = (newton if name == "newton" else broyden)(s)
        regular = all_finite(p)
        p = ops.where(regular, p, 0)
        length, x, values, count = _backtracked(f, s, p, regular)
        failed = length == 0
        status = ops.where(largest(values) <= bound, 0, s["status"])
        bad = ops.where(regular, status * 0 + 3, 4)
        if name == "broyden":
            # If a corrected Jacobian fails, a new one is tried before giving up.
            status = ops.where(failed & s["anew"], bad, status)
            memory["inverse"] = _corrected(memory["inverse"], x - s["x"], values - s["f"])
            memory["anew"] = failed
        else:
            status = ops.where(failed, bad, status)
        counts = {"nfev": s["nfev"] + count, "njev": s["njev"] + jacobians}
        return {**s, **memory, **counts, "x": x, "f": values, "status": status}

    status = ops.where(largest(first) <= bound, integer(0), -1)
    status = ops.where(all_finite(first), status, 6)
    start = {"x": x, "f": first, "status": status, "nit": integer(0), "nfev": integer(1), "njev": integer(0)}
    if name == "broyden":
        start |= {"inverse": identity(n, x.dtype), "anew": status < 10}
    return run("root", step, start, maxiter, progress)


def _backtracked(f: Any, s: Any, p: Any, going: Any) -> tuple[Any, Any, Any, Any]:
    """Halve the step ``p`` from the point of the state ``s`` until the norm of ``f`` is sufficiently smaller there.

    Return the remaining fraction of the step, the point and the values there, and the number of evaluations. The
    fraction is 0, and the point unchanged, if no step was good or if ``going`` is False.
    """
    before = dot(s["f"], s["f"])

    def good(length: Any, values: Any) -> Any:
        return all_finite(values) & (dot(values, values) <= (1 - 2e-4 * length) * before)

    def going_on(state: Any) -> Any:
        length, _, values, count = state
        return going & (count < _HALVINGS) & ~good(length, values)

    def step(state: Any) -> Any:
        length, _, _, count = state
        length = length / 2
        x = s["x"] + length * p
        return length, x, f(x), count + 1

    x = s["x"] + p
    one = ops.mul(before, 0) + 1
    length, x, values, count = while_loop(going_on, step, (one, x, f(x), integer(1)))
    fine = going & good(length, values)
    return ops.where(fine, length, 0), ops.where(fine, x, s["x"]), ops.where(fine, values, s["f"]), count


def _corrected(matrix: Any, moved: Any, change: Any) -> Any:
    """Return the inverse Jacobian after Broyden's correction, by the Sherman-Morrison formula.

    Args:
      matrix: the inverse Jacobian before the correction.
      moved: the last step.
      change: the change of the function's values over this step.
    """
    turned = times(matrix, change)
    row = product(moved[None], matrix)[0]
    below = dot(moved, turned)
    usable = ops.abs(below) > 0
    return matrix + ops.where(usable, (moved - turned)[:, None] * row[None] / ops.where(usable, below, 1), 0)
