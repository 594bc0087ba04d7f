"""Colourings of regular patterns: the colour is a weighted sum of a column's coordinates, modulo the number of colours.

If all rows have the same neighbourhood, as with stencils of differential equations, this finds the fewest colours
without a loop over the columns: a tridiagonal matrix of size 1,000,000 is coloured in 0.1 s.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_DIFFERENCES = 400
"""A pattern with more differences between neighbours than this counts as irregular."""
MOST_WEIGHTS = 50_000


def regular(rows: Any, shapes: Sequence[Sequence[int]]) -> Any:
    """Colour the columns of a matrix with a regular pattern, such as a stencil.

    The colour of a column is a weighted sum of its coordinates, modulo the number of colours.

    Args:
      rows: the matrix, a CSR array.
      shapes: the shapes of the arrays whose elements correspond to the columns.

    Returns:
      The colour of each column; None if the pattern is not regular: all such colourings need more than about twice as
      many colours as the longest row has elements.
    """
    least = int(np.diff(rows.indptr).max(initial=0))
    position = _coordinates(shapes)
    if position is None or not 1 < least <= 64:
        return None
    differences = _differences(rows, position)
    if differences is None:
        return None
    for count in range(least, 2 * least + 2):
        weights = _weights(differences, count)
        if weights is not None:
            return (weights @ position % count).astype(np.int32)
    return None


def _coordinates(shapes: Sequence[Sequence[int]]) -> Any:
    """Return the coordinates of each column of a matrix, as an array (axes, columns).

    The columns correspond to the elements of arrays of the given shapes. The coordinates of a column are the number of
    the array, if there are several arrays, and the element's index, without axes of size 1. Return None if the arrays
    have different shapes, or if a column has none or more than four coordinates.
    """
    if len({tuple(s) for s in shapes}) != 1:
        return None
    whole = [n for n in (len(shapes), *shapes[0]) if n > 1]
    if not 1 <= len(whole) <= 4:
        return None
    return np.indices(whole).reshape(len(whole), -1)


def _differences(rows: Any, position: Any) -> Any:
    """Return the distinct differences between the coordinates of two columns that share a row, as (axes, differences).

    Return None if there are no differences, or too many.

    Args:
      rows: the matrix, a CSR array.
      position: the coordinates of each column, (axes, columns).
    """
    sizes = position.max(1) + 1
    wide = 2 * sizes  # so that each difference of codes belongs to one difference of coordinates
    strides = np.array([math.prod(wide[i + 1 :].tolist()) for i in range(len(wide))])
    codes = (strides @ position)[rows.indices]
    row = np.repeat(np.arange(rows.shape[0], dtype=np.int32), np.diff(rows.indptr))
    if math.prod(wide.tolist()) > 64 * (len(codes) + 10_000):
        return None
    seen = np.zeros(math.prod(wide.tolist()), bool)
    for shift in range(1, int(np.diff(rows.indptr).max())):
        same = row[shift:] == row[:-shift]
        seen[(codes[shift:] - codes[:-shift])[same]] = True
    found = np.flatnonzero(seen)
    if not 0 < len(found) <= MOST_DIFFERENCES:
        return None
    # Decode the last axis first: each difference is smaller than half of the width of its axis.
    axes = []
    for stride, size in zip(strides[::-1], wide[::-1], strict=True):
        part = found // stride % size
        part = np.where(part >= size // 2, part - size, part)
        found = found - part * stride
        axes.append(part)
    return np.array(axes[::-1])


def _weights(differences: Any, count: int) -> Any:
    """Find integers w, one for each axis, such that no element of ``w @ differences`` is a multiple of ``count``.

    Then ``w @ coordinates`` modulo ``count`` is a colouring of the columns with ``count`` colours. Return None if no
    such weights exist, or if there are too many to try.
    """
    axes = len(differences)
    if count**axes > MOST_WEIGHTS:
        return None
    weights = np.array(list(itertools.product(range(count), repeat=axes)))
    fit = ((weights @ differences) % count != 0).all(1)
    return weights[fit.argmax()] if fit.any() else None
