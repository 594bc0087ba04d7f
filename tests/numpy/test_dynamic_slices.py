"""``ds``: blocks of a fixed size whose start may be traced, in all places where an index may stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import ds, grad, jit, new_ref, vmap

LINE, GRID = jnp.arange(10.0), jnp.arange(24).reshape(4, 6)


def test_what_ds_makes() -> None:
    assert ds(None) == slice(None)
    assert ds(3) == ds(0, 3)
    block = ds(1, 2, 3)
    assert (block.start, block.size, block.stride) == (1, 2, 3)
    assert repr(ds(jnp.int32(3), 2)) == "Slice(start=Array(3, dtype=int32), size=2, stride=1)"


def test_a_python_int_makes_an_ordinary_slice() -> None:
    assert LINE[ds(4, 2)].tolist() == [4, 5]
    assert LINE[ds(9, 3)].tolist() == [9]
    assert LINE[ds(1, 2, 3)].tolist() == [1, 4]
    assert LINE.at[ds(9, 3)].set(0)[9] == 0


# Figures of JAX 0.12, of compiled functions: eager it refuses arrays as starts.
STARTS = [
    (8, 1, [7, 8, 9]),
    (9, 1, [7, 8, 9]),
    (-2, 1, [7, 8, 9]),
    (-12, 1, [0, 1, 2]),
    (2, 2, [2, 4, 6]),
    (7, 2, [7, 9, 9]),
]


@pytest.mark.parametrize(("start", "stride", "expected"), STARTS)
@pytest.mark.parametrize("transform", [lambda f: f, jit, lambda f: lambda i: vmap(f)(i[None])[0]])
def test_a_start_that_is_an_array_keeps_the_size(start: int, stride: int, expected: Any, transform: Any) -> None:
    assert transform(lambda i: LINE[ds(i, 3, stride)])(jnp.int32(start)).tolist() == expected


@pytest.mark.parametrize(
    "index",
    [
        lambda i, s: (s, slice(None, None, 2)),
        lambda i, s: (np.array([0, 1]), s),
        lambda i, s: (s, np.array([0, 1])),
        lambda i, s: (s, s),
        lambda i, s: (None, ..., s),
        lambda i, s: (1, s),
        lambda i, s: (s, -1),
    ],
)
def test_a_block_among_other_indices_is_where_a_slice_would_be(index: Callable[..., Any]) -> None:
    expected = np.asarray(GRID)[index(1, slice(1, 3))]
    for f in (jit(lambda i: GRID[index(i, ds(i, 2))]), lambda i: GRID[index(i, ds(i, 2))]):
        np.testing.assert_array_equal(f(jnp.int32(1)), expected)
    changed = np.asarray(GRID).copy()
    changed[index(1, slice(1, 3))] += 100
    np.testing.assert_array_equal(jit(lambda i: GRID.at[index(i, ds(i, 2))].add(100))(1), changed)


def test_modes_and_updates_beyond_the_end() -> None:
    assert jit(lambda i: LINE.at[ds(i, 2)].get(mode="fill", fill_value=-1))(9).tolist() == [-1, -1]
    assert jit(lambda i: GRID.at[ds(i, 2)].set(0))(3).tolist() == GRID.tolist()
    assert jit(lambda i: GRID.at[ds(i, 2)].set(0, mode="clip"))(3)[2:].tolist() == [[0] * 6] * 2


def test_derivatives_batches_and_references() -> None:
    assert grad(lambda x: jnp.sum(x[ds(jnp.int32(3), 2)] ** 2))(LINE).tolist() == [0, 0, 0, 6, 8, 0, 0, 0, 0, 0]
    blocks = vmap(lambda x, i: x[ds(i, 2)])(GRID, jnp.array([0, 1, 2, 9]))
    assert blocks.tolist() == [[0, 1], [7, 8], [14, 15], [22, 23]]
    ref = new_ref(jnp.zeros(4))

    @jit
    def write(i: Any) -> Any:
        ref[ds(i, 2)] = jnp.ones(2)
        return ref[ds(i, 3)]

    assert write(1).tolist() == [1, 1, 0]
    assert ref[...].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ds(1.5, 2), TypeError, "ds: start must be an int or an array of integers, got 1.5"),
        (lambda: ds(jnp.float32(1), 2), TypeError, "ds: start must be a scalar integer, got f32 of shape"),
        (lambda: ds(jnp.arange(2), 2), TypeError, r"got i32 of shape \(2,\)"),
        (lambda: ds(0, -1), ValueError, "ds: size must be at least 0, got -1"),
        (lambda: ds(0, 2, 0), ValueError, "ds: stride must be at least 1, got 0"),
        (lambda: jit(lambda n: LINE[ds(0, n)])(2), TypeError, "ds: size must be an int that is known when"),
        (lambda: LINE[ds(jnp.int32(0), 2), 0], IndexError, "too many indices"),
    ],
)
def test_what_it_refuses(call: Callable[[], Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
