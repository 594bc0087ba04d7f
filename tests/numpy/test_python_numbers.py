"""A Python number never changes the dtype of an inexact array, whatever the dtype and the function."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, jit, nn
from pullback.scipy.special import logsumexp

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
