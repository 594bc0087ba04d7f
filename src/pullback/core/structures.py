"""Structures of trees: optree's class, with the methods of JAX's.

A structure is the list of the nodes of a tree, each after its children. Importing this module imports ``optree``, so
that other modules import it on first use.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pullback.core.arguments import quote, require_function
from pullback.core.errors import ArgumentError
from pullback.core.runtime import runtime
from pullback.core.tree_nodes import NAMESPACE, optree
from pullback.core.tree_nodes import _nodes as registered_nodes

if TYPE_CHECKING:
    from optree import PyTreeSpec


class Node(NamedTuple):
    """A node as optree describes it.

    Attributes:
      kind: the number of the kind of node.
      arity: the number of children.
      data: the keys of a dictionary, what a user's class keeps, or the class of a named tuple.
      entries: the names of the children.
      registered: the class, if users registered it.
      leaves, nodes: how many the subtree has.
      original_keys: the keys of a dictionary in the order in which they were inserted.
    """

    kind: int
    arity: int
    data: Any
    entries: Any
    registered: type | None
    leaves: int
    nodes: int
    original_keys: Any

    def is_leaf(self) -> bool:
        """Return whether the node is a leaf."""
        return self.kind == _LEAF

    def is_named_tuple(self) -> bool:
        """Return whether the node is a named tuple that nobody registered."""
        return self.registered is None and self.kind not in _CLASSES

    def type_and_data(self) -> tuple[type, Any]:
        """Return the class of a node that is no leaf, and the rest that is not in its children."""
        if self.registered is not None:
            return self.registered, self.data
        if self.is_named_tuple():
            return self.data, None
        cls = _CLASSES[self.kind]
        if cls is OrderedDict:
            return cls, tuple(self.data)
        if cls is defaultdict:
            return cls, (self.data[0], tuple(self.data[1]))
        return cls, self.data

    def text(self, children: list[str]) -> str:
        """Write the node, whose children are written."""
        cls, data = self.type_and_data()
        if cls is type(None):
            return "None"
        if cls is tuple:
            return f"({', '.join(children)}{',' if self.arity == 1 else ''})"
        if cls is dict:
            children = [f"{key!r}: {child}" for key, child in zip(data, children, strict=True)]
        joined = ", ".join(children)
        if cls is dict or cls is list:
            return f"{{{joined}}}" if cls is dict else f"[{joined}]"
        described = f"namedtuple[{cls.__name__}]" if self.is_named_tuple() else f"{cls.__name__}[{data}]"
        return f"CustomNode({described}, [{joined}])"


def _kind_of(example: Any) -> int:
    """Return the number of the kind of a tree's root."""
    state: Any = optree().tree_structure(example).__getstate__()
    return int(state[0][-1][0])


_LEAF = _kind_of(0)
_REGISTERED = int(optree().PyTreeKind.CUSTOM)
_EXAMPLES: list[Any] = [None, (), [], {}, OrderedDict(), defaultdict(int), deque()]
_CLASSES: dict[int, type] = {_kind_of(x): type(x) for x in _EXAMPLES}


