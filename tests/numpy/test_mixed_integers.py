"""Integers of two dtypes in functions of floats, and numbers at the edges of dtypes: no value is lost on the way."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.signal
import scipy.special

import pullback.numpy as pnp
import pullback.scipy as psp
from pullback import grad, jit, lax, vmap
from pullback.errors import ShapeError

U = np.array([3_000_000_000, 2**32 - 1, 7, 40], np.uint32)
I = np.array([3, -128, 1, 127], np.int8)  # the dtype's letter

MIXED: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "average": lambda np, sp, u, i: np.average(u, weights=i),
    "average of signed numbers": lambda np, sp, u, i: np.average(i, weights=u),
    "interp": lambda np, sp, u, i: np.interp(u, np.sort(i), u),
    "convolve": lambda np, sp, u, i: np.convolve(u, i),
    "correlate": lambda np, sp, u, i: np.correlate(u, i, "full"),
    "polymul": lambda np, sp, u, i: np.polymul(u, i),
    "polydiv": lambda np, sp, u, i: np.polydiv(u, i[:2])[0],
    "polyfit": lambda np, sp, u, i: np.polyfit(i, u, 1),
    "polyint": lambda np, sp, u, i: np.polyint(i, 1, u[0]),
    "trapezoid": lambda np, sp, u, i: np.trapezoid(u, i),
    "trapezoid with dx": lambda np, sp, u, i: np.trapezoid(i, dx=u[0]),
    "cov": lambda np, sp, u, i: np.cov(u, i),
    "corrcoef": lambda np, sp, u, i: np.corrcoef(u, i),
    "linspace": lambda np, sp, u, i: np.linspace(u, i, 3),
    "logspace": lambda np, sp, u, i: np.logspace(0, i[2], 2, base=u[0]),
    "geomspace": lambda np, sp, u, i: np.geomspace(u[:1], i[:1], 3),
    "histogram": lambda np, sp, u, i: np.histogram(i, 3, weights=u)[0],
    "histogram2d": lambda np, sp, u, i: np.histogram2d(u, i, 2)[0],
    "linalg.solve": lambda np, sp, u, i: np.linalg.solve(np.stack([i[:2], i[2:]]), u[:2]),
    "linalg.lstsq": lambda np, sp, u, i: np.linalg.lstsq(np.stack([u, u[::-1]], 1), i)[0],
    "linalg.tensorsolve": lambda np, sp, u, i: np.linalg.tensorsolve(np.stack([i[:2], i[2:]]), u[:2]),
    "true_divide": lambda np, sp, u, i: np.true_divide(u, i),
    "arctan2": lambda np, sp, u, i: np.arctan2(u, i),
    "hypot": lambda np, sp, u, i: np.hypot(u, i),
    "float_power": lambda np, sp, u, i: np.float_power(u, i // 64),
    "logaddexp": lambda np, sp, u, i: np.logaddexp(u, i),
    "gradient": lambda np, sp, u, i: np.gradient(u, np.sort(i)),
    "signal.convolve": lambda np, sp, u, i: sp.signal.convolve(u, i),
    "signal.correlate": lambda np, sp, u, i: sp.signal.correlate(u, i),
    "signal.convolve2d": lambda np, sp, u, i: sp.signal.convolve2d(u[None], i[None]),
    "signal.lfilter": lambda np, sp, u, i: sp.signal.lfilter(u, i[2:3], i),
    "signal.csd": lambda np, sp, u, i: sp.signal.csd(u, i, nperseg=4)[1],
    "integrate.simpson": lambda np, sp, u, i: sp.integrate.simpson(u, x=np.sort(i)),
    "special.xlogy": lambda np, sp, u, i: sp.special.xlogy(i, u),
    "special.gammainc": lambda np, sp, u, i: sp.special.gammainc(abs(i[:1]), u[:1]),
}
"""Functions of floats, given integers of 32 bits without sign and of 8 with one, and in which no value may wrap."""


@pytest.mark.parametrize("name", MIXED)
def test_integers_without_sign_beside_signed_ones_keep_their_values(name: str) -> None:
    """Their common dtype has 64 bits, and without these becomes int32, which does not hold 3,000,000,000."""
    call = MIXED[name]
    expected = np.asarray(call(np, scipy, U.astype(np.float64), I.astype(np.float64)))
    u, i = pnp.asarray(U), pnp.asarray(I)
    size = np.abs(expected).max()
    for found in (call(pnp, psp, u, i), jit(lambda u, i: call(pnp, psp, u, i))(u, i)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-6 * size)


def test_products_that_are_summed_in_another_dtype() -> None:
    u, i = pnp.asarray(U), pnp.asarray(I)
    expected = np.dot(U.astype(np.float64), I.astype(np.float64))
    for product in (
        lambda d: pnp.dot(u, i, preferred_element_type=d), lambda d: lax.dot(u, i, preferred_element_type=d),
        lambda d: pnp.einsum("i,i", u, i, preferred_element_type=d), lambda d: pnp.vdot(u, i, preferred_element_type=d),
        lambda d: pnp.correlate(u, i, "valid", preferred_element_type=d)[0],
    ):  # fmt: skip
        np.testing.assert_allclose(product("float32"), expected, rtol=1e-6)


NARROW_PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "lax.dot": lambda a, b, d: lax.dot(a, b, preferred_element_type=d),
    "lax.dot_general": lambda a, b, d: lax.dot_general(
        a[None], b[:, None], (((1,), (0,)), ((), ())), preferred_element_type=d
    )[0, 0],
    "lax.ragged_dot": lambda a, b, d: lax.ragged_dot(
        a[None], b[None, :, None], pnp.array([1]), preferred_element_type=d
    )[0, 0],
    "matmul": lambda a, b, d: pnp.matmul(a, b, preferred_element_type=d),
    "einsum": lambda a, b, d: pnp.einsum("i,i", a, b, preferred_element_type=d),
    "tensordot": lambda a, b, d: pnp.tensordot(a, b, 1, preferred_element_type=d),
    "convolve": lambda a, b, d: pnp.convolve(a, b[::-1], "valid", preferred_element_type=d)[0],
}


@pytest.mark.parametrize("name", NARROW_PRODUCTS)
def test_products_of_types_that_are_not_promoted(name: str) -> None:
    """Floats of 8 bits and integers of 4, summed in a wider type."""
    product = NARROW_PRODUCTS[name]
    for first, second, wide in (
        ("float8_e4m3fn", "float8_e4m3fn", "float32"), ("float8_e5m2", "float8_e5m2", "bfloat16"),
        ("float8_e4m3fn", "float8_e5m2", "float16"), ("float8_e8m0fnu", "float8_e8m0fnu", "float32"),
        ("int4", "int4", "int32"), ("uint4", "int4", "int32"), ("int2", "int8", "int16"), ("int4", "int4", "float32"),
    ):  # fmt: skip
        numbers = np.array([1, -2, 1, -1] if first == "int2" else [1, 2, 4, 4])
        a, b = (pnp.asarray(numbers, "int32").astype(d) for d in (first, second))
        for f in (product, jit(product, static_argnums=2)):
            found = f(a, b, wide)
            assert found.dtype == wide
            assert float(found) == float(numbers @ numbers)


def test_edges_beyond_the_default_integers() -> None:
    for a in (pnp.asarray(U), pnp.asarray(U, "float32"), pnp.asarray(I)):
        for end in (2**32, 10**10):
            expected = np.histogram(np.asarray(a, np.float64), 3, range=(0, end))
            counts, edges = pnp.histogram(a, 3, range=(0, end))
            np.testing.assert_array_equal(counts, expected[0])
            np.testing.assert_allclose(edges, expected[1])
    counts, edges = pnp.histogramdd(pnp.asarray(U)[:, None].astype("float32"), (3,), range=[(0, 2**33)])
    assert counts.tolist() == [2, 1, 1] or counts.tolist() == [2, 2, 0]
    assert lax.full((2,), 2**32, "float32").tolist() == [2.0**32] * 2
    assert lax.convert_element_type(2**100, "float32") == 2.0**100
    assert int(lax.convert_element_type(2**32 + 5, "uint8")) == 5
    assert int(lax.convert_element_type(-(2**40) - 3, "int16")) == -3


def test_the_distances_of_trapezoid_lie_along_the_axes_of_the_integrand() -> None:
    y = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
    for shape in ((), (5,), (3, 5), (3, 1), (3, 3, 5), (3, 3, 1), (1, 3, 1), (3, 1, 5)):
        dx = np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        expected = np.trapezoid(y, dx=dx, axis=1)
        for f in (pnp.trapezoid, jit(pnp.trapezoid, static_argnames="axis")):
            np.testing.assert_allclose(f(y, dx=dx, axis=1), expected, rtol=1e-6)
    for axis in (0, 2, -1):
        np.testing.assert_allclose(pnp.trapezoid(y, dx=np.float32(2), axis=axis), np.trapezoid(y, dx=2, axis=axis))
    with pytest.raises(TypeError, match="broadcast"):
        pnp.trapezoid(y, dx=np.ones(4), axis=1)
    with pytest.raises(ShapeError, match="more axes than y"):
        pnp.trapezoid(y[0, 0], dx=np.ones((2, 4)))


@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize("period", [3, 7, 8, 100])
def test_integers_are_unwrapped_as_integers(dtype: str, period: int) -> None:
    x = np.random.default_rng(0).integers(-120, 120, (4, 9)).astype(dtype)
    for options in ({}, {"discont": 5}, {"discont": 3.5}, {"axis": 0}):
        expected = np.unwrap(x, period=period, **options)
        for f in (pnp.unwrap, jit(lambda x, **options: pnp.unwrap(x, **options), static_argnames=("axis", "period"))):
            found = f(x, period=period, **options)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)
    narrow = x.astype("uint8")
    found = pnp.unwrap(narrow, period=period)
    assert found.dtype == "uint8"
    np.testing.assert_array_equal(found, np.unwrap(narrow.astype("int32"), period=period).astype("uint8"))
    assert pnp.unwrap(narrow).dtype == "float32"


def test_python_numbers_are_saved_with_all_their_digits() -> None:
    """In NumPy's dtypes, as NumPy and JAX write them; an array in its own."""
    for value in (1e-8, 1 / 3, 2**40, True, 1j, [1, 2], (1, 2.5), [[0.1], [0.2]], []):
        file = io.BytesIO()
        pnp.save(file, value)
        file.seek(0)
        read = np.load(file)
        assert read.dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(read, np.asarray(value))
    for value in (pnp.float32(1e-8), [pnp.float32(0.1), 0.2]):
        file = io.BytesIO()
        pnp.savez(file, x=value)
        file.seek(0)
        assert np.load(file)["x"].dtype == np.float32


