"""Convolutions by products of matrices: values against sums of products, whatever the threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pullback import grad, lax
from pullback.backends.host import blas, convolutions, own
from pullback.primitives.signals import convolution

pytestmark = pytest.mark.skipif(own.loops is None or not blas.is_ready(), reason="the module in C does not multiply")


@pytest.fixture(autouse=True)
def _on_three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolutions, "cores", lambda: 3)
    monkeypatch.setattr(convolutions, "_SHARE", 1)


def _expected(x: Any, kernel: Any, geometry: Any) -> Any:
    """Sum products in double precision, by the definition; the features are last."""
    counts, sizes = ([axis[i] for axis in geometry] for i in (0, 1))
    out = np.zeros((len(x), *counts, kernel.shape[-1]))
    for element in itertools.product(*map(range, sizes)):
        for window in itertools.product(*map(range, counts)):
            at = [w * stride - low + k * step for w, k, (_, _, stride, low, step) in zip(window, element, geometry)]
            if all(0 <= p < n for p, n in zip(at, x.shape[1:-1])):
                out[(slice(None), *window)] += x[(slice(None), *at)] @ kernel[element]
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(30))
def test_convolutions_of_any_geometry(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    ndim = 1 + seed % 3
    geometry, space = [], []
    for _ in range(ndim):
        n, size, stride, step = int(rng.integers(1, 9)), *map(int, rng.integers(1, 4, 3))
        low, high = int(rng.integers(-1, 4)), int(rng.integers(0, 4))
        count = (n + low + high - (1 + (size - 1) * step)) // stride + 1
        geometry.append((max(count, 1), size, stride, low, step))
        space.append(n)
    batch, features, results = map(int, rng.integers(1, 6, 3))
    x = rng.normal(size=(batch, *space, features)).astype(dtype)
    kernel = rng.normal(size=(*[size for _, size, *_ in geometry], features, results)).astype(dtype)
    expected = _expected(x, kernel, geometry)
    orders = [rng.permutation(ndim + 2).tolist() for _ in range(3)]
    put = lambda v, order: np.ascontiguousarray(v.transpose(np.argsort(order)))
    out = convolutions.convolved(put(x, orders[0]), put(kernel, orders[1]), geometry, orders)
    np.testing.assert_allclose(
        out.transpose(orders[2]), expected, *((1e-4, 1e-5) if dtype == np.float32 else (1e-11, 1e-12))
    )


@pytest.mark.parametrize("shape", [(3, 40, 30, 5, 7), (2, 9, 8, 1, 3), (1, 64, 64, 16, 16)])
def test_the_same_bits_on_any_number_of_threads(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n, high, wide, c, f = shape
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(n, high, wide, c)).astype("f"), rng.normal(size=(3, 3, c, f)).astype("f")
    weights = rng.normal(size=(n, high, wide, f)).astype("f")
    call = lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    both = lambda: (call(x, kernel), *grad(lambda x, k: (call(x, k) * weights).sum(), (0, 1))(x, kernel))
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(convolutions, "cores", lambda threads=threads: threads)
        found.append([np.asarray(v) for v in both()])
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("strides", "padding", "steps"),
    [((1, 1), "SAME", (1, 1)), ((2, 1), "VALID", (1, 2)), ((1, 2), [(2, 1), (0, 3)], (2, 1))],
)
def test_gradients_are_those_of_the_compiler(
    strides: Any, padding: Any, steps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    x, kernel = rng.normal(size=(2, 9, 7, 3)).astype("f"), rng.normal(size=(3, 2, 3, 4)).astype("f")
    options = {"rhs_dilation": steps, "dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    f = lambda x, k: (lax.conv_general_dilated(x, k, strides, padding, **options) ** 2).sum()
    calls = []
    with monkeypatch.context() as patch:
        real = convolution.compiled
        patch.setattr(convolution, "compiled", lambda *a: calls.append(a) or real(*a))
        ours = grad(f, (0, 1))(x, kernel)
        assert len(calls) == (strides != (1, 1))  # the operand's cotangent is dilated by the strides
    monkeypatch.setattr(convolution.host, "convolved", lambda *a: None)
    for a, b in zip(ours, grad(f, (0, 1))(x, kernel), strict=True):
        np.testing.assert_allclose(a, b, 2e-5, 2e-4)


def test_other_arrays_are_left_to_the_compiler() -> None:
    x, kernel, geometry = np.zeros((1, 4, 2), "f"), np.zeros((3, 2, 2), "f"), ((2, 3, 1, 0, 1),)
    out = np.empty((1, 2, 2), "f")
    for given in (
        (x.astype("d"), kernel, out, geometry), (x[:, ::2], kernel, out, geometry), (x, kernel, out, ()),
        (x, kernel[:2], out, geometry), (x, kernel, out[:0], geometry), (x.astype("i"), kernel, out, geometry),
        (x, kernel, out, ((0, 3, 1, 0, 1),)), (x[0], kernel, out, geometry),
    ):  # fmt: skip
        assert not own.loops.convolve(*given, False, 0)
    assert own.loops.convolve(x, kernel, out, geometry, False, 0)
    assert convolutions.convolved(x[:0], kernel, geometry, ((0, 1, 2), (0, 1, 2), (0, 1, 2))) is None
