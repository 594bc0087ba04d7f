"""Budgets of memory: they are kept, gradients stay equal, and effects and collectives never run again."""

import sys

import pytest

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, custom_vjp, grad, jit, lax, linearize, make_jaxpr, value_and_grad, vjp, vmap
from pullback.control.memory_budgets import inputs_only
from pullback.control.memory_plans import planner
from pullback.core.errors import ArgumentError, MemoryBudgetError

W = [0.1 * jnp.asarray([[((3 * i + 7 * j + k) % 11) - 5.0 for j in range(32)] for i in range(32)]) for k in range(10)]
X = jnp.linspace(-1, 1, 400 * 32).reshape(400, 32)
USUAL = 10 * 400 * 32 * 4


def loss(ws, x):
    for w in ws:
        x = jnp.tanh(x @ w) + 0.5 * x
    return jnp.mean(x**2)


def temporaries(fun, *args):
    return jit(fun).lower(*args).compile().memory_analysis().temp_size_in_bytes


def same(a, b):
    """Whether arrays are equal to some roundings, also of their largest elements: sums over many terms cancel."""
    pairs = zip(pullback.tree.leaves(a), pullback.tree.leaves(b), strict=True)
    return all(bool(jnp.allclose(x, y, rtol=2e-5, atol=1e-6 * (1 + float(jnp.max(jnp.abs(y)))))) for x, y in pairs)


def test_the_compiled_step_keeps_the_budget_and_the_gradient_is_the_same() -> None:
    usual = temporaries(grad(loss), W, X)
    for share in (0.8, 0.55):
        limited = grad(loss, memory=int(share * usual))
        assert temporaries(limited, W, X) <= share * usual
        assert same(jit(limited)(W, X), grad(loss)(W, X))


@pytest.mark.parametrize("memory", ["80%", 0.8, USUAL, "0.49MB", "490 kB"])
def test_budgets_are_numbers_texts_and_shares(memory) -> None:
    assert same(grad(loss, memory=memory)(W, X), grad(loss)(W, X))


@pytest.mark.parametrize("memory", [0, -1, 1.5, "a lot", "2 pints", True, "0%", b"1MB"])
def test_what_is_no_budget_is_refused(memory) -> None:
    for make in (grad, value_and_grad, checkpoint):
        with pytest.raises(ArgumentError, match="memory must be a positive number of bytes"):
            make(loss, memory=memory)
    with pytest.raises(ArgumentError, match="memory must be"):
        vjp(loss, W, X, memory=memory)


def test_every_derivative_takes_a_budget() -> None:
    value, gradient = value_and_grad(loss)(W, X)
    found = value_and_grad(loss, memory=0.5)(W, X)
    assert same(found, (value, gradient))
    out, pull = vjp(loss, W, X, memory=0.5)
    assert same((out, pull(1.0)[0]), (value, gradient))
    out, line = linearize(loss, W, X, memory=0.5)
    assert same(line(W, X), linearize(loss, W, X)[1](W, X))
    assert same(grad(checkpoint(loss, memory=0.5))(W, X), gradient)
    assert same(checkpoint(loss, memory=0.5)(W, X), value)
    assert same(jit(grad(checkpoint(memory=0.5)(loss)))(W, X), gradient)


def test_it_composes_with_the_other_transformations() -> None:
    xs = jnp.stack([X, 2 * X])
    assert same(
        vmap(grad(loss, argnums=1, memory=0.7), (None, 0))(W, xs), vmap(grad(loss, argnums=1), (None, 0))(W, xs)
    )

    def again(memory):
        return grad(lambda s: jnp.sum(grad(lambda x: loss(W, s * x), memory=memory)(X) ** 2))(1.1)

    assert same(again(0.75), again(None))
    aux = grad(lambda w: (loss(w, X), {"name": "text", "x": w[0]}), has_aux=True, memory=0.5)(W)[1]
    assert aux["name"] == "text"
    assert same(aux["x"], W[0])


def test_a_captured_value_that_is_differentiated_outside_counts() -> None:
    def of(memory):
        return grad(lambda s: grad(lambda x: loss(W, s * x), memory=memory)(X).sum())(1.1)

    assert same(of(0.75), of(None))


