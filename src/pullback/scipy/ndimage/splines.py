"""Splines through the elements of images: their coefficients, and their values between the elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike, as_array, is_on_host
from pullback.core.errors import ArgumentError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.core.trace import state
from pullback.numpy.promotion import axis_index, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.linalg.tridiagonal import tridiagonal_solve
from pullback.scipy.ndimage.arguments import (
    by_scipy,
    computed_in,
    doubles_for,
    finished,
    measured_in,
    numeric_image,
    result_dtype,
)
from pullback.transforms.custom.custom_linear import is_traced_ahead, linear_call

__all__ = ["spline_filter", "spline_filter1d"]

CONDITIONS = {
    "mirror": "mirror", "constant": "mirror", "grid-constant": "mirror", "wrap": "mirror", "reflect": "reflect",
    "grid-mirror": "reflect", "nearest": "reflect", "grid-wrap": "wrap",
}  # fmt: skip
"""How the coefficients of a spline extend beyond the borders, for each mode of the image."""

POLES = {
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (
        math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19,
        math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19,
    ),
    5: (
        math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5,
    ),
}  # fmt: skip
"""The poles of the filters whose results are the coefficients of splines, by degree (Unser et al. 1993)."""

SHORT = 25
"""Below this size of an axis the coefficients by SciPy's recursions have fewer digits with the condition "reflect"."""

PADDING = 12
"""The number of elements by which an image is padded: the influence on its spline falls by 0.27 with each."""


def order_of(name: str, order: Any) -> int:
    """Return the degree of a spline, or raise."""
    if not is_listed(order, range(6)) or isinstance(order, (bool, float)):
        raise UnsupportedArgumentError(f"{name}: the order of a spline must be from 0 to 5, got {quote(order)}")
    return int(order)


def spline_mode(name: str, mode: Any) -> str:
    """Return a mode of splines, or raise."""
    if not is_listed(mode, CONDITIONS):
        shown = ", ".join(map(repr, CONDITIONS))
        raise UnsupportedArgumentError(f"{name}: mode must be one of {shown}, got {quote(mode)}")
    return str(mode)


# Coefficients --------------------------------------------------------------------------------------------------------


def _solved(x: Any, axis: int, pole: float, condition: str) -> Any:
    """Return the solution of the equations whose matrix has the taps of one pole, along an axis."""
    n = x.shape[axis]
    scale = 1.0 / (1.0 - pole) ** 2
    middle, side = scale * (1.0 + pole * pole), -scale * pole
    below, diagonal, above = np.full(n, side), np.full(n, middle), np.full(n, side)
    if condition == "mirror" or (n == 2 and condition == "wrap"):
        above[0] = below[-1] = 2 * side
    elif condition == "reflect":
        diagonal[0] += side
        diagonal[-1] += side
    else:  # less the corners of the cyclic system, a matrix of rank one, which `_cyclic` adds
        diagonal[0] += middle
        diagonal[-1] += side * side / middle
    rows = shapes.moveaxis(x, axis, 0)
    flat = shapes.reshape(rows, (n, math.prod(rows.shape[1:])))
    dl, d, du = (ArrayImpl(v.astype(x.dtype)) for v in (below, diagonal, above))
    out = tridiagonal_solve(dl, d, du, flat)
    if condition == "wrap" and n > 2:
        out = _cyclic(out, (below, diagonal, above), middle, side)
    return shapes.moveaxis(shapes.reshape(out, rows.shape), 0, axis)


def _cyclic(y: Any, bands: tuple[Any, Any, Any], middle: float, side: float) -> Any:
    """Return the solution of a cyclic tridiagonal system, from the solution of a tridiagonal system.

    The cyclic matrix differs from the tridiagonal one by a matrix of rank one (Sherman-Morrison formula).

    Args:
      y: the solution of the tridiagonal system.
      bands: the elements below, on and above the diagonal of the tridiagonal matrix.
      middle: the elements on the diagonal of the cyclic matrix.
      side: the elements of the cyclic matrix next to the diagonal, and in two corners.
    """
    below, diagonal, above = bands
    n = len(diagonal)
    u, v = np.zeros(n), np.zeros(n)
    u[[0, -1]], v[[0, -1]] = (-middle, side), (1.0, -side / middle)
    z = imported("scipy.linalg").solve_banded((1, 1), np.stack([np.roll(above, 1), diagonal, np.roll(below, -1)]), u)
    row = ops.add(slicing.slice_in_dim(y, 0, 1, 0), ops.mul(float(v[-1]), slicing.slice_in_dim(y, n - 1, n, 0)))
    factor = ArrayImpl((z / (1 + v @ z)).astype(y.dtype).reshape(n, 1))
    return ops.sub(y, ops.mul(factor, row))


