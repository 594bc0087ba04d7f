"""Interpolation of functions of several variables from values on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, promote_all, sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.arguments import abscissas, check_increasing, check_inside, floats, known, on_host, real_floats
from pullback.scipy.interpolate.bsplines import basis
from pullback.scipy.interpolate.fits import make_interp_spline
from pullback.scipy.interpolate.hermite import PchipInterpolator, pchip_derivatives
from pullback.scipy.interpolate.piecewise import hermite_pieces

__all__ = ["RegularGridInterpolator", "interpn"]

_NAME = "RegularGridInterpolator"
_DEGREES = {"linear": 1, "nearest": 0, "slinear": 1, "cubic": 3, "quintic": 5, "pchip": 3}
_BY_SPLINES = ("slinear", "cubic", "quintic")


class RegularGridInterpolator:
    """An interpolator of n variables, from values on a rectangular grid that may be uneven.

    An interpolator is a pytree of its grid, its values and its fill value, so that it may be passed to compiled
    functions; its results can be differentiated with respect to all of them.

    Args:
      points: a sequence of n vectors: the coordinates along each axis, increasing or decreasing.
      values: an array whose first n axes are those of the grid.
      method: ``"linear"`` or ``"nearest"``; ``"slinear"``, ``"cubic"`` or ``"quintic"`` for products of splines of the
        degree 1, 3 or 5; ``"pchip"`` for monotone cubics along each axis, the last one first.
      bounds_error: whether points outside of the grid raise; they must be known then.
      fill_value: the value outside of the grid; None to extrapolate.

    Attributes:
      grid: the coordinates, increasing.
      values, method, bounds_error, fill_value: the arguments.

    Raises:
      ShapeError: coordinates that are no vectors, or values that do not fit them (a TypeError and a ValueError).
      ArgumentError: coordinates that are not monotone, an unknown method, or complex values for ``"pchip"`` (a
        TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import interpolate
    >>> f = interpolate.RegularGridInterpolator((jnp.arange(2.0), jnp.arange(3.0)), jnp.arange(6.0).reshape(2, 3))
    >>> print(f(jnp.array([[0.5, 0.5], [1.0, 2.0], [0.0, 9.0]])))
    [ 2.  5. nan]
    """

    def __init__(
        self, points: Sequence[ArrayLike], values: ArrayLike, method: str = "linear", bounds_error: bool = False,
        fill_value: ArrayLike | None = math.nan,
    ) -> None:  # fmt: skip
        _check_method(method)
        table = floats(_NAME, values)
        axes = [
            abscissas(_NAME, p, f"the coordinates along axis {i}", 1) for i, p in enumerate(sequence(_NAME, points))
        ]
        if not axes:
            raise ShapeError(f"{_NAME} takes at least one vector of coordinates")
        if len(axes) > len(table.shape) or tuple(p.shape[0] for p in axes) != table.shape[: len(axes)]:
            raise ShapeError(
                f"{_NAME}: the first {len(axes)} axes of values must have the sizes of the coordinates, "
                f"{tuple(p.shape[0] for p in axes)}, got shape {table.shape}"
            )
        backwards = [i for i, p in enumerate(axes) if _decreases(p)]
        for i in backwards:
            axes[i] = slicing.rev(axes[i], (0,))
        if backwards:
            table = slicing.rev(table, tuple(backwards))
        for i, p in enumerate(axes):
            check_increasing(_NAME, p, f"the coordinates along axis {i}")
        self.values = table
        self.grid, self.method, self.bounds_error = tuple(axes), method, bounds_error
        self.fill_value = None if fill_value is None else floats(_NAME, fill_value)
        if self.fill_value is not None and self.fill_value.shape:
            raise ShapeError(f"{_NAME}: fill_value must be a number, got shape {self.fill_value.shape}")
        self._check_sizes(method)
        self._coefficients = self._solved(method) if method in ("cubic", "quintic") else None

    def _check_sizes(self, method: str) -> None:
        """Raise if the grid or the values do not suit a method."""
        least = _DEGREES[method] + 1 if method in (*_BY_SPLINES, "pchip") else 1
        sizes = [p.shape[0] for p in self.grid]
        if min(sizes) < least:
            raise ShapeError(
                f"{_NAME}: method {method!r} needs at least {least} coordinates along each axis, got {sizes}"
            )
        if method == "pchip" and dtypes.is_complex(self.values.dtype):
            raise ArgumentError(
                f"{_NAME}: method 'pchip' takes real values, got {dtypes.short_name(self.values.dtype)}"
            )

    def _solved(self, method: str) -> Any:
        """Return the coefficients of the product of splines through the values."""
        c = self.values
        for axis, p in enumerate(self.grid):
            spline = make_interp_spline(p, c, _DEGREES[method], axis=axis)
            c = shapes.moveaxis(spline.c, 0, axis)
        return c

    def __repr__(self) -> str:
        return f"RegularGridInterpolator(a grid of {tuple(p.shape[0] for p in self.grid)} points, {self.method})"

    def __call__(
        self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None, *, nu: Sequence[int] | None = None
    ) -> Array:
        """The values at some points.

        Args:
          xi: the points, (..., n), or a tuple of n arrays that broadcast against each other.
          method: instead of the method of the interpolator.
          nu: for each axis the order of the derivative, for splines only.

        Returns:
          An array of the shape of ``xi`` without its last axis (of the arrays' shape, if it is a tuple), followed
          by the axes of the values after those of the grid.

        Raises:
          ShapeError: points with other than n coordinates (a TypeError and a ValueError).
          ArgumentError: an unknown method, or points out of bounds (a TypeError and a ValueError).
          UnsupportedArgumentError: ``bounds_error`` with traced points (a NotImplementedError).
        """
        method = self.method if method is None else method
        _check_method(method)
        if method != self.method:
            self._check_sizes(method)
        orders = self._orders(nu, method)
        coordinates = self._coordinates(xi)
        grid = [ops.convert_element_type(p, coordinates[0].dtype) for p in self.grid]
        if self.bounds_error:
            for i, (x, p) in enumerate(zip(coordinates, grid, strict=True)):
                check_inside(_NAME, x, p[0], p[-1], f"along axis {i} the coordinate", True)
        if method in ("linear", "nearest"):
            found = self._by_scipy(coordinates, grid, method)
            if found is not None:
                return found
        out = self._at(coordinates, grid, method, orders)
        strange = [ops.ne_p.bind(x, x) for x in coordinates]
        outside = [ops.or_p.bind(ops.lt(x, p[0]), ops.gt(x, p[-1])) for x, p in zip(coordinates, grid, strict=True)]
        extra = range(len(coordinates[0].shape), len(out.shape))
        if self.fill_value is not None:
            fill = ops.convert_element_type(self.fill_value, out.dtype)
            out = ops.where(shapes.expand_dims(reduce(ops.or_p.bind, outside), tuple(extra)), fill, out)
        return ops.where(shapes.expand_dims(reduce(ops.or_p.bind, strange), tuple(extra)), math.nan, out)

    def _coordinates(self, xi: Any) -> list[Any]:
        """Return the coordinates of the points ``xi``, one array for each axis of the grid, of one shape and dtype."""
        n = len(self.grid)
        if isinstance(xi, tuple):
            columns = [real_floats(_NAME, x, "the points") for x in xi]
            if len(columns) != n:
                raise ShapeError(f"{_NAME}: a point of this grid has {n} coordinates, got {len(columns)}")
            columns = list(pnp.broadcast_arrays(*columns))
        else:
            x = real_floats(_NAME, xi, "the points")
            if len(x.shape) < 2 and x.size % n == 0:
                x = shapes.reshape(x, (x.size // n, n))
            if not x.shape or x.shape[-1] != n:
                raise ShapeError(f"{_NAME}: a point of this grid has {n} coordinates, got points of shape {x.shape}")
            columns = [x[..., i] for i in range(n)]
        return promote_all(_NAME, [*columns, *self.grid])[:n]

    def _orders(self, nu: Any, method: str) -> list[int]:
        """Check the orders of derivatives and return them."""
        if nu is None:
            return [0] * len(self.grid)
        if method not in _BY_SPLINES:
            raise ArgumentError(f"{_NAME}: only splines have orders of derivatives, got nu with method {method!r}")
        orders = [known_int(_NAME, "an order of nu", order) for order in sequence(_NAME, nu)]
        if len(orders) != len(self.grid) or min(orders) < 0:
            raise ArgumentError(
                f"{_NAME}: nu must have an order for each of {len(self.grid)} axes, none negative, got {nu!r}"
            )
        return orders

    def _at(self, coordinates: list[Any], grid: list[Any], method: str, orders: list[int]) -> Any:
        """Return the interpolated values at points with these ``coordinates``; outside of the grid, extrapolate.

        Args:
          coordinates: the coordinates of the points along each axis of the grid.
          grid: the points of the grid along each axis.
          method: one of the methods.
          orders: the orders of derivatives along the axes.
        """
        if method == "pchip":
            return self._monotone(coordinates, grid)
        if method in ("cubic", "quintic") or any(orders):
            return self._by_splines(coordinates, grid, method, orders)
        return self._linear(coordinates, grid, method)

    def _by_scipy(self, coordinates: list[Any], grid: list[Any], method: str) -> Array | None:
        """Return SciPy's values of "linear" or "nearest" if all arrays are concrete, else None."""
        arrays = (self.values, *coordinates, *grid, *(() if self.fill_value is None else (self.fill_value,)))
        values = on_host(*arrays)
        if values is None or not values[1].size or min(p.shape[0] for p in grid) < 2:
            return None
        n = len(grid)
        fill = None if self.fill_value is None else values[-1].astype(self.values.dtype)
        theirs = imported("scipy.interpolate").RegularGridInterpolator
        axes = [p.astype(np.float64, copy=False) for p in values[n + 1 : 2 * n + 1]]
        points = np.stack(values[1 : n + 1], axis=-1)
        found = theirs(axes, values[0], method, False, fill)(points)
        found = found.reshape(*points.shape[:-1], *values[0].shape[n:])
        return as_array(found.astype(self._dtype(coordinates), copy=False))

    def _dtype(self, coordinates: list[Any]) -> Any:
        return dtypes.result_type(self.values.dtype, coordinates[0].dtype)

    def _by_splines(self, coordinates: list[Any], grid: list[Any], method: str, orders: list[int]) -> Any:
        """Return the values of the product of splines through the values, or a derivative."""
        k, count = _DEGREES[method], len(grid)
        c = self._coefficients if self._coefficients is not None and method == self.method else self._solved(method)
        knots = [make_interp_spline(p, pnp.zeros_like(p), k).t for p in grid]
        values = on_host(c, *knots, *coordinates)
        if values is not None and values[-1].size:
            f = imported("scipy.interpolate").NdBSpline(tuple(values[1 : count + 1]), values[0], k)
            points = np.stack(values[count + 1 :], axis=-1)
            return as_array(f(points, nu=tuple(orders)).astype(self._dtype(coordinates), copy=False))
        rank = len(coordinates[0].shape)
        indices, weights = [], []
        for axis, (t, x, order) in enumerate(zip(knots, coordinates, orders, strict=True)):
            i, table = basis(t, x, k, order)
            lead = (*[1] * axis, k + 1, *[1] * (count - axis - 1), *x.shape)
            offsets = np.arange(-k, 1, dtype=np.int32).reshape(-1, *[1] * rank)
            indices.append(shapes.reshape(i + offsets, lead))
            weights.append(pnp.stack(table))
        return self._contracted(c[tuple(indices)], weights)

    def _monotone(self, coordinates: list[Any], grid: list[Any]) -> Any:
        """Return the values of monotone cubics along the axes, from the last one to the first."""
        count, extra = len(grid), len(self.values.shape) - len(grid)
        shape, size = coordinates[0].shape, coordinates[0].size
        columns = [shapes.reshape(x, (size, *[1] * extra)) for x in coordinates]
        values: Any = PchipInterpolator(grid[-1], self.values, count - 1)(shapes.reshape(columns[-1], (size,)))
        for axis in range(count - 2, -1, -1):  # the points stand behind the axes of the grid that are left
            values = _cubic_at(shapes.moveaxis(values, axis, 0), grid[axis], columns[axis])
        return shapes.reshape(values, (*shape, *self.values.shape[count:]))

    def _linear(self, coordinates: list[Any], grid: list[Any], method: str) -> Any:
        """Return the values of "linear" and "nearest", by gathering the corners of each point's cell."""
        count = len(coordinates)
        indices, weights = [], []
        for axis, (x, p) in enumerate(zip(coordinates, grid, strict=True)):
            n = p.shape[0]
            after = ops.clamp_p.bind(min(1, n - 1), pnp.searchsorted(p, x, side="right").astype(np.int32), n - 1)
            before = ops.max_p.bind(ops.sub(after, 1), 0)
            start = p[before]
            width = ops.sub(p[after], start)
            share = ops.div(ops.sub(x, start), width) if n > 1 else ops.mul(x, 0.0)
            if method == "nearest":
                indices.append(ops.where(ops.le_p.bind(share, 0.5), before, after))
                continue
            lead = (*[1] * axis, 2, *[1] * (count - axis - 1), *x.shape)
            indices.append(shapes.reshape(pnp.stack([before, after]), lead))
            weights.append(pnp.stack([ops.sub(1.0, share), share]))
        return self._contracted(self.values[tuple(indices)], weights)

    def _contracted(self, values: Any, weights: list[Any]) -> Any:
        """Multiply ``values`` by the weights along each of their first axes, and sum over these."""
        count = len(weights)
        extra = len(self.values.shape) - len(self.grid)
        for axis, w in enumerate(weights):
            between = [1] * (count - axis - 1)  # the axes of later weights
            w = shapes.reshape(w, (w.shape[0], *between, *w.shape[1:], *[1] * extra))
            values = pnp.sum(pnp.multiply(w, values), axis=0)
        return values


def interpn(
    points: Sequence[ArrayLike], values: ArrayLike, xi: ArrayLike | Sequence[ArrayLike], method: str = "linear",
    bounds_error: bool = True, fill_value: ArrayLike | None = math.nan,
) -> Array:  # fmt: skip
    """Interpolate values on a rectangular grid at points, by :class:`RegularGridInterpolator`.

    Args:
      points: a sequence of n vectors: the coordinates along each axis, increasing or decreasing.
      values: an array whose first n axes are those of the grid.
      xi: the points, (..., n), or a tuple of n arrays that broadcast against each other.
      method: "linear", "nearest", "slinear", "cubic", "quintic" or "pchip".
      bounds_error: whether points outside of the grid raise; they must be known then.
      fill_value: the value outside of the grid; None to extrapolate.

    Returns:
      An array of the shape of ``xi`` without its last axis, followed by the axes of the values after those of the grid.

    Raises:
      ShapeError: shapes that do not fit (a TypeError and a ValueError).
      ArgumentError: an unknown method, or points out of bounds (a TypeError and a ValueError).
      UnsupportedArgumentError: ``bounds_error`` with traced points (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import interpn
    >>> print(interpn((jnp.arange(2.0), jnp.arange(3.0)), jnp.arange(6.0).reshape(2, 3), jnp.array([[0.5, 0.5]])))
    [2.]
    """
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


def _cubic_at(y: Any, p: Any, x: Any) -> Any:
    """Return monotone cubics at a point each: those through the values ``y``, (n, ..., m, extra), at ``x``, (m, 1)."""
    n = p.shape[0]
    lead = (n - 1, *[1] * (len(y.shape) - 1))
    width = shapes.reshape(pnp.diff(p), lead)
    slope = pnp.diff(y, axis=0) / width
    at = pchip_derivatives(width, slope)
    c = hermite_pieces(y, at, slope, width)
    after = pnp.searchsorted(p, x, side="right").astype(np.int32)
    i = ops.clamp_p.bind(np.int32(0), after - np.int32(1), np.int32(n - 2))
    local = x - p[i]
    where = pnp.broadcast_to(i, y.shape[1:])[None]
    out: Any = None
    for k in range(4):
        coefficient = pnp.take_along_axis(c[k], where, axis=0)[0]
        out = coefficient if out is None else out * local + coefficient
    return out


def _check_method(method: Any) -> None:
    if not is_listed(method, _DEGREES):
        raise ArgumentError(f"{_NAME}: method must be one of {', '.join(map(repr, _DEGREES))}, got {method!r}")


def _decreases(p: Any) -> bool:
    values = known(p)
    return values is not None and values.size > 1 and bool((np.diff(values) < 0).all())


def _flatten(f: RegularGridInterpolator) -> tuple[Any, Any]:
    return (f.grid, f.values, f.fill_value, f._coefficients), (f.method, f.bounds_error)


def _unflatten(data: Any, children: Any) -> RegularGridInterpolator:
    f = object.__new__(RegularGridInterpolator)
    f.grid, f.values, f.fill_value, f._coefficients = children
    f.method, f.bounds_error = data
    return f


tree.register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