def test_a_budget_that_cannot_be_kept_names_the_least_and_the_lines() -> None:
    with pytest.raises(
        MemoryBudgetError, match=r"the least that was found is [\d,]+ bytes.*test_memory_budgets\.py"
    ) as info:
        grad(loss, memory=1000)(W, X)
    least = info.value.least
    assert 1000 < least < USUAL
    grad(loss, memory=least)(W, X)


def test_custom_rules_stay_and_effects_run_once() -> None:
    seen: list[int] = []

    @custom_vjp
    def twice(x):
        return jnp.sin(x)

    twice.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3.0 * ct * x,))

    def noisy(ws, x):
        for k, w in enumerate(ws):
            x = 0.1 * twice(x @ w)
            if k == 5:
                pullback.debug.callback(lambda: seen.append(1))
        return jnp.sum(x**2)

    expected = grad(noisy)(W, X)
    seen.clear()
    found = jit(grad(noisy, memory=0.75))(W, X)
    pullback.effects_barrier()
    assert same(found, expected)
    assert seen == [1]


def test_random_values_are_the_same_when_they_are_computed_again() -> None:
    key = pullback.random.key(0)

    def dropped(ws, x):
        for k, w in enumerate(ws[:5]):
            kept = pullback.random.bernoulli(pullback.random.fold_in(key, k), 0.8, x.shape)
            x = jnp.where(kept, jnp.tanh(x @ w), 0.0)
        return jnp.sum(x**2)

    assert same(jit(grad(dropped, memory=0.6))(W, X), jit(grad(dropped))(W, X))


def test_collectives_are_not_computed_again() -> None:
    def over(ws, x):
        for w in ws:
            x = jnp.tanh(jnp.sin(jnp.exp(0.01 * lax.psum(x @ w, "i"))))
        return jnp.sum(x**2)

    def program(memory):
        return str(pullback.make_jaxpr(grad(over, memory=memory), axis_env=[("i", 2)])(W, X))

    xs = jnp.stack([X, 0.5 * X])
    found, expected = (vmap(grad(over, memory=m), (None, 0), axis_name="i")(W, xs) for m in (0.85, None))
    assert same(found, expected)
    assert program(0.85).count("= psum") == program(None).count("= psum") >= 10
    assert program(0.85).count("= checkpoint") > 1


def _steps(equations: int) -> float:
    """Count the calls of functions for each plan that is tried, of a program of about so many equations."""
    size = jnp.ones((8, 8)) / 10

    def long(w, x):
        for _ in range(equations // 12):
            h = jnp.tanh(x @ w) + 0.5 * x
            x = x + jnp.sin(h @ w) * jnp.exp(-h * h) - h * 0.1
        return jnp.mean(x**2)

    program, _ = inputs_only(pullback.make_jaxpr(long)(size, size))
    plans, count = planner(program, (True, True)), 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        plans.within(plans.usual.peak // 2, "a test")
    finally:
        sys.setprofile(None)
    return count / len(plans._plans)


@pytest.mark.slow
def test_the_steps_of_a_plan_grow_with_the_program() -> None:
    small, large = _steps(600), _steps(2_400)
    assert large < 4 * 1.3 * small


def test_plans_prefer_memory_that_is_reused() -> None:
    """The C library reuses blocks of at most 32 MiB; with a larger budget, recomputation may take less time."""

    def squares(ws, x):
        for w in ws:
            y = x @ w
            x = 0.1 * y * y + 0.5 * x
        return jnp.mean(x**2)

    closed, _ = inputs_only(make_jaxpr(squares)([jnp.zeros((32, 32))] * 24, jnp.zeros((8192, 32))))
    plans = planner(closed, [True] * 25)
    assert plans.usual.peak == pytest.approx(48 * 2**20, rel=0.01)
    assert plans.within(40 * 2**20, "grad").peak <= 32 * 2**20
    assert plans.within(plans.usual.peak, "grad") == plans.unchanged()


def test_an_error_names_the_lines_within_checkpointed_segments() -> None:
    with pytest.raises(MemoryBudgetError) as error:
        grad(loss, memory=1000)(W, X)
    told = str(error.value)
    assert f"bytes made at {__file__}:{loss.__code__.co_firstlineno + 2} (loss)" in told
    assert sys._getframe().f_code.co_name not in told
