# long: because there are many functions, each with its docstring
"""Trees: nested containers of arrays, flattened to their leaves and built up again.

Tuples, lists, dictionaries (in the order of their keys), named tuples, ``OrderedDict``, ``defaultdict``,
``deque`` and None (an empty tree) are nodes, and so are the classes registered with
:mod:`pullback.core.tree_nodes`; all else is a leaf. Dictionaries are also built in the order of their keys. Trees of
one leaf, flat tuples and lists, and flat dictionaries with strings as keys are handled here, all others by ``optree``.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pullback.core import tree_nodes as nodes
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, quote, require_function, typed
from pullback.core.errors import ArgumentError, TruthValueError
from pullback.core.faces import face
from pullback.core.source import hide_internal_frames
from pullback.core.tree_nodes import NAMESPACE, keyed_children, native_flatten, optree
from pullback.core.tree_nodes import DictKey as DictKey
from pullback.core.tree_nodes import FlattenedIndexKey as FlattenedIndexKey
from pullback.core.tree_nodes import GetAttrKey as GetAttrKey
from pullback.core.tree_nodes import KeyEntry as KeyEntry
from pullback.core.tree_nodes import KeyPath as KeyPath
from pullback.core.tree_nodes import SequenceKey as SequenceKey
from pullback.core.tree_nodes import flatten_one_level as flatten_one_level
from pullback.core.tree_nodes import flatten_one_level_with_keys as flatten_one_level_with_keys
from pullback.core.tree_nodes import is_tree_node as is_tree_node
from pullback.core.tree_nodes import keystr as keystr
from pullback.core.tree_nodes import leaf_types as leaf_types
from pullback.core.tree_nodes import register_dataclass as register_dataclass
from pullback.core.tree_nodes import register_leaf_type as register_leaf_type
from pullback.core.tree_nodes import register_pytree_node as register_pytree_node
from pullback.core.tree_nodes import register_pytree_node_class as register_pytree_node_class
from pullback.core.tree_nodes import register_pytree_with_keys as register_pytree_with_keys
from pullback.core.tree_nodes import register_pytree_with_keys_class as register_pytree_with_keys_class
from pullback.core.tree_nodes import register_static as register_static

if TYPE_CHECKING:
    from pullback.core.structures import PyTreeDef as PyTreeDef

IsLeaf = Callable[[Any], bool] | None
_MISSING: Any = object()


# Flattening and unflattening


class _Treedefs(dict[int, Any]):
    """A dictionary that computes a missing value: ``self[length]`` is the tree structure of ``example(length)``."""

    def __init__(self, example: Callable[[int], Any]) -> None:
        self.example = example

    def __missing__(self, length: int) -> Any:
        treedef = self[length] = _public(native_flatten()(self.example(length), None, False, NAMESPACE)[1])
        return treedef


_leaf_treedef = _Treedefs(lambda _: 0)
_tuple_treedefs = _Treedefs(lambda length: (0,) * length)
_list_treedefs = _Treedefs(lambda length: [0] * length)
_call_treedefs = _Treedefs(lambda length: ((0,) * length, {}))


@functools.lru_cache(1024)
def _of_names(names: tuple[str, ...]) -> tuple[list[str], PyTreeDef]:
    """Return the keys ``names`` of a dictionary of leaves in the order of flattening, and its structure."""
    keys, treedef = native_flatten()(dict(zip(names, names)), None, False, NAMESPACE)
    return keys, _public(_sorted(treedef))


def flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[PyTree], PyTreeDef]:
    """Return the leaves of a tree and its structure.

    Args:
      tree: any object.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf, and not to flatten it.

    Returns:
      The list of the leaves from left to right, and the structure, which is hashable.

    Raises:
      ArgumentError: ``is_leaf`` is not a function (a TypeError and a ValueError).

    >>> from pullback import tree
    >>> tree.flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    found, treedef = _flatten(tree, is_leaf)
    return found, _public(treedef)


