"""Bodies and branches are traced once for a function and types, and never used with what has changed since."""

import functools
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import clear_caches, enable_x64, freeze, grad, jit, lax, new_ref, vmap
from pullback.control.kept_bodies import bound_by
from pullback.core.errors import RefError

XS = jnp.arange(1.0, 4.0)


class Count:
    """How often a function was traced."""

    def __init__(self) -> None:
        self.times = 0

    def tick(self) -> None:
        self.times += 1


def loops(count: Count) -> dict[str, Any]:
    """Calls without arguments, by name, whose bodies are always the same functions, with their results."""

    def step(carry: Any, x: Any) -> Any:
        count.tick()
        return carry + x, carry * x

    def advance(i: Any, carry: Any) -> Any:
        count.tick()
        return carry + i

    def double(x: Any) -> Any:
        count.tick()
        return 2 * x

    def small(x: Any) -> Any:
        return x < 20.0

    one = jnp.float32(1.0)
    return {
        "scan": (lambda: lax.scan(step, one, XS)[0], 7.0),
        "map": (lambda: lax.map(double, XS)[2], 6.0),
        "fori_loop": (lambda: lax.fori_loop(0, 3, advance, one), 4.0),
        "while_loop": (lambda: lax.while_loop(small, double, one), 32.0),
    }


@pytest.mark.parametrize("name", ["scan", "map", "fori_loop", "while_loop"])
def test_a_body_is_traced_once(name: str) -> None:
    count = Count()
    run, expected = loops(count)[name]
    for _ in range(3):
        assert float(run()) == expected
    assert count.times == 1


@pytest.mark.parametrize("name", ["scan", "map", "fori_loop"])
def test_a_body_is_traced_once_under_grad(name: str) -> None:
    count = Count()
    run, _ = loops(count)[name]
    run()
    for _ in range(3):
        grad(lambda x: x * run())(2.0)
    assert count.times == 1


def test_a_branch_is_traced_once_within_programs() -> None:
    count = Count()

    def double(x: Any) -> Any:
        count.tick()
        return 2 * x

    for _ in range(3):  # each a new program
        assert float(jit(lambda p, x: lax.cond(p, double, lambda x: x, x))(True, 3.0)) == 6.0
    assert count.times == 1


def test_other_types_trees_and_switches_are_traced() -> None:
    count = Count()

    def step(carry: Any, x: Any) -> Any:
        count.tick()
        return carry, x

    lax.scan(step, jnp.float32(1), XS)
    assert count.times == 1
    lax.scan(step, jnp.ones(2), XS)
    assert count.times == 2
    lax.scan(step, jnp.float32(1), (XS,))
    assert count.times == 3
    lax.scan(step, jnp.float32(1), XS, reverse=True)
    lax.scan(step, jnp.float32(1), XS[:2])
    assert count.times == 3
    with enable_x64():
        lax.scan(step, jnp.float32(1), XS)
    assert count.times == 4


# What has changed since -----------------------------------------------------------------------------------------------

factor: Any = 1.0
factors = {"a": [1.0]}


def by_global(carry: Any, x: Any) -> Any:
    return carry + factor * x, None


def by_element_of_global(carry: Any, x: Any) -> Any:
    return carry + factors["a"][0] * x, None


def total(step: Any) -> float:
    """The sum that a step of a scan makes of 1, 2 and 3."""
    return float(lax.scan(step, jnp.float32(0), XS)[0])


def test_a_global_that_is_bound_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert total(by_global) == 6.0
    monkeypatch.setitem(globals(), "factor", jnp.float32(2.0))
    assert total(by_global) == 12.0
    monkeypatch.setitem(factors, "a", [3.0])
    assert total(by_element_of_global) == 18.0
    factors["a"][0] = 4.0
    assert total(by_element_of_global) == 24.0


def test_an_array_of_numpy_that_changes_in_place() -> None:
    weights = np.array([1.0, 2.0], np.float32)
    held = [weights]

    def directly(carry: Any, x: Any) -> Any:
        return carry + x * weights.sum(), None

    def within(carry: Any, x: Any) -> Any:
        return carry + x * jnp.sum(held[0]), None

    for step in (directly, within):
        weights[0] = 1.0
        assert total(step) == 18.0
        weights[0] = 2.0
        assert total(step) == 24.0


