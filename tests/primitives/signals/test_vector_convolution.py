"""Convolutions along one axis, eager and compiled, are sums of NumPy's correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, grad, jit, jvp, lax, vmap
from pullback.primitives.signals import vector_convolution

RNG = np.random.default_rng(0)
CASES: dict[str, dict[str, Any]] = {
    "vectors": {},
    "a kernel of one element": {"m": 1},
    "many elements of a kernel": {"n": 190, "m": 70, "padding": (30, 5)},
    "a whole number of turns": {"n": 199, "m": 72},
    "more elements than positions": {"n": 90, "m": 70, "padding": (30, 5)},
    "a long kernel": {"n": 40, "m": 37},
    "a long kernel, in whole rows": {"n": 70, "m": 64},
    "a kernel as long as the operand": {"n": 40, "m": 40},
    "fewer elements": {"padding": (-2, -3)},
    "fewer at one end": {"padding": (-2, 4)},
    "all sums": {"padding": (4, 4)},
    "the operand is shorter": {"n": 5, "m": 30, "padding": (29, 29)},
    "a batch": {"batch": 3},
    "many short vectors": {"batch": 40, "padding": (1, 2)},
    "a batch, long kernels": {"batch": 3, "n": 40, "m": 30},
    "groups": {"features": 4, "batch": 2},
    "groups, long kernels": {"features": 3, "batch": 2, "n": 80, "m": 70},
    "a group of kernels": {"kernels": 3},
    "features that are summed": {"inner": 3},
    "features that are summed, long kernels": {"inner": 3, "n": 40, "m": 30},
    "groups of the batch": {"batches": 3},
    "groups of the batch, two each": {"batches": 3, "batch": 2, "n": 80, "m": 70},
    "groups of the batch, summed": {"batches": 3, "inner": 2, "n": 40, "m": 30},
    "features and kernels": {"inner": 2, "kernels": 3},
}
ORDERS = (("NCW", "OIW", "NCW"), ("NWC", "WIO", "WNC"), ("WCN", "IOW", "CNW"))


def case(
    n: int = 24, m: int = 5, batch: int = 1, features: int = 1, inner: int = 1, kernels: int = 1, batches: int = 1,
    padding: tuple[int, int] = (0, 0), dtype: str = "d",
) -> tuple[Any, Any, dict[str, Any]]:  # fmt: skip
    """Return an operand (N, C, W), a kernel (O, I, W), and the parameters."""

    def draw(*shape: int) -> Any:
        x = RNG.standard_normal(shape)
        return (x + 1j * RNG.standard_normal(shape) if dtype in "FD" else 4 * x if dtype == "i" else x).astype(dtype)

    x = draw(batch * batches, features * inner, n)
    w = draw(features * batches * kernels, inner, m)
    return x, w, {
        "window_strides": (1,), "padding": (padding,), "feature_group_count": features, "batch_group_count": batches,
    }  # fmt: skip


def plain(x: Any, w: Any, padding: Any, feature_group_count: int, batch_group_count: int, **_: Any) -> Any:
    """Convolve vectors one by one, of each pair of features."""
    ((low, high),) = padding
    x = np.pad(x, [(0, 0), (0, 0), (max(low, 0), max(high, 0))])[..., max(-low, 0) :]
    x = x[..., : x.shape[2] - max(-high, 0)]
    n, kernels = x.shape[0] // batch_group_count, w.shape[0] // (feature_group_count * batch_group_count)
    out = np.zeros((n, w.shape[0], x.shape[2] - w.shape[2] + 1), x.dtype)
    for o in range(w.shape[0]):
        group = o // kernels
        first, start = (group * w.shape[1], 0) if batch_group_count == 1 else (0, group * n)
        for i in range(n):
            for c in range(w.shape[1]):
                out[i, o] += np.correlate(x[start + i, first + c], w[o, c].conj(), "valid")
    return out


def in_order(x: Any, own: str, order: str) -> Any:
    """Transpose axes that are named in the order of ``own``."""
    return x.transpose([own.index(a) for a in order])


@pytest.mark.parametrize("order", ORDERS, ids=map("".join, ORDERS))
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, order: tuple[str, str, str]) -> None:
    x, w, params = case(**CASES[name])
    expected = in_order(plain(x, w, **params), "NCW", order[2])
    convolve = lambda x, w: lax.conv_general_dilated(x, w, **params, dimension_numbers=order)
    with enable_x64(True):
        args = [jnp.asarray(in_order(v, own, o)) for v, own, o in zip((x, w), ("NCW", "OIW"), order[:2], strict=True)]
        for found in (convolve(*args), jit(convolve)(*args)):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", "fFDi")
@pytest.mark.parametrize(
    "name", ["vectors", "many elements of a kernel", "a long kernel", "groups", "many short vectors"]
)
def test_dtypes(name: str, dtype: str) -> None:
    x, w, params = case(**CASES[name], dtype=dtype)
    convolve = lambda x, w: lax.conv_general_dilated(x, w, **params, dimension_numbers=ORDERS[0])
    with enable_x64(True):
        for found in (convolve(jnp.asarray(x), jnp.asarray(w)), jit(convolve)(x, w)):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, plain(x, w, **params), rtol=1e-4, atol=1e-4 if dtype in "fF" else 1e-12)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_narrow_floats_are_summed_in_single_precision(dtype: Any) -> None:
    x, w = (jnp.asarray(RNG.standard_normal(n), dtype) for n in (300, 200))
    expected = np.convolve(np.asarray(x, np.float64), np.asarray(w, np.float64))
    for found in (jnp.convolve(x, w), jit(jnp.convolve)(x, w)):
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=8e-3, atol=1e-3)


@pytest.mark.parametrize("m", [5, 70, 300])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_infinities_and_nan_stay_where_they_belong(m: int, bad: float) -> None:
    x, w = RNG.standard_normal(400), RNG.standard_normal(m)
    x[200] = bad
    expected = np.correlate(x, w, "valid")
    for f in (jnp.correlate, jit(jnp.correlate)):
        found = np.asarray(f(x.astype("f"), w.astype("f")))
        assert (np.isfinite(found) == np.isfinite(expected)).all()


@pytest.mark.parametrize("m", [6, 80])
def test_derivatives_of_all_orders_eager_and_compiled(m: int) -> None:
    with enable_x64(True):
        x, w, v = (jnp.asarray(RNG.standard_normal(n)) for n in (100, m, m))
        f = lambda x, w: jnp.sum(jnp.sin(jnp.convolve(x, w, "same")))
        second = lambda x, w: jvp(lambda w: grad(f, (0, 1))(x, w), (w,), (v,))
        toeplitz = lambda x, w: jnp.sum(jnp.sin(jnp.stack([jnp.dot(row, x) for row in _matrix(w, 100)])))
        expected = jvp(lambda w: grad(toeplitz, (0, 1))(x, w), (w,), (v,))
        for found in (second(x, w), jit(second)(x, w)):
            for a, b in zip(found, expected, strict=True):
                for p, q in zip(a, b, strict=True):
                    np.testing.assert_allclose(p, q, rtol=1e-11, atol=1e-12)


def _matrix(w: Any, n: int) -> Any:
    """Return the matrix of the convolution of n elements with w, of mode "same"."""
    first = (w.shape[0] - 1) // 2
    return [
        jnp.stack([w[k] if 0 <= (k := i + first - j) < w.shape[0] else 0 * w[0] for j in range(n)]) for i in range(n)
    ]


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_is_a_loop(axes: tuple[int | None, int | None]) -> None:
    x, w = RNG.standard_normal((20, 30)).astype("f"), RNG.standard_normal((20, 7)).astype("f")
    args = tuple(v if a == 0 else v[0] for v, a in zip((x, w), axes, strict=True))
    loss = lambda x, w: jnp.sum(jnp.convolve(x, w) ** 2)
    pairs = [tuple(v[i] if a == 0 else v for v, a in zip(args, axes, strict=True)) for i in range(20)]
    for f in (jnp.convolve, grad(loss, (0, 1))):
        expected = [f(*pair) for pair in pairs]
        for found in (vmap(f, axes)(*args), jit(vmap(f, axes))(*args)):
            for i, one in enumerate(expected):
                for p, q in zip(found, one, strict=True) if isinstance(one, tuple) else [(found, one)]:
                    np.testing.assert_allclose(p[i], q, rtol=2e-5, atol=2e-5)


def test_eager_vectors_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.primitives.signals import convolution

    def refuse(*_: Any) -> Any:
        raise AssertionError("a program is compiled")

    monkeypatch.setattr(convolution.runtime, "evaluate_elsewhere", refuse)
    x, w = jnp.arange(9.0), jnp.arange(4.0)
    by_x, by_w = grad(lambda x, w: jnp.sum(jnp.convolve(x, w) ** 2), (0, 1))(x, w)
    assert by_x.shape == x.shape
    assert by_w.shape == w.shape
    assert vmap(jnp.convolve, (0, None))(jnp.ones((30, 9)), w).shape == (30, 12)


@pytest.mark.parametrize("dtype", "fdFD")
def test_compiled_vectors_are_no_convolutions_of_the_compiler(dtype: str) -> None:
    with enable_x64(True):
        x, w = RNG.standard_normal(30).astype(dtype), RNG.standard_normal(7).astype(dtype)
        assert "stablehlo.convolution" not in jit(jnp.convolve).lower(x, w).as_text()


def test_what_is_a_convolution_of_vectors() -> None:
    sizes = vector_convolution.Sizes(batches=1, groups=1, n=1, c=1, o=1, m=5, results=9)
    assert vector_convolution.is_of_vectors(sizes)
    assert not vector_convolution.is_of_vectors(sizes._replace(o=2))
    assert not vector_convolution.is_of_vectors(sizes._replace(c=2))
    assert vector_convolution.is_of_vectors(sizes._replace(c=2, m=10))