def _by_recursion(x: Any, axis: int, order: int, condition: str) -> Any:
    """Return SciPy's coefficients of a concrete image, or None."""
    if not is_on_host(x) or (condition == "reflect" and x.shape[axis] < SHORT):
        return None
    mode = "grid-wrap" if condition == "wrap" else condition
    return by_scipy("spline_filter1d", x.dtype, x, finite=True, order=order, axis=axis, mode=mode)


def _filter(x: Any, axis: int, order: int, condition: str) -> Any:
    found = _by_recursion(x, axis, order, condition)
    if found is not None:
        return found
    for pole in POLES[order]:
        x = _solved(x, axis, pole, condition)
    return x


def coefficients(x: Any, axis: int, order: int, mode: str) -> Any:
    """Return the coefficients of the spline of degree ``order`` through the elements of ``x`` along an axis.

    Their equations have a symmetric matrix, for "mirror" after the first and the last row are halved. So the transpose
    is the same filter between multiplications with these weights.
    """
    n = x.shape[axis]
    if order < 2 or n == 1 or not x.size:
        return x
    condition = CONDITIONS[mode]
    if is_on_host(x) or is_traced_ahead(state.trace):
        return _filter(x, axis, order, condition)
    weights = np.ones(n)
    if condition == "mirror":
        weights[[0, -1]] = 0.5
    column = weights.reshape([-1 if i == axis else 1 for i in range(len(x.shape))]).astype(dtypes.to_real(x.dtype))

    def transposed(_: Any, ct: Any) -> Any:
        if condition != "mirror":
            return _filter(ct, axis, order, condition)
        return ops.mul(_filter(ops.div(ct, as_array(column)), axis, order, condition), as_array(column))

    return linear_call(lambda _, v: _filter(v, axis, order, condition), transposed, (), x)


def spline_filter1d(
    input: ArrayLike, order: int = 3, axis: int = -1, output: DTypeLike | None = None, mode: str = "mirror"
) -> Array:
    """The coefficients of the spline through the elements of an image along an axis.

    Args:
      input: the image, of any number of axes; numbers.
      order: the degree of the spline, from 0 to 5; for 0 and 1 the coefficients are the elements.
      axis: the axis.
      output: the dtype of the result, by default that of ``input``, or the default float for integers.
      mode: how the image extends beyond its borders, as for :func:`map_coordinates`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    Source: Unser, Aldroubi and Eden 1993, *B-spline signal processing*.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.spline_filter1d(jnp.array([0.0, 0.0, 6.0, 0.0, 0.0])).round(3))
    [ 1.5 -3.  10.5 -3.   1.5]
    """
    name = "spline_filter1d"
    x = numeric_image(name, input)
    where, degree = axis_index(axis, len(x.shape), name), order_of(name, order)
    wide = computed_in(x.dtype)
    dtype = result_dtype(name, output, x.dtype if dtypes.is_inexact(x.dtype) else measured_in(x.dtype))
    with doubles_for(wide):
        out = coefficients(ops.convert_element_type(x, wide), where, degree, spline_mode(name, mode))
        return as_array(finished(out, dtype))


def spline_filter(input: ArrayLike, order: int = 3, output: DTypeLike | None = None, mode: str = "mirror") -> Array:
    """The coefficients of the spline through the elements of an image along all axes.

    :func:`map_coordinates` and the other transforms take them with ``prefilter=False``, so that an image that is used
    several times is filtered once.

    Args:
      input: the image, of any number of axes; numbers.
      order: the degree of the spline, from 2 to 5.
      output: the dtype of the result, by default that of ``input``, or the default float for integers.
      mode: how the image extends beyond its borders, as for :func:`map_coordinates`.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an image without axes (a TypeError and a ValueError).
      ArgumentError: an order below 2 (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> print(ndimage.spline_filter(jnp.eye(3)).round(3))
    [[ 4.125 -3.     1.875]
     [-3.     4.5   -3.   ]
     [ 1.875 -3.     4.125]]
    """
    name = "spline_filter"
    x = numeric_image(name, input)
    degree, kind = order_of(name, order), spline_mode(name, mode)
    if degree < 2:
        raise ArgumentError(f"{name}: the order must be from 2 to 5, got {degree}")
    wide = computed_in(x.dtype)
    dtype = result_dtype(name, output, x.dtype if dtypes.is_inexact(x.dtype) else measured_in(x.dtype))
    with doubles_for(wide):
        x = ops.convert_element_type(x, wide)
        for axis in range(len(x.shape)):
            x = coefficients(x, axis, degree, kind)
        return as_array(finished(x, dtype))


