"""Adaptive integrals over boxes: the region with the largest error is halved along all axes.

Eager integrals are computed in a loop of the host, whose integrand is called with arrays. Others run in a compiled loop
with room for a fixed number of regions; their derivatives are integrals over the box and over its faces.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count, pairwise, product
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.loops import while_loop
from pullback.core import dtypes, tree
from pullback.core.arguments import quote, require_function, typed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.numpy.promotion import inexact_operand, inexact_operands, known_int, sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import inexact, known, on_host
from pullback.scipy.integrate.adaptive import as_vector, from_vector, replaced, rounding
from pullback.scipy.integrate.cubature_rules import Rule, rule_of
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import eval_shape
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.closure import without_tracers
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.custom.rule_adapter import SymbolicZero, zero_from_primal

__all__ = ["CubatureRegion", "CubatureResult", "cubature"]


class CubatureRegion(NamedTuple):
    """A region of an adaptive integral.

    Attributes:
      estimate: the integral over the region, an array.
      error: an estimate of its error.
      a, b: the corners of the region, of the box if it is finite and else of the unit cube.

    >>> from pullback.scipy.integrate import cubature
    >>> region = cubature(lambda x: x[:, 0] * x[:, 1], [0.0, 0.0], [1.0, 2.0]).regions[0]
    >>> print(region.estimate.round(3), region.b)
    1.0 [1. 2.]
    """

    estimate: Array
    error: Array
    a: Array
    b: Array


class CubatureResult:
    """The result of :func:`cubature`, a tree of its arrays.

    Attributes:
      estimate: the integral.
      error: an estimate of its absolute error.
      converged: whether the tolerance is met, as far as rounding allows.
      subdivisions: the number of regions that were divided.
      regions: the regions, of an eager call; None of another.
      atol, rtol: the tolerances.

    >>> from pullback.scipy.integrate import cubature
    >>> found = cubature(lambda x: x[:, 0] * x[:, 1], [0.0, 0.0], [1.0, 2.0])
    >>> print(found.estimate.round(3), found.converged, found.subdivisions)
    1.0 True 0
    """

    def __init__(
        self, estimate: Array, error: Array, converged: ArrayLike, subdivisions: ArrayLike,
        regions: list[CubatureRegion] | None, atol: float, rtol: float,
    ) -> None:  # fmt: skip
        self.estimate, self.error = estimate, error
        self.converged, self.subdivisions = converged, subdivisions
        self.regions, self.atol, self.rtol = regions, atol, rtol

    @property
    def status(self) -> str:
        """Return ``"converged"`` or ``"not_converged"``, of a concrete result."""
        return "converged" if bool(self.converged) else "not_converged"

    def __repr__(self) -> str:
        return f"CubatureResult(estimate={self.estimate}, error={self.error}, subdivisions={self.subdivisions})"


tree.register_pytree_node(
    CubatureResult,
    lambda r: ((r.estimate, r.error, r.converged, r.subdivisions), (r.atol, r.rtol)),
    lambda fixed, leaves: CubatureResult(leaves[0], leaves[1], leaves[2], leaves[3], None, fixed[0], fixed[1]),
)


class _Options(NamedTuple):
    """How an integral is computed.

    Attributes:
      rule: the rule's name.
      absolute, relative: the bounds of the error.
      limit: the largest number of divisions.
      each: whether each element has to meet the relative bound, rather than the largest one.
    """

    rule: str
    absolute: float
    relative: float
    limit: int
    each: bool = True


# The box -------------------------------------------------------------------------------------------------------------


def _points(xp: Any, t: Any, a: Any, b: Any, finite: bool) -> tuple[Any, Any]:
    """Map points of the unit cube to a box whose limits may be infinite; return them, and the volume's derivative.

    Args:
      xp: ``numpy``, of arrays of the host or ours.
      t: the points, of shape (..., ndim).
      a, b: the limits, the lower ones first.
      finite: whether they are known to be finite.
    """
    if finite:
        width = b - a
        return a + width * t, xp.prod(xp.broadcast_to(width, t.shape), axis=-1)
    below, above = a == -math.inf, b == math.inf
    start, stop = xp.where(below, 0.0, a), xp.where(above, 0.0, b)
    rest, inverse = 1.0 - t, 1.0 / t
    ray = rest * inverse
    line = (t - rest) / (t * rest)
    x = xp.where(
        below & above, line, xp.where(above, start + ray, xp.where(below, stop - ray, start + (stop - start) * t))
    )
    steep = (t * t + rest * rest) / (t * rest) ** 2
    slope = xp.where(below & above, steep, xp.where(below | above, inverse * inverse, stop - start))
    return x, xp.prod(slope, axis=-1)


# On the host ---------------------------------------------------------------------------------------------------------

_MOST_POINTS = 2**17


def _estimates(f: Any, a: Any, b: Any, finite: bool, rule: Rule) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return the function from the corners and sizes of regions to their integrals and errors."""
    dtype = a.dtype
    nodes, weights, differences = (x.astype(dtype) for x in rule)
    many = max(1, _MOST_POINTS // len(nodes))

    def estimates(lows: Any, widths: Any) -> tuple[Any, Any]:
        values, errors = [], []
        for i in range(0, len(lows), many):
            low, width = lows[i : i + many], widths[i : i + many]
            x, slope = _points(np, low[:, None, :] + width[:, None, :] * nodes, a, b, finite)
            out = np.asarray(f(ArrayImpl(x.reshape(-1, len(a)).astype(dtype))))
            flat = out.reshape(len(low), len(nodes), -1) * slope[:, :, None]
            volume = width.prod(-1)[:, None]
            values.append(volume * np.einsum("n,rnm->rm", weights, flat))
            errors.append(abs(volume * np.einsum("n,rnm->rm", differences, flat)))
        return np.concatenate(values), np.concatenate(errors)

    return estimates


def _on_host(f: Any, options: _Options, a: Any, b: Any, cuts: Any, rule: Rule, first: Any) -> CubatureResult:
    """Integrate on the host.

    Args:
      f: from points, of shape (npoints, ndim), to values.
      options: how.
      a, b: the limits, the lower ones first.
      cuts: for each axis the coordinates in the unit cube at which it is divided at first.
      rule: the rule.
      first: a value, for the shape and dtype of the result.
    """
    ndim, dtype = len(a), a.dtype
    finite = bool(np.isfinite(a).all() and np.isfinite(b).all())
    estimates = _estimates(f, a, b, finite, rule)
    ends = [np.array(list(pairwise(axis)), dtype) for axis in cuts]
    boxes = np.array([np.stack(sides) for sides in product(*ends)], dtype)
    lows, widths = boxes[:, :, 0], boxes[:, :, 1] - boxes[:, :, 0]
    keep = (widths > 0).all(1)
    lows, widths = lows[keep], widths[keep]
    values, errors = estimates(lows, widths)
    order = count()
    heap = [
        (-e.max(initial=0.0), next(order), v, e, x, w) for v, e, x, w in zip(values, errors, lows, widths, strict=True)
    ]
    heapq.heapify(heap)
    value, error, size = values.sum(0), errors.sum(0), abs(values).sum(0)
    least = 2 * rounding(dtype, values.dtype)
    corners = np.array(list(product((0.0, 0.5), repeat=ndim)), dtype)
    divisions = 0

    def wanting() -> bool:
        bound = options.absolute + options.relative * abs(value)
        return bool((error > np.maximum(bound, least * size)).any()) and bool(np.isfinite(error).all())

    while wanting() and divisions < options.limit:
        _, _, v, e, low, width = heapq.heappop(heap)
        lows, widths = low + width * corners, np.broadcast_to(0.5 * width, corners.shape)
        values, errors = estimates(lows, widths)
        value, error = value + values.sum(0) - v, error + errors.sum(0) - e
        size = size + abs(values).sum(0) - abs(v)
        for item in zip(values, errors, lows, widths, strict=True):
            heapq.heappush(heap, (-item[1].max(initial=0.0), next(order), *item))
        divisions += 1
    good = not wanting() and bool(np.isfinite(error).all())
    as_array = lambda x, dtype: ArrayImpl(np.asarray(x.reshape(first.shape[1:]), dtype))
    return CubatureResult(
        as_array(value, first.dtype), as_array(error, dtypes.to_real(first.dtype)), good, divisions,
        _regions(heap, as_array, a, b, finite), options.absolute, options.relative,
    )  # fmt: skip


def _regions(heap: Any, as_array: Any, a: Any, b: Any, finite: bool) -> list[CubatureRegion]:
    """Return the regions of a heap of priorities, numbers, integrals, errors, corners and sizes."""
    regions = []
    for _, _, value, error, low, width in heap:
        edges = (a + (b - a) * low, a + (b - a) * (low + width)) if finite else (low, low + width)
        results = as_array(value, value.dtype), as_array(error, error.dtype)
        regions.append(CubatureRegion(*results, *map(ArrayImpl, edges)))
    return regions


# Compiled ------------------------------------------------------------------------------------------------------------


def _integral_value(f: Callable[..., Any], options: _Options, a: Any, b: Any, cuts: Any, params: Any) -> Any:
    """Integrate ``f(x, params)`` over the points x of a box, in a loop with room for all regions.

    Return the integral, an estimate of its error, whether it converged, and the number of divisions.
    """
    ndim, dtype = a.shape[0], a.dtype
    like = eval_shape(f, a, params)
    backwards = ops.gt(a, b)
    low, high = ops.where(backwards, b, a), ops.where(backwards, a, b)
    odd = pnp.sum(backwards.astype(np.int32)) % 2
    sign = ops.convert_element_type(1 - 2 * odd, dtypes.to_real(like.dtype))
    rule = rule_of("cubature", options.rule, ndim)
    nodes, weights, differences = (ArrayImpl(x.astype(dtype)) for x in rule)

    def estimate(start: Any, width: Any) -> tuple[Any, Any]:
        x, slope = _points(pnp, start + width * nodes, low, high, False)
        values = vmap(lambda x: as_vector(f(x, params)))(x)
        slope = ops.convert_element_type(slope * pnp.prod(width), values.dtype)
        # An axis without extent has the volume zero, whatever the integrand.
        flat = ops.where(ops.eq(slope, 0.0)[:, None], 0.0, values * slope[:, None])
        fine, coarse = (pnp.matmul(ops.convert_element_type(w, values.dtype), flat) for w in (weights, differences))
        return fine, ops.abs(coarse)

    lows, widths = _first_regions(cuts, ndim)
    value, error, done, divisions = _divided(vmap(estimate), options, lows, widths)
    out = from_vector(value * ops.convert_element_type(sign, value.dtype), like)
    if dtypes.is_complex(like.dtype):
        error = error[: error.shape[0] // 2] + error[error.shape[0] // 2 :]
    return out, shapes.reshape(error, like.shape), done, divisions


def _first_regions(cuts: Any, ndim: int) -> tuple[Any, Any]:
    """Return the lower corners and the sizes of the boxes between cuts, of shape (axis, position), of the unit cube."""
    starts, sizes = cuts[:, :-1], cuts[:, 1:] - cuts[:, :-1]
    grids = []
    for x in (starts, sizes):
        mesh = pnp.meshgrid(*[x[i] for i in range(ndim)], indexing="ij")
        grids.append(pnp.stack([shapes.reshape(g, (g.size,)) for g in mesh], axis=-1))
    return grids[0], grids[1]


def _divided(estimates: Any, options: _Options, lows: Any, widths: Any) -> tuple[Any, Any, Any, Any]:
    """Divide regions of the unit cube until the error is small enough.

    Return the integral, its error, whether it converged, and the number of divisions.
    """
    first, ndim = lows.shape
    dtype, more = lows.dtype, 2**ndim - 1
    room = first + options.limit * more
    values, errors = estimates(lows, widths)

    def padded(x: Any) -> Any:
        return pnp.zeros((room, *x.shape[1:]), x.dtype).at[:first].set(x)

    corners = ArrayImpl(np.array(list(product((0.0, 0.5), repeat=ndim)), dtype))
    zero = shapes.full((), 0, np.dtype(np.int32))
    least = 2 * rounding(dtype, values.dtype)

    def wanting(value: Any, error: Any, size: Any) -> Any:
        scale = ops.abs(value) if options.each else pnp.max(ops.abs(value), initial=0.0)
        bound = options.absolute + options.relative * scale
        return pnp.any(error > pnp.maximum(bound, least * size)) & pnp.all(pnp.isfinite(error))

    def going(state: Any) -> Any:
        n, _, _, _, value, error, size = state
        return wanting(value, error, size) & (n < options.limit)

    def step(state: Any) -> Any:
        n, lows, widths, rows, value, error, size = state
        values, errors = rows
        i = pnp.argmax(pnp.max(errors, axis=1, initial=0.0))
        half = 0.5 * widths[i]
        starts = lows[i] + widths[i] * corners
        sizes = pnp.broadcast_to(half, corners.shape)
        found, faults = estimates(starts, sizes)
        value = value + pnp.sum(found, axis=0) - values[i]
        error = error + pnp.sum(faults, axis=0) - errors[i]
        size = size + pnp.sum(ops.abs(found), axis=0) - ops.abs(values[i])
        others = first + n * more + ArrayImpl(np.arange(more, dtype=np.int32))
        where = pnp.concatenate([i.astype(np.int32)[None], others])
        rows = values.at[where].set(found), errors.at[where].set(faults)
        return n + 1, lows.at[where].set(starts), widths.at[where].set(sizes), rows, value, error, size

    start = (
        zero, padded(lows), padded(widths), (padded(values), padded(errors)), pnp.sum(values, axis=0),
        pnp.sum(errors, axis=0), pnp.sum(ops.abs(values), axis=0),
    )  # fmt: skip
    n, _, _, _, value, error, size = while_loop(going, step, start)
    done = ~wanting(value, error, size) & pnp.all(pnp.isfinite(error))
    return value, error, done, n


# Derivatives ---------------------------------------------------------------------------------------------------------

_integral = custom_vjp(_integral_value, nondiff_argnums=(0, 1))


def _whole(ndim: int, dtype: np.dtype[Any]) -> Any:
    """Return the cuts of a cube that is not divided at first."""
    return ArrayImpl(np.tile(np.array([0.0, 1.0], dtype), (ndim, 1)))


def _face(f: Callable[..., Any], options: _Options, axis: int, at: Any, limits: Any, cuts: Any, params: Any) -> Any:
    """Integrate ``f`` over the face of the box at a coordinate of an axis; return zero if that is infinite."""
    a, b = limits
    ndim = a.shape[0]
    infinite = ops.eq(ops.abs(at), math.inf)
    at = ops.where(infinite, 0.0, at)
    others = [i for i in range(ndim) if i != axis]

    def on_face(x: Any, operands: Any) -> Any:
        full = pnp.stack([operands[0] if i == axis else x[others.index(i)] for i in range(ndim)])
        return f(full, operands[1:])

    if not others:
        value = on_face(None, [at, *params])
    else:
        rule = "gk21" if options.rule == "genz-malik" and len(others) < 2 else options.rule
        kept = np.array(others)
        value = _integral(
            on_face, options._replace(rule=rule, each=False), a[kept], b[kept], cuts[kept], [at, *params]
        )[0]
    return ops.where(infinite, 0.0, value)


def _integral_jvp(f: Callable[..., Any], options: _Options, primals: Any, tangents: Any) -> Any:
    """Return an integral and its tangent: integrals over faces, times the tangents of the limits, and the integral of
    the integrand's derivative with respect to the parameters.
    """
    (a, b, cuts, params), (ta, tb, _, tparams) = primals, tangents
    value, error, done, n = _integral(f, options, a, b, cuts, params)
    terms = []
    for limits, t, sign in ((b, tb, 1.0), (a, ta, -1.0)):
        if not isinstance(t, SymbolicZero):
            for i in range(a.shape[0]):
                face = _face(f, options, i, limits[i], (a, b), cuts, params)
                terms.append(face * ops.convert_element_type(sign * t[i], face.dtype))
    moving = [i for i, t in enumerate(tparams) if not isinstance(t, SymbolicZero)]
    if moving:
        size = len(params)

        def along(x: Any, operands: Any) -> Any:
            every, directions = operands[:size], operands[size:]
            return jvp(lambda *ps: f(x, replaced(every, moving, ps)), [every[i] for i in moving], directions)[1]

        operands = [*params, *(tparams[i] for i in moving)]
        terms.append(_integral(along, options._replace(each=False), a, b, cuts, operands)[0])
    tangent = sum(terms[1:], terms[0]) if terms else zero_from_primal(value, True)
    still = [zero_from_primal(x, True) for x in (error, done, n)]
    return (value, error, done, n), (tangent, *still)


def _integral_fwd(f: Callable[..., Any], options: _Options, a: Any, b: Any, cuts: Any, params: Any) -> Any:
    by_limits = a.perturbed, b.perturbed
    moving = tuple(None if p.perturbed else 0 for p in params)
    a, b, cuts, params = a.value, b.value, cuts.value, [p.value for p in params]
    return _integral(f, options, a, b, cuts, params), (a, b, cuts, params, by_limits, moving)


def _integral_bwd(f: Callable[..., Any], options: _Options, residuals: Any, cts: Any) -> Any:
    a, b, cuts, params, by_limits, still = residuals
    ct = cts[0]
    by_params: list[Any] = [None] * len(params)
    if isinstance(ct, SymbolicZero):
        return None, None, None, by_params
    of_limits: list[Any] = []
    for limits, wanted, sign in ((a, by_limits[0], -1.0), (b, by_limits[1], 1.0)):
        if not wanted:
            of_limits.append(None)
            continue
        faces = [_face(f, options, i, limits[i], (a, b), cuts, params) for i in range(a.shape[0])]
        of_limits.append(sign * pnp.stack([pnp.sum((ct * face).real).astype(a.dtype) for face in faces]))
    moving = [i for i, mark in enumerate(still) if mark is None]
    if moving:
        # The cotangent is scaled to size 1, so that the bounds of the error are relative to it.
        size = stop_gradient(pnp.max(ops.abs(ct), initial=0.0))
        size = ops.where(ops.eq(size, 0.0), 1.0, size)

        def along(x: Any, operands: Any) -> Any:
            every, direction = operands[:-1], operands[-1]
            pull = vjp(lambda *ps: f(x, replaced(every, moving, ps)), *[every[i] for i in moving])[1]
            return pnp.concatenate([as_vector(g) for g in pull(direction)])

        unit = ct / ops.convert_element_type(size, ct.dtype)
        flat = _integral(along, options._replace(each=False), a, b, cuts, [*params, unit])[0]
        flat = flat * ops.convert_element_type(size, flat.dtype)
        start = 0
        for i in moving:
            width = params[i].size * (2 if dtypes.is_complex(params[i].dtype) else 1)
            piece = ops.convert_element_type(flat[start : start + width], dtypes.to_real(params[i].dtype))
            by_params[i] = from_vector(piece, params[i])
            start += width
    return (*of_limits, None, by_params)


_integral.defjvp(_integral_jvp, symbolic_zeros=True)
_integral.defvjp(_integral_fwd, _integral_bwd, symbolic_zeros=True)


# The function --------------------------------------------------------------------------------------------------------


# long: most of it is documentation
def cubature(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    rule: str = "gk21",
    rtol: float = 1e-8,
    atol: float = 0,
    max_subdivisions: int | None = 10000,
    args: tuple[Any, ...] = (),
    workers: int = 1,
    points: Any = None,
) -> CubatureResult:
    """The integral of an array-valued function of several variables over a box, whose limits may be infinite.

    It can be compiled and mapped, and differentiated in both modes with respect to the limits, ``args`` and values that
    ``f`` closes over. Derivatives with respect to limits are integrals over faces of the box, and others are integrals
    of the integrand's derivatives. Where anything is traced, ``f`` is called with one point at a time, and the loop has
    room for ``max_subdivisions``: there 100 to 1,000 are usually enough, and take less memory.

    Args:
      f: ``f(x, *args)``, from points of shape (npoints, ndim) to values of shape (npoints, ...).
      a, b: the limits, vectors of ndim real numbers; a limit of ``a`` may be the larger one.
      rule: ``"gk21"`` or ``"gk15"``, products of Gauss and Kronrod's rules, for one to three variables; or
        ``"genz-malik"``, for more.
      rtol, atol: the error of each element is at most ``atol + rtol * abs(estimate)``, or of the size of rounding.
      max_subdivisions: the largest number of regions that are divided; None, for any number, only in eager calls.
      args: further arguments of ``f``, arrays or trees, in a tuple.
      workers: must be 1.
      points: points at which ``f`` is not to be evaluated, such as singular ones: a list of vectors. The box is divided
        at all their coordinates first.

    Returns:
      A :class:`CubatureResult` with ``estimate``, ``error``, ``status``, ``subdivisions`` and ``regions``.

    Raises:
      ShapeError: limits that are not vectors of one length, or values without the axis of points (a TypeError and a
        ValueError).
      DtypeError: complex limits (a TypeError).
      ArgumentError: an unknown rule, negative bounds, or a number of divisions below 1 (a TypeError and a ValueError).
      UnsupportedArgumentError: ``workers``, or no bound on the divisions of a traced integral (a NotImplementedError).

    Source: Berntsen, Espelid and Genz 1991, *An adaptive algorithm for the approximate calculation of multiple
    integrals*, for the division of regions; Genz and Malik 1980 for their rule.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.integrate import cubature
    >>> def bell(width):
    ...     f = lambda x: jnp.exp(-(x**2).sum(-1) / width)
    ...     return cubature(f, [0.0, 0.0], [1.0, 2.0], rtol=1e-5, max_subdivisions=100).estimate
    >>> print(bell(1.0).round(4), grad(bell)(1.0).round(4))
    0.6588 0.4828
    """
    name = "cubature"
    require_function(name, "f", f)
    if workers != 1:
        raise UnsupportedArgumentError(f"{name}: workers must be 1, got {quote(workers)}; f is called with many points")
    low, high = _limits(a, b)
    ndim = low.shape[0]
    options = _options(rule, rtol, atol, max_subdivisions)
    rules = rule_of(name, rule, ndim)
    extra = args if isinstance(args, tuple) else (args,)
    cuts = _cuts(points, low, high)
    call = lambda x: _values(f(x, *extra), x)
    hosts = on_host(low, high, cuts)
    if hosts is not None:
        one = 0.5 * (np.where(np.isfinite(hosts[0]), hosts[0], 0) + np.where(np.isfinite(hosts[1]), hosts[1], 0))
        first = call(ArrayImpl(one[None].astype(low.dtype)))
        if on_host(first) is not None:
            return _eager(call, options, hosts[0], hosts[1], hosts[2], rules, first)
    if options.limit == _ANY:
        raise UnsupportedArgumentError(f"{name}: max_subdivisions=None needs an eager call; pass a number")
    converted, params = without_tracers(lambda x: call(x[None])[0], low)

    def at(x: Any, params: Any) -> Any:
        return converted(x, *params)

    value, error, done, divisions = _integral(at, options, low, high, cuts, params)
    return CubatureResult(value, error, done, divisions, None, options.absolute, options.relative)


_ANY = 2**31 - 1


def _eager(call: Any, options: _Options, a: Any, b: Any, cuts: Any, rule: Rule, first: Any) -> CubatureResult:
    """Integrate on the host, with limits in any order."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    found = _on_host(call, options, low, high, cuts, rule, first)
    if (a > b).sum() % 2:
        found.estimate = ops.neg(found.estimate)
    return found


def _limits(a: Any, b: Any) -> tuple[Any, Any]:
    low, high = inexact_operands("cubature", *(inexact("cubature", x) for x in (a, b)))
    for x in (low, high):
        if dtypes.is_complex(x.dtype):
            raise DtypeError("cubature: the limits must be real, got complex ones")
        if len(x.shape) != 1 or not x.size:
            raise ShapeError(f"cubature: a and b must be vectors of at least one number, got shape {x.shape}")
    if low.shape != high.shape:
        size = max(low.size, high.size)
        if min(low.size, high.size) != 1:
            raise ShapeError(f"cubature: a and b must have one length, got {low.size} and {high.size}")
        low, high = pnp.broadcast_to(low, (size,)), pnp.broadcast_to(high, (size,))
    dtype = low.dtype if low.dtype.itemsize >= 4 else np.dtype(np.float32)
    return ops.convert_element_type(low, dtype), ops.convert_element_type(high, dtype)


def _options(rule: str, rtol: Any, atol: Any, max_subdivisions: Any) -> _Options:
    bounds = []
    for what, value in (("atol", atol), ("rtol", rtol)):
        number = known(value) if isinstance(value, (int, float, np.number, np.ndarray, Array)) else None
        if number is None or number.shape or not 0 <= float(number) < math.inf:
            raise ArgumentError(f"cubature: {what} must be a concrete number from 0 to infinity, got {quote(value)}")
        bounds.append(float(number))
    limit = _ANY if max_subdivisions is None else known_int("cubature", "max_subdivisions", max_subdivisions)
    if limit < 1:
        raise ArgumentError(f"cubature: max_subdivisions must be at least 1, got {limit}")
    return _Options(rule, bounds[0], bounds[1], limit)


def _cuts(points: Any, a: Any, b: Any) -> Any:
    """Return the positions in the unit cube, of shape (ndim, cuts), at which the box is divided at first."""
    ndim, dtype = a.shape[0], a.dtype
    given = (
        [] if points is None else list(points) if isinstance(points, Array) else sequence("cubature: points", points)
    )
    if not given:
        return _whole(ndim, dtype)
    low, high = ops.min_p.bind(a, b), ops.max_p.bind(a, b)
    columns = []
    for point in given:
        x = inexact_operand("cubature: points", pnp.asarray(point)).astype(dtype)
        if x.shape != (ndim,):
            raise ShapeError(f"cubature: each of the points must have {ndim} coordinates, got shape {x.shape}")
        columns.append(_unit(ops.clamp_p.bind(low, x, high), low, high))
    inner = stop_gradient(pnp.sort(pnp.stack(columns, axis=1), axis=1))
    edges = pnp.zeros((ndim, 1), dtype)
    return pnp.concatenate([edges, inner, edges + 1], axis=1)


def _unit(x: Any, a: Any, b: Any) -> Any:
    """Return the point of the unit cube that :func:`_points` maps to ``x``."""
    below, above = a == -math.inf, b == math.inf
    start, stop = ops.where(below, 0.0, a), ops.where(above, 0.0, b)
    width = stop - start
    on_line = _root(x)
    ray = ops.where(above, 1.0 / (1.0 + x - start), 1.0 / (1.0 + stop - x))
    inside = (x - start) / ops.where(width == 0, 1.0, width)
    return ops.clamp_p.bind(0.0, ops.where(below & above, on_line, ops.where(below | above, ray, inside)), 1.0)


def _root(x: Any) -> Any:
    """Return the t between 0 and 1 at which ``(2 t - 1) / (t (1 - t))`` is ``x``."""
    # x t² + (2 - x) t - 1 = 0, by the formula that cancels nothing where x is negative; else by symmetry.
    size = ops.abs(x)
    t = 2.0 / (2.0 + size + pnp.sqrt(4.0 + size * size))
    return ops.where(x > 0, 1.0 - t, t)


def _values(out: Any, x: Any) -> Any:
    """Check what the integrand returned for points ``x``."""
    y = inexact_operand("cubature: the integrand", out)
    if not y.shape or y.shape[0] != x.shape[0]:
        raise ShapeError(
            f"cubature: f must return an array with an axis of {x.shape[0]} points first, got shape {y.shape} of "
            f"{typed(out)}"
        )
    return y
