"""Splines at equal distances: their coefficients by recursive filters in both directions, and their values.

A spline that is continued by its mirror image has coefficients that a filter finds which runs forwards and backwards
(Unser 1999, "Splines: A perfect fit for signal and image processing").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import known
from pullback.scipy.ndimage.correlations import convolve1d
from pullback.scipy.signal.arguments import constant, known_or_traced, promoted, real_number, signal, vector
from pullback.scipy.signal.filters import lfilter
from pullback.transforms.debugging.compile_time import ensure_compile_time_eval

__all__ = [
    "cspline1d", "cspline1d_eval", "cspline2d", "gauss_spline", "qspline1d", "qspline1d_eval", "qspline2d", "sepfir2d",
    "spline_filter", "symiirorder1", "symiirorder2",
]  # fmt: skip

_CUBIC, _QUADRATIC = math.sqrt(3) - 2, 2 * math.sqrt(2) - 3
"""The poles of the filters of cubic and of quadratic splines."""


def gauss_spline(x: ArrayLike, n: ArrayLike) -> Array:
    """Return the Gaussian function that is near to the B-spline of an order.

    Args:
      x: where, an array of real numbers.
      n: the order, a number that is not negative.

    Returns:
      An array of the shape of ``x``.

    Raises:
      OperandError: operands that are no numbers (a TypeError and a ValueError).

    Source: Bouma, Vilanova, Bescos, ter Haar Romeny and Gerritsen 2007, "Fast and accurate Gaussian derivatives based
    on B-splines".

    >>> from pullback.scipy import signal
    >>> print(signal.gauss_spline([0.0, 1.0], 3).round(3))
    [0.691 0.154]
    """
    x, n = promoted("gauss_spline", x, n)
    variance = (n + 1) / 12
    return pnp.exp(-(x**2) / (2 * variance)) / pnp.sqrt(2 * math.pi * variance)  # type: ignore[no-any-return]


# Filters in both directions ------------------------------------------------------------------------------------------


def _along_last(taps: Any, poles: Any, x: Any, state: Any) -> Any:
    """Filter along the last axis from a state on."""
    if not x.shape[-1]:
        return x
    return lfilter(taps, poles, x, -1, zi=state)[0]


def _first_order(x: Any, pole: Any, gain: Any, first: Any) -> Any:
    """Filter by one pole forwards and backwards along the last axis; ``first`` is the first element forwards."""
    one = pnp.ones((), x.dtype)
    poles = pnp.stack([one, -pole])
    forwards = pnp.concatenate([first, _along_last(one[None], poles, x[..., 1:], first * pole)], -1)
    last = -gain / (pole - 1) * forwards[..., -1:]
    rest = _along_last(gain[None], poles, pnp.flip(forwards[..., :-1], -1), last * pole)
    return pnp.concatenate([pnp.flip(rest, -1), last], -1)


def _mirrored_start(x: Any, pole: Any, terms: int) -> Any:
    """Return the first element of a filter that has run over the mirror image of a signal, with a number of terms."""
    powers = pnp.cumprod(pnp.broadcast_to(pole, (terms,)))
    return x[..., :1] + pnp.sum(x[..., :terms] * powers, -1, keepdims=True)


def _terms(name: str, pole: Any, precision: float, size: int) -> int:
    """Return how many terms of a sum of powers are needed; all of an unknown pole."""
    value = known(pole)
    if value is None:
        return size
    count, power = 0, 1.0
    while power > precision:
        count, power = count + 1, power * float(abs(value))
        if count >= size:
            raise ArgumentError(
                f"{name}: a signal of {size} elements is too short for a precision of {precision} at its ends; pass a "
                f"larger one"
            )
    return max(count, 1)


def _precision(name: str, precision: Any, dtype: Any, single: float, double: float) -> float:
    value = real_number(name, "precision", precision)
    found = None if value is None else known(value)
    if found is None:
        raise ArgumentError(f"{name}: precision must be a known real number")
    if 0 <= found < 1:
        return float(found)
    return single if dtypes.to_real(dtype) == np.float32 else double


def _one_or_two(name: str, x: Any) -> Any:
    x = signal(name, x)
    if len(x.shape) > 2 or not x.size:
        raise ShapeError(f"{name} takes a non-empty array of one or two axes, got shape {x.shape}")
    return x


def symiirorder1(signal: ArrayLike, c0: ArrayLike, z1: ArrayLike, precision: float = -1.0) -> Array:
    """Filter by one pole forwards and backwards: by ``c0 / ((1 - z1/z) (1 - z1 z))``, with mirror images at the ends.

    Args:
      signal: the signal, or signals as rows, an array of floats or complex numbers; integers are converted.
      c0: the gain, a number.
      z1: the pole, a number of absolute value less than 1.
      precision: the precision of the sum over the mirror image before the first element, a known number; by default
        1e-6 in single precision and 1e-11 in double.

    Returns:
      An array of the shape of ``signal``.

    Raises:
      ArgumentError: a pole that is too large, or a signal that is too short for the precision (a TypeError and a
        ValueError).
      ShapeError: more than two axes, or gains that are no numbers (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.symiirorder1([0.0, 0.0, 1.0, 0.0, 0.0], 1.0, 0.25, 0.1).round(3))
    [0.067 0.267 1.068 0.271 0.083]
    """
    name = "symiirorder1"
    x = _one_or_two(name, signal)
    x, gain, pole = promoted(name, x, c0, z1)
    return _symmetric1(name, x, gain, pole, _precision(name, precision, x.dtype, 1e-6, 1e-11))  # type: ignore[no-any-return]


def _symmetric1(name: str, x: Any, gain: Any, pole: Any, precision: float) -> Any:
    if gain.shape or pole.shape:
        raise ShapeError(f"{name}: gain and pole must be numbers, got shapes {gain.shape} and {pole.shape}")
    value = known(pole)
    if value is not None and not abs(value) < 1:
        raise ArgumentError(f"{name}: the absolute value of the pole z1 must be less than 1, got {value}")
    start = _mirrored_start(x, pole, _terms(name, pole, precision, x.shape[-1]))
    return _first_order(x, pole, gain, start)


def symiirorder2(input: ArrayLike, r: ArrayLike, omega: ArrayLike, precision: float = -1.0) -> Array:
    """Filter by a pair of poles forwards and backwards, with mirror images at the ends.

    The filter is ``c**2 / (A(z) A(1/z))`` with ``A(z) = 1 - 2 r cos(omega) / z + r**2 / z**2`` and ``c = A(1)``.

    Args:
      input: the signal, or signals as rows, an array of floats; integers are converted. It has at least 3 elements.
      r, omega: the absolute value, less than 1, and the angle of the poles, real numbers.
      precision: the precision of the sums over mirror images, as for :func:`symiirorder1`. For traced poles the sums
        have all terms.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ArgumentError: a pole that is too large, or a signal that is too short for the precision (a TypeError and a
        ValueError).
      ShapeError: more than two axes, fewer than 3 elements, or poles that are no numbers (a TypeError and a
        ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.symiirorder2([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], 0.1, 1.0, 0.1).round(3))
    [0.001 0.088 0.823 0.088 0.    0.   ]
    """
    name = "symiirorder2"
    poles = known_or_traced(name, r), known_or_traced(name, omega)
    x, size, angle = promoted(name, _one_or_two(name, input), *poles)
    if dtypes.is_complex(x.dtype) or x.shape[-1] < 3:
        raise ShapeError(f"{name} takes real signals of at least 3 elements, got {dtypes.short_name(x.dtype)}{x.shape}")
    near = _precision(name, precision, x.dtype, 1e-6, 1e-11)
    return _symmetric2(x, size, angle, _lengths(name, *poles, near, x.shape[-1]))  # type: ignore[no-any-return]


def _lengths(name: str, r: Any, omega: Any, precision: float, size: int) -> list[int]:
    """Return how many terms the four sums over mirror images have, two at each end; all for unknown poles.

    SciPy ends sums before the first element where a term is small, and those after the last where its square is.
    """
    if r.shape or omega.shape:
        raise ShapeError(f"{name}: r and omega must be numbers, got shapes {r.shape} and {omega.shape}")
    value = known(r)
    if value is None or known(omega) is None:
        return [size] * 4
    if not abs(value) < 1:
        raise ArgumentError(f"{name}: the absolute value r of the poles must be less than 1, got {value}")
    k = np.arange(size)
    with ensure_compile_time_eval():
        responses = _Responses(r, omega)
        terms = [responses.forwards(k + 1), responses.forwards(k + 2), responses.end(k, 0), responses.end(k, 1)]
        ended = [np.abs(known(t)) <= (precision if i < 2 else math.sqrt(precision)) for i, t in enumerate(terms)]
    if not all(e[:-1].any() for e in ended):
        raise ArgumentError(
            f"{name}: a signal of {size} elements is too short for a precision of {precision} at its ends; pass a "
            "larger one"
        )
    return [int(np.argmax(e)) + 1 for e in ended]


def _symmetric2(x: Any, r: Any, omega: Any, lengths: list[int]) -> Any:
    """Filter along the last axis in both directions, with so many terms of the sums over mirror images."""
    responses = _Responses(r, omega)
    sums = [pnp.sum(x[..., :n] * responses.forwards(np.arange(n) + 1 + i), -1) for i, n in enumerate(lengths[:2])]
    second = x[..., 1] * responses.forwards(0) + x[..., 0] * responses.forwards(1)
    return responses.filtered(x, x[..., 0] * responses.forwards(0) + sums[0], second + sums[1], lengths[2:])


class _Responses:
    """The impulse responses of a filter by a pair of poles: forwards, and in both directions."""

    def __init__(self, r: Any, omega: Any) -> None:
        self.r, self.omega = r, omega
        self.gain = 1 - 2 * r * pnp.cos(omega) + r * r
        square = r * r
        self.both = self.gain**2 * (1 + square) / ((1 - square) * (1 - 2 * square * pnp.cos(2 * omega) + square**2))
        self.ratio = (1 - square) / ((1 + square) * pnp.tan(omega))

    def _powers(self, k: Any) -> Any:
        return self.r ** constant(k, self.r.dtype)

    def forwards(self, k: Any) -> Any:
        """Return the response after ``k`` elements, none of which is negative."""
        k = np.asarray(k)
        return self.gain / pnp.sin(self.omega) * self._powers(k) * pnp.sin(self.omega * constant(k + 1, self.r.dtype))

    def symmetric(self, k: Any) -> Any:
        """Return the response in both directions at the distance ``k``."""
        k = np.abs(k)
        angle = self.omega * constant(k, self.r.dtype)
        return self.both * self._powers(k) * (pnp.cos(angle) + self.ratio * pnp.sin(angle))

    def end(self, k: Any, i: int) -> Any:
        """Return the response at the last element but ``i`` to the one ``k`` before the last and its mirror image."""
        return self.symmetric(k - i) + self.symmetric(k + 1 + i)

    def filtered(self, x: Any, first: Any, second: Any, lengths: list[int]) -> Any:
        """Filter along the last axis in both directions; the first two elements forwards are given.

        ``lengths`` are how many terms the last two elements have.
        """
        one = pnp.ones((), x.dtype)
        poles = pnp.stack([one, -2 * self.r * pnp.cos(self.omega), self.r**2])
        forwards = self._after(x[..., 2:], poles, first, second)
        back = pnp.flip(x, -1)
        ends = [pnp.sum(back[..., :n] * self.end(np.arange(n), i), -1) for i, n in enumerate(lengths)]
        return pnp.flip(self._after(pnp.flip(forwards[..., :-2], -1), poles, ends[0], ends[1]), -1)

    def _after(self, x: Any, poles: Any, first: Any, second: Any) -> Any:
        """Return two elements, and those that the filter makes of ``x`` after them."""
        state = pnp.stack([-poles[1] * second - poles[2] * first, -poles[2] * second], -1)
        start = pnp.stack([first, second], -1)
        return pnp.concatenate([start, _along_last(self.gain[None], poles, x, state)], -1)


# Coefficients --------------------------------------------------------------------------------------------------------


def _smoothing(name: str, lamb: Any) -> Any:
    """Return how much to smooth, which is None for not at all: known to be zero, and without derivatives."""
    value = real_number(name, "lamb", lamb)
    if value is None:
        raise ArgumentError(f"{name}: lamb must be a real number, got None")
    return None if not isinstance(value, Array) and value == 0 else value


def _coefficients(name: str, x: Any, pole: float, gain: float) -> Any:
    """Return the coefficients of an interpolating spline along a vector."""
    at, size = constant(pole, x.dtype), x.shape[-1]
    start = _mirrored_start(x, at, size)
    return _first_order(x, at, constant(-pole, x.dtype), start) * gain if size > 1 else start * (pole / (pole - 1))


def cspline1d(signal: ArrayLike, lamb: ArrayLike = 0.0) -> Array:
    """Return the coefficients of a cubic spline through elements at equal distances, with mirror images at the ends.

    Args:
      signal: the elements, a vector of floats or complex numbers; integers are converted.
      lamb: how much to smooth, a number greater than 1/144; or 0 for a spline through the elements.

    Returns:
      The coefficients, a vector of the same size, for :func:`cspline1d_eval`.

    The sum over the mirror image before the first element ends after the last one, as in SciPy.

    Raises:
      ShapeError: elements that are no vector (a TypeError and a ValueError).
      ArgumentError: a ``lamb`` that makes no sense (a TypeError and a ValueError).

    Source: Unser, Aldroubi and Eden 1993, "B-spline signal processing, part II".

    >>> from pullback.scipy import signal
    >>> print(signal.cspline1d([1.0, 1.0, 1.0]).round(3))
    [0.993 1.002 1.   ]
    """
    name = "cspline1d"
    x, smooth = vector(name, signal, "the signal"), _smoothing(name, lamb)
    if smooth is None:
        return _coefficients(name, x, _CUBIC, 6.0)  # type: ignore[no-any-return]
    _check_smoothing(name, smooth)
    x, smooth = promoted(name, x, smooth)
    if x.shape[0] < 2 or dtypes.is_complex(x.dtype):
        raise ShapeError(f"{name}: a smooth spline needs at least 2 real elements, got shape {x.shape}")
    responses = _Responses(*_poles_of(smooth))
    k = np.arange(x.shape[0])
    sums = [pnp.sum(x * responses.forwards(k + 1 + i), -1) for i in range(2)]
    # SciPy's start, which is not quite that of a mirror image: the first two elements are the other way round.
    second = x[0] * responses.forwards(0) + x[1] * responses.forwards(1)
    start = x[0] * responses.forwards(0) + sums[0]
    return responses.filtered(x, start, second + sums[1], [x.shape[0]] * 2)  # type: ignore[no-any-return]


def _check_smoothing(name: str, lamb: Any) -> None:
    value = known(lamb)
    if value is not None and not 1 / 144 < value < math.inf:
        raise ArgumentError(f"{name}: lamb must be 0 or greater than 1/144, got {value}")


def _poles_of(lamb: Any) -> tuple[Any, Any]:
    """Return the absolute value and the angle of the poles of a smoothing filter."""
    root = pnp.sqrt(3 + 144 * lamb)
    # Below 1/24 the root has the other sign; with SciPy's sign the poles are outside of the unit circle.
    turned = pnp.where(lamb < 1 / 24, -1, 1) * pnp.sqrt(1 - 96 * lamb + 24 * lamb * root)
    size = (24 * lamb - 1 - turned) / (24 * lamb)
    angle = pnp.arctan2(pnp.sqrt(144 * lamb - 1), turned)
    return size * pnp.sqrt(48 * lamb + 24 * lamb * root) / turned, angle


def qspline1d(signal: ArrayLike, lamb: ArrayLike = 0.0) -> Array:
    """Return the coefficients of a quadratic spline through elements at equal distances, with mirror images.

    Args:
      signal: the elements, a vector of floats or complex numbers; integers are converted.
      lamb: must be 0.

    Returns:
      The coefficients, a vector of the same size, for :func:`qspline1d_eval`.

    Raises:
      ShapeError: elements that are no vector (a TypeError and a ValueError).
      ArgumentError: another ``lamb`` (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.qspline1d([1.0, 1.0, 1.0]).round(3))
    [0.999 1.    1.   ]
    """
    name = "qspline1d"
    if _smoothing(name, lamb) is not None:
        raise ArgumentError(f"{name}: lamb must be 0, because quadratic splines are not smoothed, got {lamb!r}")
    return _coefficients(name, vector(name, signal, "the signal"), _QUADRATIC, 8.0)  # type: ignore[no-any-return]


def _along_both(name: str, x: Any, along: Callable[[Any], Any]) -> Any:
    """Filter an image along its rows and then along its columns."""
    rows = along(_image(name, x))
    return shapes.transpose(along(shapes.transpose(rows, (1, 0))), (1, 0))


def _image(name: str, x: Any) -> Any:
    if len(x.shape) != 2 or not x.size:
        raise ShapeError(f"{name} takes a non-empty array of two axes, got shape {x.shape}")
    return x


def cspline2d(signal: ArrayLike, lamb: ArrayLike = 0.0, precision: float = -1.0) -> Array:
    """Return the coefficients of a cubic spline through the elements of an image, with mirror images at the ends.

    Args:
      signal: the image, an array of two axes of floats or complex numbers; integers are converted.
      lamb: how much to smooth, a number; none up to 1/144.
      precision: the precision of sums over mirror images, as for :func:`symiirorder1`; by default 1e-3 in single
        precision and 1e-6 in double.

    Returns:
      The coefficients, an array of the same shape.

    Raises:
      ShapeError: an array of other axes (a TypeError and a ValueError).
      ArgumentError: an image that is too small for the precision (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.cspline2d(jnp.ones((9, 9))).shape)
    (9, 9)
    """
    return _cspline2d("cspline2d", signal, lamb, precision)  # type: ignore[no-any-return]


def _cspline2d(name: str, image: Any, lamb: Any, precision: Any) -> Any:
    x, smooth = signal(name, image), real_number(name, "lamb", lamb)
    near = _precision(name, precision, x.dtype, 1e-3, 1e-6)
    value = None if smooth is None else known(smooth)
    if smooth is None or (value is not None and value <= 1 / 144):
        at, gain = constant(_CUBIC, x.dtype), constant(-6 * _CUBIC, x.dtype)
        return _along_both(name, x, lambda v: _symmetric1(name, v, gain, at, near))
    if dtypes.is_complex(x.dtype):
        raise ArgumentError(f"{name}: an image that is smoothed must be real, got {dtypes.short_name(x.dtype)}")
    with ensure_compile_time_eval():
        poles = _poles_of(promoted(name, smooth)[0])
    x, r, omega = promoted(name, x, *poles)
    along = lambda v: _symmetric2(v, r, omega, _lengths(name, *poles, near, v.shape[-1]))
    return _along_both(name, x, along)


def qspline2d(signal: ArrayLike, lamb: ArrayLike = 0.0, precision: float = -1.0) -> Array:
    """Return the coefficients of a quadratic spline through the elements of an image, with mirror images at the ends.

    Args:
      signal: the image, an array of two axes of floats or complex numbers; integers are converted.
      lamb: must be 0.
      precision: as for :func:`cspline2d`.

    Returns:
      The coefficients, an array of the same shape.

    Raises:
      ShapeError, ArgumentError: as for :func:`cspline2d`; another ``lamb``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.qspline2d(jnp.ones((9, 9))).shape)
    (9, 9)
    """
    name = "qspline2d"
    if _smoothing(name, lamb) is not None:
        raise ArgumentError(f"{name}: lamb must be 0, because quadratic splines are not smoothed, got {lamb!r}")
    (x,) = promoted(name, signal)
    near = _precision(name, precision, x.dtype, 1e-3, 1e-6)
    at, gain = constant(_QUADRATIC, x.dtype), constant(-8 * _QUADRATIC, x.dtype)
    return _along_both(name, x, lambda v: _symmetric1(name, v, gain, at, near))  # type: ignore[no-any-return]


def sepfir2d(input: ArrayLike, hrow: ArrayLike, hcol: ArrayLike) -> Array:
    """Filter an image along its rows and its columns, with mirror images at the ends.

    Args:
      input: the image, an array of two axes of floats or complex numbers; integers are converted.
      hrow, hcol: the coefficients of the filters along rows and along columns, vectors of an odd number of elements.

    Returns:
      An array of the shape of ``input``.

    Raises:
      ShapeError: an array of other axes, or filters of an even number of elements (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.sepfir2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0, 1.0], [1.0]))
    [[ 4.  5.]
     [10. 11.]]
    """
    return _separable("sepfir2d", input, hrow, hcol)  # type: ignore[no-any-return]


def _separable(name: str, image: Any, hrow: Any, hcol: Any) -> Any:
    taps = [vector(name, h, f"the coefficients {what}") for h, what in ((hrow, "hrow"), (hcol, "hcol"))]
    x, *taps = promoted(name, signal(name, image), *taps)
    if any(h.shape[0] % 2 == 0 for h in taps):
        raise ShapeError(
            f"{name}: hrow and hcol must have an odd number of elements, got {taps[0].shape[0]} and {taps[1].shape[0]}"
        )
    x = _image(name, x)
    for axis, h in zip((1, 0), taps, strict=True):
        x = convolve1d(x, h, axis)
    return x


def spline_filter(Iin: ArrayLike, lmbda: ArrayLike = 5.0) -> Array:
    """Smooth an image by a cubic spline.

    Args:
      Iin: the image, an array of two axes of real numbers; integers are converted.
      lmbda: how much to smooth, a number.

    Returns:
      An array of the shape of ``Iin``.

    Raises:
      ShapeError, ArgumentError: as for :func:`cspline2d`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.spline_filter(jnp.ones((20, 20))).shape)
    (20, 20)
    """
    name = "spline_filter"
    coefficients = _cspline2d(name, Iin, lmbda, -1.0)
    taps = constant(np.array([1.0, 4.0, 1.0]) / 6, coefficients.dtype)
    return _separable(name, coefficients, taps, taps)  # type: ignore[no-any-return]


# Values --------------------------------------------------------------------------------------------------------------


def _cubic(x: Any) -> Any:
    x = pnp.abs(x)
    inner = 2 / 3 - x**2 + x**3 / 2
    return pnp.where(x < 1, inner, pnp.where(x < 2, (2 - x) ** 3 / 6, 0))


def _quadratic(x: Any) -> Any:
    x = pnp.abs(x)
    return pnp.where(x < 0.5, 0.75 - x**2, pnp.where(x < 1.5, (1.5 - x) ** 2 / 2, 0))


def _values(name: str, cj: Any, newx: Any, dx: Any, x0: Any, basis: Any, order: int) -> Any:
    """Return the values of a spline at points, of which those outside are moved to their mirror images."""
    c, at, step, start = promoted(name, vector(name, cj, "the coefficients"), newx, dx, x0)
    if step.shape or start.shape:
        raise ShapeError(f"{name}: dx and x0 must be numbers, got shapes {step.shape} and {start.shape}")
    at, n = pnp.real((at - start) / step), c.shape[0]
    period = max(2 * (n - 1), 1)
    at = pnp.mod(at, period) if n > 1 else 0 * at
    at = pnp.where(at > n - 1, period - at, at)
    first = pnp.floor(at - (order + 1) / 2).astype(np.int32) + 1
    total: Any = 0
    for i in range(order + 1):
        where = first + i
        total = total + c[pnp.clip(where, 0, n - 1)] * basis(at - where.astype(at.dtype))
    return total


def cspline1d_eval(cj: ArrayLike, newx: ArrayLike, dx: ArrayLike = 1.0, x0: ArrayLike = 0) -> Array:
    """Return the values of a cubic spline at points.

    Args:
      cj: the coefficients, a vector, as of :func:`cspline1d`.
      newx: the points, an array; the spline is continued by its mirror images.
      dx, x0: the distance of elements, and the position of the first, numbers.

    Returns:
      An array of the shape of ``newx``.

    Raises:
      ShapeError: coefficients that are no vector, or are empty (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.cspline1d_eval(signal.cspline1d([1.0, 2.0, 4.0, 3.0]), [1.0, 2.5]).round(3))
    [2.    3.714]
    """
    return _values("cspline1d_eval", cj, newx, dx, x0, _cubic, 3)  # type: ignore[no-any-return]


def qspline1d_eval(cj: ArrayLike, newx: ArrayLike, dx: ArrayLike = 1.0, x0: ArrayLike = 0) -> Array:
    """Return the values of a quadratic spline at points.

    Args:
      cj: the coefficients, a vector, as of :func:`qspline1d`.
      newx, dx, x0: as for :func:`cspline1d_eval`.

    Returns:
      An array of the shape of ``newx``.

    Raises:
      ShapeError: coefficients that are no vector, or are empty (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.qspline1d_eval(signal.qspline1d([1.0, 2.0, 4.0, 3.0]), [1.0, 2.5]).round(3))
    [2.    3.676]
    """
    return _values("qspline1d_eval", cj, newx, dx, x0, _quadratic, 2)  # type: ignore[no-any-return]
