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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("wide", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(7,), (5, 300), (3, 4, 1000), (2, 1, 3, 5), (40, 4)])
def test_sums_along_any_axis(shape: tuple[int, ...], wide: Any, dtype: Any) -> None:
    """In the order of NumPy's, so bit for bit; positions out of range are dropped, or moved to the nearest in range."""
    rng = np.random.default_rng(0)
    for axis in range(len(shape)):
        for count in (1, 40):
            size = (*shape[:axis], count, *shape[axis + 1 :])
            at = rng.integers(-2, shape[axis] + 2, size).astype(wide)
            updates = (100 * rng.normal(size=size)).astype(dtype)
            for clips in (False, True):
                inside = clips | ((at >= 0) & (at < shape[axis]))
                places = list(np.ogrid[tuple(map(slice, size))])
                places[axis] = np.clip(at, 0, shape[axis] - 1)
                expected = (100 * rng.normal(size=shape)).astype(dtype)
                out = expected.copy()
                np.add.at(expected, tuple(np.broadcast_arrays(*places)), np.where(inside, updates, 0).astype(dtype))
                assert indexing.add_at(out, at, axis, updates, clips)
                np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("width", [1, 3, 16, 100])
def test_sums_of_rows(width: int) -> None:
    rng = np.random.default_rng(0)
    updates, at = rng.normal(size=(500, width)), rng.integers(-2, 12, 500)
    out, expected = np.ones((10, width)), np.ones((10, width))
    inside = (at >= 0) & (at < 10)
    np.add.at(expected, at[inside], updates[inside])
    assert indexing.add_at(out, at, 0, updates)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_many_updates_of_few_elements_are_summed_in_parts(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    at = rng.integers(-1, 101, 100_000).astype(np.int32)
    updates = (100 * rng.normal(size=at.size)).astype(dtype)
    start = np.arange(101).astype(dtype)
    start[100] = -0.0 if dtype in (np.float32, np.float64) else 0
    at[at == 100] = 0
    out, expected = start.copy(), start.astype(np.float64)
    inside = (at >= 0) & (at < 101)
    np.add.at(expected, at[inside], updates[inside].astype(np.float64))
    assert indexing.add_at(out, at, 0, updates)
    np.testing.assert_allclose(out, expected, 1e-5 if dtype == np.float32 else 1e-12)
    assert np.signbit(out[100]) == np.signbit(start[100])  # what nothing is added to keeps its sign
    for threads in (1, 2, 5):
        monkeypatch.setattr(indexing, "cores", lambda threads=threads: threads)
        again = start.copy()
        indexing.add_at(again, at, 0, updates)
        np.testing.assert_array_equal(again, out)


def test_sums_of_other_arrays_are_left_to_numpy() -> None:
    out, at, updates = np.zeros((3, 4)), np.zeros((3, 1), np.int64), np.ones((3, 1))
    for given in (
        (out.T, at, 1, updates), (out, at.astype(np.uint32), 1, updates), (out, at[:2], 1, updates),
        (out, at, 2, updates),
        (out, at, 1, updates.astype(np.float32)), (out, at, 1, np.ones((2, 1))), (out, at[:, 0], 1, updates),
        (out.astype(np.float16), at, 1, updates.astype(np.float16)), (out, np.zeros(2, np.int64), 0, np.ones((3, 4))),
    ):  # fmt: skip
        assert not own.loops.add_at(*given, 0, 0)
    assert indexing.add_at(out[:0], at[:0], 1, updates[:0])


def test_positions_out_of_range() -> None:
    x, at, out = np.arange(5.0), np.array([-1, 7, 4]), np.empty(3)
    assert own.loops.pick(x, at, 0, out, indexing.CLIPPED, 0) is True
    np.testing.assert_array_equal(out, [0, 4, 4])
    assert own.loops.pick(x, at, 0, out, indexing.AS_THEY_ARE, 0) is False
    assert own.loops.pick(x, at[:1], 0, out[:1], indexing.WRAPPED, 0) is True
    assert out[0] == 4


def test_other_arrays_are_left_to_numpy() -> None:
    x, at = np.arange(12.0).reshape(3, 4), np.zeros((3, 1), np.int64)
    out = np.empty((3, 1))
    for given in ((x.T, at, 1, out), (x, at.astype(np.uint32), 1, out), (x, at[:2], 1, out[:2]), (x, at[0], 0, out[0])):
        assert own.loops.pick(*given, 1, 0) is None
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
