"""Serialisation of tree structures as JSON data, and the registry of names for classes of nodes."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from pullback.core import structures, tree, tree_nodes
from pullback.core.errors import ArgumentError, ExportError
from pullback.core.locks import lock
from pullback.export.descriptions import damaged, list_of, of_type

_Class = TypeVar("_Class", bound=type)


class _Registered(NamedTuple):
    """A class of tree nodes that is registered for serialization.

    Attributes:
      kind: the class.
      name: its name in serialized form.
      write: converts the auxiliary data of a node to bytes.
      read: converts these bytes back.
      build: makes a node from auxiliary data and children; None for a class that is registered as a node.
    """

    kind: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_by_class: dict[type, _Registered] = {}
_by_name: dict[str, _Registered] = {}
_lock = lock(globals(), "_lock")


def register_pytree_node_serialization(
    nodetype: _Class,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> _Class:
    """Register the serialisation of a class of nodes, so that exported functions can take and return them.

    Args:
      nodetype: a class that was registered by ``tree_util.register_pytree_node`` or a similar function.
      serialized_name: the name of the class in the bytes; processes that read them register a class by this name.
      serialize_auxdata: takes the auxiliary data of a node, and returns bytes.
      deserialize_auxdata: takes these bytes, and returns the auxiliary data.
      from_children: takes the auxiliary data and the children, and returns a node. It is called only to build the
        structure; by default no node is made.

    Returns:
      ``nodetype``, so that this may be a decorator.

    Raises:
      ArgumentError: the class or the name is registered already, or the class is no node (a ValueError).

    >>> from pullback import export, tree_util
    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> _ = tree_util.register_pytree_node(Point, lambda p: ((p.x, p.y), "plane"), lambda _, xy: Point(*xy))
    >>> export.register_pytree_node_serialization(
    ...     Point, serialized_name="Point", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    ... ).__name__
    'Point'
    """
    if from_children is None and nodetype not in tree_nodes._nodes:
        raise ArgumentError(
            f"register_pytree_node_serialization: {nodetype!r} is not registered as a node of trees; call "
            f"tree_util.register_pytree_node first, or pass from_children"
        )
    _register(_Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: _Class, *, serialized_name: str) -> _Class:
    """Register the name of a class of named tuples, so that exported functions can take and return them.

    Args:
      nodetype: the class.
      serialized_name: its name in the bytes; processes that read them register a class by this name, with the same
        fields.

    Returns:
      ``nodetype``, so that this may be a decorator.

    Raises:
      ArgumentError: the class or the name is registered already, or it is no named tuple (a ValueError).

    >>> from collections import namedtuple
    >>> from pullback import export
    >>> export.register_namedtuple_serialization(namedtuple("Pair", "a b"), serialized_name="Pair").__name__
    'Pair'
    """
    if not _is_namedtuple(nodetype):
        raise ArgumentError(f"register_namedtuple_serialization: {nodetype!r} is not a class of named tuples")
    fields = ",".join(nodetype._fields)  # type: ignore[attr-defined]

    def check(data: bytes) -> None:
        if data not in (fields.encode(), fields_in_json(nodetype)):
            raise ExportError(
                f"deserialize: the named tuple {serialized_name!r} had the fields ({data.decode()}) when it was "
                f"exported, but {nodetype.__name__} has ({fields})"
            )

    _register(_Registered(nodetype, serialized_name, lambda _: fields.encode(), check, None))
    return nodetype


def fields_in_json(nodetype: Any) -> bytes:
    """The field names of a named tuple class, in JAX's format."""
    return json.dumps(list(nodetype._fields)).encode()


def namedtuple_called(name: str) -> Any:
    """The named tuple class that is registered by a name; None if the class is of another kind."""
    kind = _by_name[name].kind
    return kind if _is_namedtuple(kind) else None


def _is_namedtuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _register(new: _Registered) -> None:
    if not isinstance(new.name, str) or not new.name:
        raise ArgumentError(f"serialized_name must be a non-empty string, got {new.name!r}")
    with _lock:
        if new.kind in _by_class:
            raise ArgumentError(f"{new.kind!r} is already registered for export, as {_by_class[new.kind].name!r}")
        if new.name in _by_name:
            raise ArgumentError(f"{new.name!r} is already the name of a class, for export: {_by_name[new.name].kind!r}")
        _by_class[new.kind] = _by_name[new.name] = new


