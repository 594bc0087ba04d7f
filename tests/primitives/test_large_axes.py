"""Axes of more than 2³¹ elements: positions in them are right, or refused. Nothing here takes the memory of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, eval_shape, jvp, lax
from pullback.core.array import ArrayImpl
from pullback.core.errors import IndexRangeError

N = 2**31 + 10
LONG = ShapeDtypeStruct((N,), jnp.int8)


@pytest.fixture(scope="module")
def long_array() -> ArrayImpl:
    """An array of N elements, all zero but some of the last: the operating system keeps no memory for the others."""
    x = np.zeros(N, np.int8)
    x[[2**31 + 2, 2**31 + 3, -3, -1]] = 2, 3, 4, 5
    return ArrayImpl(x)


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("argmax", jnp.argmax),
        ("argmin", lambda x: lax.argmin(x, 0, jnp.int32)),
        ("argsort", jnp.argsort),
        ("top_k", lambda x: lax.top_k(x, 3)),
    ],
)
def test_positions_that_do_not_fit_are_refused(name: str, f: Callable[[Any], Any]) -> None:
    with pytest.raises(IndexRangeError, match=f"{name}: positions up to {N - 1} do not fit i32"):
        eval_shape(f, LONG)
    with pytest.raises(OverflowError):
        eval_shape(f, LONG)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x[2**31 + 3], 3),
        (lambda x: x[-1], 5),
        (lambda x: x[2**31 :][2:4], [2, 3]),
        (lambda x: x[jnp.array([-1, 0, -3])], [5, 0, 4]),
        (lambda x: x[np.array([2**31 + 3])], [3]),
        (lambda x: x[np.array([-1], np.int32)], [5]),
        (lambda x: jnp.take(x, jnp.array([-1, 5])), [5, 0]),
        (lambda x: jnp.take(x, jnp.array([-1, 5]), mode="wrap"), [5, 0]),
        (lambda x: lax.dynamic_slice(x, (2**31 + 2,), (3,)), [2, 3, 0]),
        (lambda x: lax.dynamic_slice(x, (-3,), (3,)), [4, 0, 5]),
        (lambda x: lax.dynamic_slice(x, (jnp.int32(-3),), (3,)), [4, 0, 5]),
        (lambda x: lax.dynamic_index_in_dim(x, -1, keepdims=False), 5),
    ],
)
def test_elements_behind_the_largest_int32(f: Callable[[Any], Any], expected: Any, long_array: ArrayImpl) -> None:
    out = f(long_array)
    np.testing.assert_array_equal(np.asarray(out), expected)
    assert eval_shape(f, LONG).shape == out.shape


def test_sorting_a_long_axis_is_differentiated_with_wide_positions() -> None:
    x = ShapeDtypeStruct((N,), jnp.float32)
    assert eval_shape(lambda x: jvp(jnp.sort, (x,), (x,))[1], x).shape == (N,)
