"""Pictures of small arrays of numbers: heat maps and lines, as HTML and as text.

A heat map is an image in the format PNG within the page, of one byte an element; a line is a path in SVG.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.display.pages import escaped

Values = np.ndarray[Any, np.dtype[np.float64]]
_RISING = ((22, 26, 66), (34, 98, 141), (53, 168, 120), (243, 231, 92))
_SIGNED = ((33, 82, 168), (242, 242, 242), (176, 42, 42))
_LEVELS = 255
"""Colours of a heat map. The index after them is for elements that are not finite, where the page shows through."""
_WIDTH, _HEIGHT = 360, 120
_COLUMNS = 360
"""The columns of a line; a longer vector shows the least and the greatest element of each column."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
_TEXT_WIDTH, _TEXT_HEIGHT = 64, 16


def limits(values: Values) -> tuple[float, float, int]:
    """Return the least and the greatest finite element, and how many elements are not finite."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return float("nan"), float("nan"), values.size
    return float(finite.min()), float(finite.max()), values.size - finite.size


def heat_map(values: Values) -> str:
    """Return a matrix as an HTML image: by a scale through white if it has both signs, else from dark to bright."""
    low, high, _ = limits(values)
    signed = low < 0 < high
    bounds = (-max(-low, high), max(-low, high)) if signed else (low, high)
    rows, columns = values.shape
    content = base64.b64encode(_png(_levels(values, *bounds), _SIGNED if signed else _RISING)).decode()
    cell = min(max(_WIDTH / max(rows, columns), 1.0), 24.0)
    what = f"heat map of {rows} by {columns} elements, from {low:.4g} to {high:.4g}"
    return (
        f'<img alt="{escaped(what)}" title="{escaped(what)}" width="{columns * cell:.0f}" height="{rows * cell:.0f}" '
        f'style="image-rendering:pixelated" src="data:image/png;base64,{content}">'
    )


def curve(values: Values) -> str:
    """Return a vector as a line in SVG, with gaps where elements are not finite."""
    low, high, _ = limits(values)
    what = f"line of {values.size} elements, from {low:.4g} to {high:.4g}"
    scale = _HEIGHT / (high - low) if high > low else 0.0
    points = _extremes(values)
    step = _WIDTH / max(len(points) - 1, 1)
    path, drawing = [], False
    for i, y in enumerate(points):
        if np.isfinite(y):
            at = f"{i * step:.1f},{_HEIGHT - (y - low) * scale if scale else _HEIGHT / 2:.1f}"
            path.append(f"{'L' if drawing else 'M'}{at}" if drawing or len(points) > 1 else f"M{at}h1")
        drawing = bool(np.isfinite(y))
    zero = f'<path d="M0,{_HEIGHT + low * scale:.1f}H{_WIDTH}" opacity=".3"/>' if low < 0 < high else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escaped(what)}" width="{_WIDTH}" '
        f'height="{_HEIGHT + 4}" viewBox="-2 -2 {_WIDTH + 4} {_HEIGHT + 4}" fill="none" stroke="currentColor">'
        f'<title>{escaped(what)}</title>{zero}<path d="{"".join(path)}" stroke-width="1.5"/></svg>'
    )


def text_map(values: Values) -> str:
    """Return a matrix as lines of shades, of at most 16 rows and 64 columns; of a larger one it takes some."""
    rows, columns = (_some(n, most) for n, most in zip(values.shape, (_TEXT_HEIGHT, _TEXT_WIDTH), strict=True))
    chosen = values[np.ix_(rows, columns)]
    return "\n".join(_in_signs(row, _SHADES, *limits(values)[:2]) for row in chosen)


def text_curve(values: Values) -> str:
    """Return a vector as one line of blocks, at most 64; of a longer one it takes some elements."""
    return _in_signs(values[_some(values.size, _TEXT_WIDTH)], _BLOCKS, *limits(values)[:2])


def _some(count: int, most: int) -> Any:
    """Return at most ``most`` indices, evenly spread over ``count`` elements."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(int))


def _in_signs(values: Values, signs: str, low: float, high: float) -> str:
    found = []
    for y in values.tolist():
        position = (y - low) / (high - low) if high > low else 0.5
        found.append(signs[min(int(position * len(signs)), len(signs) - 1)] if np.isfinite(y) else "?")
    return "".join(found)


