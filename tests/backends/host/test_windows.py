"""Windows by the module in C: their extremes, the positions of these, and sums at positions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pullback.backends.host import own, windows

pytestmark = pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")


@pytest.fixture(autouse=True)
def _on_three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "cores", lambda: 3)
    monkeypatch.setattr(windows, "_SHARE", 1)


def _elements(shape: Any, geometry: Any) -> Any:
    """For each window the numbers of its elements that are inside, and their indices."""
    for window in np.ndindex(*[count for count, *_ in geometry]):
        ranges = [
            [w * stride - low + k * step for k in range(size)]
            for w, (_, size, stride, low, step) in zip(window, geometry, strict=True)
        ]
        found = enumerate(itertools.product(*ranges))
        yield (
            window,
            [(i, index) for i, index in found if all(0 <= a < n for a, n in zip(index, shape, strict=True))],
        )


def _geometry(rng: np.random.Generator, shape: Any) -> Any:
    out = []
    for n in shape:
        size, stride, step = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
        low, high = int(rng.integers(-1, 3)), int(rng.integers(0, 3))
        span = n + low + high - (1 + (size - 1) * step)
        if rng.random() < 0.3 or span < 0:
            out.append((n, 1, 1, 0, 1))
        else:
            out.append((span // stride + 1, size, stride, low, step))
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(40))
def test_windows_of_any_geometry(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 5))
    shape = tuple(rng.integers(1, (0, 700, 30, 12, 7)[ndim], ndim).tolist())
    x = rng.integers(-3, 4, shape).astype(dtype)  # many are equal
    x[rng.random(shape) < 0.1] = np.nan
    x[rng.random(shape) < 0.1] = -np.inf
    geometry = _geometry(rng, shape)
    for largest in (False, True):
        start = -np.inf if largest else np.inf
        best, at = windows.extremes(x, geometry, largest), windows.positions(x, geometry, largest)
        numbers = rng.integers(0, 9, best.shape).astype(dtype)
        summed = np.zeros(shape, dtype)
        for window, inside in _elements(shape, geometry):
            values = [x[index] for _, index in inside]
            expected = (max if largest else min)(values, default=start) if not np.isnan(values).any() else np.nan
            np.testing.assert_equal(best[window], expected)
            equal = [np.array_equal(v, expected, equal_nan=True) for v in values]
            if inside:
                assert at[window] == inside[equal.index(True)][0]
                summed[inside[equal.index(True)][1]] += numbers[window]
            else:
                assert at[window] == np.prod([size for _, size, *_ in geometry])
        np.testing.assert_array_equal(windows.put(numbers, at, geometry, shape), summed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(40))
def test_extremes_with_their_positions_have_the_same_bits(seed: int, dtype: Any) -> None:
    """Of zeros of both signs, and of NaNs, as well; also where windows are columns, of few and of many elements."""
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 5))
    shape = tuple(rng.integers(1, (0, 700, 60, 16, 9)[ndim], ndim).tolist())
    x = rng.choice(np.array([-1, -0.0, 0.0, 1, np.inf, -np.inf, np.nan, -np.nan], dtype), shape)
    geometry = _geometry(rng, shape)
    if seed % 2 and ndim > 1:
        geometry[-1] = (shape[-1], 1, 1, 0, 1)
    for largest in (False, True):
        out, at = windows.extremes_and_positions(x, geometry, largest)
        alone = windows.extremes(x, geometry, largest)
        np.testing.assert_array_equal(out.view(f"u{x.itemsize}"), alone.view(f"u{x.itemsize}"))
        np.testing.assert_array_equal(at, windows.positions(x, geometry, largest))


@pytest.mark.parametrize("columns", [1, 3, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_of_columns(dtype: Any, columns: int) -> None:
    rng = np.random.default_rng(columns)
    x = rng.integers(-3, 4, (3, 8, 6, columns)).astype(dtype)
    x[rng.random(x.shape) < 0.1] = np.nan
    geometry = [(3, 1, 1, 0, 1), (4, 2, 2, 0, 1), (2, 3, 3, 0, 1), (columns, 1, 1, 0, 1)]
    tiles = np.moveaxis(x.reshape(3, 4, 2, 2, 3, columns), (2, 4), (3, 4)).reshape(3, 4, 2, 6, columns)
    for largest in (True, False):
        np.testing.assert_array_equal(windows.extremes(x, geometry, largest), (np.max if largest else np.min)(tiles, 3))
        at = (np.argmax if largest else np.argmin)(tiles, 3).astype(np.int32)
        np.testing.assert_array_equal(windows.positions(x, geometry, largest), at)
        at[0, 0, 0, 0], numbers = 6, rng.normal(size=at.shape).astype(dtype)
        out = windows.put(numbers, at, geometry, x.shape)
        back = np.moveaxis(out.reshape(3, 4, 2, 2, 3, columns), (2, 4), (3, 4)).reshape(tiles.shape)
        np.testing.assert_array_equal(
            back, np.where(np.arange(6)[:, None] == at[..., None, :], numbers[..., None, :], 0)
        )


@pytest.mark.parametrize("geometry", [[(2, 2, 2, 0, 1)], [(2, 2, 2, 0, 1), (1, 1, 1, 0, 1)]])
def test_of_zeros_the_one_without_a_sign_is_larger(geometry: Any) -> None:
    x = np.array([0.0, -0.0, -0.0, 0.0]).reshape((4, 1)[: len(geometry)])
    assert not np.signbit(windows.extremes(x, geometry, True)).any()
    assert np.signbit(windows.extremes(x, geometry, False)).all()


def test_positions_outside_of_a_window_are_dropped() -> None:
    numbers, at = np.ones(3, np.float32), np.array([-1, 2, 1], np.int32)
    np.testing.assert_array_equal(windows.put(numbers, at, [(3, 2, 2, 0, 1)], (6,)), [0, 0, 0, 0, 0, 1])


def test_arrays_that_are_read_may_be_read_only() -> None:
    x, numbers, at = np.arange(6.0), np.ones(3), np.ones(3, np.int32)
    for array in (x, numbers, at):
        array.setflags(write=False)  # as the results of compiled operations are
    geometry = [(3, 2, 2, 0, 1)]
    np.testing.assert_array_equal(windows.extremes(x, geometry, True), [1, 3, 5])
    np.testing.assert_array_equal(windows.positions(x, geometry, True), at)
    np.testing.assert_array_equal(windows.put(numbers, at, geometry, (6,)), [0, 1, 0, 1, 0, 1])
    for kind, operand, result, positions in (
        ("extremes", np.zeros(6), numbers, None), ("find", np.zeros(6), None, at), ("put", x, np.ones(3), at),
        ("find", np.zeros(6), numbers, np.zeros(3, np.int32)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="expected"):
            own.loops.windows(kind, operand, result, positions, tuple(geometry), True, 0)


def test_wrong_arrays_are_errors() -> None:
    x, out, at = np.zeros(6), np.zeros(3), np.zeros(3, np.int32)
    geometry = ((3, 2, 2, 0, 1),)
    for kind, operand, result, positions, given in (
        ("extremes", x.astype(int), out, None, geometry), ("extremes", x, out[:2], None, geometry),
        ("extremes", x, None, None, geometry), ("extremes", x[::2], out, None, geometry),
        ("find", x, None, None, geometry), ("find", x, out[:2], at, geometry),
        ("find", x, None, at.astype(np.int64), geometry), ("put", x, out, None, geometry),
        ("put", x, out.astype(np.float32), at, geometry), ("extremes", x, out, None, ()),
        ("fill", x, out, at, geometry),
        ("extremes", x, out, None, ((3, 0, 2, 0, 1),)), ("extremes", x, out, None, ((3, 2, 0, 0, 1),)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="expected"):
            own.loops.windows(kind, operand, result, positions, given, True, 0)
