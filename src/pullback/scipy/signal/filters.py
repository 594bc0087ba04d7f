"""Filters along an axis: recursive filters, by coefficients or in sections, and smoothing by polynomials."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, ArrayLike, as_array
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.trace import Tracer
from pullback.core.types import Shape
from pullback.numpy.promotion import axis_index, known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry, conv_general_dilated_p
from pullback.primitives.signals.recursive_filter import moving_sum, recursive_filter
from pullback.scipy.arguments import on_host
from pullback.scipy.signal.arguments import constant, default_floats, of_scipy, promoted_arrays, real_number

__all__ = ["lfilter", "lfilter_zi", "savgol_coeffs", "savgol_filter", "sosfilt"]

# Recursive filters ---------------------------------------------------------------------------------------------------


def _coefficients(name: str, b: Any, a: Any) -> tuple[Array, Array]:
    """Check the coefficients ``b`` and ``a`` of a filter, and return both divided by the first element of ``a``."""
    for what, v in (("b", b), ("a", a)):
        if len(v.shape) != 1 or not v.shape[0]:
            raise ShapeError(f"{name}: the coefficients {what} must be a non-empty vector, got shape {v.shape}")
    first = slicing.slice_in_dim(a, 0, 1, 0)
    known = first.concrete() if isinstance(first, Tracer) else first
    if known is not None and not np.asarray(known).all():
        raise ArgumentError(
            f"{name}: the first coefficient of a must not be zero, because the others are divided by it; got {a}"
        )
    if known is not None and not isinstance(first, Tracer) and np.asarray(known)[0] == 1:
        return b, a
    return ops.div(b, first), ops.div(a, first)


@overload
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: None = None) -> Array: ...
@overload
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, *, zi: ArrayLike) -> tuple[Array, Array]: ...
@overload
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int, zi: ArrayLike) -> tuple[Array, Array]: ...
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """A recursive filter: ``a[0] y[n] = Σ b[k] x[n-k] - Σ a[k] y[n-k]``, the second sum from k = 1.

    It can be differentiated with respect to the coefficients, the signal and the initial state, in both modes.

    Args:
      b: the coefficients of the numerator, a vector.
      a: the coefficients of the denominator, a vector whose first element is not zero.
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      axis: along which axis to filter.
      zi: the initial state of the transposed direct form II, as in SciPy; at rest by default. It has the shape of
        ``x``, with max(len(a), len(b)) - 1 elements along the axis; other sizes may be 1, and are repeated.

    Returns:
      The filtered signal, of the shape of ``x``; with ``zi`` also the final state.

    Raises:
      ShapeError: coefficients that are no vectors or are empty, an axis out of range, or a state of another shape (a
        TypeError and a ValueError).
      ArgumentError: the first element of ``a`` is zero (a TypeError and a ValueError).

    Source: Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 6.3.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.lfilter(jnp.array([1.0]), jnp.array([1.0, -0.5]), jnp.array([1.0, 0.0, 0.0, 4.0])))
    [1.    0.5   0.25  4.125]
    """
    if zi is None:
        b, a, x = promoted_arrays("lfilter", b, a, x)
    else:
        b, a, x, zi = promoted_arrays("lfilter", b, a, x, zi)
    where = axis_index(axis, len(x.shape), "lfilter")
    found = _on_host(b, a, x, where, zi)
    if found is not None:
        return found
    b, a = _coefficients("lfilter", b, a)
    last = len(x.shape) - 1
    y, state = _filtered("lfilter", b, a, shapes.moveaxis(x, where, last), _moved(zi, where))
    y = shapes.moveaxis(y, last, where)
    return y if zi is None else (y, shapes.moveaxis(state, last, where))


def _on_host(b: Any, a: Any, x: Any, axis: int, zi: Any) -> Any:
    """Return what :func:`lfilter` returns, by SciPy, if all arrays are concrete and fit; else None."""
    found = on_host(b, a, x, *(() if zi is None else (zi,)))
    if found is None or not x.size or len(b.shape) != 1 or len(a.shape) != 1 or not b.size or not found[1][:1].all():
        return None
    order = max(b.shape[0], a.shape[0]) - 1
    if zi is not None and zi.shape != (*x.shape[:axis], order, *x.shape[axis + 1 :]):
        return None
    out = imported("scipy.signal").lfilter(*found[:3], axis, *found[3:])
    return tuple(constant(v, x.dtype) for v in out) if zi is not None else constant(out, x.dtype)


def _moved(zi: Any, axis: int) -> Any:
    """Return the state ``zi`` with ``axis`` moved last; None if ``zi`` is None."""
    return zi if zi is None or axis >= len(zi.shape) else shapes.moveaxis(zi, axis, len(zi.shape) - 1)


def _filtered(name: str, b: Any, a: Any, x: Any, zi: Any) -> tuple[Any, Any]:
    """Filter ``x`` along the last axis, with ``a[0] == 1``; return the result y, and the final state.

    A state, as in ``scipy.signal.lfilter``, has a number for each of the next elements of y: the sum of the terms that
    contain earlier elements of x and y. ``zi`` is the initial state. If it is None, the final state is None too.
    """
    n, order = x.shape[-1], max(b.shape[0], a.shape[0]) - 1
    u = moving_sum(b, x)
    if zi is not None:
        zi = _broadcast_state(name, zi, (*x.shape[:-1], order))
        u = ops.add(u, _resized(zi, n))
    y = u
    if a.shape[0] > 1:
        y = recursive_filter(slicing.slice_in_dim(a, 1, a.shape[0], 0), u)
    if zi is None:
        return y, None
    after = ops.sub(_tail(b, x, order), _tail(a, y, order))
    last = len(x.shape) - 1
    return y, ops.add(after, _resized(slicing.slice_in_dim(zi, min(n, order), order, last), order))


def _broadcast_state(name: str, zi: Any, shape: Shape) -> Any:
    fits = len(zi.shape) == len(shape) and all(have in (1, want) for have, want in zip(zi.shape, shape, strict=True))
    if not fits or zi.shape[-1] != shape[-1]:
        raise ShapeError(
            f"{name}: the initial state zi must have shape {shape}, with the filtered axis last, or 1 to repeat a "
            f"size; got {zi.shape}"
        )
    return shapes.broadcast_to(zi, shape)


def _resized(x: Any, n: int) -> Any:
    """Cut ``x`` off along the last axis, or pad it with zeros at the end, to ``n`` elements."""
    last = len(x.shape) - 1
    if x.shape[last] >= n:
        return slicing.slice_in_dim(x, 0, n, last)
    return slicing.pad(x, 0, [*[(0, 0, 0)] * last, (0, n - x.shape[last], 0)])


def _tail(b: Any, x: Any, order: int) -> Any:
    """Return the sums ``Σ b[k] x[n-k]`` for the first ``order`` indices n after the end of ``x``, where x is zero."""
    n, last = x.shape[-1], len(x.shape) - 1
    recent = slicing.slice_in_dim(x, max(n - order, 0), n, last)
    padded = slicing.pad(recent, 0, [*[(0, 0, 0)] * last, (max(order - n, 0), order, 0)])
    return slicing.slice_in_dim(moving_sum(b, padded), order, 2 * order, last)


def lfilter_zi(b: ArrayLike, a: ArrayLike) -> Array:
    """The initial state of :func:`lfilter` for which its response to a step of height 1 is constant.

    Args:
      b: the coefficients of the numerator, a vector.
      a: the coefficients of the denominator, a vector whose first element is not zero and whose sum is not zero.

    Returns:
      A vector of max(len(a), len(b)) - 1 elements.

    Raises:
      ShapeError: coefficients that are no vectors or are empty (a TypeError and a ValueError).
      ArgumentError: the first element of ``a`` is zero (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> b, a = jnp.array([1.0, 1.0]), jnp.array([1.0, -0.5])
    >>> print(signal.lfilter_zi(b, a), signal.lfilter(b, a, jnp.ones(3), zi=signal.lfilter_zi(b, a))[0])
    [3.] [4. 4. 4.]
    """
    b, a = _coefficients("lfilter_zi", *promoted_arrays("lfilter_zi", b, a))
    size = max(b.shape[0], a.shape[0])
    b, a = _resized(b, size), _resized(a, size)
    gain = ops.div(pnp.sum(b), pnp.sum(a))
    # z[k] is the sum of b[j] - gain a[j] over the j after k.
    rest = ops.sub(b, ops.mul(gain, a))
    return slicing.slice_in_dim(pnp.flip(pnp.cumsum(pnp.flip(rest))), 1, size, 0)


@overload
def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, zi: None = None) -> Array: ...
@overload
def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, *, zi: ArrayLike) -> tuple[Array, Array]: ...
@overload
def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int, zi: ArrayLike) -> tuple[Array, Array]: ...
def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """A recursive filter in sections of second order, one after the other, with smaller errors than :func:`lfilter`.

    It can be differentiated with respect to the coefficients, the signal and the initial state, in both modes.

    Args:
      sos: the sections, (sections, 6): three coefficients of the numerator, and three of the denominator, the first of
        them not zero.
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      axis: along which axis to filter.
      zi: the initial states, (sections, ..., 2, ...): for each section the shape of ``x``, with 2 elements along the
        axis; at rest by default.

    Returns:
      The filtered signal, of the shape of ``x``; with ``zi`` also the final states.

    Raises:
      ShapeError: sections or states of another shape, or an axis out of range (a TypeError and a ValueError).
      ArgumentError: a denominator begins with zero (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> sections = jnp.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0], [2.0, 0.0, 0.0, 1.0, 0.0, 0.0]])
    >>> print(signal.sosfilt(sections, jnp.array([1.0, 0.0, 0.0, 4.0])))
    [2.   1.   0.5  8.25]
    """
    sos, x, *rest = promoted_arrays("sosfilt", sos, x, *(() if zi is None else (zi,)))
    where, last = axis_index(axis, len(x.shape), "sosfilt"), len(x.shape) - 1
    if len(sos.shape) != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        raise ShapeError(f"sosfilt: the sections sos must have shape (n, 6), n at least 1, got {sos.shape}")
    count = sos.shape[0]
    if rest and (len(rest[0].shape) != last + 2 or rest[0].shape[0] != count):
        raise ShapeError(
            f"sosfilt: the initial states zi must have {last + 2} axes, the first of size {count}, got shape "
            f"{rest[0].shape}"
        )
    found = on_host(sos, x, *rest)
    states_fit = not rest or rest[0].shape == (count, *x.shape[:where], 2, *x.shape[where + 1 :])
    if found is not None and x.size and states_fit and found[0][:, 3].all() and not dtypes.is_complex(sos.dtype):
        out = imported("scipy.signal").sosfilt(found[0] / found[0][:, 3:4], found[1], where, *found[2:])
        return tuple(constant(v, x.dtype) for v in out) if rest else constant(out, x.dtype)
    y, states = shapes.moveaxis(x, where, last), []
    for k in range(count):
        section = shapes.reshape(slicing.slice_in_dim(sos, k, k + 1, 0), (6,))
        b, a = (slicing.slice_in_dim(section, i, i + 3, 0) for i in (0, 3))
        b, a = _coefficients("sosfilt", b, a)
        y, state = _filtered("sosfilt", b, a, y, _moved(rest[0][k], where) if rest else None)
        states.append(state)
    y = shapes.moveaxis(y, last, where)
    return (y, pnp.stack([shapes.moveaxis(s, last, where) for s in states])) if rest else y


# Smoothing -----------------------------------------------------------------------------------------------------------

_EDGES = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


def _fitted(window: int, order: int, deriv: int, positions: Any) -> np.ndarray[Any, Any]:
    """Return the matrix that maps the samples in a window to a derivative of the polynomial fitted to the samples.

    Args:
      window: the number of samples, which is the number of columns.
      order: the degree of the polynomial.
      deriv: the order of the derivative.
      positions: the indices, perhaps fractional, of the points in the window at which to evaluate the derivative, one
        for each row.
    """
    scale = max((window - 1) / 2, 1.0)
    points = (np.arange(window) - (window - 1) / 2) / scale
    basis = np.polynomial.legendre.legvander(points, order)
    q, r = np.linalg.qr(basis)
    where = (np.asarray(positions, np.float64) - (window - 1) / 2) / scale
    unit = np.eye(order + 1)
    values = np.stack(
        [np.polynomial.legendre.legval(where, np.polynomial.legendre.legder(e, deriv)) for e in unit], axis=-1
    )
    return np.linalg.solve(r.T, values.T).T @ q.T / scale**deriv


# long: half of it is its documentation
def savgol_filter(
    x: ArrayLike, window_length: int, polyorder: int, deriv: int = 0, delta: ArrayLike = 1.0, axis: int = -1,
    mode: str = "interp", cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Smooth a signal: replace each element by the value of the polynomial that fits its neighbourhood best.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      window_length: the number of elements to which a polynomial is fitted.
      polyorder: its degree, less than ``window_length``.
      deriv: the order of the derivative of the polynomial to take, an integer; 0 for its value.
      delta: the distance between elements, a number, for derivatives.
      axis: the axis along which the signal runs, an integer.
      mode: the treatment of the ends: ``"interp"`` uses the polynomials of the first and the last window; the others
        extend the signal by its mirror image (``"mirror"``), its last element (``"nearest"``), itself (``"wrap"``), or
        ``cval`` (``"constant"``).
      cval: a number.

    Returns:
      An array of the shape of ``x``.

    Raises:
      ShapeError: an axis out of range, or with ``"interp"`` a window longer than the axis (a TypeError and a
        ValueError).
      ArgumentError: a degree, a derivative or a window that make no sense, or an unknown mode (a TypeError and a
        ValueError).

    Source: Savitzky and Golay 1964.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.savgol_filter(jnp.array([2.0, 2.0, 5.0, 2.0, 1.0, 0.0, 1.0]), 5, 2).round(3))
    [1.657 3.171 3.543 2.857 0.657 0.229 0.943]
    """
    (x,) = promoted_arrays("savgol_filter", x)
    where, last = axis_index(axis, len(x.shape), "savgol_filter"), len(x.shape) - 1
    window, order, deriv = (
        known_int("savgol_filter", what, v)
        for what, v in (("window_length", window_length), ("polyorder", polyorder), ("deriv", deriv))
    )
    if window < 1 or not 0 <= order < window or deriv < 0:
        raise ArgumentError(
            f"savgol_filter: window_length must be positive, polyorder at least 0 and less than window_length, and "
            f"deriv at least 0; got {window}, {order} and {deriv}"
        )
    if mode != "interp" and mode not in _EDGES:
        raise ArgumentError(
            f"savgol_filter: mode must be 'interp', 'mirror', 'nearest', 'wrap' or 'constant', got {mode!r}"
        )
    moved = shapes.moveaxis(x, where, last)
    n = moved.shape[last]
    if mode == "interp" and window > n:
        raise ShapeError(
            f"savgol_filter: with mode='interp' the window, of {window} elements, must not be longer than the axis, "
            f"of {n}; use a shorter window or another mode"
        )
    if not math.prod(x.shape):
        return x
    out = _smoothed(moved, window, order, deriv, mode, cval)
    if deriv:
        out = ops.div(out, ops.convert_element_type(as_array(delta), dtypes.to_real(out.dtype)) ** deriv)
    return shapes.moveaxis(out, last, where)


