"""Minima of functions of one number, for all elements of arrays in one loop: ``minimize_scalar``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.control.loops import while_loop
from pullback.control.solves import custom_root
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError
from pullback.core.waiting import waiting
from pullback.numpy.promotion import quote
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.operands import stop_gradient
from pullback.scipy.optimize.problems import count_of, integer, options_of
from pullback.scipy.optimize.scalar_roots import counter, diagonal, elementwise, pick, slope_of

_GOLDEN = (3 - 5**0.5) / 2
_POLISHING = 4
_WIDENINGS = 100


class ScalarResult(NamedTuple):
    """The result of :func:`minimize_scalar`; all fields have the shape of the solution.

    Attributes:
      x: the solution, which has derivatives.
      fun: the function there.
      success: whether ``x`` is a solution.
      nit: int32, the number of steps.

    >>> from pullback.scipy.optimize import minimize_scalar
    >>> print(minimize_scalar(lambda x: (x - 2.0) ** 2, bounds=(0.0, 3.0)).x)
    2.0
    """

    x: Array
    fun: Array
    success: Array
    nit: Array


# long: half of it is its documentation
def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Sequence[ArrayLike] | None = None,
    bounds: Sequence[ArrayLike] | None = None,
    args: tuple[Any, ...] = (),
    method: str | None = None,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> ScalarResult:
    """Find a local minimum of a function of one number.

    All elements of arrays are searched in one loop, by values of the function; then steps of Newton's method on its
    derivative make the solution as precise as the dtype. It is differentiated in both modes and to any order: as the
    root of the derivative, or where it is a bound, as the bound.

    Args:
      fun: ``fun(x, *args)`` returns an array like ``x``, each element of which depends on that element of ``x`` alone.
      bracket: three points, at the middle of which the function is least; or two, from which such points are sought
        downhill. By default 0 and 1. All broadcast.
      bounds: the least and the greatest value of x instead.
      args: further arguments, with respect to which the result is differentiated.
      method: "bounded", the default with bounds; or "brent", for which SciPy's "golden" stands too.
      tol: the relative precision of the search by values, at least and by default the square root of the precision of
        the dtype.
      options: ``maxiter``, by default 500.

    Returns:
      A :class:`ScalarResult`. The derivative is NaN at a bound where the derivative of the function is zero.

    Raises:
      ArgumentError: an unknown method or option, bounds or a bracket of another form (a TypeError and a ValueError).
      ShapeError: ``fun`` returns no array like ``x`` (a TypeError and a ValueError).

    Source: R. P. Brent 1973, Algorithms for Minimization without Derivatives, chapter 5.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.optimize import minimize_scalar
    >>> f = lambda x, a: x**4 / 4 - a * x
    >>> print(minimize_scalar(f, bounds=(0.0, 3.0), args=(jnp.array([1.0, 8.0, 64.0]),)).x.round(4))
    [1. 2. 3.]
    >>> print(grad(lambda a: minimize_scalar(f, args=(a,)).x)(8.0).round(4))
    0.0833
    """
    name = ("brent" if bounds is None else "bounded") if method is None else str(method).lower()
    if not is_listed(name, ("brent", "golden", "bounded")):
        raise ArgumentError(f"minimize_scalar: method must be 'brent', 'golden' or 'bounded', got {quote(method)}")
    most = count_of("minimize_scalar", "maxiter", options_of("minimize_scalar", options, {"maxiter": 500})["maxiter"])
    bounded = name == "bounded"
    points = bounds if bounded else (0.0, 1.0) if bracket is None else bracket
    if not (isinstance(points, (tuple, list)) and len(points) in ((2,) if bounded else (2, 3))):
        form = "bounds of two numbers or arrays" if bounded else "a bracket of two or three points"
        raise ArgumentError(f"minimize_scalar: {name} needs {form}, got {quote(points)}")
    function, *ends = elementwise("minimize_scalar", fun, args, *points)
    slope = lambda x: slope_of(function, x)[1]
    fixed = [stop_gradient(x) for x in ends]

    def search(_: Any, x: Any) -> Any:
        low, middle, high, found = (fixed[0], None, fixed[1], True) if bounded else _bracket(function, fixed)
        x, count, ended = _brent(function, low, middle, high, tol, most)
        x = _polished(function, x, low, high)
        return x, (count, ended & found)

    if not bounded:
        x, (count, success) = custom_root(slope, fixed[0], search, diagonal, has_aux=True)
        return ScalarResult(x, function(x), success & ops.is_finite_p.bind(x), count)
    low, high = ends
    x, (count, success) = stop_gradient(search(None, fixed[0]))
    side = _side(function, x, *fixed)
    x = ops.where(side > 0, fixed[0], ops.where(side < 0, fixed[1], x))
    one = ops.where(side * side == 2.25, x * np.nan, x * 0 + 1)
    equation = lambda x: one * ops.where(side > 0, x - low, ops.where(side < 0, x - high, slope(x)))
    x = custom_root(equation, x, lambda _, x: x, diagonal)
    return ScalarResult(x, function(x), success & ops.is_finite_p.bind(x), count)


def _side(f: Any, x: Any, low: Any, high: Any) -> Any:
    """Return 1 where the solution is the least value, -1 where the greatest, 0 within; 1.5 or -1.5 at a kink."""
    root = float(np.finfo(x.dtype).eps) ** 0.5
    near = 4 * root * (ops.max_p.bind(ops.abs(low), ops.abs(high)) + (high - low))
    value = f(x)
    sides: list[Any] = []
    for end, sign in ((low, 1), (high, -1)):
        at_end, slope = slope_of(f, end)
        bend = ops.abs(slope_of(lambda y: slope_of(f, y)[1], end)[1])
        at = (ops.abs(x - end) <= near) & (at_end <= value) & (sign * slope >= 0)
        weak = ops.abs(slope) <= root * bend * (high - low)
        sides.append(ops.where(at, ops.where(weak, 1.5 * sign + value * 0, sign + value * 0), value * 0))
    return ops.where(sides[0] != 0, *(sides[0], sides[1]))


def _bracket(f: Any, points: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """Return three points with the least value in the middle, in increasing order, and whether they are so."""
    if len(points) == 3:
        a, b, c = points
        fa, fb, fc = f(a), f(b), f(c)
    else:
        a, b = points
        fa, fb = f(a), f(b)
        a, b, fa, fb = pick(fb > fa, (b, a, fb, fa), (a, b, fa, fb))
        c = b + (b - a) / (1 - _GOLDEN)
        fc = f(c)

        def widen(state: Any) -> Any:
            (a, b, c, fb, fc), steps = state
            further = c + (c - b) / (1 - _GOLDEN)
            return pick(fc < fb, (b, c, further, fc, f(further)), (a, b, c, fb, fc)), steps + 1

        unfinished = lambda s: reductions.reduce_or(s[0][4] < s[0][3], tuple(range(b.ndim))) & (s[1] < _WIDENINGS)
        (a, b, c, fb, fc), _ = while_loop(unfinished, widen, ((a, b, c, fb, fc), integer(0)))
        fa = fb
    good = (fb <= fa) & (fb <= fc) & (ops.sign(b - a) == ops.sign(c - b))
    return ops.min_p.bind(a, c), b, ops.max_p.bind(a, c), good


def _brent(f: Any, low: Any, middle: Any, high: Any, tol: Any, most: int) -> tuple[Any, Any, Any]:
    """Return the point of the least value found, the number of steps, and whether the search ended.

    The state has the interval from a to b; the best point x, the second w, and the one before, v; the last step d and
    the one before, e.
    """
    root = float(np.finfo(low.dtype).eps) ** 0.5
    relative = root if tol is None else max(float(tol), root)

    def body(state: Any) -> Any:
        s, steps = state
        x, a, b = s["x"], s["a"], s["b"]
        least, half = precision(x), (a + b) / 2
        r, q = (x - s["w"]) * (s["fx"] - s["fv"]), (x - s["v"]) * (s["fx"] - s["fw"])
        p = (x - s["v"]) * q - (x - s["w"]) * r
        q = 2 * (q - r)
        p, q = ops.where(q > 0, -p, p), ops.abs(q)
        fits = (
            (ops.abs(s["e"]) > least) & (ops.abs(p) < ops.abs(q * s["e"] / 2)) & (p > q * (a - x)) & (p < q * (b - x))
        )
        d = p / ops.where(q == 0, 1, q)
        u = x + d
        inwards = ops.where(x < half, least, -least)
        d = ops.where((u - a < 2 * least) | (b - u < 2 * least), inwards, d)
        rest = ops.where(x < half, b - x, a - x)
        d, e = pick(fits, (d, s["d"]), (_GOLDEN * rest, rest))
        u = x + ops.where(ops.abs(d) >= least, d, ops.where(d > 0, least, -least))
        fu = f(u)
        new = moved(s, u, fu) | {"d": d, "e": e}
        new = {key: ops.where(s["going"], new[key], s[key]) for key in new}
        new["count"] = s["count"] + s["going"].astype(np.int32)
        new["going"] = s["going"] & unsettled(new)
        return new, steps + 1

    def moved(s: dict[str, Any], u: Any, fu: Any) -> dict[str, Any]:
        x, left = s["x"], u < s["x"]
        better = fu <= s["fx"]
        a = ops.where(better, ops.where(left, s["a"], x), ops.where(left, u, s["a"]))
        b = ops.where(better, ops.where(left, x, s["b"]), ops.where(left, s["b"], u))
        second = (fu <= s["fw"]) | (s["w"] == x)
        third = (fu <= s["fv"]) | (s["v"] == x) | (s["v"] == s["w"])
        now = s["v"], s["fv"], s["w"], s["fw"]
        others = pick(third, (u, fu, s["w"], s["fw"]), now)
        others = pick(second, (s["w"], s["fw"], u, fu), others)
        v, fv, w, fw = pick(better, (s["w"], s["fw"], x, s["fx"]), others)
        x, fx = pick(better, (u, fu), (x, s["fx"]))
        return {"a": a, "b": b, "x": x, "w": w, "v": v, "fx": fx, "fw": fw, "fv": fv}

    precision = lambda x: relative * ops.abs(x) + relative * (high - low) * 1e-3
    unsettled = lambda s: ops.abs(s["x"] - (s["a"] + s["b"]) / 2) > 2 * precision(s["x"]) - (s["b"] - s["a"]) / 2
    x = low + _GOLDEN * (high - low) if middle is None else middle
    fx, none = f(x), ops.mul(x, 0)
    start = {"a": low, "b": high, "x": x, "w": x, "v": x, "fx": fx, "fw": fx, "fv": fx, "d": none, "e": none}
    start |= {"count": counter(x), "going": unsettled(start)}
    unfinished = lambda s: reductions.reduce_or(s[0]["going"], tuple(range(x.ndim))) & (s[1] < most)
    with waiting("minimize_scalar"):
        end = while_loop(unfinished, body, (start, integer(0)))[0]
    return end["x"], end["count"], ~end["going"]


def _polished(f: Any, x: Any, low: Any, high: Any) -> Any:
    """Return points where the derivative is smaller, by Newton's method, as long as the function is convex there."""
    slope = lambda x: slope_of(f, x)[1]
    near = 1e3 * float(np.finfo(x.dtype).eps) ** 0.5 * (ops.abs(x) + (high - low))
    first = x
    g, h = slope_of(slope, x)
    for _ in range(_POLISHING):
        new = x - g / ops.where(h > 0, h, 1)
        new_g, new_h = slope_of(slope, new)
        better = (h > 0) & (new >= low) & (new <= high) & (ops.abs(new - first) <= near) & (ops.abs(new_g) < ops.abs(g))
        x, g, h = pick(better, (new, new_g, new_h), (x, g, h))
    return x
