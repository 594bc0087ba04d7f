"""Elementwise operations compiled, where the compiler's own are wrong, or differ from the host's, or are missing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pullback
from pullback import make_jaxpr, random
from pullback.backends.compiler.client import default_device
from pullback.backends.compiler.programs import Lowered
from pullback.core import dtypes
from pullback.core.array import as_array, host_value, typeof
from pullback.core.config import enable_x64
from pullback.core.errors import DtypeError
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ew


def both(p: Primitive, *values: Any, **params: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What a primitive returns compiled, and on the host, of one type."""
    return both_of(lambda *xs: [p.bind(*xs, **params)], *values)[0]


def both_of(f: Callable[..., list[Any]], *values: Any) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The results of a function compiled, as one program, and on the host, of the same types."""
    with enable_x64(True):
        args = [as_array(v) for v in values]
        expected = f(*args)
        got = Lowered(make_jaxpr(f)(*args), "f", default_device()).compile()(args)
        assert [typeof(x) for x in got] == [typeof(x) for x in expected]
        return [(np.asarray(host_value(a)), np.asarray(host_value(b))) for a, b in zip(got, expected, strict=True)]


def on_host(p: Primitive, *values: Any) -> np.ndarray[Any, Any]:
    with enable_x64(True):
        return np.asarray(host_value(p.bind(*map(as_array, values))))


def assert_same_bytes(p: Primitive, *values: Any, **params: Any) -> None:
    got, expected = both(p, *values, **params)
    assert got.tobytes() == expected.tobytes(), f"{got} != {expected} (compiled, host)"


def assert_within(got: Any, expected: Any, ulps: float) -> None:
    """Equal infinities and NaN, zeros of one sign, and values within some units in the last place of their size."""
    got, expected = np.asarray(got), np.asarray(expected)
    info = dtypes.finfo(got.dtype)
    size = np.abs(expected).astype(np.float64)
    for part in ("real", "imag") if got.dtype.kind == "c" else ("real",):
        a, b = (np.asarray(getattr(x, part), np.float64) for x in (got, expected))
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= ulps * (float(info.eps) * size + float(info.smallest_normal))
        assert (near | (a == b) | (np.isnan(a) & np.isnan(b))).all(), f"{part}: {a} != {b} (compiled, expected)"
        zeros = (a == 0) & (b == 0)
        assert (np.signbit(a) == np.signbit(b))[zeros].all(), f"the {part} part has zeros of another sign"


# Complex numbers -----------------------------------------------------------------------------------------------------

PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.0, 1e-3, -1e-3, 20.0)
PLANE = np.array([complex(x, y) for x, y in itertools.product(PARTS, PARTS)])
ON_PLANE = [
    ew.exp_p, ew.exp2_p, ew.expm1_p, ew.sqrt_p, ew.rsqrt_p, ew.logistic_p, ew.sin_p, ew.cos_p, ew.tan_p, ew.asin_p,
    ew.acos_p, ew.atan_p, ew.sinh_p, ew.cosh_p, ew.tanh_p, ew.asinh_p, ew.acosh_p, ew.atanh_p, ew.log_p, ew.log1p_p,
    ew.sign_p, ew.abs_p, ew.conj_p,
]  # fmt: skip


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("p", ON_PLANE, ids=lambda p: p.name)
def test_branch_cuts_and_zeros_have_the_sign_of_the_zero_of_their_operand(p: Primitive, dtype: str) -> None:
    assert_within(*both(p, PLANE.astype(dtype)), ulps=8)


@pytest.mark.parametrize("p", [ew.max_p, ew.min_p], ids=["max", "min"])
def test_complex_numbers_are_ordered_by_the_real_part_first(p: Primitive) -> None:
    parts = [0.0, 1.0, -1.0, math.inf, math.nan]
    values = np.array([complex(x, y) for x, y in itertools.product(parts, parts)], np.complex64)
    got, expected = both(p, values[:, None], values[None, :])
    np.testing.assert_array_equal(got, expected)


def test_complex_clamp_power_of_zero_and_finiteness() -> None:
    z = np.array([0, 1 + 2j, 3 - 1j], np.complex64)
    assert_same_bytes(ew.clamp_p, np.complex64(1), z, np.complex64(2 + 1j))
    assert_within(*both(ew.pow_p, np.zeros(3, np.complex64), np.array([2.5 + 1j, 0, 3], np.complex64)), ulps=1)
    assert_same_bytes(ew.is_finite_p, np.array([1, math.inf, complex(0, math.nan)]))


def test_a_number_to_the_power_of_one_half() -> None:
    with pullback.disable_jit():
        found = pullback.lax.fori_loop(0, 2, lambda i, y: 0.25**y, pullback.numpy.float32(0.5))
    np.testing.assert_array_equal(found, np.float32(0.5))
    assert found.dtype == np.float32


def test_the_host_computes_complex_logarithms_and_exponentials_near_zero() -> None:
    tiny = np.array([1e-20 + 1e-20j, -3e-12 - 2e-9j, 1e-4j])
    series = tiny - tiny**2 / 2 + tiny**3 / 3 - tiny**4 / 4
    np.testing.assert_allclose(on_host(ew.log1p_p, tiny), series, rtol=1e-14)
    (overflow,) = on_host(ew.expm1_p, np.array([200 + 0j], np.complex64))
    assert overflow.real == math.inf
    assert overflow.imag == 0
    assert on_host(ew.logistic_p, np.array([-1e4 + 1j])) == 0


# Accuracy ------------------------------------------------------------------------------------------------------------

FINE = np.linspace(-0.999, 0.999, 1999)
WIDE = np.concatenate([np.linspace(-20, 20, 997), [85.0, -88.5, 127.9, -126.0, 300.0, -300.0, 709.5, -709.0, 1023.9]])
ACCURATE = [(p, FINE) for p in (ew.log1p_p, ew.atanh_p)] + [(p, WIDE) for p in (ew.exp2_p, ew.sinh_p, ew.cosh_p)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("p", "points"), ACCURATE, ids=[p.name for p, _ in ACCURATE])
def test_the_last_places_are_right(p: Primitive, points: Any, dtype: str) -> None:
    got, _ = both(p, points.astype(dtype))
    with np.errstate(over="ignore"):
        reference = on_host(p, points.astype(dtype).astype(np.float64)).astype(dtype)
    assert_within(got, reference, ulps=4)


def test_log_gamma_is_zero_at_one_and_two_and_has_its_last_places_around() -> None:
    assert_same_bytes(ew.lgamma_p, np.array([1, 2], np.float32))
    x = np.linspace(0.5, 12, 500).astype(np.float32)
    got, _ = both(ew.lgamma_p, x)
    assert_within(got, np.array([math.lgamma(v) for v in x], np.float32), ulps=8)
    w = 1e-7  # lgamma(1 + w) = -gamma w + zeta(2) w² / 2 - ...
    assert_within(
        both(ew.lgamma_p, np.array([1 + w]))[0], [-0.5772156649015329 * (1 + w - 1) + math.pi**2 / 12 * w**2], 40
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("p", [ew.exp2_p, ew.sinh_p, ew.hypot_p, ew.logaddexp_p], ids=lambda p: p.name)
def test_half_precision_is_rounded_once(p: Primitive, dtype: Any) -> None:
    x = np.linspace(-9, 9, 37).astype(dtype)
    operands = (x, x[::-1].copy()) if p in (ew.hypot_p, ew.logaddexp_p) else (x,)
    assert_within(
        *(v.astype(np.float32) for v in both(p, *operands)), ulps=1.01 * float(dtypes.finfo(dtype).eps) * 2**23
    )


# Poles and other ends ------------------------------------------------------------------------------------------------


def test_poles_of_digamma_and_its_derivatives() -> None:
    x = np.array([0.0, -0.0, -1.0, math.inf, math.nan, 2.5])
    assert_within(*both(ew.digamma_p, x), ulps=8)
    for n in range(4):
        got, expected = both(ew.polygamma_p, np.full_like(x, n), x)
        np.testing.assert_array_equal(got[:-1], expected[:-1])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_derivatives_of_digamma_left_of_minus_nine(n: int) -> None:
    """Where the compiler's own returns 1e22 for 28."""
    x = np.array([-0.3, -8.7, -9.2, -10.25, -20.3, -100.3])
    got, expected = both(ew.polygamma_p, np.full_like(x, n), x)
    np.testing.assert_allclose(got, expected, rtol=1e-11)


