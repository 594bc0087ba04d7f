"""Minima: ``minimize`` by BFGS, L-BFGS, and Newton's method with conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.control.fori_loop import fori_loop
from pullback.control.loops import while_loop
from pullback.control.solves import custom_root
from pullback.core import dtypes
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy import linalg as numpy_linalg
from pullback.numpy.promotion import inexact_operand
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate
from pullback.primitives.linalg.lu import identity
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.constrained import OPTIONS, minimum
from pullback.scipy.optimize.constraints import Bounds, constraints_of
from pullback.scipy.optimize.line_search import line_search
from pullback.scipy.optimize.problems import (
    OptimizeResults,
    all_finite,
    count_of,
    dense_solution,
    dot,
    flat,
    integer,
    is_real,
    options_of,
    run,
    start_of,
    times,
    tolerance_of,
)
from pullback.scipy.sparse.linalg.hermitian import cg
from pullback.transforms.autodiff.grad import grad, value_and_grad
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import eval_shape
from pullback.transforms.custom.closure import without_tracers

_SHARED = {"maxiter": None, "gtol": 1e-5, "norm": np.inf}
_OPTIONS: dict[str, dict[str, Any]] = {
    "bfgs": {**_SHARED, "line_search_maxiter": 20},
    "l-bfgs": {**_SHARED, "maxcor": 10, "maxls": 20, "ftol": 0.0, "maxfun": None, "maxgrad": None},
    "newton-cg": {**_SHARED, "line_search_maxiter": 20},
}
_NAMES = {"l-bfgs-experimental-do-not-rely-on-this": "l-bfgs", "l-bfgs-b": "l-bfgs"}

_PATIENCE = 5  # the largest number of steps in a row that reduce no value or gradient


# long: half of it is its documentation
def minimize(
    fun: Callable[..., ArrayLike],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str | None = None,
    jac: Callable[..., Any] | None = None,
    hess: Callable[..., Any] | None = None,
    bounds: Bounds | ArrayLike | Sequence[Any] | None = None,
    constraints: Any = (),
    tol: ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
    progress: bool | str = False,
) -> OptimizeResults:
    """A local minimum of a function of real numbers, or of the real and imaginary parts of complex numbers.

    Without bounds and constraints the method is a loop of ours. With them it is SciPy's, on the host, with exact
    derivatives of compiled functions; the result of "SLSQP" and "trust-constr" is then made as precise as the dtype.
    The solution has derivatives where its active constraints and their multipliers determine them.

    Args:
      fun: ``fun(x, *args)`` returns a real number; it is differentiated.
      x0: the starting point, an array of numbers of any shape; integers become floats.
      args: further arguments, with respect to which the result is differentiated.
      method: "BFGS"; "L-BFGS", which keeps the last ``maxcor`` steps instead of a matrix; or "Newton-CG", by products
        with the Hessian. With bounds "L-BFGS-B", their default; with constraints too "SLSQP", their default, quadratic
        programs in sequence; or "trust-constr", an interior point in a trust region.
      jac, hess: ``jac(x, *args)`` and ``hess(x, *args)`` return the gradient and the Hessian of ``fun`` for the methods
        with bounds and constraints; by default they are computed.
      bounds: of the unknowns: :class:`Bounds`, or for a vector pairs of a least and a greatest value, or None for no
        bound.
      constraints: one or several of :class:`LinearConstraint`, :class:`NonlinearConstraint`, and dictionaries with a
        "type", "eq" or "ineq", a function "fun" whose results are to be zero or not negative, and further arguments of
        it, "args".
      tol: instead of the option ``gtol``; with bounds and constraints SciPy's ``tol``.
      options: ``maxiter``, by default 200 for each element; ``gtol``, the size of the gradient with which to end
        (1e-5); ``norm``, in which it is measured (infinity); ``line_search_maxiter`` or, for L-BFGS, ``maxls``, the
        evaluations in one search (20); for L-BFGS also ``maxcor`` (10), ``ftol``, the relative decrease with which to
        end (0), and ``maxfun`` and ``maxgrad``, the largest numbers of evaluations. With bounds and constraints SciPy's
        options, but for those that print.
      progress: whether to show a progress bar, or a text to show next to it; this needs the library ``tqdm``.

    Returns:
      An :class:`OptimizeResults`. ``status`` is 0 where the gradient is small; 1 after ``maxiter``; 2 where the
      decrease is below ``ftol``, which is a success too; 3 where no lower point was found along a direction of descent,
      as at the precision of the dtype; 6 where the function or its gradient is not finite at ``x0``; 7 where it
      has no lower bound. ``x`` is the best point found. Its derivative solves an equation with the Hessian, as a
      matrix for BFGS, and by conjugate gradients for the others; it is infinite or NaN where the Hessian is singular.

      With bounds and constraints ``status`` is 0 where the solution was found; 1 after ``maxiter``; 3 where the method
      failed; 4 where it found no point that satisfies the constraints; 6 as above. ``degeneracy`` is 0 where the
      solution has derivatives; 1 at a kink, where a multiplier is zero; 2 where the gradients of active constraints are
      linearly dependent; 3 where it is not unique; 4 where no point was found that satisfies the optimality conditions.
      The derivatives are then NaN, or raise an error in eager code.

    Raises:
      ArgumentError: an unknown method or option, ``args`` that are no tuple (a TypeError and a ValueError).
      ShapeError: ``fun`` does not return one real number (a TypeError and a ValueError).
      DtypeError: ``x0`` is no array of numbers, or complex with bounds or constraints (a TypeError).
      DegenerateSolutionError: the solution is differentiated where it has no derivative (a TypeError and a ValueError).

    Source: J. Nocedal and S. J. Wright, Numerical Optimization, 2nd ed., chapters 3, 6, 7, 12, 18 and 19.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy import optimize
    >>> f = lambda x, a: ((x - a) ** 2).sum()
    >>> found = optimize.minimize(f, jnp.zeros(2), (jnp.array([1.0, 2.0]),), method="BFGS")
    >>> print(found.x.round(4), found.success)
    [1. 2.] True
    >>> print(grad(lambda a: optimize.minimize(lambda x: (x - a) ** 2 + x, 0.0, method="BFGS").x)(1.0))
    1.0
    """
    name = _method(method, bounds, not isinstance(constraints, (tuple, list)) or len(constraints) > 0)
    if name in OPTIONS:
        settings = options_of("minimize", options, OPTIONS[name])
        start = start_of("minimize", fun, x0, args)
        objective = _checked(fun, start, args)
        derivatives = _as_arrays(jac, start, args, 1), _as_arrays(hess, start, args, 2)
        limits = constraints_of("minimize", bounds, constraints, start)
        vector = shapes.reshape(start, (start.size,))
        found = minimum(name, objective, derivatives, vector, limits, tol, settings)
        alike = {key: shapes.reshape(getattr(found, key), start.shape) for key in ("x", "jac", "bound_multipliers")}
        return found._replace(**alike)
    if jac is not None or hess is not None:
        raise ArgumentError(f"minimize: jac and hess need bounds or constraints, or their methods, got {method!r}")
    settings = options_of("minimize", options, _OPTIONS[name])
    if tol is not None:
        settings["gtol"] = tol
    start = start_of("minimize", fun, x0, args, complex_too=True)
    if dtypes.is_complex(start.dtype):
        of_pairs = lambda x, *args: fun(_to_complex(x), *args)
        pairs = concatenate([shapes.expand_dims(v, (-1,)) for v in (ops.real(start), ops.imag(start))], start.ndim)
        found = minimize(of_pairs, pairs, args, method=method, tol=tol, options=options, progress=progress)
        return found._replace(x=_to_complex(found.x), jac=ops.conj(_to_complex(found.jac)))
    vector = shapes.reshape(start, (start.size,))
    objective = _checked(fun, start, args)
    converted, captured = without_tracers(objective, vector)
    fixed = [stop_gradient(x) for x in captured]
    evaluate = value_and_grad(lambda x: converted(x, *fixed))

    def solve(_: Any, x: Any) -> Any:
        end = _minimized(name, evaluate, x, settings, progress)
        return end.pop("x"), end

    gradient = grad(lambda x: converted(x, *captured))
    x, end = custom_root(gradient, vector, solve, dense_solution if name == "bfgs" else _by_products, has_aux=True)
    success = (end["status"] == 0) | (end["status"] == 2)
    jac = shapes.reshape(end["g"], start.shape)
    value, inverse = converted(x, *captured), end.get("inverse")
    return OptimizeResults(
        shapes.reshape(x, start.shape),
        success,
        end["status"],
        value,
        jac,
        inverse,
        end["nfev"],
        end["nfev"],
        end["nit"],
    )


def _method(method: str | None, bounds: Any, constrained: bool) -> str:
    """Return the name of a method: a key of ``_OPTIONS``, or of ``OPTIONS`` if it is SciPy's."""
    if method is None:
        return "slsqp" if constrained else "l-bfgs-b" if bounds is not None else "bfgs"
    given = str(method).lower()
    if given in OPTIONS and (given != "l-bfgs-b" or bounds is not None or constrained):
        if given == "l-bfgs-b" and constrained:
            raise ArgumentError("minimize: L-BFGS-B has no constraints but bounds: use 'SLSQP' or 'trust-constr'")
        return given
    name = _NAMES.get(given, given)
    if not is_listed(name, _OPTIONS):
        raise ArgumentError(
            "minimize: method must be 'BFGS', 'L-BFGS', 'Newton-CG', 'L-BFGS-B', 'SLSQP' or 'trust-constr', got "
            f"{method!r}"
        )
    if bounds is not None or constrained:
        raise ArgumentError(
            f"minimize: {method} has no bounds and constraints: use 'L-BFGS-B', 'SLSQP' or 'trust-constr'"
        )
    return name


