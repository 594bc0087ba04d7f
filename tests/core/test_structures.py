"""Structures of trees: their text, nodes and walks are those of the runtime's registry, which JAX uses."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from pullback import jit, tree, tree_util
from pullback.backends.compiler.trees import registry
from pullback.core.errors import ArgumentError
from pullback.core.runtime import runtime
from pullback.core.tree_nodes import NAMESPACE, native_flatten
from pullback.transforms.jit.jit import quick
from pullback.tree_util import Partial, PyTreeDef

Point = namedtuple("Point", ["x", "y"])


@tree_util.register_pytree_node_class
class Carrier:
    def __init__(self, child: Any, data: Any) -> None:
        self.child, self.data = child, data

    def tree_flatten(self) -> Any:
        return (self.child,), self.data

    @classmethod
    def tree_unflatten(cls, data: Any, children: Any) -> Carrier:
        return cls(*children, data)


TREES = [
    1.0, None, (), [], {}, (1,), (1, 2), [1, (2, None)], {"b": 1, "a": (2,)}, {2: 1, 1: [3]}, Point(1, (2, 3)),
    OrderedDict(b=1, a=2), defaultdict(int, b=1, a=2), deque([1, 2], 3), Carrier(1, None), Carrier((1,), "text"),
    Carrier(Carrier(1, ("a", 3)), 2), Carrier({"b": 1, "a": 2}, [4]), Partial(print, 1, b=2),
    {"l": [Point(Carrier(1, "x"), None), OrderedDict(z=(1, 2))]},
]  # fmt: skip


@pytest.mark.parametrize("given", TREES, ids=lambda x: type(x).__name__)
def test_structures_are_described_as_by_the_runtime(given: Any) -> None:
    leaves, theirs = registry().flatten(given)
    found, ours = tree.flatten(given)
    assert type(ours) is PyTreeDef
    assert (found, str(ours), repr(ours)) == (leaves, str(theirs), repr(theirs))
    assert (ours.num_leaves, ours.num_nodes, ours.node_data()) == (
        theirs.num_leaves, theirs.num_nodes, theirs.node_data(),
    )  # fmt: skip
    walks = [x.walk(lambda children, data: (children, data), lambda leaf: [leaf], leaves) for x in (ours, theirs)]
    assert walks[0] == walks[1]
    assert list(map(repr, ours.children())) == list(map(repr, theirs.children()))
    inner_ours, inner_theirs = tree.structure((1, 2)), registry().flatten((1, 2))[1]
    assert repr(ours.compose(inner_ours)) == repr(theirs.compose(inner_theirs))


@pytest.mark.parametrize("given", TREES, ids=lambda x: type(x).__name__)
def test_every_way_to_a_structure_gives_the_same_class(given: Any) -> None:
    treedef = tree.structure((given, {"k": given}))
    others = [
        tree_util.treedef_tuple(treedef.children()),
        tree.structure((0, {"k": 0})).compose(tree.structure(given)),
        tree.flatten_with_path((given, {"k": given}))[1],
        tree.structure([(given, {"k": given})]).children()[0],
        copy.copy(treedef),
        pickle.loads(pickle.dumps(tree.structure((1, {"k": 2})))).compose(tree.structure(given)),
    ]
    for other in others:
        assert type(other) is PyTreeDef
        assert other == treedef
        if not isinstance(given, Carrier):  # whose data cannot always be hashed
            assert hash(other) == hash(treedef)


def test_an_example_is_walked_from_the_children_to_the_root() -> None:
    seen: list[Any] = []
    treedef = tree.structure({"b": 2, "a": Point(1, None)})
    result = treedef.walk(lambda children, data: seen.append((children, data)) or len(seen), None, ["one", "two"])
    assert seen == [((), None), (("one", 1), Point), ((2, "two"), ["a", "b"])]
    assert result == 3
    assert jit(lambda x: x.walk(lambda children, _: sum(children), lambda y: 2 * y, [1, 2]), static_argnums=0)(
        tree.structure([1, 2])
    ) == 6  # fmt: skip


@pytest.mark.parametrize(
    ("walk", "message"),
    [
        (
            lambda d: d.walk(print, None, [1]),
            r"too few leaves for PyTreeDef\(\[\*, \*\]\): expected 2, got \[1\]",
        ),
        (lambda d: d.walk(print, None, [1, 2, 3]), "too many leaves"),
        (lambda d: d.walk(3, None, [1, 2]), "walk: f_node must be a function"),
        (lambda d: d.walk(print, 3, [1, 2]), "walk: f_leaf must be a function"),
    ],
)
def test_walks_that_cannot_be(walk: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        walk(tree.structure([1, 2]))


@pytest.mark.parametrize("given", TREES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("in_place", [False, True])
def test_structures_of_the_other_library_become_ours(given: Any, in_place: bool, monkeypatch: Any) -> None:
    leaves, theirs = native_flatten()(given, None, False, NAMESPACE)
    text, number, like = str(theirs), hash(theirs), native_flatten()(given, None, False, NAMESPACE)[1]
    if not in_place:  # as without the module in C
        monkeypatch.setattr(runtime, "as_subclass", lambda x, cls: False)
    made = PyTreeDef.of(theirs)
    assert (made is theirs) == (in_place and quick is not None)
    assert type(made) is PyTreeDef
    assert (repr(theirs) == text) == (made is not theirs)
    assert made == like
    assert hash(made) == number == hash(like)
    assert pickle.loads(pickle.dumps(made)) == like
    assert tree.flatten(made.unflatten(leaves))[0] == leaves
    assert PyTreeDef.of(made) == made


def rebuilt(treedef: Any) -> Any:
    return PyTreeDef.from_node_data_and_children(None, treedef.node_data(), list(map(rebuilt, treedef.children())))


@pytest.mark.parametrize("given", TREES, ids=lambda x: type(x).__name__)
def test_structures_are_put_together_of_their_parts(given: Any) -> None:
    leaves, treedef = tree.flatten(given)
    made = rebuilt(treedef)
    assert made == treedef
    assert repr(made) == repr(treedef)
    assert tree.flatten(made.unflatten(leaves))[0] == leaves


@pytest.mark.parametrize("data", [(int, None), (type(None), None), (object, "data")])
def test_structures_of_what_is_no_node(data: Any) -> None:
    with pytest.raises(ArgumentError, match="with 1 children is not a node of trees"):
        PyTreeDef.from_node_data_and_children(None, data, [tree.structure(1)])