@given(
    st.lists(st.tuples(st.sampled_from(["cell", "list", "dict", "default", "attribute", "inner"]), st.integers(-3, 3)))
)
def test_what_a_body_reads_is_never_stale(changes: list[tuple[str, int]]) -> None:
    cell, items, table = 1, [1], {"k": 1}

    class Body:
        scale = 1

        def __init__(self) -> None:
            self.scale = 1

        def __call__(self, carry: Any, x: Any) -> Any:
            return carry + x * self.scale, None

    inner = 1

    def helper(x: Any) -> Any:
        return x * inner

    def step(carry: Any, x: Any, default: Any = 1) -> Any:
        return carry + helper(x) * cell * items[0] * table["k"] * default, None

    body, default = Body(), 1
    for name, value in [("cell", 1), *changes]:
        match name:
            case "cell":
                cell = value
            case "list":
                items[0] = value
            case "dict":
                table["k"] = value
            case "inner":
                inner = value
            case "default":
                default = value
                step.__defaults__ = (value,)
            case "attribute":
                body.scale = value
        assert total(step) == 6 * cell * items[0] * table["k"] * default * inner
        assert total(body) == 6 * body.scale


def test_a_bound_method_sees_its_object() -> None:
    class Model:
        scale = 1.0

        def step(self, carry: Any, x: Any) -> Any:
            return carry + self.scale * x, None

    model = Model()
    assert total(model.step) == 6.0
    model.scale = 2.0
    assert total(model.step) == 12.0


def test_traced_values_are_not_kept() -> None:
    held: list[Any] = [None]

    def step(carry: Any, x: Any) -> Any:
        return carry + held[0] * x, None

    def f(y: Any) -> Any:
        held[0] = y
        return lax.scan(step, jnp.float32(0), XS)[0] * y

    for y in (2.0, 3.0):
        assert float(f(y)) == 6 * y**2
        assert float(grad(f)(y)) == 12 * y
        assert float(jit(f)(y)) == 6 * y**2
        assert float(jit(grad(grad(f)))(y)) == 12.0
        np.testing.assert_array_equal(vmap(grad(f))(jnp.array([y, 1.0])), [12 * y, 12])


class Holder:
    """An object whose attributes are not looked into."""

    value: Any = None


def test_traced_values_within_objects_are_not_kept() -> None:
    holder, refs = Holder(), Holder()

    def step(carry: Any, x: Any) -> Any:
        return carry + holder.value * x, None

    def counting(carry: Any, x: Any) -> Any:
        refs.value[...] += x
        return carry, None

    def f(y: Any) -> Any:
        holder.value, refs.value = y, new_ref(y)
        lax.scan(counting, None, XS)
        return lax.scan(step, jnp.float32(0), XS)[0] * y + refs.value[...] ** 2

    for y in (2.0, 3.0):
        assert float(grad(f)(y)) == float(jit(grad(f))(y)) == 12 * y + 2 * (y + 6)
        assert float(jit(f)(y)) == float(vmap(f)(jnp.array([y]))[0]) == 6 * y**2 + (y + 6) ** 2


def test_references_are_read_and_written_in_each_call() -> None:
    scale, seen = new_ref(2.0), new_ref(0.0)

    def step(carry: Any, x: Any) -> Any:
        seen[...] += x
        return carry + scale[...] * x, None

    assert total(step) == 12.0
    scale[...] = 3.0
    assert total(step) == 18.0
    assert float(seen[...]) == 12.0
    freeze(scale)
    with pytest.raises(RefError, match="frozen"):
        total(step)


def test_a_reference_of_a_transformation_is_not_kept() -> None:
    held: list[Any] = [None]

    def step(carry: Any, x: Any) -> Any:
        held[0][...] += x
        return carry, None

    def f(y: Any) -> Any:
        held[0] = new_ref(y)
        lax.scan(step, None, XS)
        return held[0][...] ** 2

    for y in (1.0, 2.0):
        assert float(grad(f)(y)) == float(jit(grad(f))(y)) == 2 * (y + 6)


# How long -------------------------------------------------------------------------------------------------------------


def test_programs_end_with_their_functions() -> None:
    array = jnp.ones(100)

    def make() -> Any:
        big = array + 1

        def step(carry: Any, x: Any) -> Any:
            return carry + jnp.sum(big) * x + (step is None), None

        assert total(step) == 1200.0
        return weakref.ref(step)

    step = make()
    gc.collect()
    assert step() is None


def test_cleared_caches_keep_nothing() -> None:
    count = Count()
    run, _ = loops(count)["scan"]
    run()
    clear_caches()
    run()
    assert count.times == 2


def test_a_wrapper_has_programs_of_its_own() -> None:
    def step(carry: Any, x: Any) -> Any:
        return carry + x, None

    assert total(step) == 6.0

    @functools.wraps(step)
    def doubled(carry: Any, x: Any) -> Any:
        return step(carry, 2 * x)

    assert total(doubled) == 12.0


def test_functions_that_read_much_are_not_kept() -> None:
    table = dict.fromkeys(range(300), 1.0)
    assert bound_by(lambda: table) is None
    assert bound_by(lambda: np.ones(2)) is not None
    array = np.ones(2)
    assert bound_by(lambda: array) is None
