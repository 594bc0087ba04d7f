"""Interpolation of functions of several variables from values on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import tree
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import promote_all, sequence
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.arguments import abscissas, check_increasing, check_inside, floats, known, real_floats

__all__ = ["RegularGridInterpolator"]

_NAME = "RegularGridInterpolator"
_METHODS = {"linear": "linear", "slinear": "linear", "nearest": "nearest"}


class RegularGridInterpolator:
    """An interpolator of n variables, from values on a rectangular grid that may be uneven.

    An interpolator is a pytree of its grid, its values and its fill value, so that it may be passed to compiled
    functions; its results can be differentiated with respect to all of them.

    Args:
      points: a sequence of n vectors: the coordinates along each axis, increasing or decreasing.
      values: an array whose first n axes are those of the grid.
      method: ``"linear"`` (also ``"slinear"``), or ``"nearest"``.
      bounds_error: whether points outside of the grid raise; they must be known then.
      fill_value: the value outside of the grid; None to extrapolate.

    Attributes:
      grid: the coordinates, increasing.
      values, method, bounds_error, fill_value: the arguments.

    Raises:
      ShapeError: coordinates that are no vectors, or values that do not fit them (a TypeError and a ValueError).
      ArgumentError: coordinates that are not monotone, or an unknown method (a TypeError and a ValueError).

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
        if not is_listed(method, _METHODS):
            raise ArgumentError(f"{_NAME}: method must be 'linear', 'slinear' or 'nearest', got {method!r}")
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

    def __repr__(self) -> str:
        return f"RegularGridInterpolator(a grid of {tuple(p.shape[0] for p in self.grid)} points, {self.method})"

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """The values at some points.

        Args:
          xi: the points, (..., n), or a tuple of n arrays that broadcast against each other.
          method: instead of the method of the interpolator.

        Returns:
          An array of the shape of ``xi`` without its last axis (of the arrays' shape, if it is a tuple), followed
          by the axes of the values after those of the grid.

        Raises:
          ShapeError: points with other than n coordinates (a TypeError and a ValueError).
          ArgumentError: an unknown method, or points out of bounds (a TypeError and a ValueError).
          UnsupportedArgumentError: ``bounds_error`` with traced points (a NotImplementedError).
        """
        method = self.method if method is None else method
        if not is_listed(method, _METHODS):
            raise ArgumentError(f"{_NAME}: method must be 'linear', 'slinear' or 'nearest', got {method!r}")
        coordinates = self._coordinates(xi)
        grid = [ops.convert_element_type(p, coordinates[0].dtype) for p in self.grid]
        if self.bounds_error:
            for i, (x, p) in enumerate(zip(coordinates, grid, strict=True)):
                check_inside(_NAME, x, p[0], p[-1], f"along axis {i} the coordinate", True)
        out = self._at(coordinates, grid, _METHODS[method])
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

    def _at(self, coordinates: list[Any], grid: list[Any], method: str) -> Any:
        """Return the interpolated values at points with these ``coordinates``; outside of the grid, extrapolate.

        Args:
          coordinates: the coordinates of the points along each axis of the grid.
          grid: the points of the grid along each axis.
          method: "linear" or "nearest".
        """
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
        values = self.values[tuple(indices)]
        extra = len(self.values.shape) - count
        for axis, w in enumerate(weights):
            between = [1] * (count - axis - 1)  # the axes of later weights
            w = shapes.reshape(w, (2, *between, *w.shape[1:], *[1] * extra))
            values = pnp.sum(pnp.multiply(w, values), axis=0)
        return values


def _decreases(p: Any) -> bool:
    values = known(p)
    return values is not None and values.size > 1 and bool((np.diff(values) < 0).all())


def _flatten(f: RegularGridInterpolator) -> tuple[Any, Any]:
    return (f.grid, f.values, f.fill_value), (f.method, f.bounds_error)


def _unflatten(data: Any, children: Any) -> RegularGridInterpolator:
    f = object.__new__(RegularGridInterpolator)
    f.grid, f.values, f.fill_value = children
    f.method, f.bounds_error = data
    return f


tree.register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
