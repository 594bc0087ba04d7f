"""Splines through values at points, or near them.

The coefficients solve equations with banded matrices, whose elements depend on the knots and on the points. So they
have derivatives by knots, points, values and weights. On concrete arrays they are SciPy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ShapeError, SingularMatrixError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import abscissas, check_increasing, floats, known, real_floats
from pullback.scipy.interpolate.banded import banded_solve, bands_of
from pullback.scipy.interpolate.bsplines import BSpline, basis, check_in_base, check_knots
from pullback.scipy.sparse.linalg.direct import settings_of, solved
from pullback.scipy.sparse.linalg.entries import Entries

__all__ = ["make_interp_spline", "make_lsq_spline", "make_smoothing_spline"]

_NAMED = {"clamped": 1, "natural": 2}


# long: half of it is its documentation
def make_interp_spline(
    x: ArrayLike,
    y: ArrayLike,
    k: int = 3,
    t: ArrayLike | None = None,
    bc_type: PyTree = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """Return the spline through values at points.

    It has derivatives by points, values, knots, and the values of the conditions, in both modes and to any order.

    Args:
      x: the points, a vector of n that increases strictly.
      y: the values, real or complex, with n elements along an axis.
      k: the degree.
      t: the knots, as many as the points and conditions determine: n + k + 1 and one for each condition. By default
        they follow from the points.
      bc_type: the conditions at the ends: None, none but the choice of knots ("not-a-knot"); "clamped", the first
        derivative is zero; "natural", the second one is; "periodic", all but the last derivatives are those of the
        other end. Or a pair, for the two ends, of such words or of lists of pairs ``(order, value)``.
      axis: which axis of ``y``.
      check_finite: accepted for compatibility.

    Returns:
      A :class:`BSpline`.

    Raises:
      ShapeError: values that do not fit the points, or too few points or knots (a TypeError and a ValueError).
      ArgumentError: points or knots that are not sorted, points out of the base interval, or conditions that do not fit
        (a TypeError and a ValueError).
      SingularMatrixError: no spline of these knots passes through all values (a RuntimeError and a ValueError). In
        transformed functions the coefficients are NaN then.
      UnsupportedArgumentError: knots of a periodic spline (a NotImplementedError).

    Source: de Boor 2001, *A Practical Guide to Splines*, chapter 13.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.interpolate import make_interp_spline
    >>> x = jnp.arange(6.0)
    >>> print(make_interp_spline(x, x**3)(2.5).round(3))
    15.625
    >>> print(grad(lambda y: make_interp_spline(x, y)(2.0))(x**3).round(3) + 0.0)
    [0. 0. 1. 0. 0. 0.]
    """
    name = "make_interp_spline"
    degree = known_int(name, "k", k)
    if degree < 0:
        raise ArgumentError(f"{name}: the degree k must not be negative, got {degree}")
    points, values, where, rest = _samples(name, x, y, axis, degree + 1)
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    left, right = _both_ends(name, bc_type, degree, rest, values.dtype)
    if degree < 2 and t is None:
        if left or right:
            raise ArgumentError(f"{name}: a spline of degree {degree} takes no conditions, got {quote(bc_type)}")
        knots = pnp.concatenate([points, points[-1:]] if degree == 0 else [points[:1], points, points[-1:]])
        return _spline(knots, shapes.reshape(values, (values.shape[0], *rest)), degree, where)
    if periodic:
        if t is not None:
            raise UnsupportedArgumentError(
                f"{name}: the knots of a periodic spline follow from the points; pass t=None"
            )
        _check_periodic(name, values)
    arrays = [points, values, *(value for _, value in (*left, *right)), *(() if t is None else (floats(name, t),))]
    if values.size and all(map(is_on_host, arrays)):
        conditions: Any = bc_type if periodic else tuple(
            [(order, host_value(value)) for order, value in end] or None for end in (left, right)
        )  # fmt: skip
        if t is not None:
            check_knots(name, t, degree)
        found = _by_scipy(
            name, "make_interp_spline", host_value(points), host_value(values), degree,
            None if t is None else host_value(floats(name, t)), conditions,
        )  # fmt: skip
        return _of_scipy(found, points.dtype, values.dtype, rest, where, "periodic" if periodic else True)
    if periodic:
        return _periodic(points, values, degree, rest, where)
    knots = _default_knots(points, degree, bool(left or right)) if t is None else check_knots(name, t, degree)
    count = knots.shape[0] - degree - 1
    if count != points.shape[0] + len(left) + len(right):
        raise ArgumentError(
            f"{name}: {knots.shape[0]} knots of degree {degree} need {count} values and conditions, got "
            f"{points.shape[0]} values and {len(left) + len(right)} conditions"
        )
    check_in_base(name, points, knots, degree, False)
    c = banded_solve(_collocation(points, knots, degree, left, right), _right_side(values, left, right))
    return _spline(knots, shapes.reshape(c, (count, *rest)), degree, where)


# long: half of it is its documentation
def make_lsq_spline(
    x: ArrayLike,
    y: ArrayLike,
    t: ArrayLike,
    k: int = 3,
    w: ArrayLike | None = None,
    axis: int = 0,
    check_finite: bool = True,
    *,
    method: str = "qr",
) -> BSpline:
    """Return the spline of given knots that is nearest to values at points, by least squares.

    It has derivatives by points, values, knots and weights. In transformed functions it solves the normal equations.

    Args:
      x: the points, a vector of m that increases strictly, in the base interval of the knots.
      y: the values, real or complex, with m elements along an axis.
      t: the knots, a vector of n + k + 1 that do not decrease. Each B-spline must have a point of its own, at which it
        is not zero (the conditions of Schoenberg and Whitney).
      k: the degree.
      w: positive weights, a vector of m, by which the differences are multiplied before they are squared; by default
        they are one.
      axis: which axis of ``y``.
      check_finite: accepted for compatibility.
      method: "qr" or "norm-eq", how SciPy solves for concrete arrays.

    Returns:
      A :class:`BSpline`.

    Raises:
      ShapeError: values or weights that do not fit the points, or too few knots (a TypeError and a ValueError).
      ArgumentError: points or knots that are not sorted, points out of the base interval, or an unknown method (a
        TypeError and a ValueError).
      SingularMatrixError: the points do not determine the spline (a RuntimeError and a ValueError). In transformed
        functions the coefficients are NaN then.

    Source: de Boor 2001, *A Practical Guide to Splines*, chapter 14.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import make_lsq_spline
    >>> x = jnp.linspace(0.0, 1.0, 9)
    >>> line = make_lsq_spline(x, 2 * x, jnp.array([0.0, 0.0, 0.5, 1.0, 1.0]), k=1)
    >>> print(line(0.25).round(4))
    0.5
    """
    name = "make_lsq_spline"
    degree = known_int(name, "k", k)
    if not is_listed(method, ("qr", "norm-eq")):
        raise ArgumentError(f"{name}: method must be 'qr' or 'norm-eq', got {quote(method)}")
    points, values, where, rest = _samples(name, x, y, axis, 1)
    knots = check_knots(name, t, degree)
    weights = _weights(name, w, points)
    check_in_base(name, points, knots, degree, False)
    if values.size and all(map(is_on_host, (points, values, knots, weights))):
        _check_schoenberg_whitney(name, host_value(points), host_value(knots), degree)
        options = {"method": method} if _knows_methods() else {}
        found = _by_scipy(
            name, "make_lsq_spline", *map(host_value, (points, values, knots)), degree, host_value(weights), **options
        )
        return _of_scipy(found, points.dtype, values.dtype, rest, where)
    n = knots.shape[0] - degree - 1
    knots, weights = (ops.convert_element_type(v, points.dtype) for v in (knots, weights))
    i, splines = basis(knots, points, degree)
    table = pnp.stack(splines, axis=1) * weights[:, None]
    columns = i[:, None] + np.arange(-degree, 1, dtype=np.int32)
    products = table[:, :, None] * table[:, None, :]
    rows_of, columns_of = (pnp.broadcast_to(v, products.shape) for v in (columns[:, :, None], columns[:, None, :]))
    bands = bands_of(rows_of, columns_of, products, degree, n)
    weighted = values * weights[:, None]
    right = pnp.zeros((n, values.shape[1]), values.dtype).at[columns].add(table[:, :, None] * weighted[:, None, :])
    return _spline(knots, shapes.reshape(banded_solve(bands, right), (n, *rest)), degree, where)


# long: half of it is its documentation
def make_smoothing_spline(
    x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None, lam: ArrayLike | None = None, *, axis: int = 0
) -> BSpline:
    """Return the natural cubic spline that is near to values at points, and smooth.

    It minimises the sum of the weighted squares of the differences, plus ``lam`` times the integral of the squared
    second derivative. It has derivatives by points, values, weights and ``lam``.

    Args:
      x: the points, a vector of n at least 5 that increases strictly.
      y: the values, real, with n elements along an axis.
      w: positive weights, a vector of n; by default they are one.
      lam: how much smoothness counts, a number that is not negative. By default generalised cross-validation chooses
        it, on concrete arrays only.
      axis: which axis of ``y``.

    Returns:
      A :class:`BSpline`.

    Raises:
      ShapeError: values or weights that do not fit the points, or fewer than 5 points (a TypeError and a ValueError).
      ArgumentError: points that do not increase, weights that are not positive, or a negative ``lam`` (a TypeError and
        a ValueError).
      UnsupportedArgumentError: ``lam`` is None and the arrays are traced (a NotImplementedError).

    Source: Reinsch 1967, "Smoothing by spline functions"; Green and Silverman 1994, *Nonparametric Regression and
    Generalized Linear Models*, chapter 2.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.interpolate import make_smoothing_spline
    >>> x = jnp.arange(6.0)
    >>> print(make_smoothing_spline(x, 2 * x, lam=1.0)(2.5).round(3))
    5.0
    """
    name = "make_smoothing_spline"
    points, values, where, rest = _samples(name, x, y, axis, 5)
    if dtypes.is_complex(values.dtype):
        raise ArgumentError(f"{name}: the values must be real; smooth real and imaginary parts by themselves")
    weights = _weights(name, w, points)
    arrays: Any = (points, values, weights)
    parameter: Any = None
    if lam is not None:
        parameter = ops.convert_element_type(real_floats(name, lam, "lam"), points.dtype)
        if parameter.shape:
            raise ShapeError(f"{name}: lam must be a number, got shape {parameter.shape}")
        smooth = known(parameter)
        if smooth is not None and not smooth >= 0:
            raise ArgumentError(f"{name}: lam must not be negative, got {smooth}")
        arrays = (*arrays, parameter)
    if values.size and all(map(is_on_host, arrays)):
        return _smoothed_by_scipy(points, values, weights, parameter, rest, where)
    if lam is None:
        raise UnsupportedArgumentError(
            f"{name}: generalised cross-validation chooses lam for concrete arrays only, and these are traced; pass lam"
        )
    fitted = _reinsch(points, values, weights, parameter)
    out = make_interp_spline(points, shapes.reshape(fitted, (points.shape[0], *rest)), 3, bc_type="natural")
    out.axis = where
    return out


# Arguments -----------------------------------------------------------------------------------------------------------


def _samples(name: str, x: Any, y: Any, axis: Any, least: int) -> tuple[Any, Any, int, Any]:
    """Check points and values; return them in real and in the common dtype, the axis, and the other axes.

    The values are returned as a matrix, with the axis of the points first.
    """
    x = abscissas(name, x, "the points", least)
    y = floats(name, y)
    check_increasing(name, x, "the points")
    if not y.shape:
        raise ShapeError(f"{name}: y must have at least one axis, got a number")
    where = axis_index(axis, len(y.shape), name)
    if y.shape[where] != x.shape[0]:
        raise ShapeError(
            f"{name}: along axis {axis} y must have as many elements as there are points, {x.shape[0]}, got shape "
            f"{y.shape}"
        )
    for array, what in ((x, "points"), (y, "values")):
        values = known(array)
        if values is not None and not np.isfinite(values).all():
            raise ArgumentError(f"{name}: the {what} must be finite, got {values[~np.isfinite(values)].flat[0]}")
    y = shapes.moveaxis(y, where, 0)
    dtype = dtypes.promote_types(x.dtype, y.dtype)
    y, x = ops.convert_element_type(y, dtype), ops.convert_element_type(x, dtypes.to_real(dtype))
    return x, shapes.reshape(y, (y.shape[0], math.prod(y.shape[1:]))), where, y.shape[1:]


def _weights(name: str, w: Any, x: Any) -> Any:
    if w is None:
        return pnp.ones_like(x)
    w = real_floats(name, w, "the weights")
    if w.shape != x.shape:
        raise ShapeError(f"{name}: there must be one weight for each of {x.shape[0]} points, got shape {w.shape}")
    values = known(w)
    if values is not None and not (values > 0).all():
        raise ArgumentError(f"{name}: the weights must be positive, got {values[~(values > 0)][0]}")
    return ops.convert_element_type(w, x.dtype)


def _both_ends(name: str, bc_type: Any, k: int, rest: Any, dtype: Any) -> tuple[list[Any], list[Any]]:
    """Return the conditions at the two ends: for each the order of a derivative, and its values as a row."""
    if bc_type is None or (isinstance(bc_type, str) and bc_type in ("not-a-knot", "periodic")):
        return [], []
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentError(f"{name}: bc_type must be a string or a pair of conditions, got {quote(bc_type)}")
    return _end(name, pair[0], k, rest, dtype), _end(name, pair[1], k, rest, dtype)


def _end(name: str, end: Any, k: int, rest: Any, dtype: Any) -> list[Any]:
    if end is None or (isinstance(end, str) and end == "not-a-knot"):
        return []
    if isinstance(end, str):
        if end not in _NAMED:
            raise ArgumentError(
                f"{name}: a condition must be 'not-a-knot', 'clamped', 'natural', 'periodic', or a list of pairs "
                f"(order, value), got {quote(end)}"
            )
        end = [(_NAMED[end], 0.0)]
    if not isinstance(end, (tuple, list)) or not all(isinstance(p, (tuple, list)) and len(p) == 2 for p in end):
        raise ArgumentError(
            f"{name}: the conditions at an end must be a list of pairs (order, value), got {quote(end)}"
        )
    found = []
    for order, value in end:
        order = known_int(name, "the order of a derivative", order)
        if not 0 <= order <= k:
            raise ArgumentError(f"{name}: the order of a derivative at an end must be from 0 to {k}, got {order}")
        value = floats(name, value)
        if value.shape not in ((), rest):
            raise ShapeError(
                f"{name}: the value of a derivative at an end must have the shape of y without the axis, {rest}, got "
                f"{value.shape}"
            )
        value = shapes.broadcast_to(ops.convert_element_type(value, dtype), rest)
        found.append((order, shapes.reshape(value, (math.prod(rest),))))
    return found


def _check_periodic(name: str, y: Any) -> None:
    values = known(y)
    if values is not None and not np.allclose(values[0], values[-1], atol=1e-15):
        raise ArgumentError(
            f"{name}: the first and the last value of a periodic spline must be equal, got {quote(values[0])} and "
            f"{quote(values[-1])}"
        )


def _check_schoenberg_whitney(name: str, x: Any, t: Any, k: int) -> None:
    """Raise if some B-spline of the knots ``t`` cannot be given a point of its own, at which it is not zero."""
    at = 0
    for j in range(len(t) - k - 1):
        first, last = t[j], t[j + k + 1]
        at = max(at, int(np.searchsorted(x, first, side="left" if first == t[j + k] else "right")))
        if at == len(x) or x[at] > last or (x[at] == last and t[j + 1] != last):
            raise SingularMatrixError(
                f"{name}: the points do not determine the spline: the B-spline of the knots from {first} to {last} has "
                f"no point of its own (the conditions of Schoenberg and Whitney)"
            )
        at += 1


# SciPy's fits --------------------------------------------------------------------------------------------------------


def _by_scipy(name: str, function: str, *args: Any, **options: Any) -> Any:
    """Call a function of ``scipy.interpolate``, with errors of ours."""
    try:
        return getattr(imported("scipy.interpolate"), function)(*args, **options)
    except imported("numpy.linalg").LinAlgError:
        raise SingularMatrixError(f"{name}: the points and knots do not determine the spline") from None
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from None


def _knows_methods() -> bool:
    """Whether SciPy's ``make_lsq_spline`` has the parameter ``method``; it is new in SciPy 1.15."""
    return tuple(map(int, imported("scipy").__version__.split(".")[:2])) >= (1, 15)