def _extremes(values: Values) -> list[float]:
    """Return the elements in order or, of many, the least and the greatest of each column."""
    if values.size <= 2 * _COLUMNS:
        return values.tolist()  # type: ignore[no-any-return]
    starts = np.linspace(0, values.size, _COLUMNS, endpoint=False).astype(int)
    finite = np.where(np.isfinite(values), values, np.nan)
    both = np.stack([np.fmin.reduceat(finite, starts), np.fmax.reduceat(finite, starts)], 1)
    return both.ravel().tolist()  # type: ignore[no-any-return]


def _levels(values: Values, low: float, high: float) -> Any:
    """Return the colour of each element as an index, where the numbers from ``low`` to ``high`` have all colours."""
    known = np.isfinite(values)
    position = (
        np.where(known, values, low) / 2 - low / 2
    )  # halves, for their difference may be beyond the largest number
    width = high / 2 - low / 2
    scaled = position * ((_LEVELS - 1) / width) if width > 0 else np.full(values.shape, (_LEVELS - 1) / 2)
    return np.where(known, np.clip(np.rint(scaled), 0, _LEVELS - 1), _LEVELS).astype(np.uint8)


def _png(levels: Any, anchors: Sequence[tuple[int, int, int]]) -> bytes:
    """Return a picture in the format PNG (ISO/IEC 15948), with a palette between the colours ``anchors``."""
    at = np.linspace(0, len(anchors) - 1, _LEVELS)
    channels = [np.interp(at, range(len(anchors)), channel) for channel in zip(*anchors, strict=True)]
    palette = np.append(np.stack(channels, 1).round(), [[128, 128, 128]], 0).astype(np.uint8)
    rows, columns = levels.shape
    lines = np.zeros((rows, columns + 1), np.uint8)  # each begins with a byte: 0, no filter
    lines[:, 1:] = levels
    return b"\x89PNG\r\n\x1a\n" + b"".join([
        _chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),  # 8 bits, indices of a palette
        _chunk(b"PLTE", palette.tobytes()),
        _chunk(b"tRNS", b"\xff" * _LEVELS + b"\x00"),
        _chunk(b"IDAT", zlib.compress(lines.tobytes())),
        _chunk(b"IEND", b""),
    ])  # fmt: skip


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def points(
    xs: Sequence[float], ys: Sequence[float], what: str, sides: tuple[str, str, str, str], steps: bool = False
) -> str:
    """Return a curve through some points in SVG, with texts at its sides.

    Args:
      xs, ys: the coordinates.
      what: the description of the picture.
      sides: the texts at the least and the greatest of ``xs``, and at the least and the greatest of ``ys``.
      steps: whether the area below the curve, from zero, is filled.
    """
    low, high = (0.0 if steps else min(ys, default=0.0)), max(ys, default=0.0)
    left, right = min(xs, default=0.0), max(xs, default=0.0)
    across, up = _WIDTH / (right - left if right > left else 1.0), _HEIGHT / (high - low if high > low else 1.0)
    at = [((x - left) * across, _HEIGHT - (y - low) * up) for x, y in zip(xs, ys, strict=True)]
    path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in at) if at else ""
    area = f'<path d="{path}L{at[-1][0]:.1f},{_HEIGHT}L{at[0][0]:.1f},{_HEIGHT}Z" fill="currentColor" opacity=".2"/>'
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="currentColor"/>' for x, y in at)
    corners = ((0, _HEIGHT + 20, "start"), (_WIDTH, _HEIGHT + 20, "end"), (-8, _HEIGHT, "end"), (-8, 4, "end"))
    texts = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="11" fill="currentColor" stroke="none">'
        f"{escaped(text)}</text>"
        for (x, y, anchor), text in zip(corners, sides, strict=True)
    )
    margin = 16 + 7 * max(map(len, sides[2:]))
    width, height = _WIDTH + margin + 8, _HEIGHT + 32
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escaped(what)}" width="{width}" '
        f'height="{height}" viewBox="{-margin} -8 {width} {height}" fill="none" '
        f'stroke="currentColor"><title>{escaped(what)}</title>{area if steps and at else dots}'
        f'<path d="{path}" stroke-width="1.5"/>{texts}</svg>'
    )
