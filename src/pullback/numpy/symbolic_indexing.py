"""Indexing of axes of symbolic size, and by symbolic sizes, with ints, slices, None and ``...``."""

from __future__ import annotations

import operator
from typing import Any

from pullback.core.dims import Size, as_size, is_symbolic, largest, smallest
from pullback.core.errors import IndexingError
from pullback.primitives.arrays import shapes, slicing


def is_simple(index: Any) -> bool:
    """Whether an index consists of ints, slices, None and ``...``."""
    items = index if isinstance(index, tuple) else (index,)
    return all(i is None or i is Ellipsis or type(i) in (int, slice) or is_symbolic(i) for i in items)


def has_symbolic(index: Any) -> bool:
    """Whether an int or a bound of a slice in an index is a symbolic size."""
    kind = type(index)
    if kind is slice:
        return is_symbolic(index.start) or is_symbolic(index.stop)
    return any(map(has_symbolic, index)) if kind is tuple else is_symbolic(index)


def _from_the_last(bound: Any, n: Size) -> Size | None:
    """Convert a bound of a backward slice to one of the reversed axis: x[6:2:-1] is x[::-1][n - 7 : n - 3]."""
    if bound is None:
        return None
    at = as_size(bound)
    return largest(n - 1 - (at if at >= 0 else n + at), 0)


def read_simple(x: Any, index: Any) -> Any:
    """Read ``x[index]`` for an index of ints, slices, None and ``...``."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(i is not None and i is not Ellipsis for i in items)
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if used > len(x.shape) or len(dots) > 1:
        raise IndexingError(f"an array of shape {x.shape} cannot be indexed with x[{index!r}]")
    rest = [slice(None)] * (len(x.shape) - used)
    items[dots[0] if dots else len(items) : (dots[0] + 1) if dots else None] = rest
    starts: list[Size] = []
    limits: list[Size] = []
    steps: list[int] = []
    reversed_, shape = [], []
    sizes = iter(x.shape)
    for item in items:
        if item is None:
            shape.append(1)
            continue
        n = next(sizes)
        if type(item) is not slice:
            at = item if item >= 0 else n + item
            at = 0 if at < 0 else at if at < n else n - 1  # clipped, as in JAX
            start, stop, step = at, at + 1, 1
        else:
            if item.step is not None and operator.index(item.step) < 0:
                reversed_.append(len(starts))
                item = slice(_from_the_last(item.start, n), _from_the_last(item.stop, n), item.step)
            start, stop, step = _slice(item, n)
            shape.append(-(-(stop - start) // step))
        starts.append(start)
        limits.append(stop)
        steps.append(step)
    x = slicing.rev(x, reversed_) if reversed_ else x
    if (starts, limits, steps) != ([0] * len(starts), list(x.shape), [1] * len(steps)):
        x = slicing.slice(x, starts, limits, steps)
    return shapes.reshape(x, shape)


def _slice(item: slice, n: Size) -> tuple[Size, Size, int]:
    """The start, stop and step of a slice of an axis of size ``n``, with ``0 <= start <= stop <= n``."""
    step = 1 if item.step is None else abs(operator.index(item.step))
    if step == 0:
        raise IndexingError("the step of a slice must not be zero")
    start = 0 if item.start is None else _bound(as_size(item.start), n)
    stop = n if item.stop is None else largest(_bound(as_size(item.stop), n), start)
    return start, stop, step


def _bound(at: Size, n: Size) -> Size:
    if at < 0:
        return largest(n + at, 0)
    return smallest(at, n)
