"""Cubic interpolation from values and derivatives at points, or from local estimates of the derivatives."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.numpy.promotion import axis_index, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.reductions import reduce_max
from pullback.scipy.arguments import abscissas, check_increasing, floats, known
from pullback.scipy.interpolate.bsplines import extrapolation
from pullback.scipy.interpolate.piecewise import PPoly, flatten, hermite_pieces, unflatten

__all__ = ["Akima1DInterpolator", "CubicHermiteSpline", "PchipInterpolator"]


class _Samples:
    """Points and the values there, as a matrix with the axis of the points first, and what follows from them.

    Attributes:
      x: the points, (n,).
      y: the values, (n, m).
      width: the lengths of the intervals, (n - 1, 1).
      slope: the slopes of the secants, (n - 1, m).
      axis: which axis of the values was that of the points.
      rest: the other axes.
    """

    def __init__(self, name: str, x: Any, y: Any, axis: Any, *more: Any) -> None:
        x, y, *more_arrays = abscissas(name, x, "the points", 2), floats(name, y), *(floats(name, v) for v in more)
        check_increasing(name, x, "the points")
        if not y.shape:
            raise ShapeError(f"{name}: y must have at least one axis, got a number")
        self.axis = axis_index(axis, len(y.shape), name)
        if y.shape[self.axis] != x.shape[0]:
            raise ShapeError(
                f"{name}: along axis {axis} y must have as many elements as there are points, {x.shape[0]}, got shape "
                f"{y.shape}"
            )
        for array, what in zip((x, y, *more_arrays), ("points", "values", "derivatives"), strict=False):
            values = known(array)
            if values is not None and not np.isfinite(values).all():
                raise ArgumentError(f"{name}: the {what} must be finite, got {values[~np.isfinite(values)].flat[0]}")
        dtype = dtypes.result_type(x.dtype, y.dtype, *(v.dtype for v in more_arrays))
        self.rest = (*y.shape[: self.axis], *y.shape[self.axis + 1 :])
        self.x = ops.convert_element_type(x, dtypes.to_real(dtype))
        self.y, *self.more = (self._matrix(v, dtype) for v in (y, *more_arrays))
        self.width = shapes.expand_dims(pnp.diff(self.x), (1,))
        self.slope = pnp.divide(pnp.diff(self.y, axis=0), self.width)

    def _matrix(self, y: Any, dtype: Any) -> Any:
        y = shapes.moveaxis(ops.convert_element_type(y, dtype), self.axis, 0)
        return shapes.reshape(y, (y.shape[0], math.prod(self.rest)))

    def fill(self, out: PPoly, derivatives: Any, extrapolate: Any) -> None:
        """Set the attributes of a piecewise polynomial with these values and derivatives at the points."""
        c = hermite_pieces(self.y, derivatives, self.slope, self.width)
        out.c, out.x, out.axis = shapes.reshape(c, (4, self.x.shape[0] - 1, *self.rest)), self.x, self.axis
        out.extrapolate = extrapolation(type(out).__name__, extrapolate)


def _require_real(name: str, y: Any) -> None:
    if dtypes.is_complex(y.dtype):
        raise DtypeError(f"{name}: the values must be real, got {dtypes.short_name(y.dtype)}; pass their real part")


class CubicHermiteSpline(PPoly):
    """The piecewise cubic with given values and first derivatives at points.

    Args:
      x: the points, a vector of n at least 2 that increases strictly.
      y: the values, real or complex, with n elements along an axis.
      dydx: the derivatives, of the shape of ``y``.
      axis: which axis of ``y``.
      extrapolate: as for :class:`PPoly`.

    Raises:
      ShapeError: values or derivatives that do not fit the points (a TypeError and a ValueError).
      ArgumentError: points that do not increase, or numbers that are not finite (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import CubicHermiteSpline
    >>> x = jnp.array([0.0, 1.0, 3.0])
    >>> print(CubicHermiteSpline(x, x**3, 3 * x**2)(2.0).round(4))
    8.0
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, dydx: ArrayLike, axis: int = 0, extrapolate: Any = None) -> None:
        y, dydx = floats("CubicHermiteSpline", y), floats("CubicHermiteSpline", dydx)
        if y.shape != dydx.shape:
            raise ShapeError(f"CubicHermiteSpline: y and dydx must have one shape, got {y.shape} and {dydx.shape}")
        samples = _Samples("CubicHermiteSpline", x, y, axis, dydx)
        samples.fill(self, samples.more[0], True if extrapolate is None else extrapolate)


