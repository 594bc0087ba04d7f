"""Trees: flattening, mapping, prefixes, paths, registered classes, and the errors of each."""

import collections
import copy
import dataclasses
import functools
import gc
import math
import operator
import pickle
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import optree
import pytest

import pullback
import pullback.tree
import pullback.tree_util
from pullback.core import tree, tree_nodes

Point = collections.namedtuple("Point", ["x", "y"])


@tree.register_pytree_node_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a, self.b), "aux"

    @classmethod
    def tree_unflatten(cls, aux, children):
        assert aux == "aux"
        return cls(*children)

    def __eq__(self, other):
        return (self.a, self.b) == (other.a, other.b)

    __hash__ = None


TREES = [
    1.0,
    None,
    (),
    [],
    {},
    (1,),
    (1, 2.0, True),
    [1, 2],
    [np.ones(2), np.float32(1)],
    (1, (2, 3), None),
    {"b": 1, "a": (2, None)},
    {"a": [1, {"c": 2}], "b": Point(3, 4)},
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(list, b=1, a=2),
    collections.deque([1, (2,)]),
    Point(1, [2]),
    Pair(1, (2, 3)),
    [Pair(Pair(1, 2), None)],
    "a string",
    object(),
]


@pytest.mark.parametrize("value", TREES, ids=map(str, range(len(TREES))))
def test_a_tree_is_put_together_as_it_was(value):
    leaves, treedef = tree.flatten(value)
    assert (leaves, treedef) == optree.tree_flatten(value, namespace=tree_nodes.NAMESPACE)
    assert treedef.num_leaves == len(leaves)
    again = tree.unflatten(treedef, leaves)
    assert type(again) is type(value)
    assert tree.leaves(again) == leaves
    assert tree.structure(again) == treedef
    assert hash(tree.structure(again)) == hash(treedef)
    assert tree.unflatten(treedef, iter(leaves)) is not None or value is None


def test_leaves_come_in_the_order_of_keys():
    assert tree.leaves({"b": 1, "a": (2, 3)}) == [2, 3, 1]
    assert tree.leaves(collections.OrderedDict(b=1, a=2)) == [1, 2]
    assert tree.structure({"a": 1, "b": 2}) == tree.structure({"b": 1, "a": 2})
    assert tree.structure([1, 2]) != tree.structure((1, 2))


def test_is_leaf_stops_the_descent():
    assert tree.leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert tree.leaves((1, None), is_leaf=lambda x: x is None) == [1, None]
    assert tree.leaves((1, 2), is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2)]
    assert tree.structure(None, is_leaf=lambda x: x is None) == tree.structure(0)


@pytest.mark.parametrize(("given", "words"), [([1], "got 1"), ([1, 2, 3], "got 3"), ((), "got 0")])
def test_a_wrong_number_of_leaves(given, words):
    with pytest.raises(ValueError, match=rf"expected 2 leaves for the tree .*\(\*, \*\).*, {words}"):
        tree.unflatten(tree.structure((1, 2)), given)


def test_errors_of_unflatten_functions_are_passed_on():
    class Picky:
        pass

    def refuse(aux, children):
        raise ValueError("no")

    tree.register_pytree_node(Picky, lambda x: ((1,), None), refuse)
    with pytest.raises(ValueError, match=r"^no$"):
        tree.unflatten(tree.structure(Picky()), [1])


def test_errors_of_flatten_functions_are_passed_on():
    class Reluctant:
        pass

    def refuse(node):
        raise ValueError("not now")

    tree.register_pytree_node(Reluctant, refuse, lambda aux, children: Reluctant())
    with pytest.raises(ValueError, match=r"^not now$"):
        tree.leaves([Reluctant()])
    with pytest.raises(ValueError, match=r"^not now$"):
        tree.tree_map(lambda x, y: x, [(1,)], [Reluctant()])


# Working on trees


