"""A Python number never changes the dtype of an inexact array, whatever the dtype and the function."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, jit, lax, nn, vmap
from pullback.scipy.special import logsumexp
from pullback.test_util import check_grads

NARROW = [name for name in dir(ml_dtypes) if name.startswith(("float8_", "bfloat16"))]
DTYPES = [*NARROW, "float16", "float32", "float64", "complex64", "complex128"]
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
FUNCTIONS = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "floor_divide",
    "remainder",
    "mod",
    "fmod",
    "power",
    "float_power",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "copysign",
    "heaviside",
    "nextafter",
]
OTHERS: dict[str, Callable[[Any], Any]] = {
    "where": lambda x: jnp.where(x == x, x, 0.5), "where, left": lambda x: jnp.where(x == x, 0.5, x),
    "select": lambda x: jnp.select([x == x], [x], 0.5), "pad": lambda x: jnp.pad(x, 1, constant_values=1.5),
    "clip": lambda x: jnp.clip(x, 0.5, 1.5), "full_like": lambda x: jnp.full_like(x, 1.5),
    "at.add": lambda x: x.at[0].add(1.5), "at.set": lambda x: x.at[0].set(1), "trapezoid": jnp.trapezoid,
    "logsumexp": logsumexp, "nn.logsumexp": nn.logsumexp, "gelu": nn.gelu, "silu": nn.silu, "softmax": nn.softmax,
    "leaky_relu": nn.leaky_relu, "elu": nn.elu, "softplus": nn.softplus, "sigmoid": nn.sigmoid,
    "an element": lambda x: x[0] + 1.5,
}  # fmt: skip
CALLS: dict[str, Callable[[Any], Any]] = {
    **{f"x {n} 1.5": lambda x, n=n: getattr(operator, n)(x, 1.5) for n in BINARY},
    **{f"1.5 {n} x": lambda x, n=n: getattr(operator, n)(1.5, x) for n in BINARY},
    **{f"x {n} 2": lambda x, n=n: getattr(operator, n)(x, 2) for n in BINARY},
    **{f"{n}(x, 1.5)": lambda x, n=n: getattr(jnp, n)(x, 1.5) for n in FUNCTIONS if n != "float_power"},
    **{f"{n}(2, x)": lambda x, n=n: getattr(jnp, n)(2, x) for n in FUNCTIONS if n != "float_power"},
    **OTHERS,
}
OF_REALS = [
    "mod",
    "floordiv",
    "floor_divide",
    "remainder",
    "fmod",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "logaddexp2",
    "copysign",
    "heaviside",
    "nextafter",
    "clip",
    "gelu",
    "leaky_relu",
    "elu",
    "softplus",
]
"""What complex numbers have not, or not all of them."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_a_python_number_gives_way(name: str, dtype: str) -> None:
    with enable_x64(dtype in ("float64", "complex128")):
        x = jnp.array([1.0, 0.5]).astype(dtype)
        if dtype.startswith("complex") and any(n in name for n in OF_REALS):
            return
        assert CALLS[name](x).dtype == x.dtype
        if name in ("x add 1.5", "where", "gelu"):
            assert jit(CALLS[name])(x).dtype == x.dtype


@pytest.mark.parametrize("dtype", [name for name in NARROW if name != "float8_e8m0fnu"])  # which rounds 1.5 itself
def test_the_values_are_those_of_single_precision_rounded(dtype: str) -> None:
    x = jnp.array([1.0, 0.5, -2.0]).astype(dtype)
    wide = np.asarray(x, "float32")
    for found, expected in ((x + 1.5, wide + 1.5), (2.0 * x, 2.0 * wide), (x - 1, wide - 1), (1.5 / x, 1.5 / wide)):
        np.testing.assert_array_equal(np.asarray(found, "float32"), expected.astype(dtype).astype("float32"))


@pytest.mark.parametrize("dtype", [*NARROW, "float16"])
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "ihfft", "hfft", "fft2", "rfftn"])
def test_fourier_transforms_of_narrow_types_are_of_single_precision(name: str, dtype: str) -> None:
    x = jnp.array([[1.0, 0.5, 2.0], [1.0, 4.0, 1.0]]).astype(dtype)
    f = getattr(jnp.fft, name)
    np.testing.assert_array_equal(f(x), f(x.astype("float32")))


def test_interpolation_has_the_dtype_of_all_that_has_one() -> None:
    wide, narrow = jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 1.0, 2.0]).astype("bfloat16")
    assert jnp.interp(1.2, wide, narrow).dtype == "float32"
    assert jnp.interp(1.2, narrow, wide).dtype == "float32"
    assert jnp.interp(1.2, narrow, narrow).dtype == "bfloat16"
    assert jnp.interp(jnp.float32(1.2), narrow, narrow).dtype == "float32"


@pytest.mark.parametrize("reverse", [False, True])
def test_cumlogsumexp_of_complex_numbers(reverse: bool) -> None:
    with enable_x64():
        x = np.random.default_rng(0).normal(size=(3, 4, 2)).view(complex)[..., 0]
        turned = lambda x: np.flip(x, 1) if reverse else x
        expected = turned(np.log(np.cumsum(np.exp(turned(x)), 1)))
        f = lambda x: lax.cumlogsumexp(x, 1, reverse)
        for found in (f(x), jit(f)(x), vmap(lambda x: lax.cumlogsumexp(x, 0, reverse))(x)):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
        check_grads(f, (x,), order=2)
        far = jnp.array([1 + 1j, -jnp.inf, 800 + 1j, -800])
        np.testing.assert_allclose(lax.cumlogsumexp(far), [1 + 1j, 1 + 1j, 800 + 1j, 800 + 1j])
        assert lax.cumlogsumexp(jnp.array([-jnp.inf + 0j]))[0].real == -np.inf
