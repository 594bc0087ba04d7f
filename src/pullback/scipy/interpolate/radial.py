"""Interpolation from values at scattered points by radial basis functions: ``RBFInterpolator``."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, ShapeError, SingularMatrixError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int, promote_all, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_max, reduce_min
from pullback.scipy.arguments import floats, known, on_host, real_floats
from pullback.scipy.spatial.trees import neighbours

__all__ = ["RBFInterpolator"]

_NAME = "RBFInterpolator"
_SCALE_INVARIANT = ("linear", "thin_plate_spline", "cubic", "quintic")
_LEAST_DEGREE = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}


def _off_zero(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of s that is zero where s is, with all derivatives, as at the distance of a point to itself."""

    def guarded(s: Any) -> Any:
        zero = ops.eq_p.bind(s, 0.0)
        return pnp.where(zero, 0.0, function(pnp.where(zero, 1.0, s)))

    return guarded


_KERNELS: dict[str, Callable[[Any], Any]] = {
    "linear": _off_zero(lambda s: -pnp.sqrt(s)),
    "thin_plate_spline": _off_zero(lambda s: 0.5 * s * pnp.log(s)),
    "cubic": _off_zero(lambda s: s * pnp.sqrt(s)),
    "quintic": _off_zero(lambda s: -ops.square(s) * pnp.sqrt(s)),
    "multiquadric": lambda s: -pnp.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s: 1.0 / pnp.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0),
    "gaussian": lambda s: pnp.exp(-s),
}
"""The functions by their names, of the square s of the scaled distance."""


