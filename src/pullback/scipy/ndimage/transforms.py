"""Interpolation of images of any number of axes by splines: ``pullback.scipy.ndimage``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import OperandError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import inexact_operand, operand, promote_all, quote, sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.linalg.tridiagonal import tridiagonal_solve
from pullback.scipy.arguments import inexact

__all__ = ["map_coordinates"]

_MODES = {
    "constant": "constant", "grid-constant": "constant", "nearest": "nearest", "mirror": "mirror", "reflect": "reflect",
    "grid-mirror": "reflect", "wrap": "wrap", "grid-wrap": "wrap",
}  # fmt: skip


def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike | Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """The values of an image between its elements, by the spline through them.

    Args:
      input: the image, of n axes.
      coordinates: a sequence of n arrays that broadcast against each other, or an array whose first axis has n
        elements: the points, in elements along each axis.
      order: the degree of the spline: 0 for the nearest element, 1 for linear interpolation, 2 or 3.
      mode: how the image extends beyond its elements: ``"constant"`` with ``cval``; ``"nearest"`` with the last
        element; ``"mirror"`` as its mirror image about the last element, ``"reflect"`` about its edge; ``"wrap"`` as
        itself. ``"constant"`` and ``"wrap"`` are SciPy's ``"grid-constant"`` and ``"grid-wrap"``, also accepted.
      cval: the number beyond the image.

    Returns:
      An array of the shape of the coordinates, and of the dtype of ``input``; integers are rounded to nearest.

    Raises:
      ShapeError: not n coordinates, or an image without elements (a TypeError and a ValueError).
      UnsupportedArgumentError: an unknown order or mode (a NotImplementedError).

    Source: Unser, Aldroubi and Eden 1993, *B-spline signal processing*.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import ndimage
    >>> image = jnp.array([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]])
    >>> print(ndimage.map_coordinates(image, [jnp.array([0.5, 1.0]), jnp.array([0.0, 1.5])], 1))
    [ 5.  11.5]
    """
    x = operand("map_coordinates", input)
    arrays = coordinates if isinstance(coordinates, Array) else sequence("map_coordinates", coordinates)
    if len(arrays) != len(x.shape):
        raise ShapeError(
            f"map_coordinates takes one array of coordinates for each axis, {len(x.shape)}, got {len(arrays)}"
        )
    if order not in (0, 1, 2, 3) or isinstance(order, bool):
        raise UnsupportedArgumentError(
            f"map_coordinates: the order of a spline must be 0, 1, 2 or 3, got {quote(order)}"
        )
    if mode not in _MODES:
        shown = ", ".join(map(repr, _MODES))
        raise UnsupportedArgumentError(f"map_coordinates: mode must be one of {shown}, got {mode!r}")
    if not math.prod(x.shape):
        raise ShapeError(f"map_coordinates takes a non-empty image, got shape {x.shape}")
    if not x.shape:
        raise ShapeError("map_coordinates takes an image with at least one axis, got a number")
    points = [_coordinate(p) for p in arrays]
    if any(dtypes.is_complex(p.dtype) for p in points):
        raise OperandError("map_coordinates takes real coordinates, got complex ones")
    points = promote_all("map_coordinates", points)
    points = list(pnp.broadcast_arrays(*points))
    out = _interpolated(x, points, int(order), _MODES[mode], cval)
    if dtypes.is_integer(x.dtype):
        out = ops.mul(ops.sign(out), pnp.floor(ops.add(ops.abs(out), 0.5)))
    return ops.convert_element_type(out, x.dtype)


def _coordinate(p: Any) -> Any:
    x = inexact("map_coordinates", p)
    return x if x.dtype.itemsize >= 4 else ops.convert_element_type(x, np.dtype(np.float32))


_PADDING = 12
"""The number of elements by which an image is padded: the influence on its spline falls by 0.27 with each."""


def _interpolated(x: Any, points: list[Any], order: int, mode: str, cval: Any) -> Any:
    """Evaluate the spline of degree ``order`` through the elements of the image ``x``, in the common dtype.

    Args:
      x: the image.
      points: the coordinates of the points along each axis of the image.
      order: the degree of the spline.
      mode: the boundary mode.
      cval: the value outside of the image, for the mode "constant".
    """
    dtype = points[0].dtype
    if dtypes.is_inexact(x.dtype):
        dtype = dtypes.promote_types(x.dtype, dtype)
    c = ops.convert_element_type(x, dtype)
    cval = ops.convert_element_type(inexact_operand("map_coordinates", cval), dtype)
    if cval.shape:
        raise ShapeError(f"map_coordinates: cval must be a number, got shape {cval.shape}")
    if order > 1:
        if mode in ("constant", "nearest"):
            widths = [(_PADDING, _PADDING)] * len(c.shape)
            c = pnp.pad(c, widths, constant_values=cval) if mode == "constant" else pnp.pad(c, widths, "edge")
            points = [ops.add(p, float(_PADDING)) for p in points]
        for axis in range(len(c.shape)):
            c = _spline_coefficients(c, axis, order, {"constant": "mirror", "nearest": "reflect"}.get(mode, mode))
    indices, weights, inside = [], [], []
    for axis, p in enumerate(points):
        start, factors = _weights(p, order)
        elements, valid, values_there = [], [], []
        for k, factor in enumerate(factors):
            index, within = _folded(ops.add(start, float(k)), c.shape[axis], mode)
            elements.append(ops.convert_element_type(index, np.dtype(np.int32)))
            valid.append(within)
            values_there.append(factor)
        indices.append(_stacked(elements, axis, len(points)))
        weights.append(_stacked(values_there, axis, len(points)))
        if mode == "constant":
            inside.append(_stacked(valid, axis, len(points)))
    values = c[tuple(indices)]
    if inside:
        values = ops.where(reduce(ops.and_p.bind, inside), values, cval)
    for w in weights:
        factor = ops.convert_element_type(shapes.reshape(w, w.shape[len(w.shape) - len(values.shape) :]), values.dtype)
        values = pnp.sum(values * factor, axis=0)
    return values


def _stacked(xs: list[Any], axis: int, count: int) -> Any:
    """Stack arrays along the axis ``axis`` of ``count`` new leading axes; the other new axes have size 1."""
    stacked = pnp.stack(xs)
    rest = xs[0].shape
    return shapes.reshape(stacked, (*[1] * axis, len(xs), *[1] * (count - axis - 1), *rest))


def _weights(p: Any, order: int) -> tuple[Any, list[Any]]:
    """Return the index of the first B-spline of degree ``order`` that is nonzero at ``p``, and a list of values.

    The list has the values at ``p`` of all B-splines that are nonzero there.
    """
    if order == 0:
        nearest = ops.mul(ops.sign(p), pnp.floor(ops.add(ops.abs(p), 0.5)))
        return nearest, [ops.where(ops.eq(p, p), shapes.full(p.shape, 1, p.dtype), math.nan)]
    if order == 2:
        middle = pnp.floor(ops.add(p, 0.5))
        t = ops.sub(p, middle)
        before, after = (ops.mul(0.5, ops.square(ops.add(0.5, s))) for s in (ops.neg(t), t))
        return ops.sub(middle, 1.0), [before, ops.sub(0.75, ops.square(t)), after]
    start = pnp.floor(p)
    t = ops.sub(p, start)
    u = ops.sub(1.0, t)
    if order == 1:
        return start, [u, t]

    def near(s: Any) -> Any:
        return (4.0 + ops.square(s) * (3.0 * s - 6.0)) / 6.0

    def far(s: Any) -> Any:
        return s * ops.square(s) / 6.0

    return ops.sub(start, 1.0), [far(u), near(t), near(u), far(t)]


def _folded(index: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Map float indices, by the boundary mode, to indices within an axis of size ``n``.

    Return the mapped indices, and for the mode "constant" a mask of the original indices that were within the axis;
    None for other modes.
    """
    last = float(n - 1)
    within = ops.and_p.bind(ops.ge_p.bind(index, 0.0), ops.le_p.bind(index, last)) if mode == "constant" else None
    if mode == "mirror" and n > 1:
        folded = pnp.mod(index, 2 * last)
        index = ops.sub(last, ops.abs(ops.sub(folded, last)))
    elif mode == "reflect":
        folded = pnp.mod(index, 2.0 * n)
        index = ops.sub(n - 0.5, ops.abs(ops.sub(folded, n - 0.5)))
    elif mode == "wrap":
        index = pnp.mod(index, float(n))
    index = ops.where(ops.eq(index, index), index, 0.0)  # NaN has no integer; its weights are NaN
    return ops.clamp_p.bind(0.0, index, last), within


