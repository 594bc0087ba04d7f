"""Checkpoints: schedules, reverse mode through loops of unknown length, scans of which only some states are kept."""

import subprocess
import sys
from functools import cache
from math import comb, prod

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import (
    debug,
    effects_barrier,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    pure_callback,
    tree,
    value_and_grad,
    vmap,
)  # fmt: skip
from pullback.control import checkpointing
from pullback.control.checkpointing import best_steps, repetitions, steps_to_next_snapshot
from pullback.core.errors import ControlFlowError

XS = pnp.arange(3.0) / 3


# Schedules -----------------------------------------------------------------------------------------------------------


@cache
def least(length, free):
    """The least number of steps, by trying all ways."""
    if length == 1:
        return 0
    if free == 0:
        return length * (length - 1) // 2
    return min(m + least(length - m, free - 1) + least(m, free) for m in range(1, length))


def recomputed(length, free):
    """The least number of steps by the formula."""
    s, r = free + 1, repetitions(length, free)
    return r * length - comb(s + r, r - 1) if length > 1 else 0


@pytest.mark.parametrize("free", range(8))
def test_the_schedule_is_the_best_there_is(free):
    for length in range(1, 60):
        assert recomputed(length, free) == least(length, free)
        if length > 1 and free:
            m = steps_to_next_snapshot(length, free)
            assert m + least(length - m, free - 1) + least(m, free) == least(length, free)


def test_the_schedule_in_a_program_is_the_same():
    ahead = jit(checkpointing._traced_steps_to_next)
    for length in (2, 3, 7, 40, 1000, 100_000):
        for free in (1, 2, 5, 30, 127):
            assert int(ahead(pnp.int32(length), pnp.int32(free))) == steps_to_next_snapshot(length, free)
    for length in (10**7, 2**31 - 1):  # too large for exact arithmetic: any way that is possible
        assert 1 <= int(ahead(pnp.int32(length), pnp.int32(1))) < length


def test_best_steps():
    assert best_steps(10, 1) == [0]
    assert best_steps(4, 100) == [0, 1, 2, 3]


# while_loop ----------------------------------------------------------------------------------------------------------


def looped(x, a=0.5, n=7, **options):
    return lax.while_loop(lambda c: c[1] < n, lambda c: (pnp.sin(c[0]) * c[0] + a * c[0], c[1] + 1), (x, 0), **options)[
        0
    ]


def unrolled(x, a=0.5, n=7):
    for _ in range(int(n)):
        x = pnp.sin(x) * x + a * x
    return x


TRANSFORMED = {
    "grad": lambda f: grad(f)(0.3),
    "grad of a constant": lambda f: grad(f, 1)(0.3, 0.5),
    "jit of grad": lambda f: jit(grad(f, (0, 1)))(0.3, 0.5),
    "grad of jit": lambda f: grad(jit(f), (0, 1))(0.3, 0.5),
    "value_and_grad": lambda f: value_and_grad(f)(0.3),
    "linearize": lambda f: linearize(f, 0.3)[1](2.0),
    "jvp": lambda f: jvp(f, (0.3, 0.5), (1.0, 2.0)),
    "forward over reverse": lambda f: hessian(f, (0, 1))(0.3, 0.5),
    "reverse over reverse": lambda f: jacrev(jacrev(f, (0, 1)), (0, 1))(0.3, 0.5),
    "reverse over forward": lambda f: jacrev(jacfwd(f, (0, 1)), (0, 1))(0.3, 0.5),
    "third order": lambda f: grad(grad(grad(f)))(0.3),
    "third order, mixed": lambda f: jacfwd(grad(jit(grad(f))))(0.3),
    "vmap of grad": lambda f: vmap(grad(f))(XS),
    "vmap of the constant's grad": lambda f: vmap(grad(f, 1), (None, 0))(0.3, XS),
    "grad of vmap": lambda f: grad(lambda x: vmap(f)(x).sum())(XS),
    "jit of vmap of second order": lambda f: jit(vmap(grad(grad(f))))(XS),
    "grad of the jitted vmap": lambda f: grad(lambda x: jit(vmap(f))(x).sum())(XS),
}


@pytest.mark.parametrize("transformed", TRANSFORMED.values(), ids=TRANSFORMED)
def test_while_loop_is_differentiated_like_its_steps(transformed):
    ours, expected = tree.leaves(transformed(looped)), tree.leaves(transformed(unrolled))
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)


