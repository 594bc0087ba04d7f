"""Operands, dtypes and options that NumPy or JAX takes: sums in booleans, names in einsum, complex weights."""

from __future__ import annotations

import hashlib
import io
import operator
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import device_put, devices, jit, lax, nn, ops, random
from pullback.errors import DtypeError, ShapeError
from pullback.transforms.jit.jit import quick
from tests.helpers import eager_and_compiled


def test_histograms_of_several_axes_as_densities() -> None:
    x = np.array([0.1, 0.5, 0.9, 0.3, 0.35], np.float32)
    for weights in (None, x, np.array([1, 2, 3, 4, 5], np.int32)):
        for bins in (2, [2, 3]):
            want = np.histogram2d(x, x[::-1], bins=bins, density=True, weights=weights)
            for mode in ("standard", "strict"):
                with pullback.numpy_dtype_promotion(mode):
                    f = lambda x, y: pnp.histogram2d(x, y, bins=bins, density=True, weights=weights)  # noqa: B023
                    for got in eager_and_compiled(f, x, x[::-1].copy()):
                        for a, b in zip(got, want, strict=True):
                            np.testing.assert_allclose(a, b, rtol=2e-6)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    "x", [[0, 0, 2], [1, 3, 2], [True, False, True], [0.0, np.nan, 0.0], [[0, 1j], [0, 0]], [0, 0]]
)
def test_sums_and_products_in_booleans(x: Any, kept: bool) -> None:
    x = np.array(x)
    for name in ("sum", "prod", "nansum", "nanprod"):
        for options in ({}, {"where": x != 1}, {"initial": 1}):
            want = getattr(np, name)(x, dtype=bool, keepdims=kept, **options)
            for got in eager_and_compiled(lambda x: getattr(pnp, name)(x, dtype=bool, keepdims=kept, **options), x):  # noqa: B023
                assert got.dtype == np.asarray(got).dtype == bool
                np.testing.assert_array_equal(got, want)
    for name in ("cumsum", "cumprod"):
        for got in eager_and_compiled(lambda x: getattr(pnp, name)(x, dtype=bool), x):  # noqa: B023
            assert got.dtype == bool
            np.testing.assert_array_equal(got, getattr(np, name)(x, dtype=bool))
    if x.ndim == 1:
        for got in eager_and_compiled(lambda x: pnp.trace(pnp.diag(x), dtype=bool), x):
            assert got == np.trace(np.diag(x), dtype=bool)
        for got in eager_and_compiled(lambda x: pnp.cumulative_sum(x, dtype=bool, include_initial=True), x):
            np.testing.assert_array_equal(got, np.cumulative_sum(x, dtype=bool, include_initial=True))
        for ufunc in ("add", "multiply"):
            for got in eager_and_compiled(lambda x: getattr(pnp, ufunc).reduce(x, dtype=bool), x):  # noqa: B023
                assert got == getattr(np, ufunc).reduce(x, dtype=bool)
            for got in eager_and_compiled(lambda x: getattr(pnp, ufunc).accumulate(x, dtype=bool), x):  # noqa: B023
                np.testing.assert_array_equal(got, getattr(np, ufunc).accumulate(x, dtype=bool))


def test_einsum_with_names() -> None:
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.arange(12.0, dtype=np.float32).reshape(3, 4)
    want = a @ b
    for i, j, k in (
        ("i", "j", "k"),
        ("row", "column", "sum"),
        (0, 2, 1),
        (("a", 1), ("b", 2), ("a", 2)),
        (-5, 10**9, 7),
    ):
        for got in eager_and_compiled(lambda a, b: pnp.einsum(a, [i, k], b, [k, j], [i, j]), a, b):  # noqa: B023
            np.testing.assert_array_equal(got, want)
        assert pnp.einsum_path(a, [i, k], b, [k, j], [i, j])[0] == [(0, 1)]
    np.testing.assert_array_equal(pnp.einsum(a, ["row", "k"], b, ["k", "col"]), want.T)  # in the order of the names
    np.testing.assert_array_equal(
        pnp.einsum(a, [..., "k"], b[:, :2], ["k", ...]), np.einsum(a, [..., 0], b[:, :2], [0, ...])
    )
    with pytest.raises(ShapeError, match=r"others that can be sorted; got \['i', 0\]"):
        pnp.einsum(a, ["i", 0])
    with pytest.raises(ShapeError, match="a list of names"):
        pnp.einsum(a, 0)


