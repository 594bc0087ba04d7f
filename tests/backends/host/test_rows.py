"""Functions of whole rows: values against double precision, and the same bits by one thread and by several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from pullback.backends.host import native, own, reductions, rows

pytestmark = pytest.mark.skipif(native.loops is None, reason="there is no module in C")

LENGTHS = (1, 2, 31, 32, 33, 63, 64, 65, 100, 511, 512, 513, 1000, 5000)


def others(x: Any) -> Any:
    ones = np.ones((len(x), 1))
    before = np.cumprod(np.concatenate([ones, x[:, :-1]], 1), 1)
    return before * np.cumprod(np.concatenate([x[:, 1:], ones], 1)[:, ::-1], 1)[:, ::-1]


ONE: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "softmax": (lambda x: scipy.special.softmax(x, -1), False),
    "log_softmax": (lambda x: scipy.special.log_softmax(x, -1), False),
    "logsumexp": (lambda x: scipy.special.logsumexp(x, -1), True),
    "logsumexp_slope": (lambda x: scipy.special.softmax(x, -1), False),
    "norm": (lambda x: np.linalg.norm(x, axis=-1), True),
    "others": (others, False),
}  # fmt: skip
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "softmax_slope": lambda y, t: y * (t - (y * t).sum(-1, keepdims=True)),
    "log_softmax_slope": lambda y, t: t - (np.exp(y) * t).sum(-1, keepdims=True),
    "log_softmax_pull": lambda y, t: t - np.exp(y) * t.sum(-1, keepdims=True),
}


def both_ways(name: str, *operands: Any, reduces: bool, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The result by one call, whose bits are those of several threads."""
    alone = rows.of_rows(name, *operands, axes=(1,), reduces=reduces)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "ALONE", 1)
        patch.setattr(rows, "cores", lambda: 3)
        shared = rows.of_rows(name, *operands, axes=(1,), reduces=reduces)
    assert alone.dtype == shared.dtype == operands[0].dtype
    np.testing.assert_array_equal(alone, shared)
    return alone


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_values(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        x = rng.uniform(0.9, 1.1, (3, length)) if name == "others" else rng.normal(0, 3, (3, length))
        x = x.astype(dtype)
        if name in ONE:
            expected, reduces = ONE[name][0](x.astype(np.float64)), ONE[name][1]
            got = both_ways(name, x, reduces=reduces, monkeypatch=monkeypatch)
        else:
            y = (scipy.special.softmax if name == "softmax_slope" else scipy.special.log_softmax)(x, -1).astype(dtype)
            t = rng.normal(size=x.shape).astype(dtype)
            expected = TWO[name](y.astype(np.float64), t.astype(np.float64))
            got = both_ways(name, y, t, reduces=False, monkeypatch=monkeypatch)
        scale = np.abs(expected).max()
        tolerance = np.finfo(dtype).eps * (64 if name == "others" else 16)
        np.testing.assert_allclose(got, expected, tolerance, scale * tolerance if name != "others" else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 7, 63, 64, 100, 1000])
