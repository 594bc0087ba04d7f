"""Interpolation from values at scattered points: on the triangles of Delaunay, and at the nearest point.

The triangles and the nearest points are found on the host, and are constant for derivatives. The weights of a
triangle's corners are computed from the points by our operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, OperandError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import promote_all, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_max, reduce_min
from pullback.scipy.arguments import floats, known, on_host, real_floats
from pullback.scipy.interpolate.vectors import interp1d
from pullback.scipy.spatial.trees import Kept, neighbours
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

__all__ = ["LinearNDInterpolator", "NearestNDInterpolator", "griddata"]


def _triangulated(points: np.ndarray[Any, Any]) -> Any:
    spatial = imported("scipy.spatial")
    try:
        return spatial.Delaunay(np.array(points, np.float64))
    except spatial.QhullError as error:
        line = str(error).strip().splitlines()[0]
        raise ArgumentError(
            f"LinearNDInterpolator: the points have no triangulation: are they on a line or a plane? Qhull says: {line}"
        ) from None


_triangulations = Kept(_triangulated)


def _corners(points: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the positions of the corners of the simplex with each point ``x``, (..., n + 1); -1 outside of all."""
    found = np.full((*x.shape[:-1], points.shape[1] + 1), -1, np.int32)
    finite = np.isfinite(x).all(axis=-1)
    if finite.any():
        triangles = _triangulations.of(points)
        simplex = triangles.find_simplex(x[finite].astype(np.float64))
        found[finite] = np.where(simplex[:, None] < 0, -1, triangles.simplices[simplex])
    return found


