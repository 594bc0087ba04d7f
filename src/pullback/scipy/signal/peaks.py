"""Peaks of signals: the host finds their positions, which are constant; heights and widths have derivatives.

Where a signal is traced, the number of peaks must be known before: the argument ``size``, as of ``numpy.nonzero``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, known_int, operand, quote, strong
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known, real_floats
from pullback.scipy.signal.arguments import constant, found_on_host, known_or_traced, of_scipy, positive_int

__all__ = [
    "argrelextrema", "argrelmax", "argrelmin", "find_peaks", "find_peaks_cwt", "peak_prominences", "peak_widths",
]  # fmt: skip

Interval = float | Sequence[Any] | ArrayLike | None
"""A least number, a pair of the least and the largest, each of them perhaps one for each element, or None."""

# Extrema among neighbours --------------------------------------------------------------------------------------------

_COMPARATORS: dict[Any, Callable[..., Any]] = {
    np.greater: pnp.greater, np.less: pnp.less, np.greater_equal: pnp.greater_equal, np.less_equal: pnp.less_equal,
    np.equal: pnp.equal, np.not_equal: pnp.not_equal,
}  # fmt: skip


def argrelextrema(
    data: ArrayLike, comparator: Callable[..., Any], axis: int = 0, order: int = 1, mode: str = "clip", *,
    size: int | None = None, fill_value: int = -1,
) -> tuple[Array, ...]:  # fmt: skip
    """Find the elements for which a comparison with all their neighbours is true.

    Args:
      data: an array of numbers.
      comparator: a function of two arrays that returns booleans, such as ``pullback.numpy.greater``.
      axis: along which axis neighbours are.
      order: how many neighbours on each side count.
      mode: what is beyond the ends: ``"clip"`` for the last element, ``"wrap"`` for the other end.
      size: how many positions to return, the first ones; needed where ``data`` is traced.
      fill_value: the position that stands for those that are missing.

    Returns:
      The positions, a vector of ints for each axis.

    Raises:
      ShapeError: a number, or an axis out of range (a TypeError and a ValueError).
      ArgumentError: an ``order`` that is not positive, or an unknown mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.argrelextrema(jnp.array([2.0, 1.0, 2.0, 3.0, 2.0, 0.0]), jnp.less)[0])
    [1]
    """
    return _extrema("argrelextrema", data, comparator, axis, order, mode, size, fill_value)


def argrelmax(
    data: ArrayLike, axis: int = 0, order: int = 1, mode: str = "clip", *, size: int | None = None,
    fill_value: int = -1,
) -> tuple[Array, ...]:  # fmt: skip
    """Find the elements that are larger than all their neighbours.

    Args:
      data: an array of numbers.
      axis, order, mode, size, fill_value: as for :func:`argrelextrema`.

    Returns:
      The positions, a vector of ints for each axis.

    Raises:
      ShapeError, ArgumentError: as for :func:`argrelextrema`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.argrelmax(jnp.array([2.0, 1.0, 2.0, 3.0, 2.0, 0.0, 1.0, 0.0]))[0])
    [3 6]
    """
    return _extrema("argrelmax", data, pnp.greater, axis, order, mode, size, fill_value)


def argrelmin(
    data: ArrayLike, axis: int = 0, order: int = 1, mode: str = "clip", *, size: int | None = None,
    fill_value: int = -1,
) -> tuple[Array, ...]:  # fmt: skip
    """Find the elements that are smaller than all their neighbours.

    Args:
      data: an array of numbers.
      axis, order, mode, size, fill_value: as for :func:`argrelextrema`.

    Returns:
      The positions, a vector of ints for each axis.

    Raises:
      ShapeError, ArgumentError: as for :func:`argrelextrema`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.argrelmin(jnp.array([2.0, 1.0, 2.0, 3.0, 2.0, 0.0, 1.0, 0.0]))[0])
    [1 5]
    """
    return _extrema("argrelmin", data, pnp.less, axis, order, mode, size, fill_value)


def _extrema(
    name: str, data: Any, comparator: Any, axis: Any, order: Any, mode: Any, size: Any, fill_value: Any
) -> tuple[Any, ...]:
    x = operand(name, data)
    where = axis_index(axis, len(x.shape), name)
    order = positive_int(name, "order", order)
    if not isinstance(mode, str) or mode not in ("clip", "wrap"):
        raise ArgumentError(f"{name}: mode must be 'clip' or 'wrap', got {quote(mode)}")
    if not callable(comparator):
        raise ArgumentError(f"{name}: comparator must be a function of two arrays, got {quote(comparator)}")
    compare = _COMPARATORS.get(comparator, comparator) if isinstance(comparator, np.ufunc) else comparator
    n, found = x.shape[where], None
    for shift in (s for k in range(1, order + 1) for s in (k, -k)):
        positions = np.arange(n) + shift
        positions = positions % max(n, 1) if mode == "wrap" else np.clip(positions, 0, max(n - 1, 0))
        holds = compare(x, pnp.take(x, positions, axis=where) if n else x)
        found = holds if found is None else pnp.logical_and(found, holds)
    return _positions(name, found, size, fill_value)


def _positions(name: str, mask: Any, size: Any, fill_value: Any) -> tuple[Any, ...]:
    if size is None and known(mask) is None:
        raise ConcretizationTypeError(
            f"{name}: how many positions are found is not known while the array is traced; pass size, the number to "
            f"return"
        )
    return pnp.nonzero(mask, size=size, fill_value=None if size is None else known_int(name, "fill_value", fill_value))


# Peaks ---------------------------------------------------------------------------------------------------------------


def _samples(name: str, x: Any) -> Array:
    x = real_floats(name, x, "the signal x")
    if len(x.shape) != 1:
        raise ShapeError(f"{name}: the signal x must be a vector, got shape {x.shape}")
    return strong(x)


def _interval(name: str, what: str, value: Any) -> Any:
    """Return a condition as NumPy's numbers; raise if it is traced."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(_interval(name, what, v) for v in value)
    found = known(operand(name, value))
    if found is None:
        raise ConcretizationTypeError(
            f"{name}: the condition {what} must be known, because the host selects the peaks; got a traced value"
        )
    return found


