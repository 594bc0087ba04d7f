"""Blocks of arrays: the parts of operands and results that an expression is evaluated on at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

Index = tuple[int | slice, ...]
"""The index of a block: integers for the first axes, and a slice of the next."""


def collapsed(x: Any) -> Any:
    """Return an array that repeats one element of memory, by broadcasting, as that element; others unchanged."""
    return x[(0,) * x.ndim] if type(x) is np.ndarray and x.size and not any(x.strides) else x


def flattened(shape: tuple[int, ...], arrays: list[Any], outs: list[Any]) -> tuple[tuple[int, ...], list[Any], Any]:
    """Give all arrays one axis, if those that are not scalars have the shape and are contiguous; return the new shape.

    Args:
      shape: that of the results.
      arrays: the operands, which broadcast to ``shape``.
      outs: the arrays for the results, or None.
    """
    if not all(not np.ndim(x) or (x.shape == shape and x.flags.c_contiguous) for x in arrays):
        return shape, arrays, outs
    flat = [x.reshape(-1) if np.ndim(x) else x for x in arrays]
    return (math.prod(shape),), flat, [None if x is None else x.reshape(-1) for x in outs]


def blocks_along(shape: tuple[int, ...], axis: int, rows: int) -> Iterator[Index]:
    """The indices of the blocks of an array: a position on each axis before ``axis``, and ``rows`` positions on it."""
    for outer in product(*map(range, shape[:axis])):
        for start in range(0, shape[axis], rows):
            yield (*outer, slice(start, start + rows))


def block_of(x: Any, block: Index, ndim: int) -> Any:
    """Return the elements of a block of ``x``, a number or an array that broadcasts to ``ndim`` axes."""
    missing = ndim - np.ndim(x)
    if missing == ndim:
        return x
    index = [
        part if x.shape[axis - missing] > 1 else slice(None) if type(part) is slice else 0
        for axis, part in enumerate(block)
        if axis >= missing
    ]
    return x[tuple(index)]
