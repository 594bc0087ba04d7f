"""Roots of functions of one number, for all elements of arrays in one loop: ``brentq`` and ``root_scalar``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.loops import while_loop
from pullback.control.solves import custom_root
from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike, host_value, is_on_host
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.waiting import waiting
from pullback.numpy.promotion import inexact_operands, quote
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.problems import count_of, integer, is_real
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import eval_shape

_ROOT_METHODS = ("brentq", "bisect", "newton", "halley", "secant")
_ALIKE = {"brenth": "brentq", "ridder": "brentq", "toms748": "brentq"}


class RootResults(NamedTuple):
    """The result of :func:`root_scalar`; all fields have the shape of the root.

    Attributes:
      root: the root, or the last point where ``converged`` is false; NaN where ``status`` is 2.
      iterations: int32, the number of steps.
      function_calls: int32, how often the function was evaluated.
      converged: whether ``root`` is one.
      status: int32: 0 where it is, 1 after ``maxiter``, 2 where the function has one sign at both ends of the bracket,
        3 where a step is not finite, as where the derivative is zero.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import root_scalar
    >>> print(root_scalar(lambda x: x**2 - 2, bracket=(0.0, 2.0)).root.round(4))
    1.4142
    """

    root: Array
    iterations: Array
    function_calls: Array
    converged: Array
    status: Array


def brentq(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: tuple[Any, ...] = (),
    xtol: float = 2e-12,
    rtol: float | None = None,
    maxiter: int = 100,
    full_output: bool = False,
) -> Array | tuple[Array, RootResults]:
    """Find a root between two points, by Brent's method.

    All elements of arrays are searched in one loop. The root is differentiated by the implicit function theorem, in
    both modes and to any order, with respect to ``args`` and to arrays that ``f`` closes over.

    Args:
      f: ``f(x, *args)`` returns an array like ``x``, each element of which depends on that element of ``x`` alone.
      a, b: the ends of the brackets, which broadcast; ``f`` has different signs there.
      args: further arguments of ``f``.
      xtol, rtol: the distance and the relative distance of the root with which to end; ``rtol`` is by default four
        times the precision of the dtype.
      maxiter: the largest number of steps.
      full_output: whether to return a :class:`RootResults` too.

    Returns:
      The roots, or the pair; NaN where none was found. In eager code ends of equal signs raise an error.

    Raises:
      ArgumentError: equal signs at both ends, ``args`` that are no tuple (a TypeError and a ValueError).
      ShapeError: ``f`` returns no array like ``x`` (a TypeError and a ValueError).

    Source: R. P. Brent 1973, Algorithms for Minimization without Derivatives, chapter 4.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.optimize import brentq
    >>> print(brentq(lambda x, c: x**3 - c, 0.0, 3.0, (jnp.array([1.0, 8.0]),)).round(4))
    [1. 2.]
    >>> print(grad(lambda c: brentq(lambda x: x**3 - c, 0.0, 3.0))(8.0).round(4))
    0.0833
    """
    full_output = flag("brentq", "full_output", full_output)
    found = _bracketed("brentq", f, a, b, args, "brentq", xtol, rtol, maxiter)
    root = ops.where(found.converged, found.root, np.nan)
    return (root, found) if full_output else root


# long: half of it is its documentation
def root_scalar(
    f: Callable[..., Any],
    args: tuple[Any, ...] = (),
    method: str | None = None,
    bracket: Sequence[ArrayLike] | None = None,
    fprime: Callable[..., Any] | None = None,
    fprime2: Callable[..., Any] | None = None,
    x0: ArrayLike | None = None,
    x1: ArrayLike | None = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
) -> RootResults:
    """Find a root of a function of one number, in a bracket or from a starting point.

    All elements of arrays are searched in one loop; the derivatives are those of :func:`brentq`.

    Args:
      f: ``f(x, *args)`` returns an array like ``x``, each element of which depends on that element of ``x`` alone.
      args: further arguments of ``f``.
      method: with a bracket "brentq", the default, or "bisect"; SciPy's "brenth", "ridder" and "toms748" stand for the
        first. From ``x0`` "newton", the default; "halley", with second derivatives; or "secant".
      bracket: the two ends, arrays that broadcast.
      fprime, fprime2: the derivatives of ``f``; by default they are computed.
      x0: the starting point, an array.
      x1: a second one, for "secant"; by default near ``x0``.
      xtol, rtol: the distance and the relative distance with which to end, by default 2e-12, or 1.5e-8 without a
        bracket, and four times the precision of the dtype.
      maxiter: the largest number of steps, by default 100, or 50 without a bracket.

    Returns:
      A :class:`RootResults`.

    Raises:
      ArgumentError: an unknown method, neither a bracket nor ``x0``, or equal signs at both ends in eager code (a
        TypeError and a ValueError).
      ShapeError: ``f`` returns no array like ``x`` (a TypeError and a ValueError).

    Source: R. P. Brent 1973, Algorithms for Minimization without Derivatives, chapter 4.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import root_scalar
    >>> found = root_scalar(lambda x: jnp.cos(x) - x, x0=jnp.array([0.0, 1.0]))
    >>> print(found.root.round(4), found.converged)
    [0.7391 0.7391] [ True  True]
    """
    given = ("brentq" if bracket is not None else "newton") if method is None else str(method).lower()
    name = _ALIKE.get(given, given)
    if not is_listed(name, _ROOT_METHODS):
        raise ArgumentError(f"root_scalar: method must be one of {', '.join(_ROOT_METHODS)}, got {quote(method)}")
    if name in ("brentq", "bisect"):
        if not (isinstance(bracket, (tuple, list)) and len(bracket) == 2):
            raise ArgumentError(f"root_scalar: {name} needs a bracket of two ends, got {quote(bracket)}")
        tolerance, most = 2e-12 if xtol is None else xtol, 100 if maxiter is None else maxiter
        a, b = bracket
        return _bracketed("root_scalar", f, a, b, args, name, tolerance, rtol, most)
    if x0 is None:
        raise ArgumentError(f"root_scalar: {name} needs the starting point x0")
    tolerance, most = 1.5e-8 if xtol is None else xtol, 50 if maxiter is None else maxiter
    function, x, second = elementwise("root_scalar", f, args, x0, x0 if x1 is None else x1)
    given_slopes = [None if g is None else lambda x, g=g: g(x, *args) for g in (fprime, fprime2)]

    def solve(f: Any, x: Any) -> Any:
        return _open(name, f, x, None if x1 is None else second, given_slopes, tolerance, rtol, most)

    root, (count, calls, status) = custom_root(function, x, solve, diagonal, has_aux=True)
    return RootResults(root, count, calls, status == 0, status)


def elementwise(name: str, f: Any, args: Any, *points: Any) -> list[Any]:
    """Return the function of arrays, and the points in one shape and dtype; raise unless the function fits."""
    if not callable(f):
        raise ArgumentError(f"{name}: the function must be one, got {quote(f)}")
    if not isinstance(args, tuple):
        raise ArgumentError(f"{name}: args must be a tuple of further arguments of the function, got {quote(args)}")
    arrays = inexact_operands(name, *points)
    if dtypes.is_complex(arrays[0].dtype):
        raise DtypeError(f"{name}: points must be real, got {dtypes.short_name(arrays[0].dtype)}")
    dtype = arrays[0].dtype
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    out = eval_shape(lambda x: f(x, *args), pnp.zeros(shape, dtype))
    if is_real(out) and out.shape != shape:  # arguments may have more elements than the points
        shape = np.broadcast_shapes(shape, out.shape)
        out = eval_shape(lambda x: f(x, *args), pnp.zeros(shape, dtype))
    if not is_real(out) or out.shape != shape:
        raise ShapeError(
            f"{name}: the function must return an array of real numbers like x, of shape {shape}, got {out}"
        )
    wide = [pnp.broadcast_to(ops.convert_element_type(x, dtype), shape) for x in arrays]
    return [lambda x: ops.convert_element_type(f(x, *args), dtype), *wide]


def counter(x: Any) -> Any:
    """Return zeros of the dtype int32 and the shape of ``x``, mapped as ``x`` is."""
    return ops.mul(x, 0).astype(np.int32)


def diagonal(matvec: Callable[[Any], Any], y: Any) -> Any:
    """Solve ``matvec(x) = y``, where each element depends on one."""
    return y / matvec(pnp.ones_like(y))


def slope_of(f: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return the value and the derivative of a function of each element."""
    return jvp(f, (x,), (pnp.ones_like(x),))


