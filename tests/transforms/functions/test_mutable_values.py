"""Mutable values of users' types as arguments of compiled functions, and closed over by loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import errors, eval_shape, grad, jit, lax
from pullback.compat.extras.experimental import hijax
from pullback.core import tree
from pullback.core.user_types import mutable_type, types_of_values


class Box:
    """A mutable tree of arrays."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def cur_qdd(self) -> Any:
        leaves, treedef = tree.flatten(self.content)
        return treedef, tuple(map(pullback.typeof, leaves))


class BoxType(hijax.MutableHiType):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoxType)

    def __hash__(self) -> int:
        return hash(BoxType)

    def read_loval(self, structure: Any, box: Box) -> list[Any]:
        return tree.leaves(box.content)

    def new_from_loval(self, structure: Any, *arrays: Any) -> Box:
        return Box(tree.unflatten(structure[0], arrays))

    def update_from_loval(self, structure: Any, box: Box, *arrays: Any) -> None:
        box.content = tree.unflatten(structure[0], arrays)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    hijax.register_hitype(Box, lambda x: BoxType())
    yield
    del types_of_values[Box]


def test_the_argument_has_the_new_arrays() -> None:
    count = 0

    @jit
    def step(box: Box, x: Any) -> Any:
        nonlocal count
        count += 1
        box.content = {"sum": box.content["sum"] + x, "last": x}
        return 2 * box.content["sum"]

    box = Box({"sum": jnp.zeros(2), "last": jnp.ones(2)})
    for i in range(3):
        np.testing.assert_array_equal(step(box, jnp.full(2, 3.0, "float32")), np.full(2, 6.0 * (i + 1)))
        np.testing.assert_array_equal(box.content["sum"], np.full(2, 3.0 * (i + 1)))
    np.testing.assert_array_equal(box.content["last"], [3, 3])
    assert count == 1


def test_the_structure_may_change() -> None:
    @jit
    def grow(box: Box) -> None:
        box.content = (*box.content, len(box.content) * 1.0)

    box = Box(())
    for _ in range(3):
        grow(box)
    assert [float(x) for x in box.content] == [0.0, 1.0, 2.0]


def test_arguments_in_trees_and_by_name_and_twice_and_static() -> None:
    @jit(static_argnums=0, static_argnames="scale")
    def f(n: int, boxes: Any, *, other: Box, scale: float) -> Any:
        assert boxes["a"] is other
        assert boxes["b"] is not other
        other.content = n * scale * other.content
        boxes["b"].content = boxes["b"].content + boxes["a"].content
        return boxes["b"].content

    a, b = Box(jnp.float32(2)), Box(jnp.float32(1))
    assert float(f(3, {"a": a, "b": b}, other=a, scale=0.5)) == 4.0
    assert (float(a.content), float(b.content)) == (3.0, 4.0)


def test_within_other_transformations() -> None:
    @jit
    def step(box: Box, x: Any) -> Any:
        box.content = box.content * x
        return box.content**2

    def f(x: Any) -> Any:
        box = Box(x)
        return step(box, x) + box.content

    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        assert float(g(2.0)) == 4 * 2.0**3 + 2 * 2.0
    assert float(lax.scan(lambda c, x: (c + f(x), None), 0.0, jnp.arange(3.0))[0]) == 0 + 2 + 20


def test_shardings_of_the_result() -> None:
    device = pullback.devices()[0]
    box = Box(jnp.ones(2))

    def f(box: Box, x: Any) -> Any:
        box.content = box.content + x
        return {"y": box.content}

    out = jit(f, out_shardings={"y": pullback.sharding.SingleDeviceSharding(device)})(box, 1.0)
    np.testing.assert_array_equal(out["y"], [2, 2])
    np.testing.assert_array_equal(box.content, [2, 2])


def test_shapes_are_evaluated_without_a_change() -> None:
    def f(box: Box) -> Any:
        box.content = box.content[:1]
        return box.content

    box = Box(jnp.ones((3, 2)))
    assert eval_shape(f, box).shape == (1, 2)
    assert box.content.shape == (3, 2)


def test_what_is_refused() -> None:
    box = Box(jnp.ones(2))
    with pytest.raises(errors.OperandError, match="returned a mutable value"):
        jit(lambda box: box)(box)

    def fails(box: Box) -> None:
        box.content = 2 * box.content
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        jit(fails)(box)
    np.testing.assert_array_equal(box.content, [1, 1])
    assert mutable_type(box) == BoxType()
    assert mutable_type(1.0) is None


# Closed over: operations on values, as libraries define them ----------------------------------------------------------


class _New(hijax.HiPrimitive):
    def to_lojax(self, *arrays: Any, treedef: Any) -> Box:
        return Box(tree.unflatten(treedef, arrays))


class _Get(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, box: Box) -> list[Any]:
        return tree.leaves(box.content)


class _Set(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, box: Box, *arrays: Any, treedef: Any) -> list[Any]:
        box.content = tree.unflatten(treedef, arrays)
        return []


def new(content: Any) -> Box:
    arrays, treedef = tree.flatten(content)
    return _New("new").bind(*arrays, treedef=treedef)