def test_narrow_integers_share_bytes_in_bitcast_convert_type() -> None:
    x = pnp.array([[1, 2, 3], [4, 5, -6]], "int8")
    expected = [[[1, 0], [2, 0], [3, 0]], [[4, 0], [5, 0], [-6, -1]]]
    for f in (lax.bitcast_convert_type, jit(lax.bitcast_convert_type, static_argnums=1)):
        narrow = f(x, "int4")
        assert narrow.astype("int32").tolist() == expected
        assert narrow.dtype == "int4"
        assert f(narrow, "int8").tolist() == x.tolist()
        assert f(f(x[..., :2].astype("int16"), "int2"), "int16").tolist() == x[..., :2].tolist()
        assert f(narrow, "uint4").astype("int32")[1, 2].tolist() == [10, 15]
    assert vmap(lambda x: lax.bitcast_convert_type(x, "int4"))(x).astype("int32").tolist() == expected
    with pytest.raises(ShapeError, match="last axis has size 2"):
        lax.bitcast_convert_type(x.astype("int4"), "int8")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_signs_of_zeros_in_extremes(name: str, dtype: str) -> None:
    """0.0 is larger than -0.0, eager and compiled, as in IEEE 754-2019; NumPy returns either."""
    f, numbers = getattr(pnp, name), np.array([0.0, -0.0, 1.0, -1.0, np.inf, np.nan], np.float32)
    x, y = (pnp.asarray(z.ravel()).astype(dtype) for z in np.meshgrid(numbers, numbers))
    for operands in ((x, y), *((x, number) for number in (0.0, -0.0, 0, 1.5)), (0.0, y), (-0.0, y), (x[0], y[1])):
        eager, compiled = (np.asarray(g(*operands), np.float32) for g in (f, jit(f)))
        np.testing.assert_array_equal(eager, compiled)
        kept = ~np.isnan(eager)
        np.testing.assert_array_equal(np.signbit(eager)[kept], np.signbit(compiled)[kept])
    many = pnp.concatenate([x] * 60), pnp.concatenate([y] * 60)
    once = np.signbit(np.asarray(f(x, y), np.float32))[~np.isnan(np.asarray(f(x, y), np.float32))]
    times = np.asarray(f(*many), np.float32)
    np.testing.assert_array_equal(np.signbit(times)[~np.isnan(times)], np.tile(once, 60))
    assert bool(np.signbit(np.float32(f(0.0, -0.0)))) is (name == "minimum")
    assert bool(np.signbit(np.float32(f(-0.0, 0.0)))) is (name == "minimum")


