"""Segments, resampled images and exchanged arrays: bad input, special values, shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import dlpack, image, jit, ops

X = np.arange(24, dtype=np.float32).reshape(4, 6)
ONE, ZERO = np.ones(1, np.float32), np.zeros(1, np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.segment_sum(ONE, ONE, 2), TypeError, "segment_ids must be integers, got f32"),
        (lambda: ops.segment_sum(X, np.zeros(3, int), 2), ValueError, r"\(3,\) for data of shape \(4, 6\)"),
        (lambda: ops.segment_sum(ONE, [0], 2), TypeError, "segment_sum"),
        (lambda: ops.segment_sum(ZERO[:0], np.zeros(0, int)), ValueError, "pass num_segments"),
        (lambda: ops.segment_sum(ONE, np.zeros(1, int), -1), ValueError, "must not be negative, got -1"),
        (lambda: ops.segment_sum(ONE, np.zeros(1, int), 2.0), TypeError, "num_segments must be an int"),
        (lambda: ops.segment_sum(ONE, np.zeros(1, int), 2, bucket_size=0), ValueError, "must be positive, got 0"),
        (lambda: ops.segment_max(ONE + 1j, np.zeros(1, int), 2), TypeError, "data must be of real numbers"),
        (lambda: pullback.jit(ops.segment_sum)(ONE, np.zeros(1, int)), TypeError, "must be static: pass an int"),
        (lambda: image.resize(X, (2, 3), "foo"), ValueError, "unknown method 'foo'; the methods are nearest, linear"),
        (lambda: image.resize(X, (2,), "linear"), ValueError, r"got \(2,\) for an image of shape \(4, 6\)"),
        (lambda: image.resize(X, (-1, 3), "linear"), ValueError, "must not be negative"),
        (lambda: image.resize(X[:0], (2, 3), "linear"), ValueError, "has no elements, so it cannot be resized"),
        (lambda: image.scale_and_translate(X, (4, 3), (1,), ONE, ZERO, "nearest"), ValueError, "use 'linear'"),
        (lambda: image.scale_and_translate(X, (3, 3), (1,), ONE, ZERO, "linear"), ValueError, "axis 0 is not in"),
        (lambda: image.scale_and_translate(X, (4, 3), (1, 1), ONE, ZERO, "linear"), ValueError, "occurs twice"),
        (lambda: image.scale_and_translate(X, (4, 3), (0, 1), ONE, ZERO, "linear"), ValueError, r"shape \(2,\)"),
        (lambda: dlpack.from_dlpack([1]), TypeError, "with the methods __dlpack__"),
        (lambda: dlpack.from_dlpack(np.arange(3.0), copy=False), BufferError, "copy is False"),
        (lambda: dlpack.from_dlpack(np.array(["a"])), BufferError, "cannot be exchanged"),
        (lambda: pnp.zeros(2, "int4").__dlpack__(), BufferError, "DLPack has no int4"),
        (lambda: pnp.zeros(2).__dlpack__(dl_device=(2, 0)), BufferError, r"got \(2, 0\)"),
        (lambda: pnp.zeros(2).__dlpack__(stream=1), BufferError, "have no streams"),
        (lambda: pnp.zeros(2).__dlpack__(copy=False), BufferError, "pass copy=None"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_empty_segments_have_the_identity() -> None:
    ids = np.array([1])
    assert [float(f(ONE, ids, 2)[0]) for f in (ops.segment_sum, ops.segment_prod)] == [0, 1]
    assert [float(f(ONE, ids, 2)[0]) for f in (ops.segment_max, ops.segment_min)] == [-np.inf, np.inf]


def test_buckets_lose_no_small_terms() -> None:
    data = np.full(1000, 0.1, np.float32)
    of_buckets = lambda x: ops.segment_sum(x, np.zeros(1000, int), 1, bucket_size=30)
    np.testing.assert_allclose(of_buckets(data), [100], rtol=1e-6)
    np.testing.assert_allclose(jit(of_buckets)(data), [100], rtol=1e-6)


def test_weights_of_an_image_add_up_to_one() -> None:
    for method in ("linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch"):
        for shape in ((200, 3), (3, 300)):
            np.testing.assert_allclose(image.resize(np.ones((7, 90), np.float32), shape, method), 1, rtol=1e-5)


def test_memory_is_shared_both_ways_and_never_overwritten() -> None:
    theirs = np.arange(600, dtype=np.float32)
    ours = dlpack.from_dlpack(theirs)
    assert np.shares_memory(np.asarray(ours), theirs)
    assert not np.shares_memory(np.asarray(dlpack.from_dlpack(theirs, copy=True)), theirs)
    assert np.shares_memory(np.from_dlpack(ours), theirs)
    assert not np.from_dlpack(ours).flags.writeable
    double = pullback.jit(lambda x: 2 * x, donate_argnums=0)
    np.testing.assert_array_equal(double(ours), 2 * np.arange(600))
    np.testing.assert_array_equal(theirs, np.arange(600))
    computed = pullback.jit(lambda x: x + 1)(theirs)
    assert np.shares_memory(np.from_dlpack(computed), np.asarray(computed))


def test_supported_dtypes() -> None:
    assert all(map(dlpack.is_supported_dtype, ("float32", "bfloat16", "bool", "complex64", "uint64", "float64")))
    assert not any(map(dlpack.is_supported_dtype, ("int4", "float8_e4m3fn", object)))


def test_an_image_moved_in_has_zeros_outside_of_its_edge() -> None:
    moved = image.scale_and_translate(np.array([1.0, 2.0, 3.0]), (5,), (0,), ONE, 0.7 * ONE, "linear")
    np.testing.assert_allclose(moved, [0, 1.3, 2.3, 3, 0], rtol=1e-6)
