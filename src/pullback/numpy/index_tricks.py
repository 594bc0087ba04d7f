"""Grids and concatenations written as indices, ``mgrid[0:3, 0:2]`` and ``r_[1:4, 0, x]``, and indices as values."""

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


def _range(name: str, item: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of a slice: a range for ``start:stop:step``, or 5 evenly spaced numbers for ``start:stop:5j``.

    The dtype is canonical. ``name`` is the name of the object that was indexed, for errors.
    """
    if isinstance(item, slice) and item.start is item.stop is None:
        return np.arange(0, dtype=dtypes.default_int())
    if not isinstance(item, slice) or item.stop is None:
        raise IndexingError(f"{name} takes slices start:stop:step, or start:stop:5j for five points; got {quote(item)}")
    start, stop, step = (x.item() if hasattr(x, "item") else x for x in (item.start, item.stop, item.step))
    start, step = 0 if start is None else start, 1 if step is None else step
    try:
        if isinstance(step, complex):
            found = np.linspace(start, stop, int(abs(step)))
        else:
            found = np.arange(start, stop, step)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise IndexingError(f"{name}: {quote(item)} is not a range of numbers ({error})") from None
    return found.astype(dtypes.canonicalize_dtype(found.dtype))


class _Grid:
    """The class of ``mgrid`` and ``ogrid``, which return grids of coordinates when they are indexed by slices."""

    def __init__(self, name: str, sparse: bool, doc: str) -> None:
        self._name, self._sparse, self.__doc__ = name, sparse, doc

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return made(ArrayImpl(_range(self._name, key)))
        ranges = [_range(self._name, item) for item in key]
        if not key and not self._sparse:
            return array([], int)  # as NumPy: a grid without axes has no coordinates
        if ranges:
            dtype = np.result_type(*ranges)
            ranges = [r.astype(dtypes.canonicalize_dtype(dtype)) for r in ranges]
        if not state.trace.eager:  # so that a program holds only the ranges as constants
            coordinates = meshgrid(*[made(ArrayImpl(r)) for r in ranges], sparse=self._sparse, indexing="ij")
            return coordinates if self._sparse else array(coordinates)
        grids = np.meshgrid(*ranges, sparse=self._sparse, indexing="ij")
        return [ArrayImpl(g) for g in grids] if self._sparse else ArrayImpl(np.array(grids))

    def __repr__(self) -> str:
        return f"pullback.numpy.{self._name}"


class _Concatenation:
    """The class of ``r_`` and ``c_``, which concatenate the items in the index when they are indexed."""

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
            raise IndexingError(f"{self._name} needs at least one slice, number or array")
        arrays = [self._item(item, ndmin, at) for item in items]
        out = concatenate(arrays, axis)
        if not matrix:
            return out
        row = array(out, ndmin=2)
        return matrix_transpose(row) if matrix == "c" and len(out.shape) == 1 else row

    def _numbers(self, directive: str, default: tuple[int, int, int]) -> tuple[int, int, int]:
        try:
            numbers = tuple(map(int, directive.split(",")))
        except ValueError:
            numbers = ()
        if not 1 <= len(numbers) <= 3:
            raise ArgumentError(
                f"{self._name}: a directive is 'r', 'c', or up to three integers 'axis,ndmin,position', got "
                f"{directive!r}"
            )
        return (*numbers, *default[len(numbers) :])  # type: ignore[return-value]

    def _item(self, item: Any, ndmin: int, at: int) -> Any:
        if isinstance(item, str):
            raise IndexingError(f"{self._name}: a directive must come first, got {item!r} after other items")
        if isinstance(item, slice):
            x: Array = made(ArrayImpl(_range(self._name, item)))
        else:
            x = listed(self._name, item)
            x = shapes.reshape(x, (1,)) if not x.shape and not ndmin else x
        own = len(x.shape)
        missing = ndmin - own
        if missing <= 0:
            return x
        first = missing if at == -1 else at  # the position of the item's axes in the result
        first = first + missing + 1 if first < 0 else first
        if not 0 <= operator.index(first) <= missing or own == 0:
            first = missing
        return shapes.reshape(x, (1,) * first + x.shape + (1,) * (missing - first))

    def __repr__(self) -> str:
        return f"pullback.numpy.{self._name}"


mgrid = _Grid(
    "mgrid",
    False,
    """The coordinates of the points of a grid, stacked in one array: along the first axis, one array for each axis.

    Index it with slices: ``start:stop:step``, or ``start:stop:5j`` for five points, the last one included.

    Raises:
      IndexingError: an item is not a slice (an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.mgrid[0:2, 0:3][1])
    [[0 1 2]
     [0 1 2]]
    """,
)
ogrid = _Grid(
    "ogrid",
    True,
    """The coordinates of the points of a grid, one array for each axis, which broadcast; see :data:`mgrid`.

    >>> import pullback.numpy as jnp
    >>> [x.shape for x in jnp.ogrid[0:2, 0:3]]
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
    front is a directive: ``"axis,ndmin,position"``, the axis of the concatenation, the least number of axes of the
    items, and the position of their own axes among these; ``"r"`` or ``"c"`` for a matrix of one row or one column.

    Raises:
      IndexingError: the directive is not first, or there are no items (an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.r_[1:3, 0, jnp.array([5, 6])])
    [1 2 0 5 6]
    """,
)
c_ = _Concatenation(
    "c_",
    -1,
    2,
    0,
    """Vectors as the columns of a matrix: :data:`r_` with the directive ``"-1,2,0"``.

    >>> import pullback.numpy as jnp
    >>> print(jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])])
    [[1 3]
     [2 4]]
    """,
)