class RBFInterpolator:
    """An interpolator of n variables from values at scattered points: a sum of radial functions and a polynomial.

    It is a pytree of its points, values, smoothing and shape parameter, so that it may be passed to compiled functions;
    its values have derivatives by all of them. At a data point, where the distance is zero, the kernels "linear",
    "thin_plate_spline", "cubic" and "quintic" have no derivatives of the order 1, 2, 3 and 5 and higher; there the term
    of that point counts as constant.

    Args:
      y: the points, (m, n).
      d: the values there, (m, ...), real or complex.
      neighbors: how many nearest points count at each evaluation point; by default all. They are found on the host, and
        are constant for derivatives.
      smoothing: a number, or one for each point: with zero the interpolant passes through the values.
      kernel: "linear", -r; "thin_plate_spline", r² log r; "cubic", r³; "quintic", -r⁵; "multiquadric", -sqrt(1 + r²);
        "inverse_multiquadric", 1 / sqrt(1 + r²); "inverse_quadratic", 1 / (1 + r²); or "gaussian", exp(-r²).
      epsilon: the number by which distances are multiplied; needed unless the kernel is one of the first four.
      degree: the degree of the polynomial; -1 for none. By default the least one with which the solution is unique, and
        at least 0.

    Attributes:
      y, d, neighbors, smoothing, kernel, epsilon: the arguments.

    Raises:
      ShapeError: points, values or smoothing that do not fit (a TypeError and a ValueError).
      ArgumentError: an unknown kernel, no ``epsilon``, or too few points for the polynomial (a TypeError and a
        ValueError).
      SingularMatrixError: the points are equal, or do not determine the polynomial (a RuntimeError and a ValueError).
        In transformed functions values are NaN or infinite then.

    Source: Fasshauer 2007, *Meshfree Approximation Methods with MATLAB*, chapters 6 to 8.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import RBFInterpolator
    >>> points = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> print(RBFInterpolator(points, points @ jnp.array([1.0, 2.0]))(jnp.array([[0.5, 0.25]])).round(3))
    [1.]
    """

    def __init__(
        self, y: ArrayLike, d: ArrayLike, neighbors: int | None = None, smoothing: ArrayLike = 0.0,
        kernel: str = "thin_plate_spline", epsilon: ArrayLike | None = None, degree: int | None = None,
    ) -> None:  # fmt: skip
        points, values = real_floats(_NAME, y, "the points"), floats(_NAME, d)
        if len(points.shape) != 2:
            raise ShapeError(f"{_NAME}: y must be an array of points, (m, n), got shape {points.shape}")
        count, n = points.shape
        if not values.shape or values.shape[0] != count:
            raise ShapeError(f"{_NAME}: d must have a value for each of {count} points, got shape {values.shape}")
        kind = kernel.lower() if isinstance(kernel, str) else kernel
        if not is_listed(kind, _KERNELS):
            raise ArgumentError(f"{_NAME}: kernel must be one of {', '.join(_KERNELS)}, got {quote(kernel)}")
        if epsilon is None and kind not in _SCALE_INVARIANT:
            raise ArgumentError(f"{_NAME}: epsilon must be given with kernel {kind!r}")
        self.kernel: str = kind
        self.epsilon = real_floats(_NAME, 1.0 if epsilon is None else epsilon, "epsilon")
        if self.epsilon.shape:
            raise ShapeError(f"{_NAME}: epsilon must be a number, got shape {self.epsilon.shape}")
        smooth = real_floats(_NAME, smoothing, "smoothing")
        if smooth.shape not in ((), (count,)):
            raise ShapeError(f"{_NAME}: smoothing must be a number or a vector of {count}, got shape {smooth.shape}")
        self.y, self.d, self.smoothing = points, values, shapes.broadcast_to(smooth, (count,))
        self.neighbors = None if neighbors is None else min(known_int(_NAME, "neighbors", neighbors), count)
        if self.neighbors is not None and self.neighbors < 1:
            raise ArgumentError(f"{_NAME}: neighbors must be positive, got {neighbors}")
        self._degree = max(_LEAST_DEGREE.get(kind, 0), 0) if degree is None else known_int(_NAME, "degree", degree)
        if self._degree < -1:
            raise ArgumentError(f"{_NAME}: degree must be at least -1, got {degree}")
        least = len(_monomials(n, self._degree))
        if least > (count if self.neighbors is None else self.neighbors):
            raise ArgumentError(
                f"{_NAME}: a polynomial of degree {self._degree} in {n} variables needs at least {least} points, got "
                f"{count if self.neighbors is None else self.neighbors}"
            )
        self._system: Any = self._solved() if self.neighbors is None else None

    def __repr__(self) -> str:
        return f"RBFInterpolator({self.y.shape[0]} points, {self.kernel})"

    def _columns(self, dtype: Any) -> Any:
        """Return the values as a matrix with a row for each point."""
        count = self.d.shape[0]
        return shapes.reshape(ops.convert_element_type(self.d, dtype), (count, math.prod(self.d.shape[1:])))

    def _solved(self) -> Any:
        dtype = dtypes.result_type(self.y.dtype, self.d.dtype)
        y, smoothing, epsilon = (
            ops.convert_element_type(v, dtypes.to_real(dtype)) for v in (self.y, self.smoothing, self.epsilon)
        )
        return self._system_of(y, self._columns(dtype), smoothing, epsilon)

    def _system_of(self, y: Any, d: Any, smoothing: Any, epsilon: Any) -> Any:
        """Return the shift and the scale of the polynomial's coordinates, and the coefficients (..., m + r, k).

        Args:
          y: the points, (..., m, n).
          d: the values, (..., m, k).
          smoothing: (..., m).
          epsilon: a number.
        """
        m, axis = y.shape[-2], len(y.shape) - 2
        low, high = reduce_min(y, (axis,)), reduce_max(y, (axis,))
        shift, scale = 0.5 * (high + low), 0.5 * (high - low)
        shift, scale = stop_gradient((shift, pnp.where(scale == 0, 1.0, scale)))
        squares = _squares(y * epsilon, y * epsilon)
        kernel = _KERNELS[self.kernel](squares) + smoothing[..., None] * np.eye(m, dtype=y.dtype)
        p = _polynomials((y - shift[..., None, :]) / scale[..., None, :], self._degree)
        r = p.shape[-1]
        turned = pnp.swapaxes(p, -1, -2)
        corner = pnp.zeros((*p.shape[:-2], r, r), p.dtype)
        matrix = pnp.concatenate(
            [pnp.concatenate([kernel, p], axis=-1), pnp.concatenate([turned, corner], axis=-1)], axis=-2
        )
        right = pnp.concatenate([d, pnp.zeros((*d.shape[:-2], r, d.shape[-1]), d.dtype)], axis=-2)
        coefficients = pnp.linalg.solve(matrix.astype(right.dtype), right)
        values = known(coefficients)
        if values is not None and values.size and not np.isfinite(values).all() and np.isfinite(known(right)).all():
            raise SingularMatrixError(
                f"{_NAME}: the matrix is singular: points are equal, or do not determine a polynomial of degree "
                f"{self._degree}"
            )
        return shift, scale, coefficients

    def __call__(self, x: ArrayLike) -> Array:
        """The values at some points.

        Args:
          x: the points, (q, n).

        Returns:
          An array (q, ...).

        Raises:
          ShapeError: points with other than n coordinates (a TypeError and a ValueError).
        """
        at = real_floats(_NAME, x, "the points")
        if len(at.shape) != 2 or at.shape[1] != self.y.shape[1]:
            raise ShapeError(f"{_NAME}: the points must have shape (q, {self.y.shape[1]}), got {at.shape}")
        at, y = promote_all(_NAME, (at, self.y))
        dtype = dtypes.result_type(at.dtype, self.d.dtype)
        real = dtypes.to_real(dtype)
        epsilon = ops.convert_element_type(self.epsilon, real)
        at, y = (ops.convert_element_type(v, real) for v in (at, y))
        if self.neighbors is None:
            shift, scale, coefficients = self._system
            out = self._evaluated(at, y, epsilon, shift.astype(real), scale.astype(real), coefficients.astype(dtype))
            return shapes.reshape(out, (at.shape[0], *self.d.shape[1:]))
        values = on_host(at, y, self.d, self.smoothing, epsilon)
        if values is not None and at.shape[0] and self.d.size:
            return as_array(self._by_scipy(*values).astype(dtype, copy=False))
        near = neighbours(stop_gradient(y), stop_gradient(at), self.neighbors)
        smoothing = ops.convert_element_type(self.smoothing, real)[near]
        system = self._system_of(y[near], self._columns(dtype)[near], smoothing, epsilon)
        out = self._evaluated(at[:, None, :], y[near], epsilon, *system)[:, 0]
        return shapes.reshape(out, (at.shape[0], *self.d.shape[1:]))

    def _by_scipy(self, x: Any, y: Any, d: Any, smoothing: Any, epsilon: Any) -> Any:
        theirs = imported("scipy.interpolate").RBFInterpolator
        arguments = (y, d, self.neighbors, smoothing.astype(np.float64), self.kernel, float(epsilon), self._degree)
        try:
            return theirs(*arguments)(x)
        except imported("numpy.linalg").LinAlgError as error:
            raise SingularMatrixError(f"{_NAME}: {error}") from None

    def _evaluated(self, x: Any, y: Any, epsilon: Any, shift: Any, scale: Any, coefficients: Any) -> Any:
        """Return the sum of the radial functions at (..., m, n) and of the polynomial, at the points (..., q, n)."""
        kernel = _KERNELS[self.kernel](_squares(x * epsilon, y * epsilon))
        p = _polynomials((x - shift[..., None, :]) / scale[..., None, :], self._degree)
        table = pnp.concatenate([kernel, p], axis=-1)
        return pnp.matmul(table.astype(coefficients.dtype), coefficients)