def _flatten(tree: PyTree, is_leaf: IsLeaf) -> tuple[list[PyTree], Any]:
    """Return the leaves of a tree and its structure, which may be one of optree's."""
    if is_leaf is None:
        kind = type(tree)
        if kind in leaf_types:
            return [tree], _leaf_treedef[1]
        if kind is tuple or kind is list:
            for child in tree:
                if type(child) not in leaf_types:
                    break
            else:
                treedefs = _tuple_treedefs if kind is tuple else _list_treedefs
                return list(tree), treedefs[len(tree)]
        elif kind is dict:
            for key, child in tree.items():
                if type(key) is not str or type(child) not in leaf_types:
                    break
            else:
                keys, treedef = _of_names(tuple(tree))
                return [tree[key] for key in keys], treedef
    if is_leaf is not None:
        require_function("tree.flatten", "is_leaf", is_leaf)
    try:
        flat, treedef = native_flatten()(tree, is_leaf, False, NAMESPACE)
    except RuntimeError as error:
        if is_leaf is None or "cast" not in str(error):
            raise
        decide = is_leaf  # which returned no bool
        flat, treedef = native_flatten()(tree, lambda node: bool(decide(node)), False, NAMESPACE)
    return flat, _sorted(treedef)


def flatten_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[PyTree], PyTreeDef]:
    """Return the leaves and the structure of ``(args, kwargs)``, quickly if all arguments are positional and leaves."""
    if not kwargs:
        for child in args:
            if type(child) not in leaf_types:
                break
        else:
            return list(args), _call_treedefs[len(args)]
    return _flatten((args, kwargs), None)


_known: dict[PyTreeDef, PyTreeDef] = {}
_without_dictionaries: set[int] = set()
_MOST_KNOWN = 1024


def _sorted(treedef: PyTreeDef) -> PyTreeDef:
    """Return a structure equal to ``treedef`` that builds dictionaries with sorted keys.

    optree rebuilds dictionaries with the keys in their original order. Compiled functions return dictionaries with
    sorted keys, and eager results should have the same order.

    Sorting is slow, three times as slow as flattening the tree, so results are cached. Structures with other keys than
    strings are not cached, because keys of other types may be equal without being identical. Structures with
    dictionaries and data of users' classes are not cached, because the cache would keep the data alive.
    """
    try:
        number = hash(treedef)
    except TypeError:  # data of a user's class
        return _in_order(treedef.__getstate__())
    if number in _without_dictionaries:
        return treedef
    if len(_known) + len(_without_dictionaries) >= _MOST_KNOWN:
        _known.clear()
        _without_dictionaries.clear()
    state: Any = treedef.__getstate__()
    nodes = state[0]
    kinds = {type(key) for node in nodes if node[7] is not None for key in node[7]}
    if not kinds:
        _without_dictionaries.add(number)
        return treedef
    if kinds != {str} or any(node[4] is not None for node in nodes):
        return _in_order(state)
    made = _known.get(treedef)
    if made is None:
        made = _in_order(state)
        _known[made] = made
    return made


@functools.cache
def _definition() -> type[PyTreeDef]:
    """The class of structures, which is made when ``optree`` is imported."""
    from pullback.core.structures import PyTreeDef

    return PyTreeDef


def _public(treedef: Any) -> PyTreeDef:
    """Return a structure as users see it: of the class :class:`PyTreeDef`, if it is one of optree's."""
    cls = _definition()
    return treedef if type(treedef) is cls else cls.of(treedef)