def _as_arrays(derivative: Any, start: Any, args: Any, order: int) -> Callable[[Any], Any] | None:
    """Return the user's gradient, or of order 2 the Hessian, as a function of vectors; None stays."""
    if derivative is None:
        return None
    function = flat(derivative, start, args)[1]
    return lambda x: shapes.reshape(inexact_operand("minimize", function(x)), (start.size,) * order)


def _checked(fun: Callable[..., Any], start: Any, args: Any) -> Callable[[Any], Any]:
    """Return ``fun`` as a function of vectors; raise unless it returns a real number."""
    vector, objective = flat(fun, start, args)
    out = eval_shape(objective, vector)
    if getattr(out, "shape", None) != () or not is_real(out):
        raise ShapeError(f"minimize: fun must return one scalar float, got {out}")
    return objective


def _to_complex(x: Any) -> Any:
    """Return complex numbers from their real and imaginary parts, which are the two elements along the last axis."""
    return ops.complex_p.bind(x[..., 0], x[..., 1])


def _by_products(matvec: Callable[[Any], Any], y: Any) -> Any:
    return cg(matvec, y, tol=100 * float(np.finfo(y.dtype).eps))[0]


def _minimized(
    name: str, evaluate: Callable[..., Any], x: Any, options: dict[str, Any], progress: bool | str
) -> dict[str, Any]:
    n = x.shape[0]
    memory, direction, update = _METHODS[name](evaluate, n, x.dtype, options)
    maxiter = 200 * max(n, 1) if options["maxiter"] is None else count_of("minimize", "maxiter", options["maxiter"])
    searches = count_of("minimize", "maxls", options.get("maxls", options.get("line_search_maxiter")))
    gtol = tolerance_of("minimize", options["gtol"], x.dtype)
    ftol = options.get("ftol", 0.0)
    limits = [count_of("minimize", key, options[key]) for key in ("maxfun", "maxgrad") if options.get(key) is not None]
    size = lambda g: numpy_linalg.norm(g, ord=options["norm"]) if n else ops.mul(g.sum(), 0)

    def step(s: Any) -> Any:
        x, f, g = s["x"], s["f"], s["g"]
        p, cost = direction(s)
        p = ops.where((dot(p, g) < 0) & all_finite(p), p, -g)
        length = size(g)
        first = ops.where(s["nit"] == 0, ops.min_p.bind(1, 1 / ops.where(length > 0, length, 1)), ops.mul(f, 0) + 1)
        found = line_search(evaluate, x, f, g, p, first if name != "newton-cg" else ops.mul(f, 0) + 1, searches)
        moved = found.length * p
        nfev = s["nfev"] + found.count + cost
        new_size = size(found.gradient)
        # Where rounding hides a decrease of the value, the gradient may still become smaller for some steps.
        better = (found.value < s["least"]) | (new_size < s["smallest"])
        stalled = ops.where(better, 0, s["stalled"] + 1)
        status = ops.where(stalled >= _PATIENCE, 3, s["status"])
        status = ops.where(new_size <= gtol, 0, status)
        if not (isinstance(ftol, (int, float)) and ftol <= 0):
            slow = (f - found.value) <= ftol * ops.max_p.bind(ops.abs(f), ops.max_p.bind(ops.abs(found.value), 1))
            status = ops.where((status < 0) & slow, 2, status)
        for limit in limits:
            status = ops.where((status < 0) & (nfev >= limit), 1, status)
        status = ops.where(found.length == 0, 3, status)
        status = ops.where(found.unbounded, 7, status)
        changed = update(s, moved, found.gradient - g)
        changed |= {
            "least": ops.min_p.bind(s["least"], found.value), "smallest": ops.min_p.bind(s["smallest"], new_size),
            "stalled": stalled,
        }  # fmt: skip
        return {**s, **changed, "x": x + moved, "f": found.value, "g": found.gradient, "nfev": nfev, "status": status}

    f, g = evaluate(x)
    finite = all_finite(g) & ops.is_finite_p.bind(f)
    status = ops.where(size(g) <= gtol, integer(0), -1)
    start = {
        **memory, "least": f, "smallest": size(g), "stalled": integer(0), "x": x, "f": f, "g": g, "nit": integer(0),
        "nfev": integer(1), "status": ops.where(finite, status, 6),
    }  # fmt: skip
    return run("minimize", step, start, maxiter, progress)


