"""``jax._src.tree_util``: the names of ``jax.tree_util``, and the registry of node classes."""

from collections.abc import Iterator, Mapping
from typing import Any

from pullback.core import tree_nodes
from pullback.core.faces import face as _face
from pullback.core.tree import flatten_one_level as flatten_one_level  # Orbax: whether a node is empty


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

_face(globals(), others=("pullback.tree_util",))