def _in_order(state: Any) -> PyTreeDef:
    """Make a structure of optree's state, with the keys of each dictionary in order."""
    nodes, *rest = state
    ordered = list(nodes)
    for i, node in enumerate(nodes):
        if node[7] is not None:
            data = node[2]
            keys = data[1] if type(data) is tuple else data  # a defaultdict's data are its factory and its keys
            ordered[i] = (*node[:7], type(node[7])(dict.fromkeys(keys)))
    return _definition().of_nodes(ordered, rest)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """Return the tree that has this structure and these leaves: the inverse of :func:`flatten`.

    Args:
      treedef: the structure, as :func:`flatten` returns it.
      leaves: the leaves, from left to right.

    Returns:
      A tree.

    Raises:
      ValueError: there are too few or too many leaves.

    >>> from pullback import tree
    >>> tree.unflatten(tree.structure({"b": 1, "a": (2, None)}), ["x", "y"])
    {'a': ('x', None), 'b': 'y'}
    """
    if type(leaves) is list and _tuple_treedefs.get(len(leaves)) is treedef:  # fast path: arguments that are leaves
        return tuple(leaves)
    try:
        return treedef.unflatten(leaves)
    except (AttributeError, TypeError) as error:
        _require_treedef("tree.unflatten: treedef", treedef)
        if not hasattr(leaves, "__iter__"):
            raise ArgumentError(f"tree.unflatten: leaves must be a sequence, got {quote(leaves)}") from error
        raise
    except ValueError as error:
        if isinstance(leaves, (list, tuple)) and len(leaves) != treedef.num_leaves:
            raise ArgumentError(
                f"expected {treedef.num_leaves} leaves for the tree {treedef}, got {len(leaves)}"
            ) from error
        raise


def leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[PyTree]:
    """Return the leaves of a tree, from left to right; ``is_leaf`` as for :func:`flatten`.

    Args:
      tree: any object.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.

    Returns:
      A list.

    Raises:
      ArgumentError: ``is_leaf`` is not a function (a TypeError and a ValueError).

    >>> from pullback import tree
    >>> tree.leaves([1, (2, None), {"a": 3}])
    [1, 2, 3]
    """
    return _flatten(tree, is_leaf)[0]


def structure(tree: PyTree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Return the structure of a tree; ``is_leaf`` as for :func:`flatten`.

    Args:
      tree: any object.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.

    Returns:
      The structure, which is hashable.

    Raises:
      ArgumentError: ``is_leaf`` is not a function (a TypeError and a ValueError).

    >>> from pullback import tree
    >>> tree.structure((1, [2])) == tree.structure((3, [4]))
    True
    """
    return flatten(tree, is_leaf)[1]


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether all elements of ``iterable`` are leaves; ``is_leaf`` as for :func:`flatten`.

    None is not a leaf: it is an empty tree.

    Args:
      iterable: the elements.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.

    Returns:
      A bool of Python's.

    >>> from pullback.tree_util import all_leaves
    >>> all_leaves([1, 2]), all_leaves([1, (2,)]), all_leaves([None])
    (True, False, False)
    """
    return builtins.all(_stops(element, is_leaf) for element in iterable)


def _stops(node: Any, is_leaf: IsLeaf) -> bool:
    return nodes.is_leaf(node) or (is_leaf is not None and bool(is_leaf(node)))


# Working on trees


def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to each leaf of a tree, or to corresponding leaves of several trees; return the resulting tree.

    Args:
      f: takes a leaf of ``tree``, and the subtree at the same position in each tree of ``rest``.
      tree: the tree whose structure the result has.
      rest: trees of the same structure, or with subtrees where ``tree`` has leaves.
      is_leaf: ``is_leaf(node)``: whether to treat a node of ``tree`` as a leaf.

    Returns:
      A tree of the structure of ``tree``.

    Raises:
      ValueError: the structures disagree; the message says where.

    >>> from pullback import tree
    >>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    if not callable(f):
        require_function("tree.map", "f", f)
    try:
        if is_leaf is None and type(tree) in leaf_types:
            return f(tree, *rest)
        flat, treedef = _flatten(tree, is_leaf)
        if not rest:
            return treedef.unflatten([f(leaf) for leaf in flat])
        columns = [_flatten_up_to(treedef, tree, other, is_leaf, "the trees disagree") for other in rest]
        return treedef.unflatten([f(*row) for row in zip(flat, *columns)])
    except Exception as error:
        hide_internal_frames(error)
        raise


def reduce(
    function: Callable[[Any, Any], Any], tree: PyTree, initializer: PyTree = _MISSING, is_leaf: IsLeaf = None
) -> PyTree:
    """Combine the leaves of a tree, from left to right, and return the combination.

    Args:
      function: takes the combination so far and the next leaf; returns the new combination.
      tree: the tree.
      initializer: the initial combination; by default, the first leaf.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.

    Returns:
      The combination of all leaves.

    Raises:
      TypeError: there are no leaves and no initializer.

    >>> from pullback import tree
    >>> tree.reduce(lambda a, b: a + b, {"a": 1, "b": (2, 3)})
    6
    """
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: PyTree, *, identity: PyTree = _MISSING, is_leaf: IsLeaf = None
) -> PyTree:
    """Combine the leaves of a tree by an associative operation, in balanced order: ``a, b, c, d`` -> ``(ab)(cd)``.

    Args:
      operation: takes two values and returns their combination.
      tree: a tree.
      identity: the result for a tree without leaves.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.

    Returns:
      The combination of all leaves.

    Raises:
      TypeError: there are no leaves and no identity.

    >>> from pullback import tree
    >>> tree.reduce_associative(lambda a, b: f"({a}{b})", ["a", "b", "c", "d"])
    '((ab)(cd))'
    """
    require_function("tree.reduce_associative", "operation", operation)
    flat = leaves(tree, is_leaf)
    if not flat:
        if identity is _MISSING:
            raise ArgumentError("to reduce a tree without leaves, pass an identity")
        return identity

    def combine(part: list[Any]) -> Any:
        middle = len(part) // 2
        return operation(combine(part[:middle]), combine(part[middle:])) if middle else part[0]

    return combine(flat)


