"""Calls by the module in C: the results, errors and deleted arrays of calls by Python, and no reference is lost."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import errors, jit, tree_util
from pullback.core.array import DeletedArray
from pullback.core.config import override
from pullback.transforms.jit import call_operands
from pullback.transforms.jit.jit import JitFunction, quick
from tests.helpers import assert_elements_close

pytestmark = pytest.mark.skipif(quick is None, reason="the module in C is not installed")
BY_PYTHON = JitFunction._call_by_python


def on_device(*values: Any) -> Any:
    return jit(lambda *xs: [2 * x for x in xs])(*map(jnp.asarray, values))


x, y = on_device(np.float32([1, 2, 3]), np.float32([0.5, -1, 4]))
n = on_device(np.int32([1, 2]))[0]


def left_to_python(call: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """How many calls of compiled functions the module leaves to Python."""
    count = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is BY_PYTHON.__code__

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call(*args, **kwargs)
    finally:
        sys.setprofile(before)
    return count


def nested(tree: Any) -> Any:
    return {"rest": [v + 1 for v in tree["rest"]], "pair": (tree["pair"][0] * 2, None, {"n": tree["pair"][1]["n"] + 1})}


TREE = {"rest": [x, y, x], "pair": (y, {"n": n})}
QUICK: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "one array": (lambda a: a + 1, (x,), {}),
    "no array": (lambda: jnp.ones(3), (), {}),
    "no result": (lambda a: (), (x,), {}),
    "two": (lambda a, b: (a * b, a - b), (x, y), {}),
    "keywords": (lambda a, *, b: a * b, (x,), {"b": y}),
    "a tree": (nested, (TREE,), {}),
    "captured": (lambda a: a + jnp.asarray(np.arange(300.0, dtype="f4"))[:3], (x,), {}),
    "unused": (lambda a, b, c: a * c, (x, n, y), {}),
    "an unused number": (lambda a, b: a * 2, (x, 0.5), {}),
    "handed through": (lambda a, b: (b, a + 1, a), (x, y), {}),
    "only handed through": (lambda a, b: b, (x, y), {}),
    "unused and captured": (lambda a, b: a + jnp.asarray(np.arange(300.0, dtype="f4"))[:3], (x, n), {}),
    "float": (lambda a, b: a * b, (x, 0.5), {}),
    "zero": (lambda a, b: a / b, (x, 0.0), {}),
    "int": (lambda a, b: a * b, (x, 3), {}),
    "bool": (lambda a, b: a * b, (x, True), {}),
    "numbers in a tree": (lambda t, b: {k: v * b for k, v in t.items()}, ({"a": x, "b": 2},), {"b": 1.5}),
    "scalars": (lambda a, b, c: (a * b, ~c), (np.float32(2), np.int32(3), np.bool_(True)), {}),
    "64 bits": (lambda a, b: (a * b, b + 1), (np.float64(0.1), np.int64(3)), {}),
    "NumPy": (lambda a, b: a * b, (x, np.float32([1, 2, 3])), {}),
    "NumPy of 64 bits": (lambda a, b: a * b, (x, np.arange(3.0)), {}),
    "NumPy without axes": (lambda a: a * 2, (np.array(3, np.int16),), {}),
    "NumPy by columns": (lambda a: a * 2, (np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)),), {}),
    "NumPy of nothing": (lambda a: a * 2, (np.ones((0, 3), np.complex64),), {}),
}  # fmt: skip
SLOW: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "minus zero": (lambda a, b: a / b, (x, -0.0), {}),
    "NaN": (lambda a, b: a / b, (x, np.float32("nan")), {}),
    "complex": (lambda a, b: a / b, (x, 1j), {}),
    "a number handed through": (lambda a, b: (b, a + 1), (x, 2.5), {}),
    "NumPy handed through": (lambda a, b: (b, a + 1), (x, np.float32([1, 2])), {}),
    "a dictionary that is no tree of the runtime": (lambda t: t[1] * t["a"], ({1: x, "a": y},), {}),
    "bfloat16": (lambda a: a * 2, (np.ones(3, jnp.bfloat16),), {}),
    "a list of numbers": (lambda a, b: a * b[0], (x, [2]), {}),
}


def descriptions(out: Any) -> Any:
    leaves, treedef = pullback.tree.flatten(out)
    return treedef, [(type(v), v.dtype, v.shape, v.weak_type, v.committed) for v in leaves]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_both_ways_return_the_same(name: str) -> None:
    function, args, kwargs = {**QUICK, **SLOW}[name]
    compiled = jit(function)
    with np.errstate(all="ignore"):
        expected = BY_PYTHON(compiled, *args, **kwargs)
        for _ in range(3):
            out, by_python = compiled(*args, **kwargs), BY_PYTHON(compiled, *args, **kwargs)
            assert descriptions(out) == descriptions(by_python) == descriptions(expected)
            assert_elements_close(out, expected, rtol=0)
            assert_elements_close(by_python, expected, rtol=0)
    assert compiled._cache_size() == 1


@pytest.mark.parametrize("name", QUICK)
def test_what_goes_the_quick_way(name: str) -> None:
    function, args, kwargs = QUICK[name]
    compiled = jit(function)
    for _ in range(2):  # to compile the program, and to put what is not on the device there
        compiled(*args, **kwargs)
    assert left_to_python(compiled, *args, **kwargs) == 0


def test_numbers_and_arrays_that_change() -> None:
    times = jit(lambda a, b: a * b)
    times(x, 1.0), times(x, 1), times(x, y), times(x, np.float32([1, 2, 3]))
    for k in range(2 * call_operands._MOST_NUMBERS):
        assert left_to_python(times, x, k + 0.5) == 0
        assert times(x, k)[0] == 2 * k
    assert len(call_operands.numbers) <= call_operands._MOST_NUMBERS
    values = np.float32([1, 2, 3])
    out = times(x, values)
    values[:] = 0
    np.testing.assert_array_equal(out, [2, 8, 18])
    for zero in (0.0, -0.0, 0.0, -0.0):
        np.testing.assert_array_equal(np.signbit(times(x, zero)), np.signbit(2 * zero))


def test_switches_count() -> None:
    third = jit(lambda a: jnp.asarray(a) / 3)
    for value in (0.1, np.float64(0.1), np.arange(2.0)):
        for _ in range(3):
            assert third(value).dtype == np.float32
            with pullback.enable_x64():
                assert third(value).dtype == np.float64
    with pullback.disable_jit():
        assert left_to_python(third, 0.1) == 1
    with override("transfer_guard_host_to_device", "disallow"):
        for value in (0.1, np.arange(2.0)):
            with pytest.raises(errors.TransferGuardError):
                third(value)
        third(x)


def test_within_transformations() -> None:
    square = jit(lambda a: a * a)
    square(x), square(1.0)
    assert pullback.grad(square)(3.0) == 6
    np.testing.assert_array_equal(pullback.vmap(square)(x), x * x)
    np.testing.assert_array_equal(jit(lambda a: square(a) + 1)(x), x * x + 1)
    seen = []
    pullback.vmap(lambda a: seen.append(square(x)) or a)(y)  # an array that is not mapped
    np.testing.assert_array_equal(seen[0], x * x)


# Errors --------------------------------------------------------------------------------------------------------------


def raised(call: Callable[..., Any], *args: Any) -> Any:
    try:
        call(*args)
    except BaseException as error:
        return type(error), str(error), error.__cause__, error.__suppress_context__
    raise AssertionError("no error was raised")


def both(compiled: Any, *args: Any) -> Any:
    found = raised(compiled, *args)
    assert found == raised(partial(BY_PYTHON, compiled), *args)
    return found


def entry_of(compiled: Any) -> Any:
    (entry,) = compiled._compiled.values()
    return entry


def test_errors_of_the_runtime() -> None:
    from jaxlib import _jax

    compiled = jit(lambda a: a + 1)
    compiled(x)
    for error, kind in ((_jax.JaxRuntimeError("INTERNAL: no"), errors.ExecutionError), (KeyError(3), KeyError)):

        def fails(buffers: Any, error: Exception = error) -> Any:
            raise error

        entry_of(compiled).execute = fails
        assert both(compiled, x)[0] is kind
    entry_of(compiled).execute = lambda buffers: sys.exit(5)
    assert both(compiled, x)[0] is SystemExit


def test_errors_end_at_the_users_line() -> None:
    compiled = jit(lambda a, b: a + b)
    compiled(x, x)
    with pytest.raises(errors.ShapeError) as info:
        compiled(x, n)
    assert info.traceback[-1].path.name == "test_quick.py"
    for wrong in ("text", None, [1, "a"], 2**70):
        both(compiled, x, wrong)


def test_errors_of_nodes() -> None:
    class Node:
        problem: BaseException | None = None

    def flatten(node: Node) -> Any:
        if node.problem is not None:
            raise node.problem
        return (x,), None

    def unflatten(_: Any, children: Any) -> Any:
        if unflatten.fails:  # type: ignore[attr-defined]
            raise ValueError("it cannot be made")
        return Node()

    unflatten.fails = False  # type: ignore[attr-defined]
    pullback.tree_util.register_pytree_node(Node, flatten, unflatten)
    compiled, node = jit(lambda node: node), Node()
    for _ in range(2):
        compiled(node)
    for problem in (AttributeError("missing"), KeyError("a"), ZeroDivisionError(), KeyboardInterrupt(), SystemExit(3)):
        node.problem = problem
        assert both(compiled, node)[0] is type(problem)
    unflatten.fails = True  # type: ignore[attr-defined]
    node.problem = None
    made = jit(lambda a, node: (a + 1, node))
    assert both(made, x, node)[:2] == (ValueError, "it cannot be made")


def test_deleted_arrays() -> None:
    compiled, trees = jit(lambda a: a + 1), jit(lambda t: [v + 1 for v in t])
    kept, gone = on_device(np.float32([1, 2, 3]), np.float32([1, 2, 3]))
    compiled(gone), trees([kept, gone])
    gone.delete()
    assert both(compiled, gone)[0] is errors.DeletedArrayError
    assert both(trees, [kept, gone])[0] is errors.DeletedArrayError
    compiled(kept)


# Donation ------------------------------------------------------------------------------------------------------------


def test_donation() -> None:
    step = jit(lambda p, a: {k: v + a for k, v in p.items()}, donate_argnums=0)
    p = dict(zip("ab", on_device(np.float32([1, 2, 3]), np.float32([4, 5, 6])), strict=True))
    p = step(step(p, y), y)
    view = np.asarray(p["a"])  # shares the memory
    expected = view + y
    assert left_to_python(lambda: globals().update(_out=step(p, y))) == 0
    assert type(p["a"]) is type(p["b"]) is DeletedArray
    np.testing.assert_array_equal(globals().pop("_out")["a"], expected)
    assert type(y) is not DeletedArray
    assert both(step, p, y)[0] is errors.DeletedArrayError
    with pytest.raises(errors.DeletedArrayError):
        np.asarray(p["a"])


def test_donation_of_memory_that_is_shared_or_occurs_twice() -> None:
    step = jit(lambda a, b: (a + b, b), donate_argnums=0)
    plain = jit(lambda a, b: a + b, donate_argnums=0)
    (a, b) = on_device(np.float32([1, 2, 3]), np.float32([1, 2, 3]))
    plain(a, b)
    for call in (plain, partial(BY_PYTHON, plain), lambda *args: step(*args)[0]):
        a, b = on_device(np.float32([1, 2, 3]), np.float32([1, 2, 3]))
        copied = jnp.copy(a)
        np.testing.assert_array_equal(call(a, b), [4, 8, 12])
        np.testing.assert_array_equal(copied, [2, 4, 6])
        assert a.is_deleted()
        np.testing.assert_array_equal(call(b, b), [4, 8, 12])
        assert b.is_deleted()
    twice = jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))
    twice(*on_device(np.float32([1, 2, 3]), np.float32([1, 2, 3])))
    assert both(twice, x, x)[0] is errors.ArgumentError
    np.testing.assert_array_equal(x, [2, 4, 6])


def test_an_error_deletes_nothing() -> None:
    compiled = jit(lambda a: a + 1, donate_argnums=0)
    (a,) = on_device(np.float32([1, 2, 3]))
    entry_of_it = (compiled(on_device(np.float32([1, 2, 3]))[0]), entry_of(compiled))[1]
    execute, entry_of_it.execute = entry_of_it.execute, lambda buffers: int("no number")
    assert both(compiled, a)[0] is ValueError
    entry_of_it.execute = execute
    np.testing.assert_array_equal(a, [2, 4, 6])


# References and threads ----------------------------------------------------------------------------------------------


def loops(count: int) -> Iterator[Callable[[], Any]]:
    """Calls of each way through the module, ``count`` times."""
    one, tree, named = jit(lambda a: a + 1), jit(nested), jit(lambda a, *, b: a * b)
    values, number = np.float32([1, 2, 3]), 1234.5
    step = jit(lambda p: [v + 1 for v in p], donate_argnums=0)
    failing = jit(lambda a: a - 1)
    failing(x)
    entry_of(failing).execute = entry_of(failing).start = lambda buffers: int("no number")

    def donated() -> None:
        p = on_device(values, values)
        for _ in range(count // 4):
            p = step(p)

    def fails() -> None:
        for _ in range(count // 20):
            with pytest.raises(ValueError, match="invalid literal"):
                failing(x)

    yield lambda: [one(x) for _ in range(count)] and None
    yield lambda: [tree(TREE) for _ in range(count // 4)] and None
    yield lambda: [named(x, b=number) for _ in range(count // 2)] and None
    yield lambda: [named(x, b=values) for _ in range(count // 4)] and None
    yield lambda: [named(x, b=[]) if k < 0 else named(x, b=k + 0.5) for k in range(count // 20)] and None
    yield donated
    yield fails


def references() -> list[int]:
    """How often each object is referred to that a call could lose or keep."""
    gc.collect()
    sig, context = x._signature, pullback.config.trace_context
    found: list[Any] = [x, y, n, x._buffer, sig, sig.aval, sig.absent, context, TREE, type(x), DeletedArray, float]
    found += [np.dtype("f4"), np.ndarray, call_operands.numbers, call_operands.copiers, n._signature, n._buffer]
    return [sys.getrefcount(each) for each in found] + [len(gc.get_objects())]


@pytest.mark.slow
@pytest.mark.parametrize("way", range(7))
def test_no_reference_is_lost_or_kept_in_100_000_calls(way: int) -> None:
    first = list(loops(6000))[way]
    first()
    first()  # numbers that come again are kept: they fill their cache
    many = list(loops(100_000))[way]
    before = references()
    many()
    more = [a - b for a, b in zip(references(), before, strict=True)]
    assert max(more) < 100
    # The last is the number of all objects. Some are of other tests, and refer to what is shared, such as dtypes.
    assert min(more[:4]) > -100
    assert min(more[:-1]) > -4500


def test_a_call_in_1024_frees_garbage_of_the_runtime() -> None:
    compiled, count = jit(lambda a: a + 1), 0
    compiled(x)
    start = entry_of(compiled).start

    def counted(buffers: Any) -> Any:
        nonlocal count
        count += 1
        return start(buffers)

    entry_of(compiled).start = counted
    for _ in range(4096):
        out = compiled(x)
    assert count == 4
    np.testing.assert_array_equal(out, x + 1)


def test_functions_are_freed() -> None:
    def function(a: Any) -> Any:
        return [v + 1 for v in a]

    compiled = jit(function)
    for _ in range(3):
        compiled([x])
    compiled.itself = compiled  # type: ignore[attr-defined]
    dead = weakref.ref(compiled)
    del compiled, function
    gc.collect()
    assert dead() is None


def test_threads() -> None:
    times, step = jit(lambda a, b: [a * b, b]), jit(lambda p: p + 1, donate_argnums=0)
    times(x, 1.0), step(*on_device(np.float32([1, 2, 3])))
    problems: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            mine = on_device(np.float32([seed, 1]))[0]
            p = on_device(np.float32([seed, 1]))[0]
            for k in range(300):
                assert times(mine, k + 0.5)[0][0] == 2 * seed * (k + 0.5)
                assert times(mine, np.float32([k, 1]))[0][0] == 2 * seed * k
                p = step(p)
            assert p[0] == 2 * seed + 300
        except BaseException as error:
            problems.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not problems


def test_configuration_is_checked() -> None:
    with pytest.raises(TypeError, match="python_call is missing"):
        quick.configure()  # type: ignore[call-arg]


def test_without_the_module() -> None:
    program = """