class _Scattered:
    """An interpolator of several variables from values at scattered points.

    Attributes:
      points, values, fill_value, rescale: the arguments.
    """

    points: Any
    values: Any
    fill_value: Any
    rescale: bool

    def _set(self, points: Any, values: Any, fill_value: Any, rescale: bool) -> None:
        name = type(self).__name__
        self.points = _coordinates(name, points, "the points")
        if len(self.points.shape) != 2 or self.points.shape[1] < 2:
            raise ShapeError(f"{name}: the points must have shape (m, n) with n at least 2, got {self.points.shape}")
        self.values = floats(name, values)
        if not self.values.shape or self.values.shape[0] != self.points.shape[0]:
            raise ShapeError(
                f"{name}: there must be a value for each of {self.points.shape[0]} points, got shape "
                f"{self.values.shape}"
            )
        elements = known(self.points)
        if elements is not None and not np.isfinite(elements).all():
            raise ArgumentError(f"{name}: the points must be finite")
        self.fill_value = floats(name, fill_value)
        if self.fill_value.shape:
            raise ShapeError(f"{name}: fill_value must be a number, got shape {self.fill_value.shape}")
        self.rescale = flag(name, "rescale", rescale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.points, 'shape', '?')})"

    def _targets(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the evaluation points, (..., n), and those of the values, of one dtype."""
        name = type(self).__name__
        x = _coordinates(name, args[0] if len(args) == 1 else args, "the points")
        n = self.points.shape[1]
        if not x.shape or x.shape[-1] != n:
            raise ShapeError(f"{name}: the points have {n} coordinates, got points of shape {x.shape}")
        x, points = promote_all(name, (x, self.points))
        return x, points

    def _scaled(self, points: Any, x: Any) -> tuple[Any, Any]:
        """Return both kinds of points, moved and scaled to the unit cube if ``rescale``."""
        if not self.rescale:
            return points, x
        low, high = reduce_min(points, (0,)), reduce_max(points, (0,))
        size = pnp.where(high > low, high - low, 1.0)
        return (points - low) / size, (x - low) / size


class LinearNDInterpolator(_Scattered):
    """The interpolant that is linear on each triangle, or simplex, of scattered points.

    It is a pytree of its points, values and fill value, so that it may be passed to compiled functions. It has
    derivatives by all of these and by the evaluation points; which triangle contains a point is constant for them, and
    found on the host by the Delaunay triangulation.

    Args:
      points: the points, (m, n) with n at least 2, or a tuple of n vectors.
      values: the values, (m, ...), real or complex.
      fill_value: the value outside of all triangles.
      rescale: whether coordinates are scaled to the unit cube before the triangulation.

    Attributes:
      points, values, fill_value, rescale: the arguments.

    Raises:
      ShapeError: points or values that do not fit (a TypeError and a ValueError).
      ArgumentError: points that are not finite, or that are on a line or plane (a TypeError and a ValueError).

    Source: Barber, Dobkin and Huhdanpaa 1996, "The Quickhull algorithm for convex hulls".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import LinearNDInterpolator
    >>> corners = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> f = LinearNDInterpolator(corners, jnp.array([0.0, 1.0, 3.0]))
    >>> print(f(jnp.array([[0.5, 0.25], [2.0, 2.0]])))
    [1.25  nan]
    """

    def __init__(
        self, points: ArrayLike | Sequence[ArrayLike], values: ArrayLike, fill_value: ArrayLike = math.nan,
        rescale: bool = False,
    ) -> None:  # fmt: skip
        self._set(points, values, fill_value, rescale)

    def __call__(self, *args: ArrayLike | Sequence[ArrayLike]) -> Array:
        """The values at some points.

        Args:
          args: the points, (..., n), or n arrays of coordinates that broadcast against each other.

        Returns:
          An array of the shape of the points without the last axis, followed by the axes of a value.

        Raises:
          ShapeError: points with other than n coordinates (a TypeError and a ValueError).
        """
        x, points = self._targets(args)
        dtype = dtypes.result_type(self.values.dtype, x.dtype, self.fill_value.dtype)
        values = on_host(*self._scaled(points, x), self.values, self.fill_value)
        if values is not None and values[1].size and self.values.size:
            theirs = imported("scipy.interpolate").LinearNDInterpolator
            f = theirs(_triangulations.of(values[0]), values[2], values[3].item())
            return as_array(np.asarray(f(values[1])).astype(dtype, copy=False))
        lead, n = x.shape[:-1], x.shape[-1]
        # Points that are not finite are outside. Others stand for them, whose derivatives are finite.
        lost = ~pnp.isfinite(x).all(axis=-1)
        points, x = self._scaled(points, pnp.where(lost[..., None], points[0], x))
        result = ShapeDtypeStruct((*lead, n + 1), np.int32)
        corners = pure_callback(_corners, result, *stop_gradient((points, x)), vmap_method="sequential")
        outside = (corners[..., 0] < 0) | lost
        corners = ops.max_p.bind(corners, np.int32(0))
        weights = _barycentric(points[corners], x, outside)
        rest = len(self.values.shape) - 1
        table = ops.convert_element_type(self.values, dtype)[corners]
        out = pnp.sum(shapes.reshape(weights, (*weights.shape, *[1] * rest)) * table, axis=len(lead))
        wide = shapes.reshape(outside, (*lead, *[1] * rest))
        return pnp.where(wide, self.fill_value.astype(dtype), out)


class NearestNDInterpolator(_Scattered):
    """The interpolant whose value is that of the nearest of scattered points.

    It is a pytree of its points and values. It has derivatives by the values; those by points are zero.

    Args:
      x: the points, (m, n) with n at least 2, or a tuple of n vectors.
      y: the values, (m, ...), real or complex.
      rescale: whether coordinates are scaled to the unit cube before distances are compared.

    Raises:
      ShapeError: points or values that do not fit (a TypeError and a ValueError).
      ArgumentError: points that are not finite (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import NearestNDInterpolator
    >>> corners = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> print(NearestNDInterpolator(corners, jnp.array([0.0, 1.0, 3.0]))(jnp.array([[0.2, 0.9]])))
    [3.]
    """

    def __init__(self, x: ArrayLike | Sequence[ArrayLike], y: ArrayLike, rescale: bool = False) -> None:
        self._set(x, y, math.nan, rescale)

    def __call__(self, *args: ArrayLike | Sequence[ArrayLike]) -> Array:
        """The values at some points.

        Args:
          args: the points, (..., n), or n arrays of coordinates that broadcast against each other.

        Returns:
          An array of the shape of the points without the last axis, followed by the axes of a value; NaN where a
          coordinate is.

        Raises:
          ShapeError: points with other than n coordinates (a TypeError and a ValueError).
        """
        x, points = self._targets(args)
        points, x = self._scaled(points, x)
        flat = shapes.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
        strange = pnp.isnan(flat).any(axis=1)
        safe = pnp.where(strange[:, None], 0.0, flat)
        near = neighbours(stop_gradient(points), stop_gradient(safe), 1)[:, 0]
        out = self.values[near]
        out = pnp.where(shapes.reshape(strange, (flat.shape[0], *[1] * (len(out.shape) - 1))), math.nan, out)
        return shapes.reshape(out, (*x.shape[:-1], *self.values.shape[1:]))


def griddata(
    points: ArrayLike | Sequence[ArrayLike], values: ArrayLike, xi: ArrayLike | Sequence[ArrayLike],
    method: str = "linear", fill_value: ArrayLike = math.nan, rescale: bool = False,
) -> Array:  # fmt: skip
    """Interpolate values at scattered points, by :class:`LinearNDInterpolator` and others.

    Args:
      points: the points, (m, n), or a tuple of n vectors; of one variable, a vector.
      values: the values, (m, ...).
      xi: where to interpolate: (..., n), or a tuple of n arrays that broadcast against each other.
      method: "linear" or "nearest"; of one variable also "cubic".
      fill_value: the value outside of all triangles; without effect for "nearest".
      rescale: whether coordinates are scaled to the unit cube.

    Returns:
      An array of the shape of the points without the last axis, followed by the axes of a value.

    Raises:
      ShapeError: shapes that do not fit (a TypeError and a ValueError).
      ArgumentError: an unknown method (a TypeError and a ValueError).
      UnsupportedArgumentError: "cubic" in several variables (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import griddata
    >>> corners = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> print(griddata(corners, jnp.array([0.0, 1.0, 3.0]), jnp.array([[0.5, 0.25]])))
    [1.25]
    """
    if not is_listed(method, ("linear", "nearest", "cubic")):
        raise ArgumentError(f"griddata: method must be 'linear', 'nearest' or 'cubic', got {quote(method)}")
    given = _coordinates("griddata", points, "the points")
    if len(given.shape) < 2 or given.shape[-1] == 1:
        x = shapes.reshape(given, (given.size,))
        where = xi[0] if isinstance(xi, tuple) and len(xi) == 1 else xi
        fill: Any = "extrapolate" if method == "nearest" else fill_value
        return interp1d(x, values, method, 0, bounds_error=False, fill_value=fill)(where)  # type: ignore[no-any-return]
    if method == "cubic":
        raise UnsupportedArgumentError("griddata: method 'cubic' takes points of one variable; use RBFInterpolator")
    if method == "nearest":
        return NearestNDInterpolator(given, values, rescale)(xi)
    return LinearNDInterpolator(given, values, fill_value, rescale)(xi)


def _coordinates(name: str, x: Any, what: str) -> Any:
    """Convert points, or a tuple of their coordinates, to an array whose last axis is that of the coordinates."""
    if not isinstance(x, tuple):
        return real_floats(name, x, what)
    if not x:
        raise OperandError(f"{name}: {what} must be an array or a tuple of arrays, got ()")
    columns = promote_all(name, tuple(real_floats(name, v, what) for v in x))
    return pnp.stack(pnp.broadcast_arrays(*columns), axis=-1)


def _barycentric(corners: Any, x: Any, outside: Any) -> Any:
    """Return the weights of the corners, (..., n + 1), with which their mean is ``x``.

    Args:
      corners: the points of the corners, (..., n + 1, n).
      x: the points, (..., n).
      outside: where the corners are no simplex; there the weights are those of another one.
    """
    n = x.shape[-1]
    last = corners[..., n, :]
    x = pnp.where(outside[..., None], last, x)
    edges = corners[..., :n, :] - last[..., None, :]
    edges = pnp.where(outside[..., None, None], np.eye(n, dtype=x.dtype), edges)
    first = pnp.linalg.solve(pnp.swapaxes(edges, -1, -2), (x - last)[..., None])[..., 0]
    return pnp.concatenate([first, 1.0 - pnp.sum(first, axis=-1, keepdims=True)], axis=-1)


def _flatten(f: _Scattered) -> tuple[Any, Any]:
    return (f.points, f.values, f.fill_value), f.rescale


def _unflatten(kind: Any, rescale: Any, children: Any) -> Any:
    f = object.__new__(kind)
    (f.points, f.values, f.fill_value), f.rescale = children, rescale
    return f


for _kind in (LinearNDInterpolator, NearestNDInterpolator):
    tree.register_pytree_node(_kind, _flatten, partial(_unflatten, _kind))
