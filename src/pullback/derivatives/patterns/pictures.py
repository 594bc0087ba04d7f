"""Pictures of patterns, as SVG: a square for each element, in the colour of its product."""

from __future__ import annotations

import colorsys
from typing import Any

CELLS = 200
"""The largest picture in squares: in larger matrices a square is a block of elements, in the colour of its last."""
GREY = "#666666"


def picture(shape: tuple[int, int], rows: Any, columns: Any, tones: Any, size: int) -> str:
    """Draw the positions of the elements of a sparse matrix; return the picture as SVG text.

    Args:
      shape: the shape of the matrix.
      rows, columns: the indices of the elements.
      tones: the colour of each element.
      size: the length of the picture's longer side, in pixels.
    """
    block = max(-(-max(*shape, 1) // CELLS), 1)
    high, wide = -(-shape[0] // block), -(-shape[1] // block)
    cell = size / max(high, wide, 1)
    shown = dict(zip(zip((rows // block).tolist(), (columns // block).tolist(), strict=True), tones, strict=True))
    squares = [
        f'<rect x="{j * cell:.2f}" y="{i * cell:.2f}" width="{cell:.2f}" height="{cell:.2f}" fill="{tone}"/>'
        for (i, j), tone in shown.items()
    ]
    width, height = wide * cell, high * cell
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2:.0f}" height="{height + 2:.0f}" '
        f'viewBox="-1 -1 {width + 2:.2f} {height + 2:.2f}">'
    )
    frame = f'<rect width="{width:.2f}" height="{height:.2f}" fill="white" stroke="#888"/>'
    return "\n".join([head, frame, *squares, "</svg>"])


def tones_of(bright: int, dark: int) -> list[str]:
    """Return ``bright`` bright colours, then ``dark`` dark ones, as SVG text; their hues differ by the golden angle."""
    tones = [colorsys.hls_to_rgb(k * 0.618 % 1, 0.55 if k < bright else 0.3, 0.65) for k in range(bright + dark)]
    return [f"#{''.join(f'{round(255 * x):02x}' for x in tone)}" for tone in tones]