def _of_scipy(found: Any, real: Any, dtype: Any, rest: Any, where: int, how: Any = True) -> BSpline:
    c = found.c.astype(dtype, copy=False)
    return _spline(as_array(found.t.astype(real, copy=False)), as_array(c.reshape(len(c), *rest)), found.k, where, how)


def _smoothed_by_scipy(x: Any, y: Any, weights: Any, lam: Any, rest: Any, where: int) -> BSpline:
    columns, smooth = host_value(y), None if lam is None else float(host_value(lam))
    name = "make_smoothing_spline"
    arguments = [host_value(x).astype(np.float64), host_value(weights).astype(np.float64)]
    found = [
        _by_scipy(name, name, arguments[0], column.astype(np.float64), arguments[1], smooth) for column in columns.T
    ]
    c = np.stack([f.c for f in found], axis=1).astype(y.dtype)
    return _spline(as_array(found[0].t.astype(x.dtype)), as_array(c.reshape(len(c), *rest)), 3, where)


# Equations -----------------------------------------------------------------------------------------------------------


def _spline(t: Any, c: Any, k: int, where: int, how: Any = True) -> BSpline:
    """Return a spline whose axis is ``where``, that of the first axis of ``c``; ``how`` it extrapolates."""
    out = BSpline(t, c, k, how)
    out.axis = where
    return out


