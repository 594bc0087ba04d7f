"""Flattening of arguments by the compiler's runtime, which is several times as fast as ``optree``.

The leaves are the same, in the same order. ``optree`` flattens trees that the runtime refuses, such as dictionaries
with keys that cannot be sorted.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from pullback.backends.compiler.backend import backend
from pullback.core import tree, tree_nodes
from pullback.core.runtime import runtime

_registry: Any = None


def registry() -> Any:
    """The runtime's registry of pytree nodes, with the classes that :mod:`pullback.core.tree_nodes` knows."""
    global _registry
    if _registry is None:
        made = backend().tree_registry()
        made.register_node(OrderedDict, lambda x: (tuple(x.values()), tuple(x)), lambda k, v: OrderedDict(zip(k, v)))
        made.register_node(deque, lambda x: (tuple(x), x.maxlen), lambda maxlen, v: deque(v, maxlen))
        made.register_node(defaultdict, _flatten_defaultdict, _unflatten_defaultdict)
        for cls, node in list(tree_nodes._nodes.items()):
            _register(made, cls, node)
        runtime.node_registered.append(lambda cls, node: _register(made, cls, node))
        _registry = made
    return _registry


def _flatten_defaultdict(x: Any) -> Any:
    keys = sorted(x)
    return tuple(x[k] for k in keys), (x.default_factory, tuple(keys))


def _unflatten_defaultdict(aux: Any, values: Any) -> Any:
    return defaultdict(aux[0], zip(aux[1], values))


def _register(made: Any, cls: type, node: Any) -> None:
    made.register_node(cls, lambda x: node.flatten(x)[:2], node.unflatten)


def flattener() -> Callable[[Any], tuple[list[Any], Any]]:
    """The runtime's function ``flatten(tree) -> (leaves, treedef)``."""
    return registry().flatten  # type: ignore[no-any-return]


def unflattener(treedef: Any) -> Callable[[Any], Any]:
    """Find the fastest function that builds a tree of structure ``treedef`` from a list of its leaves."""
    general = treedef.unflatten
    count = treedef.num_leaves
    try:
        example = tree.unflatten(treedef, range(count))
        leaves, quick = registry().flatten(example)
        if leaves == list(range(count)) and tree.structure(quick.unflatten(leaves)) == treedef:
            return quick.unflatten  # type: ignore[no-any-return]
    except Exception:  # a user's class that does not accept numbers as children
        pass
    return general  # type: ignore[no-any-return]
