"""Residuals of a ``vjp`` function that are arguments of the function, unchanged: leaving them out, and restoring them.

The list ``args_res`` has an entry for each argument, a tree like the argument, whose leaves are the residuals that are
arguments. Users may replace them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from pullback.core import tree
from pullback.core.arguments import quote
from pullback.core.array import as_array
from pullback.core.errors import ArgumentError
from pullback.core.linear import LinearProgram
from pullback.core.linear_data import join, split
from pullback.core.types import ShapedArray


class _Mark:
    """Stands for an argument that is not kept. All marks of a class are equal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class NotNeeded(_Mark):
    """Stands for an argument that the backward pass does not need, in ``args_res`` of a ``vjp`` function.

    >>> from pullback.transforms.autodiff.kept_arguments import NotNeeded
    >>> NotNeeded()
    NotNeeded()
    """

    __slots__ = ()


class NotSaveable(_Mark):
    """Stands for an argument that the backward pass needs and ``vjp`` was told not to keep, in ``args_res``.

    >>> from pullback.transforms.autodiff.kept_arguments import NotSaveable
    >>> NotSaveable()
    NotSaveable()
    """

    __slots__ = ()


tree.register_pytree_node(NotNeeded, lambda x: ((), None), lambda aux, children: NotNeeded())
tree.register_pytree_node(NotSaveable, lambda x: ((), None), lambda aux, children: NotSaveable())

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


def kept_arguments(in_tree: Any, residuals: Sequence[Any], origins: Origins, saveable: Any = True) -> list[Any]:
    """Return the arguments as far as they are residuals, with ``NotNeeded()`` in place of the other leaves.

    Args:
      in_tree: the tree of the arguments.
      residuals, origins: the residuals, and which leaves of the arguments they are.
      saveable: which arguments to keep, as :func:`check_saveable` takes it: ``NotSaveable()`` stands for the others.
    """
    leaves: list[Any] = [NotNeeded()] * in_tree.num_leaves
    for x, i in zip(residuals, origins, strict=True):
        if i is not None:
            leaves[i] = x
    return list(_arranged(saveable, in_tree, leaves, "args"))


def check_saveable(saveable: Any, in_tree: Any) -> None:
    """Raise unless ``saveable_args`` is a boolean, or tuples of booleans that fit the arguments.

    A tuple fits any container with as many children.

    Args:
      saveable: the argument of ``vjp``.
      in_tree: the tree of the arguments.

    Raises:
      ArgumentError: it does not fit (a TypeError and a ValueError).
    """
    if saveable is not True:
        _arranged(saveable, in_tree, [0] * in_tree.num_leaves, "args")


def _arranged(saveable: Any, treedef: Any, leaves: Sequence[Any], where: str) -> Any:
    """Build a tree of leaves in which ``NotSaveable()`` stands for those that are needed and not to be kept.

    ``where`` is the expression of the tree in terms of the arguments, for errors.
    """
    if saveable is True:
        return tree.unflatten(treedef, leaves)
    if saveable is False:
        return tree.unflatten(treedef, [x if isinstance(x, NotNeeded) else NotSaveable() for x in leaves])
    if type(saveable) is not tuple:
        raise ArgumentError(
            f"vjp: saveable_args must be a tuple-tree of bools: tuples, for the arguments and containers in them, and "
            f"True or False; got {quote(saveable)} for {where}"
        )
    children = treedef.children()
    if tree.treedef_is_leaf(treedef) and treedef.num_leaves:
        raise ArgumentError(f"vjp: {where} is a leaf, but saveable_args has the tuple {quote(saveable)} for it")
    if len(children) != len(saveable):
        raise ArgumentError(
            f"vjp: saveable_args has {len(saveable)} entries for {where}, which has another number of children, "
            f"{len(children)}"
        )
    parts, first = [], 0
    for i, (flags, child) in enumerate(zip(saveable, children, strict=True)):
        parts.append(_arranged(flags, child, leaves[first : first + child.num_leaves], f"{where}[{i}]"))
        first += child.num_leaves
    return tuple(parts)


def without_arguments(program: LinearProgram, origins: Origins) -> LinearProgram:
    """Return the program without the residuals that are arguments; None stands for each."""
    residuals, structure = split(program)
    return join(structure, [x if i is None else None for x, i in zip(residuals, origins, strict=True)])


def with_arguments(
    program: LinearProgram, origins: Origins, kept: Sequence[Any], in_tree: Any, in_avals: Sequence[Any], name: str
) -> LinearProgram:
    """Return a program that :func:`without_arguments` made with the arguments put back.

    Args:
      program: the program.
      origins: for each residual, the leaf of the arguments that it is, or None.
      kept: the list ``args_res``. An entry is a tree like the argument; in it, a tuple may stand for another container.
      in_tree, in_avals: the tree and the types of the arguments.
      name: the name of the function, for errors.

    Raises:
      ArgumentError: an argument that is needed is not there, or has another type or tree (a TypeError and ValueError).
    """
    leaves = _leaves_of(tuple(kept), in_tree, "args_res", name)
    needed = sorted({i for i in origins if i is not None})
    absent = [i for i in needed if _is_absent(leaves[i])]
    paths = [path for path, _ in tree.leaves_with_path(tree.unflatten(in_tree, range(in_tree.num_leaves)))]
    if absent:
        raise ArgumentError(
            f"the vjp function of {name} needs arguments that were not-saveable, or have been removed from args_res: "
            f"{', '.join(f'args{tree.keystr(paths[i])}' for i in absent)}. Assign them before the call: "
            "f_vjp.args_res[i] = argument."
        )
    for i in needed:
        leaves[i], aval = as_array(leaves[i]), in_avals[i]
        if isinstance(aval, ShapedArray) and (leaves[i].shape, leaves[i].dtype) != (aval.shape, aval.dtype):
            raise ArgumentError(
                f"the vjp function of {name}: args_res{tree.keystr(paths[i])} must be {aval}, but is {leaves[i].aval}"
            )
    residuals, structure = split(program)
    return join(structure, [x if i is None else leaves[i] for x, i in zip(residuals, origins, strict=True)])


def _is_absent(x: Any) -> bool:
    return x is None or isinstance(x, (NotNeeded, NotSaveable))


def _leaves_of(entry: Any, treedef: Any, where: str, name: str) -> list[Any]:
    """Return the leaves of a tree that users may have put together, with None for those of an absent subtree."""
    if _is_absent(entry):
        return [None] * treedef.num_leaves
    children = treedef.children()
    if not children:
        return [entry] * treedef.num_leaves
    parts: Sequence[Any] = ()
    if type(entry) in (tuple, list):
        parts = entry
    elif tree.structure(entry, lambda x: x is not entry).node_data() == treedef.node_data():
        parts = tree.leaves(entry, lambda x: x is not entry)
    if len(parts) != len(children):
        raise ArgumentError(
            f"the vjp function of {name}: {where} must be a tree like the argument, {treedef}, but is {quote(entry)}"
        )
    pairs = enumerate(zip(parts, children, strict=True))
    return [x for i, (part, child) in pairs for x in _leaves_of(part, child, f"{where}[{i}]", name)]