def test_hypot_and_logaddexp_at_infinity_and_where_squares_overflow() -> None:
    values = np.array([0.0, -0.0, 1.0, 1e-30, 3e38, -3e38, math.inf, -math.inf, math.nan], np.float32)
    for p in (ew.hypot_p, ew.logaddexp_p):
        assert_within(*both(p, values[:, None], values[None, :]), ulps=8)


def test_erf_inv_keeps_the_sign_of_zero() -> None:
    assert_same_bytes(ew.erf_inv_p, np.array([0.0, -0.0]))


# Integers ------------------------------------------------------------------------------------------------------------


def extremes(dtype: str) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    near = [0, 1, 2, 3, 7, 31, 32, 63, 64, 65, 100, info.max, info.max - 1]
    below = [-1, -2, -7, -64, info.min, info.min + 1] if info.min else []
    return np.array(sorted({*near, *below}), object).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(
    "p",
    [ew.pow_p, ew.gcd_p, ew.div_p, ew.rem_p, ew.shift_left_p, ew.shift_right_logical_p, ew.shift_right_arithmetic_p],
    ids=lambda p: p.name,
)
def test_pairs_of_extreme_integers(p: Primitive, dtype: str) -> None:
    x = extremes(dtype)
    assert_same_bytes(p, x[:, None], x[None, :])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_extreme_integers(dtype: str) -> None:
    for p in (ew.abs_p, ew.sign_p, ew.neg_p, ew.square_p, ew.not_p, ew.clz_p, ew.population_count_p):
        assert_same_bytes(p, extremes(dtype))


