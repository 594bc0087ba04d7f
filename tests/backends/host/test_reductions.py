"""Sums and norms of many elements on the host: as exact as pairwise summation, for every layout of the elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.backends.host import native, reductions
from tests.helpers import small_blocks

SHAPES = [
    ((20_000,), (0,)), ((16_385,), (0,)), ((100_003,), (0,)), ((700_000,), (0,)), ((3, 70_001), (1,)),
    ((100, 513), (1,)), ((4000, 3), (1,)), ((9, 1024, 2), (1, 2)), ((9, 1025, 2), (0, 1, 2)), ((1200, 40), (0,)),
    ((30, 20, 50), (1,)), ((30, 20, 50), (0, 2)), ((9000, 1), (1,)), ((1, 9000), (0,)), ((2, 8192), (1,)),
]  # fmt: skip
"""Shapes, and the axes that are summed."""


def exact(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose(*kept, *axes).reshape(*[x.shape[i] for i in kept], -1)
    return np.apply_along_axis(lambda row: math.fsum(row.tolist()), -1, rows) if rows.ndim else rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_sums_are_exact_to_rounding(shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for array in (x, np.asfortranarray(x), np.repeat(x, 2, 0)[::2]):
        out = reductions.reduce_sum(array, axes=axes)
        assert out.dtype == dtype
        bound = 4 * np.finfo(dtype).eps * exact(abs(x), axes)
        assert out.shape == bound.shape
        assert np.all(abs(out - exact(x, axes)) <= bound)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_norms_are_exact_to_rounding(shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    expected = np.sqrt(exact(x.astype(np.float64) ** 2, axes))
    tiny, large = float(np.finfo(dtype).tiny) * 1e6, float(np.finfo(dtype).max) * 1e-5
    for scale in (1.0, large, tiny):
        with np.errstate(all="ignore"):
            out = reductions.norm((x * scale).astype(dtype), axes=axes)
        assert out.dtype == dtype
        assert out.shape == expected.shape
        np.testing.assert_allclose(out / scale, expected, rtol=4 * np.finfo(dtype).eps)


def test_sums_have_small_errors_where_all_terms_have_one_sign() -> None:
    x = np.full(10_000_000, 0.1, np.float32)
    assert (
        abs(float(reductions.reduce_sum(x, axes=(0,))) / (1e7 * float(np.float32(0.1))) - 1)
        < 4 * np.finfo(np.float32).eps
    )


@pytest.mark.parametrize("position", [0, 511, 512, 5000, 8999])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_sums_with_an_element_that_is_not_finite(position: int, value: float) -> None:
    x = np.ones(9000, np.float32)
    x[position] = value
    np.testing.assert_array_equal(reductions.reduce_sum(x, axes=(0,)), np.float32(value))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(reductions.norm(x, axes=(0,)), np.float32(abs(value)))


@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_products_are_exact_to_rounding(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.exp(np.random.default_rng(2).standard_normal(shape) / 100) * np.random.default_rng(3).choice([-1, 1], shape)
    count = math.prod(shape[i] for i in axes)
    expected = np.prod(x.astype(np.longdouble), axes)
    rtol = 1e-15 + 2e-16 * count**0.7
    np.testing.assert_allclose(reductions.reduce_prod(x, axes=axes), expected.astype(float), rtol=rtol)
    with np.errstate(all="ignore"):
        x.flat[-1] = np.inf
        np.testing.assert_array_equal(np.isinf(reductions.reduce_prod(x, axes=axes)), np.isinf(np.prod(x, axes)))


# Cumulative sums -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_c", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(20_001,), (30, 701), (3, 4, 1000), (9000, 1), (1, 9000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.float16])
def test_long_cumulative_sums_are_those_in_twice_the_precision(
    dtype: Any, shape: tuple[int, ...], reverse: bool, in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_c:
        monkeypatch.setattr(native, "loops", None)
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    wide = {"c": np.complex128, "f": np.float64}[x.dtype.kind]
    exact = np.cumsum(x[..., ::-1], -1, wide)[..., ::-1] if reverse else np.cumsum(x, -1, wide)
    for array in (x, np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2]):
        out = reductions.accumulate(np.add, array, axis=x.ndim - 1, reverse=reverse)
        assert out.dtype == dtype
        info = np.finfo(dtype)
        np.testing.assert_allclose(
            out, exact, rtol=float(info.eps), atol=3e-5 if dtype == np.float16 else info.eps * 1e-3
        )
        if x.dtype.char in "fF" and (in_c or shape[-1] > 256):
            np.testing.assert_array_equal(out, exact.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cumulative_sums_of_many_numbers_keep_signs_of_zeros_and_what_is_not_finite(dtype: Any) -> None:
    x = np.zeros((4, 5000), dtype)
    x[0] = -0.0
    x[1, 10:] = np.inf
    x[2, 20] = np.nan
    x[3, 3:5] = [np.inf, -np.inf]
    out = reductions.accumulate(np.add, x, axis=1, reverse=False)
    np.testing.assert_array_equal(np.signbit(out[0]), True)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out, np.cumsum(x, 1))


# Products of others --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("short", [1, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_products_of_others(axes: tuple[int, ...], dtype: Any, short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "_SHORT", short)
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 2, (3, 7, 5)).astype(dtype)
    x[0, 0, 0] = x[0, 1, 1] = x[1, 1, 1] = x[2, 6, 1] = x[2, 6, 2] = 0
    x[1, 3, 3], x[1, 4, 4], x[2, 2, 0], x[2, 3, 0] = np.nan, np.inf, -np.inf, np.inf
    expected = np.empty(x.shape, np.complex128)
    for index in np.ndindex(x.shape):
        others = x.astype(np.complex128 if dtype == np.complex64 else np.float64)
        others[index] = 1
        expected[index] = others[tuple(slice(None) if i in axes else index[i] for i in range(3))].prod()
    got = reductions.product_of_others(x, axes)
    assert got.dtype == dtype
    assert got.shape == x.shape
    finite = np.isfinite(expected)
    np.testing.assert_allclose(got[finite], expected[finite], 1e-5)
    assert not np.isfinite(got[~finite]).any()
    if dtype != np.complex64:
        np.testing.assert_array_equal(got[~finite], expected.real[~finite])


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_gradient_of_a_product_of_many(axis: int | None) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, (4, 6)).astype(np.float32)
    x[1, 2] = 0
    f = lambda x: (x.prod(axis) * 3).sum()
    expected = np.asarray(pullback.jit(pullback.grad(f))(x))
    with small_blocks():
        np.testing.assert_allclose(np.asarray(pullback.grad(f)(pullback.numpy.asarray(x))), expected, 1e-5)
        hessian = pullback.hessian(f)(pullback.numpy.asarray(x))
    np.testing.assert_allclose(np.asarray(hessian), np.asarray(pullback.jit(pullback.hessian(f))(x)), 1e-4, 1e-5)
