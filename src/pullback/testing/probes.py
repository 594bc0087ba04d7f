"""Vectors along which derivatives are compared, and the meaning of rows and columns of matrices of derivatives."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.locks import cached_property
from pullback.testing.differences import Space, Vector, random_vector

FEW = 32
"""The largest number of coordinates that are tested one by one; more are tested by random directions in each leaf."""
DIRECTIONS = 3

Index = np.ndarray[Any, np.dtype[np.intp]]


class Probes:
    """Directions in a space of arguments or results; each varies one leaf only.

    Args:
      space: the space.
      root: the beginning of the names of its leaves, "argument" or "out".
      coordinates: whether each coordinate is a direction; otherwise a few random directions are used, the same ones for
        leaves of equal size. By default True if there are few coordinates.

    Attributes:
      spans: for each leaf the indices of its directions.
      names: the name of each leaf.
    """

    def __init__(self, space: Space, root: str, coordinates: bool | None = None) -> None:
        self.space = space
        self.root = root
        self.coordinates = space.size <= FEW if coordinates is None else coordinates
        self.names = [space.leaf_name(i, root) for i in range(len(space.leaves))]
        counts = space.counts if self.coordinates else [DIRECTIONS * (count > 0) for count in space.counts]
        ends = np.cumsum([0, *counts])
        self.spans = [np.arange(a, b) for a, b in pairwise(ends)]

    @cached_property
    def vectors(self) -> Vector:
        """The directions, as the rows of a matrix."""
        if self.coordinates:
            return np.eye(self.space.size)
        rows = []
        for start, count in zip(np.cumsum([0, *self.space.counts]), self.space.counts, strict=False):
            for k in range(DIRECTIONS * (count > 0)):
                row = np.zeros(self.space.size)
                row[start : start + count] = random_vector(count, 20 + k)
                rows.append(row)
        return np.stack(rows)

    def leaf_of(self, index: int) -> int:
        """Return the index of the leaf that a direction is in."""
        return next(i for i, span in enumerate(self.spans) if index in span)

    def name(self, index: int) -> str:
        """Return the name of a direction: of its coordinate, or of a random combination."""
        if self.coordinates:
            return self.space.name(index, self.root)
        return f"a random combination of the components of {self.names[self.leaf_of(index)]}"

    def conjugated(self, i: int) -> Vector | None:
        """Return the signs that conjugate the coordinates of a complex leaf, or None for other leaves."""
        x = self.space.leaves[i]
        if not (self.coordinates and dtypes.is_complex(x.dtype)):
            return None
        return np.repeat([1.0, -1.0], x.size)

    def transposed(self, i: int) -> Index | None:
        """Return the permutation of coordinates that transposes a leaf of square matrices, or None for other leaves."""
        x = self.space.leaves[i]
        shape = x.shape
        if not self.coordinates or len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 1:
            return None
        order = np.arange(x.size).reshape(shape).swapaxes(-1, -2).ravel()
        return np.concatenate([order, order + x.size]) if dtypes.is_complex(x.dtype) else order


def paired(values: Vector, probes: Vector) -> Vector:
    """Return the inner products of each row of ``values`` with each row of ``probes``, as a matrix.

    Where a probe is zero, values are ignored even if they are not finite.
    """
    columns = [values[:, p != 0] @ p[p != 0] for p in probes]
    return np.stack(columns, axis=1) if columns else np.zeros((len(values), 0))