# Conversions ---------------------------------------------------------------------------------------------------------

NUMBERS = np.array(
    [0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3, 7, 8.5, -8, -9, 127.4, 128, -129, 255.5, 256, 65520, 2**31, 4294967040]
    + [-(2.0**63), 2.0**63, 1e30, math.inf, -math.inf, math.nan]
)
FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "int4", "uint4"]


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("old", [*FLOATS, *INTEGERS, "complex64"])
def test_conversions(old: str) -> None:
    if old in INTEGERS:
        values = (
            np.arange(-8, 16) if old in ("int4", "uint4") else np.array([0, 1, 2, 100, -1, -100, 2**31 - 1, -(2**31)])
        )
    else:
        values = NUMBERS
    with np.errstate(all="ignore"):
        x = values.astype(np.int32).astype(dtype_of(old)) if old in INTEGERS else values.astype(dtype_of(old))

    def to_all(x: Any) -> list[Any]:
        return [ew.convert_element_type_p.bind(x, new_dtype=new, weak_type=False) for new in news]

    news = [dtype_of(name) for name in (*FLOATS, *INTEGERS, "complex64")]
    for new, (got, expected) in zip(news, both_of(to_all, x), strict=True):
        if dtypes.is_inexact(got.dtype):
            assert_within(got.astype(np.complex128), expected.astype(np.complex128), ulps=0)
        else:
            assert got.tobytes() == expected.tobytes(), f"to {new}: {got} != {expected} (compiled, host)"


def test_a_small_float_is_not_saturated_when_it_becomes_an_integer() -> None:
    """The compiler's own conversion returns 2**31 - 1 for 6."""
    six = np.array([6, -6, 0.5], ml_dtypes.float4_e2m1fn)
    got, expected = both(ew.convert_element_type_p, six, new_dtype=np.dtype(np.int32), weak_type=False)
    assert got.tolist() == expected.tolist() == [6, -6, 0]


@pytest.mark.parametrize(
    ("old", "new"),
    [("float32", "int32"), ("bool", "uint8"), ("bool", "int8"), ("int8", "bool"), ("complex64", "int64"),
     ("float64", "complex64"), ("bfloat16", "uint16"), ("complex64", "complex64")],
)  # fmt: skip
def test_bits_read_as_another_dtype(old: str, new: str) -> None:
    x = np.array([1, 0, 1, 1]).astype(dtype_of(old)) * dtype_of(old).type(1)
    assert_same_bytes(ew.bitcast_convert_type_p, x, new_dtype=dtype_of(new))


# Choice, and random keys ---------------------------------------------------------------------------------------------


