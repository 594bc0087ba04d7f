"""Rules of the host that take another way for many elements: the same numbers as for few, also at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.host import rules

INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)


@pytest.fixture(params=[1, 10**9], ids=["many", "few"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_MANY_CHOICES", request.param)


def edges(dtype: Any) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    small = [0, 1, 2, 7] + ([-1, -2, -7] if info.min < 0 else [])
    drawn = np.random.default_rng(0).integers(info.min, info.max, 300, dtype=dtype)
    return np.concatenate([np.array([info.min, info.min + 1, info.max, info.max - 1, *small], dtype), drawn])


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_of_integers(dtype: Any) -> None:
    x, y = (v.reshape(-1) for v in np.meshgrid(edges(dtype), edges(dtype)))
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        quotient, rest = rules.div(x, y), rules.rem(x, y)
        by_number = rules.div(x, dtype(7)), rules.rem(x, dtype(7))
    assert quotient.dtype == rest.dtype == dtype
    for i in range(0, len(x), 7):
        a, b = int(x[i]), int(y[i])
        cut = -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        wrapped = (cut - info.min) % (1 << 8 * x.itemsize) + info.min
        assert int(quotient[i]) == wrapped
        assert int(rest[i]) == (a if b == 0 else a - b * cut)
        assert int(by_number[0][i]) == abs(a) // 7 * (1 if a >= 0 else -1)
        assert int(by_number[1][i]) == abs(a) % 7 * (1 if a >= 0 else -1)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_signs_of_floats(dtype: Any) -> None:
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 6e-8, -6e-8, 3, -3], dtype)
    out = rules.sign(x)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, [0, 0, np.nan, 1, -1, 1, -1, 1, -1])
    np.testing.assert_array_equal(np.signbit(out)[[0, 1, 3, 4]], [False, True, False, True])


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "complex64", "complex128", "int8", "bool", "uint32"]
)
@pytest.mark.parametrize(
    "shapes", [((100, 50), (100, 50)), ((100, 50), ()), ((), (100, 50)), ((50,), (100, 1)), ((), ())]
)
def test_choices_among_many_elements(dtype: str, shapes: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(1)
    which = rng.integers(0, 2, (100, 50)).astype(bool)
    x, y = (rng.uniform(0, 9, shape).astype(dtype)[()] for shape in shapes)
    if dtype == "float32" and np.ndim(x):
        x.flat[:3] = np.nan, -0.0, np.inf
    out = rules.select(which, x, y)
    assert out.dtype == dtype
    assert out.tobytes() == np.where(which, x, y).tobytes()


@pytest.mark.usefixtures("many")
def test_floats_that_no_integer_holds() -> None:
    x = np.array([1e30, -1e30, np.nan, np.inf, 2.9, -2.9, 2147483648.0], np.float32)
    with np.errstate(all="ignore"):
        out, inside = (rules.convert(v, new_dtype=np.dtype(np.int32)) for v in (x, x[4:6]))
    high, low = 2**31 - 1, -(2**31)
    np.testing.assert_array_equal(out, [high, low, 0, high, 2, -2, high])
    np.testing.assert_array_equal(inside, [2, -2])


@pytest.mark.parametrize("size", [100, 1 << 15, 600_000])
def test_casts_to_bfloat16_and_back_have_the_bits_of_numpys(size: int) -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, size, np.uint32)
    bits[:8] = 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x7F800000, 0x80000000, 1, 0x00018000, 0x00008000
    singles, narrow = bits.view(np.float32), bits.astype(np.uint16).view("bfloat16")
    for x, dtype in ((singles, narrow.dtype), (narrow, singles.dtype), (singles[::2], narrow.dtype)):
        with np.errstate(invalid="ignore"):
            expected = x.astype(dtype)
            got = rules.convert(x, new_dtype=dtype)
        assert got.dtype == dtype
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(1 << 12,), (70, 61), (5, 33, 31), (1 << 19,)])
def test_products_of_many_complex_numbers(shape: tuple[int, ...], dtype: Any) -> None:
    """Each component is rounded as written, the same in each place."""
    rng = np.random.default_rng(0)
    x, y = ((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype) for _ in range(2))
    x.flat[:4], y.flat[:4] = [np.inf, np.nan, -0.0, 1j * np.inf], [2, 1, -1j, 1j]
    with np.errstate(all="ignore"):
        real, imaginary = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
        if rules.own.loops is not None:
            found = rules.mul(x, y)
            assert (found.shape, found.dtype) == (shape, dtype)
            np.testing.assert_array_equal(found.real, real)
            np.testing.assert_array_equal(found.imag, imaginary)
            assert found.tobytes() == rules.mul(x, y).tobytes()
        for a, b in ((x.T, y.T), (x, y.real), (x[::2], y[::2]), (x, 2.0), (2j, x), (x[:10], y[:10])):
            np.testing.assert_allclose(rules.mul(a, b), a * b, rtol=8 * np.finfo(dtype).eps)
