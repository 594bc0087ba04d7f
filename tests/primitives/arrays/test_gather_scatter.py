"""Gathers, scatters and slices at computed places: against loops in plain Python, and by the laws of derivatives."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback
from pullback.core.array import Array, ArrayImpl, as_array
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.primitives.arrays import indexing, scatter, slicing
from pullback.primitives.arrays.indexing import GatherDimensionNumbers, GatherScatterMode
from pullback.primitives.arrays.scatter import ScatterDimensionNumbers
from tests.helpers import value

CLIP, FILL, PROMISE = GatherScatterMode
SCATTERS = {
    "scatter": lambda old, new: new,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}


class Case:
    """A gather: shapes, indices (some out of range) and dimension numbers that fit together."""

    def __init__(self, rng: np.random.Generator) -> None:
        batch = [int(n) for n in rng.integers(1, 4, rng.integers(0, 2))]
        rest = [int(n) for n in rng.integers(1, 5, rng.integers(1, 4))]
        kinds = list(rng.permutation(["batch"] * len(batch) + ["rest"] * len(rest)))
        sizes = {"batch": iter(batch), "rest": iter(rest)}
        self.shape = tuple(next(sizes[k]) for k in kinds)
        rank = len(kinds)
        along = tuple(d for d in range(rank) if kinds[d] == "batch")
        others = [d for d in range(rank) if d not in along]
        indexed = [int(d) for d in rng.permutation(others) if rng.random() < 0.7] or others[:1]
        self.sizes = tuple(
            1 if d in along or (d in indexed and rng.random() < 0.5) else int(rng.integers(1, self.shape[d] + 1))
            for d in range(rank)
        )
        collapsed = tuple(d for d in others if self.sizes[d] == 1 and rng.random() < 0.7)
        axes = [*(("along", k) for k in range(len(batch))), *(("own", int(n)) for n in rng.integers(1, 4, 2))]
        axes = [axes[i] for i in rng.permutation(len(axes))][: rng.integers(len(batch), len(axes) + 1)]
        axes += [("along", k) for k in range(len(batch)) if ("along", k) not in axes]
        self.batch = tuple(n if kind == "own" else batch[n] for kind, n in axes)
        vectors = [rng.integers(-1, self.shape[d] + 1, self.batch) for d in indexed]
        self.indices = np.stack(vectors, -1).astype(np.int32)
        count = rank - len(collapsed) - len(along)
        offsets = sorted(int(i) for i in rng.permutation(len(self.batch) + count)[:count])
        self.numbers = GatherDimensionNumbers(
            tuple(offsets), collapsed, tuple(indexed), along,
            tuple(axes.index(("along", k)) for k in range(len(batch))),
        )  # fmt: skip

    def windows(self, mode: GatherScatterMode, clips: bool) -> Any:
        """For each index vector its place in the result, and its window as slices, or None if it is outside."""
        numbers = self.numbers
        rank = len(self.batch) + len(numbers.offset_dims)
        for place in np.ndindex(*self.batch):
            start = [0] * len(self.shape)
            for d, i in zip(numbers.start_index_map, self.indices[place], strict=True):
                start[d] = int(i)
            for d, b in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
                start[d] = place[b]
            last = [n - s for n, s in zip(self.shape, self.sizes, strict=True)]
            outside = any(not 0 <= i <= most for i, most in zip(start, last, strict=True))
            if mode is CLIP or clips:
                start, outside = [min(max(i, 0), most) for i, most in zip(start, last, strict=True)], False
            position = iter(place)
            where = tuple(slice(None) if i in numbers.offset_dims else next(position) for i in range(rank))
            window = tuple(slice(i, i + s) for i, s in zip(start, self.sizes, strict=True))
            yield where, None if outside else window

    def result_shape(self) -> tuple[int, ...]:
        numbers = self.numbers
        dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        window = iter([n for d, n in enumerate(self.sizes) if d not in dropped])
        batch = iter(self.batch)
        rank = len(self.batch) + len(numbers.offset_dims)
        return tuple(next(window) if i in numbers.offset_dims else next(batch) for i in range(rank))

    def gathered(self, x: Any, mode: GatherScatterMode, fill: Any) -> Any:
        out = np.empty(self.result_shape(), x.dtype)
        for where, window in self.windows(mode, clips=mode is PROMISE):
            out[where] = fill if window is None else x[window].reshape(out[where].shape)
        return out

    def scattered(self, x: Any, updates: Any, mode: GatherScatterMode, combine: Any) -> Any:
        out = x.copy()
        for where, window in self.windows(mode, clips=False):
            if window is not None:
                out[window] = combine(out[window], updates[where].reshape(out[window].shape))
        return out


cases = st.integers(0, 2**32 - 1).map(lambda seed: (Case(np.random.default_rng(seed)), np.random.default_rng(seed)))
modes = st.sampled_from([CLIP, FILL, PROMISE])


def check_linear(f: Any, *xs: Any) -> None:
    """A linear function is its own derivative, and its transpose is its transpose."""
    rng = np.random.default_rng(0)
    ts = [as_array(rng.standard_normal(x.shape)) for x in xs]
    out, tangent = pullback.jvp(f, xs, ts)
    np.testing.assert_allclose(value(tangent), value(f(*ts)), atol=1e-12)
    check_dual(f, xs, ts, out, tangent)


def check_dual(f: Any, xs: Any, ts: Any, out: Any, tangent: Any) -> None:
    """<u, J t> = <transpose(J) u, t>."""
    u = as_array(np.random.default_rng(1).standard_normal(out.shape))
    pulled = pullback.vjp(f, *xs)[1](u)
    left = (value(u) * value(tangent)).sum()
    right = sum((value(p) * value(t)).sum() for p, t in zip(pulled, ts, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


def check_vmap(f: Any, *xs: Any) -> None:
    """vmap over any of the arguments, along the first or the last axis, is a loop."""
    for dims in itertools.product(*[(None, 0, -1) for _ in xs]):
        if all(d is None for d in dims):
            continue
        batched = [x if d is None else np.stack([x, np.flip(x), x], d) for x, d in zip(map(value, xs), dims)]
        out = value(pullback.vmap(f, in_axes=dims)(*map(as_array, batched)))
        for k in range(3):
            one = [x if d is None else np.array(x.take(k, d)) for x, d in zip(batched, dims, strict=True)]
            np.testing.assert_allclose(out[k], value(f(*map(as_array, one))), atol=1e-12)


# Gather and scatter ------------------------------------------------------------------------------------------------


@given(cases, modes)
def test_gather_is_a_loop_over_windows(drawn: Any, mode: GatherScatterMode) -> None:
    case, rng = drawn
    with enable_x64(True):
        x = as_array(rng.standard_normal(case.shape))
        indices = as_array(case.indices)

        def f(a: Array, i: Any = indices) -> Any:
            return indexing.gather(a, i, case.numbers, case.sizes, mode=mode, fill_value=7)

        np.testing.assert_array_equal(value(f(x)), case.gathered(value(x), mode, 7))
        assert pullback.eval_shape(f, x).shape == case.result_shape()
        out, tangent = pullback.jvp(f, (x,), (x,))
        np.testing.assert_array_equal(value(tangent), case.gathered(value(x), mode, 0))
        check_dual(f, (x,), (x,), out, tangent)
        check_vmap(f, x, indices)


@given(cases, modes, st.sampled_from(sorted(SCATTERS)))
def test_scatters_are_loops_over_windows(drawn: Any, mode: GatherScatterMode, name: str) -> None:
    case, rng = drawn
    numbers = ScatterDimensionNumbers(*case.numbers)
    with enable_x64(True):
        x, updates = as_array(rng.standard_normal(case.shape)), as_array(rng.standard_normal(case.result_shape()))
        indices = as_array(case.indices)

        def f(a: Any, u: Any, i: Any = indices) -> Any:
            return getattr(scatter, name)(a, i, u, numbers, mode=mode)

        want = case.scattered(value(x), value(updates), mode, SCATTERS[name])
        np.testing.assert_allclose(value(f(x, updates)), want, atol=1e-12)
        assert pullback.eval_shape(f, x, updates).shape == case.shape
        if name in ("scatter", "scatter_add", "scatter_sub"):
            check_linear(f, x, updates)
        else:
            ts = [as_array(rng.standard_normal(a.shape)) for a in (x, updates)]
            out, tangent = pullback.jvp(f, (x, updates), ts)
            ends = [[as_array(value(a) + h * value(t)) for a, t in zip((x, updates), ts)] for h in (1e-6, -1e-6)]
            slope = (value(f(*ends[0])) - value(f(*ends[1]))) / 2e-6
            np.testing.assert_allclose(value(tangent), slope, rtol=1e-5, atol=1e-6)
            check_dual(f, (x, updates), ts, out, tangent)
        check_vmap(f, x, updates, indices)


ROWS = GatherDimensionNumbers((1,), (0,), (0,))
ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))


def test_products_with_zeros_and_repeated_positions_have_a_derivative() -> None:
    with enable_x64(True):
        indices = as_array(np.array([[0], [0], [1], [1]]))
        x, updates = as_array(np.array([2.0, 3.0])), as_array(np.array([0.0, 5.0, 0.0, 0.0]))
        _, pull = pullback.vjp(lambda u: scatter.scatter_mul(x, indices, u, ELEMENTS), updates)
        (by_updates,) = pull(as_array(np.ones(2)))
        np.testing.assert_array_equal(value(by_updates), [10.0, 0.0, 0.0, 0.0])


def test_ties_share_the_derivative() -> None:
    x = as_array(np.ones(2, np.float32))
    first = as_array(np.array([[0], [0]]))
    _, pull = pullback.vjp(lambda a, u: scatter.scatter_max(a, first, u, ELEMENTS), x, x)
    by_x, by_updates = pull(as_array(np.ones(2, np.float32)))
    np.testing.assert_allclose(value(by_x), [1 / 3, 1], rtol=1e-6)
    np.testing.assert_allclose(value(by_updates), [1 / 3, 1 / 3], rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("float32", np.nan), ("float16", np.nan), ("complex64", complex(np.nan, 0)), ("int32", -(2**31)),
        ("int8", -128), ("uint8", 255), ("bool", True), (ml_dtypes.bfloat16, np.nan),
    ],
)  # fmt: skip
def test_windows_outside_are_filled_by_dtype(dtype: Any, fill: Any) -> None:
    x = as_array(np.ones((2, 1), dtype))
    out = indexing.gather(x, as_array(np.array([[1], [2], [-1]])), ROWS, (1, 1), mode="fill")
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(
        value(out).astype(np.complex64), np.array([[1], [fill], [fill]], dtype).astype(np.complex64)
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "complex64", ml_dtypes.bfloat16, [("a", "u4"), ("b", "u4")]])
def test_elements_of_every_dtype_are_moved(dtype: Any) -> None:
    raw = np.zeros((4, 2), dtype)
    if raw.dtype.names:
        raw["a"] = np.arange(8).reshape(4, 2)
    else:
        raw[:] = np.arange(8).reshape(4, 2) % 2
    x, indices = ArrayImpl(raw), as_array(np.array([[3], [0]]))
    np.testing.assert_array_equal(value(indexing.gather(x, indices, ROWS, (1, 2))), raw[[3, 0]])
    zero = ArrayImpl(np.zeros((4, 2), dtype))
    put = scatter.scatter(zero, indices, ArrayImpl(raw[:2]), ScatterDimensionNumbers(*ROWS))
    np.testing.assert_array_equal(value(put)[[3, 0]], raw[:2])
    np.testing.assert_array_equal(value(indexing.dynamic_slice(x, (9, 0), (2, 1))), raw[2:, :1])
    np.testing.assert_array_equal(value(indexing.dynamic_update_slice(x, ArrayImpl(raw[:1]), (-5, 0)))[0], raw[0])


def test_the_last_of_several_updates_stays_and_has_the_derivative() -> None:
    x, updates = as_array(np.zeros(2, np.float32)), as_array(np.array([1, 2, 3], np.float32))
    f = lambda u: scatter.scatter(x, as_array(np.array([[1], [0], [1]])), u, ELEMENTS)
    out, pull = pullback.vjp(f, updates)
    np.testing.assert_array_equal(value(out), [2, 3])
    np.testing.assert_array_equal(value(pull(as_array(np.array([10, 20], np.float32)))[0]), [0, 10, 20])


# Slices at computed places -----------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.data())
def test_dynamic_slices_are_moved_inside(data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 4)))
    sizes = tuple(int(rng.integers(0, n + 1)) for n in shape)
    starts = rng.integers(-3, 5, len(shape)).astype(np.int32)
    first = [min(max(int(i), 0), n - s) for i, n, s in zip(starts, shape, sizes, strict=True)]
    block = tuple(slice(i, i + s) for i, s in zip(first, sizes, strict=True))
    with enable_x64(True):
        x, update = as_array(rng.standard_normal(shape)), as_array(rng.standard_normal(sizes))
        where = as_array(starts)

        def read(a: Any, i: Any = where) -> Any:
            return indexing.dynamic_slice(a, slicing.unstack(i, 0), sizes)

        def write(a: Any, u: Any, i: Any = where) -> Any:
            return indexing.dynamic_update_slice(a, u, slicing.unstack(i, 0))

        np.testing.assert_array_equal(value(read(x)), value(x)[block])
        want = value(x).copy()
        want[block] = value(update)
        np.testing.assert_array_equal(value(write(x, update)), want)
        check_linear(read, x)
        check_linear(write, x, update)
        check_vmap(read, x, where)
        check_vmap(write, x, update, where)
        check_vmap(lambda a, u: write(a, u), x, update)


def test_stacks() -> None:
    with enable_x64(True):
        rng = np.random.default_rng(0)
        for shape, axis in (((), 0), ((2,), 0), ((2,), 1), ((2, 3), 1)):
            x, y = as_array(rng.standard_normal(shape)), as_array(rng.standard_normal(shape))
            stacked = slicing.stack([x, y], axis)
            np.testing.assert_array_equal(value(stacked), np.stack([value(x), value(y)], axis))
            check_linear(lambda a, b, axis=axis: slicing.stack([a, b], axis), x, y)
            check_vmap(lambda a, b, axis=axis: slicing.stack([a, b], axis), x, y)
            check_linear(lambda a, axis=axis: slicing.unstack(a, axis)[1], stacked)
            check_vmap(lambda a, axis=axis: slicing.unstack(a, axis)[1], stacked)


@pytest.mark.parametrize("config", [(-1, 2, 0), (1, -2, 2), (-2, -1, 1), (0, 0, 3), (-4, 3, 1), (2, -3, 0)])
@pytest.mark.parametrize("size", [0, 1, 3, 4])
def test_pad_cuts_and_fills_between(config: tuple[int, int, int], size: int) -> None:
    low, high, inner = config
    spread: list[float] = []
    for i in range(size):
        spread += [float(i + 1), *[9.0] * (inner if i < size - 1 else 0)]
    wide = [9.0] * max(low, 0) + spread + [9.0] * max(high, 0)
    want = wide[max(-low, 0) : max(len(wide) + min(high, 0), 0)]
    with enable_x64(True):
        x, nine = as_array(np.arange(1.0, size + 1)), as_array(np.float64(9))
        if len(wide) + min(low, 0) + min(high, 0) < 0:
            with pytest.raises(ShapeError, match="pad of an array of shape"):
                slicing.pad(x, nine, [config])
            return
        np.testing.assert_array_equal(value(slicing.pad(x, nine, [config])), want)
        check_linear(lambda a, v: slicing.pad(a, v, [config]), x, nine)
        check_vmap(lambda a, v: slicing.pad(a, v, [config]), x, nine)


# Errors ------------------------------------------------------------------------------------------------------------

X = as_array(np.ones((2, 3), np.float32))
I = as_array(np.zeros((4, 1), np.int32))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: indexing.gather(X, I, ROWS, (1, 4)), ShapeError, r"slice_sizes \(1, 4\) do not fit .* \(2, 3\)"),
        (lambda: indexing.gather(X, I, ROWS, (2, 3)), ShapeError, r"must be 1 along .* \(0,\), got \(2, 3\)"),
        (lambda: indexing.gather(X, X, ROWS, (1, 3)), DtypeError, r"integers as indices, got f32\[2,3\]"),
        (
            lambda: indexing.gather(X, I, ROWS._replace(start_index_map=(0, 1)), (1, 3)),
            ShapeError,
            r"shape \(4, 1\), is the index vector; it needs 2 components",
        ),
        (
            lambda: indexing.gather(X, I, ROWS._replace(offset_dims=(2,)), (1, 3)),
            ShapeError,
            r"offset_dims must be 1 increasing axes of a result with 2 axes, got \(2,\)",
        ),
        (lambda: indexing.gather(X, I, ROWS, (1, 3), mode="bounce"), ArgumentError, r"'clip', .* got 'bounce'"),
        (
            lambda: scatter.scatter_add(X, I, X, ScatterDimensionNumbers(*ROWS)),
            ShapeError,
            r"updates of shape \(2, 3\), .* do not fit indices of shape \(4, 1\)",
        ),
        (
            lambda: scatter.scatter(X, I, as_array(np.ones((4, 3), np.int32)), ScatterDimensionNumbers(*ROWS)),
            DtypeError,
            "scatter takes operands of one dtype",
        ),
        (lambda: indexing.dynamic_slice(X, (0,), (1, 1)), ShapeError, "needs 2 scalar start indices"),
        (lambda: indexing.dynamic_slice(X, (0, 0), (3, 1)), ShapeError, r"a block of shape \(3, 1\) is too large"),
        (lambda: indexing.dynamic_update_slice(X, X, (0, X)), ShapeError, "needs 2 scalar start indices"),
        (lambda: slicing.stack([X, I], 0), (DtypeError, ShapeError), "stack"),
    ],
)
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    with pytest.raises(error, match=message):
        pullback.eval_shape(lambda _: call(), X)