def test_map():
    assert tree.tree_map(operator.neg, {"a": (1, 2)}) == {"a": (-1, -2)}
    assert tree.tree_map(operator.neg, 3) == -3
    assert tree.tree_map(operator.add, 3, 4) == 7
    assert tree.tree_map(lambda x, y: (x, y), 1, (2, 3)) == (1, (2, 3))
    assert tree.tree_map(operator.add, (1, [2]), (10, [20])) == (11, [22])
    assert tree.tree_map(lambda x, y: y, {"a": (1, 2)}, {"a": (1, [5, None])}) == {"a": (1, [5, None])}
    assert tree.tree_map(lambda x: x, None) is None
    assert tree.tree_map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]
    assert pullback.tree.map(operator.neg, [1]) == [-1]


def test_map_passes_on_any_exception():
    def stop(*_):
        raise StopIteration

    with pytest.raises(StopIteration):
        tree.tree_map(stop, (1, 2))
    with pytest.raises(StopIteration):
        tree.tree_map(stop, (1, 2), (3, 4))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            {"a": (1, 2)},
            {"a": (1, 2, 3)},
            r"at \['a'\], expected a tuple of length 2, got a tuple of length 3",
        ),
        (
            {"a": 1},
            {"b": 1},
            r"at the root, expected a dict with the keys \['a'\], got a dict with .*\['b'\]",
        ),
        (
            [1, {"a": (1, None)}],
            [1, {"a": (1, 2)}],
            r"at \[1\]\['a'\]\[1\], expected None, got a leaf of type int",
        ),
        ((1, (2,)), (1, [2]), r"at \[1\], expected a tuple of length 1, got a list of length 1"),
        ((1, (2,)), (1, 2), r"at \[1\], expected a tuple of length 1, got a leaf of type int"),
        (Point(1, (2,)), Point(1, 2), r"at \.y, expected a tuple of length 1, got a leaf of type int"),
        (Pair(1, (2,)), Pair(1, 2), r"at \[<flat index 1>\], expected a tuple"),
        (
            Pair(1, 2),
            (1, 2),
            r"at the root, expected a Pair with 2 children and auxiliary data 'aux', got a tuple",
        ),
        (Point(1, 2), (1, 2), r"expected a Point of length 2, got a tuple of length 2"),
        ({}, {"a": 1}, r"expected a dict with the keys \[\], got a dict with the keys \['a'\]"),
        (
            {"b": 1, "a": (1,)},
            collections.OrderedDict(b=1, a=2),
            r"at \['a'\], expected a tuple of length 1, got a leaf of type int",
        ),
    ],
)
def test_mismatched_trees_are_told_where(first, second, message):
    with pytest.raises(ValueError, match=r"the trees disagree: .*" + message):
        tree.tree_map(lambda x, y: x, first, second)
    with pytest.raises(ValueError, match=r"the tree is not a prefix of the values: .*" + message):
        tree.broadcast_prefix(first, second)


def test_reduce():
    assert tree.reduce(operator.add, [1, (2, 3)]) == 6
    assert tree.reduce(operator.add, [1, (2, 3)], 10) == 16
    assert tree.reduce(lambda a, b: (a, b), [1], None) == (None, 1)
    assert tree.reduce(operator.add, [(1,), (2,)], is_leaf=lambda x: isinstance(x, tuple)) == (1, 2)
    with pytest.raises(TypeError, match="empty"):
        tree.reduce(operator.add, [])
    assert tree.reduce_associative(lambda a, b: (a, b), [1, 2, 3, 4, 5]) == ((1, 2), (3, (4, 5)))
    assert tree.reduce_associative(operator.add, [], identity=3) == 3
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(operator.add, [])


def test_all():
    assert tree.all([True, (1, {"a": 2})])
    assert not tree.all([True, 0])
    assert tree.all([])
    assert tree.all([(), 1], is_leaf=lambda x: x == ()) is False
    with pytest.raises(ValueError, match="a leaf has no truth value"):
        tree.all([np.zeros(0), 1])
    assert tree.all_leaves([1, 2])
    assert not tree.all_leaves([1, (2,)])
    assert not tree.all_leaves([1, None])
    assert tree.all_leaves([1, None], is_leaf=lambda x: x is None)