def keys(*words: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.array(words, np.uint32).view(dtypes.key_dtype).reshape(len(words))


def test_keys_are_compared_chosen_and_copied() -> None:
    x, y = keys([1, 2], [3, 4], [5, 6]), keys([1, 2], [3, 5], [4, 6])
    for p in (ew.eq_p, ew.ne_p):
        assert_same_bytes(p, x, y)
        assert_same_bytes(p, x[0], y)
    assert both(ew.eq_p, x, y)[1].tolist() == [True, False, False]
    assert_same_bytes(ew.select_n_p, np.array([True, False, True]), x, y)
    assert_same_bytes(ew.copy_p, x)
    assert_same_bytes(ew.bitcast_convert_type_p, x, new_dtype=np.dtype(np.uint64))


def test_keys_are_not_numbers() -> None:
    key = random.key(0)
    with pytest.raises(DtypeError, match="add takes numbers or booleans, got key<fry>"):
        ew.add_p.bind(key, key)
    with pytest.raises(DtypeError, match=r"from key<fry> to i32; random\.key_data returns the words"):
        ew.convert_element_type(key, np.dtype(np.int32))
    with pytest.raises(DtypeError, match=r"from key<fry> to i32; random\.key_data returns the words"):
        make_jaxpr(lambda k: ew.convert_element_type(k, np.dtype(np.int32)))(key)


def test_a_choice_out_of_range_is_the_nearest() -> None:
    x = np.arange(5.0)
    for dtype in ("int32", "int8", "uint8"):
        which = np.array([0, 2, 1, 100, 7]).astype(dtype)
        assert_same_bytes(ew.select_n_p, which, x, x + 10, x + 20)
    assert_same_bytes(ew.select_n_p, np.array([-1, 0, 1, 2, 9], np.int32), x, x + 10, x + 20)
    assert_same_bytes(ew.select_n_p, np.array([True, False]), np.arange(2), np.arange(2) + 3, np.arange(2) + 5)


def test_clamp_propagates_nan_and_prefers_the_upper_limit() -> None:
    x = np.array([math.nan, 1, -3, 5, math.inf, -0.0], np.float32)
    for low, high in ((0, 2), (3, 2), (math.nan, 2), (0, math.nan)):
        assert_same_bytes(ew.clamp_p, np.float32(low), x, np.float32(high))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_compiled_quotients_of_the_smallest_numbers_and_by_infinite_ones(dtype: Any) -> None:
    with pullback.enable_x64():
        info = np.finfo(dtype)
        least, most = float(info.tiny), float(info.max)
        x = np.array([least * (1 + 1j), least * (8 + 1j), most * (0.5 + 0.5j), most, 3 + 4j], dtype)
        y = np.array([least * (4 + 3j), least * (2 - 3j), complex(np.inf, 1), complex(1, -np.inf), 0], dtype)
        found = np.asarray(pullback.jit(lambda x, y: x / y)(x, y))
    np.testing.assert_allclose(found[:2], [(1 + 1j) / (4 + 3j), (8 + 1j) / (2 - 3j)], rtol=4 * info.eps)
    np.testing.assert_array_equal(found[2:4], 0)
    np.testing.assert_array_equal(np.isinf(found[4].real) & np.isinf(found[4].imag), True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_of_angles_of_all_sizes(dtype: Any) -> None:
    """x / (x² + y²), also where a square is no number of the dtype, and for an operand that is a constant."""
    tiny, most = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    sizes = [most / 2, most**0.6, 1e5, 3.0, 1e-5, tiny**0.6, tiny * 8]
    x, y = (np.array(v, dtype) for v in zip(*itertools.product(sizes, sizes), strict=True))
    wide = np.longdouble
    expected = 1 / (x.astype(wide) * (1 + (y.astype(wide) / x) ** 2))
    normal = expected > 2 * tiny
    with enable_x64(True):
        for f in (lambda x: ew.inverse_p.bind(x, y), lambda x: -ew.inverse_p.bind(-x, y)):
            found = np.asarray(pullback.jit(f)(x))
            assert found.dtype == dtype
            np.testing.assert_allclose(found[normal], expected[normal].astype(dtype), rtol=4 * np.finfo(dtype).eps)
        ends = np.array([np.inf, -np.inf, 1, np.nan, np.inf], dtype), np.array([1, np.inf, np.inf, 1, np.nan], dtype)
        np.testing.assert_array_equal(pullback.jit(ew.inverse_p.bind)(*ends), [0, 0, 0, np.nan, 0])


def test_the_logistic_function_and_its_slope_share_an_exponential() -> None:
    x = np.array([-np.inf, -100, -80, -3, -0.0, 0, 3, 80, np.inf, np.nan], np.float32)
    both = pullback.jit(lambda x: (ew.logistic(x), ew.logistic_slope_p.bind(x)))
    assert both.lower(x).compile().as_text().count(" exponential(") == 1
    e = np.exp(-np.abs(x.astype(np.float64)))
    np.testing.assert_allclose(both(x)[0], np.where(x < 0, e, 1) / (1 + e), 3e-7, 2e-38)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_logistic_functions_of_each_precision(dtype: str, x64: None) -> None:
    x = pullback.numpy.asarray([-20, -3, -0.5, 0, 0.5, 3, 20], dtype)
    wide = np.asarray(x).astype(np.float64)
    found, error = pullback.jit(ew.logistic)(x), float(pullback.numpy.finfo(dtype).eps)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), 1 / (1 + np.exp(-wide)), 3 * error, error**2)


def test_slopes_of_the_logistic_function_lose_no_digits() -> None:
    x = np.concatenate([np.linspace(-87, 87, 2001), [np.inf, -np.inf, -100, 100]]).astype(np.float32)
    e = np.exp(-np.abs(x.astype(np.float64)))
    np.testing.assert_allclose(pullback.jit(ew.logistic_slope_p.bind)(x), e / (1 + e) ** 2, rtol=6e-7, atol=2e-38)


def test_divisors_of_whole_rows_are_divided_once_for_each_row() -> None:
    x, y = np.ones((40, 30), np.float32), np.ones((40, 1), np.float32)
    by_divisor = pullback.jit(pullback.grad(lambda y, x: pullback.numpy.sum(x / y * x)))
    quotients = [line for line in by_divisor.lower(y, x).as_text().splitlines() if "stablehlo.divide" in line]
    assert [line.rpartition(": ")[2] for line in quotients] == ["tensor<40x30xf32>", "tensor<40x1xf32>"]
    assert np.allclose(by_divisor(2 * y, x), -30 / 4)
