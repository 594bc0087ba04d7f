"""Convolutions of images by ``loops``, the module in C, on all cores, where its tiles suit them and the processor."""

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