def test_transpose():
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": (0,)})
    value = [{"a": 1, "b": (2,)}, {"a": 3, "b": (4,)}]
    expected = {"a": [1, 3], "b": ([2, 4],)}
    assert tree.transpose(outer, inner, value) == expected
    assert tree.transpose(outer, None, value) == expected
    assert tree.transpose(tree.structure(()), inner, ()) == {"a": (), "b": ((),)}
    with pytest.raises(ValueError, match="expected subtrees of the inner structure"):
        tree.transpose(outer, None, [{"a": 1}, {"b": 2}])
    with pytest.raises(ValueError, match="lacks the outer structure: at the root, expected a list"):
        tree.transpose(outer, inner, ({"a": 1}, {"a": 2}))
    with pytest.raises(ValueError, match="pass the inner structure"):
        tree.transpose(tree.structure(None), None, None)


def test_transpose_of_a_node_that_holds_the_structure_of_its_children():
    class Flat:
        def __init__(self, content):
            self.content = content

    tree.register_pytree_node(Flat, lambda x: tree.flatten(x.content), lambda aux, xs: Flat(tree.unflatten(aux, xs)))
    outer, inner = tree.structure(Flat({"a": 0, "b": 0})), tree.structure([0, 0])
    found = tree.transpose(outer, inner, Flat({"a": [1, 2], "b": [3, 4]}))
    assert [x.content for x in found] == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    for wrong in (Flat({"a": [1, 2], "b": [3]}), [[1, 2], [3, 4]]):
        with pytest.raises(ValueError, match="lacks the outer structure"):
            tree.transpose(outer, inner, wrong)


def test_prefixes():
    values = {"a": [1, 2], "b": (3, {"c": 4}), "d": None}
    assert tree.broadcast_prefix(0, values) == [0, 0, 0, 0]
    assert tree.broadcast_prefix({"a": 0, "b": (1, 2), "d": 3}, values) == [0, 0, 1, 2]
    assert tree.broadcast_prefix({"a": 0, "b": None, "d": None}, values, lambda x: x is None) == [
        0,
        0,
        None,
        None,
    ]
    assert tree.broadcast({"a": 0, "b": (1, 2), "d": 3}, values) == {
        "a": [0, 0],
        "b": (1, {"c": 2}),
        "d": None,
    }
    with pytest.raises(ValueError, match="at the root, expected None, got a dict"):
        tree.broadcast_prefix(None, values)


# Paths


def test_paths_in_every_kind_of_node():
    value = {
        "a": [1, (2,)],
        "o": collections.OrderedDict(z=3, y=4),
        "p": Point(5, [6]),
        "q": collections.deque([7]),
        "r": Pair(8, {3: 9}),
        "s": None,
        "t": time.gmtime(0),
    }
    found, treedef = tree.flatten_with_path(value)
    assert [leaf for _, leaf in found] == tree.leaves(value) == [*range(1, 10), *time.gmtime(0)]
    assert treedef == tree.structure(value)
    assert [tree.keystr(path) for path, _ in found[:10]] == [
        "['a'][0]",
        "['a'][1][0]",
        "['o']['z']",
        "['o']['y']",
        "['p'].x",
        "['p'].y[0]",
        "['q'][0]",
        "['r'][<flat index 0>]",
        "['r'][<flat index 1>][3]",
        "['t'][0]",
    ]
    assert tree.leaves_with_path(3) == [((), 3)]
    assert tree.leaves_with_path(None) == []


@pytest.mark.parametrize("value", TREES, ids=map(str, range(len(TREES))))
def test_paths_keep_leaves_and_structure(value):
    found, treedef = tree.flatten_with_path(value)
    assert [leaf for _, leaf in found] == tree.leaves(value)
    assert treedef == tree.structure(value)

    def is_leaf(node):
        return isinstance(node, (tuple, type(None)))

    found, treedef = tree.flatten_with_path(value, is_leaf)
    assert [leaf for _, leaf in found] == tree.leaves(value, is_leaf)
    assert treedef == tree.structure(value, is_leaf)


