"""Spectra of whole signals, of segments over time, and of how much two signals have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import axis_index, known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.signal import spectra
from pullback.scipy.signal.arguments import constant, signal
from pullback.scipy.signal.spectra import Trend, Window

__all__ = ["coherence", "periodogram", "spectrogram"]


def periodogram(
    x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "boxcar", nfft: int | None = None,
    detrend: Trend = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the power spectral density of a whole signal.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      fs: the sampling frequency.
      window: the name of a window, with its parameters in a tuple if it has any, or its values.
      nfft: the length of the Fourier transform; a shorter one takes the beginning of the signal.
      detrend, return_onesided: as for :func:`stft`.
      scaling: ``"density"`` for power by frequency, ``"spectrum"`` for power.
      axis: along which axis.

    Returns:
      The frequencies, and the densities, real numbers.

    Raises:
      ArgumentError, ShapeError: as for :func:`welch`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.periodogram(jnp.array([1.0, 0.0, -1.0, 0.0]))[1])
    [0. 2. 0.]
    """
    values: Any = signal("periodogram", x)
    where = axis_index(axis, len(values.shape), "periodogram")
    length = None if nfft is None else known_int("periodogram", "nfft", nfft)
    if length is not None and 0 < length < values.shape[where]:
        values = slicing.slice_in_dim(values, 0, length, where)
    size = max(values.shape[where], 1)
    onesided = flag("periodogram", "return_onesided", return_onesided)
    return spectra.density_of(
        "periodogram", values, None, fs, window, size, 0, length, detrend, onesided, scaling, where, "mean"
    )


# long: half of it is its documentation
def spectrogram(
    x: ArrayLike, fs: ArrayLike = 1.0, window: Window = ("tukey", 0.25), nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Trend = "constant", return_onesided: bool = True,
    scaling: str = "density", axis: int = -1, mode: str = "psd",
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the spectra of consecutive segments of a signal.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      fs, window, nperseg, nfft, detrend, return_onesided: as for :func:`stft`; by default a segment has 256 elements,
        or all.
      noverlap: how many elements neighbouring segments have in common; an eighth by default.
      scaling: ``"density"`` for power by frequency, ``"spectrum"`` for power.
      axis: along which axis.
      mode: ``"psd"`` for power spectral densities; ``"complex"`` for Fourier transforms, and ``"magnitude"``,
        ``"angle"`` and ``"phase"`` for their absolute values, angles, and angles without jumps between frequencies.

    Returns:
      The frequencies, the times of the middles of the segments, and the spectra, which have the frequencies along the
      axis of the signal, and the times along a new last one.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).
      ShapeError: a window that does not fit, a signal without elements, or an axis out of range (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> x = jnp.array([1.0, 0.0, -1.0, 0.0] * 3)
    >>> frequencies, times, powers = signal.spectrogram(x, window="boxcar", nperseg=4)
    >>> print(times, powers[1])
    [ 2.  6. 10.] [2. 2. 2.]
    """
    name = "spectrogram"
    onesided = flag(name, "return_onesided", return_onesided)
    if not isinstance(mode, str) or mode not in ("psd", "complex", "magnitude", "angle", "phase"):
        raise ArgumentError(
            f"{name}: mode must be 'psd', 'complex', 'magnitude', 'angle' or 'phase', got {quote(mode)}"
        )
    x = signal(name, x)
    where, last = axis_index(axis, len(x.shape), name), len(x.shape) - 1
    if not x.size:
        raise ShapeError(f"{name} takes a signal with elements, got shape {x.shape}")
    rate, trend = spectra.frequency(name, fs), spectra.check_trend(name, detrend)
    x = shapes.moveaxis(x, where, last)
    n = x.shape[last]
    parts = spectra.segments_of(name, window, nperseg, 0 if noverlap is None else noverlap, nfft, x, n)
    if noverlap is None:
        parts = parts._replace(step=parts.size - parts.size // 8)
    onesided = onesided and not dtypes.is_complex(x.dtype)
    found = spectra.transforms_of(x, parts, trend, onesided)
    scale = spectra.density_scale(name, scaling, rate, parts.window)
    if mode == "psd":
        power = ops.add(ops.square(ops.real(found)), ops.square(ops.imag(found)))
        out = power * ops.convert_element_type(scale, power.dtype) * _twice(parts.nfft, onesided, power)
    else:
        out = found * ops.convert_element_type(pnp.sqrt(scale), found.dtype)
        out = {"magnitude": pnp.abs, "angle": pnp.angle, "phase": pnp.angle}.get(mode, lambda v: v)(out)
    out = pnp.moveaxis(out, -1, -2)
    out = pnp.unwrap(out, axis=-2) if mode == "phase" else out
    times = spectra.times_of(np.arange(parts.size / 2, n - parts.size / 2 + 1, float(parts.step)), rate)
    return spectra.frequencies_of(parts.nfft, rate, onesided), times, shapes.moveaxis(out, last, where)


def _twice(nfft: int, onesided: bool, like: Any) -> Any:
    """Return how often each frequency is in the whole spectrum."""
    factors = np.full(like.shape[-1], 2.0 if onesided else 1.0)
    if onesided:
        factors[0] = 1
        if nfft % 2 == 0:
            factors[-1] = 1
    return constant(factors, like.dtype)


def coherence(
    x: ArrayLike, y: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Trend = "constant", axis: int = -1,
) -> tuple[Array, Array]:  # fmt: skip
    """Return how much two signals have in common at each frequency, between 0 and 1, by Welch's method.

    Args:
      x, y: signals of one shape.
      fs, window, nperseg, noverlap, nfft, detrend, axis: as for :func:`csd`.

    Returns:
      The frequencies, and the squared absolute cross-spectral densities, divided by both power spectral densities.

    Raises:
      ArgumentError, ShapeError: as for :func:`csd`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> x = jnp.array([1.0, 2.0, -1.0, 0.5] * 3)
    >>> print(signal.coherence(x, 2 * x, nperseg=4)[1])
    [1. 1. 1.]
    """
    name = "coherence"
    x, y = signal(name, x), signal(name, y)
    density = lambda a, b: spectra.density_of(
        name, a, b, fs, window, nperseg, noverlap, nfft, detrend, True, "density", axis, "mean"
    )
    (frequencies, first), (_, second), (_, both) = density(x, None), density(y, None), density(x, y)
    return frequencies, (ops.square(both.real) + ops.square(both.imag)) / first / second