def _repeated(x: Any, count: int) -> Any:
    return pnp.broadcast_to(x, (count,))


def _default_knots(x: Any, k: int, conditions: bool) -> Any:
    """Return the knots of a spline through values at ``x``, with conditions at its ends or without."""
    if conditions:
        return pnp.concatenate([_repeated(x[0], k), x, _repeated(x[-1], k)])
    cut = (k + 1) // 2
    inner = x if k % 2 else ops.mul(0.5, x[1:] + x[:-1])
    inner = inner[cut : inner.shape[0] - cut]
    return pnp.concatenate([_repeated(x[0], k + 1), inner, _repeated(x[-1], k + 1)])


def _collocation(x: Any, t: Any, k: int, left: Any, right: Any) -> Any:
    """Return the bands of the matrix of conditions at the left end, of values, and of conditions at the right end."""
    groups = [(x[:1], order) for order, _ in left] + [(x, 0)] + [(x[-1:], order) for order, _ in right]
    found = [basis(t, points, k, order) for points, order in groups]
    i = pnp.concatenate([i for i, _ in found])
    table = pnp.concatenate([pnp.stack(weights, axis=1) for _, weights in found])
    rows = np.arange(table.shape[0], dtype=np.int32)[:, None]
    return bands_of(rows, i[:, None] + np.arange(-k, 1, dtype=np.int32), table, k, table.shape[0])