def test_is_leaf_may_see_the_path():
    def is_leaf(path, node):
        return tree.keystr(path) == "['a']"

    found, treedef = tree.flatten_with_path({"a": (1, 2), "b": (1, 2)}, is_leaf, is_leaf_takes_path=True)
    assert [(tree.keystr(path), leaf) for path, leaf in found] == [
        ("['a']", (1, 2)),
        ("['b'][0]", 1),
        ("['b'][1]", 2),
    ]
    assert treedef == tree.structure({"a": 0, "b": (0, 0)})


def test_map_with_path():
    def name(path, x, y):
        return tree.keystr(path), x, y

    mapped = tree.map_with_path(name, {"a": (1, 2)}, {"a": (5, [6])})
    assert mapped == {"a": (("['a'][0]", 1, 5), ("['a'][1]", 2, [6]))}
    with pytest.raises(ValueError, match="the trees disagree: at the root"):
        tree.map_with_path(name, {"a": 1}, {"b": 1})


def test_keys_are_values():
    keys = (tree.DictKey("a"), tree.SequenceKey(0), tree.GetAttrKey("x"), tree.FlattenedIndexKey(2))
    assert repr(keys) == "(DictKey(key='a'), SequenceKey(idx=0), GetAttrKey(name='x'), FlattenedIndexKey(key=2))"
    assert tree.keystr(keys) == "['a'][0].x[<flat index 2>]"
    assert tree.keystr(keys, separator=" ") == "['a'] [0] .x [<flat index 2>]"
    assert tree.keystr((*keys, "own"), simple=True, separator="/") == "a/0/x/2/own"
    assert len({*keys, *copy.deepcopy(keys)}) == 4
    assert tree.DictKey(2) != tree.FlattenedIndexKey(2)
    assert pickle.loads(pickle.dumps(keys)) == keys
    match keys[0]:
        case tree.DictKey(key):
            assert key == "a"


def test_one_level():
    children, _ = tree.flatten_one_level({"b": (2, 3), "a": 1})
    assert list(children) == [1, (2, 3)]
    assert tree.flatten_one_level(None) == ((), None)
    keyed, aux = tree.flatten_one_level_with_keys(Pair(1, (2,)))
    assert (list(keyed), aux) == ([(tree.FlattenedIndexKey(0), 1), (tree.FlattenedIndexKey(1), (2,))], "aux")
    with pytest.raises(ValueError, match="expected a node of a tree, got a leaf of type int"):
        tree.flatten_one_level(3)
    with pytest.raises(ValueError, match="got a leaf"):
        tree.flatten_one_level_with_keys(3)
    nodes = [cls for cls in (tuple, int, type(None), Point, Pair, str) if tree.is_tree_node(cls)]
    assert nodes == [tuple, type(None), Point, Pair]


# Registered classes


def test_a_class_is_registered_once():
    with pytest.raises(ValueError, match="Pair is already registered as a node of trees"):
        tree.register_pytree_node_class(Pair)
    with pytest.raises(ValueError, match="tuple is already registered"):
        tree.register_static(tuple)
    with pytest.raises(TypeError, match=r"expected a class .* got 3"):
        tree.register_pytree_node(3, None, None)
    with pytest.raises(AttributeError, match="tree_unflatten"):
        tree.register_pytree_node_class(type("Bare", (), {}))


def test_a_failed_registration_leaves_nothing_behind():
    class Late:
        pass

    with pytest.raises(TypeError):
        tree.register_pytree_node(Late, "not a function", None)
    tree.register_static(Late)
    assert tree.leaves(Late()) == []


def test_registered_leaf_types_may_still_become_nodes():
    class Later:
        def __init__(self, x):
            self.x = x

    tree.register_leaf_type(Later)
    assert len(tree.leaves(Later(1))) == 1
    tree.register_pytree_node(Later, lambda later: ((later.x,), None), lambda _, xs: Later(*xs))
    assert tree.leaves(Later(1)) == [1]


