"""Contraction of two arrays: batched matrix products with any axes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.core.errors import ShapeError
from pullback.core.linear import Linear
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives import shapes
from pullback.primitives.declare import jvp_bilinear, same_dtype

Dims = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]
"""((contracted axes of x, of y), (batch axes of x, of y))."""


def dot_general(x: Any, y: Any, dimension_numbers: Dims) -> Any:
    """Sum of products over the contracted axes, for each index of the batch axes.

    The result has the batch axes first, then the free axes of ``x``, then those of ``y``.
    """
    (xc, yc), (xb, yb) = dimension_numbers
    return dot_general_p.bind(x, y, dimension_numbers=((tuple(xc), tuple(yc)), (tuple(xb), tuple(yb))))


dot_general_p = Primitive("dot_general")
dot_general_p.jvp_rule = jvp_bilinear(dot_general_p)


def _free(rank: int, *taken: Shape) -> list[int]:
    return [i for i in range(rank) if not any(i in t for t in taken)]


@dot_general_p.host
def _dot_host(x: Any, y: Any, *, dimension_numbers: Dims) -> Any:
    (xc, yc), (xb, yb) = dimension_numbers
    if not xb and len(xc) == 1:
        if xc == (x.ndim - 1,) and x.ndim <= 2 and y.ndim <= 2 and x.dtype.kind in "fc":
            # np.dot contracts the last axis of x with the last but one of y (its only one if it is a vector).
            return np.dot(x, y if y.ndim == 1 or yc == (0,) else y.T)
        if xc == (0,) and x.ndim == 2 and y.ndim <= 2 and x.dtype.kind in "fc":
            return np.dot(x.T, y if y.ndim == 1 or yc == (0,) else y.T)
    return _dot_by_matmul(x, y, dimension_numbers)


def _dot_by_matmul(x: Any, y: Any, dimension_numbers: Dims) -> Any:
    """Any contraction as a batch of matrix products."""
    (xc, yc), (xb, yb) = dimension_numbers
    x, y = np.asarray(x), np.asarray(y)
    xf, yf = _free(x.ndim, xc, xb), _free(y.ndim, yc, yb)
    batch = [x.shape[i] for i in xb]
    free = [x.shape[i] for i in xf], [y.shape[i] for i in yf]
    inner = math.prod(x.shape[i] for i in xc)
    left = x.transpose([*xb, *xf, *xc]).reshape([*batch, math.prod(free[0]), inner])
    right = y.transpose([*yb, *yc, *yf]).reshape([*batch, inner, math.prod(free[1])])
    dtype = x.dtype
    if dtype.kind == "V" or dtype == np.float16:
        out = np.matmul(left.astype(np.float32), right.astype(np.float32)).astype(dtype)
    else:
        out = np.matmul(left, right)
    return out.reshape([*batch, *free[0], *free[1]])


@dot_general_p.shape
def _dot_shape(x: ShapedArray, y: ShapedArray, *, dimension_numbers: Dims) -> ShapedArray:
    (xc, yc), (xb, yb) = dimension_numbers
    dtype = same_dtype("dot_general", [x, y])
    for what, xs, ys in (("contracting", xc, yc), ("batch", xb, yb)):
        if len(xs) != len(ys) or any(not 0 <= i < x.ndim for i in xs) or any(not 0 <= i < y.ndim for i in ys):
            raise ShapeError(f"dot_general: {what} axes {xs} and {ys} do not fit shapes {x.shape} and {y.shape}")
        if [x.shape[i] for i in xs] != [y.shape[i] for i in ys]:
            sizes = [x.shape[i] for i in xs], [y.shape[i] for i in ys]
            raise ShapeError(
                f"dot_general requires {what} dimensions to have the same size, got {sizes[0]} and {sizes[1]} "
                f"(shapes {x.shape} and {y.shape})"
            )
    batch = tuple(x.shape[i] for i in xb)
    x_free = tuple(x.shape[i] for i in _free(x.ndim, xc, xb))
    y_free = tuple(y.shape[i] for i in _free(y.ndim, yc, yb))
    return ShapedArray(batch + x_free + y_free, dtype)


@partial(dot_general_p.transpose, linear_in="each")
def _dot_transpose(ct: Any, x: Any, y: Any, *, dimension_numbers: Dims) -> Any:
    (xc, yc), (xb, yb) = dimension_numbers
    if type(x) is Linear:
        return _cotangent_of(ct, x, y, (xc, xb), (yc, yb), ct_is_first=True), None
    return None, _cotangent_of(ct, y, x, (yc, yb), (xc, xb), ct_is_first=False)


def _cotangent_of(ct: Any, x: Linear, y: Any, x_axes: Any, y_axes: Any, ct_is_first: bool) -> Any:
    """The cotangent of the operand ``x``, whose other operand is ``y``.

    ``ct`` has the batch axes, then the free axes of the first operand, then those of the second; contracting it
    with ``y`` over the free axes of ``y`` leaves batch axes, free axes of ``x``, contracted axes in y's order.
    """
    (xc, xb), (yc, yb) = x_axes, y_axes
    x_free, y_free = _free(x.ndim, xc, xb), _free(len(y.shape), yc, yb)
    batch = tuple(range(len(xb)))
    start = len(xb) + (len(x_free) if ct_is_first else 0)
    ct_free = tuple(range(start, start + len(y_free)))
    y_remaining = [i for i in range(len(y.shape)) if i in yc]
    contracted_x = [xc[yc.index(i)] for i in y_remaining]
    if ct_is_first:
        out = dot_general(ct, y, ((ct_free, tuple(y_free)), (batch, yb)))
        order = [*xb, *x_free, *contracted_x]
    else:
        out = dot_general(y, ct, ((tuple(y_free), ct_free), (yb, batch)))
        order = [*xb, *contracted_x, *x_free]
    inverse = [0] * len(order)
    for position, a in enumerate(order):
        inverse[a] = position
    return shapes.transpose(out, inverse)


@dot_general_p.batch
def _dot_batch(axis: MappedAxis, args: Any, dims: Any, *, dimension_numbers: Dims) -> Any:
    (x, y), (dx, dy) = args, dims
    (xc, yc), (xb, yb) = dimension_numbers

    def shift(axes: Shape, d: int | None) -> Shape:
        return axes if d is None else tuple(a + (a >= d) for a in axes)

    xc, xb, yc, yb = shift(xc, dx), shift(xb, dx), shift(yc, dy), shift(yb, dy)
    if dx is not None and dy is not None:
        return dot_general(x, y, ((xc, yc), ((dx, *xb), (dy, *yb)))), 0
    out = dot_general(x, y, ((xc, yc), (xb, yb)))
    if dx is not None:
        return out, len(xb) + _free(len(x.shape), xc, xb).index(dx)
    x_free = len(x.shape) - len(xc) - len(xb)
    return out, len(yb) + x_free + _free(len(y.shape), yc, yb).index(dy)