def _squares(x: Any, y: Any) -> Any:
    """Return the squares of the distances of points (..., q, n) and (..., m, n): (..., q, m)."""
    out: Any = None
    for i in range(x.shape[-1]):
        term = ops.square(x[..., :, None, i] - y[..., None, :, i])
        out = term if out is None else out + term
    return out


def _monomials(n: int, degree: int) -> list[tuple[int, ...]]:
    """Return the monomials of n variables up to a degree, each as its variables, repeated by their powers."""
    return [m for d in range(degree + 1) for m in combinations_with_replacement(range(n), d)]


def _polynomials(x: Any, degree: int) -> Any:
    """Return the values of all monomials up to a degree at the points (..., q, n): (..., q, r)."""
    columns = []
    for variables in _monomials(x.shape[-1], degree):
        out = pnp.ones_like(x[..., 0])
        for i in variables:
            out = out * x[..., i]
        columns.append(out)
    return pnp.stack(columns, axis=-1) if columns else pnp.zeros((*x.shape[:-1], 0), x.dtype)


def _flatten(f: RBFInterpolator) -> tuple[Any, Any]:
    return (f.y, f.d, f.smoothing, f.epsilon, f._system), (f.neighbors, f.kernel, f._degree)


def _unflatten(data: Any, children: Any) -> RBFInterpolator:
    f = object.__new__(RBFInterpolator)
    f.y, f.d, f.smoothing, f.epsilon, f._system = children
    f.neighbors, f.kernel, f._degree = data
    return f


tree.register_pytree_node(RBFInterpolator, _flatten, _unflatten)