def _right_side(y: Any, left: Any, right: Any) -> Any:
    return pnp.concatenate([*(v[None] for _, v in left), y, *(v[None] for _, v in right)])


def _periodic(x: Any, y: Any, k: int, rest: Any, where: int) -> BSpline:
    """Return the periodic spline through values at points: the last k coefficients are the first ones."""
    count = x.shape[0] - 1
    if k % 2 == 0:
        width = pnp.diff(x)
        x_knots = pnp.concatenate([x[:1], x[1:-1] - 0.5 * width[:-1], x[-1:]])
    else:
        x_knots = x
    width = pnp.diff(x_knots)
    turns = np.arange(k, dtype=np.int32) % count
    before = x_knots[0] - pnp.cumsum(width[count - 1 - turns])[::-1]
    after = x_knots[-1] + pnp.cumsum(width[turns])
    t = pnp.concatenate([before, x_knots, after])
    i, weights = basis(t, x[:-1], k)
    table = pnp.stack(weights, axis=1)
    rows = pnp.broadcast_to(np.arange(count, dtype=np.int32)[:, None], table.shape)
    columns = (i[:, None] + np.arange(-k, 1, dtype=np.int32)) % np.int32(count)
    indices = pnp.stack([pnp.ravel(rows), pnp.ravel(columns)], axis=1)
    entries = Entries(ops.convert_element_type(pnp.ravel(table), y.dtype), indices, (count, count))
    c = solved(settings_of("make_interp_spline", "splu", None), entries, y[:-1])
    c = c[np.arange(count + k, dtype=np.int32) % count]
    return _spline(t, shapes.reshape(c, (count + k, *rest)), k, where, "periodic")


