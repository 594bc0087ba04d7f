"""The named axes in scope: their sizes, and which transformations map them.

They are dynamic state, as the current trace is. A type says along which of them a value varies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.core.arguments import quote
from pullback.core.errors import ArgumentError, UnboundAxisNameError
from pullback.core.trace import state
from pullback.core.types import MappedAxis

CHUNKS = "vmap with chunk_size"
"""The transformation that maps an axis in chunks, so that never all of it is there."""


def new_axis(name: Any, size: int, mapped_by: str, *, checked: bool = False, spmd_name: Any = None) -> MappedAxis:
    """Make an axis to map; while in scope, it hides outer axes of the same name.

    Args:
      name: the name of the axis; None for no name.
      size: the number of its elements.
      mapped_by: the transformation that maps the axis, for error messages.
      checked: whether reverse mode sums over this axis the cotangents of values that do not vary along it, always.
      spmd_name: in sharding constraints, the mesh axis or axes to divide the axis by.
    """
    outer = None if name is None else state.axes.get(name)
    return MappedAxis(name, size, mapped_by, checked, checked, 0 if outer is None else outer.level + 1, spmd_name)


def axis_in_scope(name: Any) -> MappedAxis:
    """Return the mapped axis of a name.

    Raises:
      UnboundAxisNameError: no axis of this name is in scope (a NameError).
      ArgumentError: the axis is mapped in chunks (a TypeError and ValueError).
    """
    axis = state.axes.get(name)
    if axis is None:
        known = ", ".join(f"{a.name!r} (size {a.size}, by {a.mapped_by})" for a in state.axes.values())
        raise UnboundAxisNameError(
            f"unbound axis name: {name!r}. Names in scope: {known or 'none'}. vmap(f, axis_name={name!r}) brings it "
            "into scope while f runs"
        )
    if axis.mapped_by == CHUNKS:
        raise ArgumentError(
            f"the axis {name!r} is mapped by vmap with chunk_size, so only {axis.size} of its indices are computed "
            f"at a time, and collectives and reduce_axes over it are not possible. Leave chunk_size out."
        )
    return axis


def axis_names(axis_name: Any, what: str) -> tuple[Any, ...]:
    """Return a name, or a tuple or list of names, as a tuple of axis names in scope; ``what`` is the caller's name.

    Raises:
      ArgumentError: a name is there twice (a TypeError and ValueError).
      UnboundAxisNameError: a name is not in scope (a NameError).
    """
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    try:
        distinct = len(set(names))
    except TypeError:
        raise ArgumentError(
            f"{what}: axis_name must be a hashable name or a tuple of names, got {quote(axis_name)}"
        ) from None
    if distinct < len(names):
        raise ArgumentError(f"{what}: axis_name={axis_name!r} contains a name twice")
    for name in names:
        axis_in_scope(name)
    return names


def axis_size(names: Sequence[Any]) -> int:
    """The product of the sizes of the named axes ``names``, which must be in scope."""
    return math.prod(axis_in_scope(name).size for name in names)


def is_reduced(name: Any) -> bool:
    """Whether reverse mode now sums over the axis ``name`` the cotangents of values that do not vary along it."""
    axis = state.axes.get(name)
    return axis is not None and axis.reduced


@contextmanager
def reducing(names: Sequence[Any]) -> Iterator[None]:
    """A context manager in which reverse mode sums, over axes ``names``, cotangents of values that do not vary there.

    It also sums over the axes of a ``shard_map`` that checks along which axes values vary.
    """
    for name in names:
        axis_in_scope(name)
    outer = state.axes
    state.axes = {name: axis._replace(reduced=axis.checked or name in names) for name, axis in outer.items()}
    try:
        yield
    finally:
        state.axes = outer
