"""Nodes of trees: built-in containers, the registry of classes, and the keys of children.

Trees are flattened by ``optree``, in a namespace of its own. It is imported for the first tree that needs it, since
its import takes longer than a whole small gradient.
"""

from __future__ import annotations

import atexit
import functools
import operator
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from types import BuiltinFunctionType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, quote, typed
from pullback.core.errors import ArgumentError, MissingMethodError
from pullback.core.interrupts import imported, uninterrupted
from pullback.core.locks import lock
from pullback.core.runtime import runtime

_T = TypeVar("_T")
_Class = TypeVar("_Class", bound=type)
NAMESPACE = "pullback"

# Keys of children


class _Key:
    """The base class of the keys in a path. Each subclass has one attribute, such as an index or a name."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    @property
    def _value(self) -> Any:
        return getattr(self, self.__match_args__[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__match_args__[0]}={self._value!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(self._value == getattr(other, self.__match_args__[0]))

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._value))


class SequenceKey(_Key):
    """The key of an element of a sequence: its index.

    Args:
      idx: the index of the element.

    >>> from pullback.tree_util import SequenceKey
    >>> str(SequenceKey(0))
    '[0]'
    """

    __slots__ = __match_args__ = ("idx",)

    def __init__(self, idx: int) -> None:
        self.idx = idx

    def __str__(self) -> str:
        return f"[{self.idx}]"


class DictKey(_Key):
    """The key of a value of a dictionary.

    Args:
      key: the key in the dictionary.

    >>> from pullback.tree_util import DictKey
    >>> str(DictKey("a"))
    "['a']"
    """

    __slots__ = __match_args__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(_Key):
    """The key of an attribute of an object: its name.

    Args:
      name: the name of the attribute.

    >>> from pullback.tree_util import GetAttrKey
    >>> str(GetAttrKey("x"))
    '.x'
    """

    __slots__ = __match_args__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(_Key):
    """The key of a child of a node whose class was registered without keys: its index among the children.

    Args:
      key: the index of the child.

    >>> from pullback.tree_util import FlattenedIndexKey
    >>> str(FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    __slots__ = __match_args__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Format a path as the Python expression that selects a node of a tree.

    Args:
      keys: the path.
      simple: whether to leave out brackets, quotes and dots.
      separator: the text to put between the keys.

    Returns:
      The text.

    Raises:
      ArgumentError: ``keys`` is not a path, or ``separator`` is not a text (a TypeError and a ValueError).

    >>> from pullback.tree_util import DictKey, GetAttrKey, SequenceKey, keystr
    >>> path = (DictKey("a"), SequenceKey(0), GetAttrKey("x"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("['a'][0].x", 'a/0/x')
    """
    simple = flag("keystr", "simple", simple)
    if not isinstance(separator, str) or not isinstance(keys, (list, tuple)):
        raise ArgumentError(f"keystr takes a path, and a text as separator, got {quote(keys)} and {quote(separator)}")
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(str(key._value if isinstance(key, _Key) else key) for key in keys)


# The registry


class _Node(NamedTuple):
    """The functions that flatten and unflatten the instances of a class registered as a tree node."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Any], Any]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None


_BUILTIN_NODES = frozenset((tuple, list, dict, OrderedDict, defaultdict, deque, type(None)))
_nodes: dict[type, _Node] = {}
_registry_lock = lock(globals(), "_registry_lock", reentrant=True)
_loading = lock(globals(), "_loading")
_modules: list[Any] = []
"""The module ``optree``, once it is loaded."""

# Types whose instances are always leaves: checking here first saves most calls of optree.
leaf_types: set[type] = {bool, int, float, complex, np.ndarray, *np.sctypeDict.values()}


def register_leaf_type(*classes: type) -> None:
    """Declare that instances of ``classes`` are always leaves, which makes flattening them faster.

    >>> import numpy as np
    >>> from pullback.core.tree_nodes import register_leaf_type
    >>> register_leaf_type(np.float32)
    """
    leaf_types.update(classes)


def optree() -> Any:
    """Return the module ``optree``; the first call imports it, and registers the classes of tree nodes with it."""
    if not _modules:
        with _registry_lock:
            uninterrupted(_load)
    return _modules[0]


def _load() -> None:
    with _loading:  # a user's signal handler may call this while the module is loaded
        if _modules:
            return
        module = _imported_to_stay()
        for cls in _nodes:
            _register_in(module, cls)
        _modules.append(module)


def _imported_to_stay() -> Any:
    """Import ``optree`` and return it, without its exit handlers that unregister lists, tuples and dictionaries.

    They would run before some of the users' exit handlers, in which all containers would then be leaves. They only free
    memory, which the end of the process does too.
    """
    module = imported("optree")
    if hasattr(module, "_C"):
        handlers: Any = _FunctionsOf(module._C.flatten)
        atexit.unregister(handlers)
    return module


class _FunctionsOf:
    """Is equal to each function of the extension module of a function, so that ``atexit.unregister`` finds them.

    The exit handlers of optree have no names, but pybind11 calls all functions of one module by one function in C.
    """

    def __init__(self, one: Any) -> None:
        self.in_c = _function_in_c(one)

    def __eq__(self, other: object) -> bool:
        return self.in_c is not None and _function_in_c(other) == self.in_c

    __hash__ = None  # type: ignore[assignment]


def _function_in_c(function: Any) -> int | None:
    """Return the address of what a builtin function calls; None if it is no builtin function."""
    if not isinstance(function, BuiltinFunctionType):
        return None
    import ctypes

    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCFunction_GetFunction", ctypes.pythonapi))
    address: int | None = address_of(function)
    return address


@functools.cache
def native_flatten() -> Callable[..., Any]:
    """Return optree's native function ``flatten``, or a function that calls ``optree.tree_flatten`` if it is missing.

    The native function is a tenth faster.
    """
    module = optree()
    try:
        native: Callable[..., Any] = module._C.flatten
        native((), None, False, NAMESPACE)
    except (AttributeError, TypeError):
        return lambda tree, is_leaf, none_is_leaf, namespace: module.tree_flatten(
            tree, is_leaf, none_is_leaf=none_is_leaf, namespace=namespace
        )
    return native


def _register_in(module: Any, cls: type) -> None:
    node = _nodes[cls]
    register = functools.partial(module.register_pytree_node, cls, node.flatten, node.unflatten, namespace=NAMESPACE)
    if issubclass(cls, tuple):  # optree warns that a named tuple would do without being registered
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            register()
    else:
        register()


def register_pytree_node(
    nodetype: type[_T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], _T],
    flatten_with_keys_func: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make the instances of a class nodes of trees.

    Args:
      nodetype: the class; instances of its subclasses are not affected.
      flatten_func: takes an instance and returns ``(children, auxiliary data)``. The auxiliary data belong to the
        structure of the tree: they are compared and hashed.
      unflatten_func: takes ``(auxiliary data, children)`` and returns an instance. The children may be any objects.
      flatten_with_keys_func: takes an instance and returns ``([(key, child), ...], auxiliary data)``.

    Raises:
      ValueError: the class is registered already.

    >>> from pullback import tree
    >>> from pullback.tree_util import register_pytree_node
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> register_pytree_node(Interval, lambda x: ((x.low, x.high), None), lambda _, xs: Interval(*xs))
    >>> tree.leaves({"a": Interval(1, 2)})
    [1, 2]
    """
    _a_class("register_pytree_node", nodetype)
    with _registry_lock:
        if nodetype in _nodes or nodetype in _BUILTIN_NODES:
            raise ValueError(f"{nodetype.__qualname__} is already registered as a node of trees")
        _nodes[nodetype] = _Node(flatten_func, unflatten_func, flatten_with_keys_func)
        leaf_types.discard(nodetype)
        if _modules:
            try:
                _register_in(_modules[0], nodetype)
            except BaseException:
                del _nodes[nodetype]
                raise
        runtime.node_registered(nodetype, _nodes[nodetype])


def register_pytree_node_class(cls: _Class) -> _Class:
    """Make the instances of a class nodes of trees, by its methods ``tree_flatten`` and ``tree_unflatten``.

    ``tree_flatten(self)`` returns ``(children, aux)``; the class method ``tree_unflatten(cls, aux, children)`` returns
    an instance.

    Args:
      cls: the class.

    Returns:
      The class, so that this function may be used as a decorator.

    Raises:
      MissingMethodError: the class lacks one of the two methods (an AttributeError).
      ValueError: the class is registered already.

    >>> from pullback import tree
    >>> from pullback.tree_util import register_pytree_node_class
    >>> @register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    ...
    ...     def tree_flatten(self):
    ...         return (self.a, self.b), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree.map(lambda x: 10 * x, Pair(1, 2)).b
    20
    """
    methods = _a_class("register_pytree_node_class", cls, "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), methods.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type[_T],
    flatten_with_keys: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], _T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make the instances of a class nodes of trees, with keys for their children in paths.

    Args:
      nodetype: the class.
      flatten_with_keys: takes an instance and returns ``([(key, child), ...], auxiliary data)``.
      unflatten_func: takes ``(auxiliary data, children)`` and returns an instance.
      flatten_func: takes an instance and returns ``(children, auxiliary data)``; optional, makes flattening faster.

    Raises:
      ValueError: the class is registered already.

    >>> from pullback import tree
    >>> from pullback.tree_util import GetAttrKey, keystr, register_pytree_with_keys
    >>> class Box:
    ...     def __init__(self, inside):
    ...         self.inside = inside
    >>> register_pytree_with_keys(
    ...     Box, lambda box: ([(GetAttrKey("inside"), box.inside)], None), lambda _, xs: Box(*xs)
    ... )
    >>> [(keystr(path), leaf) for path, leaf in tree.leaves_with_path([Box(3)])]
    [('[0].inside', 3)]
    """

    def flatten_without_keys(node: _T) -> tuple[Iterable[Any], Any]:
        keyed, aux = flatten_with_keys(node)
        return [child for _, child in keyed], aux

    register_pytree_node(
        nodetype, flatten_without_keys if flatten_func is None else flatten_func, unflatten_func, flatten_with_keys
    )


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Make the instances of a class nodes of trees, with keys for their children in paths.

    The method ``tree_flatten_with_keys(self)`` returns ``([(key, child), ...], aux)``; the class method
    ``tree_unflatten(cls, aux, children)`` returns an instance.

    Args:
      cls: the class. If it also has a method ``tree_flatten``, which returns ``(children, aux)``, flattening is faster.

    Returns:
      The class, so that this function may be used as a decorator.

    Raises:
      ValueError: the class is registered already.

    >>> from pullback import tree
    >>> from pullback.tree_util import DictKey, register_pytree_with_keys_class
    >>> @register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, value):
    ...         self.value = value
    ...
    ...     def tree_flatten_with_keys(self):
    ...         return ((DictKey("value"), self.value),), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree.leaves(Named(3))
    [3]
    """
    flatten_func = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    with_keys = operator.methodcaller("tree_flatten_with_keys")
    methods = _a_class("register_pytree_with_keys_class", cls, "tree_flatten_with_keys", "tree_unflatten")
    register_pytree_with_keys(cls, with_keys, methods.tree_unflatten, flatten_func)
    return cls


def register_static(cls: _Class) -> _Class:
    """Make the instances of a class nodes without children: each belongs to the structure of its tree.

    Instances are compared and hashed as parts of structures.

    Args:
      cls: the class, whose instances are hashable.

    Returns:
      The class, so that this function may be used as a decorator.

    Raises:
      ValueError: the class is registered already.

    >>> from pullback import tree
    >>> from pullback.tree_util import register_static
    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> tree.leaves((1.0, Mode("train")))
    [1.0]
    """
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node)
    return cls


def register_dataclass(
    nodetype: _Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _Class:
    """Make the instances of a dataclass nodes of trees: some fields are children, the others belong to the structure.

    Args:
      nodetype: the dataclass. If ``data_fields`` and ``meta_fields`` are passed, it may be any class that is
        constructed from these fields by keyword.
      data_fields: the names of the fields that are children.
      meta_fields: the names of the fields that belong to the structure, and are compared and hashed. By default, the
        fields with ``metadata={"static": True}`` belong to the structure, and all others are children.
      drop_fields: the names of fields that are left out: an unflattened instance has their default values.

    Returns:
      The class, so that this function may be used as a decorator.

    Raises:
      TypeError: only one of ``data_fields`` and ``meta_fields`` is passed; or neither, and the class is not a
        dataclass.
      ValueError: the fields are not those of the dataclass, or the class is registered already.

    >>> import dataclasses
    >>> from pullback import tree
    >>> from pullback.tree_util import register_dataclass
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = dataclasses.field(metadata={"static": True})
    >>> tree.map(lambda w: 2 * w, Layer(3.0, "first"))
    Layer(weight=6.0, name='first')
    """
    data, meta = _dataclass_fields(nodetype, data_fields, meta_fields, drop_fields)
    keys = [GetAttrKey(name) for name in data]
    values, metadata = _attributes(data), _attributes(meta)

    def unflatten_dataclass(aux: Any, children: Any) -> Any:
        return nodetype(**dict(zip(meta, aux)), **dict(zip(data, children)))

    register_pytree_node(
        nodetype,
        lambda node: (values(node), metadata(node)),
        unflatten_dataclass,
        lambda node: (list(zip(keys, values(node))), metadata(node)),
    )
    return nodetype


def _a_class(name: str, cls: Any, *methods: str) -> Any:
    """Return an argument that is a class with some methods; ``name`` is the function that takes it."""
    if not isinstance(cls, type):
        raise ArgumentError(f"{name}: expected a class to be a node of trees, got {typed(cls)}")
    missing = [method for method in methods if not hasattr(cls, method)]
    if missing:
        raise MissingMethodError(f"{name}: {cls.__qualname__} lacks the method {' and '.join(missing)}")
    return cls


def _attributes(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        return lambda node: (getattr(node, names[0]),)
    return operator.attrgetter(*names) if names else lambda node: ()


def _dataclass_fields(
    nodetype: type,
    data_fields: Sequence[str] | None,
    meta_fields: Sequence[str] | None,
    drop_fields: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the fields that are children, and of those that belong to the structure.

    The arguments are those of :func:`register_dataclass`; raise an error if they are wrong.
    """
    import dataclasses

    _a_class("register_dataclass", nodetype)
    name = nodetype.__qualname__
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            f"register_dataclass needs both data_fields and meta_fields of {name}, or neither; "
            f"got data_fields={data_fields!r}, meta_fields={meta_fields!r}"
        )
    fields = [field for field in dataclasses.fields(nodetype) if field.init] if is_dataclass else []
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise TypeError(f"{name} is not a dataclass: pass data_fields and meta_fields")
        static = [field.name for field in fields if field.metadata.get("static", False)]
        kept = [field.name for field in fields if field.name not in drop_fields]
        return tuple(f for f in kept if f not in static), tuple(f for f in kept if f in static)
    given = [*data_fields, *meta_fields]
    twice = sorted({field for field in given if given.count(field) > 1})
    if twice:
        raise ValueError(f"data_fields and meta_fields contain fields of {name} twice: {', '.join(twice)}")
    if is_dataclass:
        own = {field.name for field in fields}
        missing, unknown = sorted(own - {*given, *drop_fields}), sorted(set(given) - own)
        if missing or unknown:
            raise ValueError(
                f"data_fields and meta_fields must contain all init fields of {name}"
                + (f"; missing: {', '.join(missing)} (or give them as drop_fields)" if missing else "")
                + (f"; not fields: {', '.join(unknown)}" if unknown else "")
            )
    return tuple(data_fields), tuple(meta_fields)


def is_leaf(tree: Any) -> bool:
    """Whether an object is a leaf of a tree. None is not a leaf: it is an empty tree.

    >>> from pullback.core.tree_nodes import is_leaf
    >>> is_leaf(1), is_leaf([]), is_leaf(None)
    (True, False, False)
    """
    return type(tree) in leaf_types or bool(optree().tree_is_leaf(tree, namespace=NAMESPACE))


def flatten_one_level(tree: PyTree) -> tuple[Iterable[PyTree], PyTree]:
    """Return the children of a node, and its auxiliary data, such as the keys of a dictionary.

    Args:
      tree: a node.

    Returns:
      The children, and the data.

    Raises:
      ValueError: ``tree`` is a leaf.

    >>> from pullback.tree_util import flatten_one_level
    >>> flatten_one_level({"b": (1, 2), "a": 3})
    ([3, (1, 2)], ['a', 'b'])
    """
    if tree is None:
        return (), None
    if is_leaf(tree):
        raise ValueError(f"expected a node of a tree, got a leaf of type {type(tree).__name__}")
    children, aux = optree().tree_flatten_one_level(tree, namespace=NAMESPACE)[:2]
    return children, aux


def flatten_one_level_with_keys(tree: PyTree) -> tuple[Iterable[tuple[KeyEntry, PyTree]], PyTree]:
    """Return pairs (key, child) for the children of a node, and its auxiliary data.

    Args:
      tree: a node.

    Returns:
      The pairs, and the data.

    Raises:
      ValueError: ``tree`` is a leaf.

    >>> from pullback.tree_util import flatten_one_level_with_keys
    >>> flatten_one_level_with_keys([3])
    ([(SequenceKey(idx=0), 3)], None)
    """
    _, aux = flatten_one_level(tree)
    return keyed_children(tree), aux


def is_registered(cls: type) -> bool:
    """Whether a class was registered as a tree node; False for the built-in containers."""
    return cls in _nodes


def is_tree_node(typ: type) -> bool:
    """Whether the instances of a class are nodes of trees, not leaves.

    Args:
      typ: the class.

    Returns:
      A bool of Python's.

    Raises:
      ArgumentError: ``typ`` is not a class (a TypeError and a ValueError).

    >>> from pullback.tree_util import is_tree_node
    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    _a_class("is_tree_node", typ)
    return typ in _BUILTIN_NODES or typ in _nodes or bool(optree().is_namedtuple_class(typ))


def keyed_children(node: Any) -> list[tuple[Any, Any]]:
    """Return a list of pairs (key, child) for the children of a node."""
    kind = type(node)
    if kind is tuple or kind is list or kind is deque or optree().is_structseq_class(kind):
        return [(SequenceKey(i), child) for i, child in enumerate(node)]
    registered = _nodes.get(kind)
    if registered is not None and registered.flatten_with_keys is not None:
        return [(key, child) for key, child in registered.flatten_with_keys(node)[0]]
    if node is None:
        return []
    children, _, entries = optree().tree_flatten_one_level(node, namespace=NAMESPACE)[:3]
    if registered is not None:
        return [(FlattenedIndexKey(i), child) for i, child in enumerate(children)]
    if isinstance(node, dict):
        return [(DictKey(entry), child) for entry, child in zip(entries, children)]
    return [(GetAttrKey(name), child) for name, child in zip(optree().namedtuple_fields(kind), children)]
