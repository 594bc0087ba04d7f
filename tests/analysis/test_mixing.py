"""Plans of narrower lines: which lines they name, and that programs run so, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import analysis, lax, nn
from pullback.core.errors import ArgumentError

RNG = np.random.default_rng(0)


def mostly_harmless(x: Any) -> Any:
    y = jnp.tanh(x)
    big = y * 1000 + 1
    small = big - 1000 * y  # cancels: stays wide
    return jnp.sum(small * y) + jnp.sum(y)


def test_lines_that_cancel_stay_as_they_are() -> None:
    x = jnp.asarray(RNG.normal(size=(20,)), jnp.float32)
    plan = analysis.precision(mostly_harmless, suggest="bfloat16", tolerance=1e-2)(x)
    assert plan.error <= 1e-2
    assert plan.wide
    assert plan.narrow
    true, found = mostly_harmless(x), analysis.mixed_precision(mostly_harmless, plan)(x)
    assert found.dtype == true.dtype
    assert abs(float(found) / float(true) - 1) == pytest.approx(plan.error, rel=0.01)
    assert "stays as it is" in str(plan)


def test_narrow_lines_compute_in_the_narrower_dtype() -> None:
    f = lambda x: jnp.sin(x) * 2 + jnp.linalg.det(jnp.outer(x, x))
    plan = analysis.precision(f, suggest="bfloat16", tolerance=1.0)(jnp.float32([1, 2]))
    text = str(pullback.make_jaxpr(analysis.mixed_precision(f, plan))(jnp.float32([1, 2])))
    assert "bf16[2] = sin" in text
    assert "f32[] = det" in text


@pytest.mark.parametrize("how", ["scan", "jit", "checkpoint", "cond"])
def test_programs_within_programs_are_mixed(how: str) -> None:
    step = lambda x: jnp.tanh(x * 1.5)
    functions: dict[str, Any] = {
        "scan": lambda x: lax.scan(lambda c, _: (step(c), step(c)), x, None, length=3)[1],
        "jit": pullback.jit(step),
        "checkpoint": pullback.checkpoint(step),
        "cond": lambda x: lax.cond(x[0] > 0, step, jnp.cos, x),
    }
    x = jnp.float32([0.3, 0.7])
    plan = analysis.precision(functions[how], suggest="bfloat16", tolerance=0.1)(x)
    mixed = analysis.mixed_precision(functions[how], plan)
    assert plan.narrow
    assert "bf16" in str(pullback.make_jaxpr(mixed)(x))
    np.testing.assert_allclose(mixed(x), functions[how](x), rtol=3e-2)
    gradient = pullback.jit(pullback.grad(lambda x: jnp.sum(mixed(x))))(x)
    np.testing.assert_allclose(gradient, pullback.grad(lambda x: jnp.sum(functions[how](x)))(x), rtol=5e-2)


def test_derivatives_that_would_underflow_are_scaled() -> None:
    def loss(w: Any) -> Any:
        return jnp.mean((w * 1e-2) ** 2)

    w = jnp.asarray(RNG.normal(size=(4096,)), jnp.float32)
    plan = analysis.precision(loss, suggest="float16", tolerance=0.5)(w)
    assert plan.loss_scale > 1
    true = pullback.grad(loss)(w)
    found = pullback.grad(analysis.mixed_precision(loss, plan))(w)
    unscaled = analysis.MixedPlan(plan.dtype, plan.narrow, plan.wide, plan.error)
    lost = pullback.grad(analysis.mixed_precision(loss, unscaled))(w)
    distance = lambda x: float(jnp.linalg.norm(x - true) / jnp.linalg.norm(true))
    assert distance(found) < 0.1 < distance(lost)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="suggest must be a dtype such as 'bfloat16' or 'float16', got 'int8'"):
        analysis.precision(jnp.sin, suggest="int8")
    with pytest.raises(ArgumentError, match="tolerance must be a positive number, got 0"):
        analysis.precision(jnp.sin, suggest="bfloat16", tolerance=0)
    with pytest.raises(ArgumentError, match="plan must be a MixedPlan"):
        analysis.mixed_precision(jnp.sin, "bfloat16")  # type: ignore[arg-type]


def transformer(params: Any, tokens: Any) -> Any:
    """The loss of a small transformer that predicts the next token."""
    x = params["embedding"][tokens[:, :-1]]
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    for layer in params["layers"]:
        h = nn.standardize(x)
        q, k, v = h @ layer["q"], h @ layer["k"], h @ layer["v"]
        scores = q @ jnp.swapaxes(k, -1, -2) / 4
        x = x + nn.softmax(jnp.where(mask, scores, -1e9)) @ v
        x = x + nn.gelu(nn.standardize(x) @ layer["up"]) @ layer["down"]
    logits = nn.standardize(x) @ params["embedding"].T
    chosen = jnp.take_along_axis(nn.log_softmax(logits), tokens[:, 1:, None], -1)
    return -jnp.mean(chosen)


@pytest.mark.slow
def test_a_transformer_trains_in_bfloat16() -> None:
    rng = np.random.default_rng(1)
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape) / np.sqrt(shape[0]), jnp.float32)
    layers = [
        {"q": normal(32, 32), "k": normal(32, 32), "v": normal(32, 32), "up": normal(32, 64), "down": normal(64, 32)}
        for _ in range(2)
    ]
    start = {"embedding": normal(16, 32), "layers": layers}
    steps = (np.cumsum(rng.integers(1, 3, (64, 12)), axis=1) + rng.integers(0, 16, (64, 1))) % 16
    tokens = jnp.asarray(steps)
    plan = analysis.precision(transformer, suggest="bfloat16", tolerance=1e-2)(start, tokens)
    assert len(plan.narrow) > 2 * len(plan.wide)

    def trained(loss: Any) -> float:
        gradient = pullback.jit(pullback.value_and_grad(loss))
        params = start
        for i in range(60):
            _, g = gradient(params, tokens)
            rate = 0.3 * (1 - i / 60)  # at a constant rate the losses of both go up and down by some percent
            params = pullback.tree.map(lambda p, g, rate=rate: p - rate * g, params, g)
        return float(transformer(params, tokens))

    single = trained(transformer)
    assert single < 0.5 * float(transformer(start, tokens))
    assert trained(analysis.mixed_precision(transformer, plan)) == pytest.approx(single, rel=1e-2)
