"""Views of arrays as arrays of two or three axes, which ``loops``, the module in C, takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np


class Untranslatable(Exception):
    """An operation cannot be expressed in loops; NumPy has to compute it."""


Strided = tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]]
"""The shape, strides and dtype of an array."""
View = tuple[tuple[slice, ...] | None, tuple[int, ...]]
"""How an array becomes one of few axes: the part of it without repetitions, or None for the whole, and its sizes."""


def few_axes_in_order(
    shape: tuple[int, ...],
    operands: Sequence[Strided],
    axes: tuple[int, int] | None,
    are_movable: bool,
) -> tuple[tuple[int, ...] | None, tuple[int, ...], list[View]]:
    """View arrays as by :func:`few_axes`; if that fails, move axes behind the ones that are reduced before these.

    Args:
      shape, operands, axes: as there.
      are_movable: whether axes may be moved: nothing is written but reductions, whose elements stay in the same order.

    Returns:
      The permutation of the axes, or None; the sizes; and the views.

    Raises:
      Untranslatable: no such axes do.
    """
    try:
        return (None, *few_axes(shape, tuple(operands), axes))
    except Untranslatable:
        if axes is None or not are_movable:
            raise
    first, end = axes
    for split in range(end + 1, len(shape)):
        order = (*range(first), *range(end, split), *range(first, end), *range(split, len(shape)))
        moved = [
            (tuple([sizes[i] for i in order]), tuple([strides[i] for i in order]), dtype)
            for sizes, strides, dtype in (_with_axes(x, len(shape)) for x in operands)
        ]
        try:
            sizes, views = few_axes(tuple([shape[i] for i in order]), tuple(moved), (first + split - end, split))
        except Untranslatable:
            continue
        return order, sizes, views
    raise Untranslatable


def _with_axes(operand: Strided, ndim: int) -> Strided:
    """Describe an array with axes of size one before the others, so that it has ``ndim``."""
    shape, strides, dtype = operand
    missing = ndim - len(shape)
    return (1,) * missing + shape, (0,) * missing + strides, dtype


@lru_cache(maxsize=1024)
def few_axes(
    shape: tuple[int, ...],
    operands: tuple[Strided, ...],
    axes: tuple[int, int] | None = None,
) -> tuple[tuple[int, ...], list[View]]:
    """View arrays that broadcast to a shape as arrays of two axes, rows and columns, or of three: groups of rows.

    Args:
      shape: that of the results.
      operands: the arrays' shapes, strides and dtypes.
      axes: the first axis that is reduced, and the one after the last: they become the columns, if they are the last
        ones, and otherwise the rows of a group; None, if nothing is reduced.

    Returns:
      The sizes, and the views.

    Raises:
      Untranslatable: no such axes do for all arrays without a copy.
    """
    narrow, parts = [], []
    for sizes, strides, dtype in operands:
        x = np.lib.stride_tricks.as_strided(np.empty(1, dtype), sizes, strides)  # of which no element is read
        part = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
        parts.append(None if slice(0, 1) not in part else part)
        narrow.append(x[part].reshape((1,) * (len(shape) - x.ndim) + x[part].shape))
    for cuts in _cuts(len(shape), axes):
        spans = list(pairwise((0, *cuts, len(shape))))
        if all(_is_full_or_one(x.shape[i:j], shape[i:j]) for x in narrow for i, j in spans):
            views = [tuple([math.prod(x.shape[i:j]) for i, j in spans]) for x in narrow]
            try:
                for x, view in zip(narrow, views, strict=True):
                    np.reshape(x, view, copy=False)
            except ValueError:  # the elements are not in this order
                continue
            return tuple([math.prod(shape[i:j]) for i, j in spans]), list(zip(parts, views, strict=True))
    raise Untranslatable


def _cuts(ndim: int, axes: tuple[int, int] | None) -> Iterator[tuple[int, ...]]:
    """The axes with which the second axis of a view may begin, and the third if it has three; the simplest first."""
    if axes is None:
        yield from [(k,) for k in range(ndim)]
        yield from combinations(range(1, ndim), 2)
    elif axes[1] == ndim:
        yield (axes[0],)
        yield from [(k, axes[0]) for k in range(1, axes[0])]
    else:
        yield axes


def _is_full_or_one(sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return sizes == shape or math.prod(sizes) == 1
