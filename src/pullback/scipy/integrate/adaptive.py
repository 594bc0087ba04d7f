"""Integrals of functions, by Gauss and Kronrod's rule on intervals that are halved where the error is largest.

Source: Piessens, de Doncker-Kapenga, Überhuber and Kahaner 1983, *QUADPACK*: the rule of 21 points, its nodes and
weights, and the estimate of its error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.arguments import flag, typed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.core.source import warn
from pullback.core.trace import Tracer
from pullback.numpy.promotion import inexact_operand, inexact_operands, known_int, promote_all, quote, sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import eval_shape
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.closure import without_tracers
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.custom.rule_adapter import SymbolicZero, zero_from_primal

__all__ = ["quad"]

# The rule ------------------------------------------------------------------------------------------------------------

_KRONROD = (
    (0.995657163025808080735527280689003, 0.011694638867371874278064396062192, 0.0),
    (0.973906528517171720077964012084452, 0.032558162307964727478818972459390, 0.066671344308688137593568809893332),
    (0.930157491355708226001207180059508, 0.054755896574351996031381300244580, 0.0),
    (0.865063366688984510732096688423493, 0.075039674810919952767043140916190, 0.149451349150580593145776339657697),
    (0.780817726586416897063717578345042, 0.093125454583697605535065465083366, 0.0),
    (0.679409568299024406234327365114874, 0.109387158802297641899210590325805, 0.219086362515982043995534934228163),
    (0.562757134668604683339000099272694, 0.123491976262065851077958109831074, 0.0),
    (0.433395394129247190799265943165784, 0.134709217311473325928054001771707, 0.269266719309996355091226921569469),
    (0.294392862701460198131126603103866, 0.142775938577060080797094273138717, 0.0),
    (0.148874338981631210884826001129720, 0.147739104901338491374841515972068, 0.295524224714752870173892994651338),
)
"""The positive nodes, with their weights in Kronrod's and Gauss's rules; Kronrod's rule also has the node 0."""
_AT_ZERO = 0.149445554002916905664936468389821

NODES_21 = np.array([*[-k[0] for k in _KRONROD], 0.0, *[k[0] for k in reversed(_KRONROD)]])
KRONROD_21 = np.array([*[k[1] for k in _KRONROD], _AT_ZERO, *[k[1] for k in reversed(_KRONROD)]])
GAUSS_21 = np.array([*[k[2] for k in _KRONROD], 0.0, *[k[2] for k in reversed(_KRONROD)]])


class _Options(NamedTuple):
    """The bounds on the error and the cost of an integral.

    Attributes:
      absolute, relative: the absolute and the relative bound of the error; the larger bound applies.
      limit: the largest number of intervals.
    """

    absolute: float
    relative: float
    limit: int


def _on_interval(f: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any]:
    """Integrate a vector-valued ``f`` from ``low`` to ``high``; return the integral and an estimate of its error."""
    half = ops.mul(0.5, ops.sub(high, low))
    dtype = half.dtype
    middle = ops.mul(0.5, ops.add(high, low))
    values = vmap(f)(ops.add(middle, ops.mul(half, ArrayImpl(NODES_21.astype(dtype)))))
    weights, gauss = (ArrayImpl(w.astype(values.dtype)) for w in (KRONROD_21, GAUSS_21))
    half = ops.convert_element_type(half, values.dtype)
    value = ops.mul(half, pnp.matmul(weights, values))
    difference = ops.abs(ops.sub(value, ops.mul(half, pnp.matmul(gauss, values))))
    mean = pnp.matmul(weights, values) * 0.5
    spread = ops.mul(half, pnp.matmul(weights, ops.abs(ops.sub(values, mean))))
    size = ops.mul(half, pnp.matmul(weights, ops.abs(values)))
    share = ops.div(ops.mul(200.0, difference), ops.where(ops.eq(spread, 0.0), 1.0, spread))
    error = ops.mul(spread, ops.min_p.bind(1.0, ops.mul(share, ops.sqrt(share))))
    error = ops.where(ops.eq(spread, 0.0), difference, error)
    # A value that is not finite makes the error so too, which ends the loop.
    return value, pnp.max(ops.max_p.bind(error, ops.mul(rounding(dtype, values.dtype), size)), initial=0.0)


def rounding(*types: np.dtype[Any]) -> float:
    """Return the rounding error of a sum of numbers of these dtypes, relative to the sum of their absolute values."""
    return 5.0 * max(float(dtypes.finfo(dtype).eps) for dtype in types)


