"""Integrals along an axis of an array of the values of a function."""

from __future__ import annotations

from typing import Any

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import axis_index, inexact_operands
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing

__all__ = ["cumulative_trapezoid", "simpson"]


def _samples(name: str, y: Any, x: Any, dx: Any, axis: Any) -> tuple[Any, Any, int]:
    """Check the arguments of an integral of samples.

    Return the values with the integration axis last, the lengths of the intervals (along the last axis, or a scalar if
    they are equal), and the index of the integration axis in ``y``.
    """
    y, step = inexact_operands(name, y, dx if x is None else x)
    if not y.shape:
        raise ShapeError(f"{name} takes an array with at least one axis, got a number")
    where, last = axis_index(axis, len(y.shape), name), len(y.shape) - 1
    n = y.shape[where]
    if not n:
        raise ShapeError(f"{name}: needs at least one point along axis {axis}, got shape {y.shape}")
    if x is None:
        if step.shape:
            raise ShapeError(f"{name}: dx must be a number, got shape {step.shape}; pass the points as x")
        return shapes.moveaxis(y, where, last), step, where
    if len(step.shape) > 1 and len(step.shape) == len(y.shape):
        step = shapes.moveaxis(step, where, last)
    if len(step.shape) not in (1, last + 1) or step.shape[-1] != n:
        raise ShapeError(
            f"{name}: x must be a vector of {n} elements, as axis {axis} has, or have the shape of y; got shape "
            f"{x.shape if isinstance(x, Array) else pnp.shape(x)} for y of shape {y.shape}"
        )
    return shapes.moveaxis(y, where, last), pnp.diff(step), where


def _sliced(x: Any, start: int, stop: int, stride: int = 1) -> Any:
    """Slice the last axis of ``x``; return ``x`` unchanged if it is a scalar."""
    if not x.shape:
        return x
    lead = len(x.shape) - 1
    return slicing.slice(x, (*[0] * lead, start), (*x.shape[:lead], stop), (*[1] * lead, stride))


def simpson(y: ArrayLike, x: ArrayLike | None = None, *, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by Simpson's rule: parabolas through three points each.

    Args:
      y: the values of the integrand.
      x: the points of the values: a vector, or an array of the shape of ``y``.
      dx: the distance between points, if there is no ``x``.
      axis: along which axis.

    Returns:
      An array without the axis. For an even number of points, the parabola through the last three is integrated over
      the last interval.

    Raises:
      ShapeError: an axis out of range, no points, or an ``x`` that does not fit (a TypeError and a ValueError).

    Source: Cartwright 2017, *Simpson's rule cumulative integration with MS Excel and irregularly-spaced data*.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import integrate
    >>> print(integrate.simpson(jnp.array([0.0, 1.0, 4.0])).round(4))
    2.6667
    """
    f, h, _ = _samples("simpson", y, x, dx, axis)
    n = f.shape[-1]
    if n == 1:
        return pnp.sum(f[..., :0], axis=-1)
    stop = n - 1 if n % 2 else n - 2  # the last point of a parabola
    total = pnp.sum(_parabolas(f, h, max(stop, 0)), axis=-1)
    if n % 2:
        return total
    if n == 2:
        return 0.5 * ((h if not h.shape else h[..., -1]) * (f[..., -1] + f[..., -2]))
    h0, h1 = (h, h) if not h.shape else (h[..., -2], h[..., -1])
    both, product = h0 + h1, 3.0 * (h0 * h1)
    last = (2.0 * ops.square(h1) + product) / (6.0 * both)
    middle = (ops.square(h1) + product) / (6.0 * h0)
    first = h1 * ops.square(h1) / (6.0 * (h0 * both))
    return total + (last * f[..., -1] + middle * f[..., -2] - first * f[..., -3])


def _parabolas(f: Any, h: Any, stop: int) -> Any:
    """Return the integral of a parabola over each pair of neighbouring intervals, as in Simpson's rule.

    Args:
      f: the values at the points, along the last axis; three points determine a parabola.
      h: the lengths of the intervals, a scalar if they are equal.
      stop: the index of the point at which the last pair may end.
    """
    y0, y1, y2 = (_sliced(f, k, max(stop - 1 + k, k), 2) for k in range(3))
    if not h.shape:
        weighted = ops.add(ops.add(y0, y2), ops.mul(4.0, y1))
        return ops.mul(ops.div(h, 3.0), weighted)
    h0, h1 = (_sliced(h, k, max(stop - 1 + k, k), 2) for k in range(2))
    both = h0 + h1
    ends = ops.add(ops.mul(y0, 2.0 - h1 / h0), ops.mul(y2, 2.0 - h0 / h1))
    weighted = ops.add(ends, ops.mul(y1, ops.square(both) / (h0 * h1)))
    return ops.mul(both / 6.0, weighted)


def cumulative_trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1, initial: ArrayLike | None = None
) -> Array:
    """The integrals along an axis from the first point to each later point, by the trapezoidal rule.

    Args:
      y: the values of the integrand.
      x: the points of the values: a vector, or an array of the shape of ``y``.
      dx: the distance between points, if there is no ``x``.
      axis: along which axis.
      initial: 0 to begin the result with the integral to the first point, which is zero; omitted by default.

    Returns:
      An array of the shape of ``y``, with one element less along the axis without ``initial``.

    Raises:
      ShapeError: an axis out of range, no points, or an ``x`` that does not fit (a TypeError and a ValueError).
      ArgumentError: ``initial`` is not None or 0 (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import integrate
    >>> print(integrate.cumulative_trapezoid(jnp.array([1.0, 2.0, 3.0]), initial=0))
    [0.  1.5 4. ]
    """
    if initial is not None and not (type(initial) in (int, float) and initial == 0):
        raise ArgumentError(f"cumulative_trapezoid: initial must be None or 0, got {initial!r}; add it to the result")
    f, h, where = _samples("cumulative_trapezoid", y, x, dx, axis)
    n, last = f.shape[-1], len(f.shape) - 1
    areas = ops.mul(ops.mul(0.5, h), ops.add(_sliced(f, 1, n), _sliced(f, 0, n - 1)))
    out = pnp.cumsum(areas, axis=-1)
    if initial is not None:
        out = slicing.pad(out, 0, [*[(0, 0, 0)] * last, (1, 0, 0)])
    return shapes.moveaxis(out, last, where)
