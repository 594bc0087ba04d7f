"""Mutable values of users' types as arguments of compiled functions: they get the new arrays and the new structure."""

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