# The methods: each returns its initial memory, a function for the direction and its evaluations, and an update
# ----------


def _bfgs(evaluate: Any, n: int, dtype: Any, options: Any) -> Any:
    def direction(s: Any) -> Any:
        return -times(s["inverse"], s["g"]), 0

    def update(s: Any, moved: Any, change: Any) -> dict[str, Any]:
        inner = dot(moved, change)
        square = dot(change, change)
        useful = inner > float(np.finfo(dtype).eps) * ops.sqrt(dot(moved, moved) * square)
        safe = ops.where(useful, inner, 1)
        # The first matrix has the size of the Hessian along the first step.
        scale = ops.where(s["nit"] == 0, safe / ops.where(useful, square, 1), 1)
        inverse = s["inverse"] * scale
        turned = times(inverse, change)
        outer = lambda x, y: x[:, None] * y[None, :]
        factor = (1 + dot(change, turned) / safe) / safe
        cross = outer(turned / safe, moved)
        new = inverse + factor * outer(moved, moved) - cross - cross.T
        return {"inverse": ops.where(useful, new, s["inverse"])}

    return {"inverse": identity(n, dtype)}, direction, update


def _lbfgs(evaluate: Any, n: int, dtype: Any, options: Any) -> Any:
    count = count_of("minimize", "maxcor", options["maxcor"])
    if count < 1:
        raise ArgumentError("minimize: maxcor must be at least 1, got 0")
    zeros = identity(n, dtype).sum(0) * 0

    def direction(s: Any) -> Any:
        moves, changes, weights, last = s["moves"], s["changes"], s["weights"], s["last"]

        def backwards(i: Any, state: Any) -> Any:
            q, factors = state
            k = (last - i) % count
            factor = weights[k] * dot(moves[k], q)
            return q - factor * changes[k], ops.where(np.arange(count) == k, factor, factors)

        def forwards(i: Any, r: Any) -> Any:
            k = (last + 1 + i) % count
            return r + moves[k] * (factors[k] - weights[k] * dot(changes[k], r))

        q, factors = fori_loop(0, count, backwards, (s["g"], weights * 0))
        return -fori_loop(0, count, forwards, s["scale"] * q), 0

    def update(s: Any, moved: Any, change: Any) -> dict[str, Any]:
        inner, square = dot(moved, change), dot(change, change)
        useful = inner > float(np.finfo(dtype).eps) * ops.sqrt(dot(moved, moved) * square)
        last = ops.where(useful, (s["last"] + 1) % count, s["last"])
        here = useful & (np.arange(count) == last)
        return {
            "moves": ops.where(here[:, None], moved[None], s["moves"]),
            "changes": ops.where(here[:, None], change[None], s["changes"]),
            "weights": ops.where(here, 1 / ops.where(useful, inner, 1), s["weights"]),
            "scale": ops.where(useful, inner / ops.where(useful, square, 1), s["scale"]),
            "last": last,
        }

    rows = zeros[None] + np.zeros((count, 1), dtype)
    memory = {
        "moves": rows, "changes": rows, "weights": shapes.full((count,), 0, dtype), "scale": shapes.full((), 1, dtype),
        "last": integer(0),
    }  # fmt: skip
    return memory, direction, update