def test_whether_a_dtype_is_complex() -> None:
    assert pnp.iscomplexobj(pnp.complex64)
    assert not pnp.iscomplexobj(pnp.float32)
    assert pnp.isrealobj(pnp.bfloat16)
    assert not pnp.isrealobj(pnp.complex64)
    with pytest.raises(TypeError):
        pnp.iscomplexobj(object())  # type: ignore[arg-type]


def test_ranges_of_complex_numbers() -> None:
    for args in ((8,), (0, 3), (0.0, 3.0, 0.5), (3, 0, -1)):
        for got in eager_and_compiled(lambda: pnp.arange(*args, dtype="complex64")):  # noqa: B023
            assert got.dtype == np.complex64
            np.testing.assert_array_equal(got, np.arange(*args).astype(np.complex64))
    for args in ((1j,), (0, 3, 1j)):
        with pytest.raises(ValueError, match="arange takes real numbers, got complex"):
            pnp.arange(*args)


def test_ranges_whose_end_the_dtype_does_not_hold() -> None:
    assert pnp.arange(2**31 - 3, 2**31).tolist() == [2**31 - 3, 2**31 - 2, 2**31 - 1]
    assert pnp.arange(-(2**31) + 1, -(2**31) - 1, -1).tolist() == [-(2**31) + 1, -(2**31)]
    assert pnp.arange(np.int64(2**31 - 1), np.int64(2**31)).tolist() == [2**31 - 1]
    assert pnp.arange(2**32 - 2, 2**32, dtype="uint32").tolist() == [2**32 - 2, 2**32 - 1]
    assert pnp.arange(2**33, 2**33 + 2, dtype="float32").tolist() == [2.0**33, 2.0**33]
    assert pnp.arange(2**31, 2**31).shape == (0,)
    for args, end in (
        ((2**31, 2**31 + 3), 2**31),
        ((2**31 - 2, 2**31 + 1), 2**31),
        ((-(2**31) - 1, 0, 2**30), -(2**31) - 1),
    ):
        with pytest.raises(OverflowError, match=rf"has {end}, which is too large for int32; enable 64-bit types"):
            pnp.arange(*args)


def test_initializers_of_complex_weights() -> None:
    """The numbers are JAX's for the key; their mean is 0, their variance as asked for."""
    init = nn.initializers
    shape = (200, 300)
    with pullback.threefry_partitionable(True):
        small = [init.glorot_normal(), init.he_normal(), init.glorot_uniform(), init.he_uniform()]
        want = [0.9814667 + 0.04501101j, 1.3880031 + 0.0636552j, 0.9168093 + 0.0420460j, 1.2965642 + 0.0594620j]
        for f, number in zip(small, want, strict=True):
            for got in eager_and_compiled(lambda f=f: f(random.key(0), (2, 2), pnp.complex64)):
                np.testing.assert_allclose(got[0, 0], number, rtol=3e-5)
    for f in (init.lecun_normal(), init.lecun_uniform(), init.variance_scaling(1.0, "fan_in", "normal")):
        got = np.asarray(f(random.key(1), shape, pnp.complex64))
        assert got.dtype == np.complex64
        assert abs(got.mean()) < 2e-3 / np.sqrt(shape[0]) * 3
        np.testing.assert_allclose((np.abs(got) ** 2).mean() * shape[0], 1, rtol=0.03)
        np.testing.assert_allclose((got.real**2).mean(), (got.imag**2).mean(), rtol=0.03)


