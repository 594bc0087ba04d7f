"""``x.view(dtype)``: the same bits as NumPy's, along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import enable_x64, grad, jit, vmap
from pullback.errors import ConcretizationTypeError
from tests.helpers import chosen, spread

NATIVE = [
    "bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32", "int64", "uint64", "float64",
    "complex64", "complex128",
]  # fmt: skip
SHAPES = [(16,), (3, 16), (0, 16), (2, 3, 5)]


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    numbers = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, shape)
    return (numbers * 1.5).astype(dtype) if dtype[0] in "fc" else numbers.astype(dtype)


@pytest.mark.parametrize("old", NATIVE)
@pytest.mark.parametrize("new", NATIVE)
def test_it_is_that_of_numpy(old: str, new: str) -> None:
    with enable_x64():
        for shape in SHAPES:
            x = sample(shape, old)
            try:
                expected = x.view(new)
            except ValueError:
                with pytest.raises(ValueError, match="does not divide"):
                    jnp.asarray(x).view(new)
                continue
            if new == "bool":
                expected = expected.view("uint8") != 0
            ways = {"eager": lambda x: x.view(new), "jit": jit(lambda x: x.view(new))}
            for way in spread(list(ways), NATIVE.index(old) + NATIVE.index(new), chosen(1, 2)):
                found = ways[way](jnp.asarray(x))
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(np.asarray(found), expected, err_msg=f"{shape} {way}")


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_narrow_integers_lie_beside_each_other(dtype: str) -> None:
    bits = int(dtype[-1])
    for f in (lambda x, d: x.view(d), lambda x, d: jit(lambda x: x.view(d))(x)):
        x = jnp.array([0b11100100, 0b00011011, 255, 0], "uint8")
        narrow = f(x, dtype)
        assert (narrow.dtype.name, narrow.shape) == (dtype, (32 // bits,))
        np.testing.assert_array_equal(f(narrow, "uint8"), x)
        lowest = int(x[0]) & (2**bits - 1)
        assert int(narrow[0]) == (lowest if dtype[0] == "u" or lowest < 2 ** (bits - 1) else lowest - 2**bits)
        np.testing.assert_array_equal(f(f(narrow, "float16"), dtype), narrow)


def test_numbers_without_axes_and_the_same_dtype() -> None:
    x = jnp.float32(1.5)
    assert x.view("float32") is x
    assert x.view() is x
    assert x.view("int32").shape == ()
    assert int(x.view("int32")) == np.float32(1.5).view("int32")
    for new in ("uint8", "complex64"):
        with pytest.raises(ValueError, match="scalar array takes a dtype of the same width"):
            x.view(new)
    with enable_x64():
        assert complex(jnp.complex64(1 + 2j).view("int64").view("complex64")) == 1 + 2j
    with pytest.raises(TypeError, match="key_data"):
        pullback.random.key(0).view("uint32")


def test_parts_of_complex_numbers_have_derivatives() -> None:
    z = jnp.array([1 + 2j, 3 - 1j])
    f = lambda z: (z.view("float32") ** 2).sum()
    np.testing.assert_allclose(grad(f)(z), 2 * np.conj(z))
    x = jnp.array([1.0, 2.0, 3.0, -1.0])
    back = lambda x: jnp.sum(jnp.abs(x.view("complex64")) ** 2)
    np.testing.assert_allclose(grad(back)(x), 2 * x)
    np.testing.assert_allclose(vmap(grad(back))(x[None])[0], 2 * x)
    with pytest.raises(TypeError, match="the derivative would be lost"):
        grad(lambda x: x.view("float16").sum())(x)


def test_what_libraries_do_with_it() -> None:
    """zarr compares the bytes of arrays."""
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(x.view("uint8")), np.asarray(x).view("uint8"))
    with pytest.raises(ConcretizationTypeError):
        grad(lambda x: float(x.view(x.dtype)[0, 0]))(x)
