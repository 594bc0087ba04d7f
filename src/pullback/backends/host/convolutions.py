"""Convolutions of vectors by NumPy, and of images by ``loops``, the module in C, where its tiles suit the processor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.host import own
from pullback.backends.host.parallel import cores

_loops = own.loops
_suits_processor = _loops is not None and _loops.convolves()
_FEATURES, _POSITIONS = 32, 3  # of a tile
_LEAST = 1 << 20  # Products: fewer take a compiled convolution hardly longer.
_LARGEST_PANEL = 1 << 17  # Bytes of the kernel for 32 features of the result, which stay in the second cache.
_SHARE = 1 << 21  # The products that are worth a thread.

Padding = tuple[tuple[int, int], ...]


def convolved(x: Any, kernel: Any, padding: Padding) -> Any:
    """Convolve images with a kernel, in steps of one element.

    Args:
      x: an array of images, rows, columns and features.
      kernel: an array of rows, columns, features, and features of the result, in any memory order.
      padding: how many zeros are before and behind the rows, and the columns.

    Returns:
      An array of images, rows, columns and features; None if the module does not compute it, or not quickly.
    """
    (n, *sizes, _), (*window, _, results) = x.shape, kernel.shape
    counts = [size + sum(pads) - k + 1 for size, pads, k in zip(sizes, padding, window, strict=True)]
    if not _suits_processor or x.dtype.char != "f" or kernel.dtype.char != "f" or not _suits(n, counts, kernel.shape):
        return None
    if min(pad for pads in padding for pad in pads) < 0:
        return None
    assert _loops is not None
    out = np.empty((n, *counts, results), np.float32)
    products = out.size * math.prod(kernel.shape[:3])
    _loops.convolve(_padded(x, padding), _panels(kernel), out, min(cores() - 1, products // _SHARE))
    return out


def of_vector(x: Any, kernel: Any, low: int, high: int) -> Any:
    """Convolve a vector by NumPy, without compiling a program, in steps of one element.

    Args:
      x: a vector.
      kernel: a vector, not longer than ``x`` with its zeros.
      low, high: how many zeros are before and behind ``x``; negative numbers remove elements.
    """
    if kernel.dtype.kind == "c":
        kernel = kernel.conj()  # NumPy's correlation is with the conjugate
    if low == high == len(kernel) - 1:
        return np.correlate(x, kernel, "full")
    n = len(x)
    if low <= 0 and high <= 0:
        return np.correlate(x[-low : n + high], kernel, "valid")
    padded = np.zeros(n + low + high, x.dtype)
    padded[max(low, 0) : low + n + min(high, 0)] = x[max(-low, 0) : n + min(high, 0)]
    return np.correlate(padded, kernel, "valid")


def of_vectors(x: Any, kernel: Any, low: int, high: int) -> Any:
    """Convolve vectors as :func:`of_vector` does, and sum features.

    Args:
      x: an array with the axes batch, groups, features and space.
      kernel: an array with the axes groups, features of the result, features and space.
      low, high: the zeros.

    Returns:
      An array with the axes batch, groups, features of the result and space.
    """
    (n, groups, features, length), (_, results, _, m) = x.shape, kernel.shape
    count = length + low + high - m + 1
    if n * groups * features * results > _MOST_CALLS and count * m < _LEAST_OF_CALL:
        zeros = [(0, 0)] * 3 + [(max(low, 0), max(high, 0))]
        x = np.pad(x[..., max(-low, 0) : length + min(high, 0)], zeros)
        windows = np.lib.stride_tricks.sliding_window_view(x, m, 3)
        return np.einsum("ngcsm,gocm->ngos", windows, kernel, optimize=True)
    out = np.zeros((n, groups, results, count), x.dtype)
    for i, group, result, feature in np.ndindex(n, groups, results, features):
        out[i, group, result] += of_vector(x[i, group, feature], kernel[group, result, feature], low, high)
    return out


_MOST_CALLS, _LEAST_OF_CALL = 16, 4096  # calls for vectors, and products for which a call is worth its time


def _suits(n: int, counts: list[int], kernel: tuple[int, ...]) -> bool:
    """Whether the tiles have hardly more elements than the result, which is large, and the cache holds a panel."""
    elements, results = math.prod(kernel[:3]), kernel[3]
    tiled = -(-results // _FEATURES) * _FEATURES
    return (
        n > 0 and elements > 0 and counts[0] > 0 and counts[1] >= _POSITIONS and 3 * tiled <= 4 * results
        and 4 * _FEATURES * elements <= _LARGEST_PANEL and n * math.prod(counts) * results * elements >= _LEAST
    )  # fmt: skip


def _padded(x: Any, padding: Padding) -> Any:
    """Return images with their zeros, whose elements are side by side."""
    if not any(pad for pads in padding for pad in pads):
        return np.ascontiguousarray(x)
    (n, height, width, features), ((top, bottom), (left, right)) = x.shape, padding
    out = np.zeros((n, top + height + bottom, left + width + right, features), x.dtype)
    out[:, top : top + height, left : left + width] = x
    return out


def _panels(kernel: Any) -> Any:
    """Return a kernel by panels of 32 features of the result, the last of which may have zeros."""
    *window, features, results = kernel.shape
    count = -(-results // _FEATURES)
    out = np.zeros((count, *window, features, _FEATURES), kernel.dtype)
    for i in range(count):
        part = kernel[..., i * _FEATURES : (i + 1) * _FEATURES]
        out[i, ..., : part.shape[-1]] = part
    return out
