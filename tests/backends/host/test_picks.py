"""Elements at positions, and counts of numbers, by the module in C, are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback.backends.host import indexing, own, sorting

pytestmark = pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")


@pytest.fixture(autouse=True)
def _on_three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (indexing, sorting):
        monkeypatch.setattr(module, "cores", lambda: 3)
    monkeypatch.setattr(indexing, "MANY_PICKS", 1)
    monkeypatch.setattr(sorting, "_MANY_COUNTED", 1)
    monkeypatch.setattr(sorting, "_SHARE_COUNTED", 1)


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.int32, np.float64, np.complex128])
@pytest.mark.parametrize("wide", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(7,), (5, 300), (3, 4, 1000), (2, 1, 3, 5)])
def test_elements_along_any_axis(shape: tuple[int, ...], wide: Any, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)
    for axis in range(len(shape)):
        for count in (1, 40):
            size = (*shape[:axis], count, *shape[axis + 1 :])
            at = rng.integers(-shape[axis], shape[axis], size).astype(wide)
            np.testing.assert_array_equal(indexing.along_axis(x, at, axis), np.take_along_axis(x, at, axis))
            at.flat[-1] = shape[axis]
            with pytest.raises(IndexError, match="out of range"):
                indexing.along_axis(x, at, axis)
            at.flat[-1] = -shape[axis] - 1
            with pytest.raises(IndexError, match="out of range"):
                indexing.along_axis(x, at, axis)


def test_other_arrays_are_left_to_numpy() -> None:
    x, at = np.arange(12.0).reshape(3, 4), np.zeros((3, 1), np.int64)
    out = np.empty((3, 1))
    for given in ((x.T, at, 1, out), (x, at.astype(np.uint32), 1, out), (x, at[:2], 1, out[:2]), (x, at[0], 0, out[0])):
        assert own.loops.pick(*given, 0) is None
    np.testing.assert_array_equal(indexing.along_axis(x[:, ::2], at, 1), x[:, :1])
    assert indexing.along_axis(x[:0], at[:0], 1).shape == (0, 1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 3, 1000, 100_001])
@pytest.mark.parametrize("length", [1, 7, 1000, 8192])
def test_counts(length: int, size: int, dtype: Any) -> None:
    x = np.random.default_rng(0).integers(-2, length + 2, size).astype(dtype)
    expected = np.bincount(np.maximum(x, 0), minlength=length)[:length]
    np.testing.assert_array_equal(sorting.counted(x, length), expected)
    np.testing.assert_array_equal(jnp.bincount(x, length=length), expected)


def test_counts_of_other_arrays_are_left_to_numpy() -> None:
    assert sorting.counted(np.zeros(4, np.uint8), 3) is None
    assert sorting.counted(np.zeros(4, np.int32), 8193) is None
    for numbers, totals in (
        (np.zeros(4), np.zeros(3, np.intp)), (np.zeros(4, np.int32), np.zeros(3, np.int32)),
        (np.zeros(8, np.int32)[::2], np.zeros(3, np.intp)), (np.zeros(4, np.int32), np.zeros(0, np.intp)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="expected"):
            own.loops.count(numbers, totals, 0)