def structure_to_data(treedef: Any) -> Any:
    """Convert a tree structure to lists and strings.

    Raises:
      ExportError: it has nodes of a class that is not registered for serialisation, or keys that are no strings (a
        ValueError and TypeError).
    """
    done: list[Any] = []
    for node in structures.PyTreeDef.of(treedef).nodes():  # no tree is made: users' classes may check their children
        first = len(done) - node.arity
        done[first:] = [["leaf"] if node.is_leaf() else _written(*node.type_and_data(), done[first:])]
    return done[0]


def _written(kind: type, aux: Any, children: list[Any]) -> list[Any]:
    """Convert a node to a list.

    Args:
      kind: its class.
      aux: what it keeps beside its children.
      children: the children, converted.
    """
    if kind is type(None):
        return ["none"]
    if kind in _by_class:
        found = _by_class[kind]
        data = found.write(aux)
        if not isinstance(data, (bytes, bytearray)):
            raise ExportError(f"serialize_auxdata of {kind!r} must return bytes, but returned {data!r}")
        return ["node", found.name, base64.b64encode(data).decode(), children]
    if kind in (tuple, list):
        return [kind.__name__, children]
    if kind in (dict, OrderedDict):
        for key in aux:
            if type(key) is not str:
                raise ExportError(
                    f"serialize: keys of dictionaries must be strings, but one is {key!r} of type {type(key).__name__}"
                )
        return ["dict" if kind is dict else "ordered", list(aux), children]
    raise ExportError(
        f"serialize: the arguments or results of the function have nodes of the class {kind!r}, which is not "
        f"registered for export. Call export.register_pytree_node_serialization or register_namedtuple_serialization."
    )


def structure_from_data(data: Any) -> Any:
    """Rebuild a tree structure from the data of :func:`structure_to_data`.

    Raises:
      ExportError: the name of a node is not registered in this process (a ValueError).
    """
    return _read(data)


_PARTS = {"none": 0, "leaf": 0, "node": 3, "tuple": 1, "list": 1, "dict": 2, "ordered": 2}
"""How many parts follow the kind of a node."""


def _read(data: Any) -> Any:
    """Return the structure of a node."""
    kind, *rest = of_type(list, data, "a node") or [None]
    if _PARTS.get(of_type(str, kind, "the kind of a node")) != len(rest):
        raise ExportError(f"deserialize: a node of the kind {kind!r} with {len(rest)} parts is unknown to this release")
    if kind in ("none", "leaf"):
        return tree.structure(None if kind == "none" else 0)
    children = [_read(child) for child in of_type(list, rest[-1], "the children of a node")]
    if kind == "node":
        return _built(
            of_type(str, rest[0], "the name of a node"), of_type(str, rest[1], "the data of a node"), children
        )
    if kind in ("tuple", "list"):
        return _joined(tuple if kind == "tuple" else list, None, children)
    keys = list_of(str, rest[0], "the keys of a dictionary")
    if len(keys) != len(children) or len(set(keys)) != len(keys):
        raise damaged("a dictionary has not as many keys as values")
    if kind == "ordered":
        return _joined(OrderedDict, keys, children)
    return _joined(dict, sorted(keys), [child for _, child in sorted(zip(keys, children), key=lambda pair: pair[0])])


def _joined(kind: type, aux: Any, children: list[Any]) -> Any:
    return structures.PyTreeDef.from_node_data_and_children(None, (kind, aux), children)


def _built(name: str, aux: str, children: list[Any]) -> Any:
    """Return the structure of a node of the class that is registered by a name.

    Args:
      name: the name.
      aux: auxiliary data in base64.
      children: the structures of the children.
    """
    if name not in _by_name:
        raise ExportError(
            f"deserialize: the exported function takes or returns nodes named {name!r}, but no class is registered "
            f"under this name. Call export.register_pytree_node_serialization, or "
            "export.register_namedtuple_serialization, in this process too."
        )
    found = _by_name[name]
    try:
        known = found.read(base64.b64decode(aux, validate=True))
        if found.build is None:
            return _joined(found.kind, known, children)
        return tree.structure(found.build(known, [tree.unflatten(c, [0] * c.num_leaves) for c in children]))
    except ExportError:
        raise
    except Exception as error:  # of whatever kind: the functions are the user's
        raise ExportError(f"deserialize: a node {name!r} cannot be built: {type(error).__name__}: {error}") from error
