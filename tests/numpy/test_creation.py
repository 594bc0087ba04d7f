"""Arrays made from values and shapes; dtypes under NumPy's names."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import ShapeDtypeStruct, enable_x64, grad, jacfwd, make_jaxpr, vmap
from pullback.core.errors import (
    AllocationError,
    ConcretizationTypeError,
    DtypeError,
    DtypeTruncationWarning,
    IntegerRangeError,
    OperandError,
    ShapeError,
)


def kind(x: Any) -> str:
    return x.dtype.name + ("*" if x.weak_type else "")


# value, dtype (a star: weak), recorded from JAX 0.10.2
VALUES = [
    (1, "int32*"), (1.0, "float32*"), (1j, "complex64*"), (True, "bool"), ([1, 2.0], "float32"), ([1, True], "int32"),
    ([], "float32"), ([[]], "float32"), ((1, (2)), "int32"), ([np.float16(1), 2], "float16"), ([1j, 2], "complex64"),
    (np.arange(2), "int32"), (np.float64(1), "float32"), (np.uint8(1), "uint8"), ([np.int8(1), 2.5], "float32"),
    ([True, False], "bool"), (np.array(1, ">f4"), "float32"), (ml_dtypes.bfloat16(1), "bfloat16"), ({3: 4}, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=repr)
def test_arrays_of_values(value: Any, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(OperandError, match=r"expected an array or a number, got \{3: 4\} of type dict"):
            pnp.array(value)
        return
    got = pnp.array(value)
    assert kind(got) == expected
    np.testing.assert_array_equal(got, np.asarray(value).astype(got.dtype))


def test_options_of_array() -> None:
    assert pnp.array(1, ndmin=2).shape == (1, 1)
    assert kind(pnp.array(1, ndmin=1)) == "int32*"
    assert kind(pnp.array([1, 2], "float16")) == "float16"
    assert kind(pnp.array(3, "uint8")) == "uint8"
    np.testing.assert_array_equal(pnp.array([1.7, np.nan, -1e20], int), [1, 0, -(2**31)])
    np.testing.assert_array_equal(pnp.array(np.array([300.0, -5.0]), "uint8"), [255, 0])
    x = pnp.ones(2)
    assert pnp.asarray(x) is x
    mine = np.ones(2, np.float32)
    ours = pnp.array(mine)
    mine[0] = 7.0
    np.testing.assert_array_equal(ours, [1.0, 1.0])
    with enable_x64():
        assert pnp.array([1, 2.0]).dtype == np.float64
        assert pnp.array(np.arange(2)).dtype == np.int64


def test_nested_lists_of_arrays_and_tracers() -> None:
    x = pnp.arange(2.0)
    np.testing.assert_array_equal(pnp.array([x, np.ones(2)]), [[0, 1], [1, 1]])
    assert pnp.array([x.astype("float16"), [1, 2]]).dtype == np.float16
    np.testing.assert_array_equal(jacfwd(lambda v: pnp.array([[v, 1], [2.0, v * v]]))(3.0), [[1, 0], [0, 6]])
    np.testing.assert_array_equal(vmap(lambda v: pnp.array([v, 0]))(pnp.arange(2)), [[0, 0], [1, 0]])
    assert str(make_jaxpr(lambda v: pnp.array([v, v]))(1.0).out_avals[0]) == "float32[2]"


BAD = [
    ("a", OperandError, "got 'a' of type str"),
    (None, OperandError, "got None of type NoneType"),
    ([1, None], OperandError, "got None of type NoneType"),
    ([1, "a"], OperandError, "got 'a' of type str"),
    ({1: 2}, OperandError, "of type dict"),
    ([[1, 2], [3]], ShapeError, "must have one shape"),
    ([np.ones(2), np.ones(3)], ShapeError, r"one shape, got \(2,\), \(3,\)"),
    ([np.ones(2), 1.0], ShapeError, r"one shape, got \(\), \(2,\)"),
    (np.array(["a"]), OperandError, "is not supported"),
    (2**40, OverflowError, "too large for int32"),
    ([2**40], IntegerRangeError, r"array: .* out of bounds for int32. Enable 64-bit types \(`with"),
    ([2**70], OverflowError, "does not fit in 64 bits"),
]


@pytest.mark.parametrize(("value", "error", "message"), BAD, ids=repr)
def test_values_that_are_no_arrays(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pnp.array(value)


def test_dtypes_that_do_not_exist_or_do_not_hold_the_value() -> None:
    for dtype, message in (
        ("foo", "unknown dtype 'foo'; the dtypes are bool"),
        (object, "not supp"),
        ("U3", "not supp"),
    ):
        for make in (lambda d: pnp.zeros(2, d), lambda d: pnp.array([1], d), lambda d: pnp.ones(1).astype(d)):
            with pytest.raises(DtypeError, match=message):
                make(dtype)
    with pytest.raises(DtypeError, match="take their real part first"):
        pnp.array([1j], float)
    with pytest.raises(OverflowError, match="300"):
        pnp.array([300], "uint8")
    with pytest.raises(DtypeError, match="floating is a kind of dtypes"):
        pnp.zeros(2, np.floating)


FILLED = {"zeros": 0, "ones": 1, "empty": 0}


@pytest.mark.parametrize("name", FILLED)
def test_constant_arrays(name: str) -> None:
    make, like = getattr(pnp, name), getattr(pnp, name + "_like")
    for shape in (3, (2, 3), (), (0,), [2]):
        np.testing.assert_array_equal(make(shape), getattr(np, name if name != "empty" else "zeros")(shape))
        assert make(shape).dtype == np.float32
    assert make(2, "bfloat16").dtype == pnp.bfloat16
    with pytest.warns(DtypeTruncationWarning):
        assert make(2, np.float64).dtype == np.float32
    np.testing.assert_array_equal(like(pnp.arange(3)), np.full(3, FILLED[name]))
    assert like(pnp.arange(3)).dtype == np.int32
    assert kind(like(1.0)) == "float32*"
    assert like(ShapeDtypeStruct((2,), "int8")).dtype == np.int8
    assert like(pnp.arange(3), dtype=float, shape=(1, 2)).shape == (1, 2)
    with pytest.raises(AllocationError, match=rf"{name}: no memory for an array of shape \(10000000000000,\)"):
        make(10**13)
    with pytest.raises(MemoryError, match="too big"):
        make((10**9,) * 4)
    for shape, message in ((-1, "must not be negative"), (2.0, "an int or a sequence"), ((2, "a"), "must be an int")):
        with pytest.raises(ShapeError, match=message):
            make(shape)


def test_full() -> None:
    assert kind(pnp.full(2, 3)) == "int32*"
    assert kind(pnp.full(2, 3.7, int)) == "int32"
    np.testing.assert_array_equal(pnp.full((2, 2), [1, 2]), [[1, 2], [1, 2]])
    np.testing.assert_array_equal(pnp.full_like(pnp.arange(2), 2.5), [2, 2])
    assert grad(lambda v: pnp.full((2, 2), v).sum())(1.0) == 4.0
    assert make_jaxpr(lambda v: pnp.zeros(3) + v)(1.0).out_avals[0].shape == (3,)


RANGES: list[tuple[Any, ...]] = [
    (3,), (3.0,), (0, 1, 0.25), (5, 0, -2), (3, 1), (1, 7, 3), (-0.5, 2.0), (np.int8(3),), (0,), (0.0, 1.0, 0.1),
]  # fmt: skip


@pytest.mark.parametrize("bounds", RANGES, ids=repr)
def test_ranges(bounds: tuple[Any, ...]) -> None:
    expected = np.arange(*bounds)
    got = pnp.arange(*bounds)
    assert got.dtype == (np.int8 if isinstance(bounds[0], np.int8) else pnp.array(expected).dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert pnp.arange(*bounds, dtype="bfloat16").dtype == pnp.bfloat16


def test_a_shape_in_several_arguments() -> None:
    with pytest.raises(
        DtypeError, match=r"unknown dtype 4 \(a shape is one argument, such as \(2, 3\)\); the dtypes are"
    ):
        pnp.zeros(3, 4)


def test_bad_ranges() -> None:
    for bounds in ((3,), (0, 3), (0.0, 3.0)):
        with pytest.raises(ConcretizationTypeError, match="the length of arange needs a concrete value") as caught:
            make_jaxpr(pnp.arange)(*bounds)
        assert str(caught.value).endswith("a range of fixed length and a mask: jnp.arange(length) < n.")
    for bounds, error, message in (
        ((0, 3, 0), ShapeError, "must not be zero"),
        ((np.ones(2),), ShapeError, "scalars"),
        ((True,), DtypeError, "real numbers"),
        ((1j,), DtypeError, "real numbers"),
        ((10**13,), OverflowError, "too large for int32"),
        ((1e13,), AllocationError, "no memory for the range"),
        (("a",), OperandError, "got 'a'"),
    ):
        with pytest.raises(error, match=message):
            pnp.arange(*bounds)


def test_spaced_numbers() -> None:
    for args, options in (
        ((0, 1, 5), {}), ((0, 1, 5), {"endpoint": False}), ((0, 10, 4), {"dtype": int}), ((0, 1, 1), {}),
        ((0, 1, 0), {}),
        ((np.zeros(2), np.array([1.0, 3.0]), 3), {"axis": 1}), ((-1, 1j, 3), {}), ((3, -3, 7), {}),
    ):  # fmt: skip
        expected = np.linspace(*args, **options)
        np.testing.assert_allclose(pnp.linspace(*args, **options), expected, rtol=1e-6, atol=1e-7)
        assert not pnp.linspace(*args, **options).weak_type
    assert float(pnp.linspace(0, 1, 5, retstep=True)[1]) == 0.25
    assert np.isnan(pnp.linspace(0, 1, 1, retstep=True)[1])
    x = pnp.linspace(0.1, 0.7, 11)
    assert (x[0], x[-1]) == (np.float32(0.1), np.float32(0.7))
    np.testing.assert_allclose(grad(lambda a: pnp.linspace(0.0, a, 5).sum())(2.0), 2.5)
    np.testing.assert_allclose(pnp.logspace(0, 2, 3), [1, 10, 100], rtol=1e-6)
    np.testing.assert_allclose(pnp.logspace(0, 4, 3, base=2, dtype=int), [1, 4, 16])
    for ends in ((1, 1000), (-1, -1000), (1000.0, 1.0), (1j, 16j)):
        np.testing.assert_allclose(pnp.geomspace(*ends, 4), np.geomspace(*ends, 4), rtol=1e-5)
    np.testing.assert_array_equal(pnp.geomspace(1, 256, 9, dtype=int), 2 ** np.arange(9))
    with pytest.raises(ShapeError, match="must not be negative"):
        pnp.linspace(0, 1, -1)


def test_matrices_and_grids() -> None:
    for options in ({}, {"M": 3}, {"k": 1}, {"M": 4, "k": -1, "dtype": "int32"}):
        np.testing.assert_array_equal(pnp.eye(3, **options), np.eye(3, **options))
        np.testing.assert_array_equal(pnp.tri(3, **options), np.tri(3, **options))
    np.testing.assert_array_equal(pnp.identity(2), np.eye(2))
    x, y = np.arange(2), np.arange(3.0)
    for options in ({}, {"indexing": "ij"}, {"sparse": True}, {"sparse": True, "indexing": "ij"}):
        for got, expected in zip(pnp.meshgrid(x, y, 5, **options), np.meshgrid(x, y, 5, **options), strict=True):
            np.testing.assert_array_equal(got, expected)
    assert pnp.meshgrid() == []
    np.testing.assert_array_equal(pnp.indices((2, 3)), np.indices((2, 3)))
    assert [i.shape for i in pnp.indices((2, 3), sparse=True)] == [(2, 1), (1, 3)]
    product = lambda i, j: i * j
    np.testing.assert_array_equal(pnp.fromfunction(product, (2, 3)), np.fromfunction(product, (2, 3)))
    for options in ({}, {"N": 2}, {"increasing": True}, {"N": 0}):
        v = np.array([2.0, 3.0, 5.0])
        np.testing.assert_array_equal(pnp.vander(v, **options), np.vander(v, **options))
    with pytest.raises(ShapeError, match='"xy" or "ij"'):
        pnp.meshgrid(x, indexing="no")
    with pytest.raises(ShapeError, match="meshgrid takes vectors"):
        pnp.meshgrid(np.ones((2, 2)))


def test_other_sources() -> None:
    np.testing.assert_array_equal(pnp.frombuffer(b"1234", "uint8", count=2, offset=1), [50, 51])
    np.testing.assert_array_equal(pnp.fromiter((i * i for i in range(3)), int), [0, 1, 4])
    np.testing.assert_array_equal(pnp.from_dlpack(np.arange(3.0)), [0, 1, 2])
    assert pnp.from_dlpack(np.arange(3.0)).dtype == np.float32
    np.testing.assert_array_equal(pnp.astype(pnp.array([1.7, np.nan, 1e20]), int), [1, 0, 2**31 - 1])
    np.testing.assert_array_equal(pnp.astype(pnp.array([0.5, 0.0]), bool), [True, False])
    assert pnp.astype(pnp.arange(2), None).dtype == np.float32


def test_scalar_types_make_arrays_and_stand_for_dtypes() -> None:
    x: Any = pnp.float32([1, 2])
    assert kind(x) == "float32"
    assert (pnp.float32(1).dtype, pnp.int8(5).dtype, pnp.bool_(2).dtype) == (np.float32, np.int8, np.bool_)
    with pytest.warns(DtypeTruncationWarning):
        assert pnp.float64(1).dtype == np.float32
    assert np.dtype(pnp.float32) == pnp.float32 == np.dtype("float32")
    assert hash(pnp.float32) == hash(np.float32)
    assert pnp.float32 != pnp.float64
    assert x.astype(pnp.bfloat16).dtype == pnp.bfloat16 == ml_dtypes.bfloat16
    assert np.zeros(2, pnp.complex64).dtype == np.complex64
    assert pnp.issubdtype(pnp.float32, pnp.floating)
    assert not pnp.issubdtype(pnp.int4, pnp.inexact)
    assert pnp.result_type(pnp.int8, 1.0) == np.float32
    assert repr(pnp.float32) == "pullback.numpy.float32"
    assert pnp.finfo(pnp.float16).bits == 16
    assert pnp.iinfo(pnp.int8).max == 127
    assert pnp.can_cast(pnp.int8, pnp.int16)
    assert isinstance(x, pnp.ndarray)
    with pytest.raises(OverflowError, match="300"):
        pnp.int8(300)


def test_shapes_of_values() -> None:
    x = pnp.ones((2, 3))
    assert (pnp.shape(x), pnp.ndim(x), pnp.size(x), pnp.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert (pnp.shape([[1, 2]]), pnp.ndim(1.0), pnp.size(())) == ((1, 2), 0, 0)
    assert (pnp.isscalar(1), pnp.isscalar(pnp.float32(1)), pnp.isscalar(x)) == (True, True, False)
    assert (pnp.iterable(x), pnp.iterable(x[0, 0])) == (True, False)
    with pytest.raises(OperandError):
        pnp.shape("a")
