"""What the docstrings of declared functions say of dtypes is what the functions do."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import nn
from pullback.core.errors import DtypeError

VALUES = {"bool": True, "int32": 3, "float32": 0.5, "complex64": 0.5 + 0.1j}
KINDS = {
    "numbers": {"int32", "float32", "complex64"},
    "numbers or booleans": set(VALUES),
    "real numbers or booleans": {"bool", "int32", "float32"},
    "integers or booleans": {"bool", "int32"},
    "floats": {"float32"},
    "floats or complex numbers": {"float32", "complex64"},
}
"""The dtypes that the words of a docstring stand for."""
OPERANDS = re.compile(
    r"^  (x|x, y): (?:an array|arrays) of (.*?), or (?:a Python number|Python numbers)\b", re.MULTILINE
)


def documented() -> dict[str, tuple[Any, int, set[str]]]:
    """The functions whose operands are described so, with how many these are, and the dtypes that are taken."""
    found = {}
    for name in dir(jnp):
        doc = inspect.getdoc(getattr(jnp, name)) or ""
        operands = OPERANDS.search(doc)
        if operands is not None and operands[2] in KINDS:
            converted = {"bool", "int32"} if "Integers and booleans become floats" in doc else set[str]()
            found[name] = getattr(jnp, name), operands[1].count(",") + 1, KINDS[operands[2]] | converted
    return found


FUNCTIONS = documented()


def test_there_are_many() -> None:
    assert len(FUNCTIONS) > 50
    assert {"sin", "add", "less", "floor", "isposinf", "deg2rad", "logical_and", "true_divide"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_say_which_dtypes_are_accepted_and_returned(name: str) -> None:
    function, count, taken = FUNCTIONS[name]
    doc = inspect.getdoc(function) or ""
    for dtype, value in VALUES.items():
        operands = [jnp.full((2,), value, dtype)] * count
        if dtype not in taken:
            assert "DtypeError" in doc
            with pytest.raises(DtypeError):
                function(*operands)
            continue
        out = function(*operands)
        assert out.shape == (2,)
        if "An array of booleans" in doc:
            assert out.dtype == bool
        elif "An array of floats or complex numbers" in doc:
            assert np.issubdtype(out.dtype, np.inexact)
        elif "An array of floats" in doc:
            assert out.dtype == np.float32


# Functions that are few calls of NumPy's on small arrays --------------------------------------------------------------

EDGES = [0.0, -0.0, 1.0, -1.0, 0.3, -0.3, 3e4, -3e4, 1e-7, -1e-7, np.inf, -np.inf, np.nan]
QUICK: dict[str, Any] = {
    "sign": jnp.sign, "relu": nn.relu, "leaky_relu": nn.leaky_relu, "elu": nn.elu, "softplus": nn.softplus,
    "leaky_relu, -0.0": lambda x: nn.leaky_relu(x, -0.0), "leaky_relu, 0.0": lambda x: nn.leaky_relu(x, 0.0),
    "leaky_relu, nan": lambda x: nn.leaky_relu(x, float("nan")), "elu, 0.3": lambda x: nn.elu(x, 0.3),
    "clip": lambda x: jnp.clip(x, -0.5, 0.5), "clip, zeros": lambda x: jnp.clip(x, -0.0, 0.0),
    "clip, crossed": lambda x: jnp.clip(x, 1.0, -1.0), "clip, nan": lambda x: jnp.clip(x, float("nan"), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", QUICK)
def test_quick_functions_have_the_bits_of_their_operations(name: str, dtype: Any) -> None:
    """Under ``vmap`` they are operations; of one number, of few, of many, and of many whose elements are pending."""
    f = QUICK[name]
    few = np.array(EDGES, np.float32).astype(dtype)
    with pullback.enable_x64(dtype == np.float64), np.errstate(all="ignore"):
        for x in (few, few[:12].reshape(3, 4)[:, ::2], few[:0], np.tile(few, 300)):
            found, expected = f(jnp.asarray(x)), pullback.vmap(f)(jnp.asarray(x))
            assert (found.dtype, found.shape, found.weak_type) == (x.dtype, x.shape, expected.weak_type)
            if name == "softplus":  # NumPy's logaddexp of few numbers has another formula
                np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
            else:
                np.testing.assert_array_equal(found, expected)
                finite = np.isfinite(x)
                np.testing.assert_array_equal(np.signbit(found)[finite], np.signbit(expected)[finite])
        for number in few:
            np.testing.assert_array_equal(f(jnp.asarray(number)), f(jnp.asarray([number]))[0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_floors_of_quotients_of_few_integers(dtype: Any) -> None:
    info = np.iinfo(dtype)
    edges = np.array([0, 1, 2, 3, 7, 100, info.max, info.min, info.min + 1, info.max - 1, -1 if info.min else 5], dtype)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges[edges != 0]))
    expected = [int(a) // int(b) for a, b in zip(x, y, strict=True)]
    expected = [info.min if q > info.max else q for q in expected]  # the least integer by -1 wraps
    with pullback.enable_x64(dtype == np.int64):
        found = np.asarray(jnp.asarray(x) // jnp.asarray(y))
        np.testing.assert_array_equal(found, np.array(expected, dtype))
        by_zero = jnp.asarray(edges) // jnp.zeros(edges.shape, dtype)
        np.testing.assert_array_equal(by_zero, pullback.vmap(jnp.floor_divide)(edges, np.zeros_like(edges)))


def test_triangles_of_few_elements() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4) - 5
    x[0, 0] = np.nan
    for k in (-5, -1, 0, 2, 9):
        np.testing.assert_array_equal(jnp.tril(x, k), np.tril(x, k))
        np.testing.assert_array_equal(jnp.triu(jnp.asarray(x), k), np.triu(x, k))
        np.testing.assert_array_equal(jnp.tril(x, k), pullback.vmap(lambda m, k=k: jnp.tril(m, k))(x))


def test_widths_that_are_one_number() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    for width, value in ((1, 0), (2, 0.5), (0, 0), (3, -1)):
        np.testing.assert_array_equal(jnp.pad(x, width, constant_values=value), np.pad(x, width, constant_values=value))
    assert jnp.pad(jnp.ones((2,), np.int8), 1).dtype == np.int8