def test_named_tuples_may_be_registered():
    class Special(collections.namedtuple("Special", ["x", "y"])):
        __slots__ = ()

    tree.register_pytree_node(Special, lambda s: ((s.x,), s.y), lambda y, xs: Special(*xs, y))
    assert tree.leaves(Special(1, "static")) == [1]
    assert tree.tree_map(operator.neg, Special(1, "static")) == Special(-1, "static")


def test_classes_with_keys():
    @tree.register_pytree_with_keys_class
    class WithKeys:
        def __init__(self, *xs):
            self.xs = xs

        def tree_flatten_with_keys(self):
            return [(tree.GetAttrKey(f"x{i}"), x) for i, x in enumerate(self.xs)], None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    assert tree.leaves(WithKeys(1, (2, 3))) == [1, 2, 3]
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(WithKeys(1, (2, 3)))] == [
        ".x0",
        ".x1[0]",
        ".x1[1]",
    ]
    assert tree.tree_map(operator.neg, WithKeys(1, 2)).xs == (-1, -2)

    @tree.register_pytree_with_keys_class
    class Faster(WithKeys):
        def tree_flatten(self):
            return self.xs, None

        def tree_flatten_with_keys(self):
            raise AssertionError("keys are computed only when they are asked for")

    assert tree.leaves(Faster(1, 2)) == [1, 2]


def test_static_classes():
    @tree.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert tree.flatten((Mode("a"), 1))[0] == [1]
    assert tree.structure(Mode("a")) == tree.structure(Mode("a")) != tree.structure(Mode("b"))
    assert tree.tree_map(operator.neg, [Mode("a"), 1]) == [Mode("a"), -1]


def test_dataclasses():
    @tree.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: int
        bias: int
        name: str = pullback.tree.static(default="layer", metadata={"doc": "its name"})
        cached: int = dataclasses.field(init=False, default=7)

    layer = Layer(1, (2, 3), "first")
    assert tree.leaves(layer) == [1, 2, 3]
    assert tree.tree_map(operator.neg, layer) == Layer(-1, (-2, -3), "first")
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(layer)] == [
        ".weight",
        ".bias[0]",
        ".bias[1]",
    ]
    assert tree.structure(layer) != tree.structure(Layer(1, (2, 3), "second"))
    assert dataclasses.fields(Layer)[2].metadata == {"doc": "its name", "static": True}
    assert not pullback.tree.static(metadata={"static": False}).metadata["static"]
    assert pickle.loads(pickle.dumps(tree.structure({"a": 1}))) == tree.structure({"a": 1})


def test_dataclasses_with_given_fields():
    @functools.partial(tree.register_dataclass, data_fields=["x"], meta_fields=[], drop_fields=["y"])
    @dataclasses.dataclass
    class Dropped:
        x: int
        y: int = 5

    assert tree.tree_map(operator.neg, Dropped(1, 2)) == Dropped(-1, 5)

    class Plain:
        def __init__(self, *, x, kind):
            self.x, self.kind = x, kind

    tree.register_dataclass(Plain, ["x"], ["kind"])
    assert tree.tree_map(operator.neg, Plain(x=1, kind="k")).x == -1

    @tree.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Empty:
        pass

    assert tree.flatten(Empty())[0] == []


def test_dataclasses_with_wrong_fields():
    @dataclasses.dataclass
    class Layer:
        x: int
        y: int

    with pytest.raises(TypeError, match=r"needs both data_fields and meta_fields of .*Layer"):
        tree.register_dataclass(Layer, ["x"])
    with pytest.raises(ValueError, match="missing: y"):
        tree.register_dataclass(Layer, ["x"], [])
    with pytest.raises(ValueError, match="not fields: z"):
        tree.register_dataclass(Layer, ["x", "y"], ["z"])
    with pytest.raises(ValueError, match=r"data_fields and meta_fields contain fields of .* twice: x"):
        tree.register_dataclass(Layer, ["x", "y"], ["x"])
    with pytest.raises(TypeError, match="int is not a dataclass"):
        tree.register_dataclass(int)