def all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves of a tree are true; ``is_leaf`` as for :func:`flatten`.

    Args:
      tree: a tree of booleans, numbers or arrays of one element.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.

    Returns:
      A bool of Python's.

    Raises:
      TruthValueError: a leaf is an array of several elements, or of none (a ValueError).

    >>> from pullback import tree
    >>> tree.all({"a": True, "b": (1, 0)})
    False
    """
    try:
        return builtins.all(leaves(tree, is_leaf))
    except ValueError as error:
        if isinstance(error, TruthValueError):
            raise
        raise TruthValueError(f"tree.all: a leaf has no truth value: {error}") from None


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree) -> PyTree:
    """Turn a tree of trees inside out, as a list of dictionaries into a dictionary of lists.

    Args:
      outer_treedef: the outer structure: ``pytree_to_transpose`` has subtrees at its leaves.
      inner_treedef: the structure of each of these subtrees; by default, that of the first.
      pytree_to_transpose: the tree.

    Returns:
      A tree of structure ``inner_treedef``, with trees of structure ``outer_treedef`` at its leaves.

    Raises:
      ValueError: the tree does not have these structures.

    >>> from pullback import tree
    >>> tree.transpose(tree.structure([0, 0]), tree.structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    _require_treedef("tree.transpose: outer_treedef", outer_treedef)
    if inner_treedef is not None:
        _require_treedef("tree.transpose: inner_treedef", inner_treedef)
    rows = []
    for subtree in _outer_leaves(outer_treedef, inner_treedef, pytree_to_transpose):
        row, treedef = flatten(subtree)
        if inner_treedef is None:
            inner_treedef = treedef
        if treedef != inner_treedef:
            raise ArgumentError(f"expected subtrees of the inner structure {inner_treedef}, got {treedef}")
        rows.append(row)
    if inner_treedef is None:
        raise ArgumentError(f"pass the inner structure, because the outer one, {outer_treedef}, has no leaves")
    columns = [[row[i] for row in rows] for i in range(inner_treedef.num_leaves)]
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def _outer_leaves(outer: PyTreeDef, inner: PyTreeDef | None, given: PyTree) -> list[Any]:
    """Return the subtrees of a tree at the leaves of the structure ``outer``.

    A node of a registered class may hold the structure of its children as auxiliary data, which then differ from those
    in ``outer``. The leaves of such a tree are divided by their number.
    """
    outline = unflatten(outer, [0] * outer.num_leaves)
    try:
        return _flatten_up_to(outer, outline, given, None, "the tree lacks the outer structure")
    except ArgumentError:
        row, treedef = flatten(given)
        same = treedef.type is outer.type and not isinstance(given, (tuple, list, dict))
        if inner is None or not same or len(row) != outer.num_leaves * inner.num_leaves:
            raise
        count = inner.num_leaves
        return [unflatten(inner, row[i : i + count]) for i in range(0, len(row), count)]


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a prefix of a tree, each repeated for all the leaves of the tree at its position.

    Args:
      prefix_tree: a prefix of ``full_tree``: it has leaves where ``full_tree`` may have subtrees.
      full_tree: the tree.
      is_leaf: ``is_leaf(node)``: whether to treat a node of ``prefix_tree`` as a leaf.

    Returns:
      A list with an entry for each leaf of ``full_tree``.

    Raises:
      ValueError: ``prefix_tree`` is no prefix; the message says where the trees first disagree, and how.

    >>> from pullback.core.tree import broadcast_prefix
    >>> broadcast_prefix({"a": 0, "b": 1}, {"a": (10, 20), "b": 30})
    [0, 0, 1]
    """
    if type(prefix_tree) in leaf_types:
        return [prefix_tree] * _flatten(full_tree, None)[1].num_leaves
    flat, treedef = flatten(prefix_tree, is_leaf)
    message = "the tree is not a prefix of the values"
    broadcast: list[Any] = []
    for leaf, subtree in zip(flat, _flatten_up_to(treedef, prefix_tree, full_tree, is_leaf, message)):
        count = 1 if type(subtree) in leaf_types else _flatten(subtree, None)[1].num_leaves
        broadcast.extend([leaf] * count)
    return broadcast


def broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return a tree like ``full_tree``, with each leaf replaced by the leaf of a prefix tree at its position.

    Args:
      prefix_tree: a prefix of ``full_tree``: it has leaves where ``full_tree`` may have subtrees.
      full_tree: a tree.
      is_leaf: ``is_leaf(node)``: whether to treat a node of ``prefix_tree`` as a leaf.

    Returns:
      A tree of the structure of ``full_tree``.

    Raises:
      ValueError: ``prefix_tree`` is no prefix; the message says where the trees first disagree, and how.

    >>> from pullback import tree
    >>> tree.broadcast({"a": 0, "b": 1}, {"a": (10, 20), "b": 30})
    {'a': (0, 0), 'b': 1}
    """
    return _flatten(full_tree, None)[1].unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def _flatten_up_to(treedef: PyTreeDef, tree: Any, other: Any, is_leaf: IsLeaf, message: str) -> list[Any]:
    """Return the subtrees of ``other`` at the positions of the leaves of ``tree``.

    Args:
      treedef: the structure of ``tree``.
      tree: a tree that should be a prefix of ``other``.
      other: the other tree.
      is_leaf: ``is_leaf(node)``: whether to treat a node of ``tree`` as a leaf.
      message: the beginning of the error if ``tree`` is no prefix; the error then says where the trees disagree.
    """
    try:
        return treedef.flatten_up_to(other)  # type: ignore[no-any-return]
    except ValueError:
        where = _first_disagreement(tree, other, is_leaf, ())
        if where is None:
            raise
        path, expected, got = where
        location = f"at {keystr(path)}" if path else "at the root"
        raise ArgumentError(f"{message}: {location}, expected {expected}, got {got}") from None


def _first_disagreement(tree: Any, other: Any, is_leaf: IsLeaf, path: KeyPath) -> tuple[KeyPath, str, str] | None:
    """Find the first node of ``tree`` that has no matching node in ``other``.

    Args:
      tree: a tree that should be a prefix of ``other``.
      other: the other tree.
      is_leaf: ``is_leaf(node)``: whether to treat a node of ``tree`` as a leaf.
      path: the path of both trees within the trees that are compared.

    Returns:
      The path of the node, and descriptions of the nodes of ``tree`` and of ``other`` there; None if all nodes match.
    """
    if _stops(tree, is_leaf):
        return None
    if nodes.is_leaf(other) or _outline(tree) != _outline(other):
        return path, _describe(tree), _describe(other)
    for i, (key, child) in enumerate(keyed_children(tree)):
        by_key = isinstance(other, dict) and isinstance(key, DictKey)
        counterpart = other[key.key] if by_key else keyed_children(other)[i][1]
        found = _first_disagreement(child, counterpart, is_leaf, (*path, key))
        if found is not None:
            return found
    return None


def _outline(node: Any) -> tuple[Any, ...]:
    """Return a key of a node; the keys of two nodes are equal if the nodes match.

    The key has the node's type, the number of its children or the keys of a dictionary, and the auxiliary data of a
    registered class.
    """
    if isinstance(node, dict) and not nodes.is_registered(type(node)):
        return dict, frozenset(node)
    children, aux = flatten_one_level(node)
    return type(node), len(list(children)), aux if nodes.is_registered(type(node)) else None


def _describe(node: Any) -> str:
    if node is None:
        return "None"
    kind = type(node).__name__
    if nodes.is_leaf(node):
        return f"a leaf of type {kind}"
    children, aux = flatten_one_level(node)
    if nodes.is_registered(type(node)):
        return f"a {kind} with {len(list(children))} children and auxiliary data {aux!r}"
    if isinstance(node, dict):
        return f"a {kind} with the keys {list(node)}"
    return f"a {kind} of length {len(list(children))}"


# Paths


def flatten_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, PyTree]], PyTreeDef]:
    """Return a list of pairs (path, leaf) for the leaves of a tree, and the structure of the tree.

    Args:
      tree: any object.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.
      is_leaf_takes_path: whether to call ``is_leaf(path, node)`` instead.

    Returns:
      A pair: the list of pairs, and the structure, which is hashable.

    Raises:
      ArgumentError: ``is_leaf`` is not a function, or ``is_leaf_takes_path`` is not a boolean (a TypeError and a
        ValueError).

    >>> from pullback import tree
    >>> tree.flatten_with_path({"a": (1, 2)})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1), ((DictKey(key='a'), SequenceKey(idx=1)), 2)]
    """
    is_leaf_takes_path = flag("flatten_with_path", "is_leaf_takes_path", is_leaf_takes_path)
    if is_leaf is not None:
        require_function("flatten_with_path", "is_leaf", is_leaf)
    found: list[tuple[KeyPath, Any]] = []
    decisions: list[bool] = []

    def visit(path: KeyPath, node: Any) -> None:
        stop = is_leaf is not None and bool(is_leaf(path, node) if is_leaf_takes_path else is_leaf(node))
        decisions.append(stop)
        if stop or nodes.is_leaf(node):
            found.append((path, node))
        else:
            for key, child in keyed_children(node):
                visit((*path, key), child)

    visit((), tree)
    if is_leaf is None:
        return found, structure(tree)
    # optree calls is_leaf in the order of the traversal, so the answers can be replayed.
    answers: Iterator[bool] = iter(decisions)
    return found, structure(tree, lambda _: next(answers))


