"""Trees, under the short names of ``jax.tree``."""

from typing import Any

from pullback.core.faces import face
from pullback.core.tree import (
    all,
    broadcast,
    flatten,
    flatten_with_path,
    leaves,
    leaves_with_path,
    map_with_path,
    reduce,
    reduce_associative,
    structure,
    transpose,
    unflatten,
)
from pullback.core.tree import tree_map as map

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
face(globals())


def static(**options: Any) -> Any:
    """A field of a dataclass that is part of the structure of its trees; see ``register_dataclass``.

    Args:
      options: what :func:`dataclasses.field` takes.

    >>> import dataclasses
    >>> from pullback.tree_util import register_dataclass
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     activation: str = static(default="tanh")
    >>> leaves(Layer(2.0))
    [2.0]
    """
    import dataclasses

    metadata = {**(options.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **options)