def _reinsch(x: Any, y: Any, w: Any, lam: Any) -> Any:
    """Return the values at the points of the smoothing spline, (n, m).

    With its second derivatives g at the inner points, the matrix Q of second differences and R of integrals of products
    of hat functions, ``(R + lam Q' W^-1 Q) g = Q' y``, and the values are ``y - lam W^-1 Q g``.
    """
    n = x.shape[0]
    inverse = 1.0 / pnp.diff(x)
    first, last = inverse[:-1], inverse[1:]
    columns = (first, -(first + last), last)  # the elements j, j + 1 and j + 2 of column j of Q
    width = pnp.diff(x)
    zero = pnp.zeros(1, x.dtype)
    diagonals = {0: (width[:-1] + width[1:]) / 3.0, 1: width[1:-1] / 6.0}  # those of R, which is symmetric
    scaled = 1.0 / w

    def bands(offset: int) -> Any:
        """Return the elements (j, j + offset) of R + lam Q' W^-1 Q."""
        terms = [
            columns[offset + s][: n - 2 - offset] * columns[s][offset:] * scaled[offset + s : n - 2 + s]
            for s in range(3 - offset)
        ]
        product = sum(terms[1:], terms[0]) * lam
        return product + diagonals[offset] if offset in diagonals else product

    upper = {d: bands(d) for d in range(3)}
    rows = [pnp.concatenate([*[zero] * d, upper[d]]) for d in (2, 1)]
    rows += [upper[0]] + [pnp.concatenate([upper[d], *[zero] * d]) for d in (1, 2)]
    second = columns[0][:, None] * y[:-2] + columns[1][:, None] * y[1:-1] + columns[2][:, None] * y[2:]
    g = banded_solve(pnp.stack(rows), second)
    spread = [columns[s][:, None] * g for s in range(3)]
    padded = [
        pnp.concatenate([pnp.zeros((s, g.shape[1]), g.dtype), v, pnp.zeros((2 - s, g.shape[1]), g.dtype)])
        for s, v in enumerate(spread)
    ]
    return y - lam * scaled[:, None] * (padded[0] + padded[1] + padded[2])
