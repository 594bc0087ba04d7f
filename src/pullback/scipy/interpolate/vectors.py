"""Interpolation of functions of one variable from values at points, of all kinds of ``scipy.interpolate.interp1d``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import is_listed
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.numpy.promotion import axis_index, promote_all
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg.tridiagonal import tridiagonal_solve
from pullback.scipy.arguments import abscissas, check_increasing, check_inside, floats, known, real_floats
from pullback.scipy.interpolate.piecewise import CubicSpline, PPoly

__all__ = ["interp1d"]

_ORDERS: dict[Any, str] = {0: "zero", 1: "linear", 2: "quadratic", 3: "cubic", "slinear": "linear"}
_LEAST = {"linear": 2, "quadratic": 3, "cubic": 4}
_KINDS = ("linear", "nearest", "nearest-up", "zero", "slinear", "quadratic", "cubic", "previous", "next")


class interp1d:
    """An interpolator of one variable, from values at some points.

    Args:
      x: the points, a vector of n.
      y: the values, with n elements along an axis.
      kind: ``"linear"`` (also ``"slinear"``); ``"nearest"`` for the value of the nearest point, the lower one of two,
        ``"nearest-up"`` the upper one; ``"previous"`` (also ``"zero"``) and ``"next"`` for the value of a neighbour;
        ``"quadratic"`` and ``"cubic"`` for the spline. Or the order of a spline, 0 to 3.
      axis: which axis of ``y``.
      copy: accepted for compatibility.
      bounds_error: whether points out of bounds raise. By default known points do, if there is no ``fill_value``.
      fill_value: the value out of bounds; a pair of values below and above; or ``"extrapolate"``.
      assume_sorted: whether ``x`` increases; else it is sorted.

    Raises:
      ShapeError: values that do not fit the points, or too few of them (a TypeError and a ValueError).
      ArgumentError: points that are equal, an unknown kind, or ``bounds_error`` with extrapolation (a TypeError and a
        ValueError).
      UnsupportedArgumentError: another order (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import interpolate
    >>> f = interpolate.interp1d(jnp.arange(4.0), jnp.arange(4.0) ** 2, kind="quadratic")
    >>> print(f(jnp.array([0.5, 2.5])))
    [0.25 6.25]
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: bool | None = None,
        fill_value: Any = math.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(kind, int) and not isinstance(kind, bool) and kind not in _ORDERS:
            raise UnsupportedArgumentError(f"interp1d: the order of a spline must be from 0 to 3, got {kind}")
        if isinstance(kind, bool) or not isinstance(kind, (int, str)) or (isinstance(kind, str) and kind not in _KINDS):
            raise ArgumentError(f"interp1d: kind must be an order from 0 to 3 or one of {_KINDS}, got {kind!r}")
        self.kind: str = _ORDERS.get(kind, str(kind))
        x, y = abscissas("interp1d", x, "the points", _LEAST.get(self.kind, 1)), floats("interp1d", y)
        if not y.shape:
            raise ShapeError("interp1d: y must have at least one axis, got a number")
        self.axis = axis_index(axis, len(y.shape), "interp1d")
        if y.shape[self.axis] != x.shape[0]:
            raise ShapeError(
                f"interp1d: along axis {axis} y must have as many elements as there are points, {x.shape[0]}, got "
                f"shape {y.shape}"
            )
        y = shapes.moveaxis(y, self.axis, 0)
        if not assume_sorted:
            order = pnp.argsort(x)
            x, y = x[order], y[order]
        check_increasing("interp1d", x, "the points")
        self.x, self.y = x, y
        self._set_bounds(bounds_error, fill_value)
        self._spline = _spline(self.kind, x, y)

    def _set_bounds(self, bounds_error: Any, fill_value: Any) -> None:
        self.extrapolates = isinstance(fill_value, str)
        if self.extrapolates:
            if not is_listed(fill_value, ("extrapolate",)):
                raise ArgumentError(f"interp1d: fill_value must be a number or 'extrapolate', got {fill_value!r}")
            if bounds_error:
                raise ArgumentError("interp1d: bounds_error=True contradicts fill_value='extrapolate'")
            ends = {"previous": (math.nan, self.y[-1]), "next": (self.y[0], math.nan)}
            self.below, self.above = ends.get(self.kind, (None, None))
        else:
            pair = fill_value if isinstance(fill_value, tuple) and len(fill_value) == 2 else (fill_value, fill_value)
            self.below, self.above = (floats("interp1d", v) for v in pair)
            for v in (self.below, self.above):
                if v.shape not in ((), self.y.shape[1:]):
                    raise ShapeError(
                        f"interp1d: fill_value must be a number or have shape {self.y.shape[1:]}, got {v.shape}"
                    )
        has_fill = isinstance(fill_value, (str, tuple)) or known(pnp.isnan(floats("interp1d", fill_value))) is None
        has_fill = has_fill or not np.isnan(known(floats("interp1d", fill_value))).all()
        self.refuses = not has_fill if bounds_error is None else bool(bounds_error)
        self.strict = bool(bounds_error)

    def __call__(self, x: Any) -> Any:
        """The values at some points.

        Args:
          x: the points, an array of real numbers.

        Returns:
          An array of the shape of ``y`` in which the axes of ``x`` replace the axis.

        Raises:
          ArgumentError: points out of bounds (a TypeError and a ValueError).
          UnsupportedArgumentError: ``bounds_error=True`` with traced points (a NotImplementedError).
        """
        t, points = promote_all("interp1d", (real_floats("interp1d", x, "the points"), self.x))
        if self.refuses:
            check_inside("interp1d", t, points[0], points[-1], "the point", self.strict)
        out = self._at(t, points)
        extra = len(out.shape) - len(t.shape)
        wide = shapes.reshape(t, (*t.shape, *[1] * extra))
        for outside, value in ((ops.lt(wide, points[0]), self.below), (ops.gt(wide, points[-1]), self.above)):
            if value is not None:
                out = pnp.where(outside, pnp.asarray(value, out.dtype), out)
        out = ops.where(ops.ne_p.bind(wide, wide), math.nan, out)
        rank = len(t.shape)
        order = [*range(rank, rank + self.axis), *range(rank), *range(rank + self.axis, rank + extra)]
        return shapes.transpose(out, order)

    def _at(self, t: Any, points: Any) -> Any:
        """Return the interpolated values at ``t``; the axes of ``t`` come first in the result.

        Outside of ``points``, a piecewise polynomial continues its first or last piece. A step function has the value
        at the nearest point there.
        """
        if self._spline is not None:
            return self._spline(t)
        n = points.shape[0]
        if self.kind in ("nearest", "nearest-up"):
            middles = ops.add(points[:-1], ops.mul(0.5, pnp.diff(points)))
            i = pnp.searchsorted(middles, t, side="left" if self.kind == "nearest" else "right")
        elif self.kind == "next":
            i = pnp.searchsorted(points, t, side="left")
        else:
            i = pnp.searchsorted(points, t, side="right") - 1
        return self.y[ops.clamp_p.bind(0, i.astype(np.int32), n - 1)]


def _spline(kind: str, x: Any, y: Any) -> PPoly | None:
    """Return the piecewise polynomial of ``kind`` "cubic", "linear" or "quadratic" through the points ``x``, ``y``.

    Return None for other kinds, which are step functions.
    """
    if kind == "cubic":
        return CubicSpline(x, y)
    if kind == "linear":
        dtype = dtypes.promote_types(x.dtype, y.dtype)
        width = shapes.reshape(pnp.diff(x), (x.shape[0] - 1, *[1] * (len(y.shape) - 1)))
        slope = pnp.divide(pnp.diff(y, axis=0), width)
        return PPoly(pnp.stack([slope, y[:-1].astype(dtype)]), x)
    return _quadratic(x, y) if kind == "quadratic" else None


def _quadratic(x: Any, y: Any) -> PPoly:
    """Return the quadratic spline with knots at the two end points and midway between the inner points.

    Piece j is ``y + s (t - x) + q (t - x)²``, where x, y is the point j + 1. The value and the derivative are
    continuous at the knots. So each knot yields q as a function of the s of its two pieces. The equations for s say
    that both knots of a piece yield the same q; at the ends, the spline passes through the end points.
    """
    dtype = dtypes.promote_types(x.dtype, y.dtype)
    rest = y.shape[1:]
    flat = shapes.reshape(y, (y.shape[0], math.prod(rest))).astype(dtype)
    h = pnp.diff(x)
    wide = shapes.expand_dims(h, (1,))
    bend = pnp.divide(pnp.diff(flat, axis=0), ops.square(wide))
    n = x.shape[0]
    one, two = np.ones(1), np.full(max(n - 3, 0), 2.0)
    left, right = np.concatenate([one, two]), np.concatenate([two, one])  # 1 at an end, 2 at a knot
    inverse = ops.div(1.0, h)

    def scaled(weights: Any) -> Any:
        return weights.astype(x.dtype)

    diagonal = ops.add(ops.mul(scaled(0.5 + 0.5 * left), inverse[:-1]), ops.mul(scaled(0.5 + 0.5 * right), inverse[1:]))
    below, above = (ops.mul(scaled(0.5 * (w - 1)), v) for w, v in ((left, inverse[:-1]), (right, inverse[1:])))

    def tall(weights: Any) -> Any:
        return weights.astype(dtype)[:, None]

    target = ops.add(ops.mul(tall(left), bend[:-1]), ops.mul(tall(right), bend[1:]))
    dl, d, du = (v.astype(dtype) for v in (below, diagonal, above))
    s = tridiagonal_solve(dl, d, du, target)
    last = pnp.concatenate([s[1:], pnp.zeros((1, s.shape[1]), dtype)])
    by_knot = ops.mul(tall(right), bend[1:])
    others = ops.add(ops.mul(tall(0.5 + 0.5 * right), s), ops.mul(tall(0.5 * (right - 1)), last))
    by_knot = ops.sub(by_knot, pnp.divide(others, wide[1:]))
    knots = pnp.concatenate([x[:1], ops.mul(0.5, ops.add(x[1:-2], x[2:-1])), x[-1:]])
    offset = shapes.expand_dims(ops.sub(knots[:-1], x[1:-1]), (1,))
    q = by_knot
    c = pnp.stack(
        [q, ops.add(s, ops.mul(2.0, pnp.multiply(q, offset))), flat[1:-1] + s * offset + q * ops.square(offset)]
    )
    return PPoly(shapes.reshape(c, (3, n - 2, *rest)), knots)