def test_initializers_of_weights_of_one_axis() -> None:
    make = nn.initializers.variance_scaling
    for f in (
        make(1, "fan_in", "normal", in_axis=[], out_axis=[0]),
        make(1, "fan_out", "normal", in_axis=[0], out_axis=[]),
    ):
        np.testing.assert_array_equal(f(random.key(0), (5,)), random.normal(random.key(0), (5,)))
    with pytest.raises(ShapeError, match="at least two axes, or in_axis"):
        nn.initializers.glorot_normal()(random.key(0), (5,))


COMPLEX = np.array([1 + 2j, -1 + 3j, 0 - 1j, 0 + 1j, 7 - 2j, 6 + 1j], np.complex64)


def test_activations_of_complex_numbers() -> None:
    """In the order of NumPy: by real parts, then by imaginary parts; recorded from JAX."""
    z = COMPLEX
    cases: list[tuple[Any, Any]] = [
        (nn.relu, [z[0], 0, 0, z[3], z[4], z[5]]),
        (nn.relu6, [z[0], 0, 0, z[3], 6, 6]),
        (nn.hard_tanh, [1, z[1], z[2], z[3], 1, 1]),
        (nn.hard_sigmoid, [(4 + 2j) / 6, (2 + 3j) / 6, (3 - 1j) / 6, (3 + 1j) / 6, 1, 1]),
        (nn.soft_sign, z / (1 + abs(z))),
        (nn.sparse_plus, [z[0], ((z[1] + 1) / 2) ** 2, ((z[2] + 1) / 2) ** 2, ((z[3] + 1) / 2) ** 2, z[4], z[5]]),
    ]
    for f, want in cases:
        for got in eager_and_compiled(f, z):
            np.testing.assert_allclose(got, np.array(want, np.complex64), rtol=1e-6)
    np.testing.assert_allclose(nn.hard_silu(z), z * np.asarray(nn.hard_sigmoid(z)), rtol=1e-6)
    np.testing.assert_array_equal(pullback.grad(lambda z: nn.relu(z).real.sum())(z), [1, 0, 0, 1, 1, 1])
    with pytest.raises(DtypeError, match="sparse_sigmoid takes real numbers"):
        nn.sparse_sigmoid(z)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "bool", "float32"])
def test_reductions_of_integers_from_infinity(dtype: str) -> None:
    x = np.array([3, 1, 0, 2]).astype(dtype)
    for start, f in ((-np.inf, lax.max), (np.inf, lax.min)):
        want = {lax.max: np.max, lax.min: np.min}[f](x)
        for got in eager_and_compiled(lambda x: lax.reduce(x, start, f, (0,)), x):  # noqa: B023
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, want)
        pairs = {lax.max: np.maximum, lax.min: np.minimum}[f](x[1:], x[:-1])
        for got in eager_and_compiled(lambda x: lax.reduce_window(x, start, f, (2,), (1,), "VALID"), x):  # noqa: B023
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, pairs)
    if dtype in ("int32", "uint8"):
        assert lax.reduce(x, 0.0, lax.add, (0,)) == 6
        with pytest.raises(DtypeError, match="the initial value must have the dtype of its operand"):
            lax.reduce(x, 1.5, lax.add, (0,))
        with pytest.raises(DtypeError, match="the initial value must have the dtype of its operand"):
            lax.reduce(x, 0.0, lambda a, b: a + b * b, (0,))


# Segments, tables, methods -----------------------------------------------------------------------------------------


def test_segments_of_booleans() -> None:
    data, ids = np.array([True, False, True]), np.array([0, 0, 1])
    for f, want in ((ops.segment_min, [False, True, True]), (ops.segment_max, [True, True, False])):
        for got in eager_and_compiled(lambda x: f(x, ids, 3), data):  # noqa: B023
            assert got.dtype == bool
            np.testing.assert_array_equal(got, want)
    with pytest.raises(DtypeError, match="real numbers or booleans"):
        ops.segment_min(np.array([1j, 2, 3]), ids)
    with pytest.raises(DtypeError, match="data must be of numbers, got bool"):
        ops.segment_sum(data, ids)


