"""Piecewise polynomials, and cubic splines through values at points."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.array import as_array
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, known_int, promote_all, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.linalg.tridiagonal import tridiagonal_solve
from pullback.scipy.arguments import abscissas, check_increasing, floats, known, on_host, real_floats
from pullback.scipy.interpolate.bsplines import BSpline, axes_moved, doubles, extrapolation

__all__ = ["CubicSpline", "PPoly"]


class PPoly:
    """A piecewise polynomial: between ``x[i]`` and ``x[i + 1]`` it is the sum of ``c[k, i] (t - x[i])**(m - 1 - k)``.

    It is a pytree of its coefficients and its points, so that it may be passed to compiled functions.

    Args:
      c: the coefficients, (m, n - 1, ...), from the highest power to the constant.
      x: the points, a vector of n that increases strictly.
      extrapolate: whether the first and the last polynomial extend beyond the points; otherwise values are NaN there.
        ``"periodic"`` continues it with the period ``x[-1] - x[0]``.
      axis: the position of the axes of evaluation points in the result, among the axes of ``c`` after the first two.

    Raises:
      ShapeError: coefficients that do not fit the points (a TypeError and a ValueError).
      ArgumentError: points that do not increase (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import interpolate
    >>> parabola = interpolate.PPoly(jnp.array([[1.0], [0.0], [2.0]]), jnp.array([0.0, 1.0]))
    >>> print(parabola(0.5), parabola.derivative()(0.5), parabola.integrate(0.0, 1.0).round(4))
    2.25 1.0 2.3333
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        name = type(self).__name__
        c, x = floats(name, c), abscissas(name, x, "the points", 2)
        if len(c.shape) < 2 or not c.shape[0] or c.shape[1] != x.shape[0] - 1:
            raise ShapeError(
                f"{name}: the coefficients of {x.shape[0] - 1} pieces must have shape (m, {x.shape[0] - 1}, ...), got "
                f"{c.shape}"
            )
        check_increasing(name, x, "the points")
        self.c, self.x, self.extrapolate = c, x, extrapolation(name, True if extrapolate is None else extrapolate)
        self.axis = axis_index(axis, len(c.shape) - 1, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.x.shape[0] - 1} pieces of degree {self.c.shape[0] - 1})"

    def _of(self, c: Any) -> PPoly:
        """Return a piecewise polynomial with the coefficients ``c`` and the points and options of this one."""
        return unflatten(PPoly, (self.extrapolate, self.axis), (c, self.x))

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values at some points.

        Args:
          x: the points, an array of real numbers.
          nu: the order of the derivative; a negative one for the integral from ``x[0]``.
          extrapolate: instead of the setting of the polynomial.

        Returns:
          An array with the axes of ``x`` at ``axis``.
        """
        order = known_int("PPoly", "nu", nu)
        how = self.extrapolate if extrapolate is None else extrapolation("PPoly", extrapolate)
        if order:
            return (self.derivative(order) if order > 0 else self.antiderivative(-order))(x, 0, how)
        t, points = promote_all("PPoly", (real_floats("PPoly", x, "the points"), self.x))
        values = on_host(self.c, points, t)
        if values is not None and values[0].size and values[2].size:
            theirs = imported("scipy.interpolate").PPoly.construct_fast(*map(doubles, values[:2]), how)
            found = as_array(theirs(values[2]).astype(dtypes.result_type(self.c.dtype, t.dtype), copy=False))
            return axes_moved(found, len(t.shape), self.axis)
        n = points.shape[0]
        if how == "periodic":
            t = ops.add(points[0], pnp.mod(ops.sub(t, points[0]), ops.sub(points[-1], points[0])))
        after = pnp.searchsorted(points, t, side="right").astype(np.int32)
        i = ops.clamp_p.bind(0, ops.sub(after, 1), n - 2)
        local = ops.sub(t, points[i])
        if how is False:
            outside = ops.or_p.bind(ops.lt(t, points[0]), ops.gt(t, points[-1]))
            local = ops.where(outside, math.nan, local)
        extra = self.c.shape[2:]
        local = shapes.reshape(local, (*t.shape, *[1] * len(extra)))
        out = self.c[0][i]
        for k in range(1, self.c.shape[0]):
            out = pnp.add(pnp.multiply(out, local), self.c[k][i])
        if self.c.shape[0] == 1:
            out = pnp.add(out, ops.mul(local, 0.0))
        return axes_moved(out, len(t.shape), self.axis)

    @classmethod
    def from_spline(cls, tck: BSpline | tuple[Any, Any, int], extrapolate: Any = None) -> PPoly:
        """Return a spline as a piecewise polynomial, with a piece between each knot and the next.

        Knots that are equal make pieces of length zero, whose coefficients are zero.

        Args:
          tck: a :class:`BSpline`, or its knots, its coefficients and its degree.
          extrapolate: as for :class:`PPoly`; by default that of the spline.

        Returns:
          A :class:`PPoly`.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import interpolate
        >>> spline = interpolate.BSpline(jnp.arange(7.0), jnp.array([-1.0, 2.0, 0.0, -1.0]), 2)
        >>> print(interpolate.PPoly.from_spline(spline)(2.5))
        1.375
        """
        spline = tck if isinstance(tck, BSpline) else BSpline(*tck)
        if extrapolate is None:
            extrapolate = spline.extrapolate if isinstance(tck, BSpline) else True
        flat = _bspline_pieces(spline)
        return unflatten(cls, (extrapolation("PPoly", extrapolate), spline.axis), (flat, spline.t))

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative, as a piecewise polynomial.

        Args:
          nu: the order, an integer; a negative one for integrals.

        Returns:
          A :class:`PPoly`.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import interpolate
        >>> print(interpolate.PPoly(jnp.array([[1.0], [0.0], [2.0]]), jnp.array([0.0, 1.0])).derivative(2)(0.5))
        2.0
        """
        order = known_int("PPoly.derivative", "nu", nu)
        if order < 0:
            return self.antiderivative(-order)
        m = self.c.shape[0]
        if order >= m:
            return self._of(ops.mul(self.c[:1], 0.0))
        factors = np.array([math.perm(m - 1 - k, order) for k in range(m - order)], np.float64)
        column = factors.astype(dtypes.to_real(self.c.dtype)).reshape(-1, *[1] * (len(self.c.shape) - 1))
        return self._of(pnp.multiply(self.c[: m - order], column))

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the integral from the first point, as a piecewise polynomial.

        Args:
          nu: how many times to integrate, an integer; a negative one for derivatives.

        Returns:
          A :class:`PPoly`.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import interpolate
        >>> print(interpolate.PPoly(jnp.array([[2.0], [0.0]]), jnp.array([0.0, 1.0])).antiderivative()(0.5))
        0.25
        """
        order = known_int("PPoly.antiderivative", "nu", nu)
        if order < 0:
            return self.derivative(-order)
        out = self
        for _ in range(order):
            out = out._integrated()
        return out

    def _integrated(self) -> PPoly:
        m, extra = self.c.shape[0], len(self.c.shape) - 2
        powers = np.arange(m, 0, -1).astype(dtypes.to_real(self.c.dtype)).reshape(-1, *[1] * (extra + 1))
        c = pnp.divide(self.c, powers)
        width = shapes.reshape(pnp.diff(self.x), (self.x.shape[0] - 1, *[1] * extra))
        area = pnp.multiply(c[0], width)
        for k in range(1, m):
            area = pnp.multiply(pnp.add(area, c[k]), width)
        before = slicing.pad(pnp.cumsum(area, axis=0)[:-1], 0, [(1, 0, 0), *[(0, 0, 0)] * extra])
        out = self._of(pnp.concatenate([c, before[None]]))
        if self.extrapolate == "periodic":  # the integral is not periodic
            out.extrapolate = False
        return out

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from ``a`` to ``b``.

        Args:
          a, b: the limits, real numbers.
          extrapolate: instead of the setting of the polynomial.

        Returns:
          An array of the axes of ``c`` after the first two.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import interpolate
        >>> print(interpolate.PPoly(jnp.array([[2.0], [0.0]]), jnp.array([0.0, 1.0])).integrate(0.0, 0.5))
        0.25
        """
        how = self.extrapolate if extrapolate is None else extrapolation("PPoly.integrate", extrapolate)
        integral = self.antiderivative()

        def until(t: Any) -> Any:
            if how != "periodic":
                return integral(t, 0, how)
            start, period = self.x[0], ops.sub(self.x[-1], self.x[0])
            turns = pnp.floor(ops.div(ops.sub(t, start), period))
            rest = integral(ops.sub(t, ops.mul(turns, period)), 0, True)
            return pnp.add(rest, pnp.multiply(turns, integral(self.x[-1], 0, True)))

        a, b = (floats("PPoly.integrate", v) for v in (a, b))
        if a.shape or b.shape:
            raise ShapeError(f"PPoly.integrate: the limits must be numbers, got shapes {a.shape} and {b.shape}")
        return pnp.subtract(until(b), until(a))