def test_sums_of_exponentials_of_what_is_not_finite(dtype: Any, length: int) -> None:
    x = np.linspace(-2, 2, 5 * length).reshape(5, length).astype(dtype)
    x[0], x[1, 0], x[2, -1], x[3, length // 2] = -np.inf, np.inf, np.nan, -np.inf
    out = rows.of_rows("logsumexp", x, axes=(1,), reduces=True)
    np.testing.assert_array_equal(out[:3], [-np.inf, np.inf, np.nan])
    np.testing.assert_allclose(out[3:], scipy.special.logsumexp(x[3:], -1), 1e-6)
    slope = rows.of_rows("logsumexp_slope", x, axes=(1,))
    assert not slope[0].any()
    assert np.isnan(slope[1, 0])
    assert not slope[1, 1:].any()
    assert np.isnan(slope[2]).all()
    np.testing.assert_allclose(slope[4].sum(), 1, 1e-6)
    assert length == 1 or slope[3, length // 2] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 5, 512, 700])
def test_norms_of_large_and_small_numbers(dtype: Any, length: int) -> None:
    info = np.finfo(dtype)
    unit = np.random.default_rng(0).normal(size=(1, length)).astype(dtype) / 64
    x = np.concatenate([unit * info.max, unit * info.tiny, unit * 0, unit, unit, unit]).astype(dtype)
    x[3, 0], x[4, -1] = -np.inf, np.nan
    got = rows.of_rows("norm", x, axes=(1,), reduces=True)
    expected = np.array([np.linalg.norm(row / row.max()) * row.max() for row in np.abs(x[:2].astype(np.longdouble))])
    np.testing.assert_allclose(got[0] / info.max, expected[0] / np.longdouble(info.max), 1e-5)
    np.testing.assert_allclose(got[1] / info.smallest_subnormal, expected[1] / info.smallest_subnormal, 1e-5, 1)
    np.testing.assert_array_equal(got[2:5], [0, np.inf, np.nan])
    np.testing.assert_allclose(got[5], np.linalg.norm(unit.astype(np.float64)), 1e-6)


@pytest.mark.parametrize("length", [1, 5, 63, 64, 65, 200, 999])
def test_products_of_others_with_zeros(length: int) -> None:
    x = np.random.default_rng(0).uniform(0.99, 1.01, (3, length)).astype(np.float32)
    x[1, length // 2] = 0
    x[2, 0] = x[2, -1] = 0
    got = rows.of_rows("others", x, axes=(1,))
    np.testing.assert_allclose(got, others(x.astype(np.float64)), 1e-5)
    assert np.count_nonzero(got[1]) == 1
    assert np.count_nonzero(got[2]) == (1 if length == 1 else 0)


def test_products_of_others_along_axes_of_strided_arrays() -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, (40, 6, 80)).astype(np.float32)[:, ::-1, ::2]
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        got = reductions.product_of_others(x, axes)
        wide = x.astype(np.float64)
        np.testing.assert_allclose(got, wide.prod(axes, keepdims=True) / wide, 1e-4)
        assert got.flags.c_contiguous


def test_rows_of_several_axes_and_none() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    np.testing.assert_allclose(
        rows.of_rows("logsumexp", x, axes=(2, 3), reduces=True), scipy.special.logsumexp(x, (2, 3)), 1e-6
    )
    assert rows.of_rows("norm", x, axes=(0, 1, 2, 3), reduces=True).shape == ()
    empty = np.empty((0, 4), np.float32)
    assert rows.of_rows("softmax", empty, axes=(1,)).shape == (0, 4)
    assert rows.of_rows("norm", empty, axes=(1,), reduces=True).shape == (0,)


def test_operands_that_are_not_alike_are_left_to_the_general_way() -> None:
    loop, x = own.loop("softmax_slope f"), np.ones((4, 6), np.float32)
    assert native.loops.each_row(loop, 1, False, x, x.astype(np.float64)) is None
    assert native.loops.each_row(loop, 1, False, x, x[:3]) is None
    assert native.loops.each_row(loop, 1, False, x, np.ones((6, 4), np.float32).T) is None
    y = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32).T
    expected = native.loops.each_row(loop, 1, False, x, y.copy())
    np.testing.assert_array_equal(rows.of_rows("softmax_slope", x, y, axes=(1,)), expected)


def test_wrong_calls() -> None:
    x = np.ones((4, 6), np.float32)
    with pytest.raises(TypeError, match="expected a loop"):
        native.loops.each_row(own.loop("softmax f"), 1, False)
    with pytest.raises(ValueError, match="expected a function of whole rows"):
        native.loops.each_row(own.loop("maximum f"), 1, False, x, x)
    with pytest.raises(ValueError, match="expected a function of whole rows"):
        native.loops.each_row(own.loop("softmax f"), 3, False, x)
    with pytest.raises(ValueError, match="short rows"):
        native.loops.each_row(own.loop("norm f"), 0, True, np.ones(native.MOST_OF_A_ROW + 1, np.float32))