# Coefficients --------------------------------------------------------------------------------------------------------

_SPLINES = {2: (0.75, 0.125), 3: (2 / 3, 1 / 6)}


def _spline_coefficients(x: Any, axis: int, order: int, mode: str) -> Any:
    """Return the coefficients of the spline of degree ``order`` through the elements of ``x`` along an axis.

    They solve a tridiagonal system. ``mode`` is the boundary mode.
    """
    n = x.shape[axis]
    if n == 1:
        return x
    middle, side = _SPLINES[order]
    below, diagonal, above = np.full(n, side), np.full(n, middle), np.full(n, side)
    if mode == "mirror" or (n == 2 and mode == "wrap"):
        above[0] = below[-1] = 2 * side
    elif mode == "reflect":
        diagonal[0] += side
        diagonal[-1] += side
    else:  # less the corners of the cyclic system, a matrix of rank one, which `_cyclic` adds
        diagonal[0] += middle
        diagonal[-1] += side * side / middle
    rows = shapes.moveaxis(x, axis, 0)
    flat = shapes.reshape(rows, (n, math.prod(rows.shape[1:])))
    dl, d, du = (ArrayImpl(v.astype(x.dtype)) for v in (below, diagonal, above))
    out = tridiagonal_solve(dl, d, du, flat)
    if mode == "wrap" and n > 2:
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