def _smoothed(x: Any, window: int, order: int, deriv: int, mode: str, cval: Any) -> Any:
    """Apply a Savitzky-Golay filter along the last axis, to samples at distance 1.

    The arguments are those of :func:`savgol_filter`: the size of the window, the degree of the polynomial, the order of
    the derivative, and the boundary mode with its constant ``cval``.
    """
    last, n = len(x.shape) - 1, x.shape[-1]
    before, after = (window - 1) // 2, window // 2
    (taps,) = _fitted(window, order, deriv, [(window - 1) / 2])
    if mode != "interp":
        widths = [(0, 0)] * last + [(before, after)]
        return _products(
            pnp.pad(x, widths, _EDGES[mode], **({"constant_values": cval} if mode == "constant" else {})), taps
        )
    ends = []
    for start, positions in ((0, range(after)), (n - window, range(window - after, window))):
        rows = ArrayImpl(_fitted(window, order, deriv, positions).astype(x.dtype))
        ends.append(pnp.matmul(slicing.slice_in_dim(x, start, start + window, last), rows.T))
    middle = _products(x, taps)
    middle = slicing.slice_in_dim(middle, after - before, middle.shape[last], last)
    inner = max(n - 2 * after, 0)
    first = slicing.slice_in_dim(ends[0], 0, n - inner - after, last)
    return slicing.concatenate([first, slicing.slice_in_dim(middle, 0, inner, last), ends[1]], last)