def test_grids_of_floats_are_floats() -> None:
    """As of NumPy, also where only the start is a float; JAX has integers there."""
    for grid, like in ((pnp.mgrid, np.mgrid), (pnp.ogrid, np.ogrid), (pnp.r_, np.r_)):
        for key in (np.s_[0.0:3], np.s_[0:3.0], np.s_[0:3:1.0], np.s_[0:3]):
            assert grid[key].dtype.kind == np.asarray(like[key]).dtype.kind


def test_the_hypergeometric_function_above_one_where_it_is_a_power() -> None:
    """(1 - x)**-a, if c is b and a an integer: so in SciPy, and compiled too."""
    for a, b, c, x in ((2.0, 2.0, 2.0, 3.0), (2.0, 3.0, 2.0, 3.0), (3.0, 2.5, 2.5, 1.5), (-2.0, 0.5, 1.5, 3.0)):
        expected = scipy.special.hyp2f1(a, b, c, x)
        slope = a * b / c * scipy.special.hyp2f1(a + 1, b + 1, c + 1, x)
        for f in (psp.special.hyp2f1, jit(psp.special.hyp2f1)):
            np.testing.assert_allclose(f(a, b, c, x), expected, rtol=1e-5)
            np.testing.assert_allclose(grad(f, 3)(a, b, c, x), slope, rtol=1e-5)
    assert jit(psp.special.hyp2f1)(0.5, 2.0, 2.0, 3.0) == np.inf


@pytest.mark.parametrize("x", [np.float64(1e-8), np.array([1e-8, 1 / 3]), np.int64(2**40), np.array(2**40)])
def test_saved_arrays_of_numpy_keep_their_dtype(x: Any) -> None:
    file = io.BytesIO()
    pnp.save(file, x)
    file.seek(0)
    found = np.load(file)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)
