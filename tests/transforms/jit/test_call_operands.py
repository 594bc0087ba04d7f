"""Numbers and NumPy's arrays as arguments of compiled functions: every value, of every type, in every call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import jit
from pullback.core.config import override
from pullback.errors import OperandError
from pullback.transforms.jit import call_operands

x = jnp.asarray(np.float32([1, 2, 3]))


@jit
def times(x: Any, y: Any) -> Any:
    return x * y


@pytest.mark.parametrize(
    "y", [0.5, -0.0, 0.0, 1, True, False, 3.0, 1j, 2**20, math.inf, -1, *np.float32([2]), np.bool_(True)], ids=repr
)  # fmt: skip
def test_numbers_are_what_they_are_outside(y: Any) -> None:
    for _ in range(3):  # traced, compiled, by the fast path
        out, expected = times(x, y), x * y
        assert (out.dtype, out.weak_type, out.shape) == (expected.dtype, expected.weak_type, expected.shape)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(np.signbit(np.real(out)), np.signbit(np.real(expected)))


def test_equal_numbers_of_different_types_are_different_operands() -> None:
    f = jit(lambda y: jnp.asarray(y) * 2)
    for y in (1, 1.0, True, 1 + 0j, 1, 1.0, True, 1 + 0j):
        assert f(y).dtype == (jnp.asarray(y) * 2).dtype


def test_zeros_and_nan() -> None:
    f = jit(lambda y: 1 / y)
    for y in (0.0, -0.0, 0.0, -0.0):
        assert f(y) == math.copysign(math.inf, y)
    assert math.isnan(f(math.nan))
    assert math.isnan(f(math.nan))


def test_numpy_arrays_are_read_at_the_call() -> None:
    y = np.float32([1, 1, 1])
    first = [times(x, y) for _ in range(3)]
    y[:] = 7
    second = times(x, y)
    np.testing.assert_array_equal(first, [x, x, x])
    np.testing.assert_array_equal(second, 7 * x)


def test_trees_and_keywords_with_numbers() -> None:
    step = jit(lambda p, rate, *, by: {k: v - rate * by[k] for k, v in p.items()})
    p = {"a": x, "b": 2.0}
    for rate in (0.1, 0.1, 0.25, np.float64(0.5)):
        out = step(p, rate, by={"a": np.float32([1, 1, 1]), "b": 1})
        np.testing.assert_allclose(out["a"], x - np.float32(rate), rtol=1e-6)
        np.testing.assert_allclose(out["b"], 2 - rate, rtol=1e-6)


def test_results_that_are_arguments() -> None:
    same = jit(lambda x, y: (y, x))
    for _ in range(4):
        y, _ = same(x, 5.5)
        y.delete()
        assert same(x, 5.5)[0] == 5.5


def test_donated_numbers() -> None:
    f = jit(lambda y: y + 2, donate_argnums=0)
    for _ in range(4):
        assert f(5.5) == 7.5


def test_many_numbers_are_not_kept() -> None:
    for k in range(2 * call_operands._MOST_NUMBERS):
        assert times(1.5, k + 0.5) == np.float32(1.5) * np.float32(k + 0.5)
    assert len(call_operands.numbers) <= call_operands._MOST_NUMBERS


@pytest.mark.parametrize("x64", [False, True])
def test_numbers_that_come_once_are_converted_as_numpy_does(x64: bool) -> None:
    """Each is the first of its kind in one call, and known in the next."""
    same = jit(lambda y: y + 0 if jnp.issubdtype(jnp.result_type(y), jnp.integer) else y * 1)
    floats = [0.1, -0.0, 1e-45, 3e-39, 16777217.0, 3.4028235e38, 1e39, -1e300, np.inf, np.nan]
    wide = [1e-310, 5e-324]
    integers = [0, -1, 2**31 - 1, -(2**31)]
    with pullback.enable_x64(x64), np.errstate(over="ignore"):
        for x in [*floats, *(wide if x64 else []), *integers, *([2**63 - 1, -(2**63)] if x64 else []), True, 1 + 0.1j]:
            kind = jnp.asarray(x).dtype
            if x is not True:
                for _ in range(3):
                    found = np.asarray(same(x))
                    assert found.dtype == kind
                    assert found.tobytes() == np.asarray(x, kind).tobytes() or x != x
            if type(x) is float:
                for scalar in (np.float32(x), np.float64(x), np.float16(x)):
                    assert np.asarray(same(scalar)).tobytes() == np.asarray(jnp.asarray(scalar)).tobytes() or x != x
        same(5)
        with pytest.raises(OverflowError):
            same(2**63 if x64 else 2**31)


def test_switches_count() -> None:
    f = jit(lambda y: jnp.asarray(y) / 3)
    for _ in range(3):
        assert f(0.1).dtype == np.float32
        with pullback.enable_x64():
            assert f(0.1).dtype == np.float64
            assert f(0.1) == np.float64(0.1) / 3


def test_what_cannot_be_an_operand_is_refused() -> None:
    times(x, 2.0)
    with pytest.raises(OperandError):
        times(x, "a")
    with pytest.raises(OverflowError):
        times(x, 2**70)
    with override("transfer_guard_host_to_device", "disallow"), pytest.raises(pullback.errors.TransferGuardError):
        times(x, 2.5)


def test_an_error_of_a_node_is_its_own() -> None:
    class Node:
        pass

    pullback.tree_util.register_pytree_node(Node, lambda node: ((node.missing,), None), lambda _, children: Node())
    f = jit(lambda x, p=2.0: x)
    f(x, p=2.0)
    for _ in range(2):
        with pytest.raises(AttributeError, match="missing"):
            f(x, p=Node())
