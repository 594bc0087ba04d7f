"""Gathers, scatters and slices at computed places, compiled: bit for bit what they give on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import jit, lax, make_jaxpr
from pullback.backends.compiler.client import default_device
from pullback.backends.compiler.programs import Lowered
from pullback.core import dtypes
from pullback.core.array import ArrayImpl, as_array, host_value, typeof
from pullback.core.config import enable_x64
from pullback.primitives.arrays import indexing, scatter
from pullback.primitives.arrays.indexing import GatherDimensionNumbers
from pullback.primitives.arrays.scatter import ScatterDimensionNumbers
from tests.helpers import spread
from tests.primitives.arrays.test_gather_scatter import CLIP, FILL, PROMISE, ROWS, SCATTERS, cases

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ELEMENTS = GatherDimensionNumbers((), (0,), (0,))


def lowered(f: Callable[..., Any], *args: Any) -> Lowered:
    return Lowered(make_jaxpr(f)(*args), "f", default_device())


def text(f: Callable[..., Any], *args: Any) -> str:
    return lowered(f, *args).module.text()


def assert_compiled_is_host(f: Callable[..., Sequence[Any]], *args: Any) -> None:
    """A function of arrays that returns a list returns the same types and the same bytes when it is compiled."""
    for got, expected in zip(lowered(f, *args).compile()(args), f(*args), strict=True):
        assert typeof(got) == typeof(expected)
        a, b = np.asarray(host_value(got)), np.asarray(host_value(expected))
        assert a.tobytes() == b.tobytes(), f"{a} != {b} (compiled, host)"


def operand(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> ArrayImpl:
    dtype = np.dtype(dtype)
    if dtype == dtypes.key_dtype:
        words = rng.integers(0, 2**64, shape, np.uint64)
        return ArrayImpl(words.view(dtype) if shape else np.asarray(words).reshape(1).view(dtype)[0])
    return ArrayImpl(np.asarray(rng.integers(-3, 4, shape)).astype(dtype)[()])


# Random dimension numbers ------------------------------------------------------------------------------------------

DTYPES = st.sampled_from(
    ["float32", "float16", ml_dtypes.bfloat16, "complex64", "float64", "int8", "uint32", "int64", "bool",
     dtypes.key_dtype]
)  # fmt: skip


@settings(max_examples=30)
@given(cases, DTYPES, st.sampled_from(INTEGERS), st.booleans())
def test_gathers(drawn: Any, dtype: Any, index_dtype: str, known: bool) -> None:
    case, rng = drawn
    with enable_x64(True):
        indices = ArrayImpl(case.indices.astype(index_dtype))
        fills = [None] if dtype == dtypes.key_dtype else [None, 1]

        def f(x: Any, i: Any = indices) -> list[Any]:
            return [
                indexing.gather(x, i, case.numbers, case.sizes, mode=mode, fill_value=fill)
                for mode in (CLIP, FILL, PROMISE)
                for fill in fills
            ]

        x = operand(rng, case.shape, dtype)
        assert_compiled_is_host(f, *([x] if known else [x, indices]))


@pytest.mark.slow
@settings(max_examples=15)
@given(cases, DTYPES, st.sampled_from(INTEGERS), st.booleans())
def test_scatters(drawn: Any, dtype: Any, index_dtype: str, known: bool) -> None:
    """Also with windows that overlap: small integers are summed exactly, and of several updates the last one stays."""
    case, rng = drawn
    numbers = ScatterDimensionNumbers(*case.numbers)
    names = ["scatter"] if dtype == dtypes.key_dtype else sorted(set(SCATTERS) - {"scatter_sub"})
    with enable_x64(True):
        indices = ArrayImpl(case.indices.astype(index_dtype))

        def f(x: Any, updates: Any, i: Any = indices) -> list[Any]:
            return [
                getattr(scatter, name)(x, i, updates, numbers, mode=mode)
                for name in names
                for mode in (CLIP, FILL, PROMISE)
            ]

        xs = [operand(rng, case.shape, dtype), operand(rng, case.result_shape(), dtype)]
        assert_compiled_is_host(f, *(xs if known else [*xs, indices]))


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), DTYPES)
def test_slices_at_computed_places(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
    with enable_x64(True):
        x = operand(rng, shape, dtype)
        args: list[Any] = [x]
        places: list[tuple[list[Any], tuple[int, ...]]] = []
        for _ in range(6):
            sizes = tuple(int(rng.integers(0, n + 1)) for n in shape)
            starts: list[Any] = []
            for _ in shape:
                start = int(rng.integers(-2, 6))
                if rng.random() < 0.5:
                    starts.append(start)
                else:
                    starts.append(len(args))
                    args.append(ArrayImpl(np.asarray(start).astype(rng.choice(INTEGERS))[()]))
                    starts[-1] = (len(args) - 1,)
            places.append((starts, sizes))
        updates = [operand(rng, sizes, dtype) for _, sizes in places]

        def f(*xs: Any) -> list[Any]:
            out = []
            for (starts, sizes), update in zip(places, updates, strict=True):
                at = [xs[s[0]] if type(s) is tuple else s for s in starts]
                out += [indexing.dynamic_slice(xs[0], at, sizes), indexing.dynamic_update_slice(xs[0], update, at)]
            return out

        assert_compiled_is_host(f, *args)


# Indices of every width, and their extremes ------------------------------------------------------------------------


SIZES = [(d, size) for d in INTEGERS[:4] for size in (3, 128, 300)]
SIZES += [(d, size) for i, d in enumerate(INTEGERS[4:]) for size in spread([3, 300, 128], i, 1)]


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_indices_of_any_width(dtype: str, size: int) -> None:
    """The size of the operand may not fit into the dtype of the indices, nor an index into that of the others."""
    info = np.iinfo(dtype)
    values = [0, 1, 2, size - 1, size, 127, 128, 255, info.max, info.max - 1, info.min, info.min + 1, -1 + 2**32, 2**32]
    with enable_x64(True):
        indices = ArrayImpl(np.array([[v] for v in values if info.min <= v <= info.max], dtype))
        count = len(indices.shape) and indices.shape[0]
        x = as_array(np.arange(size, dtype=np.float32))
        updates = as_array(np.arange(count, dtype=np.float32) + 0.5)
        numbers = ScatterDimensionNumbers(*ELEMENTS)

        def f(x: Any, i: Any, u: Any) -> list[Any]:
            out = [indexing.gather(x, i, ELEMENTS, (1,), mode=mode) for mode in (CLIP, FILL, PROMISE)]
            out += [scatter.scatter_add(x, i, u, numbers, mode=mode) for mode in (CLIP, FILL, PROMISE)]
            for k in range(count):
                start = indexing.gather(
                    i, as_array(np.array([k, 0])), GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1)
                )
                out.append(indexing.dynamic_slice(x, [start], (2,)))
            return out

        assert_compiled_is_host(f, x, indices, updates)
        assert_compiled_is_host(lambda x, u: f(x, indices, u), x, updates)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_indices_of_less_than_a_byte(dtype: Any) -> None:
    indices = ArrayImpl(np.array([[3], [1], [0]], dtype))
    x = as_array(np.arange(40, dtype=np.float32))
    f = lambda x: [indexing.gather(x, indices, ELEMENTS, (1,), mode=mode) for mode in (CLIP, FILL)]
    assert_compiled_is_host(f, x)


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_the_largest_unsigned_index_is_at_the_end(mode: str) -> None:
    with enable_x64(True):
        last = as_array(np.array([[2**64 - 1]], np.uint64))
        x = as_array(np.arange(3.0))
        out = indexing.gather(x, last, ELEMENTS, (1,), mode=mode, fill_value=-1)
        assert float(out[0]) == (2.0 if mode == "clip" else -1.0)
        put = scatter.scatter(x, last, as_array(np.ones(1)), ScatterDimensionNumbers(*ELEMENTS), mode=mode)
        np.testing.assert_array_equal(np.asarray(put), [0, 1, 1 if mode == "clip" else 2])


# Values ------------------------------------------------------------------------------------------------------------

FILLED = ["float16", ml_dtypes.bfloat16, "float32", "complex64", "int8", "uint8", "int32", "uint32", "bool"]


@pytest.mark.parametrize("dtype", FILLED)
def test_fill_values(dtype: Any) -> None:
    x, i = as_array(np.ones((2, 2), dtype)), as_array(np.array([[1], [2], [-1]]))

    def f(x: Any, i: Any) -> list[Any]:
        fills = (None, 0, 1, True, -0.0, float("nan") if dtypes.is_inexact(x.dtype) else 3)
        return [indexing.gather(x, i, ROWS, (1, 2), mode="fill", fill_value=fill) for fill in fills]

    assert_compiled_is_host(f, x, i)


def test_zeros_nan_and_infinities_are_moved_bit_for_bit() -> None:
    bits = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC00123, 1, 0x80000001], np.uint32)
    x, i = as_array(bits.view(np.float32)), as_array(np.array([[7], [1], [4], [5], [9]]))
    numbers = ScatterDimensionNumbers(*ELEMENTS)
    zeros = as_array(np.zeros(8, np.float32))

    def f(x: Any, i: Any) -> list[Any]:
        taken = indexing.gather(x, i, ELEMENTS, (1,), mode="clip")
        return [taken, scatter.scatter(zeros, i, taken, numbers), indexing.dynamic_slice(x, [as_array(3)], (4,))]

    assert_compiled_is_host(f, x, i)


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("width", [1, 3, 300])
def test_the_last_of_many_updates_stays(unique: bool, width: int) -> None:
    """Also in programs so large that the compiler uses several threads."""
    rng = np.random.default_rng(width)
    count = 200_000 // width
    rows = rng.permutation(count) if unique else rng.integers(0, 50, count)
    x = as_array(np.zeros((count, width), np.float32))
    updates = as_array(rng.standard_normal((count, width)).astype(np.float32))
    numbers = ScatterDimensionNumbers(*ROWS)
    f = lambda x, i, u: [scatter.scatter(x, i, u, numbers, unique_indices=unique)]
    assert_compiled_is_host(f, x, as_array(rows[:, None].astype(np.int32)), updates)


def test_extrema_of_nan_and_complex_numbers() -> None:
    i = as_array(np.array([[0], [1], [2], [2]]))
    numbers = ScatterDimensionNumbers(*ELEMENTS)
    f = lambda x, u: [scatter.scatter_min(x, i, u, numbers), scatter.scatter_max(x, i, u, numbers)]
    nan = np.nan
    assert_compiled_is_host(
        f, as_array(np.array([nan, 1, np.inf], np.float32)), as_array(np.array([1, nan, 2, -np.inf], np.float32))
    )
    assert_compiled_is_host(
        f, as_array(np.array([1 + 2j, 1, -1j], np.complex64)), as_array(np.array([1, 1 + 1j, 2, -5], np.complex64))
    )


# Nothing there -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bool", dtypes.key_dtype])
def test_no_windows_and_no_elements(dtype: Any) -> None:
    none, one = as_array(np.zeros((0, 1), np.int32)), as_array(np.zeros((2, 1), np.int32))
    x = operand(np.random.default_rng(0), (3, 2), dtype)
    empty = operand(np.random.default_rng(0), (3, 0), dtype)
    numbers = ScatterDimensionNumbers(*ROWS)

    def f(x: Any, empty: Any, none: Any, one: Any) -> list[Any]:
        out = []
        for mode in (CLIP, FILL, PROMISE):
            gone = indexing.gather(x, none, ROWS, (1, 2), mode=mode)
            slim = indexing.gather(empty, one, ROWS, (1, 0), mode=mode)
            out += [gone, slim, indexing.gather(x, one, ROWS, (1, 0), mode=mode)]
            out += [scatter.scatter(x, none, gone, numbers, mode=mode)]
            out += [scatter.scatter(empty, one, slim, numbers, mode=mode)]
        out += [indexing.dynamic_slice(x, [1, as_array(0)], (0, 2)), indexing.dynamic_slice(empty, [1, 0], (2, 0))]
        return [*out, indexing.dynamic_update_slice(x, out[-2], [1, 0])]

    assert_compiled_is_host(f, x, empty, none, one)


def test_index_vectors_without_components() -> None:
    x = as_array(np.ones((2, 3), np.float32))
    whole = GatherDimensionNumbers((0, 1), (), ())
    nothing = as_array(np.zeros((0,), np.int32))

    def f(x: Any) -> list[Any]:
        out = [indexing.gather(x, nothing, whole, (2, 3), mode=mode) for mode in (CLIP, FILL)]
        return [*out, scatter.scatter_add(x, nothing, out[0], ScatterDimensionNumbers(*whole))]

    assert_compiled_is_host(f, x)


# What is written ---------------------------------------------------------------------------------------------------


def operations(program: str) -> list[str]:
    """The operations of a program, without constants and what is inside regions."""
    names, depth = [], 0
    for line in program.splitlines():
        if depth == 0 and "stablehlo." in line and "constant" not in line:
            names.append(line.split("stablehlo.")[1].split('"')[0].split(" ")[0])
        depth += line.count("({") - line.startswith("})")
    return names


X = as_array(np.ones((5, 2), np.float32))
INSIDE = as_array(np.array([[4], [0], [2]]))
OUTSIDE = as_array(np.array([[5], [0], [2]]))


@pytest.mark.parametrize(
    ("mode", "indices", "known", "expected"),
    [
        ("clip", OUTSIDE, False, ["gather"]),
        ("promise_in_bounds", OUTSIDE, False, ["gather"]),
        ("fill", INSIDE, True, ["gather"]),
        ("fill", as_array(np.arange(200)[:, None] % 5), True, ["gather"]),
        ("fill", as_array(np.full((3, 1), 4)), True, ["gather"]),
        (
            "fill",
            INSIDE,
            False,
            ["gather", "optimization_barrier", "bitcast_convert", "compare", "reshape", "broadcast_in_dim", "select"],
        ),
        (
            "fill",
            OUTSIDE,
            True,
            ["gather", "optimization_barrier", "bitcast_convert", "compare", "reshape", "broadcast_in_dim", "select"],
        ),
    ],
)
def test_a_gather_masks_only_what_may_be_outside(mode: str, indices: Any, known: bool, expected: list[str]) -> None:
    f = lambda x, i=indices: indexing.gather(x, i, ROWS, (1, 2), mode=mode)
    assert operations(text(f, X, *([] if known else [indices]))) == expected


@pytest.mark.parametrize(
    ("mode", "known", "expected"),
    [
        ("drop", False, ["scatter"]),
        ("promise_in_bounds", False, ["scatter"]),
        ("clip", True, ["scatter"]),
        ("clip", False, ["clamp", "scatter"]),
    ],
)
def test_a_scatter_moves_only_what_may_be_outside(mode: str, known: bool, expected: list[str]) -> None:
    updates = as_array(np.ones((3, 2), np.float32))
    f = lambda x, u, i=INSIDE: scatter.scatter(x, i, u, ScatterDimensionNumbers(*ROWS), mode=mode)
    assert operations(text(f, X, updates, *([] if known else [INSIDE]))) == expected


def test_a_slice_at_known_places_is_a_slice() -> None:
    assert operations(text(lambda x: indexing.dynamic_slice(x, [9, 0], (2, 1)), X)) == ["slice"]
    assert operations(text(lambda x: indexing.dynamic_slice(x, [9, 0], (5, 2)), X)) == []


NO_INDEX = as_array(np.zeros(0, np.int32))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x.at[None].add(y),
        lambda x, y: x.at[..., None].set(y),
        lambda x, y: x.at[None].mul(y),
        lambda x, y: lax.scatter_max(x, NO_INDEX, x[::-1], ScatterDimensionNumbers((0, 1), (), ())),
        lambda x, y: lax.scatter_add(x[:1], NO_INDEX, x[1], ScatterDimensionNumbers((0,), (0,), ())),
    ],
)  # fmt: skip
def test_a_scatter_without_indices_is_an_operation_on_elements(f: Any) -> None:
    """The compiler makes a map of such a scatter, and ended the process where that was turned around."""
    x, y = as_array(np.arange(6.0, dtype=np.float32).reshape(3, 2)), as_array(np.float32(0.5))
    turned = lambda x, y: jnp.flip(f(x, y))
    assert "scatter" not in operations(text(turned, x, y))
    np.testing.assert_array_equal(jit(turned)(x, y), turned(x, y))


def test_a_batch_of_scatters_without_indices_keeps_its_axes_apart() -> None:
    """The examples are along the last axis of the operand, and along the first of the updates."""
    x, updates = as_array(np.zeros((2, 3), np.float32)), as_array(np.arange(6.0, dtype=np.float32).reshape(3, 2))
    numbers = ScatterDimensionNumbers((1,), (), (), (1,), (0,))
    f = lambda x, updates: lax.scatter_add(x, as_array(np.zeros((3, 0), np.int32)), updates, numbers)
    np.testing.assert_array_equal(jit(f)(x, updates), np.asarray(updates).T)