def leaves_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, PyTree]]:
    """Return a list of pairs (path, leaf) for the leaves of a tree.

    Args:
      tree: a tree.
      is_leaf: ``is_leaf(node)``: whether to treat a node as a leaf.
      is_leaf_takes_path: whether to call ``is_leaf(path, node)`` instead.

    Returns:
      A list of pairs.

    Raises:
      ArgumentError: ``is_leaf`` is not a function, or ``is_leaf_takes_path`` is not a boolean (a TypeError and a
        ValueError).

    >>> from pullback import tree
    >>> tree.leaves_with_path([5])
    [((SequenceKey(idx=0),), 5)]
    """
    is_leaf_takes_path = flag("leaves_with_path", "is_leaf_takes_path", is_leaf_takes_path)
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: PyTree,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Apply a function to each path and leaf of a tree, or of several trees; return the tree of the results.

    Args:
      f: takes a path, the leaf of ``tree`` there, and the subtree there of each tree of ``rest``.
      tree: the tree whose structure the result has.
      *rest: trees of the same structure, or with subtrees where ``tree`` has leaves.
      is_leaf: ``is_leaf(node)``: whether to treat a node of ``tree`` as a leaf.
      is_leaf_takes_path: whether to call ``is_leaf(path, node)`` instead.

    Returns:
      A tree of the structure of ``tree``.

    Raises:
      ValueError: the structures disagree; the message says where.

    >>> from pullback import tree
    >>> from pullback.tree_util import keystr
    >>> tree.map_with_path(lambda path, x: keystr(path) + "=" + str(x), {"a": (1, 2)})
    {'a': ("['a'][0]=1", "['a'][1]=2")}
    """
    require_function("map_with_path", "f", f)
    found, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    outline = treedef.unflatten([0] * len(found))
    columns = [_flatten_up_to(treedef, outline, other, None, "the trees disagree") for other in rest]
    return treedef.unflatten([f(*pair, *row) for pair, *row in zip(found, *columns)])


# Structures


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure has a single node: a leaf or an empty container.

    Args:
      treedef: the structure.

    Returns:
      A bool of Python's.

    Raises:
      ArgumentError: ``treedef`` is not the structure of a tree (a TypeError and a ValueError).

    >>> from pullback import tree
    >>> from pullback.tree_util import treedef_is_leaf
    >>> treedef_is_leaf(tree.structure(1)), treedef_is_leaf(tree.structure([1]))
    (True, False)
    """
    _require_treedef("treedef_is_leaf", treedef)
    return bool(treedef.num_nodes == 1)


