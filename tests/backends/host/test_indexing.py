"""Elements at positions along an axis: many are read by flat positions, which must be the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback.backends.host import indexing

SHAPES = [
    ((40, 50), (40, 30), 1),
    ((40, 50), (30, 50), 0),
    ((5, 6, 7), (5, 4, 7), 1),
    ((6,), (9,), 0),
    ((5, 4, 1), (5, 4, 3), 2),
]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize(("shape", "positions_shape", "axis"), SHAPES)
def test_flat_positions(
    shape: Any, positions_shape: Any, axis: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    positions = rng.integers(-shape[axis] if np.iinfo(dtype).min else 0, shape[axis], positions_shape).astype(dtype)
    expected = np.take_along_axis(x, positions, axis)
    monkeypatch.setattr(indexing, "MANY_POSITIONS", 1)
    monkeypatch.setattr(np, "take_along_axis", None)
    np.testing.assert_array_equal(indexing.along_axis(x, positions, axis), expected)
    for wrong in (shape[axis], -shape[axis] - 1):
        if np.iinfo(dtype).min <= wrong <= np.iinfo(dtype).max:
            positions.reshape(-1)[-1] = wrong
            with pytest.raises(IndexError, match="out of range"):
                indexing.along_axis(x, positions, axis)


def test_positions_that_do_not_fit_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "MANY_POSITIONS", 1)
    x = np.arange(12.0).reshape(3, 4)
    for array, positions in [
        (x, np.array([[3, -1]])),
        (x.T, np.array([[2], [1], [0], [1]])),
        (x[:, :0], np.zeros((3, 0), int)),
    ]:
        np.testing.assert_array_equal(indexing.along_axis(array, positions, 1), np.take_along_axis(array, positions, 1))
    with pytest.raises(IndexError):  # 2**64 - 1 is not -1
        indexing.along_axis(x, np.full((3, 1), 2**64 - 1, np.uint64), 1)


def test_positions_out_of_range_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "MANY_POSITIONS", 1)
    got = jnp.take_along_axis(jnp.arange(6.0).reshape(2, 3), jnp.array([[0, 3, -1], [-4, 1, 2]]), 1)
    np.testing.assert_array_equal(np.asarray(got), [[0, np.nan, 2], [np.nan, 4, 5]])