COUNTS = pnp.array([0, 1, 5, 9, 2])
POINTS = pnp.array([0.1, 0.2, 0.3, 0.4, 0.5])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_examples_of_a_batch_take_different_numbers_of_steps(order, wrap):
    def derivative(f):
        return lambda x, n: (grad(grad(lambda x: f(x, 0.5, n))) if order == 2 else grad(lambda x: f(x, 0.5, n)))(x)

    expected = [derivative(unrolled)(x, n) for x, n in zip(POINTS, COUNTS, strict=True)]
    np.testing.assert_allclose(wrap(vmap(derivative(looped)))(POINTS, COUNTS), expected, rtol=2e-4, atol=1e-6)
    if order == 1:
        total = wrap(grad(lambda x: vmap(lambda x, n: looped(x, 0.5, n))(x, COUNTS).sum()))(POINTS)
        np.testing.assert_allclose(total, expected, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 64])
def test_any_number_of_steps_and_of_slots(slots):
    f = jit(lambda x, n: grad(lambda x: looped(x, 0.5, n, checkpoints=slots))(x))
    for n in (0, 1, 2, 3, 4, 7, 16, 41):
        np.testing.assert_allclose(f(0.9, n), grad(lambda x: unrolled(x, 0.5, n))(0.9), rtol=1e-4)  # noqa: B023


def test_fori_loop_with_a_traced_bound():
    def f(x, n, **options):
        return lax.fori_loop(0, n, lambda i, x: pnp.sin(x) * x + i * 0.1, x, **options)

    def g(x, n):
        for i in range(n):
            x = pnp.sin(x) * x + i * 0.1
        return x

    np.testing.assert_allclose(jit(grad(f))(0.3, 5), grad(g)(0.3, 5), rtol=1e-5)
    np.testing.assert_allclose(
        jit(lambda x, n: grad(lambda x: f(x, n, checkpoints=2))(x))(0.3, 9), grad(g)(0.3, 9), rtol=1e-5
    )
    np.testing.assert_allclose(jit(hessian(f))(0.3, 5), hessian(g)(0.3, 5), rtol=1e-4)


def test_newton_by_a_python_loop_by_while_loop_and_by_custom_root():
    def by_python(a):
        x = a
        for _ in range(20):
            x = 0.5 * (x + a / x)
        return x

    def by_loop(a):
        return lax.while_loop(lambda c: abs(c[0] - c[1]) > 1e-6, lambda c: (0.5 * (c[0] + a / c[0]), c[0]), (a, 0.0))[0]

    def by_root(a):
        def solve(f, x):
            return lax.while_loop(lambda x: abs(f(x)) > 1e-6, lambda x: x - f(x) / (2 * x), x)

        return lax.custom_root(lambda x: x**2 - a, a, solve, lambda g, y: y / g(1.0))

    for f in (by_python, by_loop, by_root):
        for wrap in (lambda f: f, jit):
            np.testing.assert_allclose(wrap(grad(f))(2.0), 0.5 / np.sqrt(2), rtol=1e-5)
            np.testing.assert_allclose(wrap(grad(grad(f)))(2.0), -0.25 * 2**-1.5, rtol=1e-4)


def test_trees_integers_and_what_does_not_depend():
    def f(p, k):
        def body(c):
            return {"x": c["x"] * p["a"], "n": c["n"] + k, "same": c["same"], "y": c["y"] + c["x"]}

        init = {"x": p["x"], "n": 0, "same": pnp.ones(2), "y": 0.0}
        out = lax.while_loop(lambda c: c["n"] < 6, body, init)
        return out["y"] + out["same"].sum(), out["n"]

    gradient, n = grad(f, has_aux=True)({"x": 2.0, "a": 3.0}, 2)
    assert (float(gradient["x"]), float(gradient["a"]), int(n)) == (13.0, 2.0 + 12.0, 6)