class PyTreeDef(optree().PyTreeSpec):  # type: ignore[misc]
    """The structure of a tree: all of it but the leaves.

    :func:`~pullback.tree.structure` and other functions return structures, which are compared and hashed by containers,
    keys, and what users' classes keep beside their children.

    >>> from pullback import tree
    >>> tree.structure({"a": 1, "b": (2, None)})
    PyTreeDef({'a': *, 'b': (*, None)})
    """

    __slots__ = ()

    @classmethod
    def of_nodes(cls, nodes: Iterable[Any], rest: Iterable[Any]) -> PyTreeDef:
        """Make a structure of nodes and of the rest of optree's state."""
        made: Any = cls.__new__(cls)
        made.__setstate__((tuple(nodes), *rest))
        return made  # type: ignore[no-any-return]

    @classmethod
    def of(cls, treedef: PyTreeSpec) -> PyTreeDef:
        """Return an equal structure to one of optree's: the same object, if it can become an instance of this class.

        To make another one takes half as long as flattening the tree.
        """
        if runtime.as_subclass(treedef, cls):
            return treedef  # type: ignore[return-value]
        state: Any = treedef.__getstate__()
        return cls.of_nodes(state[0], state[1:])

    def nodes(self) -> Iterator[Node]:
        """Return the nodes, each after its children."""
        state: Any = self.__getstate__()
        return (Node(*node) for node in state[0])

    def node_data(self) -> tuple[type, Any] | None:
        """Return the class of the root, and what it keeps beside its children; None for a leaf.

        Returns:
          The keys of a dictionary are a list, those of an ``OrderedDict`` a tuple. Tuples and lists keep None.

        >>> from pullback import tree
        >>> tree.structure({"a": 1, "b": 2}).node_data()
        (<class 'dict'>, ['a', 'b'])
        """
        *_, root = self.nodes()
        return None if root.is_leaf() else root.type_and_data()

    def walk(
        self,
        f_node: Callable[[tuple[Any, ...], Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
        /,
    ) -> Any:
        """Apply functions to the leaves and the nodes of a tree, children first, and return the result for the root.

        Args:
          f_node: ``f_node(results, data)`` takes the results for the children, and what the node keeps beside them as
            :meth:`node_data` returns it; the class of a named tuple.
          f_leaf: takes a leaf; None for the identity.
          leaves: the leaves, from left to right.

        Returns:
          The result for the root.

        Raises:
          ArgumentError: there are too few or too many leaves, or ``f_node`` or ``f_leaf`` is no function (a TypeError
            and a ValueError).

        >>> from pullback import tree
        >>> tree.structure([1, (2, 3)]).walk(lambda results, data: sum(results), lambda x: 10 * x, [1, 2, 3])
        60
        """
        require_function("walk", "f_node", f_node)
        if f_leaf is not None:
            require_function("walk", "f_leaf", f_leaf)
        given = list(leaves)
        if len(given) != self.num_leaves:
            few = "few" if len(given) < self.num_leaves else "many"
            raise ArgumentError(f"walk: too {few} leaves for {self}: expected {self.num_leaves}, got {quote(given)}")
        rest, done = iter(given), list[Any]()
        for node in self.nodes():
            if node.is_leaf():
                leaf = next(rest)
                done.append(leaf if f_leaf is None else f_leaf(leaf))
            else:
                first = len(done) - node.arity
                cls, data = node.type_and_data()
                done[first:] = [f_node(tuple(done[first:]), cls if node.is_named_tuple() else data)]
        return done[0]

    @classmethod
    def from_node_data_and_children(
        cls, registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeSpec]
    ) -> PyTreeDef:
        """Return the structure whose root has certain data and children, without making a tree of it.

        Args:
          registry: is ignored; JAX has it.
          node_data: the class of the root and what it keeps beside its children, as :meth:`node_data` returns them.
          children: the structures of the children.

        Returns:
          The structure.

        Raises:
          ArgumentError: the class is not that of a node (a TypeError and a ValueError).

        >>> from pullback import tree
        >>> type(tree.structure(1)).from_node_data_and_children(None, (dict, ["a"]), [tree.structure([1, 2])])
        PyTreeDef({'a': [*, *]})
        """
        if node_data is None:
            return cls.of(optree().treespec_leaf())
        kind, data = node_data
        specs = list(children)
        if kind in registered_nodes:
            states: list[Any] = [spec.__getstate__() for spec in specs]
            nodes = [node for state in states for node in state[0]]
            leaves = sum(spec.num_leaves for spec in specs)
            root = Node(_REGISTERED, len(specs), data, None, kind, leaves, len(nodes) + 1, None)
            return cls.of_nodes([*nodes, tuple(root)], (False, NAMESPACE))
        if kind is type(None) and not specs:
            return cls.of(optree().treespec_none())
        made: Any = None
        if kind in (tuple, list):
            made = kind(specs)
        elif kind in (dict, OrderedDict):
            made = kind(zip(data, specs, strict=True))
        elif kind is defaultdict:
            made = defaultdict(data[0], zip(data[1], specs, strict=True))
        elif kind is deque:
            made = deque(specs, data)
        elif isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
            made = kind(*specs)  # type: ignore[arg-type]
        else:
            raise ArgumentError(f"{kind!r} with {len(specs)} children is not a node of trees: register the class first")
        return cls.of(optree().treespec_from_collection(made, namespace=NAMESPACE))

    def children(self) -> list[PyTreeDef]:
        """Return the structures of the children of the root.

        >>> from pullback import tree
        >>> tree.structure([1, (2,)]).children()
        [PyTreeDef(*), PyTreeDef((*,))]
        """
        return [PyTreeDef.of(child) for child in super().children()]

    def compose(self, inner: PyTreeSpec, /) -> PyTreeDef:
        """Return the structure with the structure ``inner`` at each leaf.

        >>> from pullback import tree
        >>> tree.structure([1, 2]).compose(tree.structure((3,)))
        PyTreeDef([(*,), (*,)])
        """
        return PyTreeDef.of(super().compose(inner))

    def __repr__(self) -> str:
        done: list[str] = []
        for node in self.nodes():
            first = len(done) - node.arity
            done[first:] = ["*" if node.is_leaf() else node.text(done[first:])]
        return f"PyTreeDef({done[0]})"

    def __str__(self) -> str:
        return repr(self)