_NEEDS = {
    "plateau_sizes": ("plateau_size",), "left_edges": ("plateau_size",), "right_edges": ("plateau_size",),
    "peak_heights": ("height",), "left_thresholds": ("threshold",), "right_thresholds": ("threshold",),
    "prominences": ("prominence", "width"), "left_bases": ("prominence", "width"),
    "right_bases": ("prominence", "width"), "widths": ("width",), "width_heights": ("width",),
    "left_ips": ("width",), "right_ips": ("width",),
}  # fmt: skip
"""For each property of peaks the conditions for which it is computed."""
_INTS = ("plateau_sizes", "left_edges", "right_edges", "left_bases", "right_bases")
"""The properties that are integers."""


# long: half of it is its documentation
def find_peaks(
    x: ArrayLike, height: Interval = None, threshold: Interval = None, distance: float | None = None,
    prominence: Interval = None, width: Interval = None, wlen: int | None = None, rel_height: float = 0.5,
    plateau_size: Interval = None, *, size: int | None = None, fill_value: int = -1,
) -> tuple[Array, dict[str, Array]]:  # fmt: skip
    """Find the peaks of a signal: elements, or the middles of plateaus, that are larger than both neighbours.

    The positions are constant. Heights, thresholds, prominences and widths have derivatives by the signal.

    Args:
      x: the signal, a vector of real numbers.
      height, threshold, prominence, width, plateau_size: which peaks to keep: those with at least this height, this
        difference from both neighbours, this prominence, this width, and this number of equal elements; or a pair of
        the least and the largest; or such numbers for each element of ``x``. They must not be traced.
      distance: the least distance of two peaks, of which the larger one is kept.
      wlen: how many elements around a peak count for its prominence; all by default.
      rel_height: at which part of the prominence below the peak its width is measured.
      size: how many peaks to return, the first ones; needed where ``x`` is traced.
      fill_value: the position that stands for peaks that are missing, whose other properties are NaN.

    Returns:
      The positions, and a dict of the properties that the conditions use: ``"peak_heights"``, ``"left_thresholds"``,
      ``"right_thresholds"``, ``"prominences"``, ``"left_bases"``, ``"right_bases"``, ``"widths"``,
      ``"width_heights"``, ``"left_ips"``, ``"right_ips"``, ``"plateau_sizes"``, ``"left_edges"``, ``"right_edges"``.

    Raises:
      ShapeError: a signal that is no vector (a TypeError and a ValueError).
      ArgumentError: a condition that makes no sense (a TypeError and a ValueError).
      ConcretizationTypeError: a traced signal without ``size``, or a traced condition (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy import signal
    >>> x = jnp.array([0.0, 2.0, 1.0, 3.0, 0.0])
    >>> peaks, properties = signal.find_peaks(x, prominence=0.5)
    >>> print(peaks, properties["prominences"])
    [1 3] [1. 3.]
    >>> print(grad(lambda x: signal.find_peaks(x, prominence=0.5)[1]["prominences"][0])(x))
    [ 0.  1. -1.  0.  0.]
    """
    name = "find_peaks"
    x = _samples(name, x)
    given = {
        "height": height, "threshold": threshold, "prominence": prominence, "width": width,
        "plateau_size": plateau_size, "distance": distance, "wlen": wlen, "rel_height": rel_height,
    }  # fmt: skip
    options = {what: _interval(name, what, value) for what, value in given.items()}
    search = lambda x: of_scipy(name, lambda: imported("scipy.signal").find_peaks(x, **options))
    values = known(x)
    if size is None and values is None:
        raise ConcretizationTypeError(
            f"{name}: how many peaks there are is not known while the signal is traced; pass size, the number to return"
        )
    found = None if values is None else search(np.asarray(values, np.float64))
    if size is None and found is not None and is_on_host(x):
        return as_array(_int(found[0])), {k: _property(k, v, x.dtype) for k, v in found[1].items()}
    count = len(found[0]) if size is None and found is not None else known_int(name, "size", size)
    fill = known_int(name, "fill_value", fill_value)
    if count < 0:
        raise ArgumentError(f"{name}: size must be at least 0, got {count}")
    like = [k for k, needs in _NEEDS.items() if any(options[what] is not None for what in needs)]
    ints = [k for k in like if k in _INTS]
    crossed = ["left_ips", "right_ips"] if width is not None else []

    def positions(x: Any) -> Any:
        peaks, properties = search(np.asarray(x, np.float64))
        rows = [peaks, *(properties[k] for k in ints)]
        if crossed:
            rows += [np.floor(properties["left_ips"]), np.ceil(properties["right_ips"])]
        out = np.full((len(rows), count), -1, np.int32)
        out[:, : len(peaks)] = np.stack(rows)[:, :count]
        return out

    rows = 1 + len(ints) + len(crossed)
    peaks, *others = found_on_host(positions, (rows, count), x)
    at = dict(zip([*ints, *crossed], others, strict=True))
    there = pnp.greater_equal(peaks, np.int32(0))
    properties = _measured(x, peaks, at, like, float(rel_height))
    out = {k: _filled(at[k] if k in ints else properties[k], there, fill if k in ints else math.nan) for k in like}
    return _filled(peaks, there, fill), out


