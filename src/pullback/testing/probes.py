"""Vectors along which derivatives are compared, and what their rows or columns in a matrix of derivatives mean."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.testing.differences import Space, Vector, random_vector

FEW = 32
"""Up to so many coordinates are taken one by one; of more, random directions in each leaf."""
DIRECTIONS = 3

Index = np.ndarray[Any, np.dtype[np.intp]]


class Probes:
    """Directions in a space of arguments or results, each within one leaf.

    Args:
      space: the space.
      root: what names of its leaves begin with, "argument" or "out".
      coordinates: whether to take the coordinates, each one, or random directions, of which leaves of one size have the
        same; by default the coordinates if they are few.

    Attributes:
      spans: for each leaf the numbers of its directions.
      names: what each leaf is called.
    """

    def __init__(self, space: Space, root: str, coordinates: bool | None = None) -> None:
        self.space = space
        self.root = root
        self.coordinates = space.size <= FEW if coordinates is None else coordinates
        self.names = [space.leaf_name(i, root) for i in range(len(space.leaves))]
        counts = space.parts if self.coordinates else [DIRECTIONS * (count > 0) for count in space.parts]
        ends = np.cumsum([0, *counts])
        self.spans = [np.arange(a, b) for a, b in pairwise(ends)]

    @cached_property
    def vectors(self) -> Vector:
        """The directions, one a row."""
        if self.coordinates:
            return np.eye(self.space.size)
        rows = []
        for start, count in zip(np.cumsum([0, *self.space.parts]), self.space.parts, strict=False):
            for k in range(DIRECTIONS * (count > 0)):
                row = np.zeros(self.space.size)
                row[start : start + count] = random_vector(count, 20 + k)
                rows.append(row)
        return np.stack(rows)

    def leaf_of(self, index: int) -> int:
        """The leaf that a direction is in."""
        return next(i for i, span in enumerate(self.spans) if index in span)

    def name(self, index: int) -> str:
        """What is differentiated, or differentiated by, for a direction."""
        if self.coordinates:
            return self.space.name(index, self.root)
        return f"a random combination of the components of {self.names[self.leaf_of(index)]}"

    def conjugated(self, i: int) -> Vector | None:
        """The signs by which the coordinates of a complex leaf are multiplied to conjugate it."""
        x = self.space.leaves[i]
        if not (self.coordinates and dtypes.is_complex(x.dtype)):
            return None
        return np.repeat([1.0, -1.0], x.size)

    def transposed(self, i: int) -> Index | None:
        """The order in which the coordinates of a leaf of square matrices are those of their transposes."""
        x = self.space.leaves[i]
        shape = x.shape
        if not self.coordinates or len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 1:
            return None
        order = np.arange(x.size).reshape(shape).swapaxes(-1, -2).ravel()
        return np.concatenate([order, order + x.size]) if dtypes.is_complex(x.dtype) else order


def paired(values: Vector, probes: Vector) -> Vector:
    """The products of each row of ``values`` with each of ``probes``, whose zeros outweigh what is not finite."""
    columns = [values[:, p != 0] @ p[p != 0] for p in probes]
    return np.stack(columns, axis=1) if columns else np.zeros((len(values), 0))
