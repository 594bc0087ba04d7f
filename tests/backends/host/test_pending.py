"""Large arrays whose elements are computed when they are read: the bits, errors and memory of arrays that are not."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, hessian, jit, jvp, lax, nn, tree, vmap
from pullback.backends.host import native, parallel, pending
from pullback.core.array import Absent, ArrayImpl, fresh
from pullback.core.config import override
from pullback.errors import OperandError, ShapeError
from pullback.primitives.elementwise import stop_gradient_p
from tests.helpers import small_blocks
from tests.laws.ways import MODULES, Call, calls

Function = Callable[..., Any]


@pytest.fixture(autouse=True, params=["by the module in C", "by NumPy"])
def _small_blocks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Arrays of four elements are large, and blocks have four floats, on three threads."""
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    parallel._threads.cache_clear()
    by_numpy = request.param == "by NumPy"
    if not by_numpy and native.loops is None:
        pytest.skip("the module in C is not installed")
    with small_blocks(by_numpy=by_numpy):
        yield
    parallel._threads().shutdown()
    parallel._threads.cache_clear()


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    values = np.random.default_rng(0).uniform(-2, 3, shape)
    return jnp.asarray(values.astype(dtype))


def elements(x: Any) -> pending.Pending:
    """The pending elements of an array, which must have some."""
    held = x._host_value
    assert type(held) is Absent
    assert held.pending is not None
    return held.pending  # type: ignore[no-any-return]


def is_pending(x: Any) -> bool:
    return type(x._host_value) is Absent and elements(x).known is None


def assert_same_bits(got: Any, expected: Any) -> None:
    for a, b in zip(tree.leaves(got), tree.leaves(expected), strict=True):
        if not isinstance(a, ArrayImpl) or pullback.core.dtypes.is_key(a.dtype):
            continue
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def with_and_without(function: Function, *args: Any) -> tuple[Any, Any]:
    """The results of a function of arrays whose elements may be pending, and of others."""
    fused = function(*tree.map(lambda x: pending.hold(fresh(x)) if type(x) is ArrayImpl else x, args))
    with override("eager_fusion", False):
        plain = function(*tree.map(lambda x: ArrayImpl(x._value, x.weak_type) if type(x) is ArrayImpl else x, args))
    return fused, plain


# Bits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [m for m in MODULES if m in ("numpy", "lax", "nn", "scipy.special")])
def test_functions_have_the_same_bits(module: str) -> None:
    """Of all public functions, with operands of each kind of dtype."""

    def run(call: Call, operands: Any) -> Any:
        try:
            return call(list(operands))
        except Exception as error:
            return type(error).__name__

    count = 0
    for call in calls(module):
        if "random" in call.name or call.name.endswith(("empty", "empty_like")):
            continue
        with small_blocks(2, 8, by_numpy=native.loops is None):
            fused, plain = with_and_without(lambda *xs, call=call: run(call, xs), *call.operands)
            assert_same_bits(fused, plain)
        count += any(type(x) is ArrayImpl and type(x._host_value) is Absent for x in tree.leaves(fused))
    assert count >= 100


# Small operands of large results -------------------------------------------------------------------------------------