def _require_treedef(what: str, treedef: Any) -> None:
    """Raise unless an argument is the structure of a tree."""
    if not hasattr(treedef, "num_leaves"):
        raise ArgumentError(f"{what} must be the structure of a tree, got {typed(treedef)}")


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of a tree's root; ``treedef`` is the structure of the tree.

    Args:
      treedef: the structure.

    Returns:
      A list of structures.

    Raises:
      ArgumentError: ``treedef`` is not the structure of a tree (a TypeError and a ValueError).

    >>> from pullback import tree
    >>> from pullback.tree_util import treedef_children
    >>> len(treedef_children(tree.structure((1, [2, 3]))))
    2
    """
    _require_treedef("treedef_children", treedef)
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees with these structures.

    Args:
      treedefs: the structures.

    Returns:
      The structure.

    Raises:
      ArgumentError: an element is not the structure of a tree (a TypeError and a ValueError).

    >>> from pullback import tree
    >>> from pullback.tree_util import treedef_tuple
    >>> treedef_tuple([tree.structure(1), tree.structure([2])]) == tree.structure((1, [2]))
    True
    """
    found = list(treedefs) if hasattr(treedefs, "__iter__") else [treedefs]
    for one in found:
        _require_treedef("treedef_tuple", one)
    return _definition().of(optree().treespec_tuple(found, namespace=NAMESPACE))


