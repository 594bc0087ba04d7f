"""Short-time Fourier transforms of segments of a signal, spectra averaged over segments, and trends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.core.source import warn
from pullback.core.trace import Tracer
from pullback.numpy.promotion import axis_index, inexact_operand, inexact_operands, known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.arguments import inexact
from pullback.scipy.signal.windows import get_window

__all__ = ["csd", "detrend", "istft", "stft", "welch"]

Window = str | tuple[Any, ...] | ArrayLike
"""The name of a window, with its parameters in a tuple if it has any, or its values."""
Trend = str | bool | Callable[..., Any]
"""The trend that is subtracted from each segment of a signal, or a function that removes it."""

# Arguments -----------------------------------------------------------------------------------------------------------


def _signal(name: str, x: Any) -> Array:
    """Convert ``x`` to an array of single or double precision; raise if it is a scalar."""
    x = inexact_operand(name, x)
    if not x.shape:
        raise ShapeError(f"{name} takes an array with at least one axis, got a number")
    return x if x.dtype.char in "fdFD" else ops.convert_element_type(x, np.dtype(np.float32))


class _Segments(NamedTuple):
    """The segments into which a signal is cut.

    Attributes:
      window: the factors of the elements of a segment, a vector of real numbers.
      size: the number of elements of a segment, ``nperseg``.
      step: the distance between the starts of neighbouring segments.
      nfft: the length of the Fourier transform.
    """

    window: Any
    size: int
    step: int
    nfft: int


def _window(name: str, window: Any, size: int | None, like: Any) -> tuple[Any, int]:
    """Return a window as a vector, in the precision of ``like``, and its size.

    Args:
      name: the public function, for errors.
      window: the name of a window, or a vector.
      size: the size of a named window; a vector must have this size, unless it is None.
      like: an array whose precision the vector gets.
    """
    real = dtypes.to_real(like.dtype)
    if isinstance(window, (str, tuple)) and size is not None:
        if size < 1:
            raise ArgumentError(f"{name}: nperseg must be positive, got {size}")
        try:
            values = get_window(window, size)
        except ArgumentError as error:
            raise ArgumentError(f"{name}: unknown window {quote(window)}: {error}") from None
        return values if values.dtype == real else ops.convert_element_type(values, real), size
    vector = inexact(name, window)
    if len(vector.shape) != 1 or not vector.shape[0] or dtypes.is_complex(vector.dtype):
        raise ShapeError(
            f"{name}: a window must be a name or a vector of real numbers, got shape {vector.shape} and "
            f"dtype {dtypes.short_name(vector.dtype)}"
        )
    if size is not None and size != vector.shape[0]:
        raise ShapeError(f"{name}: nperseg must be the size of the window, {vector.shape[0]}, got {size}")
    return ops.convert_element_type(vector, real), vector.shape[0]


def segments_of(
    name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, like: Any, longest: int | None
) -> _Segments:
    """Check the arguments of the function ``name`` that describe segments, and return them as :class:`_Segments`.

    The window gets the precision of ``like``. If ``longest`` is not None, segments have at most so many elements: a
    named window is shortened, and for a longer vector an error is raised.
    """
    size = None if nperseg is None else known_int(name, "nperseg", nperseg)
    if longest is not None and isinstance(window, (str, tuple)):
        size = 256 if size is None else size
        if size > longest:
            if nperseg is not None:
                warn(
                    f"{name}: nperseg={size} is more than the {longest} elements of the signal; nperseg={longest} "
                    f"is used",
                    UserWarning,
                )
            size = longest
    vector, size = _window(name, window, size, like)
    if longest is not None and size > longest:
        raise ShapeError(f"{name}: the window, of {size} elements, is longer than the signal, of {longest}")
    length = size if nfft is None else known_int(name, "nfft", nfft)
    overlap = size // 2 if noverlap is None else known_int(name, "noverlap", noverlap)
    if length < size:
        raise ArgumentError(f"{name}: nfft must be at least nperseg, got {length} and {size}")
    if not 0 <= overlap < size:
        raise ArgumentError(f"{name}: noverlap must be at least 0 and less than nperseg, got {overlap} and {size}")
    return _Segments(vector, size, size - overlap, length)


# Segments ------------------------------------------------------------------------------------------------------------


def cut_segments(x: Any, size: int, step: int) -> Any:
    """Cut the last axis into segments that start at multiples of ``step``; return an array (..., segments, size)."""
    last, n = len(x.shape) - 1, x.shape[-1]
    count, pieces = (n - size) // step + 1, -(-size // step)
    length = (count + pieces - 1) * step
    x = slicing.slice_in_dim(x, 0, min(n, length), last)
    if length > x.shape[last]:
        x = slicing.pad(x, 0, [*[(0, 0, 0)] * last, (0, length - x.shape[last], 0)])
    rows = shapes.reshape(x, (*x.shape[:last], count + pieces - 1, step))
    columns = [slicing.slice_in_dim(rows, k, k + count, last) for k in range(pieces)]
    return slicing.slice_in_dim(slicing.concatenate(columns, last + 1), 0, size, last + 1)


def overlap_add(segments: Any, step: int) -> Any:
    """Add segments (..., segments, size), which start at multiples of ``step`` and may overlap, to one signal."""
    *batch, count, size = segments.shape
    last, pieces = len(batch), -(-size // step)
    none = [(0, 0, 0)] * last
    wide = slicing.pad(segments, 0, [*none, (0, 0, 0), (0, pieces * step - size, 0)])
    total = None
    for k in range(pieces):
        piece = slicing.slice_in_dim(wide, k * step, (k + 1) * step, last + 1)
        piece = slicing.pad(piece, 0, [*none, (k, pieces - 1 - k, 0), (0, 0, 0)])
        total = piece if total is None else ops.add(total, piece)
    assert total is not None
    flat = shapes.reshape(total, (*batch, (count + pieces - 1) * step))
    return slicing.slice_in_dim(flat, 0, size + (count - 1) * step, last)


def _extended(x: Any, count: int, how: str) -> Array:
    """Extend the last axis by ``count`` elements at both ends.

    ``how`` is an option ``boundary`` of :func:`stft`: "zeros", "constant", "even" or "odd".
    """
    last, n = len(x.shape) - 1, x.shape[-1]
    widths = [(0, 0)] * last + [(count, count)]
    if how == "zeros":
        return pnp.pad(x, widths)
    if how == "constant":
        return pnp.pad(x, widths, "edge")
    if count >= n:
        raise ShapeError(
            f"stft: with boundary={how!r} half a segment, {count} elements, must be less than the {n} elements of "
            f"the signal; use another boundary, or a smaller nperseg"
        )
    return pnp.pad(x, widths, "reflect", **({"reflect_type": "odd"} if how == "odd" else {}))


def frequencies_of(nfft: int, fs: Any, onesided: bool) -> Any:
    numbers = (np.fft.rfftfreq if onesided else np.fft.fftfreq)(nfft, 1.0)
    return _scaled(numbers, fs, ops.mul, np.multiply)


def times_of(points: np.ndarray[Any, Any], fs: Any) -> Any:
    return _scaled(points, fs, ops.div, np.divide)


def _scaled(values: np.ndarray[Any, Any], fs: Any, traced: Callable[..., Any], known: Callable[..., Any]) -> Any:
    """Multiply or divide constant numbers by the sampling frequency ``fs``; return an array.

    Return ``traced(values, fs)`` if ``fs`` is an array, and ``known(values, fs)``, of NumPy, if ``fs`` is a number.
    """
    if isinstance(fs, Array):
        fs = inexact_operand("a sampling frequency", fs)
        return traced(ArrayImpl(values.astype(dtypes.default_float())), fs)
    return ArrayImpl(known(values, np.float64(fs)).astype(dtypes.default_float()))


def frequency(name: str, fs: Any) -> Any:
    if isinstance(fs, (int, float)) and not isinstance(fs, bool):
        return float(fs)
    fs = inexact_operand(name, fs)
    if fs.shape:
        raise ShapeError(f"{name}: the sampling frequency fs must be a number, got shape {fs.shape}")
    return fs if isinstance(fs, Tracer) else float(fs)


# Spectra -------------------------------------------------------------------------------------------------------------

_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def transforms_of(x: Any, segments: _Segments, trend: Any, onesided: bool) -> Any:
    """Return the Fourier transforms of the segments of ``x``, (..., segments, frequencies).

    Args:
      x: the signal.
      segments: how to cut the signal.
      trend: a function to apply to the segments first, or the kind of trend to subtract, or False.
      onesided: whether to return the frequencies from 0 on only.
    """
    cut = cut_segments(x, segments.size, segments.step)
    if callable(trend):
        cut = trend(cut)
    elif trend:
        cut = without_trend(cut, trend, (0, segments.size))
    transform = pnp.fft.rfft if onesided else pnp.fft.fft
    return transform(along_last(ops.mul, cut, segments.window), segments.nfft)


def along_last(operation: Callable[[Any, Any], Any], x: Any, vector: Any) -> Any:
    """Apply an operation to an array and to a vector that is broadcast along the last axis of the array.

    Both are promoted first, so that the operation also works under strict promotion.
    """
    dtype = dtypes.common_dtype(x, vector)
    row = shapes.reshape(vector, (*(1,) * (len(x.shape) - 1), *vector.shape))
    return operation(ops.convert_element_type(x, dtype), ops.convert_element_type(row, dtype))


def check_trend(name: str, trend: Any) -> Any:
    if is_listed(trend, (False, None)) or callable(trend):
        return trend
    return trend_of(name, trend)


def trend_of(name: str, type: Any) -> str:
    if not is_listed(type, ("linear", "l", "constant", "c")):
        raise ArgumentError(f"{name}: the type of a trend must be 'linear' or 'constant', got {type!r}")
    return "linear" if type in ("linear", "l") else "constant"


def density_scale(name: str, scaling: Any, fs: Any, window: Any) -> Any:
    """Return the factor that converts squared Fourier transforms of windowed samples to a spectrum.

    ``scaling`` is "density" for a spectrum per unit of frequency, or "spectrum" for the power at each frequency. ``fs``
    is the sampling frequency.
    """
    if is_listed(scaling, ("density",)):
        return ops.div(1.0, ops.mul(fs, pnp.sum(window * window)))
    if is_listed(scaling, ("spectrum",)):
        return ops.div(1.0, ops.square(pnp.sum(window)))
    raise ArgumentError(f"{name}: scaling must be 'density' or 'spectrum', got {scaling!r}")


def stft(
    x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int = 256, noverlap: int | None = None,
    nfft: int | None = None, detrend: Trend = False, return_onesided: bool = True, boundary: str | None = "zeros",
    padded: bool = True, axis: int = -1,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The short-time Fourier transform: the transforms of overlapping segments of a signal.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      fs: the sampling frequency, a number.
      window: the factors of each segment: the name of a SciPy window, a tuple of a name and parameters, or a vector.
      nperseg: the number of elements of a segment.
      noverlap: the number of elements that neighbouring segments share; half a segment by default.
      nfft: the length of the transforms, at least ``nperseg``; the same by default.
      detrend: the trend to subtract from each segment first: ``"constant"`` for its mean, ``"linear"`` for the
        line that fits it best, ``False`` for none; or a function of the segments, which are along the last axis.
      return_onesided: whether to return the half of the frequencies that determines the other, for real signals.
      boundary: the extension of the signal by half a segment at both ends: ``"zeros"``, ``"constant"`` for its last
        elements, ``"even"`` or ``"odd"`` for its mirror image, or None for no extension.
      padded: whether zeros are added to the end, so that all elements are in a segment.
      axis: the axis along which the signal runs, an integer.

    Returns:
      The frequencies, the times in the middle of the segments, and the transforms, divided by the sum of the window,
      which have the frequencies along the axis of the signal, and the times along a new last one.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).
      ShapeError: a window that does not fit, or an axis out of range (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> frequencies, times, transforms = signal.stft(jnp.array([1.0, 0.0, -1.0, 0.0] * 3), nperseg=4)
    >>> print(frequencies, abs(transforms)[:, 2])
    [0.   0.25 0.5 ] [0.5 0.5 0.5]
    """
    return_onesided = flag("stft", "return_onesided", return_onesided)
    x = _signal("stft", x)
    if not is_listed(boundary, _BOUNDARIES):
        raise ArgumentError(f"stft: boundary must be one of {_BOUNDARIES}, got {boundary!r}")
    fs, trend = frequency("stft", fs), check_trend("stft", detrend)
    where, last = axis_index(axis, len(x.shape), "stft"), len(x.shape) - 1
    onesided = return_onesided and not dtypes.is_complex(x.dtype)
    if not x.size:
        empty = shapes.full(x.shape, 0, dtypes.to_real(x.dtype))
        return empty, empty, empty
    x = shapes.moveaxis(x, where, last)
    segments = segments_of("stft", window, nperseg, noverlap, nfft, x, x.shape[last])
    if boundary is not None:
        x = _extended(x, segments.size // 2, boundary)
    if flag("stft", "padded", padded):
        more = -(x.shape[last] - segments.size) % segments.step % segments.size
        x = pnp.pad(x, [(0, 0)] * last + [(0, more)])
    out = transforms_of(x, segments, trend, onesided)
    out = ops.div(out, ops.convert_element_type(pnp.sum(segments.window), out.dtype))
    points = segments.size / 2 + np.arange(0.0, float(x.shape[last] - segments.size + 1), float(segments.step))
    if boundary is not None:
        points = points - segments.size / 2
    out = shapes.moveaxis(out, last + 1, where)
    return frequencies_of(segments.nfft, fs, onesided), times_of(points, fs), out


def csd(
    x: ArrayLike, y: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Trend = "constant", return_onesided: bool = True,
    scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """The cross-spectral density of two signals, by Welch's method: the mean over overlapping segments.

    Args:
      x, y: signals; the shorter one is padded with zeros. None for ``y`` stands for ``x``.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided: as for :func:`stft`; by default a segment has
        256 elements, or all.
      scaling: ``"density"`` for power by frequency, ``"spectrum"`` for power.
      axis: along which axis.
      average: ``"mean"`` or ``"median"`` over the segments, the latter divided by its bias.

    Returns:
      The frequencies, and the densities: complex ones, or real ones if ``y`` is None or ``x`` itself.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).
      ShapeError: signals or a window that do not fit, or an axis out of range (a TypeError and a ValueError).

    Source: Welch 1967.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> x = jnp.array([1.0, 0.0, -1.0, 0.0] * 3)
    >>> print(signal.csd(x, 2 * x, nperseg=4)[1].real)
    [1.3333334 2.6666667 1.3333334]
    """
    return_onesided = flag("csd", "return_onesided", return_onesided)
    return density_of(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )


def density_of(
    name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
    return_onesided: bool, scaling: str, axis: int, average: str,
) -> tuple[Any, Any]:  # fmt: skip
    fs, trend = frequency(name, fs), check_trend(name, detrend)
    alone = y is None or y is x
    xs = [_signal(name, v) for v in (inexact_operands(name, x) if alone else inexact_operands(name, x, y))]
    if not is_listed(average, ("mean", "median")):
        raise ArgumentError(f"{name}: average must be 'mean' or 'median', got {average!r}")
    where = axis_index(axis, len(xs[0].shape), name)
    xs = [shapes.moveaxis(v, axis_index(axis, len(v.shape), name), len(v.shape) - 1) for v in xs]
    longest = max(v.shape[-1] for v in xs)
    if any(not v.size for v in xs):
        shape = pnp.broadcast_shapes(*[v.shape[:-1] for v in xs])
        empty = shapes.full((*shape, min(v.shape[-1] for v in xs)), 0, dtypes.to_real(xs[0].dtype))
        return (pnp.moveaxis(empty, -1, where),) * 2
    xs = [
        v if v.shape[-1] == longest else pnp.pad(v, [(0, 0)] * (len(v.shape) - 1) + [(0, longest - v.shape[-1])])
        for v in xs
    ]
    onesided = return_onesided and not dtypes.is_complex(xs[0].dtype)
    segments = segments_of(name, window, nperseg, noverlap, nfft, xs[0], longest)
    scale = density_scale(name, scaling, fs, segments.window)
    transforms = [transforms_of(v, segments, trend, onesided) for v in xs]
    if alone:
        (only,) = transforms
        power = ops.add(ops.square(ops.real(only)), ops.square(ops.imag(only)))
    else:
        power = ops.mul(ops.conj(transforms[0]), transforms[1])
    if onesided:
        twice = np.full(power.shape[-1], 2.0)
        twice[0] = 1
        if segments.nfft % 2 == 0:
            twice[-1] = 1
        power = ops.mul(power, ArrayImpl(twice.astype(power.dtype)))
    power = ops.mul(_averaged(power, average), ops.convert_element_type(scale, power.dtype))
    return frequencies_of(segments.nfft, fs, onesided), pnp.moveaxis(power, -1, where)


def _averaged(power: Any, average: str) -> Any:
    """Return the mean of ``power`` over the segments, or if ``average`` is "median", the median divided by its bias.

    The segments are along the axis before the last.
    """
    over, count = len(power.shape) - 2, power.shape[-2]
    if average == "mean" or count == 1:
        return pnp.mean(power, axis=over)
    bias = 1 + float(np.sum([1 / (k + 1) - 1 / k for k in range(2, 2 * ((count - 1) // 2) + 1, 2)]))
    if dtypes.is_complex(power.dtype):
        median = ops.complex(pnp.median(power.real, axis=over), pnp.median(power.imag, axis=over))
    else:
        median = pnp.median(power, axis=over)
    return ops.div(median, bias)


def welch(
    x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Trend = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """The power spectral density of a signal, by Welch's method: the mean over overlapping segments.

    Args:
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided: as for :func:`stft`; by default a segment has 256
        elements, or all.
      scaling, axis, average: as for :func:`csd`.

    Returns:
      The frequencies, and the densities, real numbers.

    Raises:
      ArgumentError, ShapeError: as for :func:`csd`.

    Source: Welch 1967.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.welch(jnp.array([1.0, 0.0, -1.0, 0.0] * 3), nperseg=4)[1])
    [0.6666667 1.3333334 0.6666667]
    """
    return_onesided = flag("welch", "return_onesided", return_onesided)
    return density_of(
        "welch", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )


# long: half of it is its documentation
def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal whose :func:`stft` is ``Zxx``; for other arrays, the signal whose transforms are nearest.

    Args:
      Zxx: the transforms, an array of complex numbers with axes of frequencies and of times.
      fs, window, nperseg, noverlap, nfft: as for :func:`stft`; segments are as long as the transforms by default.
      input_onesided: whether ``Zxx`` has half of the frequencies.
      boundary: whether the signal was extended, so that half a segment is cut off at both ends.
      time_axis, freq_axis: which axes of ``Zxx`` are the times and the frequencies.

    Returns:
      The times along the axis of the signal, and the signal, real if ``input_onesided``. (The times that SciPy and JAX
      return for several signals are as many as the first axis has elements.)

    Raises:
      ArgumentError: numbers that make no sense (a TypeError and a ValueError).
      ShapeError: a window that does not fit, or axes that do not exist or are equal (a TypeError and a ValueError).

    Source: Griffin and Lim 1984.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.istft(signal.stft(jnp.array([1.0, 2.0, 3.0, 4.0]), nperseg=2)[2])[1])
    [1. 2. 3. 4.]
    """
    input_onesided = flag("istft", "input_onesided", input_onesided)
    boundary = flag("istft", "boundary", boundary)
    z = _signal("istft", Zxx)
    fs, rank = frequency("istft", fs), len(z.shape)
    if rank < 2:
        raise ShapeError(f"istft takes an array with axes for time and frequency, got shape {z.shape}")
    when, which = (axis_index(a, rank, "istft") for a in (time_axis, freq_axis))
    if when == which:
        raise ShapeError(f"istft: the axes of times and frequencies must differ, got {time_axis} and {freq_axis}")
    if not math.prod(z.shape):
        raise ShapeError(f"istft takes a non-empty array, got shape {z.shape}")
    full = 2 * (z.shape[which] - 1) if input_onesided else z.shape[which]
    size = full if nperseg is None else known_int("istft", "nperseg", nperseg)
    if not isinstance(window, (str, tuple)) and nperseg is None:
        size = None  # type: ignore[assignment]
    length = size if nfft is None and input_onesided and size == full + 1 else full if nfft is None else nfft
    segments = segments_of("istft", window, size, noverlap, length, z, None)
    z = pnp.moveaxis(z, (when, which), (-2, -1))
    xs = (pnp.fft.irfft if input_onesided else pnp.fft.ifft)(z, segments.nfft)
    xs = slicing.slice_in_dim(xs, 0, segments.size, rank - 1)
    weighted = along_last(ops.mul, xs, ops.mul(segments.window, pnp.sum(segments.window)))
    squares = shapes.broadcast_to(ops.square(segments.window), (z.shape[-2], segments.size))
    x, norm = overlap_add(weighted, segments.step), overlap_add(squares, segments.step)
    cut = segments.size // 2 if boundary else 0
    x = slicing.slice_in_dim(x, cut, max(x.shape[-1] - cut, cut), rank - 2)
    norm = slicing.slice_in_dim(norm, cut, max(norm.shape[-1] - cut, cut), 0)
    known = norm.concrete() if isinstance(norm, Tracer) else norm
    if known is not None and not (np.asarray(known) > 1e-10).all():
        warn(
            "istft: the signal is undetermined where the windows of all segments are zero; use larger overlaps",
            UserWarning,
        )
    x = along_last(ops.div, x, ops.where(ops.gt(norm, 1e-10), norm, 1.0))
    times = times_of(np.arange(x.shape[-1], dtype=np.float64), fs)
    return times, pnp.moveaxis(x, -1, when - (which < when))


# Trends --------------------------------------------------------------------------------------------------------------


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: ArrayLike | Sequence[Any] = 0,
    overwrite_data: None = None,
) -> Array:
    """A signal without its trend.

    Args:
      data: the signal, an array of floats or complex numbers of any shape; integers are converted.
      axis: the axis along which the signal runs, an integer.
      type: ``"linear"`` for the straight line that fits the signal best, ``"constant"`` for its mean.
      bp: an int or a sequence of ints: the indices at which another line begins.
      overwrite_data: must be None, for arrays are immutable.

    Returns:
      Floats or complex numbers, of the shape of ``data``.

    Raises:
      ShapeError: an axis out of range (a TypeError and a ValueError).
      ArgumentError: an unknown type, or an index that is not in the signal (a TypeError and a ValueError).
      UnsupportedArgumentError: ``overwrite_data`` (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.detrend(jnp.array([1.0, 2.0, 6.0]), type="constant"))
    [-2. -1.  3.]
    """
    if overwrite_data is not None:
        raise UnsupportedArgumentError(
            f"detrend: overwrite_data must be None, because arrays are immutable; got {overwrite_data!r}"
        )
    x = _signal("detrend", data)
    kind = trend_of("detrend", type)
    where, last = axis_index(axis, len(x.shape), "detrend"), len(x.shape) - 1
    n = x.shape[where]
    if not x.size:
        return x
    try:
        breaks = np.atleast_1d(np.asarray(bp))
    except ValueError:  # lists of several lengths
        breaks = np.array([None])
    if breaks.dtype.kind not in "iu" or breaks.ndim > 1 or (breaks < 0).any() or (breaks > n).any():
        raise ArgumentError(
            f"detrend: the indices bp must be ints from 0 to the {n} elements of the axis, got {quote(bp)}"
        )
    bounds = (0, n) if kind == "constant" else tuple(sorted({0, n, *breaks.tolist()}))
    return shapes.moveaxis(without_trend(shapes.moveaxis(x, where, last), kind, bounds), last, where)


def without_trend(x: Any, kind: str, bounds: Sequence[int]) -> Any:
    """Subtract a trend from each section of the last axis; a section is between two consecutive ``bounds``.

    ``kind`` is "constant" for the mean of the whole axis, or "linear" for a line in each section.
    """
    if kind == "constant":
        return ops.sub(x, pnp.mean(x, axis=-1, keepdims=True))
    last, sections = len(x.shape) - 1, []
    for start, stop in pairwise(bounds):
        section = slicing.slice_in_dim(x, start, stop, last)
        mean = pnp.mean(section, axis=-1, keepdims=True)
        section = ops.sub(section, mean)
        if stop - start > 1:
            line = np.arange(stop - start) - (stop - start - 1) / 2
            unit = ArrayImpl((line / np.linalg.norm(line)).astype(x.dtype))
            slope = pnp.sum(ops.mul(section, unit), axis=-1, keepdims=True)
            section = ops.sub(section, ops.mul(slope, unit))
        sections.append(section)
    return slicing.concatenate(sections, last)
