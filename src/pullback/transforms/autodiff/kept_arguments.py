"""Which residuals of a ``vjp`` function are arguments of the function, unchanged."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from pullback.core import tree


class NotNeeded:
    """Stands for an argument that the backward pass does not need, in ``args_res`` of a ``vjp`` function.

    >>> from pullback.transforms.autodiff.kept_arguments import NotNeeded
    >>> NotNeeded()
    NotNeeded()
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "NotNeeded()"

    def __eq__(self, other: object) -> bool:
        return type(other) is NotNeeded

    def __hash__(self) -> int:
        return hash(NotNeeded)


tree.register_pytree_node(NotNeeded, lambda x: ((), None), lambda aux, children: NotNeeded())

Origins = tuple[int | None, ...]
"""For each residual, the index of the leaf of the arguments that it is; None for a computed value."""


def references_to(leaves: Sequence[Any]) -> list[Any]:
    """Return weak references to the leaves of arguments, so that a derivative keeps none that it does not need."""
    return [weakref.ref(x) if hasattr(x, "__weakref__") else None for x in leaves]


def origins_of(residuals: Sequence[Any], references: Sequence[Any]) -> Origins:
    """Return for each residual which leaf of the arguments it is.

    Args:
      residuals: the residuals.
      references: the result of :func:`references_to` for the leaves of the arguments.
    """
    leaves = [None if r is None else r() for r in references]
    found = {id(x): i for i, x in enumerate(leaves) if x is not None}
    return tuple([found.get(id(x)) for x in residuals])


def kept_arguments(in_tree: Any, residuals: Sequence[Any], origins: Origins) -> list[Any]:
    """Return the arguments as far as they are residuals, and ``NotNeeded()`` instead of the other leaves."""
    leaves: list[Any] = [NotNeeded()] * in_tree.num_leaves
    for x, i in zip(residuals, origins, strict=True):
        if i is not None:
            leaves[i] = x
    return list(tree.unflatten(in_tree, leaves))