def test_partial():
    add = tree.Partial(operator.add, 1)
    assert add(2) == 3
    assert tree.leaves(tree.Partial(max, 1, (2, 3), key=4)) == [1, 2, 3, 4]
    assert tree.tree_map(lambda x: 10 * x, add)(2) == 12
    assert isinstance(tree.tree_map(lambda x: x, add), tree.Partial)
    assert tree.structure(add) == tree.structure(tree.Partial(operator.add, 5))
    assert tree.structure(add) != tree.structure(tree.Partial(operator.mul, 5))
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(tree.Partial(max, 1, key=4))] == [
        ".args[0]",
        ".keywords['key']",
    ]
    assert pickle.loads(pickle.dumps(add))(2) == 3


@pytest.mark.parametrize("inner", [functools.partial(max, 1), tree.Partial(max, 1)])
def test_the_arguments_of_an_inner_partial_are_part_of_the_function(inner):
    outer = tree.Partial(inner, 2, 3)
    assert tree.leaves(outer) == [2, 3]
    assert outer() == 3
    mapped = tree.tree_map(operator.neg, outer)
    assert mapped() == 1
    assert tree.structure(mapped) == tree.structure(outer) == tree.structure(tree.Partial(inner, 4, 5))
    assert hash(tree.structure(mapped)) == hash(tree.structure(outer))
    assert repr(outer.func) == repr(inner)


# Structures, faces, and the import of optree


def test_structures():
    parts = [tree.structure(1), tree.structure({"a": (2, 3)}), tree.structure(Pair(1, 2))]
    whole = tree.structure((1, {"a": (2, 3)}, Pair(1, 2)))
    assert tree.treedef_tuple(parts) == whole
    assert hash(tree.treedef_tuple(parts)) == hash(whole)
    assert tree.treedef_children(whole) == parts
    nodes = [tree.structure(x) for x in (1, None, (), [1])]
    assert [tree.treedef_is_leaf(treedef) for treedef in nodes] == [True, True, True, False]
    assert isinstance(whole, tree.PyTreeDef)
    assert isinstance(whole, pullback.tree_util.PyTreeDef)


@pytest.mark.parametrize("face", [pullback.tree, pullback.tree_util])
def test_faces_have_their_names(face):
    for name in face.__all__:
        assert getattr(face, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        face.foo  # noqa: B018


def test_trees_of_one_leaf_do_not_import_optree():
    program = (
        "import sys, threading\n"
        "from pullback.core import tree\n"
        "tree.register_static(type('A', (), {}))\n"
        "assert tree.tree_map(abs, -1) == 1 and float in tree.leaf_types\n"
        "assert 'optree' not in sys.modules\n"
        "threads = [threading.Thread(target=tree.flatten, args=({'a': [1, 2]},)) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert tree.leaves({'a': [1, 2]}) == [1, 2] and 'optree' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_classes_may_be_registered_from_several_threads():
    classes = [type(f"C{i}", (), {}) for i in range(20)]
    threads = [threading.Thread(target=tree.register_static, args=(cls,)) for cls in classes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.leaves([cls() for cls in classes]) == []


def test_without_the_native_function_the_public_one_serves(monkeypatch):
    class Public:
        tree_flatten = staticmethod(optree.tree_flatten)

    monkeypatch.setattr(tree_nodes, "_modules", [Public])
    flatten = tree_nodes.native_flatten.__wrapped__()
    assert flatten((1, {"a": 2}), None, False, tree_nodes.NAMESPACE)[0] == [1, 2]


class _Name(str):
    __slots__ = ()


def _orders(x):
    """The keys of all dictionaries of a tree, in their orders."""
    if isinstance(x, dict):
        return [list(x), *[_orders(child) for child in x.values()]]
    return [_orders(child) for child in x] if isinstance(x, (tuple, list)) else None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"b": 1.0, "a": 2.0}, {"a": 2.0, "b": 1.0}),
        ({"b": 1.0, "a": {2: 0.5, 1: 0.25}}, {"a": {1: 0.25, 2: 0.5}, "b": 1.0}),
        ([({"b": 1.0, "a": 2.0},), 3.0], [({"a": 2.0, "b": 1.0},), 3.0]),
        (collections.defaultdict(int, b=1.0, a=2.0), collections.defaultdict(int, a=2.0, b=1.0)),
        (collections.OrderedDict(b=1.0, a=2.0), collections.OrderedDict(b=1.0, a=2.0)),
    ],
)
def test_dictionaries_are_built_in_the_order_of_their_keys(given, expected):
    same = lambda x: x
    for found in (
        tree.tree_map(same, given),
        tree.unflatten(tree.structure(given), tree.leaves(given)),
        pullback.tree.map(lambda x, _: x, given, given),
        pullback.grad(lambda t: sum(tree.leaves(t)))(given),
        pullback.jit(same)(given),
        pickle.loads(pickle.dumps(tree.structure(given))).unflatten(tree.leaves(given)),
    ):
        assert _orders(found) == _orders(expected)
        assert type(found) is type(given)
    assert tree.structure(given) == tree.structure(expected)
    assert hash(tree.structure(given)) == hash(tree.structure(expected))