def test_a_custom_rule_in_the_body_is_kept():
    @pullback.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (double(x), None), lambda _, ct: (3 * ct,))

    def f(x):
        return lax.while_loop(lambda c: c[1] < 4, lambda c: (double(c[0]), c[1] + 1), (x, 0))[0]

    assert grad(f)(1.0) == 81.0
    assert jit(grad(f))(1.0) == 81.0
    assert grad(jit(f))(1.0) == 81.0
    np.testing.assert_allclose(vmap(grad(f))(XS), [81.0] * 3)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_steps():
    program = """
import sys, resource, pullback, pullback.numpy as pnp
from pullback import grad, jit, lax
def f(x, n):
    return lax.while_loop(lambda c: c[1] < n, lambda c: (pnp.sin(c[0]) * 0.99 + 0.1, c[1] + 1), (x, 0))[0].sum()
gradient = jit(grad(f))
gradient(pnp.ones(10_000), 1).block_until_ready()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
gradient(pnp.ones(10_000), 20_000).block_until_ready()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    added = float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert added < 60


# scan ----------------------------------------------------------------------------------------------------------------


def scanned(x, a, ys, slots=None, reverse=False):
    def body(x, y):
        z = pnp.sin(x) * a + y
        return z, z * y

    last, out = lax.scan(body, x, ys, reverse=reverse, checkpoints=slots)
    return last + (out**2).sum()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("slots", [1, 2, 3, 30])
@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_a_scan_with_few_states_kept_has_the_same_gradient(length, slots, reverse):
    ys = pnp.linspace(0.0, 1.0, length)
    expected = value_and_grad(lambda *args: scanned(*args, None, reverse), (0, 1, 2))(0.3, 0.7, ys)
    ours = jit(value_and_grad(lambda *args: scanned(*args, slots, reverse), (0, 1, 2)))(0.3, 0.7, ys)
    for a, b in zip(tree.leaves(ours), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "transformed",
    [
        lambda h: grad(h)(0.3),
        lambda h: hessian(h)(0.3),
        lambda h: grad(grad(h))(0.3),
        lambda h: jvp(h, (0.3,), (1.0,)),
        lambda h: jvp(jit(h), (0.3,), (1.0,)),
        lambda h: grad(jit(h))(0.3),
        lambda h: grad(jit(grad(jit(h))))(0.3),
        lambda h: vmap(grad(h))(XS),
        lambda h: grad(lambda x: vmap(h)(x).sum())(XS),
        lambda h: grad(lambda x: jit(vmap(h))(x).sum())(XS),
    ],
)
def test_a_scan_with_few_states_kept_under_all_transformations(transformed):
    ys = pnp.linspace(0.0, 1.0, 6)
    ours = transformed(lambda x: scanned(x, 0.7, ys, 2))
    expected = transformed(lambda x: scanned(x, 0.7, ys))
    for a, b in zip(tree.leaves(ours), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("length", "slots"), [(1, 1), (5, 1), (5, 3), (10, 3), (23, 4), (30, 5), (12, 40)])
def test_the_number_of_steps_computed_again_is_the_least(length, slots, wrap):
    count = 0

    def counted(i):
        nonlocal count
        count += 1
        return i

    def f(x):
        def body(c, _):
            x, i = c
            i = pure_callback(counted, pullback.ShapeDtypeStruct((), "int32"), i)
            return (pnp.sin(x + 0.0 * i.astype(float)), i + 1), None

        return lax.scan(body, (x, 0), length=length, checkpoints=slots)[0][0]

    pullback.block_until_ready(wrap(value_and_grad(f))(0.5))
    again = recomputed(length, min(slots, length) - 1) - (length - 1)
    assert count == length + again + length  # the first pass, what is computed again, and each step as it is reversed


def test_effects_of_steps_that_are_computed_again_happen_once():
    seen = []

    def f(x):
        def step(c, i):
            debug.callback(lambda i: seen.append(int(i)), i)
            return pnp.sin(c), None

        return lax.scan(step, x, pnp.arange(6), checkpoints=2)[0]

    for g in (f, grad(f), jit(grad(f)), grad(jit(f))):
        seen.clear()
        g(0.5)
        effects_barrier()
        assert seen == [0, 1, 2, 3, 4, 5]


def test_the_states_that_are_kept_are_in_the_program():
    jaxpr = make_jaxpr(grad(lambda x: scanned(x, 0.7, pnp.ones(100), 4)))(0.3)
    sizes = [
        prod(v.aval.shape) for eqn in jaxpr.eqns for v in eqn.outvars if len(v.aval.shape) == 1 and v.aval.dtype == "f"
    ]
    assert max((s for s in sizes if s not in (1, 100)), default=0) <= 5


@pytest.mark.parametrize("slots", [0, -1, 2.0, True])
def test_a_number_of_slots_that_is_none(slots):
    for loop in (
        lambda: scanned(0.3, 0.7, pnp.ones(3), slots),
        lambda: looped(0.3, checkpoints=slots),
        lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 0.0, checkpoints=slots))(3),
    ):
        with pytest.raises(ControlFlowError, match="checkpoints, the number of states"):
            loop()