def _int(x: Any) -> Any:
    return np.asarray(x, dtypes.default_int())


def _property(name: str, value: Any, dtype: Any) -> Any:
    return constant(value, dtypes.default_int() if name in _INTS else dtype)


def _filled(x: Any, there: Any, fill: Any) -> Any:
    dtype = dtypes.default_int() if x.dtype.kind in "iu" else x.dtype
    x = ops.convert_element_type(x, dtype)
    return pnp.where(there, x, constant(fill, dtype))


def _at(x: Any, positions: Any) -> Any:
    """Return the elements of ``x`` at positions, of which those that are out of range stand for any."""
    last = np.int32(max(x.shape[0] - 1, 0))
    if not x.shape[0]:
        return pnp.zeros(positions.shape, x.dtype)
    return x[pnp.clip(positions, np.int32(0), last)]


def _measured(x: Any, peaks: Any, at: dict[str, Any], names: Any, rel_height: float) -> dict[str, Any]:
    """Return the properties of peaks that are numbers, by positions that the host has found."""
    top, out = _at(x, peaks), {}
    if "peak_heights" in names:
        out["peak_heights"] = top
    if "left_thresholds" in names:
        out["left_thresholds"], out["right_thresholds"] = top - _at(x, peaks - 1), top - _at(x, peaks + 1)
    if "prominences" in names:
        out["prominences"] = top - pnp.maximum(_at(x, at["left_bases"]), _at(x, at["right_bases"]))
    if "widths" in names:
        height = top - out["prominences"] * constant(rel_height, x.dtype)
        left, right = (_crossing(x, at[side], height, step) for side, step in (("left_ips", 1), ("right_ips", -1)))
        out |= {"widths": right - left, "width_heights": height, "left_ips": left, "right_ips": right}
    return out


