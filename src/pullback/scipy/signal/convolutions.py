"""Convolutions and correlations of signals and images of any number of axes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import Axes, PrecisionLike
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.types import Shape
from pullback.numpy.promotion import axis_index, inexact_operands, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.primitives.arrays.shapes import reshape, transpose
from pullback.primitives.signals import fourier
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry, conv_general_dilated_p
from pullback.primitives.signals.fourier import FftType
from pullback.scipy.arguments import on_host

__all__ = [
    "choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "oaconvolve",
]  # fmt: skip

_MODES = ("full", "same", "valid")


def _operands(name: str, in1: Any, in2: Any, rank: int | None = None) -> tuple[Any, Any]:
    """Promote two operands to one inexact dtype; return both.

    Raise unless both have elements and the same number of axes, which is ``rank`` if that is not None.
    """
    x, y = inexact_operands(name, in1, in2)
    if len(x.shape) != len(y.shape) or (rank is not None and len(x.shape) != rank):
        wanted = "arrays of the same number of axes" if rank is None else f"arrays of {rank} axes"
        raise ShapeError(f"{name} takes {wanted}, got shapes {x.shape} and {y.shape}")
    if not math.prod(x.shape) or not math.prod(y.shape):
        raise ShapeError(f"{name} takes non-empty arrays, got shapes {x.shape} and {y.shape}")
    return x, y


def _check_mode(name: str, mode: Any) -> None:
    if not is_listed(mode, _MODES):
        raise ArgumentError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")


def _larger_first(name: str, x: Any, y: Any, axes: Sequence[int] | None = None) -> tuple[Any, Any]:
    """Return the two operands of a convolution of mode "valid", the larger first.

    Raise unless one operand is at least as large as the other along all ``axes``; None means all axes.
    """
    axes = range(len(x.shape)) if axes is None else axes
    if all(x.shape[a] >= y.shape[a] for a in axes):
        return x, y
    if all(x.shape[a] <= y.shape[a] for a in axes):
        return y, x
    raise ShapeError(
        f"{name} with mode='valid': one operand must be at least as large as the other along each axis, got shapes "
        f"{x.shape} and {y.shape}"
    )


def _reversed(x: Any) -> Any:
    return slicing.rev(x, tuple(range(len(x.shape))))


def _paddings(shape: Shape, window: Shape, mode: str, late: bool) -> tuple[tuple[int, int], ...]:
    """Return the padding before and after each axis of an operand, for a convolution with a ``window`` in a ``mode``.

    With this padding a sliding window computes exactly the elements of the mode. The elements of the mode "same" begin
    at element ``(m - 1) // 2`` of those of "full", for a window of m elements; if ``late``, they begin at ``m // 2``.
    """
    if mode == "valid":
        return ((0, 0),) * len(shape)
    if mode == "full":
        return tuple((m - 1, m - 1) for m in window)
    starts = [m // 2 if late else (m - 1) // 2 for m in window]
    return tuple((m - 1 - start, start) for m, start in zip(window, starts, strict=True))


def _direct(x: Any, y: Any, mode: str, late: bool = False) -> Any:
    """Compute the convolution of ``x`` and ``y`` by its definition.

    For mode "valid", ``y`` must be the smaller operand. If ``late``, the result of mode "same" begins one element later
    along axes along which ``y`` has an even size.
    """
    if len(x.shape) == 1:
        return _of_vectors(x, y, mode)
    rank = len(x.shape)
    numbers = ConvDimensionNumbers(*[tuple(range(rank + 2))] * 3)
    out = conv_general_dilated_p.bind(
        reshape(x, (1, 1, *x.shape)),
        reshape(_reversed(y), (1, 1, *y.shape)),
        geometry=Geometry((1,) * rank, _paddings(x.shape, y.shape, mode, late), (1,) * rank, (1,) * rank),
        dimension_numbers=numbers,
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
    )
    return reshape(out, out.shape[2:])


def _of_vectors(x: Any, y: Any, mode: str) -> Any:
    """Convolve two vectors.

    The result of mode "same" has the size of ``x``, as in SciPy, even if ``y`` is longer.
    """
    if mode != "same":
        return pnp.convolve(x, y, mode)
    full = pnp.convolve(x, y, "full")
    start = (y.shape[0] - 1) // 2
    return slicing.slice_in_dim(full, start, start + x.shape[0], 0)


def _convolved(name: str, x: Any, y: Any, mode: Any, method: Any) -> Any:
    """Convolve two operands of one dtype by a ``method``: "direct", "fft" or "auto"; return the result of ``mode``."""
    _check_mode(name, mode)
    if not is_listed(method, ("auto", "direct", "fft")):
        raise ArgumentError(f"{name}: method must be 'auto', 'direct' or 'fft', got {method!r}")
    if mode == "valid":
        x, y = _larger_first(name, x, y)
    if not x.shape:
        return ops.mul(x, y)
    if method == "fft":
        return _by_fft(x, y, mode, tuple(range(len(x.shape))))
    return _direct(x, y, mode)


def _by_fft(x: Any, y: Any, mode: str, axes: Sequence[int]) -> Any:
    """Convolve along ``axes`` by a product of Fourier transforms; the other axes broadcast against each other."""
    dtype = x.dtype
    if dtype.char not in "fdFD":
        x, y = (ops.convert_element_type(v, np.dtype(np.float32)) for v in (x, y))
    rank = len(x.shape)
    sizes = [x.shape[a] + y.shape[a] - 1 for a in axes]
    real = not dtypes.is_complex(x.dtype)
    lengths = [imported("scipy.fft").next_fast_len(n, real) for n in sizes]
    order = [*(a for a in range(rank) if a not in axes), *axes]
    forward, backward = (FftType.RFFT, FftType.IRFFT) if real else (FftType.FFT, FftType.IFFT)
    first = rank - len(axes)

    def transformed(v: Any) -> Any:
        v = transpose(v, order)
        padding = [(0, 0, 0)] * first + [(0, n - m, 0) for n, m in zip(lengths, v.shape[first:], strict=True)]
        return fourier.fft(slicing.pad(v, 0, padding), forward, lengths)

    full = fourier.fft(ops.mul(transformed(x), transformed(y)), backward, lengths)
    start, limit = [0] * rank, list(full.shape)
    for k, a in enumerate(axes):
        n, m = x.shape[a], y.shape[a]
        begin, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
        start[first + k], limit[first + k] = begin, begin + count
    out = transpose(slicing.slice(full, start, limit), sorted(range(rank), key=order.__getitem__))
    return ops.convert_element_type(out, dtype)


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """The convolution of two arrays of any number of axes.

    Args:
      in1, in2: arrays of the same number of axes; integers become floats.
      mode: ``"full"`` for all sums; ``"same"`` for those in the middle, as many as ``in1`` has elements; ``"valid"``
        for those in which the operands overlap completely.
      method: ``"direct"`` or ``"auto"`` for the sums themselves; ``"fft"`` for :func:`fftconvolve`, which is quicker
        for long operands, and whose errors are relative to the largest element of the result.
      precision: accepted for compatibility; products are computed in full precision.

    Returns:
      An array with axes of sizes n + m - 1 (``"full"``), n (``"same"``), or max(n, m) - min(n, m) + 1 (``"valid"``).

    Raises:
      ShapeError: operands of different numbers of axes, empty ones, or with ``"valid"`` no operand that is
        larger along every axis (a TypeError and a ValueError).
      ArgumentError: an unknown mode or method (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])))
    [ 1. 12. 23. 30.]
    """
    x, y = _operands("convolve", in1, in2)
    return _convolved("convolve", x, y, mode, method)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """The cross-correlation of two arrays: the convolution of ``in1`` with the reversed conjugate of ``in2``.

    Args:
      in1, in2: arrays of the same number of axes; integers become floats.
      mode, method: as for :func:`convolve`.
      precision: accepted for compatibility; products are computed in full precision.

    Returns:
      An array of the shape that :func:`convolve` returns.

    Raises:
      ShapeError, ArgumentError: as for :func:`convolve`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5])))
    [0.5 2.  3.5 3.  0. ]
    """
    x, y = _operands("correlate", in1, in2)
    return _correlated("correlate", x, y, mode, method)


def _correlated(name: str, x: Any, y: Any, mode: Any, method: Any) -> Any:
    return _convolved(name, x, ops.conj(_reversed(y)), mode, method)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axes = None) -> Array:
    """The convolution of two arrays along some axes, by Fourier transforms.

    Args:
      in1, in2: arrays of the same number of axes; integers become floats.
      mode: as for :func:`convolve`.
      axes: an int or a sequence of ints, along which to convolve; all by default. Along the other axes
        sizes are equal, or 1.

    Returns:
      An array as for :func:`convolve`. Errors are relative to the largest element of the result.

    Raises:
      ShapeError: operands that do not fit, or an axis out of range (a TypeError and a ValueError).
      ArgumentError: an unknown mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])).round(3))
    [ 1. 12. 23. 30.]
    """
    x, y, where = _along("fftconvolve", in1, in2, mode, axes)
    return _by_fft(x, y, mode, where) if where else ops.mul(x, y)


def _along(name: str, in1: Any, in2: Any, mode: Any, axes: Any) -> tuple[Any, Any, list[int]]:
    """Return the operands of a convolution, the larger first in the mode "valid", and the axes along which it is."""
    x, y = _operands(name, in1, in2)
    _check_mode(name, mode)
    rank = len(x.shape)
    if axes is None:
        where = list(range(rank))
    else:
        listed = axes if isinstance(axes, (tuple, list, range)) else (axes,)
        where = [axis_index(a, rank, name) for a in listed]
        if len(set(where)) != len(where):
            raise ShapeError(f"{name}: the axes must differ, got {quote(axes)} for an array of {rank} axes")
    if mode == "valid":
        x, y = _larger_first(name, x, y, where)
    if any(x.shape[a] != y.shape[a] and 1 not in (x.shape[a], y.shape[a]) for a in range(rank) if a not in where):
        raise ShapeError(
            f"{name}: along all other axes than {tuple(where)} the sizes must be equal or 1, got shapes "
            f"{x.shape} and {y.shape}"
        )
    return x, y, where


def oaconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axes = None) -> Array:
    """The convolution of two arrays along some axes, by Fourier transforms of blocks of the longer one.

    Args:
      in1, in2: arrays of the same number of axes; integers become floats.
      mode: as for :func:`convolve`.
      axes: an int or a sequence of ints, along which to convolve, as for :func:`fftconvolve`; all by default.

    Returns:
      An array as for :func:`fftconvolve`. Known arrays are convolved in blocks, as in SciPy, and others as a whole.

    Raises:
      ShapeError: operands that do not fit, or an axis out of range (a TypeError and a ValueError).
      ArgumentError: an unknown mode (a TypeError and a ValueError).

    Source: Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 8.7.3.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.oaconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0])).round(3))
    [ 1. 12. 23. 30.]
    """
    x, y, where = _along("oaconvolve", in1, in2, mode, axes)
    found = on_host(x, y)
    if found is not None and where and x.dtype.char in "fdFD":
        return ArrayImpl(imported("scipy.signal").oaconvolve(*found, mode=mode, axes=where).astype(x.dtype))
    return _by_fft(x, y, mode, where) if where else ops.mul(x, y)


def choose_conv_method(in1: ArrayLike, in2: ArrayLike, mode: str = "full", measure: bool = False) -> Any:
    """Return which method of :func:`convolve` is quicker, ``"direct"`` or ``"fft"``.

    Args:
      in1, in2, mode: as for :func:`convolve`.
      measure: whether to measure both methods, instead of SciPy's estimate for the shapes and dtypes.

    Returns:
      A word; with ``measure`` also a dictionary of the seconds that each takes.

    Raises:
      ShapeError, ArgumentError: as for :func:`convolve`.

    >>> import numpy as np
    >>> from pullback.scipy import signal
    >>> print(signal.choose_conv_method(np.ones(10000), np.ones(10000)))
    fft
    """
    name = "choose_conv_method"
    x, y = _operands(name, in1, in2)
    _check_mode(name, mode)
    if not flag(name, "measure", measure):
        found = on_host(pnp.asarray(in1), pnp.asarray(in2))
        sizes = [np.broadcast_to(np.zeros((), v.dtype), v.shape) for v in (x, y)]
        return imported("scipy.signal").choose_conv_method(*(sizes if found is None else found), mode=mode)

    def seconds(method: str) -> float:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            convolve(x, y, mode, method).block_until_ready()
            times.append(time.perf_counter() - start)
        return min(times)

    measured = {method: seconds(method) for method in ("fft", "direct")}
    return min(measured, key=measured.__getitem__), measured


# Images --------------------------------------------------------------------------------------------------------------

_BOUNDARIES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "symmetric"}
_BOUNDARIES["symmetric"] = "symmetric"


def _extended(x: Any, window: Shape, mode: str, late: bool, boundary: str, fillvalue: Any) -> Any:
    """Pad an image by the elements outside of it that a convolution with a kernel of shape ``window`` reads.

    ``mode`` is "full", "same" or "valid". A kernel of even size has two centres in the mode "same": ``late`` selects
    the second. ``boundary`` says how to pad, and ``fillvalue`` is the number to pad with for the boundaries "fill" and
    "pad".
    """
    widths = _paddings(x.shape, window, mode, late)
    kind = _BOUNDARIES[boundary]
    return pnp.pad(x, widths, kind, **({"constant_values": fillvalue} if kind == "constant" else {}))


def _in_two(name: str, in1: Any, in2: Any, mode: Any, boundary: Any, fillvalue: Any, conjugate: bool) -> Any:
    x, y = _operands(name, in1, in2, 2)
    _check_mode(name, mode)
    if conjugate:
        y = ops.conj(_reversed(y))
    if mode == "valid":
        large, small = _larger_first(name, x, y)
        out = _direct(large, small, "valid")
        return ops.conj(out) if conjugate and large is y else out
    if not is_listed(boundary, _BOUNDARIES):
        raise ArgumentError(f"{name}: boundary must be 'fill', 'wrap' or 'symm', got {boundary!r}")
    if boundary == "fill" and type(fillvalue) in (int, float) and fillvalue == 0:
        return _direct(x, y, mode, conjugate)
    return _direct(_extended(x, y.shape, mode, conjugate, boundary, fillvalue), y, "valid")


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """The convolution of two images.

    Args:
      in1, in2: matrices; integers become floats.
      mode: as for :func:`convolve`.
      boundary: the values beyond the boundary of ``in1``: ``"fill"`` for ``fillvalue``, ``"wrap"`` for the image again,
        ``"symm"`` for its mirror image, in which the elements at the edge are repeated.
      fillvalue: a number.
      precision: accepted for compatibility; products are computed in full precision.

    Returns:
      A matrix of the shape that :func:`convolve` returns.

    Raises:
      ShapeError, ArgumentError: as for :func:`convolve`, and for an unknown boundary.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.convolve2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.ones((2, 2)), boundary="wrap", mode="same"))
    [[10. 10.]
     [10. 10.]]
    """
    return _in_two("convolve2d", in1, in2, mode, boundary, fillvalue, False)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """The cross-correlation of two images: the convolution of ``in1`` with the reversed conjugate of ``in2``.

    Args:
      in1, in2: matrices; integers become floats.
      mode: as for :func:`convolve`. With ``"valid"`` and an ``in1`` that is the smaller, it is ``in1`` that is
        conjugated, as by SciPy.
      boundary, fillvalue: as for :func:`convolve2d`.
      precision: accepted for compatibility; products are computed in full precision.

    Returns:
      A matrix of the shape that :func:`convolve` returns.

    Raises:
      ShapeError, ArgumentError: as for :func:`convolve`, and for an unknown boundary.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.correlate2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 10.0]])))
    [[10. 21.  2.]
     [30. 43.  4.]]
    """
    return _in_two("correlate2d", in1, in2, mode, boundary, fillvalue, True)