def get(box: Box) -> Any:
    return tree.unflatten(hijax.cur_qdd(box)[0], _Get("get").bind(box))


def put(box: Box, content: Any) -> None:
    arrays, treedef = tree.flatten(content)
    _Set("set").bind(box, *arrays, treedef=treedef)


def count(box: Box, x: Any) -> Any:
    """Add ``x``, and return how often that was done."""
    total, n = get(box)
    put(box, (total + x, n + 1))
    return get(box)[1]


def counter() -> Box:
    return new((jnp.zeros(2), jnp.float32(0)))


LOOPS = {
    "scan": lambda f: lax.scan(lambda c, x: (c + f(x), None), 0.0, jnp.arange(3.0))[0],
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, c: c + f(i * 1.0), 0.0),
    "while_loop": lambda f: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + f(c[0])), (0.0, 0.0))[1],
    "cond": lambda f: sum(lax.cond(i >= 0, f, lambda x: 0.0, i) for i in jnp.arange(3.0)),
    "jit": lambda f: sum(map(jit(f), jnp.arange(3.0))),
    "checkpoint": lambda f: sum(map(pullback.checkpoint(f), jnp.arange(3.0))),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("compiled", [False, True])
def test_loops_and_branches_change_values_from_outside(name: str, compiled: bool) -> None:
    box = counter()
    run = lambda: LOOPS[name](lambda x: count(box, x))
    for i in range(2):
        assert float(jit(run)() if compiled else run()) == sum(range(3 * i + 1, 3 * i + 4))
    np.testing.assert_array_equal(box.content[0], [6, 6])
    assert float(box.content[1]) == 6


def test_a_value_that_a_body_makes_is_new_in_each_step() -> None:
    outer = counter()

    def step(c: Any, x: Any) -> Any:
        inner = counter()
        n = lax.fori_loop(0, 3, lambda i, c: c + count(inner, x), 0.0)
        return c + n, (get(inner), count(outer, x))

    total, (inner, n) = lax.scan(step, 0.0, jnp.arange(2.0))
    assert float(total) == 2 * (1 + 2 + 3)
    np.testing.assert_array_equal(inner[1], [3, 3])
    np.testing.assert_array_equal(inner[0], [[0, 0], [3, 3]])
    np.testing.assert_array_equal(n, [1, 2])
    np.testing.assert_array_equal(outer.content[0], [1, 1])


def test_derivatives_and_batches_of_loops_over_values() -> None:
    def f(x: Any) -> Any:
        box = new(x)

        def step(c: Any, _: Any) -> Any:
            put(box, get(box) * jnp.sin(x))
            return c + get(box), None

        return lax.scan(step, 0.0, length=3)[0]

    def plain(x: Any) -> Any:
        return sum(x * jnp.sin(x) ** k for k in (1, 2, 3))

    xs = jnp.array([0.5, 2.0])
    for transform in (lambda f: f, grad, pullback.jacfwd, lambda f: grad(grad(f)), lambda f: grad(pullback.remat(f))):
        expected = [float(transform(plain)(x)) for x in xs]
        np.testing.assert_allclose([transform(f)(x) for x in xs], expected, rtol=1e-4)
        np.testing.assert_allclose(pullback.vmap(transform(f))(xs), expected, rtol=1e-4)
        np.testing.assert_allclose(jit(pullback.vmap(transform(f)))(xs), expected, rtol=1e-4)


def test_a_compiled_function_in_a_loop_takes_a_value_from_outside() -> None:
    @jit
    def step(box: Box, x: Any) -> Any:
        box.content = (box.content[0] + x, box.content[1] + 1)
        return box.content[1]

    box = counter()
    assert float(LOOPS["scan"](lambda x: step(box, x))) == 6
    np.testing.assert_array_equal(box.content[0], [3, 3])
    assert float(LOOPS["scan"](lambda x: x + len(eval_shape(step, box, x).shape))) == 3  # which changes nothing
    assert float(box.content[1]) == 3


def test_programs_refuse_another_structure_of_what_they_close_over() -> None:
    changes = {
        "structure": lambda a, n: {"a": a, "n": n},
        "number": lambda a, n: (a,),
        "shape": lambda a, n: (a[:1], n),
        "dtype": lambda a, n: (a.astype(int), n),
    }
    box = counter()
    for change in changes.values():
        with pytest.raises(errors.RefError, match="closes over a mutable Box and changes its structure"):
            LOOPS["scan"](lambda x, change=change: put(box, change(*get(box))) or x)
        assert [x.shape for x in box.content] == [(2,), ()]  # and none is traced
    weak = new(jnp.float32(0))
    LOOPS["scan"](lambda x: put(weak, jnp.where(x >= 0, 1.0, 2.0)) or x)  # a weakly typed number is converted
    assert (weak.content.dtype, weak.content.weak_type) == (jnp.float32, False)
    f = jit(lambda x: count(box, x))
    f(1.0)
    put(box, (jnp.zeros(3), jnp.float32(0)))
    with pytest.raises(errors.RefError, match=r"array 0, f32\[2\], of a mutable Box has changed .* it is f32\[3\]"):
        f(1.0)
    assert float(LOOPS["scan"](lambda x: count(box, x))) == 6  # loops are traced anew