def _substitution(a: Any, b: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Return a change of variables from [0, 1] to [a, b]: a function from ``s`` to a point and its derivative.

    ``a`` and ``b`` may be infinite. First ``s`` is mapped to ``t = s² (3 - 2 s)``, whose derivative is zero at both
    ends. So integrands are smoothed that grow like an inverse root at an end, or have an infinite derivative there.
    """
    infinite_a, infinite_b = ops.eq(ops.abs(a), math.inf), ops.eq(ops.abs(b), math.inf)
    start, stop = ops.where(infinite_a, 0.0, a), ops.where(infinite_b, 0.0, b)
    both, either = ops.and_p.bind(infinite_a, infinite_b), ops.or_p.bind(infinite_a, infinite_b)
    width = ops.sub(stop, start)

    def point(s: Any) -> tuple[Any, Any]:
        rest = 1.0 - s
        t = ops.square(s) * (s + 3.0 * rest)
        u = ops.square(rest) * (rest + 3.0 * s)  # 1 - t, without cancellation
        slope = 6.0 * (s * rest)
        ratio, twice = u / t, t * u
        # From a finite limit to infinity by (1 - t) / t; over the real line by (t - u) / (t u).
        away, steep = ops.where(infinite_b, ratio, -ratio), 1.0 / ops.square(t)
        across = (t - u) / twice
        wide = (1.0 - 2.0 * twice) / ops.square(twice)
        inner = ops.where(t < 0.5, start + width * t, stop - width * u)
        x = ops.where(both, across, ops.where(either, start + stop + away, inner))
        return x, slope * ops.where(both, wide, ops.where(either, steep, width))

    return point


def _halved(f: Callable[[Any], Any], count: int, dtype: np.dtype[Any], options: _Options) -> tuple[Any, Any, Any]:
    """Integrate a vector-valued ``f`` from 0 to 1; each step halves the interval with the largest error.

    Return the integral, an estimate of its error, and the number of intervals. ``count`` is the number of elements of
    ``f``, and ``dtype`` the dtype of its variable.
    """
    limit = options.limit
    value, error = _on_interval(f, shapes.full((), 0.0, dtype), shapes.full((), 1.0, dtype))

    def row(x: Any) -> Any:
        return pnp.zeros((limit, *x.shape), x.dtype).at[0].set(x)

    one = shapes.full((), 1, np.dtype(np.int32))
    ends = pnp.zeros((limit, 2), dtype).at[0, 1].set(1.0)
    state = (one, ends, row(value), row(error))

    def going(state: Any) -> Any:
        n, _, values, errors = state
        least = pnp.max(ops.abs(pnp.sum(values, axis=0)), initial=0.0)
        bound = ops.max_p.bind(options.absolute, ops.mul(options.relative, least))
        total = pnp.sum(errors)
        finite = ops.lt(total, math.inf)
        # Halving cannot reduce the error below the rounding error.
        exact = ops.mul(2.0 * rounding(dtype, values.dtype), pnp.sum(ops.abs(values)))
        worth = ops.gt(total, ops.max_p.bind(bound, exact))
        return ops.and_p.bind(ops.and_p.bind(finite, worth), ops.lt(n, limit))

    def step(state: Any) -> Any:
        n, ends, values, errors = state
        i = pnp.argmax(errors)
        low, high = ends[i, 0], ends[i, 1]
        middle = ops.mul(0.5, ops.add(low, high))
        lows, highs = pnp.stack([low, middle]), pnp.stack([middle, high])
        value, error = vmap(partial(_on_interval, f))(lows, highs)
        both = pnp.stack([i.astype(np.int32), n])
        ends = ends.at[both].set(pnp.stack([lows, highs], axis=1))
        return ops.add(n, 1), ends, values.at[both].set(value), errors.at[both].set(error)

    n, _, values, errors = while_loop(going, step, state)
    return pnp.sum(values, axis=0), pnp.sum(errors), n


# Derivatives ---------------------------------------------------------------------------------------------------------


def as_vector(out: Any) -> Any:
    """Flatten a result of any shape to a vector of real numbers.

    A complex result becomes its real parts followed by its imaginary parts.
    """
    flat = shapes.reshape(out, (out.size,))
    return pnp.concatenate([flat.real, flat.imag]) if dtypes.is_complex(out.dtype) else flat


def from_vector(flat: Any, out: Any) -> Any:
    """Rebuild an array with the shape and dtype of ``out`` from the vector ``flat`` that :func:`as_vector` returned."""
    size = math.prod(out.shape)
    if dtypes.is_complex(out.dtype):
        flat = ops.complex(flat[:size], flat[size:])
    return shapes.reshape(flat, out.shape)


def _integral_value(f: Callable[..., Any], options: _Options, a: Any, b: Any, params: Any) -> Any:
    """Integrate ``f(x, params)`` over x from ``a`` to ``b``.

    Return the integral, an estimate of its error, and the number of intervals.
    """
    like = eval_shape(f, a, params)
    backwards = ops.gt(a, b)
    low, high = ops.where(backwards, b, a), ops.where(backwards, a, b)
    point = _substitution(low, high)

    def integrand(s: Any) -> Any:
        x, weight = point(s)
        value = as_vector(f(x, params))
        return ops.mul(value, ops.convert_element_type(weight, value.dtype))

    count = math.prod(like.shape) * (2 if dtypes.is_complex(like.dtype) else 1)
    value, error, n = _halved(integrand, count, a.dtype, options)
    empty = ops.eq(a, b)
    value = ops.where(empty, 0.0, ops.where(backwards, ops.neg(value), value))
    return from_vector(value, like), ops.where(empty, 0.0, error), n


_integral = custom_vjp(_integral_value, nondiff_argnums=(0, 1))


def _at(f: Callable[..., Any], x: Any, params: Any) -> Any:
    """Return the integrand at a limit of integration, ``f(x, params)``, or zero if ``x`` is infinite."""
    infinite = ops.eq(ops.abs(x), math.inf)
    value = f(ops.where(infinite, 0.0, x), params)
    return ops.where(infinite, 0.0, value)


def _integral_jvp(f: Callable[..., Any], options: _Options, primals: Any, tangents: Any) -> Any:
    """Jvp rule of an integral: return the integral, its error and the number of intervals, and their tangents.

    The tangent of the integral has two terms: the integrand at the limits, times the tangents of the limits, and the
    integral of the integrand's derivative with respect to the parameters.
    """
    (a, b, params), (ta, tb, tparams) = primals, tangents
    value, error, n = _integral(f, options, a, b, params)
    terms = []
    for x, t, sign in ((b, tb, 1.0), (a, ta, -1.0)):
        if not isinstance(t, SymbolicZero):
            at = _at(f, x, params)
            terms.append(ops.mul(at, ops.convert_element_type(ops.mul(t, sign), at.dtype)))
    moving = [i for i, t in enumerate(tparams) if not isinstance(t, SymbolicZero)]
    if moving:
        count = len(params)

        def along(x: Any, operands: Any) -> Any:
            every, directions = operands[:count], operands[count:]
            return jvp(lambda *ps: f(x, replaced(every, moving, ps)), [every[i] for i in moving], directions)[1]

        terms.append(_integral(along, options, a, b, [*params, *(tparams[i] for i in moving)])[0])
    tangent = sum(terms[1:], terms[0]) if terms else zero_from_primal(value, True)
    return (value, error, n), (tangent, zero_from_primal(error, True), zero_from_primal(n, True))


def replaced(xs: Any, positions: list[int], others: Any) -> list[Any]:
    out = list(xs)
    for i, x in zip(positions, others, strict=True):
        out[i] = x
    return out


def _integral_fwd(f: Callable[..., Any], options: _Options, a: Any, b: Any, params: Any) -> Any:
    wanted = [x.value if x.perturbed else None for x in (a, b)]
    moving = [i for i, p in enumerate(params) if p.perturbed]
    a, b, params = a.value, b.value, [p.value for p in params]
    out = _integral(f, options, a, b, params)
    return out, (a, b, params, wanted, [None if i in moving else 0 for i in range(len(params))])


def _integral_bwd(f: Callable[..., Any], options: _Options, residuals: Any, cts: Any) -> Any:
    a, b, params, wanted, still = residuals
    ct = cts[0]
    if isinstance(ct, SymbolicZero):
        return None, None, [None] * len(params)
    by_limits: list[Any] = []
    for x, sign in zip(wanted, (-1.0, 1.0), strict=True):
        if x is None:
            by_limits.append(None)
            continue
        total = pnp.sum(ops.mul(ct, _at(f, x, params)).real)
        by_limits.append(ops.convert_element_type(ops.mul(total, sign), x.dtype))
    moving = [i for i, mark in enumerate(still) if mark is None]
    by_params: list[Any] = [None] * len(params)
    if moving:
        # The cotangent is scaled to size 1, so that the bounds of the error are relative to it.
        size = stop_gradient(pnp.max(ops.abs(ct), initial=0.0))
        size = ops.where(ops.eq(size, 0.0), 1.0, size)

        def along(x: Any, operands: Any) -> Any:
            every, direction = operands[:-1], operands[-1]
            pull = vjp(lambda *ps: f(x, replaced(every, moving, ps)), *[every[i] for i in moving])[1]
            return _together([v for g in pull(direction) for v in [as_vector(g)]])

        unit = ops.div(ct, ops.convert_element_type(size, ct.dtype))
        flat = _integral(along, options, a, b, [*params, unit])[0]
        flat = ops.mul(flat, ops.convert_element_type(size, flat.dtype))
        start = 0
        for i in moving:
            width = params[i].size * (2 if dtypes.is_complex(params[i].dtype) else 1)
            piece = ops.convert_element_type(flat[start : start + width], dtypes.to_real(params[i].dtype))
            by_params[i] = from_vector(piece, params[i])
            start += width
    return (*by_limits, by_params)


def _together(arrays: list[Any]) -> Any:
    return pnp.concatenate(promote_all("quad", arrays))


_integral.defjvp(_integral_jvp, symbolic_zeros=True)
_integral.defvjp(_integral_fwd, _integral_bwd, symbolic_zeros=True)


# The function --------------------------------------------------------------------------------------------------------


# long: half of it is its documentation
def quad(
    func: Callable[..., Any], a: ArrayLike, b: ArrayLike, args: Any = (), full_output: int = 0, epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8, limit: int = 50, points: Any = None, weight: Any = None, wvar: Any = None,
    wopts: Any = None, maxp1: int = 50, limlst: int = 50, complex_func: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The integral of a function of one variable, either limit of which may be infinite.

    It can be compiled and mapped, and differentiated in both modes with respect to the limits and to what ``func``
    depends on: ``args``, and arrays that it closes over. Derivatives are integrals too, of the same accuracy. The
    backward pass normalises cotangents for that, so that ``jvp_from_vjp`` needs ``method="basis"``.

    Args:
      func: ``func(x, *args) -> y``, numbers without axes. It is traced, so that it must not depend on the value of
        ``x`` in Python.
      a, b: the limits, real numbers; ``inf`` and ``-inf`` may be among them, and ``a`` may be the larger one.
      args: further arguments of ``func``, in a tuple.
      full_output: whether to return the third result.
      epsabs, epsrel: bounds of the absolute and the relative error; the larger applies, as far as the dtype of
        the limits allows; it is the default float dtype for Python numbers.
      limit: the largest number of intervals.
      points: numbers between ``a`` and ``b`` at which the integrand is not smooth.
      weight, wvar, wopts: must be None; multiply the integrand by the weight instead.
      maxp1, limlst: accepted for compatibility.
      complex_func: whether ``func`` may return complex numbers.

    Returns:
      The integral, and an estimate of its absolute error; with ``full_output`` also a dictionary with the number of
      evaluations ``neval`` and of intervals ``last``. If the error exceeds the bounds, there is a warning
      (except while tracing).

    Raises:
      ShapeError: limits or integrands that are not scalars (a TypeError and a ValueError).
      DtypeError: complex limits, or a complex integrand without ``complex_func`` (a TypeError).
      ArgumentError: bounds that are negative or not finite, or ``limit`` is not positive (a TypeError and a
        ValueError).
      UnsupportedArgumentError: a weight (a NotImplementedError).

    Source: Piessens et al. 1983, *QUADPACK*, its routine QAG, after a substitution that weakens singularities at the
    limits.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy import integrate
    >>> value, error = integrate.quad(lambda x: jnp.exp(-x), 0.0, jnp.inf)
    >>> print(f"{value:.5f}")
    1.00000
    >>> print(f"{grad(lambda k: integrate.quad(lambda x: x**k, 0.0, 1.0)[0])(2.0):.5f}")
    -0.11111
    """
    complex_func = flag("quad", "complex_func", complex_func)
    for name, value in (("weight", weight), ("wvar", wvar), ("wopts", wopts)):
        if value is not None:
            raise UnsupportedArgumentError(
                f"quad: {name} must be None, got {quote(value)}; multiply the integrand by its weight"
            )
    if not callable(func):
        raise ArgumentError(f"quad: func must be a function, got {typed(func)}")
    options = options_of("quad", epsabs, epsrel, limit)
    edges = edges_of("quad", a, b, points)
    extra = args if isinstance(args, tuple) else (args,)
    complex_values = []

    def integrand(x: Any) -> Any:
        out = inexact_operand("quad: the integrand", func(x, *extra))
        if out.shape:
            raise ShapeError(
                f"quad: the integrand must return a number, got shape {out.shape}; integrate its elements separately"
            )
        complex_values.append(dtypes.is_complex(out.dtype))
        return out

    value, error, count = integral_of(integrand, edges, options)
    if any(complex_values) and not complex_func:
        raise DtypeError("quad: the integrand returned complex numbers; if this is intended, pass complex_func=True")
    warn_of("quad", value, error, options)
    info = {"neval": (2 * count - len(edges) + 1) * len(NODES_21), "last": count}
    return (value, error, info) if full_output else (value, error)


def integral_of(integrand: Callable[[Any], Any], edges: list[Any], options: _Options) -> tuple[Any, Any, Any]:
    """Integrate an array-valued function over the intervals between ``edges``.

    Return the integral, an estimate of its error, and the number of intervals.
    """
    converted, params = without_tracers(integrand, edges[0])

    def f(x: Any, params: Any) -> Any:
        return converted(x, *params)

    integrals = [_integral(f, options, low, high, params) for low, high in pairwise(edges)]
    values, errors, counts = zip(*integrals, strict=True)
    value, error, count = (sum(v[1:], v[0]) for v in (values, errors, counts))
    return value, error, count


def _is_number(value: Any) -> bool:
    known = not isinstance(value, (Tracer, str, bytes, list, tuple)) and np.ndim(value) == 0
    return known and np.asarray(value).dtype.kind in "biuf"


def options_of(who: str, epsabs: Any, epsrel: Any, limit: Any) -> _Options:
    """Check the options of the function ``who``, and return them."""
    most = known_int(who, "limit", limit)
    if most < 1:
        raise ArgumentError(f"{who}: limit must be at least 1, got {limit!r}")
    bounds = []
    for name, value in (("epsabs", epsabs), ("epsrel", epsrel)):
        if not _is_number(value) or not 0 <= float(value) < math.inf:
            raise ArgumentError(f"{who}: {name} must be a concrete number from 0 to infinity, got {quote(value)}")
        bounds.append(float(value))
    absolute, relative = bounds
    return _Options(absolute, relative, most)


def edges_of(who: str, a: Any, b: Any, points: Any) -> list[Any]:
    """Return the list of ``a``, the ``points`` between in order, and ``b``, as arrays of one dtype.

    ``a`` and ``b`` are the limits of integration.
    """
    between = (
        [] if points is None else list(points) if isinstance(points, Array) else sequence(f"{who}: points", points)
    )
    every = inexact_operands(who, a, b, *between)
    for v in every:
        if v.shape:
            raise ShapeError(f"{who}: the limits and points must be scalars, got shape {v.shape}")
        if dtypes.is_complex(v.dtype):
            raise DtypeError(f"{who}: the limits and points must be real, got complex ones")
    dtype = every[0].dtype if every[0].dtype.itemsize >= 4 else np.dtype(np.float32)
    every = [ops.convert_element_type(v, dtype) for v in every]
    start, stop, *middle = every
    if not middle:
        return [start, stop]
    low, high = ops.min_p.bind(start, stop), ops.max_p.bind(start, stop)
    inside = pnp.sort(stop_gradient(ops.clamp_p.bind(low, pnp.stack(middle), high)))
    inside = ops.where(ops.gt(start, stop), pnp.flip(inside), inside)
    return [start, *(inside[i] for i in range(len(middle))), stop]


def warn_of(who: str, value: Any, error: Any, options: _Options) -> None:
    """Warn if the error of an integral that is known exceeds its bounds."""
    if isinstance(value, Tracer) or isinstance(error, Tracer):
        return
    size = float(np.abs(np.asarray(value)))
    least = 100 * float(dtypes.finfo(error.dtype).eps) * size
    if not float(error) <= max(options.absolute, options.relative * size, least):
        warn(
            f"{who}: the integral {np.asarray(value)} has an estimated error of {float(error):.3g}, more than the "
            f"tolerance; split the interval at points where the integrand is not smooth (points=), or use a larger "
            f"limit",
            UserWarning,
        )
