"""Transforms of whole signals: the analytic signal, and Fourier transforms at chosen points of the complex plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import on_host
from pullback.scipy.signal.arguments import constant, positive_int, promoted, signal
from pullback.scipy.signal.spectra import along_last

__all__ = ["correlation_lags", "czt", "hilbert", "hilbert2", "zoom_fft"]


def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Array:
    """Return the analytic signal: its real part is the signal, its imaginary part the Hilbert transform.

    Args:
      x: the signal, an array of real numbers of any shape; integers are converted.
      N: how many elements of it to transform; zeros are added where it has fewer. All by default.
      axis: along which axis.

    Returns:
      Complex numbers.

    Raises:
      DtypeError: complex numbers (a TypeError).
      ShapeError: a number, or an axis out of range (a TypeError and a ValueError).
      ArgumentError: an ``N`` that is not positive (a TypeError and a ValueError).

    Source: Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 12.1.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.hilbert(jnp.array([2.0, 0.0, -2.0, 0.0]))))
    [2. 2. 2. 2.]
    """
    x = signal("hilbert", x)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"hilbert: the signal x must be real numbers, got {dtypes.short_name(x.dtype)}")
    where, last = axis_index(axis, len(x.shape), "hilbert"), len(x.shape) - 1
    n = positive_int("hilbert", "N", x.shape[where] if N is None else N)
    factors = np.zeros(n)
    factors[0] = 1
    factors[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        factors[n // 2] = 1
    spectrum = pnp.fft.fft(shapes.moveaxis(x, where, last), n)
    return shapes.moveaxis(pnp.fft.ifft(spectrum * constant(factors, x.dtype)), last, where)


def hilbert2(x: ArrayLike, N: int | Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> Array:
    """Return the analytic signal of arrays of two axes: only positive frequencies along both axes are left.

    Args:
      x: the signals, an array of real numbers; one of less than two axes has one of size 1 in front.
      N: how many elements to transform, an int or two; zeros are added where there are fewer. All by default.
      axes: along which two axes.

    Returns:
      Complex numbers.

    Raises:
      DtypeError: complex numbers (a TypeError).
      ShapeError: axes that are equal or out of range (a TypeError and a ValueError).
      ArgumentError: an ``N`` that is not positive, or not two axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.hilbert2(jnp.array([[2.0, 0.0], [0.0, 0.0]])).real)
    [[0.5 0.5]
     [0.5 0.5]]
    """
    x = pnp.atleast_2d(promoted("hilbert2", x)[0])
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"hilbert2: the signal x must be real numbers, got {dtypes.short_name(x.dtype)}")
    if not isinstance(axes, (list, tuple)) or len(axes) != 2:
        raise ArgumentError(f"hilbert2: axes must be two ints, got {quote(axes)}")
    where = [axis_index(axis, len(x.shape), "hilbert2") for axis in axes]
    if where[0] == where[1]:
        raise ShapeError(f"hilbert2: the axes must differ, got {quote(axes)}")
    given = [x.shape[i] for i in where] if N is None else list(N) if isinstance(N, (list, tuple)) else [N, N]
    if len(given) != 2:
        raise ArgumentError(f"hilbert2: N must be an int or two ints, got {quote(N)}")
    for axis, count in zip(where, given, strict=True):
        n = positive_int("hilbert2", "N", count)
        factors = np.where(np.arange(n) < (n + 1) // 2, 2.0, 0.0)
        factors[0] = 1
        spectrum = pnp.moveaxis(pnp.fft.fft(x, n, axis), axis, -1)
        kept = along_last(ops.mul, spectrum, constant(factors, spectrum.dtype))
        x = pnp.moveaxis(pnp.fft.ifft(kept), -1, axis)
    return x


def czt(
    x: ArrayLike, m: int | None = None, w: ArrayLike | None = None, a: ArrayLike = 1 + 0j, *, axis: int = -1
) -> Array:
    """Return the chirp z-transform: ``Σ x[n] z**-n`` at the points ``z = a w**-k`` of a spiral.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      m: the number of points, positive; as many as elements by default.
      w: the quotient of a point and the next one, a number; ``exp(-2j pi / m)`` by default, the points of a Fourier
        transform.
      a: the first point, a number.
      axis: along which axis.

    Returns:
      Complex numbers, ``m`` along the axis.

    Raises:
      ShapeError: a signal without elements, points that are no numbers, or an axis out of range (a TypeError and a
        ValueError).
      ArgumentError: an ``m`` that is not positive (a TypeError and a ValueError).

    Source: Bluestein 1970, "A linear filtering approach to the computation of discrete Fourier transform".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.czt(jnp.array([1.0, 2.0, 3.0]), 1, a=2.0).real.round(3))
    [2.75]
    """
    x = signal("czt", x)
    where = axis_index(axis, len(x.shape), "czt")
    if not x.size:
        raise ShapeError(f"czt takes a signal with elements, got shape {x.shape}")
    count = positive_int("czt", "m", x.shape[where] if m is None else m)
    a, *given = promoted("czt", a, *(() if w is None else (w,)))
    if a.shape or any(v.shape for v in given):
        raise ShapeError(f"czt: the points w and a must be numbers, got shapes {[v.shape for v in (a, *given)]}")
    size = max(count, x.shape[where])
    k = np.arange(size, dtype=np.float64)
    wide = dtypes.to_complex(dtypes.to_real(x.dtype))
    if w is None:
        # Angles of whole turns are left out before they are rounded.
        chirps = constant(np.exp(-1j * np.pi * ((k * k) % (2 * count)) / count), wide)
    else:
        chirps = _powers(given[0], k * k / 2, wide)
    return _bluestein(x, chirps, _powers(a, -k[: x.shape[where]], wide), count, where)


def _powers(base: Any, exponents: np.ndarray[Any, Any], dtype: Any) -> Any:
    """Return a complex number to real powers, computed in double precision where the number is known."""
    value = on_host(base)
    if value is not None:
        return constant(np.complex128(value[0]) ** exponents, dtype)
    return pnp.exp(pnp.log(base.astype(dtype)) * constant(exponents, dtype))


def _bluestein(x: Any, chirps: Any, powers: Any, count: int, axis: int) -> Any:
    """Return sums ``Σ x[n] powers[n] w**(n k)`` for k below ``count``, with ``chirps[k] = w**(k k / 2)``."""
    n, last = x.shape[axis], len(x.shape) - 1
    length = imported("scipy.fft").next_fast_len(n + count - 1)
    x = shapes.moveaxis(x, axis, last)
    inverse = 1 / pnp.concatenate([pnp.flip(chirps[1:n]), chirps[:count]])
    spectrum = pnp.fft.fft(x * (powers * chirps[:n]), length)
    y = pnp.fft.ifft(spectrum * pnp.fft.fft(inverse, length))
    return shapes.moveaxis(y[..., n - 1 : n + count - 1] * chirps[:count], last, axis)


def zoom_fft(
    x: ArrayLike, fn: ArrayLike, m: int | None = None, *, fs: ArrayLike = 2, endpoint: bool = False, axis: int = -1
) -> Array:
    """Return the Fourier transform of a signal at frequencies between two limits.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      fn: the limits, two frequencies; or the upper one, for a lower one of 0.
      m: the number of frequencies, positive; as many as elements by default.
      fs: the sampling frequency, a number.
      endpoint: whether the upper limit is the last frequency.
      axis: along which axis.

    Returns:
      Complex numbers, ``m`` along the axis.

    Raises:
      ShapeError: a signal without elements, more than two limits, or an axis out of range (a TypeError and a
        ValueError).
      ArgumentError: an ``m`` that is not positive (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(abs(signal.zoom_fft(jnp.array([1.0, 0.0, -1.0, 0.0]), [0.4, 0.6], 3, endpoint=True)).round(3))
    [1.902 2.    1.902]
    """
    x = signal("zoom_fft", x)
    where = axis_index(axis, len(x.shape), "zoom_fft")
    endpoint = flag("zoom_fft", "endpoint", endpoint)
    if not x.size:
        raise ShapeError(f"zoom_fft takes a signal with elements, got shape {x.shape}")
    count = positive_int("zoom_fft", "m", x.shape[where] if m is None else m)
    limits, rate = promoted("zoom_fft", fn, fs)
    if limits.shape not in ((), (1,), (2,)) or rate.shape:
        raise ShapeError(
            f"zoom_fft: fn must be one or two numbers and fs a number, got shapes {limits.shape} and {rate.shape}"
        )
    steps = count - 1 if endpoint else count
    if not steps:
        raise ArgumentError("zoom_fft: with endpoint=True m must be at least 2, got 1")
    wide = dtypes.to_complex(dtypes.to_real(x.dtype))
    values = on_host(limits, rate)
    module: Any = pnp if values is None else np
    ends, per_second = (limits, rate) if values is None else (np.asarray(v, np.float64) for v in values)
    ends = module.reshape(ends, (-1,))
    start = ends[0] if ends.shape[0] == 2 else 0 * ends[0]
    size = max(count, x.shape[where])
    k = np.arange(size, dtype=np.float64)
    turn = (ends[-1] - start) / per_second
    turns = [turn * (-k * k / (2 * steps)), (start / per_second) * -k[: x.shape[where]]]
    chirps, powers = (_on_circle(v, module, wide) for v in turns)
    return _bluestein(x, chirps, powers, count, where)


def _on_circle(turns: Any, module: Any, dtype: Any) -> Any:
    """Return points of the unit circle, of numbers of turns that are NumPy's or ours."""
    if module is np:
        return constant(np.exp(2j * math.pi * turns), dtype)
    angles = turns * constant(2 * math.pi, turns.dtype)
    return ops.complex(pnp.cos(angles), pnp.sin(angles)).astype(dtype)


def correlation_lags(in1_len: int, in2_len: int, mode: str = "full") -> Array:
    """Return by how many elements the second operand is shifted for each element of :func:`correlate`.

    Args:
      in1_len, in2_len: the numbers of elements of the operands, positive.
      mode: ``"full"``, ``"same"`` or ``"valid"``, as for :func:`correlate`.

    Returns:
      A vector of ints.

    Raises:
      ArgumentError: numbers that are not positive, or an unknown mode (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.correlation_lags(4, 2))
    [-1  0  1  2  3]
    """
    n, m = (positive_int("correlation_lags", w, v) for w, v in (("in1_len", in1_len), ("in2_len", in2_len)))
    if not isinstance(mode, str) or mode not in ("full", "same", "valid"):
        raise ArgumentError(f"correlation_lags: mode must be 'full', 'same' or 'valid', got {quote(mode)}")
    lags = np.arange(1 - m, n)
    if mode == "same":
        middle = len(lags) // 2
        lags = lags[middle - n // 2 : middle + n // 2 + n % 2]
    if mode == "valid":
        lags = np.arange(n - m + 1) if n >= m else np.arange(n - m, 1)
    return as_array(lags.astype(dtypes.default_int()))
