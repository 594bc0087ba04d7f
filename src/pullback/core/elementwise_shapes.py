"""Shapes of the variables of a tape that are results of elementwise operations, without abstract evaluation.

A derivative rule has several operations, and the tape knows the shape of the last one's result only. Abstract
evaluation of the others takes longer than to transpose them for small arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import traits
from pullback.core.array import shape_of
from pullback.core.types import Shape


def elementwise_shape(var: Any) -> Shape | None:
    """Return the shape of a ``LinearVar``, and keep those found on the way; None if operands do not show it.

    Without recursion, since a tape may be long.
    """
    kind, waiting = type(var), [var]
    while waiting:
        last = waiting[-1]
        if last._aval is not None:
            last._shape = last._aval.shape
        if last._shape is not None:
            waiting.pop()
            continue
        if last.primitive is None or not traits.elementwise.of(last.primitive):
            return None
        unknown = [x for x in last.args if type(x) is kind and x._shape is None]
        if unknown:
            waiting += unknown
            continue
        last._shape = _broadcast([x._shape if type(x) is kind else shape_of(x) for x in last.args])
        if last._shape is None:
            return None
    return var._shape  # type: ignore[no-any-return]


def _broadcast(shapes: Sequence[Any]) -> Shape | None:
    """Return the shape to which arrays broadcast; None if it is not one of theirs, or does not consist of numbers."""
    whole = shapes[0]
    for shape in shapes:
        if not _repeats_to(shape, whole):
            if not _repeats_to(whole, shape):
                return None
            whole = shape
    return whole  # type: ignore[no-any-return]


def _repeats_to(shape: Shape, whole: Shape) -> bool:
    """Whether an array of ``shape``, whose sizes are numbers, broadcasts to ``whole``."""
    if shape == whole or not shape:
        return True
    if len(shape) > len(whole):
        return False
    ends = zip(shape, whole[len(whole) - len(shape) :], strict=True)
    return all(type(n) is int and type(size) is int and n in (1, size) for n, size in ends)
