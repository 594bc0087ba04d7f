"""Trees: their structure, and the types of their leaves, as HTML and as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.array import Array
from pullback.core.naming import quoted
from pullback.core.tree_nodes import is_leaf
from pullback.display import pages

MOST_LEAVES = 500
"""The most leaves that are displayed; a line says how many more there are."""
_OPEN = 40
"""A container of at most so many children is displayed open."""

Describe = Callable[[Any], tuple[str, Sequence[tuple[str, Any]] | None]]
"""Returns the text of a node, and its children with their keys; None for a leaf."""


def structure_html(treedef: Any) -> str:
    """Return the structure of a tree as HTML: nested containers that can be folded."""
    return pages.line(_counted(treedef.num_leaves)) + _node(treedef, "", _of_structure, [MOST_LEAVES])


def html(value: Any) -> str:
    """Return a tree as HTML: nested containers that can be folded, with the types of the leaves."""
    leaves = tree.leaves(value)
    total = sum(x.size * x.dtype.itemsize for x in leaves if isinstance(x, (Array, np.ndarray)))
    return pages.line(f"{_counted(len(leaves))}, {pages.amount(total)}") + _node(value, "", _of_tree, [MOST_LEAVES])


def text(value: Any) -> str:
    """Return a tree as text: a line a leaf, with the leaf's path and type."""
    found = tree.leaves_with_path(value)
    lines = [f"{tree.keystr(path) or 'the tree'}: {leaf_text(leaf)}" for path, leaf in found[:MOST_LEAVES]]
    if len(found) > MOST_LEAVES:
        lines.append(f"{len(found) - MOST_LEAVES:,} more leaves")
    return "\n".join(lines) or "a tree without leaves"


def leaf_text(leaf: Any) -> str:
    """Return the type of a leaf that is an array, and a short text of any other."""
    if isinstance(leaf, Array):
        return format(leaf.aval)
    if isinstance(leaf, np.ndarray):
        return f"NumPy's {leaf.dtype}{list(leaf.shape)}"
    return quoted(leaf)


def _counted(count: int) -> str:
    return "1 leaf" if count == 1 else f"{count:,} leaves"


def _of_tree(value: Any) -> tuple[str, Sequence[tuple[str, Any]] | None]:
    if is_leaf(value):
        return leaf_text(value), None
    children, _ = tree.flatten_one_level_with_keys(value)
    return _name_of(type(value)), [(tree.keystr((key,)), child) for key, child in children]


def _of_structure(treedef: Any) -> tuple[str, Sequence[tuple[str, Any]] | None]:
    if treedef.is_leaf():
        return "*", None
    return _name_of(treedef.type), [(f"[{e!r}]", child) for e, child in zip(treedef.entries(), treedef.children())]


def _name_of(kind: Any) -> str:
    return "None" if kind in (None, type(None)) else str(kind.__name__)


def _node(value: Any, key: str, describe: Describe, left: list[int]) -> str:
    """Return a node or leaf and all below it; ``left`` has the number of leaves that may still be displayed."""
    written, children = describe(value)
    head = f"{pages.escaped(key)} " if key else ""
    if not children:
        left[0] -= 1
        return pages.line(head, pages.soft(written))
    inside = []
    for i, (name, child) in enumerate(children):
        if left[0] <= 0:
            inside.append(pages.line(pages.soft(f"{len(children) - i:,} more")))
            break
        inside.append(_node(child, name, describe, left))
    return pages.fold(f"{head}{pages.soft(written)}", "".join(inside), len(children) <= _OPEN)
