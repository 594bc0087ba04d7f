"""Extremes of windows of floats, and their positions, by ``loops``, the module in C, on all cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.host import own
from pullback.backends.host.parallel import cores

_loops = own.loops
_SHARE = 1 << 16  # The comparisons that are worth a thread.
_MOST_AXES = 8
_MOST_ROWS = 64  # The most rows of elements, side by side, that the module takes together.

Geometry = Sequence[tuple[int, int, int, int, int]]
"""For each axis the number of windows, the size of a window, the distance from one to the next, the elements before the
first that it begins outside, and the distance from an element of a window to the next."""


def are_supported(shape: Sequence[int], dtype: np.dtype[Any], geometry: Geometry) -> bool:
    """Whether the module computes with windows of an array of a shape and dtype."""
    is_float = dtype.char in "fd" and dtype.isnative
    elements = math.prod([size for _, size, *_ in geometry])
    some = 0 not in shape and all(count > 0 for count, *_ in geometry)
    return _loops is not None and is_float and some and 0 < len(shape) <= _MOST_AXES and elements < 2**31


def extremes(x: Any, geometry: Geometry, largest: bool) -> Any:
    """Return the largest or least element of each window; NaN if it has one."""
    out = np.empty([count for count, *_ in geometry], x.dtype)
    _run("extremes", np.ascontiguousarray(x), out, None, geometry, largest)
    return out


def positions(x: Any, geometry: Geometry, largest: bool) -> Any:
    """Return the row-major number in its window of the first extreme element, or of the first NaN.

    For a window of no elements it is the number of elements of a window.
    """
    out = np.empty([count for count, *_ in geometry], np.int32)
    _run("find", np.ascontiguousarray(x), None, out, geometry, largest)
    return out


def extremes_and_positions(x: Any, geometry: Geometry, largest: bool) -> tuple[Any, Any]:
    """Return what :func:`extremes` and :func:`positions` do, in one pass over the array."""
    shape = [count for count, *_ in geometry]
    out, at = np.empty(shape, x.dtype), np.empty(shape, np.int32)
    _run("find", np.ascontiguousarray(x), out, at, geometry, largest)
    return out, at


def put(numbers: Any, at: Any, geometry: Geometry, shape: tuple[int, ...]) -> Any:
    """Return zeros of a shape, with a number of each window added to the element at a position in it."""
    *others, last = geometry
    are_tiles = all(
        count * size == n and size == stride and step == 1 and not low
        for (count, size, stride, low, step), n in zip(geometry, shape, strict=True)
    )
    if are_tiles and last[1] == 1 and math.prod([size for _, size, *_ in others]) <= _MOST_ROWS:
        out = np.empty(shape, numbers.dtype)
        _run("fill", out, np.ascontiguousarray(numbers), np.ascontiguousarray(at), geometry, True)
        return out
    out = np.zeros(shape, numbers.dtype)
    _run("put", out, np.ascontiguousarray(numbers), np.ascontiguousarray(at), geometry, True)
    return out


def _run(kind: str, operand: Any, result: Any, at: Any, geometry: Geometry, largest: bool) -> None:
    assert _loops is not None
    work = math.prod([count * size for count, size, *_ in geometry])
    _loops.windows(kind, operand, result, at, tuple(geometry), largest, min(cores() - 1, work // _SHARE))
