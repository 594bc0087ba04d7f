"""Products in the step of a loop that read one operand are one product, with equal results."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, lax, make_jaxpr, value_and_grad
from pullback.control.joined_products import joined_products
from pullback.control.memory_budgets import inputs_only
from pullback.control.memory_plans import planner
from pullback.core.jaxpr_check import check_jaxpr

WIDTH, ROWS, STEPS = 8, 4, 40


def weights(count, width=WIDTH, columns=None):
    rng = np.random.default_rng(0)
    return [jnp.asarray(0.3 * rng.standard_normal((width, columns or width)), jnp.float32) for _ in range(count)]


XS = jnp.asarray(np.random.default_rng(1).standard_normal((STEPS, ROWS, WIDTH)), jnp.float32)


def loss(ws, xs):
    u, v, w, q = ws

    def step(h, x):
        z = jnp.tanh(x @ u + h @ w)
        return jnp.tanh(x @ v + (z * h) @ w) + h @ q + jnp.sum(w), jnp.mean(h)

    h, means = lax.scan(step, jnp.zeros((ROWS, WIDTH)), xs)
    return jnp.sum(h**2) + jnp.sum(means)


def joined(fun, *args):
    """Return what is joined in the only loop of a function."""
    [loop] = [e for e in make_jaxpr(fun)(*args).eqns if e.primitive.name == "scan"]
    return joined_products(loop.params["jaxpr"], loop.params["num_consts"])


def test_products_of_one_operand_are_joined_and_matrices_that_others_read_stay():
    found = joined(loss, weights(4), XS)
    check_jaxpr(found.program)
    products = [e for e in found.program.eqns if e.primitive.name == "dot_general"]
    assert [e.outvars[0].aval.shape[-1] for e in products].count(2 * WIDTH) == 2
    assert len(products) == 3
    assert [len(group) for group in found.groups] == [2, 2]
    assert len(found.kept) == 2  # w, which another product reads, and its sum
    assert len(found.program.in_avals) == 2 + 2 + 2


def scanned(step, width=WIDTH, rows=ROWS):
    xs = jnp.ones((STEPS, rows, width))
    return lambda *ws: lax.scan(lambda h, x: (step(h, x, *ws), None), jnp.zeros((rows, width)), xs)[0]


@pytest.mark.parametrize(("step", "width", "rows"), [
    (lambda h, x, u, v: jnp.tanh(x @ u + h @ v), WIDTH, ROWS),  # other operands
    (lambda h, x, u, v: jnp.tanh(x @ u) @ v + h, WIDTH, ROWS),
    (lambda h, x, u, v: x @ u + x @ (v * h[0, 0]) + h, WIDTH, ROWS),
    (lambda h, x, u, v: x @ u + x @ v + h, WIDTH, 1),  # one row
    (lambda h, x, u, v: x @ u + x @ v + h, 80, ROWS),  # large
    (lambda h, x, u, v: lax.dot_general(x, u, (((1,), (1,)), ((), ()))) + x @ v + h, WIDTH, ROWS),
], ids=["other operands", "in turn", "not constant", "one row", "large", "transposed"])  # fmt: skip
def test_other_products_are_left(step, width, rows):
    assert joined(scanned(step, width, rows), *weights(2, width)) is None


def test_gradients_within_a_budget_are_equal_to_rounding():
    ws = weights(4)
    expected, slopes = value_and_grad(loss)(ws, XS)
    value, found = value_and_grad(loss, memory="30%")(ws, XS)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for a, b in zip(found, slopes, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * float(jnp.max(jnp.abs(b))))
    text = str(make_jaxpr(grad(loss, memory="30%"))(ws, XS))
    assert f"f32[{ROWS},{2 * WIDTH}] = dot_general" in text


def test_the_plan_that_gains_most_time_is_chosen():
    """Some plans gain time, since they keep less: they are not all equally good."""
    ws, xs = weights(4, 32), jnp.ones((1000, 16, 32))
    program, _ = inputs_only(make_jaxpr(lambda ws: loss_of(ws, xs))(ws))
    plans = planner(program, (False, *[True] * 4))
    chosen = plans.within(int(0.5 * plans.usual.peak), "test")
    assert chosen.extra < 0
    assert chosen.extra == min(p.extra for p in plans._plans.values() if p.peak <= 0.5 * plans.usual.peak)


def loss_of(ws, xs):
    def step(h, x):
        z, r = jnp.tanh(x @ ws[0] + h @ ws[1]), jnp.tanh(x @ ws[2] + h @ ws[3])
        return z * h + (1 - z) * r, None

    return jnp.sum(lax.scan(step, jnp.zeros(xs.shape[1:]), xs)[0])