SPREAD: dict[str, Function] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y, ">=": lambda x, y: x >= y, "maximum": jnp.maximum, "add": jnp.add,
    "//": lambda x, y: x // y,
    "distances": lambda x, y: ((x - y) ** 2).sum(-1), "sums": lambda x, y: (x * y).sum(0),
    "gradient": lambda x, y: pullback.grad(lambda x: ((x - y) ** 2).sum())(x),
    "vjp": lambda x, y: pullback.vjp(lambda x, y: (x - y) * y, x, y)[1](jnp.ones((3, 3), x.dtype)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
@pytest.mark.parametrize("name", SPREAD)
def test_small_arrays_that_broadcast_to_a_large_one(name: str, dtype: Any) -> None:
    if (name in ("gradient", "vjp") and dtype != np.float32) or (name in ("//", "maximum") and dtype == np.complex64):
        pytest.skip("not defined")
    x, y = numbers(3, 1, dtype=dtype), numbers(1, 3, dtype=dtype) + 1
    got = SPREAD[name](x, y)
    if native.loops is not None and dtype != np.complex64:
        operation = name not in ("distances", "sums", "gradient", "vjp")
        assert not operation or type(got._host_value) is Absent
        assert name not in "+-*" or is_pending(got)
    with override("eager_fusion", False):
        expected = SPREAD[name](x, y)
    assert_same_bits(got, expected)


def test_operations_that_cannot_be_pending_are_computed() -> None:
    x, y = numbers(3, 1), numbers(1, 3)
    np.testing.assert_array_equal(np.asarray(x @ y), np.asarray(x) * np.asarray(y))
    expected = np.arctan2(np.asarray(x), np.asarray(y))
    np.testing.assert_allclose(np.asarray(jnp.arctan2(x, y)), expected, 1e-6)
    with pytest.raises(ValueError, match="shapes"):
        numbers(3, 2) - numbers(2, 3)
    weak = jnp.asarray([[1.0], [2.0], [3.0]])
    assert (ArrayImpl(weak._value, True) * ArrayImpl(weak._value.T, True)).weak_type
    assert type((numbers(3) + numbers(3))._host_value) is np.ndarray


PROGRAMS: dict[str, Function] = {
    "polynomial": lambda x: 1 + x * (2 - x * (3 + x * (4 - x / 5))),
    "gelu": lambda x: 0.5 * x * (1 + jnp.tanh(0.79788 * (x + 0.044715 * x**3))),
    "choices": lambda x: lax.select_n((x > 0).astype("int32") + (x > 1).astype("int32"), x, x * x, -x),
    "select": lambda x: jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), -jnp.exp(x)),
    "cast": lambda x: (x.astype(jnp.int32) * 3 + 1).astype(jnp.float32) / (1 + x * x),
    "rows": lambda x: (x - x.mean(-1, keepdims=True)) / (1 + x.max(0)) * x + x[..., :1],
    "transposed": lambda x: jnp.swapaxes(x, 0, -1) * 2 + jnp.swapaxes(x * x, 0, -1) - 1,
    "slices": lambda x: (x[1:] - x[:-1]) * x[1:] + 0.5,
    "identity": lambda x: (jnp.real(x * 2) + 1) * jnp.real(x) - jnp.real(x * 2),
    "complex": lambda x: jnp.abs((x + 1j * x) * (2 - x * 1j) / (3 + x)),
    "booleans": lambda x: ((x > 0) & ~(x > 1)) | (x < -1),
    "clipped": lambda x: jnp.clip(x, -1, 1) + nn.relu(x) - jnp.maximum(x, 0.5) + jnp.sign(x),
}


