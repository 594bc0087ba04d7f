"""Layouts of arrays: the order of their elements in memory."""

from __future__ import annotations

from typing import TypeVar

from pullback.backends.devices.layouts import Format, Layout, check_layout
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.errors import LayoutError
from pullback.core.faces import face

T = TypeVar("T")

__all__ = ["Format", "Layout", "with_layout_constraint"]
face(globals())


def with_layout_constraint(x: T, layouts: PyTree) -> T:
    """Return a tree of arrays in a layout.

    Args:
      x: a tree of arrays.
      layouts: a supported :class:`Layout`, with the last axis fastest, or a tree of layouts that is a prefix of ``x``.

    Returns:
      The same arrays, whose only layout this is.

    Raises:
      LayoutError: another layout, or one of another rank than its array (a ValueError and NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.layout import Layout, with_layout_constraint
    >>> with_layout_constraint(jnp.ones((2, 1)), Layout((0, 1))).shape
    (2, 1)
    """
    leaves, treedef = tree.flatten(x)
    for leaf, layout in zip(leaves, tree.broadcast_prefix(layouts, x), strict=True):
        check_layout(layout, "with_layout_constraint")
        if isinstance(layout, Layout) and len(layout.major_to_minor) != leaf.ndim:
            raise LayoutError(f"with_layout_constraint: {layout} does not fit an array of shape {leaf.shape}")
    return tree.unflatten(treedef, leaves)
