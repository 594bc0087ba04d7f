"""Signals at other rates: by Fourier transforms, or by filters between which elements are inserted and left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry, conv_general_dilated_p
from pullback.scipy.arguments import floats, on_host
from pullback.scipy.signal.arguments import (
    MODES,
    check_mode,
    check_vector,
    constant,
    default_floats,
    extended,
    positive_int,
    promoted,
    signal,
)
from pullback.scipy.signal.filters import sosfilt
from pullback.scipy.signal.windows import get_window
from pullback.scipy.signal.zero_phase import sosfiltfilt

__all__ = ["decimate", "resample", "resample_poly", "upfirdn"]

# Filters between two rates -------------------------------------------------------------------------------------------


def filtered_size(taps: int, size: int, up: int, down: int) -> int:
    """Return how many elements :func:`upfirdn` returns for a filter of ``taps`` and a signal of ``size`` elements."""
    return ((size - 1) * up + taps - 1) // down + 1


def rate_filter(h: Any, x: Any, up: int = 1, down: int = 1, mode: str = "constant", cval: Any = 0.0) -> Any:
    """Apply a filter between two rates along the last axis of ``x``, which has elements; see :func:`upfirdn`.

    Args:
      h: the filter, a vector of the dtype of ``x``; or several of the same size, (filters, taps).
      x: the signals, (..., n).
      up, down: the factors of the two rates.
      mode, cval: how ``x`` continues.

    Returns:
      An array (..., size), or (..., filters, size) for several filters.
    """
    taps, n = h.shape[-1], x.shape[-1]
    size = filtered_size(taps, n, up, down)
    more = 0 if mode == "constant" and _is_zero(cval) else -(-(taps - 1) // up)
    x = extended(x, more, more, mode, cval)
    low = taps - 1 - more * up
    high = (size - 1) * down - (n - 1 + more) * up
    kernel = slicing.rev(h, (len(h.shape) - 1,))
    rows = shapes.reshape(x, (math.prod(x.shape[:-1]), 1, x.shape[-1]))
    if low < 0 and -low >= up:
        raise AssertionError("a signal is continued by more than a filter reads")
    out = conv_general_dilated_p.bind(
        rows,
        shapes.reshape(kernel, (math.prod(h.shape[:-1]), 1, taps)),
        geometry=Geometry((down,), ((low, high),), (up,), (1,)),
        dimension_numbers=ConvDimensionNumbers(*[(0, 1, 2)] * 3),
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
    )
    return shapes.reshape(out, (*x.shape[:-1], *h.shape[:-1], size))


def _is_zero(cval: Any) -> bool:
    return type(cval) in (int, float) and cval == 0


def upfirdn(
    h: ArrayLike, x: ArrayLike, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant",
    cval: ArrayLike = 0,
) -> Array:  # fmt: skip
    """Insert zeros into a signal, filter it, and keep every so-manieth element.

    Args:
      h: the filter, a vector.
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      up: how many times as many elements the signal gets, by zeros after each; a positive int.
      down: one of how many elements is kept; a positive int.
      axis: along which axis to filter.
      mode: how the signal continues beyond its ends: ``"constant"``, ``"edge"``, ``"wrap"``, ``"symmetric"``,
        ``"reflect"``, ``"antisymmetric"``, ``"antireflect"``, ``"smooth"`` by its slope there, or ``"line"`` by the
        line through its ends.
      cval: the number with which it continues for ``"constant"``.

    Returns:
      An array with ((n - 1) up + len(h) - 1) // down + 1 elements along the axis.

    Raises:
      ShapeError: a filter that is no vector or is empty, a signal without elements, or an axis out of range (a
        TypeError and a ValueError).
      ArgumentError: rates that are not positive, or an unknown mode (a TypeError and a ValueError).

    Source: Crochiere and Rabiner 1983, *Multirate Digital Signal Processing*.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.upfirdn(jnp.array([1.0, 1.0]), jnp.array([1.0, 2.0, 3.0]), up=2))
    [1. 1. 2. 2. 3. 3.]
    """
    h, x = promoted("upfirdn", h, x)
    check_vector("upfirdn", h, "the filter h")
    up, down = positive_int("upfirdn", "up", up), positive_int("upfirdn", "down", down)
    where, last = axis_index(axis, len(x.shape), "upfirdn"), len(x.shape) - 1
    check_mode("upfirdn", mode)
    if not x.size:
        raise ShapeError(f"upfirdn takes a signal with elements, got shape {x.shape}")
    number = floats("upfirdn", cval)
    if number.shape:
        raise ShapeError(f"upfirdn: cval must be a number, got shape {number.shape}")
    found = on_host(h, x, number)
    # SciPy reads beyond the memory of a signal of one element if its continuation has a slope or a mirror image.
    alone = x.shape[where] == 1 and mode in ("reflect", "smooth", "antireflect", "line")
    if found is not None and not alone:
        out = imported("scipy.signal").upfirdn(found[0], found[1], up, down, where, mode, found[2].item())
        return constant(out, x.dtype)
    out = rate_filter(h, shapes.moveaxis(x, where, last), up, down, mode, cval)
    return shapes.moveaxis(out, last, where)


_BACKGROUNDS: dict[str, Callable[..., Any]] = {
    "mean": pnp.mean, "median": pnp.median, "maximum": pnp.max, "minimum": pnp.min,
}  # fmt: skip


# long: half of it is its documentation
def resample_poly(
    x: ArrayLike, up: int, down: int, axis: int = -1, window: str | tuple[Any, ...] | ArrayLike = ("kaiser", 5.0),
    padtype: str = "constant", cval: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Resample a signal to ``up / down`` times its rate by a filter of finite length.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      up, down: the factors of the two rates, positive ints.
      axis: along which axis to resample.
      window: the name of the window with which the low-pass filter is designed, with its parameters in a tuple; or the
        filter itself, a vector.
      padtype: how the signal continues beyond its ends: a mode of :func:`upfirdn`, or ``"mean"``, ``"median"``,
        ``"maximum"`` or ``"minimum"`` of its elements.
      cval: the number with which it continues for ``"constant"``; zero by default.

    Returns:
      An array with ceil(n up / down) elements along the axis.

    Raises:
      ShapeError: a filter that is no vector, or an axis out of range (a TypeError and a ValueError).
      ArgumentError: rates that are not positive, an unknown window or padtype, or a ``cval`` without ``"constant"`` (a
        TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.resample_poly(jnp.array([1.0, 2.0, 3.0, 4.0]), 1, 2, padtype="line").round(2))
    [1. 3.]
    """
    name = "resample_poly"
    x = signal(name, x)
    up, down = positive_int(name, "up", up), positive_int(name, "down", down)
    where, last = axis_index(axis, len(x.shape), name), len(x.shape) - 1
    check_mode(name, padtype, (*MODES, *_BACKGROUNDS))
    if cval is not None and padtype != "constant":
        raise ArgumentError(f"{name}: cval belongs to padtype='constant', got padtype {padtype!r}")
    n = x.shape[where]
    divisor = math.gcd(up, down)
    up, down = up // divisor, down // divisor
    if up == down == 1 or not x.size:
        shape = (*x.shape[:where], -(-n * up // down), *x.shape[where + 1 :])
        return x if x.shape == shape else pnp.zeros(shape, x.dtype)
    taps, half = _low_pass(name, window, max(up, down), x.dtype)
    number = 0.0 if cval is None else floats(name, cval)
    size = -(-n * up // down)
    # Zeros before the filter put its middle onto an element that is kept.
    lead = down - half % down
    skipped = (half + lead) // down
    trail = 0
    while filtered_size(taps.shape[0] + lead + trail, n, up, down) < size + skipped:
        trail += 1
    taps = pnp.pad(taps * constant(up, taps.dtype), (lead, trail))
    x = shapes.moveaxis(x, where, last)
    background: Any = None
    if padtype in _BACKGROUNDS:
        background, padtype = _BACKGROUNDS[padtype](x, axis=-1, keepdims=True), "constant"
        x = x - background
    y = upfirdn(taps, x, up, down, -1, padtype, number)
    y = slicing.slice_in_dim(y, skipped, skipped + size, last)
    return shapes.moveaxis(y if background is None else y + background, last, where)


def _low_pass(name: str, window: Any, rate: int, dtype: Any) -> tuple[Any, int]:
    """Return the filter of :func:`resample_poly` and half its length, in the precision of ``dtype``."""
    real = dtypes.to_real(dtype)
    if isinstance(window, (str, tuple)):
        half = 10 * rate
        try:
            taps = imported("scipy.signal").firwin(2 * half + 1, 1 / rate, window=window)
        except (ValueError, TypeError, IndexError) as error:
            raise ArgumentError(f"{name}: unknown window {quote(window)}: {error}") from None
        return constant(taps, real), half
    (taps,) = promoted(name, window)
    check_vector(name, taps, "the filter window")
    taps = taps if dtypes.is_complex(taps.dtype) else ops.convert_element_type(taps, real)
    return taps, (taps.shape[0] - 1) // 2


def decimate(
    x: ArrayLike, q: int, n: int | None = None, ftype: str = "iir", axis: int = -1, zero_phase: bool = True
) -> Array:
    """Keep one of ``q`` elements of a signal, after a low-pass filter.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      q: one of how many elements is kept; a positive int.
      n: the order of the filter; 8 for ``"iir"``, and 20 q for ``"fir"`` by default.
      ftype: ``"iir"`` for Chebyshev's filter of the first kind, ``"fir"`` for one of finite length with Hamming's
        window.
      axis: along which axis to filter.
      zero_phase: whether the filter delays nothing: it runs in both directions, or its delay is taken off.

    Returns:
      An array with ceil(n / q) elements along the axis.

    Raises:
      ShapeError: an axis out of range, or a signal that is too short for the filter (a TypeError and a ValueError).
      ArgumentError: numbers that are not positive (a TypeError and a ValueError).
      UnsupportedArgumentError: another ``ftype`` (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.decimate(jnp.arange(60.0), 10).round())
    [-0. 10. 20. 30. 39. 50.]
    """
    name = "decimate"
    x = signal(name, x)
    q = positive_int(name, "q", q)
    zero_phase = flag(name, "zero_phase", zero_phase)
    order = None if n is None else positive_int(name, "n", n)
    where = axis_index(axis, len(x.shape), name)
    real = dtypes.to_real(x.dtype)
    if not isinstance(ftype, str) or ftype not in ("iir", "fir"):
        raise UnsupportedArgumentError(
            f"{name}: ftype must be 'iir' or 'fir', got {quote(ftype)}; for a custom filter call sosfiltfilt or upfirdn"
        )
    if not x.size:
        return x
    host = imported("scipy.signal")
    kept = (*(slice(None),) * where, slice(None, None, q))
    if ftype == "iir":
        sections = constant(host.cheby1(8 if order is None else order, 0.05, 0.8 / q, output="sos"), real)
        return (sosfiltfilt if zero_phase else sosfilt)(sections, x, where)[kept]  # type: ignore[operator]
    taps = constant(host.firwin((20 * q if order is None else order) + 1, 1 / q, window="hamming"), real)
    if zero_phase:
        return resample_poly(x, 1, q, where, taps)
    y = upfirdn(taps, x, 1, q, where)
    return slicing.slice_in_dim(y, 0, -(-x.shape[where] // q), where)


# By Fourier transforms -----------------------------------------------------------------------------------------------


# long: half of it is its documentation
def resample(
    x: ArrayLike, num: int, t: ArrayLike | None = None, axis: int = 0,
    window: str | tuple[Any, ...] | ArrayLike | Callable[..., Any] | None = None, domain: str = "time",
) -> Any:  # fmt: skip
    """Resample a periodic signal by its Fourier transform.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      num: the number of elements of the result, a positive int.
      t: the times of the elements, at equal distances; the new times are returned too.
      axis: along which axis to resample.
      window: the factors of the Fourier transform: the name of a window, its values, or a function of the frequencies
        from ``numpy.fft.fftfreq``; 1 by default.
      domain: ``"time"``, or ``"freq"`` if ``x`` is the Fourier transform of the signal.

    Returns:
      The resampled signal, with ``num`` elements along the axis; with ``t`` a pair of it and the new times.

    Raises:
      ShapeError: a window or times that do not fit, or an axis out of range (a TypeError and a ValueError).
      ArgumentError: ``num`` is not positive, or an unknown window or domain (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.resample(jnp.array([2.0, 1.0, 0.0, 1.0]), 8).round(2))
    [2.   1.71 1.   0.29 0.   0.29 1.   1.71]
    """
    x = signal("resample", x)
    num = positive_int("resample", "num", num)
    where, last = axis_index(axis, len(x.shape), "resample"), len(x.shape) - 1
    if not isinstance(domain, str) or domain not in ("time", "freq"):
        raise ArgumentError(f"resample: domain must be 'time' or 'freq', got {quote(domain)}")
    if not x.size:
        raise ShapeError(f"resample takes a signal with elements, got shape {x.shape}")
    n = x.shape[where]
    x = shapes.moveaxis(x, where, last)
    if domain == "time" and not dtypes.is_complex(x.dtype):
        y = _of_halves(pnp.fft.rfft(x), _factors(window, n, x.dtype), n, num)
    else:
        spectrum = pnp.fft.fft(x) if domain == "time" else x
        factors = _factors(window, n, x.dtype)
        y = _of_spectra(spectrum if factors is None else spectrum * factors, n, num)
    y = shapes.moveaxis(y, last, where)
    if t is None:
        return y
    times = floats("resample", t)
    if len(times.shape) != 1 or times.shape[0] < 2:
        raise ShapeError(f"resample: the times t must be a vector of at least 2 elements, got shape {times.shape}")
    step = (times[1] - times[0]) * constant(n / num, times.dtype)
    return y, constant(np.arange(num), times.dtype) * step + times[0]


def _factors(window: Any, n: int, dtype: Any) -> Any:
    """Return the factors of a Fourier transform of ``n`` elements, a vector in the order of the transform, or None."""
    if window is None:
        return None
    real = dtypes.to_real(dtype)
    if callable(window) and not isinstance(window, Array):
        (values,) = promoted("resample", window(default_floats(np.fft.fftfreq(n))))
    elif isinstance(window, (str, tuple)):
        try:
            found = get_window(window, n)
        except ArgumentError as error:
            raise ArgumentError(f"resample: unknown window {quote(window)}: {error}") from None
        return ops.convert_element_type(pnp.fft.fftshift(found), real)
    else:
        (values,) = promoted("resample", window)
    if values.shape != (n,):
        raise ShapeError(f"resample: the window must have shape ({n},), got {values.shape}")
    return values if dtypes.is_complex(values.dtype) else ops.convert_element_type(values, real)


def _of_halves(spectrum: Any, factors: Any, n: int, num: int) -> Any:
    """Return ``num`` elements of a real signal, of half of the Fourier transform of its ``n`` elements.

    A frequency that is there once, as it is its own negative, is there twice after a change of the rate.
    """
    if factors is not None:
        mirrored = pnp.concatenate([factors[:1], pnp.flip(factors[1:])])
        both = (factors + mirrored) * constant(0.5, dtypes.to_real(factors.dtype))
        spectrum = spectrum * both[: n // 2 + 1]
    few = min(n, num)
    half = few // 2 + 1
    spectrum = spectrum[..., :half]
    scale = np.full(half, num / n)
    if few % 2 == 0 and n != num:
        scale[-1] *= 2 if num < n else 0.5
    spectrum = spectrum * constant(scale, dtypes.to_real(spectrum.dtype))
    return pnp.fft.irfft(spectrum, num)


def _of_spectra(spectrum: Any, n: int, num: int) -> Any:
    """Return ``num`` elements of a complex signal, of the Fourier transform of its ``n`` elements."""
    few, last = min(n, num), len(spectrum.shape) - 1
    positive, negative = spectrum[..., : (few + 1) // 2], spectrum[..., n - (few - 1) // 2 :]
    middle = []
    if few % 2 == 0:
        edge = spectrum[..., few // 2 : few // 2 + 1]
        other = spectrum[..., n - few // 2 : n - few // 2 + 1]
        if num < n:
            middle = [edge + other]
        elif num == n:
            middle = [edge]
        else:
            half = edge * constant(0.5, dtypes.to_real(edge.dtype))
            gap = pnp.zeros((*edge.shape[:-1], num - few - 1), edge.dtype)
            middle = [half, gap, half]
    elif num > few:
        middle = [pnp.zeros((*spectrum.shape[:-1], num - few), spectrum.dtype)]
    if few == 1:
        negative = spectrum[..., :0]
    joined = slicing.concatenate([positive, *middle, negative], last)
    return pnp.fft.ifft(joined) * constant(num / n, dtypes.to_real(joined.dtype))