def test_interpolation_beyond_the_table() -> None:
    x, xp, fp = np.float32([-1, -0.5, 0.5, 2, 3]), np.float32([0, 1, 2]), np.float32([0, 2, 3])
    inside = np.interp(x, xp, fp)
    low, high = np.where(x < 0, 2 * x, inside), np.where(x > 2, x + 1, inside)
    for left, right, want in (
        ("extrapolate", None, low),
        (None, "extrapolate", high),
        ("extrapolate", "extrapolate", np.where(x < 0, 2 * x, high)),
        ("extrapolate", 7.0, np.where(x > 2, 7, low)),
    ):
        for got in eager_and_compiled(lambda x: pnp.interp(x, xp, fp, left, right), x):  # noqa: B023
            np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_array_equal(pnp.interp(x, xp[:1], fp[1:2], "extrapolate", "extrapolate"), 2)
    slopes = pullback.vmap(pullback.grad(lambda x: pnp.interp(x, xp, fp, "extrapolate", "extrapolate")))(x)
    np.testing.assert_allclose(slopes, [2, 2, 2, 1, 1])
    with pytest.raises(ValueError, match="interp: left must be a number or 'extrapolate', got 'linear'"):
        pnp.interp(x, xp, fp, left="linear")


def test_items_by_position() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for index in ((), (5,), (-1,), ((1, 2, 3),), (1, 2, 3), ((5,),), (24,), ((2, 0, 0),)):
        values = x if index else x[:1, :1, :1]
        try:
            want: Any = values.item(*index)
        except IndexError:
            with pytest.raises(IndexError):
                pnp.asarray(values).item(*index)
        else:
            assert pnp.asarray(values).item(*index) == want


def test_the_bytes_of_an_array() -> None:
    for x in (np.arange(3.0, dtype=np.float32), np.array(3), np.ones((2, 4))[:, ::2]):
        ours = pnp.asarray(x)
        assert bytes(ours) == np.asarray(ours).tobytes()
    assert bytes(pnp.ones(2, "bfloat16")) == b"\x80?\x80?"
    with pytest.raises(TypeError, match="random keys"):
        bytes(random.key(0))


@pytest.mark.skipif(
    quick is None and sys.version_info < (3, 12),
    reason="Python's classes have no buffer protocol before Python 3.12, and there is no module in C",
)
def test_memory_of_an_array() -> None:
    compiled, there = jit(lambda x: 2 * x)(pnp.arange(6.0)), device_put(pnp.arange(6), devices()[0])
    for x in (pnp.arange(3.0), pnp.ones((2, 4))[:, ::2], pnp.array(True), pnp.zeros((0, 2)), compiled, there):
        assert hashlib.sha256(x).digest() == hashlib.sha256(np.asarray(x).tobytes()).digest()
        view = memoryview(x)
        assert view.readonly
        assert view.shape == x.shape
        np.testing.assert_array_equal(np.asarray(view), x)
        assert bytearray(x) == x.tobytes()
        with pytest.raises(BufferError, match="arrays are immutable"):
            x.__buffer__(1)
        with pytest.raises((BufferError, TypeError)):
            io.BytesIO(b"123").readinto(x)
        with pytest.raises(ValueError, match=r"WRITEABLE|read-only"):
            np.asarray(x).setflags(write=True)
    assert memoryview(pnp.ones((2, 4))[:, ::2]).tolist() == [[1, 1], [1, 1]]


@pytest.mark.skipif(quick is None and sys.version_info < (3, 12), reason="as above")
def test_memory_outlives_its_array() -> None:
    x = pnp.arange(1000.0)
    view = memoryview(x)
    x = x + 1  # in place, if nobody else had the elements
    del x
    assert view.tolist() == list(range(1000))
    for _ in range(100):
        y = pnp.arange(100.0)
        memoryview(y).release()
    gone = weakref.ref(y)
    del y
    assert gone() is None