def _crossing(x: Any, position: Any, height: Any, step: int) -> Any:
    """Return where the line from the element at a position to the next one, ``step`` ahead, crosses a height."""
    low, high = _at(x, position), _at(x, position + np.int32(step))
    below = pnp.less(low, height)
    rise = pnp.where(below, high - low, pnp.ones_like(low))
    part = pnp.where(below, (height - low) / rise, pnp.zeros_like(low))
    return ops.convert_element_type(position, x.dtype) + part * constant(step, x.dtype)


# long: half of it is its documentation
def find_peaks_cwt(
    vector: ArrayLike, widths: ArrayLike, wavelet: Callable[..., ArrayLike] | None = None,
    max_distances: ArrayLike | None = None, gap_thresh: float | None = None, min_length: int | None = None,
    min_snr: float = 1, noise_perc: float = 10, window_size: int | None = None, *, size: int | None = None,
    fill_value: int = -1,
) -> Array:  # fmt: skip
    """Find peaks of a signal as lines of maxima of its continuous wavelet transform.

    The host finds the positions, which are constant.

    Args:
      vector: the signal, a vector of real numbers.
      widths: the widths of wavelets, a positive number or a vector, not traced.
      wavelet: a function of a length and a width that returns a vector of that length, which is convolved with the
        signal; by default the second derivative of a Gaussian function.
      max_distances: how far apart the maxima of successive widths of a line may be, a vector of a number for each
        width; a quarter of the width by default.
      gap_thresh: for how many widths a line may have no maximum; the first width by default.
      min_length: the least number of maxima in a line; a quarter of the number of widths by default.
      min_snr: the least ratio of the transform at the least width to its noise.
      noise_perc: which percentile of the transform nearby is its noise.
      window_size: how many elements are nearby; a twentieth of the signal by default.
      size: how many peaks to return, the first ones; needed where ``vector`` is traced.
      fill_value: the position that stands for peaks that are missing.

    Returns:
      The positions in increasing order, a vector of ints.

    Raises:
      ShapeError: a signal that is no vector (a TypeError and a ValueError).
      ArgumentError: numbers that make no sense (a TypeError and a ValueError).
      ConcretizationTypeError: a traced signal without ``size``, or traced widths or numbers (a TypeError).

    Source: Du, Kibbe and Lin 2006, "Improved peak detection in mass spectrum by incorporating continuous wavelet
    transform-based pattern matching".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.find_peaks_cwt(jnp.sin(jnp.arange(100) / 8), jnp.arange(1, 10)))
    [13 63]
    """
    name = "find_peaks_cwt"
    x = _samples(name, vector)
    given = {
        "widths": widths, "max_distances": max_distances, "gap_thresh": gap_thresh, "min_length": min_length,
        "min_snr": min_snr, "noise_perc": noise_perc, "window_size": window_size,
    }  # fmt: skip
    options = {what: _known_numbers(name, what, value) for what, value in given.items()}
    for what in ("widths", "min_snr", "noise_perc"):
        if options[what] is None:
            raise ArgumentError(f"{name}: {what} must be real numbers, got None")
    _check_ridges(name, x.shape[0], options, wavelet)
    shape = None if wavelet is None else lambda length, width: np.asarray(wavelet(int(length), float(width)))

    def search(x: Any) -> Any:
        call = lambda: imported("scipy.signal").find_peaks_cwt(np.asarray(x, np.float64), wavelet=shape, **options)
        with np.errstate(divide="ignore", invalid="ignore"):  # where the noise is zero, the ratio is infinite
            return np.asarray(of_scipy(name, call), np.int32)

    values = known(x)
    if size is None and values is None:
        raise ConcretizationTypeError(
            f"{name}: how many peaks there are is not known while the signal is traced; pass size, the number to return"
        )
    if size is None:
        return as_array(_int(search(values)))
    count, fill = known_int(name, "size", size), known_int(name, "fill_value", fill_value)
    if count < 0:
        raise ArgumentError(f"{name}: size must be at least 0, got {count}")

    def positions(x: Any) -> Any:
        found = search(x)[:count]
        return np.append(found, np.full(count - len(found), -1, np.int32))

    peaks = found_on_host(positions, (count,), x)
    return _filled(peaks, pnp.greater_equal(peaks, np.int32(0)), fill)