import sys
sys.modules["pullback.transforms.jit.quick"] = None
import numpy as np, pullback, pullback.numpy as jnp
from pullback.transforms.jit import jit
assert jit.quick is None
f = pullback.jit(lambda t, b: {k: v * b for k, v in t.items()})
for b in (2.0, 2.0, 2.0, np.float64(2), np.ones(3)):
    out = f({"a": jnp.ones(3)}, b=b)
print(out)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "{'a': Array([1., 1., 1.], dtype=float32)}\n"


def test_an_object_becomes_one_of_a_subclass_of_the_same_layout() -> None:
    class Base:
        __slots__ = ("__weakref__", "x")

    class Same(Base):
        __slots__ = ()

    class Larger(Base):
        __slots__ = ("y",)

    class WithDict(Base):
        pass

    class Below(Same):
        __slots__ = ()

    given = Base()
    given.x = 3
    for cls in (Base, Larger, WithDict, Below, object, dict):
        assert not quick.as_subclass(given, cls)
        assert type(given) is Base
    before = sys.getrefcount(Base), sys.getrefcount(Same)
    assert quick.as_subclass(given, Same)
    assert (sys.getrefcount(Base), sys.getrefcount(Same)) == (before[0] - 1, before[1] + 1)
    assert type(given) is Same
    assert given.x == 3
    gone = weakref.ref(given)
    del given
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(Same) == before[1]
    assert not quick.as_subclass(3, bool)
    with pytest.raises(TypeError):
        quick.as_subclass(3, 4)


def test_structures_whose_class_was_changed_are_freed() -> None:
    cls = tree_util.PyTreeDef
    before = sys.getrefcount(cls)
    made = [tree_util.tree_structure([tree_util.Partial(len, i), {2: i}]) for i in range(1000)]
    assert sys.getrefcount(cls) >= before + 1000
    del made
    gc.collect()
    assert abs(sys.getrefcount(cls) - before) < 10
