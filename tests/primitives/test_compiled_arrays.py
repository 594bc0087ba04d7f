"""Reductions, cumulative operations, sorting, contractions and random bits, compiled: what they give on the host.

The table of operations has small operands of pleasant numbers; here are ugly numbers in every dtype, and sizes from
which on operations are written in another way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pullback import jit, lax, make_jaxpr
from pullback.backends.compiler import programs
from pullback.backends.devices.devices import default_device
from pullback.backends.hlo import sorting as hlo_sorting
from pullback.core import dtypes
from pullback.core.array import ArrayImpl, host_value, typeof
from pullback.core.errors import IndexRangeError
from pullback.primitives import reductions as red
from pullback.primitives.arrays import shapes, slicing, sorting
from pullback.primitives.linalg import contraction
from pullback.primitives.random import bits as random_bits
from tests.helpers import chosen

BOOL = [np.dtype(bool)]
INTEGERS = [np.dtype(d) for d in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")]
SMALL_INTEGERS = [np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)]
NARROW = [np.dtype(d) for d in ("float16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]
FLOATS = [*NARROW, np.dtype("float32"), np.dtype("float64")]
COMPLEX = [np.dtype("complex64"), np.dtype("complex128")]
ALL = [*BOOL, *INTEGERS, *SMALL_INTEGERS, *FLOATS, *COMPLEX]
NUMBERS = [d for d in ALL if d not in BOOL]
REAL = [d for d in ALL if d not in COMPLEX]
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, -np.nan]


def by_dtype(dtypes_: Sequence[Any]) -> Any:
    return pytest.mark.parametrize("dtype", dtypes_, ids=[dtypes.short_name(d) for d in dtypes_])


def ugly(dtype: np.dtype[Any], *shape: int, seed: int = 0) -> Any:
    """An array of extreme values, of which many are equal."""
    rng, count = np.random.default_rng([seed, *shape]), math.prod(shape)
    if dtype.kind == "b":
        flat = rng.integers(0, 2, count).astype(dtype)
    elif dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        extremes = [0, 1, 2, 3, int(info.max), int(info.max) - 1, int(info.min), int(info.min) // 2]
        flat = np.array([dtype.type(extremes[i]) for i in rng.integers(0, len(extremes), count)], dtype)
    elif dtypes.is_complex(dtype):
        flat = np.array([complex(*rng.choice(PARTS, 2)) for _ in range(count)], dtype)
    else:
        flat = rng.choice(PARTS, count).astype(dtype)
    return ArrayImpl(flat.reshape(shape))


def few(dtype: np.dtype[Any], *shape: int, seed: int = 0) -> Any:
    """An array of small whole numbers, of which sums and products are exact."""
    rng = np.random.default_rng([seed, *shape])
    low = 0 if dtypes.is_bool(dtype) or dtypes.short_name(dtype).startswith("u") else -2
    flat = rng.integers(low, 3, shape).astype(np.int8)
    return ArrayImpl(flat.astype(dtype) if dtype.kind != "c" else (flat + 1j * np.flip(flat)).astype(dtype))


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return ArrayImpl(np.random.default_rng(list(shape)).normal(size=shape).astype(dtype))


def assert_compiled_is_host(
    f: Callable[..., Sequence[Any]], *args: Any, rtol: float = 0, zeros: bool = True
) -> Sequence[Any]:
    """A function that returns a list returns the same compiled: NaN in the same places, zeros of the same sign."""
    lowered = programs.Lowered(make_jaxpr(f)(*args), "f", default_device())
    outs = lowered.compile()(args)
    for got, expected in zip(outs, f(*args), strict=True):
        assert typeof(got) == typeof(expected)
        a, b = np.asarray(host_value(got)), np.asarray(host_value(expected))
        if not dtypes.is_inexact(a.dtype):
            assert a.tobytes() == b.tobytes(), f"{a} != {b} (compiled, host)"
            continue
        if a.dtype.kind == "c":
            pairs = [(a.real, b.real), (a.imag, b.imag)]
        else:
            with np.errstate(invalid="ignore"):  # there are NaN that signal
                pairs = [(a.astype(np.float64), b.astype(np.float64))]
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=rtol, atol=0)
            if zeros:
                assert (np.signbit(x) == np.signbit(y))[x == 0].all(), f"{a} != {b} (compiled, host)"
    return outs


pytestmark = pytest.mark.usefixtures("all_in_x64")


@pytest.fixture
def _elsewhere(monkeypatch: Any) -> None:
    """Programs are written as they are for GPUs."""
    real = programs.emit_module
    monkeypatch.setattr(
        programs, "emit_module", lambda closed, name, platform, *rest, **more: real(closed, name, "cuda", *rest, **more)
    )


# Moving elements ---------------------------------------------------------------------------------------------------


@by_dtype([*ALL, dtypes.key_dtype])
def test_elements_are_moved_as_they_are(dtype: Any) -> None:
    if dtype == dtypes.key_dtype:
        words = np.random.default_rng(0).integers(0, 2**32, (3, 4, 2), np.uint32)
        x = ArrayImpl(words.view(dtype).reshape(3, 4))
    else:
        x = ugly(dtype, 3, 4)
    empty, scalar = ArrayImpl(x._value[:0]), ArrayImpl(x._value[1, 2])

    def f(x: Any, empty: Any, scalar: Any) -> list[Any]:
        return [
            shapes.broadcast_in_dim(scalar, (2, 3), ()),
            shapes.broadcast_in_dim(empty, (2, 0, 4), (1, 2)),
            shapes.broadcast_in_dim(shapes.reshape(x, (3, 1, 4)), (3, 2, 4), (0, 1, 2)),
            shapes.reshape(empty, (4, 0, 2)),
            shapes.transpose(x, (1, 0)),
            shapes.squeeze(shapes.reshape(x, (3, 1, 4)), (1,)),
            slicing.slice(x, (0, 1), (2, 4), (1, 2)),
            slicing.slice(empty, (0, 1), (0, 3)),
            slicing.pad(x, scalar, [(1, -1, 0), (-2, 3, 2)]),
            slicing.pad(x, scalar, [(-9, 8, 0), (0, 0, 1)]),
            slicing.pad(empty, scalar, [(1, 2, 3), (0, 0, 0)]),
            slicing.concatenate([x, empty, x], 0),
            slicing.stack([x, x], 1),
            slicing.stack([scalar, scalar], 0),
            *slicing.unstack(x, 1),
            slicing.rev(x, (0, 1)),
            slicing.rev(empty, (0,)),
            sorting.take_along_axis(x, ArrayImpl(np.array([[2], [0]], np.uint8)), 0),
        ]

    assert_compiled_is_host(f, x, empty, scalar)


@by_dtype(NUMBERS)
def test_counting(dtype: Any) -> None:
    assert_compiled_is_host(lambda: [slicing.iota(dtype, s, d) for s, d in (((3, 4), 1), ((0, 4), 0), ((5,), 0))])


def test_counting_in_booleans() -> None:
    assert_compiled_is_host(lambda: [slicing.iota(np.dtype(bool), (2, 3), 0)])


# Reductions --------------------------------------------------------------------------------------------------------

REDUCTIONS = [
    *((p, d) for p in (red.reduce_sum_p, red.reduce_prod_p) for d in NUMBERS),
    *((p, d) for p in (red.reduce_max_p, red.reduce_min_p) for d in ALL),
    *((p, d) for p in (red.reduce_and_p, red.reduce_or_p, red.reduce_xor_p) for d in BOOL + INTEGERS + SMALL_INTEGERS),
]


@pytest.mark.parametrize(("p", "dtype"), REDUCTIONS, ids=[f"{p}-{dtypes.short_name(d)}" for p, d in REDUCTIONS])
def test_reductions(p: Any, dtype: Any) -> None:
    def f(x: Any, empty: Any) -> list[Any]:
        return [p.bind(v, axes=axes) for v in (x, empty) for axes in ((0,), (1,), (0, 1))]

    # Which of several zeros is the largest is left open.
    assert_compiled_is_host(f, ugly(dtype, 3, 5), ugly(dtype, 0, 4), zeros=False)


def test_reductions_over_no_axes() -> None:
    x = few(np.dtype("float32"), 3, 5)
    for p in (red.reduce_sum_p, red.reduce_prod_p, red.reduce_max_p, red.reduce_min_p):
        assert_compiled_is_host(lambda x, p=p: [p.bind(x, axes=())], x)


def test_sums_of_many_narrow_floats_are_rounded_once() -> None:
    x = normal(4000, dtype=ml_dtypes.bfloat16)
    assert_compiled_is_host(lambda x: [red.reduce_sum(x, (0,))], x, rtol=2**-8)


@by_dtype(REAL)
def test_positions_of_extremes(dtype: Any) -> None:
    def f(x: Any) -> list[Any]:
        return [
            find(x, axis, index)
            for find in (red.argmax, red.argmin)
            for axis in (0, 1)
            for index in (np.int32, np.uint8, np.int64)
        ]

    for seed in range(3):
        assert_compiled_is_host(f, ugly(dtype, 6, 5, seed=seed))


def test_positions_that_do_not_fit_byte_sized_indices_are_refused() -> None:
    x = ArrayImpl(np.arange(300.0))
    for f in (lambda x: lax.argmax(x, 0, np.int8), jit(lambda x: lax.argmax(x, 0, np.int8))):
        with pytest.raises(IndexRangeError, match="argmax: positions up to 299 do not fit i8"):
            f(x)


# Cumulative operations ---------------------------------------------------------------------------------------------

SOME = [np.dtype(d) for d in ("int8", "uint32", ml_dtypes.bfloat16, "float32", "complex64")]
CUMULATIVE = [
    *((red.cumsum, d) for d in NUMBERS if d not in SMALL_INTEGERS),
    *((red.cummax, d) for d in chosen([*BOOL, *SOME], [d for d in ALL if d not in SMALL_INTEGERS])),
    *((p, d) for p in (red.cumprod, red.cummin) for d in SOME),
]
SHAPES = [((19, 3), 0), ((5, 20, 2), 1), ((2, 20, 70), 1), ((4, 3), 0), ((3, 0), 0)]
"""Some are walked through element by element, and some row by row; 19 is prime; windows are taken of short ones."""


def both_ways(p: Callable[..., Any], axis: int, *xs: Any) -> list[Any]:
    return [p(*xs, axis, reverse) for reverse in (False, True)]


@pytest.mark.parametrize(
    ("p", "dtype"), CUMULATIVE, ids=[f"{p.__name__}-{dtypes.short_name(d)}" for p, d in CUMULATIVE]
)
def test_cumulative_operations(p: Any, dtype: Any) -> None:
    xs = [ugly(dtype, *shape) for shape, _ in SHAPES]

    def f(*xs: Any) -> list[Any]:
        return [y for x, (_, axis) in zip(xs, SHAPES, strict=True) for y in both_ways(p, axis, x)]

    assert_compiled_is_host(f, *xs, zeros=p in (red.cumsum, red.cumprod))


@pytest.mark.parametrize(("shape", "axis"), SHAPES[:-2])
def test_cumulative_operations_round_as_the_host_does(shape: tuple[int, ...], axis: int) -> None:
    for dtype in (ml_dtypes.bfloat16, np.float32, np.complex64):
        assert_compiled_is_host(partial(both_ways, red.cumsum, axis), normal(*shape, dtype=dtype))


@pytest.mark.parametrize("count", [1000, 1009, 1024])
def test_long_sums_round_as_the_host_does(count: int) -> None:
    for dtype in (np.float32, np.float64, np.complex64):
        assert_compiled_is_host(partial(both_ways, red.cumsum, 0), normal(count, dtype=dtype))
        assert_compiled_is_host(partial(both_ways, red.cumsum, 1), normal(3, count, dtype=dtype))


def test_cumulative_logarithms_of_sums() -> None:
    ugly_ones = np.array([-np.inf, -np.inf, 1, 2, -800, 800, np.inf, 3, -np.inf, np.nan, 1])
    for x in (ugly_ones, ugly_ones[:6], ugly_ones[::-1].copy(), np.random.default_rng(0).normal(size=400) * 30):
        for dtype, rtol in ((np.float64, 1e-14), (np.float32, 1e-5), (ml_dtypes.bfloat16, 2**-7)):
            wide = ArrayImpl(x.astype(dtype))
            assert_compiled_is_host(partial(both_ways, red.cumlogsumexp, 0), wide, rtol=rtol, zeros=False)


@by_dtype([*(np.dtype(d) for d in ("float16", ml_dtypes.bfloat16, "float32", "float64")), *COMPLEX])
def test_linear_recurrences(dtype: Any) -> None:
    for shape, axis in SHAPES:
        a, b = few(dtype, *shape), few(dtype, *shape, seed=1)
        small = ArrayImpl(np.asarray(a._value / 2).astype(dtype))
        assert_compiled_is_host(partial(both_ways, red.linear_recurrence, axis), small, b, rtol=1e-6, zeros=False)
    a, b = few(dtype, 1, 5), ugly(dtype, 4, 5)
    assert_compiled_is_host(partial(both_ways, red.linear_recurrence, 1), a, b, zeros=False)


def test_a_linear_recurrence_begins_with_b_whatever_a_is() -> None:
    a, b = ArrayImpl(np.array([np.nan, 1, 2.0] * 7)), ArrayImpl(np.array([-0.0, 0, 1] * 7))
    assert_compiled_is_host(lambda a, b: [red.linear_recurrence(a, b, 0)], a, b)


@pytest.mark.usefixtures("_elsewhere")
def test_recurrences_for_other_devices() -> None:
    wide = np.dtype(float)
    for shape, axis in (((19, 3), 0), ((2, 20, 3), 1)):
        for p in (red.cumsum, red.cumprod, red.cummax, red.cumlogsumexp):
            assert_compiled_is_host(partial(both_ways, p, axis), normal(*shape, dtype=wide), rtol=1e-11, zeros=False)
        a, b = few(wide, *shape), few(wide, *shape, seed=1)
        assert_compiled_is_host(partial(both_ways, red.linear_recurrence, axis), a, b, zeros=False)
    assert_compiled_is_host(partial(both_ways, red.cumsum, 0), normal(40, dtype=ml_dtypes.bfloat16), rtol=2**-7)
    a, b = ArrayImpl(np.full(1500, 3.0)), ArrayImpl(np.zeros(1500))
    assert_compiled_is_host(partial(both_ways, red.linear_recurrence, 0), a, b)


# Sorting -----------------------------------------------------------------------------------------------------------


SORTED = [(d, digits) for d in ALL for digits in (True, False) if digits or d in chosen(SOME, ALL)]


@pytest.mark.parametrize(("dtype", "digits"), SORTED, ids=[f"{dtypes.short_name(d)}-{digits}" for d, digits in SORTED])
def test_sorting(dtype: Any, digits: bool, monkeypatch: Any) -> None:
    """Digit by digit, and by comparisons: stable both."""
    monkeypatch.setattr(hlo_sorting, "_MANY", dict.fromkeys(range(1, 9), 0) if digits else {})
    x, y = ugly(dtype, 4, 9), ugly(dtype, 4, 9, seed=1)
    other, count = ugly(np.dtype("float32"), 4, 9, seed=2), few(np.dtype("int32"), 4, 9)

    def f(x: Any, y: Any, other: Any, count: Any) -> list[Any]:
        return [
            out
            for axis in (0, 1)
            for outs in (
                sorting.sort([x], axis),
                sorting.sort([x, y, count], axis),
                sorting.sort([x, count, y], axis, num_keys=2),
                sorting.sort([other, count, x], axis, num_keys=3),
                sorting.argsort([x], axis, np.int64),
            )
            for out in outs
        ]

    assert_compiled_is_host(f, x, y, other, count)


@by_dtype([d for d in REAL if d.itemsize >= 2 and d not in NARROW])
def test_sorting_numbers_of_all_bits(dtype: Any) -> None:
    """Also numbers below the smallest normal one, and so many that two digits are worth their while."""
    raw = np.random.default_rng(0).bytes(70000 * dtype.itemsize)
    x = np.where(np.arange(70000) % 3, np.frombuffer(raw, dtype), np.frombuffer(raw, dtype)[0])
    assert_compiled_is_host(lambda x: sorting.argsort([x], 0, np.int32), ArrayImpl(x.astype(dtype)))


def test_nothing_to_sort() -> None:
    def f(a: Any, b: Any) -> list[Any]:
        return [*sorting.sort([a], 0), *sorting.sort([a], 1), *sorting.sort([b, b], 0)]

    assert_compiled_is_host(f, ArrayImpl(np.zeros((0, 3))), ArrayImpl(np.ones((1, 3))))


@by_dtype(REAL)
def test_the_largest(dtype: Any) -> None:
    def f(x: Any) -> list[Any]:
        return [out for k, axis in product((0, 1, 4), (0, 1)) for out in sorting.top_k(x, k, axis)]

    assert_compiled_is_host(f, ugly(dtype, 5, 9))


@by_dtype(ALL)
def test_searching(dtype: Any) -> None:
    make = few if dtypes.is_complex(dtype) else ugly  # NumPy has an order of its own for complex numbers with NaN

    def ordered(*shape: int) -> Any:
        return sorting.sort([make(dtype, *shape)], len(shape) - 1)[0]

    def f(line: Any, rows: Any, empty: Any, v: Any, w: Any) -> list[Any]:
        pairs = [(line, v), (rows, w), (empty, v), (line, empty)]
        indices = (np.int32, np.int64, np.uint8)
        return [
            sorting.searchsorted(a, b, side, index)
            for (a, b), side, index in product(pairs, ("left", "right"), indices)
        ]

    args = [ordered(9), ordered(2, 3, 8), ordered(0), make(dtype, 20, seed=1), make(dtype, 2, 3, 5, seed=1)]
    assert_compiled_is_host(f, *args)


ALONG = [
    ((3, 8), (3, 2), 1), ((3, 8), (1, 2), 1), ((1, 8), (3, 2), 1), ((3, 8), (2, 8), 0), ((3, 8), (2, 1), 0),
    ((3, 8), (3, 0), 1), ((1, 3, 2), (2, 2, 2), 1), ((1, 3, 2), (2, 2, 1), 1), ((2, 3, 2), (1, 2, 1), 1),
    ((2, 1, 3), (2, 5, 1), 1), ((1, 3), (1, 5), 1),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "places", "axis"), ALONG)
def test_elements_along_an_axis(shape: tuple[int, ...], places: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(0)
    summed = (*shape[:axis], places[axis], *shape[axis + 1 :])
    others = [n for i, n in enumerate(places) if i != axis]
    order = np.argsort(rng.random((*others, places[axis] + 3)), -1)[..., : places[axis]]

    def f(x: Any, terms: Any, indices: Any, distinct: Any) -> list[Any]:
        return [
            sorting.take_along_axis(x, indices, axis),
            sorting.add_along_axis(terms, indices, axis, shape[axis]),
            sorting.add_along_axis(terms, distinct, axis, places[axis] + 3, unique=True),
        ]

    for dtype, index in zip(SOME, (np.int32, np.uint8, np.uint64, np.int64, np.int8), strict=True):
        indices = ArrayImpl(rng.integers(0, shape[axis], places).astype(index))
        distinct = ArrayImpl(np.moveaxis(order, -1, axis).astype(index))
        assert_compiled_is_host(f, few(dtype, *shape), few(dtype, *summed, seed=1), indices, distinct)


# Contractions ------------------------------------------------------------------------------------------------------

DOTS: list[Any] = [
    ((3, 4), (4, 2), (((1,), (0,)), ((), ()))),
    ((3, 0), (0, 2), (((1,), (0,)), ((), ()))),
    ((0, 3), (3, 2), (((1,), (0,)), ((), ()))),
    ((2, 3), (4,), (((), ()), ((), ()))),
    ((2, 3, 4), (3, 2, 4), (((2,), (2,)), ((0, 1), (1, 0)))),
    ((), (), (((), ()), ((), ()))),
    ((3,), (3,), (((), ()), ((0,), (0,)))),
]


@by_dtype(NUMBERS)
def test_contractions(dtype: Any) -> None:
    xs = [few(dtype, *shape, seed=i) for i, (a, b, _) in enumerate(DOTS) for shape in (a, b)]

    def f(*xs: Any) -> list[Any]:
        return [contraction.dot_general(xs[2 * i], xs[2 * i + 1], numbers) for i, (_, _, numbers) in enumerate(DOTS)]

    assert_compiled_is_host(f, *xs, zeros=False)


@by_dtype(INTEGERS + SMALL_INTEGERS)
def test_contractions_of_integers_wrap(dtype: Any) -> None:
    f = partial(contraction.dot_general, dimension_numbers=(((1,), (0,)), ((), ())))
    assert_compiled_is_host(lambda x, y: [f(x, y)], ugly(dtype, 5, 9), ugly(dtype, 9, 4))


def test_contractions_of_narrow_floats_are_rounded_once() -> None:
    f = partial(contraction.dot_general, dimension_numbers=(((0,), (0,)), ((), ())))
    for dtype, rtol in ((ml_dtypes.bfloat16, 2**-7), (np.float16, 2**-9)):
        x = ArrayImpl(np.abs(normal(500)._value).astype(dtype))
        assert_compiled_is_host(lambda x: [f(x, x)], x, rtol=rtol)


def test_large_contractions_of_complex_numbers() -> None:
    """Which are four of real ones."""
    a, b = (normal(2, 90, 80)._value + 1j * normal(2, 90, 80)._value[:, ::-1] for _ in range(2))
    x, y = ArrayImpl(a.astype(np.complex64)), ArrayImpl(b.swapaxes(1, 2).astype(np.complex64))
    f = partial(contraction.dot_general, dimension_numbers=(((2,), (1,)), ((0,), (0,))))
    lowered = programs.Lowered(make_jaxpr(f)(x, y), "f", default_device())
    assert lowered.module.text().count("stablehlo.dot_general") == 4
    got, expected = np.asarray(lowered.compile()([x, y])[0]), np.asarray(f(x, y))
    assert got.dtype == np.complex64
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())


# Random bits -------------------------------------------------------------------------------------------------------


def test_hashes_of_broadcast_operands() -> None:
    one, five = ArrayImpl(np.uint32(7)), ArrayImpl(np.arange(5, dtype=np.uint32) * 0x9E3779B9)
    for args in [(one, five, one, five), (five, one, one, one), (one, one, five, five), (one, one, one, one)]:
        assert_compiled_is_host(lambda *v: random_bits.threefry2x32(*v), *args)
    column, empty = ArrayImpl(np.arange(3, dtype=np.uint32).reshape(3, 1)), ArrayImpl(np.zeros(0, np.uint32))
    assert_compiled_is_host(lambda *v: random_bits.threefry2x32(*v), column, one, five, one)
    assert_compiled_is_host(lambda *v: random_bits.threefry2x32(*v), one, one, one, empty)
    assert_compiled_is_host(lambda *v: random_bits.threefry2x32(v[0], v[1], 0, 5), one, five)


def test_the_hash_is_written_once() -> None:
    words = ArrayImpl(np.arange(4, dtype=np.uint32))

    def f(x: Any) -> list[Any]:
        for _ in range(3):
            x, _ = random_bits.threefry2x32(1, 2, x, x)
        return [x]

    text = programs.Lowered(make_jaxpr(f)(words), "f", default_device()).module.text()
    assert text.count("func.call @threefry2x32") == 3
    assert text.count("stablehlo.shift_left") == 20
    assert_compiled_is_host(f, words)


def test_keys() -> None:
    words = ArrayImpl(np.random.default_rng(0).integers(0, 2**32, (2, 3, 2), np.uint32))

    def f(words: Any) -> list[Any]:
        keys = random_bits.random_wrap(words)
        one = random_bits.random_wrap(slicing.slice(words, (0, 0, 0), (1, 1, 2)))
        return [keys, random_bits.random_unwrap(keys), random_bits.random_unwrap(shapes.squeeze(one, (0, 1)))]

    assert_compiled_is_host(f, words)
