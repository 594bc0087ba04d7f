"""Copies by the module in C are NumPy's, whatever the axes, strides, sizes of elements and threads."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback.backends.host import moves, own

pytestmark = pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")

DTYPES = (np.bool_, np.int16, np.float32, np.complex64, np.float64, np.complex128)


@pytest.fixture(autouse=True)
def _of_few_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "COPIED", 1)
    monkeypatch.setattr(moves, "SHARE", 1)


def _numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    x = np.arange(1, 1 + np.prod(shape), dtype=np.int64).reshape(shape)
    return x % 3 == 0 if dtype is np.bool_ else (x + 1j * x if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3, 130), (4, 100), (1, 70), (500,), (40, 50, 3), (37, 35, 33), (3, 2, 2, 2, 90)])
def test_copies_are_those_of_numpy(shape: tuple[int, ...], dtype: Any) -> None:
    x = _numbers(shape, dtype)
    for source in (x, x[..., ::-1], x[..., :1], x[:1], np.broadcast_to(x[..., :1], shape), np.zeros_like(x[:1])):
        out = np.zeros((*shape[:-1], shape[-1] + 5), dtype)
        moves.copy(out[..., 2:-3], source)
        np.testing.assert_array_equal(out[..., 2:-3], np.broadcast_to(source, shape))
        assert not out[..., :2].any()
        assert not out[..., -3:].any()
    for axis in range(len(shape)):
        parts = [x, x.take([0, 0], axis), x]
        np.testing.assert_array_equal(moves.concatenated(parts, axis), np.concatenate(parts, axis))
        np.testing.assert_array_equal(moves.concatenated([x, x, x], axis), np.concatenate([x, x, x], axis))


@pytest.mark.parametrize("seed", range(60))
def test_copies_of_any_views(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 6))
    shape = tuple(rng.integers(1, (0, 3000, 90, 40, 17, 9)[ndim], ndim).tolist())
    dtype = DTYPES[rng.integers(len(DTYPES))]
    target, source = _view(rng, shape, dtype), _view(rng, shape, dtype)
    if rng.random() < 0.3:
        axis = int(rng.integers(ndim))
        source = source[(slice(None),) * axis + (slice(0, 1),)]
    whole = target.base if target.base is not None else target
    before = whole.copy()
    moves.move([(target, source)])
    np.testing.assert_array_equal(target, np.broadcast_to(source, shape))
    target[...] = np.ndarray(shape, dtype, before, _offset(target, whole), target.strides)
    np.testing.assert_array_equal(whole, before)  # nothing else was written


def _view(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """A view of a larger array, with its axes in any order, reversed or not, and elements left out."""
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 1, -1, 2, -3])) for _ in shape]
    sizes = [shape[i] * abs(steps[i]) + int(rng.integers(0, 3)) for i in order]
    view = _numbers(tuple(sizes), dtype).transpose(np.argsort(order))
    cut = [slice(0, n * abs(k), abs(k)) for n, k in zip(shape, steps, strict=True)]
    view = view[tuple(cut)]
    return view[tuple([slice(None, None, -1 if k < 0 else 1) for k in steps])]


def _offset(view: Any, whole: Any) -> int:
    return int(view.__array_interface__["data"][0] - whole.__array_interface__["data"][0])


def test_several_copies_at_once() -> None:
    x = _numbers((300, 70), np.float32)
    out = np.zeros((2, 300, 71), np.float32)
    nothing = (out[:0, 0], x[:0, :1])
    moves.move([(out[0, :, 1:], x), (out[1, :100, :1], x[:1, :1]), (out[1, 100:, 70], x[100:, 3]), nothing])
    expected = np.zeros((2, 300, 71), np.float32)
    expected[0, :, 1:], expected[1, :100, 0], expected[1, 100:, 70] = x, 1, x[100:, 3]
    np.testing.assert_array_equal(out, expected)


def test_objects_are_copied_by_numpy() -> None:
    value = object()
    before = sys.getrefcount(value)
    out = np.empty(100, object)
    moves.copy(out, np.full(100, value, object))
    assert sys.getrefcount(value) == before + 100


def test_wrong_copies_are_errors() -> None:
    out = np.zeros((2, 3), np.float32)
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    for pair in (
        (out, np.zeros((3, 3), np.float32)), (out, np.zeros((1, 2, 3), np.float32)), (out, np.zeros((2, 3))),
        (frozen, out), (np.zeros(3, "S3"), np.zeros(3, "S3")), (np.zeros(3, object), np.zeros(3, object)),
        (np.zeros(3), np.zeros(2)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="expected"):
            own.loops.move([pair], 0)
    with pytest.raises(TypeError):
        own.loops.move([out], 0)


def test_large_arrays_are_repeated_padded_and_reshaped() -> None:
    x = np.arange(240.0, dtype=np.float32).reshape(2, 3, 40)
    y = jnp.asarray(x)
    for function in (
        lambda m, x: m.repeat(x, 3), lambda m, x: m.repeat(x, 20, 1), lambda m, x: m.tile(x, (2, 1, 3)),
        lambda m, x: m.swapaxes(x, 0, 1).reshape(-1), lambda m, x: x[:, ::2, ::3].reshape(-1),
        lambda m, x: m.pad(x, ((1, 0), (0, 2), (3, 3))), lambda m, x: m.concatenate([x, x[:, :2]], 1),
        lambda m, x: m.pad(x, 2, constant_values=7.0),
        lambda m, x: m.roll(x, 7), lambda m, x: m.roll(x, -7, 2),
        lambda m, x: m.roll(x, (1, 2), (0, -2)),
        lambda m, x: m.roll(x, 0, 1), lambda m, x: m.roll(x[:, :, ::2], 3, -1),
        lambda m, x: m.stack([x, x], 3), lambda m, x: m.stack([x, x], 1),
    ):  # fmt: skip
        np.testing.assert_array_equal(function(jnp, y), function(np, x))
