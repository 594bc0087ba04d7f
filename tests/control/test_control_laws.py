"""Loops and branches of random programs are what the same is in Python, under every transformation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import custom_jvp, custom_vjp, disable_jit, grad, jit, jvp, lax, make_jaxpr, vjp, vmap
from pullback.core import tree
from pullback.core.array import as_array
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.jaxpr_check import check_jaxpr
from tests.helpers import assert_close
from tests.random_programs import Program, programs, random_like

Function = Callable[..., Any]
few = settings(max_examples=4)
fewer = settings(max_examples=2)


pytestmark = pytest.mark.usefixtures("all_in_x64")


# Functions of (carry, xs, weights), each a tuple of arrays, and the same in Python --------------------------------


class Case:
    """A function of arguments with control flow, the same in Python, and arguments for both."""

    def __init__(self, function: Function, plain: Function, args: Sequence[Any]) -> None:
        self.function = function
        self.plain = plain
        self.args = tuple(args)

    def __repr__(self) -> str:
        return f"Case({self.function}, {self.args})"


def next_carry(p: Program, out: list[Any], carry: Sequence[Any]) -> list[Any]:
    """A carry of the same shapes, in which all results have a part."""
    total = sum(jnp.sum(jnp.sin(y)) for y in out)
    return [jnp.tanh(c * (0.5 + i) + 0.3 * total) for i, c in enumerate(carry)]


@st.composite
def scans(draw: Any) -> Case:
    p = draw(programs(max_instructions=5))
    length = draw(st.integers(1, 4))
    reverse = draw(st.booleans())
    unroll = draw(st.sampled_from([1, 2, True]))
    count = len(p.inputs)
    groups = draw(st.lists(st.sampled_from("cxw"), min_size=count, max_size=count))
    init = [np.float64(0.3)] + [x for x, g in zip(p.inputs, groups, strict=True) if g == "c"]
    weights = [x for x, g in zip(p.inputs, groups, strict=True) if g == "w"]
    rows = [x for x, g in zip(p.inputs, groups, strict=True) if g == "x"]
    xs = random_like([np.zeros((length, *x.shape)) for x in rows], 7)

    def step(weights: Any, carry: Any, row: Any) -> Any:
        parts = {"c": iter(carry[1:]), "w": iter(weights), "x": iter(row)}
        out = p(*[next(parts[g]) for g in groups])
        return tuple(next_carry(p, [carry[0], *out], carry)), out

    def function(init: Any, xs: Any, weights: Any) -> Any:
        return lax.scan(
            lambda c, x: step(weights, c, x), init, xs, length=length, reverse=reverse, unroll=unroll
        )  # fmt: skip

    def plain(init: Any, xs: Any, weights: Any) -> Any:
        carry, ys = init, [None] * length
        for i in reversed(range(length)) if reverse else range(length):
            carry, ys[i] = step(weights, carry, tuple(x[i] for x in xs))
        return carry, [jnp.stack(column) for column in zip(*ys, strict=True)]

    return Case(function, plain, [tuple(map(as_array, g)) for g in (init, xs, weights)])


@st.composite
def choices(draw: Any) -> Case:
    """A branch of three, chosen by the first argument, which is differentiated too."""
    branches = draw(st.lists(programs(max_inputs=1, max_instructions=4), min_size=2, max_size=3))
    shape = (2,)
    operand = as_array(np.random.default_rng(draw(st.integers(0, 99))).uniform(-1, 1, shape))
    weight = as_array(0.7)

    def branch(p: Program, x: Any, w: Any) -> Any:
        part = jnp.broadcast_to(jnp.sum(x) * w, p.inputs[0].shape)
        return tuple(next_carry(p, p(part), [x, w]))

    def number(t: Any) -> Any:
        return jnp.floor(t).astype(np.int32)

    def function(t: Any, x: Any, w: Any) -> Any:
        functions = [lambda x, w, p=p: branch(p, x * t, w) for p in branches]
        if len(functions) == 2:
            return lax.cond(number(t) > 0, functions[1], functions[0], x, w)
        return lax.switch(number(t), functions, x, w)

    def plain(t: Any, x: Any, w: Any) -> Any:
        i = min(max(math.floor(t), 0), len(branches) - 1)
        return branch(branches[i], x * t, w)

    return Case(function, plain, [as_array(float(draw(st.integers(0, 2))) + 0.4), operand, weight])


@st.composite
def loops(draw: Any) -> Case:
    """A loop whose number of steps depends on its arguments; how it is counted tells nothing of derivatives."""
    p = draw(programs(max_inputs=2, max_instructions=4))
    limit = as_array(float(draw(st.integers(0, 4))))
    carry = [as_array(x) for x in p.inputs[:1]]
    weights = [as_array(x) for x in p.inputs[1:]]

    def step(limit: Any, weights: Any, i: Any, carry: Any) -> Any:
        return next_carry(p, p(carry[0] * (1 + 0.1 * limit), *weights), carry)

    def function(limit: Any, carry: Any, weights: Any) -> Any:
        def body(state: Any) -> Any:
            return {"i": state["i"] + 1, "c": step(limit, weights, state["i"], state["c"])}

        return lax.while_loop(lambda state: state["i"] < limit, body, {"i": 0, "c": carry})["c"]

    def plain(limit: Any, carry: Any, weights: Any) -> Any:
        for i in range(math.ceil(limit)):
            carry = step(limit, weights, i, carry)
        return carry

    return Case(function, plain, [limit, carry, weights])


def scalar(f: Function) -> Function:
    return lambda *args: sum(jnp.sum(jnp.sin(x)) for x in tree.leaves(f(*args)))


def tangents(args: Any, seed: int) -> Any:
    leaves, treedef = tree.flatten(args)
    return tree.unflatten(treedef, random_like(leaves, seed))


def forward(f: Function, args: Any) -> Any:
    return jvp(f, args, tangents(args, 1))


def backward(f: Function, args: Any) -> Any:
    out, pull = vjp(f, *args)
    return out, pull(tangents(out, 2))


def second(f: Function, args: Any) -> Any:
    """Forward over reverse, and reverse over reverse."""
    argnums = tuple(range(len(args)))
    gradient = grad(scalar(f), argnums)
    directions = tangents(args, 3)
    pulled = vjp(gradient, *args)[1](directions)
    return jvp(gradient, args, directions)[1], pulled


def assert_as_in_python(case: Case, of: Callable[[Function, Any], Any], tolerance: float = 1e-8) -> None:
    """Eager, compiled, within a compiled function and as a jaxpr, it is what it is in Python."""
    expected = of(case.plain, case.args)
    assert_close(of(case.function, case.args), expected, tolerance)
    assert_close(jit(lambda *args: of(case.function, args))(*case.args), expected, tolerance)
    assert_close(of(jit(case.function), case.args), expected, tolerance)
    closed = make_jaxpr(lambda *args: of(case.function, args))(*case.args)
    check_jaxpr(closed)
    outs = jaxpr_as_fun(closed)(*tree.leaves(case.args))
    assert_close(tree.unflatten(tree.structure(expected), outs), expected, tolerance)


def value(f: Function, args: Any) -> Any:
    return f(*args)


@few
@given(scans())
def test_scan_is_a_loop_in_value(case: Case) -> None:
    assert_as_in_python(case, value)
    with disable_jit():
        assert_close(case.function(*case.args), case.plain(*case.args))


@few
@given(scans())
def test_scan_is_a_loop_forward(case: Case) -> None:
    assert_as_in_python(case, forward)


@few
@given(scans())
def test_scan_is_a_loop_backward(case: Case) -> None:
    assert_as_in_python(case, backward)


@pytest.mark.slow
@fewer
@given(scans())
def test_scan_is_a_loop_to_second_order(case: Case) -> None:
    assert_as_in_python(case, second)


@few
@given(choices())
def test_a_choice_is_an_if_in_value(case: Case) -> None:
    assert_as_in_python(case, value)


@pytest.mark.slow
@few
@given(choices())
def test_a_choice_is_an_if_forward_and_backward(case: Case) -> None:
    assert_as_in_python(case, forward)
    assert_as_in_python(case, backward)


@pytest.mark.slow
@fewer
@given(choices())
def test_a_choice_is_an_if_to_second_order(case: Case) -> None:
    assert_as_in_python(case, second)


@few
@given(loops())
def test_while_is_a_loop(case: Case) -> None:
    assert_as_in_python(case, value)
    with disable_jit():
        assert_close(case.function(*case.args), case.plain(*case.args))


@few
@given(loops())
def test_while_is_a_loop_forward(case: Case) -> None:
    assert_as_in_python(case, forward)


# Batches -------------------------------------------------------------------------------------------------------------


def batched(args: Any, which: Sequence[bool], limits: bool) -> tuple[Any, Any]:
    """Three examples of some of the arguments; and which axis of each is mapped."""
    out = []
    for i, (x, m) in enumerate(zip(args, which, strict=True)):
        if not m:
            out.append(x)
        elif i == 0 and limits:
            out.append(as_array(np.asarray([0.2, 2.4, 1.3])))
        else:
            leaves, treedef = tree.flatten(x)
            out.append(tree.unflatten(treedef, random_like([np.zeros((3, *y.shape)) for y in leaves], 11 + i)))
    return tuple(out), tuple(0 if m else None for m in which)


def check_batch(case: Case, which: Sequence[bool], of: Callable[[Function, Any], Any], limits: bool) -> None:
    args, axes = batched(case.args, which, limits)

    def example(i: int) -> Any:
        return tuple(tree.tree_map(lambda x: x[i], a) if m else a for a, m in zip(args, which, strict=True))

    rows = [of(case.plain, example(i)) for i in range(3)]
    expected = tree.tree_map(lambda *xs: jnp.stack(xs), *rows)
    mapped = vmap(lambda *xs: of(case.function, xs), in_axes=axes)
    assert_close(mapped(*args), expected, 1e-8)
    assert_close(jit(mapped)(*args), expected, 1e-8)


some = st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(any)


@few
@given(scans(), some)
def test_a_batch_of_scans(case: Case, which: Any) -> None:
    which = [m and bool(a) for m, a in zip(which, case.args, strict=True)]
    if not any(which):
        which[0] = True
    check_batch(case, which, value, False)
    check_batch(case, which, backward, False)


@few
@given(choices(), some)
def test_a_batch_of_choices(case: Case, which: Any) -> None:
    check_batch(case, which, value, True)
    check_batch(case, which, backward, True)


@few
@given(loops(), some)
def test_a_batch_of_while_loops(case: Case, which: Any) -> None:
    which = [m and (i == 0 or bool(a)) for i, (m, a) in enumerate(zip(which, case.args, strict=True))]
    if not any(which):
        which[0] = True
    check_batch(case, which, value, True)
    check_batch(case, which, forward, True)


@few
@given(st.one_of(scans(), choices()))
def test_derivatives_of_a_batch_are_the_batch_of_derivatives(case: Case) -> None:
    which = [bool(tree.leaves(a)) for a in case.args]
    limits = not isinstance(case.args[0], tuple)
    args, axes = batched(case.args, which, limits)
    argnums = tuple(range(3))

    def total(*xs: Any) -> Any:
        return sum(jnp.sum(jnp.sin(y)) for y in tree.leaves(vmap(case.function, in_axes=axes)(*xs)))

    outside = grad(total, argnums)(*args)
    within = vmap(grad(scalar(case.function), argnums), in_axes=axes)(*args)
    assert_close(outside, within, 1e-8)


# Rules of the user's own ---------------------------------------------------------------------------------------------


@custom_jvp
def doubled(x: Any) -> Any:
    return 2.0 * x


doubled.defjvp(lambda primals, ts: (doubled(primals[0]), 3.0 * ts[0]))  # which is not true, so that it is seen


@custom_vjp
def also_doubled(x: Any) -> Any:
    return 2.0 * x


also_doubled.defvjp(lambda x: (also_doubled(x), x), lambda _, ct: (3.0 * ct,))

BODIES: dict[str, Callable[[Function], Function]] = {
    "scan": lambda h: lambda x: lax.scan(lambda c, _: (h(c), None), x, None, length=2)[0],
    "a long scan": lambda h: lambda x: lax.scan(lambda c, i: (jnp.where(i < 2, h(c), c), None), x, jnp.arange(60))[0],
    "cond": lambda h: lambda x: lax.cond(x > 0, lambda x: h(h(x)), lambda x: x, x),
    "fori_loop": lambda h: lambda x: lax.fori_loop(0, 2, lambda _, c: h(c), x),
    "map": lambda h: lambda x: lax.map(lambda y: h(h(y)), jnp.stack([x]))[0],
}


@pytest.mark.parametrize("rule", [doubled, also_doubled])
@pytest.mark.parametrize("name", sorted(BODIES))
def test_custom_rules_in_bodies_are_kept(name: str, rule: Function) -> None:
    f = BODIES[name](rule)
    x, batch = jnp.asarray(1.0), jnp.ones(2)
    assert float(f(x)) == float(jit(f)(x)) == 4
    for g in (grad(f), jit(grad(f)), grad(jit(f)), lambda x: jvp(f, (x,), (jnp.ones_like(x),))[1]):
        assert float(g(x)) == 9
        assert_close(vmap(g)(batch), 9 * batch)
    assert_close(grad(lambda xs: vmap(f)(xs).sum())(batch), 9 * batch)
    closed = make_jaxpr(f)(x)
    assert float(grad(lambda x: jaxpr_as_fun(closed)(x)[0])(x)) == 9