def _newton(evaluate: Any, n: int, dtype: Any, options: Any) -> Any:
    """Return the method Newton-CG: its memory (empty), a function ``direction``, and an update of the memory.

    ``direction`` maps the state to a step and the number of its iterations. These are conjugate gradients on Newton's
    equation, until the residual is small or the curvature is negative. ``evaluate`` returns the value and the gradient
    of the objective.
    """

    def direction(s: Any) -> Any:
        x, g = s["x"], s["g"]
        size = ops.sqrt(dot(g, g))
        bound = ops.min_p.bind(0.5, ops.sqrt(size)) * size
        curved = lambda v: jvp(lambda y: evaluate(y)[1], (x,), (v,))[1]

        def going_on(state: Any) -> Any:
            _, r, _, count, done = state
            return ~done & (ops.sqrt(dot(r, r)) > bound) & (count < 2 * n)

        def step(state: Any) -> Any:
            p, r, d, count, _ = state
            turned = curved(d)
            curvature = dot(d, turned)
            bad = curvature <= float(np.finfo(dtype).eps) * dot(d, d)
            length = ops.where(bad, 0, dot(r, r) / ops.where(bad, 1, curvature))
            new = r + length * turned
            d = ops.where(bad, d, -new + dot(new, new) / dot(r, r) * d)
            first = bad & (count == 0)
            return ops.where(first, -g, p + length * state[2]), new, d, count + 1, bad

        start = (g * 0, g, -g, integer(0), size < 0)
        p, *_, count, _ = while_loop(going_on, step, start)
        return p, count

    return {}, direction, lambda s, moved, change: {}


_METHODS = {"bfgs": _bfgs, "l-bfgs": _lbfgs, "newton-cg": _newton}