def test_keys_that_are_equal_stay_what_they_are():
    for first, second in (({"b": 1, "a": 2}, {_Name("b"): 1, _Name("a"): 2}), ({2: 1, 1: 2}, {2.0: 1, True: 2})):
        assert list(map(type, tree.tree_map(lambda x: x, first))) == list(map(type, sorted(first)))
        assert list(map(type, tree.tree_map(lambda x: x, second))) == list(map(type, sorted(second)))


@pytest.mark.parametrize(("before", "after"), [("", ""), ("import optree", ""), ("", "import optree")])
@pytest.mark.parametrize("early", [False, True])
def test_trees_are_whole_in_functions_at_exit(early: bool, before: str, after: str) -> None:
    """Those of the user's that were registered before the first tree run after those of the library beneath."""
    code = f"""
import atexit
{before}
def last():
    print(pullback.tree.leaves({{"a": 1, "b": [2, (3,)]}}), pullback.jit(lambda d: d["a"] + 1)({{"a": 1}}))
atexit.register(last)
{after}
import pullback
pullback.grad(lambda d: d["a"])({{"a": 1.0}})
if {early}:
    atexit._run_exitfuncs()
    last()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == (1 + early) * "[1, 2, 3] 2\n"
    assert done.stderr == ""


def test_exit_handlers_of_other_libraries_stay() -> None:
    from contourpy import _contourpy

    module = tree_nodes.optree()._C
    of_optree = tree_nodes._FunctionsOf(module.flatten)
    assert of_optree == module.unregister_node
    others = (_contourpy.max_threads, len, math.sqrt, print, _Name, lambda: None)
    assert type(_contourpy.max_threads.__self__).__name__ == type(module.flatten.__self__).__name__  # pybind11, too
    assert not any(of_optree == function for function in others)
    assert tree_nodes._FunctionsOf(_Name) != _Name  # where optree has no functions in C


class _Data:
    """Something large that a user's node carries."""


class _Carrier:
    def __init__(self, child, data):
        self.child, self.data = child, data


pullback.tree_util.register_pytree_node(_Carrier, lambda x: ((x.child,), x.data), lambda data, xs: _Carrier(*xs, data))


@pytest.mark.parametrize("child", [1.0, {"b": 1.0, "a": 2.0}])
def test_what_a_node_carries_does_not_live_longer_for_its_structure(child):
    data = _Data()
    gone = weakref.ref(data)
    assert tree.tree_map(lambda x: x, [_Carrier(child, data)])[0].data is data
    del data
    gc.collect()
    assert gone() is None
