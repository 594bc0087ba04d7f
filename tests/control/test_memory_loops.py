"""Scans under a budget of memory: pieces, chunks and schedules compute the same, forwards and backwards."""

import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, jit, lax, make_jaxpr
from pullback.control.memory_budgets import inputs_only
from pullback.control.memory_loops import LoopCosts, Piece, choices, divided, is_loop
from pullback.control.memory_plans import planner
from pullback.control.memory_segments import choose, needed
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


def pieces_within(step, share, w, x):
    """The pieces of a long loop of a step under a budget."""

    def run(w, x):
        return jnp.sum(lax.scan(lambda x, _: (step(w, x), None), x, None, length=120)[0] ** 2)

    program, consts = inputs_only(make_jaxpr(run)(w, x))
    plans = planner(program, (*[False] * len(consts), True, True))
    [pieces] = [s.loop for s in plans.within(int(share * plans.usual.peak), "grad").segments if s.loop is not None]
    return pieces


def test_steps_with_products_run_again_one_by_one_and_fused_steps_in_chunks() -> None:
    def widens(w, x):
        return x + 0.1 * jnp.tanh(x @ w) @ w.T

    def moves(w, x):
        left, right = jnp.roll(x, 1, 0), jnp.roll(x, -1, 1)
        return x + 0.1 * (jnp.sin(left) * right - x * left) * w

    one_by_one = pieces_within(widens, 0.2, 0.1 * jnp.ones((8, 128)), jnp.ones((64, 8)))
    assert [(piece.chunk, piece.kept) for piece in one_by_one] == [(0, frozenset())]
    assert any(piece.chunk for piece in pieces_within(moves, 0.2, 0.1 * jnp.ones((64, 64)), jnp.ones((64, 64))))


def test_a_divided_loop_stands_in_the_program_itself() -> None:
    def run(w, xs):
        return jnp.mean(looped(w, xs)[1])

    program, _ = inputs_only(make_jaxpr(run)(W, XS))
    plans = planner(program, (True, True))
    found = plans.within(int(0.5 * plans.usual.peak), "test").result
    assert [eqn.primitive.name for eqn in found.eqns if "jaxpr" in eqn.params] == ["scan"]


def test_fewer_arrays_of_small_steps_take_less_time() -> None:
    [eqn] = [eqn for eqn in make_jaxpr(looped)(W, XS).eqns if is_loop(eqn)]
    costs = LoopCosts(eqn)
    assert costs.arrays >= 2
    nothing = lambda level: (frozenset(), costs.carry, 0.0)
    found = choices(costs, [1.0], nothing)
    [again] = [c for c in found if c.pieces == (Piece(60, 0, frozenset()),)]
    assert again.time < 0
    assert again.stored == 60 * costs.carry


def test_a_choice_needs_the_budget_that_it_says() -> None:
    def run(w, x):
        for _ in range(12):
            x = jnp.tanh(x @ w)
        return jnp.sum(x)

    program, _ = inputs_only(make_jaxpr(run)(jnp.ones((32, 32)), jnp.ones((256, 32))))
    plans = planner(program, (True, True))
    segments = choose(plans.cuts, plans.options, 0.7 * plans.usual.peak)
    assert segments is not None
    budget = needed(segments)
    assert budget <= 0.7 * plans.usual.peak
    assert choose(plans.cuts, plans.options, 1.02 * budget) is not None
    others = choose(plans.cuts, plans.options, 0.98 * budget)
    assert others is None or needed(others) < budget
