"""Grids and concatenations written as indices: ``mgrid[0:3, 0:2]``, ``r_[1:4, 0, x]``, and indices kept as values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy import index_exp, s_

from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl
from pullback.core.errors import ArgumentError, IndexingError
from pullback.core.trace import state
from pullback.numpy.creation import array, listed, meshgrid
from pullback.numpy.joining import concatenate
from pullback.numpy.manipulation import matrix_transpose
from pullback.numpy.promotion import quote
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import made

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]


def _range(name: str, part: Any) -> np.ndarray[Any, Any]:
    """The numbers of ``start:stop:step``, or as many as say ``start:stop:5j``, in a dtype that is in use."""
    if isinstance(part, slice) and part.start is part.stop is None:
        return np.arange(0, dtype=dtypes.default_int())
    if not isinstance(part, slice) or part.stop is None:
        raise IndexingError(f"{name} takes slices start:stop:step, or start:stop:5j for five points; got {quote(part)}")
    start, stop, step = (x.item() if hasattr(x, "item") else x for x in (part.start, part.stop, part.step))
    start, step = 0 if start is None else start, 1 if step is None else step
    try:
        if isinstance(step, complex):
            found = np.linspace(start, stop, int(abs(step)))
        else:
            found = np.arange(start, stop, step)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise IndexingError(f"{name}: {quote(part)} is no range of numbers ({error})") from None
    return found.astype(dtypes.canonicalize_dtype(found.dtype))


class _Grid:
    """What ``mgrid`` and ``ogrid`` are."""

    def __init__(self, name: str, sparse: bool, doc: str) -> None:
        self._name, self._sparse, self.__doc__ = name, sparse, doc

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return made(ArrayImpl(_range(self._name, key)))
        ranges = [_range(self._name, part) for part in key]
        if ranges:
            dtype = np.result_type(*ranges)
            ranges = [r.astype(dtypes.canonicalize_dtype(dtype)) for r in ranges]
        if not state.trace.eager:  # which keeps no more than the ranges
            coordinates = meshgrid(*[made(ArrayImpl(r)) for r in ranges], sparse=self._sparse, indexing="ij")
            return coordinates if self._sparse else array(coordinates)
        grids = np.meshgrid(*ranges, sparse=self._sparse, indexing="ij")
        return [ArrayImpl(g) for g in grids] if self._sparse else ArrayImpl(np.array(grids))

    def __repr__(self) -> str:
        return f"pullback.numpy.{self._name}"


class _Concatenation:
    """What ``r_`` and ``c_`` are."""

    def __init__(self, name: str, axis: int, ndmin: int, at: int, doc: str) -> None:
        self._name, self._axis, self._ndmin, self._at, self.__doc__ = name, axis, ndmin, at, doc

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, at, matrix = self._axis, self._ndmin, self._at, ""
        if items and isinstance(items[0], str):
            directive = items.pop(0)
            if directive in ("r", "c"):
                matrix = directive
            else:
                axis, ndmin, at = self._numbers(directive, (axis, ndmin, at))
        if not items:
            raise IndexingError(f"{self._name} needs at least one slice, number or array to concatenate")
        parts = [self._part(item, ndmin, at) for item in items]
        out = concatenate(parts, axis)
        if not matrix:
            return out
        row = array(out, ndmin=2)
        return matrix_transpose(row) if matrix == "c" and len(out.shape) == 1 else row

    def _numbers(self, directive: str, default: tuple[int, int, int]) -> tuple[int, int, int]:
        try:
            given = tuple(map(int, directive.split(",")))
        except ValueError:
            given = ()
        if not 1 <= len(given) <= 3:
            raise ArgumentError(
                f"{self._name}: a directive is 'r', 'c', or up to three integers 'axis,ndmin,position', got "
                f"{directive!r}"
            )
        return (*given, *default[len(given) :])  # type: ignore[return-value]

    def _part(self, item: Any, ndmin: int, at: int) -> Any:
        if isinstance(item, str):
            raise IndexingError(f"{self._name}: a directive comes first, got {item!r} after other items")
        if isinstance(item, slice):
            x: Array = made(ArrayImpl(_range(self._name, item)))
        else:
            x = listed(self._name, item)
            x = shapes.reshape(x, (1,)) if not x.shape and not ndmin else x
        own = len(x.shape)
        missing = ndmin - own
        if missing <= 0:
            return x
        first = missing if at == -1 else at  # where the axes of the item are among those of the result
        first = first + missing + 1 if first < 0 else first
        if not 0 <= operator.index(first) <= missing or own == 0:
            first = missing
        return shapes.reshape(x, (1,) * first + x.shape + (1,) * (missing - first))

    def __repr__(self) -> str:
        return f"pullback.numpy.{self._name}"


mgrid = _Grid(
    "mgrid",
    False,
    """The coordinates of the points of a grid, one array of all axes for each axis, as one array.

    Index it with slices: ``start:stop:step``, or ``start:stop:5j`` for five points, the last one included.

    Raises:
      IndexingError: something else than slices (an IndexError).

    >>> import pullback.numpy as pnp
    >>> print(pnp.mgrid[0:2, 0:3][1])
    [[0 1 2]
     [0 1 2]]
    """,
)
ogrid = _Grid(
    "ogrid",
    True,
    """The coordinates of the points of a grid, one array for each axis, which broadcast; see :data:`mgrid`.

    >>> import pullback.numpy as pnp
    >>> [x.shape for x in pnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """,
)
r_ = _Concatenation(
    "r_",
    0,
    1,
    -1,
    """Slices, numbers and arrays, concatenated along the first axis.

    Index it with them; a slice is the numbers ``start:stop:step``, or ``start:stop:5j`` for five points. A string in
    front says how: ``"axis,ndmin,position"``, along which axis, of how many axes at least the items are made, and at
    which position the axes that they had come; ``"r"`` or ``"c"`` for a matrix of one row or one column.

    Raises:
      IndexingError: a directive that is none, or nothing to concatenate (an IndexError).

    >>> import pullback.numpy as pnp
    >>> print(pnp.r_[1:3, 0, pnp.array([5, 6])])
    [1 2 0 5 6]
    """,
)
c_ = _Concatenation(
    "c_",
    -1,
    2,
    0,
    """Vectors as the columns of a matrix: :data:`r_` with the directive ``"-1,2,0"``.

    >>> import pullback.numpy as pnp
    >>> print(pnp.c_[pnp.array([1, 2]), pnp.array([3, 4])])
    [[1 3]
     [2 4]]
    """,
)
