"""Convolutions as products of matrices, by ``loops``, the module in C, and the BLAS that NumPy brings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.host import blas, moves, own
from pullback.backends.host.parallel import cores

MOST = 1 << 18
"""The most elements of the matrix that every block of windows is multiplied by."""
_MOST_AXES = 3  # Of space.

Geometry = Sequence[tuple[int, int, int, int, int]]
"""For each axis of space, as in ``windows``: how many windows, their size and distance, the elements before the first
that it begins outside, and the distance of a window's elements."""


def convolved(x: Any, kernel: Any, geometry: Geometry, orders: Sequence[Sequence[int]]) -> Any:
    """Convolve arrays of floats of 32 or 64 bits.

    Args:
      x: the operand.
      kernel: the kernel.
      geometry: the windows.
      orders: three permutations: of the operand's axes to batch, space and features; of the kernel's axes to space,
        features of the operand and of the result; and of the result's to batch, space and features.

    Returns:
      The result; None if its size is another's task.
    """
    if own.loops is None or not 0 < len(geometry) <= _MOST_AXES or not blas.is_ready():
        return None
    batch, features, results = x.shape[orders[0][0]], x.shape[orders[0][-1]], kernel.shape[orders[1][-1]]
    counts, window = ([axis[i] for axis in geometry] for i in (0, 1))
    rows, columns = math.prod(counts) * batch, math.prod(window) * features
    if min(rows, columns) * results > MOST or 0 in (rows, columns, results, x.size):
        return None
    before, *space, last = orders[0]
    if rows >= columns:
        factor, shape = _ordered(kernel, orders[1]), (batch, *counts, results)
        out = _product(_ordered(x, orders[0]), factor, geometry, False, shape)
        return _back(out, orders[2])
    # A window for each element of the kernel, with an element for each former window: the matrix of them is transposed.
    *kernel_space, i, o = orders[1]
    turned = [(size, count, step, low, stride) for count, size, stride, low, step in geometry]
    factor, shape = _ordered(kernel, (i, *kernel_space, o)), (*counts, batch, results)
    out = _product(_ordered(x, (last, *space, before)), factor, turned, True, shape)
    first, *rest, end = orders[2]
    return _back(out, (*rest, first, end))


def _ordered(x: Any, order: Sequence[int]) -> Any:
    """Return the array with its axes in an order, its elements in row-major order."""
    out = x.transpose(order)
    return out if out.flags.c_contiguous else moves.copied(out)


def _back(x: Any, order: Sequence[int]) -> Any:
    """Return the array whose axes in an order are those of ``x``."""
    return x.transpose(sorted(range(x.ndim), key=order.__getitem__))


def _product(x: Any, factor: Any, geometry: Geometry, is_transposed: bool, shape: tuple[int, ...]) -> Any:
    """Return the product of the windows' matrix, or of its transpose, by another matrix, in an array of a shape."""
    assert own.loops is not None
    out = np.empty(shape, x.dtype)
    helpers = min(
        cores() - 1, math.prod([count * size for count, size, *_ in geometry]) * x.shape[0] * x.shape[-1] // _SHARE
    )
    done = own.loops.convolve(x, factor, out, tuple(geometry), is_transposed, min(helpers, blas.MOST_HELPERS))
    assert done
    return out


_SHARE = 1 << 14  # The elements of windows that are worth a thread.