def _known_numbers(name: str, what: str, value: Any) -> Any:
    """Return real numbers as NumPy's; raise if they are traced."""
    if value is None or isinstance(value, (int, float)):
        return value
    found = known(known_or_traced(name, value))
    if found is None:
        raise ConcretizationTypeError(f"{name}: {what} must be known, because the host finds the peaks; it is traced")
    if found.dtype.kind != "f":
        raise ArgumentError(f"{name}: {what} must be real numbers, got {quote(value)}")
    found = found.astype(np.float64)
    return found if found.ndim else found.item()


def _check_ridges(name: str, count: int, options: dict[str, Any], wavelet: Any) -> None:
    """Raise if the arguments of :func:`find_peaks_cwt` do not fit a signal of ``count`` elements."""
    if wavelet is not None and not callable(wavelet):
        raise ArgumentError(f"{name}: wavelet must be a function of a length and a width, got {quote(wavelet)}")
    if not count:
        raise ShapeError(f"{name}: the signal must have elements")
    widths, distances = np.atleast_1d(options["widths"]), options["max_distances"]
    if widths.ndim != 1 or not widths.size or not (widths > 0).all():
        raise ArgumentError(f"{name}: widths must be positive numbers, got {quote(options['widths'])}")
    if distances is not None and np.shape(distances) < widths.shape:
        raise ShapeError(f"{name}: max_distances must have a number for each of {widths.size} widths")


def _peaks(name: str, peaks: Any, x: Any) -> Any:
    """Convert positions of peaks to a vector of int32; raise if some are known to be out of range."""
    if isinstance(peaks, (list, tuple)):
        peaks = pnp.asarray(peaks) if len(peaks) else np.zeros(0, np.int32)
    peaks = operand(name, peaks)
    if len(peaks.shape) != 1 or (peaks.shape[0] and peaks.dtype.kind not in "iu"):
        raise ShapeError(
            f"{name}: the peaks must be a vector of ints, got shape {peaks.shape} and dtype "
            f"{dtypes.short_name(peaks.dtype)}"
        )
    values = known(peaks)
    if values is not None and ((values < 0) | (values >= x.shape[0])).any():
        wrong = values[(values < 0) | (values >= x.shape[0])][0]
        raise ArgumentError(f"{name}: the position {wrong} of a peak is not in the signal, of {x.shape[0]} elements")
    return ops.convert_element_type(peaks, np.dtype(np.int32))


