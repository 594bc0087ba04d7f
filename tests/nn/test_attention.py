"""Attention by blocks is attention at once, in every derivative; its memory; bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import nn
from pullback.core.errors import ArgumentError, BackendError, DtypeError, ShapeError
from pullback.nn import attention

rng = np.random.default_rng(0)
Q, K, V = (rng.standard_normal((2, n, h, 3), dtype=np.float32) for n, h in ((20, 4), (24, 2), (24, 2)))
BIAS, MASK = rng.standard_normal((2, 1, 20, 24), dtype=np.float32), rng.random((1, 4, 20, 24)) < 0.7
LENGTHS = {"key_value_seq_lengths": np.array([5, 20]), "query_seq_lengths": np.array([7, 20])}

CASES: dict[str, dict[str, Any]] = {
    "bias and mask": {"bias": BIAS, "mask": MASK},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (3, 2)},
    "window before, bias": {"local_window_size": (3, 0), "bias": BIAS[:, :, :1]},
    "lengths, bias": {"bias": BIAS[:, :, :, :1], **LENGTHS},
}


def quantities(given: dict[str, Any]) -> Any:
    given = dict(given)
    bias = given.pop("bias", None)
    args = (Q, K, V) if bias is None else (Q, K, V, bias)
    ts = tuple(np.cos(np.arange(a.size, dtype=np.float32)).reshape(a.shape) for a in args)
    which = tuple(range(len(args)))

    def f(*xs: Any) -> Any:
        return nn.dot_product_attention(*xs, return_residual=True, **given)

    def loss(*xs: Any) -> Any:
        out, residual = f(*xs)
        return pnp.sin(out).sum() + pnp.sin(pnp.where(residual < -1e30, 0, residual)).sum()

    def everything(*xs: Any) -> Any:
        gradient = pullback.grad(loss, which)
        both = [pnp.stack([x, 2 * x]) for x in xs]
        return (
            f(*xs), pullback.jvp(f, xs, ts)[1], pullback.jvp(gradient, xs, ts),
            pullback.grad(lambda *xs: sum((g * t).sum() for g, t in zip(gradient(*xs), ts, strict=True)), which)(*xs),
            pullback.vmap(gradient)(*both),
        )  # fmt: skip

    return pullback.jit(everything)(*args)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_by_blocks_as_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = pullback.tree.leaves(quantities(CASES[name]))
    for constant, value in (("SMALL", 0), ("FEW", 0), ("SCORES", 8 * 24), ("FEWEST", 8)):
        monkeypatch.setattr(attention, constant, value)
    by_blocks = pullback.tree.leaves(quantities(CASES[name]))
    for x, y in zip(at_once, by_blocks, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_eager_by_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = nn.dot_product_attention(Q, K, V, **CASES[name])
    for constant, value in (("SMALL", 0), ("FEW", 0), ("SCORES", 8 * 24), ("FEWEST", 8)):
        monkeypatch.setattr(attention, constant, value)
    found = nn.dot_product_attention(Q, K, V, **CASES[name])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_elements_behind_the_lengths_have_no_say() -> None:
    expected = nn.dot_product_attention(Q[:, :7], K[:, :5], V[:, :5])
    lengths = {"query_seq_lengths": np.array([7, 7]), "key_value_seq_lengths": np.array([5, 5])}
    found = nn.dot_product_attention(Q, K, V, **lengths)
    np.testing.assert_allclose(found[:, :7], expected, rtol=1e-5, atol=1e-6)
    assert not np.asarray(found[:, 7:]).any()


def test_rows_of_which_all_is_masked_have_a_mean_and_no_derivative_of_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = np.broadcast_to(np.arange(Q.shape[1])[:, None] % 3 > 0, (1, 1, Q.shape[1], K.shape[1]))

    def gradients() -> Any:
        return pullback.grad(lambda *xs: pnp.sin(nn.dot_product_attention(*xs, mask=mask)).sum(), (0, 1, 2))(Q, K, V)

    at_once = gradients()
    for constant, value in (("SMALL", 0), ("FEW", 0), ("SCORES", 8 * 24), ("FEWEST", 8)):
        monkeypatch.setattr(attention, constant, value)
    for x, y in zip(at_once, gradients(), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-5)
    assert not np.asarray(at_once[0])[:, ::3].any()


def test_no_array_of_all_scores() -> None:
    q = pullback.ShapeDtypeStruct((1, 2048, 2, 8), np.float32)
    gradient = pullback.grad(lambda *xs: nn.dot_product_attention(*xs, is_causal=True).sum(), (0, 1, 2))
    memory = pullback.jit(gradient).lower(q, q, q).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 2048 * 2048 * 4


@pytest.mark.parametrize(
    ("operands", "given", "error", "message"),
    [
        ((Q, K[:1], V[:1]), {}, ShapeError, "must have the same batch and size"),
        ((Q, K, V[:, :3]), {}, ShapeError, "key and value must have the same shape"),
        (
            (Q[:, :, :3], K, V),
            {},
            ShapeError,
            "the number of query heads, 3, must be a multiple of that of key heads, 2",
        ),
        ((Q[0, 0], K[0, 0], V[0, 0]), {}, ShapeError, r"\(\[batch,\] T, heads, size\)"),
        ((Q, K[:, :0], V[:, :0]), {}, ShapeError, "the number of keys must not be zero"),
        ((Q.astype(int), K, V), {}, DtypeError, "query must be an array of floats, got i32"),
        ((Q.astype(np.float16), K, V), {}, ValueError, "must have the same dtype, got f16 for query and f32 for key"),
        ((Q, K, V), {"mask": np.ones((20, 24), int)}, ValueError, "mask must be an array of booleans, got i32"),
        ((Q, K, V), {"bias": np.ones((20, 23))}, ShapeError, "does not broadcast to"),
        ((Q, K, V), {"query_seq_lengths": np.ones(3, int)}, ShapeError, r"must have the shape \(2,\)"),
        ((Q, K, V), {"key_value_seq_lengths": np.ones(2)}, ValueError, "must be an array of int32"),
        ((Q, K, V), {"local_window_size": (1, 2, 3)}, ArgumentError, "an int or a pair"),
        ((Q, K, V), {"implementation": "foo"}, ArgumentError, "'xla' or 'cudnn', got 'foo'"),
        ((Q, K, V), {"implementation": "cudnn"}, BackendError, "needs an NVIDIA device"),
    ],
)
def test_bad_input(operands: Any, given: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        nn.dot_product_attention(*operands, **given)


def test_scaled_products() -> None:
    numbers = (((2,), (2,)), ((0,), (0,)))
    x, y = rng.standard_normal((2, 3, 40), dtype=np.float32), rng.standard_normal((2, 5, 40), dtype=np.float32)
    exact = np.einsum("bmk,bnk->bmn", x, y)
    for mode, most in (("mxfp8", 0.1), ("nvfp4", 0.35)):
        configs = [nn.get_scaled_dot_general_config(mode)] * 3
        f = lambda x, y, configs=configs: nn.scaled_dot_general(x, y, numbers, configs=configs)
        assert 0 < np.abs(f(x, y) - exact).max() < most * np.abs(exact).max()
        gradient = pullback.grad(lambda x, f=f: (f(x, y) ** 2).sum())(x)
        expected = 2 * np.einsum("bmn,bnk->bmk", exact, y)
        assert np.abs(gradient - expected).max() < most * np.abs(expected).max()
        assert not np.asarray(f(0 * x, y)).any()
    ones = pnp.ones((2, 3, 2)), pnp.ones((2, 5, 2))
    np.testing.assert_allclose(nn.scaled_matmul(x, y, *ones), exact, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="one size, which divides that of the operands"):
        nn.scaled_matmul(x, y, pnp.ones((2, 3, 3)), pnp.ones((2, 5, 3)))
    with pytest.raises(ArgumentError, match="must be 'nvfp4' or 'mxfp8', got 'x'"):
        nn.get_scaled_dot_general_config("x")