# Values --------------------------------------------------------------------------------------------------------------


def filtered(x: Any, order: int, mode: str, cval: Any, count: int | None = None) -> tuple[Any, int]:
    """Return the coefficients of the spline through an image, and by how many elements they begin before the image.

    ``count`` is the number of axes along which there is a spline, from the first on; all by default.
    """
    if order < 2:
        return x, 0
    rank = len(x.shape)
    count = rank if count is None else count
    before = PADDING if mode in ("nearest", "grid-constant") else 0
    if before:
        widths = [(before, before) if i < count else (0, 0) for i in range(rank)]
        x = pnp.pad(x, widths, "edge") if mode == "nearest" else pnp.pad(x, widths, constant_values=cval)
    for axis in range(count):
        x = coefficients(x, axis, order, mode)
    return x, before


def _taps(p: Any, n: int, order: int, mode: str, before: int, away: bool = False) -> tuple[Any, Any, Any, Any]:
    """Return how a spline is evaluated along an axis.

    Args:
      p: the coordinates.
      n: the number of coefficients along the axis.
      order, mode, before, away: as for :func:`interpolated`.

    Returns:
      The indices of the coefficients and their weights, along a new first axis; for "grid-constant" which indices are
      within the axis, else None; for "constant" which coordinates are outside, else None.
    """
    if before:
        p = ops.add(p, float(before))
    outside = ops.or_p.bind(ops.lt(p, 0.0), ops.gt(p, float(n - 1))) if mode == "constant" else None
    p = _moved(p, n, mode, order)
    start, factors = _away(p) if away and order == 0 else _weights(p, order)
    found = [_folded(ops.add(start, float(k)), n, mode) for k in range(len(factors))]
    indices = pnp.stack([ops.convert_element_type(i, np.dtype(np.int32)) for i, _ in found])
    masks = pnp.stack([within for _, within in found]) if mode == "grid-constant" else None
    return indices, pnp.stack(factors), masks, outside


def interpolated(
    c: Any, points: Sequence[Any], order: int, mode: str, cval: Any, before: int = 0, away: bool = False
) -> Any:
    """Evaluate a spline at points.

    Args:
      c: its coefficients. It may have more axes than there are coordinates, after the others: several splines.
      points: the coordinates of the points along each axis, of one shape and of the real dtype of the coefficients.
      order: the degree of the spline.
      mode: the boundary mode, with SciPy's meaning.
      cval: the value outside of the image, of the dtype of the coefficients.
      before: how many coefficients stand before the image, along the axes of the spline.
      away: whether the order 0 rounds halves away from zero, instead of up.
    """
    count, extra = len(points), (1,) * (len(c.shape) - len(points))
    indices, weights, masks, outside = [], [], [], []
    for axis, p in enumerate(points):
        index, weight, within, beyond = _taps(p, c.shape[axis], order, mode, before, away)
        lead = (*[1] * axis, weight.shape[0], *[1] * (count - axis - 1))
        indices.append(shapes.reshape(index, (*lead, *p.shape)))
        weights.append(shapes.reshape(weight, (*lead, *p.shape, *extra)))
        if within is not None:
            masks.append(shapes.reshape(within, (*lead, *p.shape, *extra)))
        if beyond is not None:
            outside.append(shapes.reshape(beyond, (*p.shape, *extra)))
    values = c[tuple(indices)]
    if masks:
        values = ops.where(reduce(ops.and_p.bind, masks), values, cval)
    for w in weights:
        factor = ops.convert_element_type(shapes.reshape(w, w.shape[len(w.shape) - len(values.shape) :]), values.dtype)
        values = pnp.sum(values * factor, axis=0)
    if outside:
        values = ops.where(reduce(ops.or_p.bind, outside), cval, values)
    return values


