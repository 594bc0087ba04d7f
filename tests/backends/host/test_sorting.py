"""The largest elements of long rows, found by the maxima of some elements, are those that sorting finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.host import native, sorting

DTYPES = [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64]


def by_sorting(x: Any, k: int) -> Any:
    """The positions of the ``k`` largest elements: NaN above all, 0 above -0; of equal ones the first."""

    def above(i: int, row: Any) -> Any:
        value = row[i]
        return (
            not np.isnan(value),
            -int(value) if value.dtype.kind in "iu" else -value,
            np.signbit(value) and value == 0,
            i,
        )

    rows = x.reshape(-1, x.shape[-1])
    found = [sorted(range(row.size), key=lambda i: above(i, row))[:k] for row in rows]
    return np.array(found).reshape(*x.shape[:-1], k)


def elements(kind: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers of a dtype: any, few different ones, in order, or with infinities and zeros of both signs."""
    rng = np.random.default_rng(len(kind))
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype)
    if kind == "any":
        x = rng.uniform(float(info.min) / 4, float(info.max) / 4, shape)
    elif kind == "few":
        x = rng.integers(0, 3, shape)
    elif kind == "in order":
        x = np.broadcast_to(np.arange(shape[-1]) % 120, shape)
    else:
        x = rng.choice([np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], shape, p=[0.001, 0.1, 0.001, 0.001, 0.001, 0.896])
    return np.ascontiguousarray(x).astype(dtype)


@pytest.mark.parametrize("kind", ["any", "few", "in order", "special"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1000,), (2, 3000), (2, 3, 1031)])
@pytest.mark.parametrize("k", [1, 7])
def test_as_sorting(kind: str, dtype: Any, shape: tuple[int, ...], k: int) -> None:
    if kind == "special" and np.dtype(dtype).kind != "f":
        kind = "any"
    x = elements(kind, shape, dtype)
    values, positions = sorting.top_k(x, k=k, axis=x.ndim - 1)
    assert positions.dtype == np.int32
    np.testing.assert_array_equal(positions, by_sorting(x, k))
    np.testing.assert_array_equal(values, np.take_along_axis(x, by_sorting(x, k), -1))


@pytest.mark.parametrize("where", [0, 1500, 2999])
def test_nan_is_the_largest(where: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3000)).astype(np.float32)
    x[1, where] = np.nan
    np.testing.assert_array_equal(sorting.top_k(x, k=5, axis=1)[1], by_sorting(x, 5))


def test_long_rows_are_found_by_few() -> None:
    x = np.random.default_rng(0).standard_normal((4, 3000)).astype(np.float32)
    np.testing.assert_array_equal(sorting._top_k_of_few(x, 9), by_sorting(x, 9))
    assert sorting._top_k_of_few(np.zeros_like(x), 9) is None
    assert sorting._top_k_of_few(x, 900) is None


def test_along_another_axis() -> None:
    x = np.random.default_rng(0).standard_normal((3000, 3))
    values, positions = sorting.top_k(x, k=4, axis=0)
    np.testing.assert_array_equal(positions, by_sorting(x.T, 4).T)
    np.testing.assert_array_equal(values, np.take_along_axis(x, positions, 0))


# Searching -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_c", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, 1023, 1024, 1025])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint32])
def test_positions_of_many_values_are_those_of_numpy(
    dtype: Any, size: int, side: Any, in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_c:
        monkeypatch.setattr(native, "loops", None)
    rng = np.random.default_rng(size)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0] if np.dtype(dtype).kind == "f" else [0, 1]
    draw = lambda n: np.concatenate([rng.integers(0, 100, n), special, special])[-n:].astype(dtype) if n else []
    numbers, values = np.sort(np.array(draw(size), dtype)), np.array(draw(3001), dtype)
    for found, keys in ((numbers, values), (np.repeat(numbers, 2)[::2], values.reshape(-1, 1)[::-1])):
        out = sorting.searchsorted(found, keys, side=side, index_dtype=np.dtype(np.int32))
        assert out.dtype == np.int32
        np.testing.assert_array_equal(out, np.searchsorted(found, keys, side))
    rows = sorting.searchsorted(numbers[None], values[None], side=side, index_dtype=np.dtype(np.int64))
    assert rows.dtype == np.int64
    np.testing.assert_array_equal(rows[0], np.searchsorted(numbers, values, side))


@pytest.mark.parametrize("dtype", [*DTYPES, np.int16, np.bool_])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3000,), 0), ((60, 50), 0), ((60, 50), 1), ((3, 40, 25), 1), ((2100, 1), 1)]
)
def test_orders_are_stable(shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    """NaN of any sign comes last, zeros of either sign are equal, and equal elements stay in their order."""
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        info = np.finfo(dtype)
        edges = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, info.tiny, -info.tiny, info.max, info.min]
        edges += [info.smallest_subnormal, -info.smallest_subnormal, 1.0, -1.0]
    else:
        edges = [0, 1] if dtype == np.bool_ else [0, 1, 2, np.iinfo(dtype).min, np.iinfo(dtype).max]
    x = rng.choice(np.array(edges, dtype), shape)
    if np.dtype(dtype).kind == "f":
        x = np.where(rng.random(shape) < 0.5, x, rng.standard_normal(shape).astype(dtype))
    expected = np.argsort(x, axis, kind="stable")
    np.testing.assert_array_equal(sorting.stable_order(x, axis), expected)
    values, positions = sorting.sort(
        x, np.broadcast_to(np.arange(shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis)), shape),
        dimension=axis, is_stable=True, num_keys=1,
    )  # fmt: skip
    np.testing.assert_array_equal(positions, expected)
    assert values.tobytes() == np.take_along_axis(x, expected, axis).tobytes()