def pick(condition: Any, yes: tuple[Any, ...], no: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(ops.where(condition, x, y) for x, y in zip(yes, no, strict=True))


# Roots ---------------------------------------------------------------------------------------------------------------


def _bracketed(
    name: str, f: Any, a: Any, b: Any, args: Any, method: str, xtol: Any, rtol: Any, maxiter: Any
) -> RootResults:
    function, a, b = elementwise(name, f, args, a, b)
    most = count_of(name, "maxiter", maxiter)
    rtol = 4 * float(np.finfo(a.dtype).eps) if rtol is None else rtol
    a, b = stop_gradient(a), stop_gradient(b)

    def solve(f: Any, start: Any) -> Any:
        fa, fb = f(a), f(b)
        bad = ~(ops.sign(fa) * ops.sign(fb) <= 0)
        if is_on_host(bad) and host_value(bad).any():
            i = np.unravel_index(int(host_value(bad).argmax()), bad.shape)
            values = [float(host_value(x)[i]) for x in (a, b, fa, fb)]
            raise ArgumentError(
                f"{name}: the function must have different signs at both ends of a bracket, but at {values[0]:.6g} and "
                f"{values[1]:.6g} it is {values[2]:.6g} and {values[3]:.6g}"
            )
        tolerance = lambda x: (xtol + rtol * ops.abs(x)) / 2
        step = _brent if method == "brentq" else _halved
        with waiting(name):
            end = _bracket_loop(f, step, tolerance, most, a, b, fa, fb, bad)
        root = ops.where(bad, np.nan, end["b"])
        status = ops.where(bad, integer(2), ops.where(end["going"], integer(1), integer(0)))
        return root, (end["count"], end["count"] + 2, status)

    root, (count, calls, status) = custom_root(function, b, solve, diagonal, has_aux=True)
    return RootResults(root, count, calls, status == 0, status)


def _bracket_loop(
    f: Any, propose: Any, tolerance: Any, most: int, a: Any, b: Any, fa: Any, fb: Any, bad: Any
) -> dict[str, Any]:
    """Narrow brackets until their half is below the tolerance; return the final state.

    The state has the best point ``b``, the one before ``a``, and ``c``, at which the function has the other sign than
    at ``b``; the last step ``d`` and the one before ``e``. ``propose`` returns the next two steps.
    """

    def ordered(s: dict[str, Any]) -> dict[str, Any]:
        """Return the state with different signs at b and c, and the smaller value at b."""
        same = ops.sign(s["fb"]) * ops.sign(s["fc"]) > 0
        gap = s["b"] - s["a"]
        c, fc, d, e = pick(same, (s["a"], s["fa"], gap, gap), (s["c"], s["fc"], s["d"], s["e"]))
        larger = ops.abs(fc) < ops.abs(s["fb"])
        now = s["a"], s["b"], c, s["fa"], s["fb"], fc
        a, b, c, fa, fb, fc = pick(larger, (s["b"], c, s["b"], s["fb"], fc, s["fb"]), now)
        going = s["going"] & (fb != 0) & (ops.abs((c - b) / 2) > tolerance(b))
        return {
            "a": a,
            "b": b,
            "c": c,
            "fa": fa,
            "fb": fb,
            "fc": fc,
            "d": d,
            "e": e,
            "going": going,
            "count": s["count"],
        }

    def body(state: Any) -> Any:
        s, steps = state
        tol, half = tolerance(s["b"]), (s["c"] - s["b"]) / 2
        d, e = propose(s, tol, half)
        moved = ops.where(ops.abs(d) > tol, d, ops.where(half > 0, tol, -tol))
        b = ops.where(s["going"], s["b"] + moved, s["b"])
        fb = ops.where(s["going"], f(b), s["fb"])
        a, fa = pick(s["going"], (s["b"], s["fb"]), (s["a"], s["fa"]))
        count = s["count"] + s["going"].astype(np.int32)
        return ordered({**s, "a": a, "b": b, "fa": fa, "fb": fb, "d": d, "e": e, "count": count}), steps + 1

    going = ~bad
    none = counter(b)
    start = {
        "a": a,
        "b": b,
        "c": a,
        "fa": fa,
        "fb": fb,
        "fc": fa,
        "d": b - a,
        "e": b - a,
        "going": going,
        "count": none,
    }
    unfinished = lambda state: reductions.reduce_or(state[0]["going"], tuple(range(b.ndim))) & (state[1] < most)
    return while_loop(unfinished, body, (ordered(start), integer(0)))[0]


def _halved(s: dict[str, Any], tol: Any, half: Any) -> tuple[Any, Any]:
    return half, half


def _brent(s: dict[str, Any], tol: Any, half: Any) -> tuple[Any, Any]:
    """Return the step by inverse quadratic interpolation, or linear if only two points are known, or to the middle."""
    one = lambda x: ops.where(x == 0, 1, x)
    ratio = s["fb"] / one(s["fa"])
    linear = s["a"] == s["c"]
    q, r = s["fa"] / one(s["fc"]), s["fb"] / one(s["fc"])
    p = ops.where(linear, 2 * half * ratio, ratio * (2 * half * q * (q - r) - (s["b"] - s["a"]) * (r - 1)))
    q = ops.where(linear, 1 - ratio, (q - 1) * (r - 1) * (ratio - 1))
    q, p = ops.where(p > 0, -q, q), ops.abs(p)
    good = 2 * p < ops.min_p.bind(3 * half * q - ops.abs(tol * q), ops.abs(s["e"] * q))
    good = good & (ops.abs(s["e"]) >= tol) & (ops.abs(s["fa"]) > ops.abs(s["fb"]))
    return ops.where(good, p / one(q), half), ops.where(good, s["d"], half)


def _open(
    method: str, f: Any, x: Any, second: Any, slopes: Sequence[Any], xtol: Any, rtol: Any, maxiter: Any
) -> tuple[Any, Any]:
    """Search roots from starting points; return them, and the numbers of steps and evaluations, and the status."""
    most = count_of("root_scalar", "maxiter", maxiter)
    eps = float(np.finfo(x.dtype).eps)
    rtol = 4 * eps if rtol is None else rtol
    first, curved = slopes
    derivative = (lambda x: (f(x), first(x))) if first is not None else lambda x: slope_of(f, x)

    def newton(s: dict[str, Any]) -> Any:
        value, slope = derivative(s["x"])
        return -value / slope, value

    def halley(s: dict[str, Any]) -> Any:
        value, slope = derivative(s["x"])
        bend = curved(s["x"]) if curved is not None else slope_of(lambda x: derivative(x)[1], s["x"])[1]
        step = value / slope
        return -step / (1 - step * bend / (2 * slope)), value

    def secant(s: dict[str, Any]) -> Any:
        value = f(s["x"])
        return -value * (s["x"] - s["before"]) / (value - s["f"]), value

    propose = {"newton": newton, "halley": halley, "secant": secant}[method]

    def body(state: Any) -> Any:
        s, steps = state
        p, value = propose(s)
        finite = ops.is_finite_p.bind(p)
        moving = s["status"] < 0
        move = ops.where(moving & finite, p, 0)
        small = ops.abs(move) <= xtol + rtol * ops.abs(s["x"])
        # A step that is no number ends the search, but for a value of zero, where no step is needed.
        ended = ops.where(finite, ops.where(small, integer(0), -1), ops.where(value == 0, integer(0), 3))
        status = ops.where(moving, ended, s["status"])
        count = s["count"] + moving.astype(np.int32)
        return {"x": s["x"] + move, "before": s["x"], "f": value, "status": status, "count": count}, steps + 1

    if method == "secant":
        before, x = x, (x * (1 + eps**0.25) + eps**0.25 if second is None else second)
        start = {"x": x, "before": before, "f": f(before)}
    else:
        start = {"x": x, "before": x, "f": ops.mul(x, 0)}
    none = counter(x)
    start |= {"status": none - 1, "count": none}
    unfinished = lambda s: reductions.reduce_or(s[0]["status"] < 0, tuple(range(x.ndim))) & (s[1] < most)
    with waiting("root_scalar"):
        end = while_loop(unfinished, body, (start, integer(0)))[0]
    status = ops.where(end["status"] < 0, 1, end["status"])
    return end["x"], (end["count"], end["count"] + (method == "secant"), status)