def static(**options: Any) -> Any:
    """Declare a field of a dataclass that is not a child, but belongs to the structure of trees.

    See ``register_dataclass``.

    Args:
      options: keywords of :func:`dataclasses.field`.

    Returns:
      A field, as :func:`dataclasses.field` returns it.

    >>> import dataclasses
    >>> from pullback import tree
    >>> from pullback.tree_util import register_dataclass
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     activation: str = tree.static(default="tanh")
    >>> tree.leaves(Layer(2.0))
    [2.0]
    """
    import dataclasses

    metadata = {"static": True, **(options.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **options)


# Functions as trees


class _Opaque:
    """A wrapper of the function of a :class:`Partial` that is a ``functools.partial`` itself.

    Without the wrapper, Python would merge both partial functions, and the arguments bound in the inner one would
    become children.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and bool(self.function == other.function)

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial[Any]):
    """A ``functools.partial`` that is a tree: the bound arguments are its children, the function is its structure.

    If the function is itself a ``functools.partial``, the arguments bound in it belong to the structure too.

    Args:
      func: the function.
      *args, **keywords: the arguments that are bound: trees of arrays.

    >>> from pullback import tree
    >>> from pullback.tree_util import Partial
    >>> add = Partial(lambda x, y: x + y, 1)
    >>> tree.leaves(add), tree.map(lambda x: 10 * x, add)(2)
    ([1], 12)
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        return super().__new__(cls, _Opaque(func) if isinstance(func, functools.partial) else func, *args, **keywords)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda partial: (
        ((GetAttrKey("args"), partial.args), (GetAttrKey("keywords"), partial.keywords)),
        partial.func,
    ),
)

face(globals(), made={"PyTreeDef": _definition})
