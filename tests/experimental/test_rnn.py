"""Long short-term memory, against figures of JAX 0.10.2 (``lstm_ref``, which runs on processors)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jit, numpy_rank_promotion, random, threefry_partitionable, vmap
from pullback.experimental import rnn
from pullback.test_util import check_grads

COUNT = 432
WEIGHTS = jnp.sin(jnp.arange(COUNT) * 0.7) * 0.6
X = jnp.cos(jnp.arange(16) * 0.9).reshape(2, 4, 2)
H = jnp.linspace(-1, 1, 24).reshape(4, 2, 3)
C = jnp.linspace(0.5, -0.5, 24).reshape(4, 2, 3)
LENGTHS = jnp.array([4, 2])


def run(w: Any, x: Any, h: Any, c: Any) -> Any:
    return rnn.lstm(x, h, c, w, LENGTHS, 2, 3, 2, 0.0, True)


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_values(way: Any) -> None:
    y, h, c = way(run)(WEIGHTS, X, H, C)
    np.testing.assert_allclose(
        y[0, :2],
        [
            [-0.07987924, -0.17839102, -0.1862624, 0.18987276, 0.04195963, -0.0204342],
            [-0.08993416, -0.25898495, -0.24157736, 0.17147, 0.0386435, -0.01306254],
        ],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        y[1, 1], [-0.10803968, -0.27769122, -0.21982704, -0.0064418, -0.04392974, 0.04409976], atol=1e-6
    )
    assert not y[1, 2:].any()
    np.testing.assert_allclose(
        h[3], [[0.18987276, 0.04195963, -0.0204342], [0.11331509, -0.00729465, -0.01134848]], atol=1e-6
    )
    np.testing.assert_allclose(
        c[2], [[-0.33996627, -0.48097354, -0.60558945], [-0.20233326, -0.5108966, -0.45980507]], atol=1e-6
    )
    np.testing.assert_allclose([y.sum(), h.sum(), c.sum()], [-2.81291008, -0.07933238, 0.2322982], atol=1e-5)
    parts = rnn.unpack_lstm_weights(WEIGHTS, 2, 3, 2, True)
    again = rnn.lstm_ref(X, H, C, *parts, LENGTHS, 2, 3, 2, 0.0, True)
    np.testing.assert_array_equal(again[0], run(WEIGHTS, X, H, C)[0])


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_gradients(way: Any) -> None:
    def loss(*args: Any) -> Any:
        return sum((v * jnp.arange(v.size).reshape(v.shape)).sum() for v in run(*args))

    grads = way(grad(loss, argnums=(0, 1, 2, 3)))(WEIGHTS, X, H, C)
    found = [jnp.sum(g * jnp.cos(jnp.arange(g.size)).reshape(g.shape)) for g in grads]
    np.testing.assert_allclose(found, [380.9197692, -7.03954649, -25.8224144, -46.7092667], rtol=2e-5)


def test_derivatives_and_batches() -> None:
    check_grads(lambda x, h: run(WEIGHTS, x, h, C), (X, H), order=1, atol=2e-2, rtol=2e-2)
    xs = jnp.stack([X, 2 * X])
    mapped = vmap(lambda x: run(WEIGHTS, x, H, C)[0])(xs)
    np.testing.assert_allclose(mapped[1], run(WEIGHTS, 2 * X, H, C)[0], atol=1e-6)


def test_what_comes_after_the_end_does_not_matter() -> None:
    changed = X.at[1, 2:].set(100.0)
    for a, b in zip(run(WEIGHTS, X, H, C), run(WEIGHTS, changed, H, C)):
        np.testing.assert_array_equal(a, b)


def test_weights() -> None:
    assert rnn.get_num_params_in_lstm(2, 3, 2, True) == COUNT
    with threefry_partitionable():
        w = rnn.init_lstm_weight(random.key(3), 2, 3, 1, False)
    np.testing.assert_allclose(w[:4], [-0.4918417, 0.5059255, 0.17200074, 0.5491998], rtol=1e-6)
    swapped = rnn.swap_lstm_gates(jnp.arange(float(COUNT)), 2, 3, 2, True)
    np.testing.assert_array_equal(swapped[:60:5], [0, 5, 10, 21, 14, 25, 30, 35, 40, 54, 59, 46])
    np.testing.assert_array_equal(swapped[-9:], [423, 424, 425, 429, 430, 431, 426, 427, 428])


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weights must have shape \(432,\) for these sizes, got \(3,\)"):
        run(jnp.ones(3), X, H, C)
    with pytest.raises(errors.UnsupportedArgumentError, match=r"dropout must be 0, got 0\.5"):
        rnn.lstm(X, H, C, WEIGHTS, LENGTHS, 2, 3, 2, 0.5, True)


def test_lengths_of_sequences_need_no_promotion_of_ranks() -> None:
    parts = rnn.unpack_lstm_weights(WEIGHTS, 2, 3, 2, True)
    with numpy_rank_promotion("raise"):
        given = rnn.lstm_ref(X, H, C, *parts, LENGTHS, 2, 3, 2, 0.0, True)
    np.testing.assert_array_equal(given[0], run(WEIGHTS, X, H, C)[0])
