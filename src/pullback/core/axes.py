"""Named axes in scope: which there are, of what size, and what maps them.

They are dynamic state, as the current trace is. A type says along which of them a value varies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.core.errors import ArgumentError, UnboundAxisNameError
from pullback.core.trace import state
from pullback.core.types import MappedAxis


def new_axis(name: Any, size: int, mapped_by: str, spmd_name: Any = None) -> MappedAxis:
    """An axis that is about to be mapped; one of the same name in scope is hidden by it."""
    outer = None if name is None else state.axes.get(name)
    return MappedAxis(name, size, mapped_by, False, 0 if outer is None else outer.level + 1, spmd_name)


def axis_in_scope(name: Any) -> MappedAxis:
    """The axis that a name stands for.

    Raises:
      UnboundAxisNameError: nothing maps an axis of this name here (a NameError).
    """
    axis = state.axes.get(name)
    if axis is None:
        known = ", ".join(f"{a.name!r} (size {a.size}, by {a.mapped_by})" for a in state.axes.values())
        raise UnboundAxisNameError(
            f"unbound axis name: {name!r}. Names in scope: {known or 'none'}. vmap(f, axis_name={name!r}) brings it "
            "into scope while f runs"
        )
    return axis


def axis_names(axis_name: Any, what: str) -> tuple[Any, ...]:
    """One name, or several in a tuple or list, as a tuple of names that are in scope.

    Raises:
      ArgumentError: a name is there twice (a TypeError and ValueError).
      UnboundAxisNameError: a name is not in scope (a NameError).
    """
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    if len(set(names)) < len(names):
        raise ArgumentError(f"{what}: axis_name={axis_name!r} has a name twice")
    for name in names:
        axis_in_scope(name)
    return names


def axis_size(names: Sequence[Any]) -> int:
    """The number of indices of some axes in scope together."""
    return math.prod(axis_in_scope(name).size for name in names)


def is_reduced(name: Any) -> bool:
    """Whether reverse mode, which is at work, sums cotangents over an axis."""
    axis = state.axes.get(name)
    return axis is not None and axis.reduced


@contextmanager
def reducing(names: Sequence[Any]) -> Iterator[None]:
    """Have reverse mode sum over these axes in scope, and no others of ``vmap``, cotangents of what does not vary."""
    for name in names:
        axis_in_scope(name)
    outer = state.axes
    state.axes = {name: axis._replace(reduced=name in names) for name, axis in outer.items()}
    try:
        yield
    finally:
        state.axes = outer