def interpolated_by_axes(c: Any, points: Sequence[Any], order: int, mode: str, cval: Any, before: int = 0) -> Any:
    """Evaluate a spline at the points of a grid, axis after axis.

    Args:
      c: its coefficients.
      points: the coordinates along each axis, vectors.
      order, mode, cval, before: as for :func:`interpolated`.
    """
    outside: Any = None
    rank = len(points)
    for axis, p in enumerate(points):
        index, weight, within, beyond = _taps(p, c.shape[axis], order, mode, before)
        shape = [p.shape[0] if i == axis else 1 for i in range(rank)]
        total: Any = None
        for k in range(weight.shape[0]):
            term = pnp.take(c, index[k], axis)
            if within is not None:
                term = ops.where(shapes.reshape(within[k], shape), term, cval)
            factor = shapes.reshape(ops.convert_element_type(weight[k], c.dtype), shape)
            term = ops.mul(term, factor)
            total = term if total is None else ops.add(total, term)
        c = total
        if beyond is not None:
            beyond = shapes.reshape(beyond, shape)
            outside = beyond if outside is None else ops.or_p.bind(outside, beyond)
    return c if outside is None else ops.where(outside, cval, c)


def _moved(p: Any, n: int, mode: str, order: int) -> Any:
    """Return coordinates within an axis of ``n`` elements, where the mode moves points rather than elements."""
    last = float(n - 1)
    if mode == "wrap":
        if n == 1:
            return ops.mul(p, 0.0)
        turns = pnp.floor(ops.div(ops.where(ops.lt(p, 0.0), ops.neg(p), p), last))
        next_turns = ops.add(turns, 1.0)
        below, above = ops.add(p, ops.mul(last, next_turns)), ops.sub(p, ops.mul(last, turns))
        return ops.where(ops.lt(p, 0.0), below, ops.where(ops.gt(p, last), above, p))
    if order == 0 and mode == "mirror":
        return ops.abs(p)  # so that halves are rounded as in the image
    return p


def _away(p: Any) -> tuple[Any, list[Any]]:
    """Return the nearest indices, halves away from zero, and the weight 1, which is NaN where ``p`` is."""
    nearest = ops.mul(ops.sign(p), pnp.floor(ops.add(ops.abs(p), 0.5)))
    return nearest, _weights(p, 0)[1]


def _weights(p: Any, order: int) -> tuple[Any, list[Any]]:
    """Return the index of the first B-spline of degree ``order`` that is nonzero at ``p``, and a list of values.

    The list has the values at ``p`` of all B-splines that are nonzero there, by the recursion of de Boor for knots at
    integers.
    """
    base = pnp.floor(p if order % 2 else ops.add(p, 0.5))
    t = ops.sub(p, base if order % 2 else ops.sub(base, 0.5))
    if order == 0:
        return base, [ops.where(ops.eq(p, p), shapes.full(p.shape, 1, p.dtype), math.nan)]
    values = [ops.sub(1.0, t), t]
    for degree in range(2, order + 1):
        saved, found = None, []
        for r, value in enumerate(values):
            share = ops.mul(value, 1.0 / degree)
            right = ops.mul(ops.sub(r + 1.0, t), share)
            found.append(right if saved is None else ops.add(saved, right))
            saved = ops.mul(ops.add(t, degree - r - 1.0), share)
        values = [*found, saved]
    return ops.sub(base, float(order // 2)), values


def _folded(index: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Map float indices, by the boundary mode, to indices within an axis of size ``n``.

    Return the mapped indices, and for the mode "grid-constant" a mask of the original indices that were within the
    axis; None for other modes.
    """
    last = float(n - 1)
    within = ops.and_p.bind(ops.ge_p.bind(index, 0.0), ops.le_p.bind(index, last)) if mode == "grid-constant" else None
    if mode in ("mirror", "constant", "wrap") and n > 1:
        folded = pnp.mod(index, 2 * last)
        index = ops.sub(last, ops.abs(ops.sub(folded, last)))
    elif mode in ("reflect", "grid-mirror"):
        folded = pnp.mod(index, 2.0 * n)
        index = ops.sub(n - 0.5, ops.abs(ops.sub(folded, n - 0.5)))
    elif mode == "grid-wrap":
        index = pnp.mod(index, float(n))
    index = ops.where(ops.eq(index, index), index, 0.0)  # NaN has no integer; its weights are NaN
    return ops.clamp_p.bind(0.0, index, last), within