def _products(x: Any, taps: np.ndarray[Any, Any]) -> Any:
    """Return the sums of ``taps[k] x[..., n + k]`` over k, for all n for which the window is inside of ``x``."""
    kernel = ArrayImpl(taps.astype(x.dtype).reshape(1, 1, -1))
    out = conv_general_dilated_p.bind(
        shapes.reshape(x, (math.prod(x.shape[:-1]), 1, x.shape[-1])),
        kernel,
        geometry=Geometry((1,), ((0, 0),), (1,), (1,)),
        dimension_numbers=ConvDimensionNumbers(*[(0, 1, 2)] * 3),
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
    )
    return shapes.reshape(out, (*x.shape[:-1], out.shape[-1]))


def savgol_coeffs(
    window_length: int, polyorder: int, deriv: int = 0, delta: ArrayLike = 1.0, pos: float | None = None,
    use: str = "conv",
) -> Array:  # fmt: skip
    """Return the coefficients of the filter of Savitzky and Golay: the value of the polynomial that fits a window best.

    Args:
      window_length: the number of coefficients, a positive int.
      polyorder: the degree of the polynomial, an int less than ``window_length``.
      deriv: the order of the derivative, an int that is not negative.
      delta: the distance of the samples, a number, by which there is a derivative.
      pos: the position in the window at which to evaluate, a number; the middle by default.
      use: ``"conv"`` for coefficients to convolve with, ``"dot"`` for the reverse, whose product with a window is the
        value.

    Returns:
      A vector of ``window_length`` floats.

    Raises:
      ArgumentError: numbers or a word that make no sense (a TypeError and a ValueError).

    Source: Savitzky and Golay 1964, "Smoothing and differentiation of data by simplified least squares procedures".

    >>> from pullback.scipy import signal
    >>> print(signal.savgol_coeffs(5, 2).round(4))
    [-0.0857  0.3429  0.4857  0.3429 -0.0857]
    """
    name = "savgol_coeffs"
    size, degree, order = (
        known_int(name, what, v)
        for what, v in (("window_length", window_length), ("polyorder", polyorder), ("deriv", deriv))
    )
    if size < 1 or not 0 <= degree < size or order < 0:
        raise ArgumentError(
            f"{name}: window_length must be positive, polyorder at least 0 and less than window_length, and deriv not "
            f"negative, got {size}, {degree} and {order}"
        )
    step = real_number(name, "delta", delta)
    if step is None:
        raise ArgumentError(f"{name}: delta must be a real number, got None")
    known_step = 1.0 if isinstance(step, Array) else step
    values = of_scipy(name, lambda: imported("scipy.signal").savgol_coeffs(size, degree, order, known_step, pos, use))
    return constant(values, step.dtype) / step**order if isinstance(step, Array) else default_floats(values)
