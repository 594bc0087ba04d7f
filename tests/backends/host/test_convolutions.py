"""Convolutions by the module in C: right for all sizes of tiles, and the same bits on all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback import lax
from pullback.backends.host import convolutions, own

pytestmark = pytest.mark.skipif(
    own.loops is None or not own.loops.convolves(), reason="no module in C, or not for this processor"
)
NHWC = ("NHWC", "HWIO", "NHWC")


def _operands(shape: Any, kernel: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape, np.float32), rng.standard_normal(kernel, np.float32)


def _expected(x: Any, kernel: Any, padding: Any) -> Any:
    x = np.pad(x.astype(np.float64), ((0, 0), *padding, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], (1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, kernel.astype(np.float64))


@pytest.mark.parametrize(
    ("shape", "kernel", "padding"),
    [
        ((2, 5, 7, 3), (3, 3, 3, 32), ((1, 1), (1, 1))),
        ((1, 1, 3, 1), (1, 1, 1, 32), ((0, 0), (0, 0))),
        ((3, 4, 8, 5), (2, 3, 5, 64), ((0, 2), (3, 0))),
        ((2, 6, 4, 2), (1, 2, 2, 24), ((1, 0), (0, 0))),
        ((1, 9, 9, 7), (4, 1, 7, 31), ((0, 0), (1, 2))),
        ((2, 3, 5, 4), (3, 3, 4, 90), ((2, 2), (2, 2))),
    ],
)
def test_tiles_of_all_sizes(shape: Any, kernel: Any, padding: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolutions, "_LEAST", 1)
    monkeypatch.setattr(convolutions, "_SHARE", 1)
    x, k = _operands(shape, kernel)
    expected = _expected(x, k, padding)
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(convolutions, "cores", lambda count=count: count)
        found.append(convolutions.convolved(x, k, padding))
    np.testing.assert_allclose(found[0], expected, 0, 1e-6 * np.abs(k).sum((0, 1, 2)).max() * np.abs(x).max())
    assert {out.tobytes() for out in found} == {found[0].tobytes()}
    out = convolutions.convolved(x[:, :, ::-1], np.asfortranarray(k), padding)
    np.testing.assert_allclose(out, _expected(x[:, :, ::-1], k, padding), 0, 1e-4)


def test_infinite_and_undefined_elements_reach_their_windows_alone() -> None:
    x, k = _operands((1, 40, 40, 16), (3, 3, 16, 32))
    expected = convolutions.convolved(x, k, ((1, 1), (1, 1)))
    x[0, 20, 20, 3] = np.nan
    out = convolutions.convolved(x, k, ((1, 1), (1, 1)))
    near = np.zeros((1, 40, 40), bool)
    near[0, 19:22, 19:22] = True
    assert np.isnan(out[near]).all()
    np.testing.assert_array_equal(out[~near], expected[~near])


def test_others_are_the_compilers() -> None:
    x, k = _operands((2, 32, 32, 32), (3, 3, 32, 32))
    ones = ((1, 1), (1, 1))
    assert convolutions.convolved(x, k, ones) is not None
    assert convolutions.convolved(x[:1, :8, :8], k[..., :], ones) is None  # few products
    assert convolutions.convolved(x, k[..., :8], ones) is None  # most of a tile would be for nothing
    assert convolutions.convolved(x[:, :, :2], k[:, :2], ((1, 1), (0, 0))) is None  # fewer positions than a tile has
    assert convolutions.convolved(x, k, ((1, 1), (1, -1))) is None
    assert convolutions.convolved(x.astype(np.float64), k, ones) is None
    assert convolutions.convolved(x, k.astype(np.float64), ones) is None
    assert convolutions.convolved(*_operands((2, 16, 16, 128), (3, 3, 128, 32)), ones) is None  # a large kernel


@pytest.mark.parametrize("numbers", [NHWC, ("NHWC", "OIHW", "NHWC"), ("NCHW", "OIHW", "NCHW")])
@pytest.mark.parametrize(
    "options", [{}, {"window_strides": (2, 2)}, {"rhs_dilation": (2, 1)}, {"lhs_dilation": (1, 2)}]
)
def test_eager_convolutions_are_those_of_programs(numbers: Any, options: Any) -> None:
    x, k = _operands((3, 24, 24, 32), (3, 3, 32, 32))
    lhs, rhs = (np.moveaxis(a, range(4), [s.index(c) for c in t]) for a, s, t in zip((x, k), numbers, ("NHWC", "HWIO")))
    options = {"window_strides": (1, 1), **options}
    run = lambda x, k: lax.conv_general_dilated(x, k, padding=((1, 2), (0, 1)), dimension_numbers=numbers, **options)
    out, pull = pullback.vjp(run, lhs, rhs)
    expected, compiled = pullback.vjp(pullback.jit(run), lhs, rhs)
    assert out.dtype == expected.dtype
    assert not out.weak_type
    np.testing.assert_allclose(out, expected, 0, 1e-4)
    weights = np.sin(np.arange(out.size, dtype=np.float32)).reshape(out.shape)
    for got, want in zip(pull(weights), compiled(weights), strict=True):
        np.testing.assert_allclose(got, want, 0, 1e-3)


def test_arrays_that_do_not_fit_are_refused() -> None:
    assert own.loops is not None
    x, k, out = (np.zeros(s, np.float32) for s in ((1, 4, 5, 2), (1, 2, 2, 2, 32), (1, 3, 4, 32)))
    own.loops.convolve(x, k, out, 0)
    fixed = out.copy()
    fixed.setflags(write=False)
    for arrays in (
        (x[:, 1:], k, out), (x, k[..., :16], out), (x, k, out[..., :16]), (x, k, np.zeros((1, 3, 4, 33), np.float32)),
        (x, k[:0], out), (x.astype(np.float64), k, out), (x[..., :1], k, out), (x, k, fixed), (x[0], k, out),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="of shapes that fit"):
            own.loops.convolve(*arrays, 0)