def peak_prominences(x: ArrayLike, peaks: ArrayLike, wlen: int | None = None) -> tuple[Array, Array, Array]:
    """Return by how much peaks stand out: their heights above the higher one of their two bases.

    The bases are constant. The prominences have derivatives by the signal.

    Args:
      x: the signal, a vector of real numbers.
      peaks: the positions of the peaks, a vector of ints.
      wlen: how many elements around a peak count; all by default.

    Returns:
      The prominences, and the positions of the bases on the left and on the right.

    Raises:
      ShapeError: arguments that are no vectors (a TypeError and a ValueError).
      ArgumentError: positions out of range, or a ``wlen`` that makes no sense (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(*signal.peak_prominences(jnp.array([0.0, 2.0, 1.0, 3.0, 0.0]), jnp.array([1, 3])))
    [1. 3.] [0 0] [2 4]
    """
    name = "peak_prominences"
    x = _samples(name, x)
    positions = _peaks(name, peaks, x)
    find = partial(_bases, name, wlen)
    if is_on_host(x) and is_on_host(positions):
        out = find(host_value(x), host_value(positions))
        return constant(out[0], x.dtype), as_array(_int(out[1])), as_array(_int(out[2]))
    at = lambda x, peaks: np.stack(find(x, peaks)[1:]).astype(np.int32)
    left, right = found_on_host(at, (2, positions.shape[0]), x, positions)
    heights = _at(x, positions) - pnp.maximum(_at(x, left), _at(x, right))
    return heights, _wide(left), _wide(right)


def _wide(x: Any) -> Any:
    return ops.convert_element_type(x, dtypes.default_int())


def _bases(name: str, wlen: Any, x: Any, peaks: Any) -> Any:
    call = lambda: imported("scipy.signal").peak_prominences(
        np.asarray(x, np.float64), np.asarray(peaks, np.intp), wlen
    )
    return of_scipy(name, call)


def peak_widths(
    x: ArrayLike, peaks: ArrayLike, rel_height: float = 0.5,
    prominence_data: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None, wlen: int | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return the widths of peaks at a part of their prominences.

    They have derivatives by the signal.

    Args:
      x: the signal, a vector of real numbers.
      peaks: the positions of the peaks, a vector of ints.
      rel_height: at which part of the prominence below the peak its width is measured, at least 0.
      prominence_data: the results of :func:`peak_prominences`, by default computed.
      wlen: how many elements around a peak count for its prominence; all by default.

    Returns:
      The widths, the heights at which they are measured, and the positions, between elements, where the signal crosses
      these heights on the left and on the right.

    Raises:
      ShapeError: arguments that are no vectors (a TypeError and a ValueError).
      ArgumentError: positions out of range, or numbers that make no sense (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(*signal.peak_widths(jnp.array([0.0, 2.0, 1.0, 3.0, 0.0]), jnp.array([3])))
    [1.25] [1.5] [2.25] [3.5]
    """
    name = "peak_widths"
    x = _samples(name, x)
    positions = _peaks(name, peaks, x)
    data = peak_prominences(x, positions, wlen) if prominence_data is None else prominence_data
    if not isinstance(data, (tuple, list)) or len(data) != 3:
        raise ArgumentError(f"{name}: prominence_data must be a tuple of 3 arrays, got {quote(prominence_data)}")
    heights, *bases = (operand(name, v) for v in data)
    rel_height = float(rel_height)
    operands = [x, positions, ops.convert_element_type(heights, x.dtype), *bases]

    def find(x: Any, peaks: Any, heights: Any, left: Any, right: Any) -> Any:
        data = np.asarray(heights, np.float64), np.asarray(left, np.intp), np.asarray(right, np.intp)
        call = lambda: imported("scipy.signal").peak_widths(
            np.asarray(x, np.float64), np.asarray(peaks, np.intp), rel_height, data
        )
        return of_scipy(name, call)

    if all(map(is_on_host, operands)):
        return tuple(constant(v, x.dtype) for v in find(*map(host_value, operands)))  # type: ignore[return-value]

    def crossings(*arrays: Any) -> Any:
        *_, left, right = find(*arrays)
        return np.stack([np.floor(left), np.ceil(right)]).astype(np.int32)

    left, right = found_on_host(crossings, (2, positions.shape[0]), *operands)
    height = _at(x, positions) - operands[2] * constant(rel_height, x.dtype)
    start, stop = _crossing(x, left, height, 1), _crossing(x, right, height, -1)
    return stop - start, height, start, stop
