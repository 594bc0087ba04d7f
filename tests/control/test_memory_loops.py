"""Scans under a budget of memory: pieces, chunks and schedules compute the same, forwards and backwards."""

import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, jit, lax, make_jaxpr
from pullback.control.memory_loops import LoopCosts, Piece, choices, divided, is_loop
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from pullback.transforms.autodiff.grad import value_and_grad

W = 0.3 * jnp.sin(jnp.arange(64.0).reshape(8, 8))
XS = jnp.cos(jnp.arange(60.0 * 8).reshape(60, 8))


def looped(w, xs, reverse=False):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, jnp.sum(h**2) * x[0]

    return lax.scan(step, jnp.ones(8), xs, reverse=reverse)


def loss(w, xs, reverse=False):
    h, ys = looped(w, xs, reverse)
    return jnp.sum(h) + jnp.sum(ys * jnp.arange(60.0))


def same(a, b):
    pairs = zip(pullback.tree.leaves(a), pullback.tree.leaves(b), strict=True)
    return all(bool(jnp.allclose(x, y, rtol=2e-4, atol=1e-5)) for x, y in pairs)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("pieces", [
    (Piece(60, 10),), (Piece(49, 7), Piece(11)), (Piece(20, 5), Piece(40)), (Piece(30), Piece(30, 6)),
    (Piece(60, 0, None, 5),),
], ids=str)  # fmt: skip
def test_a_divided_loop_computes_the_same(pieces, reverse) -> None:
    closed = make_jaxpr(lambda w, xs: looped(w, xs, reverse))(W, XS)
    [index] = [i for i, eqn in enumerate(closed.eqns) if is_loop(eqn)]
    jaxpr = closed.jaxpr
    eqns = [divided(eqn, pieces, pytest.fail) if i == index else eqn for i, eqn in enumerate(jaxpr.eqns)]
    run = jaxpr_as_fun(ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), closed.consts))

    def divided_loss(w, xs):
        h, ys = run(w, xs)
        return jnp.sum(h) + jnp.sum(ys * jnp.arange(60.0))

    assert same(jit(value_and_grad(divided_loss, (0, 1)))(W, XS), value_and_grad(loss, (0, 1))(W, XS, reverse))


def test_choices_trade_memory_for_time() -> None:
    [eqn] = [eqn for eqn in make_jaxpr(looped)(W, XS).eqns if is_loop(eqn)]
    costs = LoopCosts(eqn)
    found = choices(costs, [], pytest.fail)
    [plain] = [c for c in found if c.pieces == (Piece(60),)]
    assert plain.time == 0
    assert plain.stored == 60 * costs.plain
    assert min(c.transient for c in found) < 0.4 * plain.transient
    assert [c.time for c in found] == sorted(c.time for c in found)


def test_the_compiled_gradient_of_a_loop_keeps_the_budget() -> None:
    xs = jnp.concatenate([XS] * 8)

    def long(w, xs):
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), jnp.ones((64, 8)), xs[:, None, :])[0])

    def temporaries(fun):
        return jit(fun).lower(W, xs).compile().memory_analysis().temp_size_in_bytes

    usual = temporaries(grad(long))
    limited = grad(long, memory=int(0.3 * usual))
    assert temporaries(limited) <= 0.3 * usual
    assert same(jit(limited)(W, xs), grad(long)(W, xs))
