"""The module in C: its loops compute what host rules do, whatever the blocks and threads; wrong calls are errors."""

from __future__ import annotations

import math
import os
import shutil
import sys
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.lax as lax
import pullback.numpy as jnp
from pullback import nn
from pullback.backends.host import native, pending, rules
from pullback.core.array import ArrayImpl
from pullback.core.config import override
from tests.helpers import small_blocks

FLOATS = (np.float32, np.float64)
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -2.75, 1e-45, -1e-40, 3e38, np.inf, -np.inf, np.nan, 20.0, -87.0])

pytestmark = pytest.mark.skipif(native.loops is None, reason="the module in C is not installed")


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("cc") is None, reason="there is no compiler")
def test_the_module_is_installed_where_there_is_a_compiler() -> None:
    assert native.loops is not None


# Operations ----------------------------------------------------------------------------------------------------------

UNARY: dict[str, Any] = {
    "sign": lax.sign, "logistic": lax.logistic, "rsqrt": lax.rsqrt, "square": lax.square, "exp": lax.exp,
    "tanh": lax.tanh, "floor": lax.floor, "is_finite": lax.is_finite, "not": lambda x: ~(x < 1),
    "clamp": lambda x: lax.clamp(-1.0, x, 2.0), "clamp to 0": lambda x: lax.clamp(0.0, x, -0.0),
    "select a number": lambda x: jnp.where(x > 0, x, 0), "select of numbers": lambda x: jnp.where(x > 0, 1.0, -0.0),
    "to float64": lambda x: (x * 2).astype(np.float64), "to float32": lambda x: (x * 2).astype(np.float32),
    "to bool": lambda x: (x * 2).astype(bool), "of bool": lambda x: (x > 0).astype(np.float32),
    "copy": lambda x: lax.stop_gradient(x * 2),
    **{f"power {n}": partial(lax.integer_pow, y=n) for n in (-3, -2, -1, 2, 3, 4, 5, 7)},
}  # fmt: skip
BINARY: dict[str, Any] = {
    "max": jnp.maximum, "min": jnp.minimum, "add": jnp.add, "div": jnp.divide, "logaddexp": jnp.logaddexp,
    "hypot": jnp.hypot,
    "less": lambda x, y: x < y, "select": lambda x, y: jnp.where(x > y, x, y),
    "both": lambda x, y: (x > y) & (x != x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_loops_compute_the_bits_of_host_rules(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("by NumPy")

    monkeypatch.setattr(pending, "_evaluate_by_blocks", refuse)
    x = np.tile(EDGES, (5, 1)).astype(dtype)
    y = np.repeat(EDGES, 5).reshape(15, 5).T.copy().astype(dtype)
    both: list[Any] = [
        (x, y),
        (y, x),
        (x, y[:1, :1]),
        (x, y[:, :1]),
        (x, y[:1]),
        (y[:, :1], x),
        (x, 2.0),
        (0.0, x),
        (x, -0.0),
    ]
    function = UNARY.get(name) or BINARY[name]
    for given in both if name in BINARY else [(x,), (y,), (x[:, ::2],)]:
        arrays = [jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in given]
        with small_blocks(), override("eager_fusion", False):
            expected = np.asarray(function(*arrays))
        with small_blocks():
            held = [pending.hold(ArrayImpl(a._value, a.weak_type)) if isinstance(a, ArrayImpl) else a for a in arrays]
            got = np.asarray(function(*held))
        assert got.dtype == expected.dtype
        assert got.tobytes() == expected.tobytes(), (given, got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["max_share", "min_share"])
def test_shares_of_extremes(name: str, dtype: Any) -> None:
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(EDGES, EDGES))
    expected = getattr(rules, name)(x, y)
    out = np.empty_like(expected)
    loop = native.loops.own(f"{name} {x.dtype.char}")
    assert loop is not None
    native.loops.run((1, x.size), [x[None], y[None], out[None]], [(loop, (0, 1, 2))], 64, 2)
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(native.CHOICES.values()))
def test_choices_by_comparisons(name: str, dtype: Any) -> None:
    """With numbers, and arrays of one row of a matrix, in place of each operand."""
    compared = next(ufunc for ufunc, choice in native.CHOICES.items() if choice == name)
    loop = native.loops.own(f"{name} {np.dtype(dtype).char}")
    x, a, b = (np.resize(np.roll(EDGES, k), (3, 70)).astype(dtype) for k in range(3))
    for y in EDGES.astype(dtype).reshape(-1, 1, 1):
        for given in [
            (x, y, a, b),
            (x, y, a[:1, :1], b),
            (x, y, a, b[:1, :1]),
            (x[:, :1], y, a, b),
            (x, y, a[:, :1], y),
        ]:
            out = np.empty_like(x)
            native.loops.run(x.shape, [*given, out], [(loop, (0, 1, 2, 3, 4))], 64, 1)
            assert out.tobytes() == np.where(compared(given[0], y), given[2], given[3]).tobytes()


MASKS: list[Any] = []


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (nn.relu, 1), (nn.leaky_relu, 2), (lambda x: jnp.where(x * x > x, x, -1.0), 3),
        (lambda x: (x > 1).astype(x.dtype), 2),
        (lambda x: (MASKS.append(x > 1), jnp.where(MASKS[-1], x, -1.0))[1], 1),
    ],
    ids=["relu", "leaky_relu", "two arrays", "no choice", "a mask that stays"],
)  # fmt: skip
def test_a_choice_by_a_comparison_is_one_step(function: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def planned(*args: Any) -> native.Plan | None:
        plan = made(*args)
        counts.append(len(plan.steps) if plan is not None else 0)
        return plan

    made = native.planned
    monkeypatch.setattr(native, "planned", planned)
    x = jnp.asarray(np.linspace(-2, 3, 75, dtype=np.float32))
    with override("eager_fusion", False):
        expected = np.asarray(function(x))
    with small_blocks():
        np.testing.assert_array_equal(function(pending.hold(x)), expected)
    assert counts == [count]
    MASKS.clear()


INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["div", "rem", "floor_divide", "remainder"])
def test_division_of_integers(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of edges, which include division by zero and that of the least integer by -1."""
    monkeypatch.setattr(pending, "_evaluate_by_blocks", None)  # the module computes all
    function: Any = getattr(lax, name, None) or getattr(jnp, name)
    info = np.iinfo(dtype)
    edges = {0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.max // 2, info.max // 3, info.min}
    edges |= {-1, -2, -3, -7, info.min + 1, info.min // 2, info.min // 3} if info.min else set()
    x, y = (jnp.asarray(a.ravel()) for a in np.meshgrid(*[np.array(sorted(edges), dtype)] * 2))
    for given in [(x, y), (x, y[:1]), (x, y[1:2]), (x, y[:1] * 0), (x[:1], y), (x, x[-1]), (x[-1], y)]:
        with override("eager_fusion", False):
            expected = np.concatenate([np.asarray(function(*[_part(a, k) for a in given])) for k in range(x.size)])
        with small_blocks():
            got = function(*[pending.hold(ArrayImpl(a._value)) for a in given])
            assert got._host_value.pending is not None
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(got), expected)


def _part(x: Any, k: int) -> Any:
    """An element of a vector, or the number, in a vector."""
    return x.reshape(-1)[k % x.size][None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["logaddexp", "hypot"])
def test_many_elements_are_computed_as_few(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    few = np.concatenate([EDGES, rng.standard_normal(100), 50 * rng.standard_normal(100)]).astype(dtype)
    x, y = (a.ravel() for a in np.meshgrid(few, few))
    rule, expected = getattr(rules, name), getattr(np, name)(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    eps = np.finfo(dtype).eps
    least = eps if name == "logaddexp" else np.finfo(dtype).tiny  # the logarithm is a difference of terms near 1
    np.testing.assert_allclose(rule.of_many(x, y), expected, 4 * eps, least)
    np.testing.assert_allclose(rule(x[:10], y[:10]), expected[:10], 4 * eps)
    assert rule(np.tile(x, 2), np.float16(3).astype(dtype)).dtype == dtype


def test_operations_have_loops_where_integers_of_four_bits_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host rules of a process that has such integers are extended."""
    assert (jnp.zeros(2, jnp.int4) + 1).dtype == jnp.int4
    test_loops_compute_the_bits_of_host_rules("both", np.float32, monkeypatch)


def test_operands_of_more_than_three_axes_are_left_to_numpy() -> None:
    x, y = np.zeros((2, 3, 4, 5)), np.zeros((2, 1, 4, 1))
    described = [(x.shape, x.strides, x.dtype), (y.shape, y.strides, y.dtype)]
    assert native.planned(x.shape, ((np.add, (), x.dtype, (~0, ~1)),), tuple(described), (0,)) is None
    assert native.planned(x.shape, ((np.add, (), x.dtype, (~0, ~0)),), tuple(described[:1]), (0,)) is not None


@pytest.mark.parametrize("block", [16, 60, 1000])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((7, 1, 5), (1, 6, 5)), ((7, 1, 5), (6, 5)), ((7, 6, 1), (1, 6, 5)), ((7, 1, 1), (1, 6, 5)),
        ((7, 6, 5), (7, 1, 5)), ((7, 1), (1, 6)), ((7, 1, 6, 5), (7, 3, 1, 1)), ((1, 6, 5), (7, 1, 1)),
    ],
)  # fmt: skip
def test_three_axes(one: tuple[int, ...], other: tuple[int, ...], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation of operands that are repeated along different axes, and its reductions while it is computed."""
    monkeypatch.setattr(pending, "_evaluate_by_blocks", None)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in (one, other))
    expected = (x - y) * (x - y)
    ndim = expected.ndim
    for axes in [None, (0,), (ndim - 1,), (ndim - 2,), tuple(range(1, ndim)), tuple(range(ndim))]:
        with small_blocks(block=block):
            held = [pending.hold(jnp.asarray(a)) for a in (x, y)]
            got = held[0] - held[1]
            got = got * got if axes is None else (got * got).sum(axes)
            got = np.asarray(got)
        if axes is None:
            assert got.tobytes() == expected.tobytes()
        else:
            np.testing.assert_allclose(got, expected.sum(axes), 1e-5)


# Reductions ----------------------------------------------------------------------------------------------------------

SHAPES = ((1, 1), (1, 31), (3, 32), (3, 33), (2, 512), (2, 513), (5, 1025), (700, 7), (1, 300_000), (2, 40_000))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_reduced(shape: tuple[int, int], dtype: Any) -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(dtype)
    wide = x.astype(np.longdouble)
    tolerance = 40 * np.finfo(dtype).eps
    np.testing.assert_allclose(native.reduce_rows("sum", x), wide.sum(1), tolerance)
    np.testing.assert_allclose(native.reduce_rows("sum", x, x), (wide * wide).sum(1), tolerance)
    np.testing.assert_array_equal(native.reduce_rows("largest", x), x.max(1))
    np.testing.assert_array_equal(native.reduce_rows("least", x), x.min(1))
    some = x[:, :2000]
    product = native.reduce_rows("product", np.ascontiguousarray(some))
    np.testing.assert_allclose(product, some.astype(np.longdouble).prod(1), 40 * tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(1, 1, 3), (2, 31, 3), (3, 32, 5), (4, 33, 2), (1, 1025, 40), (2, 3000, 1), (5, 2, 700)]
)
def test_columns_are_reduced(shape: tuple[int, int, int], dtype: Any) -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(dtype)
    tolerance = 40 * np.finfo(dtype).eps
    np.testing.assert_allclose(native.reduce_columns("sum", x), x.astype(np.longdouble).sum(1), tolerance)
    np.testing.assert_array_equal(native.reduce_columns("largest", x), x.max(1))
    np.testing.assert_array_equal(native.reduce_columns("least", x), x.min(1))
    product = native.reduce_columns("product", x)
    np.testing.assert_allclose(product, x.astype(np.longdouble).prod(1), 40 * tolerance)


@pytest.mark.parametrize("rows", [5, 32, 70])
def test_sums_of_columns_are_the_same_however_many_columns_and_rows_a_part_has(rows: int) -> None:
    x, y = np.random.default_rng(3).standard_normal((2, rows, 300)).astype(np.float32)
    products = x * y
    expected = np.zeros((-(-rows // native.STACK), 300), np.float32)
    for i in range(len(expected)):
        expected[i] = products[native.STACK * i]
        for row in products[native.STACK * i + 1 : native.STACK * (i + 1)]:
            expected[i] += row
    total = native.reduce_columns("sum", expected[None])[0]
    for block in (16, 64, 1 << 10, 1 << 12, 1 << 16):  # from parts of a row to several pieces
        with small_blocks(block=block):
            for columns in (7, 100, 300):
                a, b = (pending.hold(ArrayImpl(v[:, :columns].copy(), False)) for v in (x, y))
                np.testing.assert_array_equal((a * b).sum(0), total[:columns])


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), (1, 3), (0, 1, 3), (0, 1, 2, 3), ()])
def test_any_axes_are_reduced(axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 4, 6)).astype(np.float32)
    with small_blocks():
        y = jnp.asarray(x)
        np.testing.assert_allclose(np.asarray(y.sum(axes)), x.sum(axes), 1e-5, 1e-5)
        np.testing.assert_allclose(np.asarray(y.prod(axes)), x.prod(axes), 1e-5)
        np.testing.assert_array_equal(np.asarray(y.max(axes)), x.max(axes))
        np.testing.assert_array_equal(np.asarray(y.min(axes)), x.min(axes))


@pytest.mark.parametrize("position", [0, 5, 40, 511, 512, 999])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_reductions_of_what_is_not_finite(position: int, value: float) -> None:
    x = np.ones((2, 1000), np.float32)
    x[1, position] = value
    for kind, ufunc in (("sum", np.add), ("product", np.multiply), ("largest", np.maximum), ("least", np.minimum)):
        np.testing.assert_array_equal(native.reduce_rows(kind, x), ufunc.reduce(x, 1))
        np.testing.assert_array_equal(native.reduce_columns(kind, x.T.copy()[None])[0], ufunc.reduce(x, 1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_sum_of_products_rounds_as_that_of_their_array(dtype: Any) -> None:
    x, y = np.random.default_rng(2).standard_normal((2, 3, 1777)).astype(dtype)
    np.testing.assert_array_equal(native.reduce_rows("sum", x, y), native.reduce_rows("sum", x * y))
    with small_blocks():
        a, b = (pending.hold(ArrayImpl(v, False)) for v in (x, y))
        for found, expected in (
            ((a * b).sum(1), x * y), (((a + 1) * b).sum(1), (x + 1) * y), ((a * a).sum(1), x * x),
            ((a * b[:, :1]).sum(1), x * y[:, :1]), ((a * b[0]).sum(1), x * y[0]),
        ):  # fmt: skip
            np.testing.assert_array_equal(found, native.reduce_rows("sum", expected.astype(dtype)))


@pytest.mark.parametrize("size", [1, 31, 32, 33, 63, 500, 512, 513, 1000, 1536, 70_000])
def test_each_element_of_a_row_is_reduced_once(size: int) -> None:
    x = np.random.default_rng(size).integers(-4, 5, (2, size)).astype(np.float32)
    for kind, ufunc in (("sum", np.add), ("largest", np.maximum), ("least", np.minimum)):
        np.testing.assert_array_equal(native.reduce_rows(kind, x), ufunc.reduce(x, 1))
        np.testing.assert_array_equal(native.reduce_columns(kind, x.T.copy()[None])[0], ufunc.reduce(x, 1))
    for position in range(0, size, 7):
        y = np.ones_like(x)
        y[:, position] = 3
        np.testing.assert_array_equal(native.reduce_rows("product", y), 3)


@pytest.mark.parametrize("first", [0, 300, 512, 1999])
def test_the_first_nan_of_a_row_is_its_extreme(first: int) -> None:
    x = np.ones((1, 2001), np.float32)
    for i, bits in ((2000, 0x7FC00002), (first + 1, 0x7FC00003), (first, 0xFFC00001)):  # of which the first has a sign
        x[0, i] = np.uint32(bits).view(np.float32)
    for kind in ("largest", "least"):
        assert native.reduce_rows(kind, x).view(np.uint32) == 0xFFC00001


def test_blocks_and_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).standard_normal((3, 70_000)).astype(np.float32)
    found = set()
    for block in (16, 1000, 1 << 13, 1 << 20):
        for count in (1, 2, 5):
            monkeypatch.setattr(native, "BLOCK", block)
            monkeypatch.setattr(native, "cores", lambda count=count: count)
            columns = [native.reduce_columns("sum", x.reshape(shape)) for shape in ((3, 700, 100), (1, 21, 10_000))]
            rows = [native.reduce_rows("sum", x), native.reduce_rows("sum", x, x)]
            found.add(b"".join([out.tobytes() for out in rows + columns]))
    assert len(found) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (8, 5), (100_001,), (3, 70_000), (2, 3, 40_000), (200, 700)])
def test_rows_are_reduced_in_one_call(shape: tuple[int, ...], dtype: Any) -> None:
    assert native.loops is not None
    x = (1 + np.random.default_rng(1).standard_normal(shape) / 1000).astype(dtype)
    for kind in ("sum", "product", "largest", "least"):
        for first in range(len(shape)):
            axes = tuple(range(first, len(shape)))
            found = native.loops.reduced(kind, x, axes)
            expected = native.reduce_rows(kind, x.reshape(math.prod(shape[:first]), -1)).reshape(shape[:first])
            assert type(found) is (np.ndarray if first else dtype)
            assert found.dtype == dtype
            assert found.tobytes() == expected.tobytes()


def test_other_reductions_are_refused() -> None:
    assert native.loops is not None
    x = np.ones((4, 5, 6), np.float32)
    refused: list[tuple[Any, tuple[int, ...]]] = [
        (x, ()), (x, (0,)), (x, (0, 2)), (x, (0, 0, 1, 2)), (x[:, ::2], (1, 2)), (x.T, (2,)), (x[:0], (2,)),
        (x.astype(int), (2,)), (x.astype(">f4"), (2,)), (x.astype(complex), (2,)), (3.0, (0,)),
        (np.ones((1, native.FOLDED * native.PIECE), np.float32), (1,)),
    ]  # fmt: skip
    for y, axes in refused:
        assert native.loops.reduced("sum", y, axes) is None
    with pytest.raises(ValueError, match="no reduction is called 'mean'"):
        native.loops.reduced("mean", x, (2,))
    with pytest.raises(TypeError):
        native.loops.reduced("sum", x)  # type: ignore[call-arg]


def test_a_reduction_leaves_its_operand_as_it_is() -> None:
    with small_blocks():
        x = pending.hold(ArrayImpl(np.arange(12.0, dtype=np.float32).reshape(3, 4), False))
        y = x * 2
        total = y.sum(1)
        assert y._host_value.pending.known is None
        np.testing.assert_array_equal(y.sum(1), total)
        assert y._host_value.pending.known is not None  # the second reduction keeps it
        np.testing.assert_array_equal(total, [12, 44, 76])
        np.testing.assert_array_equal(y, np.arange(0, 24, 2).reshape(3, 4))
        np.testing.assert_array_equal((x + 1).max(), 12)
        np.testing.assert_array_equal((x + 1).min(0), [1, 2, 3, 4])


# Threads and processes -----------------------------------------------------------------------------------------------


def test_threads_compute_at_once() -> None:
    x = np.random.default_rng(0).standard_normal((4, 100_000))
    expected = native.reduce_rows("sum", x).tobytes()
    found: list[bytes] = []

    def work() -> None:
        for _ in range(50):
            found.append(native.reduce_rows("sum", x).tobytes())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 300
    assert set(found) == {expected}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_have_threads_of_their_own() -> None:
    x = np.ones((2, 200_000), np.float32)
    native.reduce_rows("sum", x)
    for _ in range(5):
        child = os.fork()
        if not child:
            right = (native.reduce_rows("sum", x) == 200_000).all() and (native.reduce_rows("sum", x) == 200_000).all()
            os._exit(0 if right else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_there_may_be_more_threads_than_ranges_of_blocks() -> None:
    x, out = np.arange(100_000.0).reshape(1, -1), np.zeros((1, 100_000))
    add = native.loops.find(np.add, bytes([np.dtype(float).num] * 3))
    child = os.fork()  # whose threads end with it
    if not child:
        for _ in range(20):
            native.loops.run(x.shape, [x, out, out], [(add, (0, 1, 2))], 512, 70)
        os._exit(0 if (out == 20 * x).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_whole_arrays_may_have_other_axes() -> None:
    x, out = np.arange(24.0).reshape(2, 3, 4), np.empty((24,))
    add = native.loops.find(np.add, bytes([np.dtype(float).num] * 3))
    for shape in ((1, 24), (6, 4), (3, 2, 4)):
        out[:] = np.nan
        native.loops.run(shape, [x, np.full((1,) * len(shape), 3.0), out], [(add, (0, 1, 2))], 64, 1)
        np.testing.assert_array_equal(out, x.ravel() + 3)


@pytest.mark.parametrize("kind", ["sum", "product", "largest", "least"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (2, 511), (4, 513), (1, 5000), (1, 600_000)])
def test_pieces_are_folded_as_rows_are_reduced(
    kind: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(1).uniform(0.9, 1.1, shape).astype(np.float32)
    folded = native.loops.fold(native.own.loop(f"{kind} f"), x)
    monkeypatch.setattr(native, "FOLDED", 0)
    np.testing.assert_array_equal(folded, native.reduce_rows(kind, x))


def test_wrong_folds_are_errors() -> None:
    total, stacked = native.own.loop("sum f"), native.own.loop("stacked sum f")
    x = np.ones((4, 6), np.float32)
    product = native.own.loop("dot f")
    for loop, pieces in ((stacked, x), (product, x), (total, x[:, :3]), (total, x[0]), (total, x[:, :0])):
        with pytest.raises(ValueError, match="expected a reduction"):
            native.loops.fold(loop, pieces)


# Wrong calls ---------------------------------------------------------------------------------------------------------


def test_wrong_calls_are_errors() -> None:
    loops = native.loops
    add = loops.find(np.add, bytes([np.dtype(float).num] * 3))
    total = loops.own("sum d")
    assert add is not None
    assert total is not None
    x, out = np.ones((2, 3)), np.empty((2, 3))
    for shape, values, steps in (
        ((2, 3), [x, x, np.ones(3)], [(add, (0, 1, 2))]),
        ((2, 3), [x, np.ones((2, 2)), out], [(add, (0, 1, 2))]),
        ((2, 3), [x, (out, 2, 0), out], [(total, (0, 1))]),
        ((2, 3), [x, (out, 2, -1)], [(total, (0, 1))]),
        ((2, 3), [x, (out, 2, 2)], [(total, (0, 1))]),
        ((2, 3), [x, (out, 0, 1)], [(total, (0, 1))]),
        ((2, 3), [x, (np.empty((1, 3)), 1, 2)], [(total, (0, 1))]),  # of rows, into columns
        ((2, 3), [x, (np.empty((2, 1)), 2, 3)], [(loops.own("stacked sum d"), (0, 1))]),
        ((2, 3), [x, out], [(total, (0, 1))]),
        ((2, 3), [x.T.copy().T, (np.empty((2, 1)), 2, 4)], [(total, (0, 1))]),
        ((2, 3), [x, x.T.copy().T, (np.empty((2, 1)), 2, 4)], [(loops.own("dot d"), (0, 1, 2))]),
        ((2, 3), [x, (np.empty((2, 1)), 2, 4)], [(loops.own("dot d"), (0, 1))]),
        ((2, 3), [x, (np.empty((2, 1)), 2, 4)], [(total, (0, 0, 1))]),
        ((2, 3), [x, (np.empty((2, 1)), 2, 1 << 20)], [(total, (0, 1))]),
        ((2, 2, 3), [np.ones((1, 2, 3)), (np.empty((2, 2, 1)), 2, 3)], [(total, (0, 1))]),
        ((2, 2, 3), [x, out], [(add, (0, 0, 1))]),
        ((1, 2, 3), [x.T.copy().T, out], [(add, (0, 0, 1))]),
        ((2, 3), [x, out], [(add, (0, 0, 0, 0, 0, 1))]),
    ):
        with pytest.raises(ValueError, match="expected"):
            loops.run(shape, values, steps, 64, 0)
    with pytest.raises(IndexError, match="no such value"):
        loops.run((2, 3), [x, out], [(add, (0, 1, 2))], 64, 0)
    with pytest.raises(TypeError):
        loops.run((2, 3), [x, "out"], [(add, (0, 0, 1))], 64, 0)
    with pytest.raises(TypeError, match="ufunc"):
        loops.find(len, b"")
    with pytest.raises(MemoryError):
        loops.run((2, 3), [x, out, 8], [(add, (0, 0, 2)), (add, (2, 0, 1))], 64, 1 << 55)
    assert loops.find(np.add, b"no such types") is None
    assert loops.own("no such loop") is None
    for function in (loops.in_memory, loops.add, loops.lt):
        with pytest.raises(TypeError, match="expected two values"):
            function(x)
    with pytest.raises(TypeError):
        loops.limit("many")


def test_operators_refuse_arrays_whose_result_is_large() -> None:
    loops, x = native.loops, np.ones((3, 1))
    former = loops.limit(9)
    try:
        for y in (np.ones((1, 3)), np.ones(3), np.ones((2, 1, 2)), np.ones((1, 10)), np.ones((3, 4))):
            assert loops.in_memory(x, y) is None
            with pytest.raises(TypeError, match="not large"):
                loops.sub(x, y)
        for y in (np.ones(2), np.ones((3, 1)), np.ones((4, 5)), np.ones((1, 0)), np.float64(2)):
            assert loops.in_memory(x, y) == (x, y)
        assert loops.in_memory(x, pending.hold(jnp.zeros(1 << 20))._host_value) is None
        assert loops.sub(x, np.float64(3)).tolist() == [[-2], [-2], [-2]]
        assert loops.ge(2, 1) is True
        with pytest.raises(ValueError, match="broadcast"):
            loops.add(np.ones((3, 2)), np.ones((2, 3)))
    finally:
        assert loops.limit(former) == 9