def _bspline_pieces(spline: BSpline) -> Any:
    """Return the coefficients of a spline as a piecewise polynomial: its derivatives at its knots, by factorials."""
    terms = []
    for order in range(spline.k, -1, -1):
        at = spline(spline.t[:-1], order, True)
        rank = spline.axis
        at = shapes.transpose(at, [rank, *(i for i in range(len(at.shape)) if i != rank)])
        terms.append(ops.mul(1.0 / math.factorial(order), at))
    return pnp.stack(terms)


def flatten(f: PPoly) -> tuple[Any, Any]:
    return (f.c, f.x), (f.extrapolate, f.axis)


def unflatten(kind: Any, data: Any, children: Any) -> Any:
    f = object.__new__(kind)
    f.c, f.x = children
    f.extrapolate, f.axis = data
    return f


# Cubic splines -------------------------------------------------------------------------------------------------------


class CubicSpline(PPoly):
    """The cubic spline through values at points: a piecewise polynomial with two continuous derivatives.

    Args:
      x: the points, a vector of n at least 2 that increases strictly.
      y: the values, with n elements along an axis.
      axis: which axis of ``y``.
      bc_type: the conditions at the ends: ``"not-a-knot"``, the first two pieces are one polynomial, and the last two;
        ``"periodic"``, where the first and the last values are equal; ``"clamped"``, the derivative is zero;
        ``"natural"``, the second derivative is zero. Or a pair of these, except ``"periodic"``, for the two ends; an
        entry may be ``(order, value)``, a first or second derivative of the shape of ``y`` without the axis.
      extrapolate: as for :class:`PPoly`; ``"periodic"`` by default for periodic splines.

    Raises:
      ShapeError: values that do not fit the points (a TypeError and a ValueError).
      ArgumentError: points that do not increase, or conditions that make no sense (a TypeError and a ValueError).

    Source: de Boor 2001, *A Practical Guide to Splines*, chapter 4.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import interpolate
    >>> cube = interpolate.CubicSpline(jnp.arange(4.0), jnp.arange(4.0) ** 3)
    >>> print(cube(1.5).round(3), cube(1.5, 1).round(3))
    3.375 6.75
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        x = abscissas("CubicSpline", x, "the points", 2)
        y = floats("CubicSpline", y)
        check_increasing("CubicSpline", x, "the points")
        if not y.shape:
            raise ShapeError("CubicSpline: y must have at least one axis, got a number")
        where = axis_index(axis, len(y.shape), "CubicSpline")
        if y.shape[where] != x.shape[0]:
            raise ShapeError(
                f"CubicSpline: along axis {axis} y must have as many elements as there are points, {x.shape[0]}, got "
                f"shape {y.shape}"
            )
        y = shapes.moveaxis(y, where, 0)
        dtype = dtypes.promote_types(x.dtype, y.dtype)
        y, x = ops.convert_element_type(y, dtype), ops.convert_element_type(x, dtypes.to_real(dtype))
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        rest = y.shape[1:]
        flat = shapes.reshape(y, (y.shape[0], math.prod(rest)))
        width = shapes.expand_dims(pnp.diff(x), (1,))
        slope = pnp.divide(pnp.diff(flat, axis=0), width)
        if periodic:
            _check_periodic(flat)
            at = _periodic_slopes(pnp.diff(x), slope)
        else:
            at = _slopes(pnp.diff(x), slope, _conditions(bc_type, rest, dtype))
        c = hermite_pieces(flat, at, slope, width)
        self.c, self.x, self.axis = shapes.reshape(c, (4, x.shape[0] - 1, *rest)), x, where
        self.extrapolate = extrapolation(
            "CubicSpline", ("periodic" if periodic else True) if extrapolate is None else extrapolate
        )


def hermite_pieces(y: Any, at: Any, slope: Any, width: Any) -> Any:
    """Return the coefficients of cubics with given values and derivatives at their ends, (4, n - 1, m).

    Args:
      y: the values at the points, (n, m).
      at: the derivatives there.
      slope: the slopes of the secants, (n - 1, m).
      width: the lengths of the intervals, (n - 1, 1).
    """
    start, stop = at[:-1], at[1:]
    bend = pnp.divide(ops.sub(ops.add(start, stop), ops.mul(2.0, slope)), width)
    return pnp.stack([pnp.divide(bend, width), ops.sub(pnp.divide(ops.sub(slope, start), width), bend), start, y[:-1]])


_NAMED: dict[str, Any] = {"not-a-knot": None, "clamped": (1, 0.0), "natural": (2, 0.0)}


def _conditions(bc_type: Any, rest: Any, dtype: Any) -> list[Any]:
    """Parse the argument ``bc_type`` of a cubic spline: return a list of the conditions at the two ends.

    A condition is None ("not-a-knot"), or a pair of the order of a derivative and its values. ``rest`` is the shape of
    ``y`` without the axis of the points, to which the values broadcast.
    """
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentError(f"CubicSpline: bc_type must be a string or a pair of conditions, got {quote(bc_type)}")
    found: list[Any] = []
    for condition in pair:
        if isinstance(condition, str):
            if condition not in _NAMED:
                words = "'not-a-knot', 'periodic', 'clamped', 'natural'"
                raise ArgumentError(
                    f"CubicSpline: bc_type must be one of {words}, or (order, value), got {quote(bc_type)}"
                )
            condition = _NAMED[condition]
            if condition is None:
                found.append(None)
                continue
        if not isinstance(condition, (tuple, list)) or len(condition) != 2 or condition[0] not in (1, 2):
            raise ArgumentError(
                f"CubicSpline: a condition must be (1, value) or (2, value), a value of the first or second "
                f"derivative, got {quote(condition)}"
            )
        value = floats("CubicSpline", condition[1])
        if value.shape not in ((), rest):
            raise ShapeError(
                f"CubicSpline: the value of a derivative at an end must have the shape of y without the axis, "
                f"{rest}; got {value.shape}"
            )
        value = shapes.broadcast_to(ops.convert_element_type(value, dtype), rest)
        found.append((condition[0], shapes.reshape(value, (1, math.prod(rest)))))
    return found


def _column(x: Any) -> Any:
    return shapes.reshape(x, (x.shape[0], 1))


def _slopes(h: Any, slope: Any, ends: list[Any]) -> Any:
    """Return the first derivatives of a cubic spline at its points, (n, k), for k splines.

    They make the second derivative continuous.

    Args:
      h: the lengths of the intervals.
      slope: the slopes of the secants over the intervals, (n - 1, k).
      ends: for each end None ("not-a-knot"), or the order and the values of a derivative.
    """
    n = h.shape[0] + 1
    if n == 2:
        ends = [(1, slope) if e is None else e for e in ends]
    if n == 3 and ends == [None, None]:  # a parabola
        bend = pnp.divide(ops.sub(slope[1:], slope[:1]), pnp.sum(h))
        change = pnp.multiply(bend, h[0])
        return pnp.concatenate(
            [ops.sub(slope[:1], change), ops.add(slope[:1], change), ops.add(slope[1:], bend * h[1])]
        )
    left, right = h[:-1], h[1:]
    inner = ops.mul(3.0, ops.add(pnp.multiply(_column(right), slope[:-1]), pnp.multiply(_column(left), slope[1:])))
    first = _end(h, slope, ends[0], False)
    last = _end(h[::-1], slope[::-1], ends[1], True)
    diagonal = pnp.concatenate([first[0], ops.mul(2.0, ops.add(left, right)), last[0]])
    above = pnp.concatenate([first[1], left, pnp.zeros(1, h.dtype)])
    below = pnp.concatenate([pnp.zeros(1, h.dtype), right, last[1]])
    return _solved(below, diagonal, above, pnp.concatenate([first[2], inner, last[2]]))


def _end(h: Any, slope: Any, condition: Any, last: bool) -> tuple[Any, Any, Any]:
    """Return the linear equation for a condition at an end of a cubic spline.

    The equation is ``first * s0 + second * s1 = right``, where s0 is the derivative at the end, and s1 at its
    neighbour.

    Args:
      h: the lengths of the intervals, from this end on.
      slope: the slopes of the secants over the intervals, from this end on.
      condition: None ("not-a-knot"), or the order and the value of a derivative.
      last: whether the end is the right one.

    Returns:
      first, second and right, each with a first axis of size one.
    """
    if condition is None:
        both = ops.add(h[0], h[1])
        right = ops.add(
            pnp.multiply((h[0] + 2.0 * both) * h[1], slope[:1]),
            pnp.multiply(ops.square(h[0]), slope[1:2]),
        )
        return h[1:2], shapes.reshape(both, (1,)), pnp.divide(right, both)
    order, value = condition
    if order == 1:
        return pnp.ones(1, h.dtype), pnp.zeros(1, h.dtype), value
    half = ops.mul(0.5, pnp.multiply(value, ops.square(h[0])))
    rise = ops.mul(3.0, pnp.multiply(slope[:1], h[0]))
    return ops.mul(2.0, h[:1]), h[:1], ops.add(rise, half) if last else ops.sub(rise, half)


def _solved(below: Any, diagonal: Any, above: Any, right: Any) -> Any:
    dl, d, du = (ops.convert_element_type(v, right.dtype) for v in (below, diagonal, above))
    return tridiagonal_solve(dl, d, du, right)


def _periodic_slopes(h: Any, slope: Any) -> Any:
    """Return the first derivatives of a periodic cubic spline at its points, by the Sherman-Morrison formula.

    ``h`` has the lengths of the intervals, and ``slope`` the slopes of the secants over them.
    """
    m = h.shape[0]
    if m == 1:
        return pnp.zeros((2, slope.shape[1]), slope.dtype)
    before, slope_before = pnp.roll(h, 1), pnp.roll(slope, 1, axis=0)
    right = ops.mul(3.0, ops.add(pnp.multiply(_column(h), slope_before), pnp.multiply(_column(before), slope)))
    diagonal = ops.mul(2.0, ops.add(before, h))
    if m == 2:
        both = ops.add(before, h)
        found = _solved(both, diagonal, both, right)
    else:
        # Row i is h[i] s[i-1] + diagonal[i] s[i] + h[i-1] s[i+1]; the corners are u v', with u = (-d, .., h[-2]).
        corner, other = before[-1], h[0]
        d = diagonal[0]
        changed = pnp.concatenate([ops.mul(2.0, diagonal[:1]), diagonal[1:-1], diagonal[-1:] + corner * other / d])
        u = pnp.concatenate([-diagonal[:1], pnp.zeros(m - 2, h.dtype), before[-1:]])
        both_sides = pnp.concatenate([right, ops.convert_element_type(_column(u), right.dtype)], axis=1)
        solved = _solved(h, changed, before, both_sides)
        y, z = solved[:, :-1], solved[:, -1:]
        ratio = ops.neg(ops.div(other, d))
        along_y, along_z = (ops.add(v[:1], pnp.multiply(ratio, v[-1:])) for v in (y, z))
        found = ops.sub(y, pnp.multiply(z, pnp.divide(along_y, ops.add(1.0, along_z))))
    return pnp.concatenate([found, found[:1]])


def _check_periodic(flat: Any) -> None:
    values = known(flat)
    if values is not None and not np.allclose(
        values[0], values[-1], rtol=1e-6, atol=1e-6 * np.abs(values).max(initial=0)
    ):
        raise ArgumentError(
            "CubicSpline: the first and the last value of a periodic spline must be equal, got "
            f"{quote(values[0])} and {quote(values[-1])}"
        )


for _kind in (PPoly, CubicSpline):
    tree.register_pytree_node(_kind, flatten, partial(unflatten, _kind))