@pytest.mark.parametrize("shape", [(64,), (61,), (9, 7), (3, 5, 2), (2, 1, 40), (1, 4), (40, 1)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_the_same_bits(name: str, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    assert_same_bits(*with_and_without(PROGRAMS[name], x))
    if name != "booleans":
        assert_same_bits(*with_and_without(grad(lambda x: (PROGRAMS[name](x) ** 2).sum()), x))
        assert_same_bits(*with_and_without(lambda x, t: jvp(PROGRAMS[name], (x,), (t,)), x, x + 1))


@pytest.mark.parametrize("sizes", [(3, 2, 4), (17, 5, 9), (64, 33, 20)])
def test_products_have_the_same_bits(sizes: tuple[int, int, int]) -> None:
    """A product rounds otherwise if its operands are in another order in memory, or go another way."""
    m, k, n = sizes
    x, y = numbers(k, m), numbers(k, n)
    functions: list[Function] = [
        lambda x, y: (x.T * 2 + 1) @ jnp.sin(y), lambda x, y: jnp.dot(jnp.exp(x.T), y * 3),
        lambda x, y: x[:, 0] @ (y + 1), lambda x, y: jnp.stack([x.T, x.T + 1]) @ (y - 1),
        lambda x, y: jnp.sin(x.T).reshape(-1) * 2,
    ]  # fmt: skip
    for f in functions:
        assert_same_bits(*with_and_without(f, x, y))


def test_a_view_of_an_operand_outlives_it() -> None:
    """The host rule of stop_gradient returns its operand, whose memory receives no other result meanwhile."""

    def f(x: Any) -> Any:
        y = x * 2
        z = stop_gradient_p.bind(y)
        return z * (y + 1)

    assert_same_bits(*with_and_without(f, numbers(50)))


def test_results_have_the_order_of_their_operands() -> None:
    x = numbers(4, 5)
    fused, plain = with_and_without(lambda x: (jnp.swapaxes(x, 0, 1) * 2, x * 2), x)
    assert [a._value.strides for a in fused] == [a._value.strides for a in plain]


def test_transformations_take_pending_elements() -> None:
    x = numbers(6, 5) * 2 + 1
    assert is_pending(x)
    f = PROGRAMS["gelu"]
    assert_same_bits(*with_and_without(lambda x: vmap(grad(lambda v: f(v).sum()))(x), x))
    assert_same_bits(*with_and_without(lambda x: hessian(lambda v: (f(v) * v).sum())(x[0]), x))
    np.testing.assert_allclose(jit(f)(x * 1), f(x), rtol=1e-5, atol=1e-6)


# What is pending, and when it is computed ----------------------------------------------------------------------------


def test_the_elements_are_computed_when_they_are_read() -> None:
    x = numbers(20)
    y = x * 2 + 1
    assert is_pending(y)
    assert (y.shape, y.dtype, y.ndim, y.size, y.nbytes, y.weak_type) == ((20,), np.float32, 1, 20, 80, False)
    assert is_pending(y)
    np.testing.assert_array_equal(y, np.asarray(x) * np.float32(2) + np.float32(1))
    assert not is_pending(y)
    assert elements(y).operands == ()


READS: dict[str, Function] = {
    "block_until_ready": lambda y: pullback.block_until_ready(y),
    "of a tree": lambda y: pullback.block_until_ready({"a": [y]}),
    "method": lambda y: y.block_until_ready(),
    "repr": repr,
    "item": lambda y: y[3].item(),
    "pickle": pickle.dumps,
    "deepcopy": lambda y: np.asarray(copy.deepcopy(y)),
    "memory": np.from_dlpack,
    "norm": jnp.linalg.norm,
    "product": lambda y: y @ y,
    "jit": jit(lambda y: y + 1),
    "list": lambda y: y.tolist(),
    "device": lambda y: pullback.device_put(y, pullback.devices()[0]),
    "hash of bytes": lambda y: y.tobytes(),
}


@pytest.mark.parametrize("name", READS)
def test_everything_that_reads_elements_finds_them(name: str) -> None:
    y = numbers(20) * 2 + 1
    READS[name](y)
    assert not is_pending(y)
    np.testing.assert_array_equal(y, np.asarray(numbers(20)) * np.float32(2) + np.float32(1))


def test_an_array_is_ready_before_its_elements_are_computed() -> None:
    y = numbers(20) + 1
    assert y.is_ready()
    assert is_pending(y)


def test_copies_share_the_elements() -> None:
    y = numbers(20) + 1
    z = copy.copy(y)
    z.delete()
    assert elements(y).read() is elements(y).read()
    with pytest.raises(pullback.errors.DeletedArrayError):
        z + 1


@pytest.mark.parametrize(
    ("function", "light"),
    [(jnp.exp, False), (lambda x: x * 2 + 1 - x * x, False), (lambda x: x * 2, True)],
    ids=["slow", "long", "light"],
)
def test_results_that_arrays_have_are_computed_in_the_same_pass(function: Function, light: bool) -> None:
    """Light ones are computed again with the next result that needs them, and stay then."""
    x = numbers(20)
    y = function(x)
    (y * 3).block_until_ready()
    if light:
        assert is_pending(y)
        (y * 5).block_until_ready()
    assert not is_pending(y)
    with override("eager_fusion", False):
        assert_same_bits(y, function(ArrayImpl(x._value)))


@pytest.mark.parametrize(
    ("function", "axes", "stays"),
    [
        (lambda x: x * 2 + 1, None, True), (jnp.exp, None, False), (lambda x: x - 1, 0, True),
        (lambda x: x + 1 + x * x * x, 0, False),
    ],
    ids=["light", "slow", "columns", "long"],
)  # fmt: skip
def test_a_reduction_keeps_elements_that_are_slow_or_reduced_again(function: Function, axes: Any, stays: bool) -> None:
    if native.loops is None:
        pytest.skip("NumPy computes all elements first")
    x = numbers(20, 5)
    y = function(pending.hold(fresh(x)))
    first = y.sum(axes)
    assert is_pending(y) == stays
    assert_same_bits(y.sum(axes), first)
    assert not is_pending(y)
    fused, plain = with_and_without(lambda x: (function(x).sum(axes), function(x)), x)
    assert_same_bits((first, y), plain)
    assert_same_bits(fused, plain)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_of_pairs_are_reduced_along_any_axis_and_never_written(axis: int) -> None:
    if native.loops is None:
        pytest.skip("NumPy computes all elements first")
    x, y = numbers(37, 1, 5), numbers(1, 70, 5)
    weights = jnp.broadcast_to(numbers(37, 70, 1), (37, 70, 5))

    def reduced(x: Any, y: Any, weights: Any) -> tuple[Any, Any]:
        z = -((x - y) * 2 * weights)
        return z, (z.sum(axis), z.sum(axis), z.prod(axis))

    with override("eager_fusion", True):
        z, found = reduced(x, y, weights)
    assert is_pending(z)
    with override("eager_fusion", False):
        whole, expected = reduced(x, y, weights)
    assert_same_bits(found, expected)
    assert_same_bits(z, whole)


def test_elements_that_nothing_refers_to_are_not_kept() -> None:
    x = numbers(20)
    y = x * 2 + 1
    middle = elements(y).operands[0]
    y.block_until_ready()
    assert middle.known is None


def test_memory_that_another_expression_needs_is_not_written_to() -> None:
    x = numbers(8)
    first, second = x + 1.0, x * 3.0
    expected = np.asarray(x) * np.float32(3), np.asarray(x) + np.float32(1)
    del x
    first.block_until_ready()
    np.testing.assert_array_equal(second, expected[0])
    np.testing.assert_array_equal(first, expected[1])


@pytest.mark.parametrize("is_slow", [True, False])
def test_slow_elements_that_another_expression_needs_are_computed_once(is_slow: bool) -> None:
    x = numbers(8)
    middle = jnp.exp(x) if is_slow else x + 1.0
    node = elements(middle)
    first, second = middle * 2.0, middle * 3.0
    del middle
    first.block_until_ready()
    assert (node.known is not None) == is_slow
    kept = node.known
    with override("eager_fusion", False):
        plain = ArrayImpl(np.asarray(x))
        expected = (jnp.exp(plain) if is_slow else plain + 1.0) * 3.0
    np.testing.assert_array_equal(second, expected)
    assert node.known is kept


def test_slow_elements_that_nothing_else_needs_are_not_kept() -> None:
    if native.loops is None:
        pytest.skip("there are no plans")
    y = jnp.exp(numbers(8)) * 2.0
    node = elements(y)
    structure = (node.operands[0].operation, (-1,)), (node.operation, (0, -2))
    y.block_until_ready()
    before = pending._plan.cache_info().misses
    assert pending._plan(structure, (None, None), (1,), None, "") is not None
    assert pending._plan.cache_info().misses == before  # the plan that was used keeps the last result alone


def test_expressions_are_bounded_in_length() -> None:
    x = numbers(20)
    expected = np.asarray(x)
    longest = 0
    for _ in range(300):
        x = x * 1 + 0.25
        expected = expected * np.float32(1) + np.float32(0.25)
        longest = max(longest, pending.extent(elements(x))[0])
    np.testing.assert_array_equal(x, expected)
    assert pending.MOST_STEPS // 2 < longest <= pending.MOST_STEPS


def test_expressions_that_use_a_value_often_count_it_once() -> None:
    y = numbers(20)
    for _ in range(pending.MOST_STEPS - 1):
        y = y * y
    assert is_pending(y)
    assert pending.extent(elements(y))[0] == pending.MOST_STEPS - 1


def test_expressions_are_bounded_in_the_bytes_that_they_keep() -> None:
    total = numbers(100)
    most = 0
    for _ in range(50):
        total = total + jnp.asarray(np.ones(100, np.float32))
        most = max(most, sum(pending.extent(elements(total))[1].values()))
    assert most <= pending.MOST_KEPT * 400
    np.testing.assert_array_equal(total, np.cumsum([np.asarray(numbers(100)), *[np.ones(100, np.float32)] * 50], 0)[-1])


def test_expressions_of_many_parts() -> None:
    x = numbers(20)
    which = jnp.asarray(np.arange(20, dtype=np.int32) * 3)
    cases = [x + float(i) for i in range(60)]
    expected = np.asarray(x) + np.arange(20, dtype=np.float32) * np.float32(3)
    np.testing.assert_array_equal(lax.select_n(which, *cases), expected)
    total = cases[0]
    for case in cases[1:40]:
        total = total + case * 0.5 - x
    with override("eager_fusion", False):
        plain = ArrayImpl(np.asarray(x))
        again = plain + 0.0
        for i in range(1, 40):
            again = again + (plain + float(i)) * 0.5 - plain
    assert_same_bits(total, again)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_operations_on_arrays_in_another_order(order: tuple[int, ...]) -> None:
    """They are computed at once, in that order."""
    x = jnp.transpose(numbers(3, 4, 5), order)
    y = jnp.transpose(numbers(3, 4, 5) * 2, order)
    functions: list[Function] = [
        lambda x, y: x + 0, lambda x, y: x * y - 1, lambda x, y: jnp.exp(x), lambda x, y: x > y,
        lambda x, y: x + jnp.asarray(np.asarray(y)), lambda x, y: x[::-1] + y[::-1], lambda x, y: 2 - x.astype("int32"),
    ]  # fmt: skip
    for f in functions:
        fused, plain = with_and_without(f, x, y)
        assert_same_bits(fused, plain)
        assert fused._value.strides == plain._value.strides


def test_numbers_of_other_dtypes() -> None:
    """A number gets the dtype of the arrays beside it; integers that a dtype does not hold are refused or wrap."""
    for dtype in (np.int8, np.uint16, np.int32, np.float32):
        x = jnp.asarray(np.arange(40).astype(dtype))
        functions: list[Function] = [
            lambda x: x * 3 + 100, lambda x: 7 - x, lambda x: jnp.where(x > 5, x, 2), lambda x: x // 2 + x % 3,
            lambda x: (x == 3) & (x != 4),
        ]  # fmt: skip
        for f in functions:
            assert_same_bits(*with_and_without(f, x))
    assert_same_bits(*with_and_without(lambda x: x + 1.5, jnp.asarray(np.arange(40, dtype=np.int32))))
    assert_same_bits(*with_and_without(lambda x: x / 3, jnp.asarray(np.arange(40, dtype=np.int32))))


def test_an_operand_that_repeats_a_row_is_large() -> None:
    row = jnp.broadcast_to(numbers(5), (4, 5))
    y = row * numbers(5)
    assert native.loops is None or is_pending(y)
    np.testing.assert_array_equal(y, np.asarray(row) * np.asarray(numbers(5)))
    with override("eager_fusion", False):
        assert type((row * numbers(5))._host_value) is np.ndarray


def test_small_arrays_and_numbers_are_computed_at_once() -> None:
    with small_blocks(100, by_numpy=native.loops is None):
        assert type((numbers(99) + 1)._host_value) is np.ndarray
        assert is_pending(numbers(100) + 1)


def test_a_switch_turns_it_off() -> None:
    x = numbers(20)
    with override("eager_fusion", False):
        y, z = x + 1, numbers(20) + 1
        assert not is_pending(y)
        assert type(z._host_value) is np.ndarray
    assert is_pending(x + 1)


def test_results_of_compiled_functions_and_products_go_on() -> None:
    x = jit(lambda x: x * 2)(numbers(20))
    assert is_pending((x + 1) * (x - 1))
    product = numbers(5, 4) @ numbers(4, 5)
    assert is_pending(jnp.exp(product + numbers(5, 5)))


def test_a_step_along_the_gradient_of_a_product_is_one_pass() -> None:
    small = ArrayImpl(np.ones((3, 2), np.float32))  # the elements of its products are not behind an ``Absent``
    w = numbers(2, 5)
    step = 0.5 * grad(lambda w: (small @ w).sum())(w)
    assert is_pending(step)
    assert_same_bits(w - step, w - 0.5 * ArrayImpl(np.full((2, 5), 3, np.float32)))


# Errors and switches -------------------------------------------------------------------------------------------------


def test_operands_that_do_not_fit_are_refused_at_the_call() -> None:
    x = numbers(20)
    with pytest.raises(ShapeError, match=r"\(20,\).*\(19,\)|20.*19"):
        (x + 1) * numbers(19)
    with pytest.raises(OperandError):
        x + "a"  # type: ignore[operator]
    with pytest.raises(TypeError):
        jnp.bitwise_and(x + 1, x)


def test_integers_that_a_dtype_does_not_hold_are_treated_at_the_call() -> None:
    x = jnp.asarray(np.arange(-10, 10, dtype=np.int8))
    for function in (lambda x: x + 1000, lambda x: (x * 2) + 200, lambda x: x.astype(jnp.uint8) - 1):
        try:
            fused, plain = with_and_without(function, x)
        except OverflowError:
            with override("eager_fusion", False), pytest.raises(OverflowError):
                function(ArrayImpl(x._value))
        else:
            assert_same_bits(fused, plain)


def test_nans_are_found_at_the_operation() -> None:
    x = jnp.asarray(np.linspace(-1, 1, 20, dtype=np.float32))
    with override("debug_nans", True), pytest.raises(FloatingPointError):
        jnp.log(x)


@pytest.mark.filterwarnings("error")
def test_numpy_does_not_warn() -> None:
    assert np.isinf(np.asarray(numbers(20) * 1e300)).all()  # the number does not fit the dtype
    assert np.isinf((numbers(20) + 1e300).sum())
    x = numbers(20) * 1e30
    assert np.isinf(np.asarray(jnp.exp(x) * x)).any()


def test_no_memory_is_our_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    y = numbers(20) + 1

    def refuse(*args: Any) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(pending, "_evaluate_by_blocks", refuse)
    if native.loops is not None:
        monkeypatch.setattr(native.loops, "evaluate", refuse)
    with pytest.raises(pullback.errors.AllocationError, match=r"\(20,\).*float32.*none left"):
        y.block_until_ready()


# Threads and processes -----------------------------------------------------------------------------------------------


def read_into(found: list[Any], x: Any) -> None:
    found.append((x, np.asarray(x)))


def test_threads_may_read_one_array() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(20):
            x = numbers(400)
            y = x * 2 + 1
            z = (y * y - x) / 3
            first = np.asarray(x) * np.float32(2) + np.float32(1)
            expected = {id(y): first, id(z): (first * first - np.asarray(x)) / np.float32(3)}
            found: list[Any] = []
            threads = [threading.Thread(target=read_into, args=(found, a)) for a in (y, z, z, y, z)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(found) == 5
            for a, value in found:
                np.testing.assert_array_equal(value, expected[id(a)])
    finally:
        sys.setswitchinterval(interval)


def test_threads_read_what_is_computed_in_the_memory_of_an_operand() -> None:
    with small_blocks(1 << 18, 1 << 13, by_numpy=native.loops is None):
        for _ in range(20):
            x = numbers(1 << 20)
            y = (x + 1.0)._value
            z = pending.hold(ArrayImpl(y.copy())) * 2.0
            expected = y * np.float32(2)
            found: list[Any] = []
            start = threading.Barrier(4)

            def read(z: Any = z, found: list[Any] = found, start: threading.Barrier = start) -> None:
                start.wait()
                found.append(np.asarray(z))

            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for value in found:
                np.testing.assert_array_equal(value, expected)
            assert len(found) == 4


def test_what_is_broadcast_is_negated_after_its_sum() -> None:
    x, y = jnp.ones((3, 4)), jnp.full((3, 1), 2.0)
    for f, expected in ((lambda y: x - y, -4.0), (lambda y: x / y, -1.0)):
        program = pullback.make_jaxpr(lambda y, f=f: pullback.linear_transpose(pullback.linearize(f, y)[1], y)(x))(y)
        negated = [equation.outvars[0].aval.shape for equation in program.eqns if str(equation.primitive) == "neg"]
        assert all(shape == (3, 1) for shape in negated)
        np.testing.assert_array_equal(grad(lambda y, f=f: f(y).sum())(y), np.full((3, 1), expected))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_computes_what_is_pending() -> None:
    x = numbers(40)
    (x * 2).block_until_ready()  # the threads exist
    y = x * 3 + 1
    child = os.fork()
    if child == 0:
        right = np.array_equal(np.asarray(y), np.asarray(x) * np.float32(3) + np.float32(1))
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert is_pending(y)


def test_a_thread_of_the_pool_waits_for_no_other() -> None:
    found: list[bool] = []
    assert parallel.on_cores(lambda i: found.append(parallel.on_cores(lambda: None, [(), ()])), [(0,), (1,), (2,)])
    assert sorted(found) == [False, False, True]


@pytest.mark.parametrize("shape", [(60, 50), (3, 1000), (2, 3, 500)])
@pytest.mark.parametrize("axis", [-1, (-2, -1), 0])
@pytest.mark.parametrize("f", [nn.softmax, nn.log_softmax])
def test_softmax_reads_pending_elements_in_its_pass(f: Any, axis: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    scaled = jnp.asarray(x) / 3
    assert is_pending(scaled)
    found = f(scaled, axis)
    np.testing.assert_array_equal(found, f(jnp.asarray(x / np.float32(3)), axis))
    np.testing.assert_array_equal(scaled, x / np.float32(3))


def test_outer_products_of_cotangents_are_pending() -> None:
    u, v, a = numbers(3_000), numbers(3_000) + 1, jnp.ones((60, 60))
    for found, expected in (
        (grad(jnp.dot)(u, v), np.asarray(v)),
        (grad(lambda a: jnp.sum(a @ u[:60]))(a), np.broadcast_to(np.asarray(u)[:60], (60, 60))),
    ):
        assert native.loops is None or is_pending(found)
        np.testing.assert_array_equal(found, expected)
