"""Convolutions in groups are those of each group by itself, in NumPy's doubles."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, lax, vjp
from pullback.core import dtypes

RNG = np.random.default_rng(0)
CASES: dict[str, dict[str, Any]] = {
    "each feature": {"features": 4},
    "two kernels each": {"features": 3, "kernels": 2},
    "two features": {"features": 3, "inner": 2, "kernels": 2},
    "strides": {"features": 4, "window_strides": (2, 3)},
    "dilations": {"features": 4, "lhs_dilation": (2, 1), "rhs_dilation": (1, 2)},
    "less than nothing around": {"features": 4, "padding": ((-1, 2), (1, -1))},
    "many features": {"features": 2, "inner": 9},
    "batch": {"batches": 3, "window_strides": (2, 2), "padding": ((1, 1), (1, 1))},
    "batch, several each": {"batches": 2, "members": 2, "kernels": 3, "rhs_dilation": (2, 1)},
    "batch, dilated": {"batches": 3, "members": 2, "lhs_dilation": (1, 2), "window_strides": (4, 4)},
}
ORDERS = (("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("CHNW", "HOWI", "HNWC"))


def operands(
    features: int = 1, batches: int = 1, inner: int = 1, kernels: int = 1, members: int = 1, **geometry: Any
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]]:
    """Return an operand (N, C, H, W), a kernel (O, I, H, W), and the parameters."""
    channels = features * inner if batches == 1 else 2
    x = RNG.standard_normal((2 if batches == 1 else batches * members, channels, 7, 6))
    w = RNG.standard_normal((max(features, batches) * kernels, inner if batches == 1 else 2, 3, 2))
    given = {
        "window_strides": (1, 1),
        "padding": ((1, 1), (0, 1)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
    } | geometry
    return x, w, {**given, **geometry, "feature_group_count": features, "batch_group_count": batches}


def plain(x: Any, w: Any, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any) -> Any:
    """Convolve without groups, by the definition."""
    sizes = [(n - 1) * d + 1 for n, d in zip(x.shape[2:], lhs_dilation, strict=True)]
    wide = np.zeros((*x.shape[:2], *sizes), x.dtype)
    wide[:, :, :: lhs_dilation[0], :: lhs_dilation[1]] = x
    wide = np.pad(wide, [(0, 0), (0, 0), *[(max(low, 0), max(high, 0)) for low, high in padding]])
    for axis, (low, high) in enumerate(padding, 2):
        wide = wide.take(range(max(-low, 0), wide.shape[axis] - max(-high, 0)), axis)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], rhs_dilation, strict=True)]
    counts = [(n - r) // s + 1 for n, r, s in zip(wide.shape[2:], reach, window_strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *counts), np.result_type(x, w))
    for a, b in itertools.product(*map(range, counts)):
        begin = a * window_strides[0], b * window_strides[1]
        slices = [slice(p, p + r, d) for p, r, d in zip(begin, reach, rhs_dilation, strict=True)]
        out[:, :, a, b] = np.einsum("nchw,ochw->no", wide[:, :, slices[0], slices[1]], w)
    return out


def expected(x: Any, w: Any, feature_group_count: int, batch_group_count: int, **geometry: Any) -> Any:
    groups, axis = max(feature_group_count, batch_group_count), 1 if batch_group_count == 1 else 0
    parts = zip(np.split(x, groups, axis), np.split(w, groups, 0), strict=True)
    return np.concatenate([plain(a, b, **geometry) for a, b in parts], 1)


def in_order(x: Any, order: str, names: str) -> Any:
    return x.transpose([names.index(letter) for letter in order])


@pytest.mark.parametrize("orders", ORDERS, ids=lambda orders: orders[0])
@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_each_group(case: str, orders: tuple[str, str, str]) -> None:
    x, w, params = operands(**CASES[case])
    given = [in_order(v, o, names) for v, o, names in zip((x, w), orders, ("NCHW", "OIHW"), strict=False)]
    found = lax.conv_general_dilated(*map(jnp.float32, given), dimension_numbers=orders, **params)
    right = in_order(expected(x, w, **params), orders[2], "NCHW")
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int16", "bool", "complex64"])
@pytest.mark.parametrize("case", ["two features", "batch, several each"])
def test_other_dtypes(case: str, dtype: str) -> None:
    x, w, params = operands(**CASES[case])
    x, w = (np.rint(3 * v).astype(int) for v in (x, w))
    if dtype == "bool":
        x, w = x > 0, w > 0
    elif dtype == "complex64":
        x, w = x + 2j * x[::-1], w - 1j * w[::-1]
    found = lax.conv_general_dilated(jnp.asarray(x, dtype), jnp.asarray(w, dtype), **params)
    right = expected(x.astype(complex), w.astype(complex), **params)
    right = right.real > 0 if dtype == "bool" else right if dtype == "complex64" else right.real
    assert found.dtype == jnp.dtype(dtype)
    error = dtypes.finfo(dtype).eps if "float" in dtype else 0
    np.testing.assert_allclose(np.asarray(found).astype(right.dtype), right, rtol=2 * error + 1e-6)


@pytest.mark.parametrize("case", ["two kernels each", "two features", "strides", "dilations", "batch, several each"])
def test_derivatives_are_those_of_each_group(case: str) -> None:
    """By each operand they are linear in the other: compared by scalar products."""
    x, w, params = operands(**CASES[case])
    f = lambda x, w: lax.conv_general_dilated(x, w, **params)
    given = tuple(map(jnp.float32, (x, w)))
    out, pull = vjp(f, *given)
    ct = RNG.standard_normal(out.shape)
    dx, dw = jit(pull)(jnp.float32(ct))
    tx, tw = RNG.standard_normal(x.shape), RNG.standard_normal(w.shape)
    np.testing.assert_allclose(np.vdot(dx, tx), np.vdot(ct, expected(tx, w, **params)), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(np.vdot(dw, tw), np.vdot(ct, expected(x, tw, **params)), rtol=1e-3, atol=1e-3)


def test_the_way_is_selected_by_sizes() -> None:
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=x.shape[1])
    text = lambda n: jit(f).lower(jnp.ones((1, 4, 9, 9)), jnp.ones((4, 1, n, n))).as_text()
    assert "stablehlo.convolution" not in text(8)
    assert "stablehlo.convolution" in text(9)


@pytest.mark.parametrize(("inner", "is_convolution"), [(1, True), (2, False)])
def test_derivatives_by_kernels_of_single_features_stay_convolutions(inner: int, is_convolution: bool) -> None:
    x, w = jnp.ones((2, 4 * inner, 9, 9)), jnp.ones((4, inner, 3, 3))
    f = lambda w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4)
    out, pull = vjp(f, w)
    assert ("stablehlo.convolution" in jit(pull).lower(out).as_text()) is is_convolution