@pytest.mark.skipif(quick is None and sys.version_info < (3, 12), reason="as above")
def test_memory_of_what_has_no_format() -> None:
    with pytest.raises(BufferError, match="bfloat16 have no format"):
        memoryview(pnp.ones(2, "bfloat16"))
    assert np.asarray(pnp.ones(2, "bfloat16")).tolist() == [1, 1]
    with pytest.raises(BufferError, match="have no format"):
        memoryview(random.key(0))
    deleted = pnp.ones(3)
    deleted.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        memoryview(deleted)
    with pytest.raises(TypeError):
        jit(lambda x: memoryview(x).nbytes)(1.0)


def test_small_things() -> None:
    """Each was compared with JAX 0.10.2."""
    for key in (random.key(0), random.split(random.key(1))):
        assert pnp.allclose(key, key)
        assert not pnp.allclose(key, random.key(7))
        assert pnp.isclose(key, key).shape == key.shape
    for number in (3.0, 0.0):
        assert pnp.trim_zeros(pnp.array(number)) == number
    for function, of_a_number in ((pnp.shape, ()), (pnp.ndim, 0), (pnp.size, 1)):
        with pytest.warns(DeprecationWarning, match="got None"):
            assert function(None) == of_a_number
    assert pnp.roots(3).shape == (0,)
    np.testing.assert_array_equal(lax.map(lambda x: x + 1, np.arange(3), batch_size=0), [1, 2, 3])
    with pytest.raises(ValueError, match="complex numbers have no order"):
        pnp.clip(np.array([1 + 1j]), 0, 1)
    for excluded, message in (({-1}, "must not be negative"), ({1.5}, "must contain positions or names")):
        with pytest.raises(ValueError, match=message):
            pnp.vectorize(pnp.add, excluded=excluded)  # type: ignore[arg-type]


def test_python_ints_of_any_size_are_converted() -> None:
    for number, dtype in ((2**100, "float32"), (-(2**40), "bfloat16"), (2**40, "complex64"), (2**31, "bool")):
        for got in eager_and_compiled(lambda: lax.convert_element_type(number, dtype)):  # noqa: B023
            assert got.dtype == dtype
            assert got == np.float64(number).astype(dtype)
    for number, dtype in ((2**32 + 7, "uint8"), (2**31, "int32"), (-(2**40) - 3, "int8"), (3_000_000_000, "uint32")):
        for got in eager_and_compiled(lambda: lax.convert_element_type(number, dtype)):  # noqa: B023
            assert got.dtype == dtype
            assert int(got) % 2 ** (8 * np.dtype(dtype).itemsize) == number % 2 ** (8 * np.dtype(dtype).itemsize)


def test_transforms_of_nothing() -> None:
    for f, dtype in ((pnp.fft.fft, "complex64"), (pnp.fft.ifft, "complex64"), (pnp.fft.irfft, "float32")):
        for got in eager_and_compiled(f, np.zeros(0, np.float32)):
            assert got.shape == (0,)
            assert got.dtype == dtype
    assert pnp.fft.fftn(np.zeros((0, 3))).shape == (0, 3)
    for call in (
        lambda: pnp.fft.rfft(np.zeros(0)),
        lambda: pnp.fft.fft(np.zeros(0), 0),
        lambda: pnp.fft.fft(np.ones(3), 0),
    ):
        with pytest.raises(ShapeError, match="needs at least one point"):
            call()


def test_equal_functions_of_elements() -> None:
    add = pnp.frompyfunc(operator.add, 2, 1)
    assert add == pnp.frompyfunc(operator.add, 2, 1)
    assert hash(add) == hash(pnp.frompyfunc(operator.add, 2, 1))
    assert add not in {pnp.frompyfunc(operator.add, 2, 1, identity=0), pnp.frompyfunc(operator.mul, 2, 1), pnp.add}