class PchipInterpolator(PPoly):
    """The piecewise cubic through values at points that is monotone where the values are (PCHIP).

    Its derivatives at the points are weighted harmonic means of the slopes of the neighbouring secants, and zero where
    these have different signs. There the interpolant depends on the values with a kink.

    Args:
      x: the points, a vector of n at least 2 that increases strictly.
      y: the values, real, with n elements along an axis.
      axis: which axis of ``y``.
      extrapolate: as for :class:`PPoly`.

    Raises:
      ShapeError: values that do not fit the points (a TypeError and a ValueError).
      ArgumentError: points that do not increase, or numbers that are not finite (a TypeError and a ValueError).
      DtypeError: complex values (a TypeError).

    Source: Fritsch and Butland 1984, "A method for constructing local monotone piecewise cubic interpolants".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import PchipInterpolator
    >>> step = PchipInterpolator(jnp.arange(4.0), jnp.array([0.0, 0.0, 1.0, 1.0]))
    >>> print(step(jnp.array([0.5, 1.5, 2.5])))
    [0.  0.5 1. ]
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0, extrapolate: Any = None) -> None:
        samples = _Samples("PchipInterpolator", x, y, axis)
        _require_real("PchipInterpolator", samples.y)
        at = pchip_derivatives(samples.width, samples.slope)
        samples.fill(self, at, True if extrapolate is None else extrapolate)


class Akima1DInterpolator(PPoly):
    """The piecewise cubic through values at points by Akima's local estimates of the derivatives.

    An outlier changes the interpolant only near it. Where the weights of an estimate are zero, the interpolant depends
    on the values with a kink.

    Args:
      x: the points, a vector of n at least 2 that increases strictly.
      y: the values, real, with n elements along an axis.
      axis: which axis of ``y``.
      method: ``"akima"``, or ``"makima"`` for weights that avoid overshooting.
      extrapolate: as for :class:`PPoly`; by default values outside are NaN.

    Raises:
      ShapeError: values that do not fit the points (a TypeError and a ValueError).
      ArgumentError: points that do not increase, or numbers that are not finite (a TypeError and a ValueError).
      DtypeError: complex values (a TypeError).
      UnsupportedArgumentError: another method (a NotImplementedError).

    Source: Akima 1970, "A new method of interpolation and smooth curve fitting based on local procedures".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import Akima1DInterpolator
    >>> x = jnp.arange(6.0)
    >>> print(Akima1DInterpolator(x, x**2)(2.5))
    6.25
    """

    def __init__(
        self, x: ArrayLike, y: ArrayLike, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
    ) -> None:
        if not is_listed(method, ("akima", "makima")):
            raise UnsupportedArgumentError(
                f"Akima1DInterpolator: method must be 'akima' or 'makima', got {quote(method)}"
            )
        samples = _Samples("Akima1DInterpolator", x, y, axis)
        _require_real("Akima1DInterpolator", samples.y)
        at = _akima_derivatives(samples.slope, method == "makima")
        samples.fill(self, at, False if extrapolate is None else extrapolate)


def pchip_derivatives(width: Any, slope: Any) -> Any:
    """Return the derivatives of the monotone interpolant at its points, (n, m).

    Args:
      width: the lengths of the intervals, (n - 1, 1).
      slope: the slopes of the secants, (n - 1, m).
    """
    if slope.shape[0] == 1:
        return pnp.concatenate([slope, slope])
    before, after = slope[:-1], slope[1:]
    flat = pnp.sign(before) * pnp.sign(after) <= 0
    h, g = width[:-1], width[1:]
    w1, w2 = 2.0 * g + h, g + 2.0 * h
    one = pnp.ones_like(before)
    before, after = pnp.where(flat, one, before), pnp.where(flat, one, after)
    inner = pnp.where(flat, 0.0, (w1 + w2) / (w1 / before + w2 / after))
    first = _pchip_end(width[:1], width[1:2], slope[:1], slope[1:2])
    last = _pchip_end(width[-1:], width[-2:-1], slope[-1:], slope[-2:-1])
    return pnp.concatenate([first, inner, last])


def _pchip_end(h: Any, g: Any, slope: Any, next_slope: Any) -> Any:
    """Return the derivative at an end, from the lengths and slopes of the two intervals there."""
    d = ((2.0 * h + g) * slope - h * next_slope) / (h + g)
    turns = pnp.sign(slope) != pnp.sign(next_slope)
    bounded = pnp.where(turns & (abs(d) > 3.0 * abs(slope)), 3.0 * slope, d)
    return pnp.where(pnp.sign(d) != pnp.sign(slope), 0.0, bounded)


_LEAST_WEIGHT = 1e-9
"""The sum of weights, relative to the largest, below which the derivative is the mean of two slopes; SciPy's."""


def _akima_derivatives(slope: Any, modified: bool) -> Any:
    """Return Akima's derivatives at the points, (n, m), from the slopes of the secants, (n - 1, m)."""
    if slope.shape[0] == 1:
        return pnp.concatenate([slope, slope])
    left = 2.0 * slope[:1] - slope[1:2]
    right = 2.0 * slope[-1:] - slope[-2:-1]
    m = pnp.concatenate([2.0 * left - slope[:1], left, slope, right, 2.0 * right - slope[-1:]])
    weights = abs(pnp.diff(m, axis=0))
    if modified:
        weights = weights + 0.5 * abs(m[1:] + m[:-1])
    after, before = weights[2:], weights[:-2]
    total = after + before
    largest = reduce_max(total, (0, 1)) if total.size else 0.0
    defined = total > _LEAST_WEIGHT * largest
    share = pnp.where(defined, before, 0.0) / pnp.where(defined, total, 1.0)
    return pnp.where(defined, m[1:-2] + share * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))


for _kind in (CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator):
    tree.register_pytree_node(_kind, flatten, partial(unflatten, _kind))
