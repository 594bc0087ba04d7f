"""Splines as sums of B-splines: ``BSpline``, with derivatives by knots, coefficients and points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.array import Array, ArrayLike, as_array, is_on_host
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, known_int, promote_all
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import abscissas, floats, known, on_host, real_floats
from pullback.transforms.checkpoint.barriers import optimization_barrier

__all__ = ["BSpline"]


class BSpline:
    """A spline of degree k: the sum of coefficients times the B-splines of a sequence of knots.

    It is a pytree of its knots and coefficients, so that it may be passed to compiled functions. Its values have
    derivatives by both and by the points, in both modes and to any order.

    Args:
      t: the knots, a vector of n + k + 1 numbers that do not decrease. The base interval is from ``t[k]`` to ``t[n]``.
      c: the coefficients, with at least n elements along an axis; real or complex.
      k: the degree, an integer.
      extrapolate: whether the first and the last polynomial extend beyond the base interval; otherwise values are NaN
        there. ``"periodic"`` continues it with the period ``t[n] - t[k]``.
      axis: which axis of ``c``; the axes of evaluation points take its place in the result.

    Attributes:
      t, k, extrapolate, axis: the arguments.
      c: the coefficients, with the axis moved to the front.

    Raises:
      ShapeError: knots that are no vector, or too few knots or coefficients (a TypeError and a ValueError).
      ArgumentError: knots that decrease or are all equal, or a negative degree (a TypeError and a ValueError).

    Source: de Boor 2001, *A Practical Guide to Splines*, chapters 9 and 10.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.interpolate import BSpline
    >>> spline = BSpline(jnp.arange(7.0), jnp.array([-1.0, 2.0, 0.0, -1.0]), 2)
    >>> print(spline(2.5), spline(2.5, 1), grad(spline)(2.5))
    1.375 0.5 0.5
    """

    def __init__(self, t: ArrayLike, c: ArrayLike, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.k = known_int("BSpline", "k", k)
        self.t = check_knots("BSpline", t, self.k)
        c = floats("BSpline", c)
        n = self.t.shape[0] - self.k - 1
        if not c.shape:
            raise ShapeError("BSpline: c must have at least one axis, got a number")
        self.axis = axis_index(axis, len(c.shape), "BSpline")
        if c.shape[self.axis] < n:
            raise ShapeError(
                f"BSpline: {self.t.shape[0]} knots of degree {self.k} need at least {n} coefficients along axis "
                f"{axis}, got shape {c.shape}"
            )
        self.c = shapes.moveaxis(c, self.axis, 0)
        self.extrapolate = extrapolation("BSpline", extrapolate)

    def __repr__(self) -> str:
        return f"BSpline({self.t.shape[0]} knots, degree {self.k})"

    @property
    def tck(self) -> tuple[Array, Array, int]:
        """The knots, the coefficients, and the degree."""
        return self.t, self.c, self.k

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: Any = None) -> Array:
        """The values at some points.

        Args:
          x: the points, an array of real numbers.
          nu: the order of the derivative, not negative.
          extrapolate: instead of the setting of the spline.

        Returns:
          An array of the shape of ``c`` in which the axes of ``x`` replace the axis.

        Raises:
          ArgumentError: a negative order (a TypeError and a ValueError).
        """
        order = known_int("BSpline", "nu", nu)
        if order < 0:
            raise ArgumentError(f"BSpline: nu must not be negative, got {order}; use antiderivative")
        how = self.extrapolate if extrapolate is None else extrapolation("BSpline", extrapolate)
        at = real_floats("BSpline", x, "the points")
        dtype = dtypes.result_type(at.dtype, self.t.dtype, self.c.dtype)
        values = on_host(self.t, self.c, at)
        if values is not None and values[2].size and order <= self.k:
            t, c, points = values
            theirs = imported("scipy.interpolate").BSpline.construct_fast(doubles(t), doubles(c), self.k, how)
            out = as_array(theirs(points, order).astype(dtype, copy=False))
        else:
            knots, at = promote_real(self.t, at)
            out = _values(knots, at, ops.convert_element_type(self.c, dtype), self.k, order, how)
        return axes_moved(out, len(at.shape), self.axis)  # type: ignore[no-any-return]

    def derivative(self, nu: int = 1) -> BSpline:
        """Return the derivative, as a spline.

        Args:
          nu: the order, an integer; a negative one for integrals.

        Returns:
          A :class:`BSpline` of a lower degree.

        Raises:
          ArgumentError: the order exceeds the degree, or knots are repeated so often that there is no derivative (a
            TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.interpolate import BSpline
        >>> print(BSpline(jnp.arange(7.0), jnp.array([-1.0, 2.0, 0.0, -1.0]), 2).derivative()(2.5))
        0.5
        """
        order = known_int("BSpline.derivative", "nu", nu)
        if order < 0:
            return self.antiderivative(-order)
        if order > self.k:
            raise ArgumentError(f"BSpline.derivative: the order {order} exceeds the degree of the spline, {self.k}")
        t, c, k = self.t, self.c[: self.t.shape[0] - self.k - 1], self.k
        for _ in range(order):
            width = ops.sub(t[k + 1 : -1], t[1 : -k - 1])
            values = known(width)
            if values is not None and (values == 0).any():
                raise ArgumentError(
                    f"BSpline.derivative: the spline has no derivative of order {order}, because the knot "
                    f"{known(t)[1 : -k - 1][values == 0][0]} is repeated more than {k} times"
                )
            slope = pnp.divide(pnp.diff(c, axis=0), column(width, c))
            t, c, k = t[1:-1], ops.mul(float(k), slope), k - 1
        return _of(self, t, c, k, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """Return the integral from the first knot, as a spline.

        Args:
          nu: how many times to integrate, an integer; a negative one for derivatives.

        Returns:
          A :class:`BSpline` of a higher degree; if this one is periodic, the integral does not extrapolate.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.interpolate import BSpline
        >>> print(BSpline(jnp.array([0.0, 0.0, 2.0, 2.0]), jnp.array([0.0, 2.0]), 1).antiderivative()(1.0))
        0.5
        """
        order = known_int("BSpline.antiderivative", "nu", nu)
        if order < 0:
            return self.derivative(-order)
        t, c, k = self.t, self.c[: self.t.shape[0] - self.k - 1], self.k
        for _ in range(order):
            width = ops.sub(t[k + 1 :], t[: -k - 1])
            areas = pnp.cumsum(pnp.multiply(c, column(width, c)), axis=0) * (1.0 / (k + 1))
            c = pnp.concatenate([pnp.zeros_like(areas[:1]), areas])
            t, k = pnp.concatenate([t[:1], t, t[-1:]]), k + 1
        how = False if order and self.extrapolate == "periodic" else self.extrapolate
        return _of(self, t, c, k, how)

    def integrate(self, a: ArrayLike, b: ArrayLike, extrapolate: Any = None) -> Array:
        """The integral from ``a`` to ``b``.

        Args:
          a, b: the limits, real numbers.
          extrapolate: instead of the setting of the spline. Without extrapolation the spline is zero outside of its
            base interval.

        Returns:
          An array of the axes of ``c`` after the first.

        Raises:
          ShapeError: limits that are no numbers (a TypeError and a ValueError).

        >>> from pullback.scipy.interpolate import BSpline
        >>> print(BSpline.basis_element([0.0, 1.0, 2.0]).integrate(0.0, 1.0))
        0.5
        """
        how = self.extrapolate if extrapolate is None else extrapolation("BSpline.integrate", extrapolate)
        a, b = (real_floats("BSpline.integrate", v, "the limits") for v in (a, b))
        if a.shape or b.shape:
            raise ShapeError(f"BSpline.integrate: the limits must be numbers, got shapes {a.shape} and {b.shape}")
        whole = self.antiderivative()
        start, stop = self.t[self.k], self.t[self.t.shape[0] - self.k - 1]

        def until(v: Any) -> Any:
            if how == "periodic":
                turns = pnp.floor((v - start) / (stop - start))
                rest = whole(v - turns * (stop - start), 0, True)
                return rest + turns * (whole(stop, 0, True) - whole(start, 0, True))
            return whole(v if how else pnp.clip(v, start, stop), 0, True)

        return pnp.subtract(until(b), until(a))

    @classmethod
    def basis_element(cls, t: ArrayLike, extrapolate: Any = True) -> BSpline:
        """Return the B-spline of degree ``len(t) - 2`` of some knots.

        Args:
          t: the knots, a vector of at least two numbers that do not decrease.
          extrapolate: as for :class:`BSpline`.

        Returns:
          A :class:`BSpline`.

        Raises:
          ShapeError: knots that are no vector of at least two (a TypeError and a ValueError).

        >>> from pullback.scipy.interpolate import BSpline
        >>> print(BSpline.basis_element([0.0, 1.0, 2.0, 3.0])(1.5))
        0.75
        """
        inner = abscissas("BSpline.basis_element", t, "the knots", 2)
        k = inner.shape[0] - 2
        knots = pnp.concatenate([pnp.broadcast_to(inner[:1] - 1, (k,)), inner, pnp.broadcast_to(inner[-1:] + 1, (k,))])
        return cls(knots, (np.arange(2 * k + 1) == k).astype(inner.dtype), k, extrapolate)

    @classmethod
    def design_matrix(cls, x: ArrayLike, t: ArrayLike, k: int, extrapolate: Any = False) -> Array:
        """Return the values of all B-splines of some knots at some points.

        Args:
          x: the points, a vector of m.
          t: the knots, a vector of n + k + 1 that do not decrease.
          k: the degree.
          extrapolate: as for :class:`BSpline`; without, points out of the base interval are errors if they are known,
            and their rows are NaN otherwise.

        Returns:
          An array (m, n). It is dense; SciPy's is sparse.

        Raises:
          ArgumentError: points out of the base interval (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.interpolate import BSpline
        >>> print(BSpline.design_matrix(jnp.array([1.5]), jnp.arange(5.0), 1))
        [[0.5 0.5 0. ]]
        """
        name = "BSpline.design_matrix"
        degree = known_int(name, "k", k)
        points, knots = abscissas(name, x, "the points", 0), check_knots(name, t, degree)
        how = extrapolation(name, extrapolate)
        check_in_base(name, points, knots, degree, how)
        knots, points = promote_real(knots, points)
        n = knots.shape[0] - degree - 1
        if how == "periodic":
            points = wrapped(knots, points, degree)
        i, weights = basis(knots, points, degree)
        table = pnp.stack(weights, axis=1)
        columns = i[:, None] + np.arange(-degree, 1, dtype=np.int32)
        rows = np.arange(points.shape[0], dtype=np.int32)[:, None]
        out: Any = pnp.zeros((points.shape[0], n), table.dtype).at[rows, columns].set(table)
        if how is not False:
            return out  # type: ignore[no-any-return]
        outside = ops.or_p.bind(ops.lt(points, knots[degree]), ops.gt(points, knots[n]))
        return ops.where(outside[:, None], math.nan, out)  # type: ignore[no-any-return]


def doubles(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return NumPy's array in double precision, contiguous, as SciPy's classes need it that check nothing."""
    return np.ascontiguousarray(x, np.complex128 if x.dtype.kind == "c" else np.float64)


def extrapolation(name: str, value: Any) -> Any:
    """Return True, False or "periodic", or raise."""
    if value not in (True, False, "periodic"):
        raise ArgumentError(f"{name}: extrapolate must be True, False or 'periodic', got {value!r}")
    return value if value == "periodic" else bool(value)


def check_knots(name: str, t: Any, k: int) -> Any:
    """Convert ``t`` to a vector of knots for a spline of degree ``k``, or raise."""
    t = real_floats(name, t, "the knots")
    if k < 0:
        raise ArgumentError(f"{name}: the degree k must not be negative, got {k}")
    if len(t.shape) != 1 or t.shape[0] < 2 * k + 2:
        raise ShapeError(f"{name}: the knots of degree {k} must be a vector of at least {2 * k + 2}, got {t.shape}")
    values = known(t)
    if values is not None:
        if not np.isfinite(values).all():
            raise ArgumentError(f"{name}: the knots must be finite, got {values[~np.isfinite(values)][0]}")
        if (np.diff(values) < 0).any():
            i = int(np.flatnonzero(np.diff(values) < 0)[0])
            raise ArgumentError(
                f"{name}: the knots must not decrease, got {values[i]} and then {values[i + 1]} at positions {i} and "
                f"{i + 1}"
            )
        if values[k] == values[len(values) - k - 1]:
            raise ArgumentError(f"{name}: the base interval is empty, its knots are all {values[k]}")
    return t


def check_in_base(name: str, x: Any, t: Any, k: int, how: Any) -> None:
    """Raise if known points are out of the base interval and there is no extrapolation."""
    values, knots = known(x), known(t)
    if how is not False or values is None or knots is None:
        return
    low, high = knots[k], knots[len(knots) - k - 1]
    outside = (values < low) | (values > high)
    if outside.any():
        raise ArgumentError(f"{name}: the point {values[outside][0]} is out of bounds, from {low} to {high}")


def promote_real(*arrays: Any) -> list[Any]:
    """Convert real arrays to their common dtype."""
    return list(promote_all("BSpline", arrays))


def column(x: Any, like: Any) -> Any:
    """Append axes of size one to a vector until it has the rank of ``like``."""
    return shapes.reshape(x, (x.shape[0], *[1] * (len(like.shape) - 1)))


def axes_moved(out: Any, rank: int, axis: int) -> Any:
    """Move the first ``rank`` axes of ``out`` behind the next ``axis`` ones."""
    if not axis:
        return out
    order = [*range(rank, rank + axis), *range(rank), *range(rank + axis, len(out.shape))]
    return shapes.transpose(out, order)


def wrapped(t: Any, x: Any, k: int) -> Any:
    """Move points by periods into the base interval."""
    start, stop = t[k], t[t.shape[0] - k - 1]
    return start + pnp.mod(x - start, stop - start)


def intervals(t: Any, x: Any, k: int) -> Any:
    """Return, for each point, the position of the last knot before it, in the base interval."""
    n = t.shape[0] - k - 1
    inner = t[k + 1 : n]
    after = pnp.searchsorted(inner, x, side="right").astype(np.int32)
    first = pnp.searchsorted(inner, t[k], side="right").astype(np.int32)
    last = pnp.searchsorted(inner, t[n], side="left").astype(np.int32)
    return ops.add(np.int32(k), ops.clamp_p.bind(first, after, last))


def _kept(arrays: list[Any]) -> list[Any]:
    """Return arrays that a compiled program computes once; arrays that are concrete as they are."""
    return arrays if any(map(is_on_host, arrays)) else list(optimization_barrier(arrays))


def basis(t: Any, x: Any, k: int, nu: int = 0) -> tuple[Any, list[Any]]:
    """Return, for each point, the interval and the k + 1 B-splines that are not zero there, or their derivatives.

    Every difference of knots that divides contains the interval, so that it is not zero, however often knots repeat.

    Args:
      t: the knots.
      x: the points, any shape.
      k: the degree.
      nu: the order of the derivative.

    Returns:
      The position i of the last knot before each point, and the values of the B-splines i - k to i.
    """
    i = intervals(t, x, k)
    if nu > k:
        return i, [ops.mul(x, 0.0) for _ in range(k + 1)]
    # Without barriers the compiler would compute the gathered knots and the weights again wherever they are used.
    near = dict(enumerate(_kept([t[i + np.int32(j)] for j in range(1 - k, k + 1)]), 1 - k))
    weights: list[Any] = [pnp.ones_like(x)]
    for d in range(1, k - nu + 1):
        raised: list[Any] = []
        carried: Any = None
        for r in range(d):
            low, high = near[r + 1 - d], near[r + 1]
            share = weights[r] / (high - low)
            left = (high - x) * share
            raised.append(left if carried is None else carried + left)
            carried = (x - low) * share
        weights = _kept([*raised, carried])
    for d in range(k - nu + 1, k + 1):  # the derivative of a B-spline is a difference of two of a lower degree
        shares = [weights[r] * d / (near[r + 1] - near[r + 1 - d]) for r in range(d)]
        weights = [-shares[0], *(shares[r - 1] - shares[r] for r in range(1, d)), shares[-1]]
    return i, weights


def _values(t: Any, x: Any, c: Any, k: int, nu: int, how: Any) -> Any:
    """Return the values of a spline, or of a derivative; the axes of ``x`` come first."""
    n = t.shape[0] - k - 1
    bad = ops.ne_p.bind(x, x)
    if how == "periodic":
        x = wrapped(t, x, k)
    elif how is False:
        bad = ops.or_p.bind(bad, ops.or_p.bind(ops.lt(x, t[k]), ops.gt(x, t[n])))
    i, weights = basis(t, x, k, nu)
    wide = [1] * (len(c.shape) - 1)
    out: Any = None
    for j, w in enumerate(weights):
        term = pnp.multiply(shapes.reshape(w, (*x.shape, *wide)), c[i + np.int32(j - k)])
        out = term if out is None else pnp.add(out, term)
    return ops.where(shapes.reshape(bad, (*x.shape, *wide)), math.nan, out)


def _of(like: BSpline, t: Any, c: Any, k: int, how: Any) -> BSpline:
    return _unflatten((k, how, like.axis), (t, c))


def _flatten(f: BSpline) -> tuple[Any, Any]:
    return (f.t, f.c), (f.k, f.extrapolate, f.axis)


def _unflatten(data: Any, children: Any) -> BSpline:
    f = object.__new__(BSpline)
    f.t, f.c = children
    f.k, f.extrapolate, f.axis = data
    return f


tree.register_pytree_node(BSpline, _flatten, _unflatten)