# Products in another dtype -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_products_of_floats_of_eight_bits(mode: str) -> None:
    a = pnp.array([1.0, 2.0, -3.5]).astype("float8_e4m3fn")
    b = pnp.array([0.5, 4.0, 1.0]).astype("float8_e5m2")
    cases: list[tuple[Any, Any, Any]] = [
        (lambda a, b, p: lax.dot(a, a, preferred_element_type=p), 17.25, a),
        (lambda a, b, p: lax.dot(a, b, preferred_element_type=p), 5.0, a),
        (lambda a, b, p: pnp.matmul(a, b, preferred_element_type=p), 5.0, a),
        (lambda a, b, p: pnp.einsum("i,i", a, b, preferred_element_type=p), 5.0, a),
        (lambda a, b, p: lax.dot(a, pnp.ones(3), preferred_element_type=p), -0.5, a),
        (
            lambda a, b, p: lax.dot_general(a[None], b[:, None], (((1,), (0,)), ((), ())), preferred_element_type=p),
            5.0,
            a,
        ),
    ]
    with pullback.numpy_dtype_promotion(mode):
        for f, want, x in cases:
            for preferred in ("float32", "bfloat16"):
                for got in eager_and_compiled(lambda a, b: f(a, b, preferred), x, b):  # noqa: B023
                    assert got.dtype == preferred
                    assert got.ravel() == want
        slope = pullback.grad(lambda a: lax.dot(a, b, preferred_element_type="float32"))(a)
        assert slope.dtype == a.dtype
        assert slope.tolist() == [0.5, 4.0, 1.0]
    with pytest.raises(pullback.errors.TypePromotionError):
        lax.dot(a, b)


def test_products_of_several_dtypes_under_strict_promotion() -> None:
    x, y = np.array([1, 2, 3], np.int8), pnp.array([1.0, 2.0, 3.0], "bfloat16")
    with pullback.numpy_dtype_promotion("strict"):
        assert lax.dot(x, x, preferred_element_type="int32").dtype == np.int32
        assert lax.dot(y, y.astype("float32"), preferred_element_type="float32") == 14
        slopes = pullback.grad(lambda y: lax.dot(y, y, preferred_element_type="float32"))(y)
        assert slopes.tolist() == [2, 4, 6]
        kernel = y.reshape(1, 1, 3)
        out = lax.conv_general_dilated(kernel, kernel, (1,), "SAME", preferred_element_type="float32")
        assert out.dtype == np.float32


def test_numbers_of_numpy_are_instances_of_the_dtypes() -> None:
    assert isinstance(np.float32(1), pnp.float32)
    assert isinstance(np.bool_(True), pnp.bool_)
    assert not isinstance(np.float64(1), pnp.float32)
    assert not isinstance(pnp.float32(1), pnp.float32)
    assert not isinstance(1.0, pnp.float32)


def test_integers_to_a_negative_power_that_is_known() -> None:
    x = pnp.arange(1, 3)
    for y in (-1, np.int32(-1), np.array(-1), pnp.array(-1)):
        for call in (lambda: x**y, lambda: pnp.power(x, y), lambda: pullback.jit(lambda x: x ** np.int32(-1))(x)):  # noqa: B023
            with pytest.raises(TypeError, match="integers cannot be raised to negative powers"):
                call()
        np.testing.assert_allclose(pnp.power(x.astype(float), y), [1, 0.5])
    assert (x ** np.int32(2)).tolist() == [1, 4]
    assert (2 ** pnp.array(3), np.int32(2) ** pnp.array(3)) == (8, 8)


def test_products_of_two_dtypes_are_those_of_their_common_one() -> None:
    x = np.arange(3.0)
    for mode in ("standard", "strict"):
        with pullback.numpy_dtype_promotion(mode):
            for got in eager_and_compiled(lambda a, b: lax.dot(a, b), x.astype(np.float16), x.astype(np.complex64)):
                assert got.dtype == np.complex64
                assert got == 5
