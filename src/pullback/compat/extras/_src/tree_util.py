"""``jax._src.tree_util``: the names of ``jax.tree_util``, and the registry of node classes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pullback.core import tree_nodes
from pullback.core.faces import face as _face
from pullback.core.tree import flatten_one_level as flatten_one_level  # Orbax: whether a node is empty
from pullback.core.tree_nodes import KeyPath, keystr


class _Registry(Mapping[type, Any]):
    """The classes that are nodes of trees: built-in containers and registered classes."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and (cls in tree_nodes._BUILTIN_NODES or tree_nodes.is_registered(cls))

    def __getitem__(self, cls: type) -> Any:
        if cls not in self:
            raise KeyError(cls)
        return tree_nodes._nodes.get(cls)

    def __iter__(self) -> Iterator[type]:
        builtin: list[type] = list(tree_nodes._BUILTIN_NODES)  # type: ignore[arg-type]
        yield from builtin
        yield from tree_nodes._nodes

    def __len__(self) -> int:
        return len(tree_nodes._BUILTIN_NODES) + len(tree_nodes._nodes)


_registry = _Registry()
"""The registry, in which Flax NNX looks up classes."""


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """Return an error for each node at which a tree is not a prefix of another.

    Args:
      prefix_tree: the tree that should be a prefix: it has leaves where ``full_tree`` may have subtrees.
      full_tree: the other tree.
      is_leaf: ``is_leaf(node)``: whether to treat a node of ``prefix_tree`` as a leaf.

    Returns:
      A list of functions. Each takes the name of the prefix, for the message, and returns a ValueError.

    >>> from pullback.compat.extras._src.tree_util import prefix_errors
    >>> prefix_errors((1, 2), ((3, 4), 5))
    []
    >>> print(prefix_errors(((1,), 2), ([3], 5))[0]("in_axes").args[0].splitlines()[1])
        in_axes[0]
    """
    return list(_prefix_errors((), prefix_tree, full_tree, is_leaf))


def _prefix_errors(path: KeyPath, prefix: Any, full: Any, is_leaf: Any) -> Iterator[Callable[[str], ValueError]]:
    """Yield the errors of :func:`prefix_errors` for subtrees at ``path``."""
    if tree_nodes.is_leaf(prefix) or (is_leaf is not None and is_leaf(prefix)):
        return
    if type(prefix) is not type(full):
        types = f"a subtree of type {type(prefix)}, but the full tree a subtree of type {type(full)}"
        yield _error("different types", path, types)
        return
    ours, theirs = dict(_children(prefix)), dict(_children(full))
    if len(ours) != len(theirs):
        counts = f"a {type(prefix)} with {len(ours)} children, but the full tree one with {len(theirs)}"
        if type(prefix) in (list, tuple):
            yield _error(f"different lengths of {type(prefix).__name__}", path, counts)
            return
        keys = sorted(map(keystr, ((key,) for key in ours.keys() ^ theirs.keys())))
        difference = "\n    ".join(["so the symmetric difference on key sets is", *keys]) if keys else ""
        yield _error("different numbers of pytree children", path, counts, difference)
        return
    if ours.keys() != theirs.keys() or _level(prefix) != _level(full):
        data = f"a {type(prefix)} with the metadata {_level(prefix)}, but the full tree one with {_level(full)}"
        yield _error("different pytree metadata", path, data)
        return
    for key, child in ours.items():
        yield from _prefix_errors((*path, key), child, theirs[key], is_leaf)


def _children(node: Any) -> list[tuple[Any, Any]]:
    return tree_nodes.keyed_children(node)


def _level(node: Any) -> Any:
    """The auxiliary data of a registered node; the keys of a dictionary."""
    if tree_nodes.is_registered(type(node)):
        return flatten_one_level(node)[1]
    return sorted(map(repr, node)) if isinstance(node, dict) else None


def _error(what: str, path: KeyPath, nodes: str, more: str = "") -> Callable[[str], ValueError]:
    """Return a function that takes the name of the prefix and returns an error about its node at ``path``."""

    def make(name: str) -> ValueError:
        at = f"{name}{keystr(path) or ' tree root'}"
        lines = [f"pytree structure error: {what} at key path", f"    {at}", f"There the prefix has {nodes}."]
        return ValueError("\n".join([*lines, more] if more else lines))

    return make


_face(globals(), others=("pullback.tree_util",))
