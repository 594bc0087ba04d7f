"""``preaccumulate="auto"``: which parts of a program keep their local Jacobian, and that nothing else changes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import pullback
import pullback.numpy as jnp
from pullback import (
    ShapeDtypeStruct,
    ad,
    custom_jvp,
    grad,
    hessian,
    jacrev,
    jit,
    jvp,
    lax,
    make_jaxpr,
    new_ref,
    pure_callback,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.ad_checkpoint import saved_residuals
from pullback.core.errors import ArgumentError, ConcretizationTypeError
from pullback.core.jaxpr import subjaxprs
from pullback.derivatives import preaccumulate
from pullback.extend import Primitive
from pullback.primitives import elementwise
from pullback.transforms.preaccumulation import partials
from pullback.transforms.preaccumulation.automatic import automatic
from tests.helpers import assert_close, chosen
from tests.random_programs import Program, programs, random_like

pytestmark = pytest.mark.usefixtures("all_in_x64")


def parts(f: Any, *args: Any) -> list[tuple[int, list[int]]]:
    """The parts that are chosen: before how many other equations each stands, and how many equations it has."""
    closed = make_jaxpr(f)(*args)
    eqns = automatic(closed, (True,) * len(args), "f").jaxpr.eqns
    return [
        (i, [len(p.eqns) for p in subjaxprs(eqn)])
        for i, eqn in enumerate(eqns)
        if eqn.primitive.name == "preaccumulate"
    ]


# Laws ----------------------------------------------------------------------------------------------------------------


@given(programs())
@settings(max_examples=chosen(25, 200))
def test_gradients_of_random_programs(p: Program) -> None:
    args, argnums = p.arguments(), tuple(range(len(p.inputs)))
    assert_close(grad(p.scalar, argnums, preaccumulate="auto")(*args), grad(p.scalar, argnums)(*args))


@given(programs())
@settings(max_examples=chosen(25, 200))
def test_parts_that_are_random_programs(p: Program) -> None:
    args, v = p.arguments(), p.directions(1)
    out, tangent = jvp(preaccumulate(p), args, v)
    assert_close((out, tangent), jvp(p, args, v))
    u = random_like(out, 2)
    assert_close(vjp(preaccumulate(p), *args)[1](u), vjp(p, *args)[1](u))


# Which parts ---------------------------------------------------------------------------------------------------------


def bend(x: Any) -> Any:
    """Six equations, of which reverse mode would keep four values."""
    return jnp.sin(x) * jnp.exp(jnp.cos(x)) + jnp.tanh(x)


def test_a_run_of_operations_on_elements_is_a_part() -> None:
    x = np.linspace(0, 1, 8)
    assert parts(bend, x) == [(0, [6])]
    assert parts(lambda x: x + 1, x) == []  # which keeps nothing
    assert parts(jnp.sin, x) == []  # which keeps one value, as its Jacobian is


def test_a_program_without_parts_is_itself() -> None:
    step = jit(lambda c: jnp.sin(jnp.cumsum(c)))  # which keeps a cosine for each step, as its Jacobian is
    closed = make_jaxpr(lambda x: lax.scan(lambda c, _: (step(c), None), x, None, 3)[0])(np.ones(4))
    assert automatic(closed, (True,), "f") is closed


def test_what_is_not_element_for_element_ends_a_part() -> None:
    x, w = np.linspace(0, 1, 8), np.eye(8)
    f = lambda x, w: jnp.sum(bend(bend(x) @ w))
    assert parts(f, x, w) == [(0, [6]), (2, [6])]


def test_a_part_of_more_inputs_and_results_than_values_is_none() -> None:
    def mixes(a: Any, b: Any, c: Any) -> Any:
        return a * b * c, jnp.sin(a) + b * c, jnp.cos(c) * a * b

    xs = (np.ones(4),) * 3
    found = parts(mixes, *xs)
    held = sum(a.size for a, _ in saved_residuals(mixes, *xs))
    assert all(count < 10 for _, (count,) in found)
    assert held <= 4 * 9


def test_values_that_are_kept_outside_too_do_not_count() -> None:
    def f(x: Any, w: Any, outside: bool) -> Any:
        s = jnp.sin(x)
        y = s * s * s  # which keeps s and s * s, beside the cosine of x
        return jnp.sum(y) + (jnp.sum(s @ w) if outside else 0)

    x, w = np.linspace(0, 1, 8), np.ones((8, 2))
    assert parts(lambda x, w: f(x, w, False), x, w) == [(0, [3])]
    assert parts(lambda x, w: f(x, w, True), x, w) == []  # s is kept for the product, and would be a second result


def test_loops_within_have_parts_too() -> None:
    x = np.linspace(0, 1, 8)

    def f(x: Any, w: Any) -> Any:
        return lax.scan(lambda c, _: (bend(c @ w), None), x, None, 3)[0].sum()

    w = np.eye(8) * 0.9
    kept = [len(saved_residuals(lambda x, auto=auto: scanned(x, w, auto), x)) for auto in (None, "auto")]
    assert kept == [6, 2]
    assert_close(grad(f, preaccumulate="auto")(x, w), grad(f)(x, w))
    assert_close(jit(grad(f, (0, 1), preaccumulate="auto"))(x, w), grad(f, (0, 1))(x, w))


def scanned(x: Any, w: Any, auto: Any) -> Any:
    return lax.scan(lambda c, _: (bend(c @ w), c), x, None, 3, preaccumulate=auto)[1].sum()


def test_scan_with_parts_is_scan() -> None:
    x, w = np.linspace(0, 1, 8), np.eye(8) * 0.9
    plain, changed = (lambda x, w, auto=auto: scanned(x, w, auto) for auto in (None, "auto"))
    assert_close(changed(x, w), plain(x, w))
    assert_close(grad(changed, (0, 1))(x, w), grad(plain, (0, 1))(x, w))
    assert_close(jit(grad(changed, (0, 1)))(x, w), grad(plain, (0, 1))(x, w))
    assert_close(hessian(changed)(x, w), hessian(plain)(x, w))
    xs = x + np.zeros((2, 1))
    assert_close(vmap(grad(changed), (0, None))(xs, w), vmap(grad(plain), (0, None))(xs, w))


def test_scan_with_parts_and_few_states() -> None:
    def f(x: Any, auto: Any) -> Any:
        return lax.scan(lambda c, _: (bend(c), c), x, None, 4, checkpoints=2, preaccumulate=auto)[0].sum()

    x = np.linspace(0, 1, 8)
    assert_close(grad(lambda x: f(x, "auto"))(x), grad(lambda x: f(x, None))(x))


@pytest.mark.parametrize("bounds", ["known", "traced"])
def test_fori_loop_with_parts_is_fori_loop(bounds: str) -> None:
    def run(x: Any, w: Any, choice: Any) -> Any:
        count = 3 if bounds == "known" else jnp.asarray(3) + jnp.asarray(w[0, 1], int)
        return lax.fori_loop(0, count, lambda i, c: bend(c @ w) * i, x, preaccumulate=choice)

    x, w = np.linspace(0, 1, 8), np.eye(8) * 0.9
    plain, changed = (lambda x, w, choice=choice: jnp.sum(run(x, w, choice)) for choice in (None, "auto"))
    assert_close(changed(x, w), plain(x, w))
    for wrap in (lambda f: f, jit):
        assert_close(wrap(grad(changed, (0, 1)))(x, w), grad(plain, (0, 1))(x, w))
    xs = x + np.zeros((2, 1))
    assert_close(vmap(grad(changed), (0, None))(xs, w), vmap(grad(plain), (0, None))(xs, w))
    assert "preaccumulate" in str(make_jaxpr(changed)(x, w))


def test_while_loop_with_parts_is_while_loop() -> None:
    def run(x: Any, w: Any, choice: Any, **options: Any) -> Any:
        step = lambda c: (c[0] + 1, bend(c[1] @ w))
        return lax.while_loop(lambda c: c[0] < 4, step, (0, x), preaccumulate=choice, **options)[1].sum()

    x, w = np.linspace(0, 1, 8), np.eye(8) * 0.9
    plain = grad(lambda x, w: run(x, w, None), (0, 1))(x, w)
    assert_close(grad(lambda x, w: run(x, w, "auto"), (0, 1))(x, w), plain)
    assert_close(grad(lambda x, w: run(x, w, "auto", checkpoints=2), (0, 1))(x, w), plain)
    found = str(make_jaxpr(lambda x, w: run(x, w, "auto"))(x, w))
    assert "preaccumulate" in found
    with pullback.disable_jit():
        assert_close(run(x, w, "auto"), run(x, w, None))


def test_vjp_and_jacrev_with_parts() -> None:
    f = lambda x, w: {"bent": bend(x @ w), "sum": jnp.sum(bend(x))}
    x, w = np.linspace(0, 1, 4), np.eye(4) * 0.9
    outs = [vjp(f, x, w, preaccumulate=choice) for choice in (None, "auto")]
    assert_close(outs[1][0], outs[0][0])
    assert_close(outs[1][1](outs[0][0]), outs[0][1](outs[0][0]))
    kept = [len({id(a) for a in pullback.tree.leaves(pull) if a.shape == (4,)}) for _, pull in outs]
    assert kept == [11, 3]  # five for each bend, or its derivative; and x, which w is multiplied by
    assert_close(*[jacrev(f, (0, 1), preaccumulate=choice)(x, w) for choice in (None, "auto")])
    with_aux = lambda x: (bend(x), "a name")
    out, pull, aux = vjp(with_aux, x, has_aux=True, preaccumulate="auto")
    assert_close(pull(out), vjp(bend, x)[1](out))
    assert aux == jacrev(with_aux, has_aux=True, preaccumulate="auto")(x)[1] == "a name"


def test_vjp_of_references_with_parts() -> None:
    def f(ref: Any, x: Any) -> Any:
        ref[...] = bend(ref[...] * x)
        return jnp.sum(ref[...] * bend(x))

    def gradients(choice: Any) -> Any:
        ref, total = new_ref(np.linspace(0.1, 1, 4)), new_ref(np.zeros(4))
        out, pull = vjp(f, ref, np.linspace(0.3, 0.5, 4), preaccumulate=choice)
        return out, ref[...], pull.with_refs(total, ad.GradValue())(jnp.ones(()))[1], total[...]

    assert_close(gradients("auto"), gradients(None))


def test_a_solver_is_found() -> None:
    points = np.linspace(0.5, 2.0, 20), np.linspace(1.0, 2.0, 20)

    def solve(a: Any, b: Any) -> Any:
        return lax.fori_loop(0, 12, lambda i, x: x - (x**3 + b * jnp.sin(x) - a) / (3 * x**2 + b * jnp.cos(x)), a)

    loss = lambda a, b: jnp.sum(vmap(solve)(a, b) ** 2)
    assert_close(grad(loss, (0, 1), preaccumulate="auto")(*points), grad(loss, (0, 1))(*points))
    program = make_jaxpr(grad(loss, (0, 1), preaccumulate="auto"))(*points)
    (part,) = [eqn for eqn in program.eqns if eqn.primitive.name == "preaccumulate"]
    assert [v.aval.shape for v in part.outvars] == [(20,)] * 3  # the root, and its derivatives by both
    assert not any(eqn.primitive.name == "scan" for eqn in program.eqns)


# How it is called ----------------------------------------------------------------------------------------------------


def test_values_and_what_stands_beside_them() -> None:
    x = np.linspace(0, 1, 4)
    f = lambda x, n: (jnp.sum(bend(x)) * n, {"twice": 2 * x})
    got, expected = (value_and_grad(f, has_aux=True, preaccumulate=p)(x, 3) for p in ("auto", None))
    assert_close(got, expected)
    f = lambda x: (jnp.sum(bend(x)), ["a name", 3, jnp.cos(x), None])
    _, (name, number, array, _) = grad(f, has_aux=True, preaccumulate="auto")(x)
    assert (name, type(number), number) == ("a name", int, 3)
    assert_close(array, jnp.cos(x))


def test_values_from_outside_are_differentiated_by() -> None:
    inner = lambda y: grad(lambda x: jnp.sum(bend(x * y)), preaccumulate="auto")(0.7)
    plain = lambda y: grad(lambda x: jnp.sum(bend(x * y)))(0.7)
    assert_close(grad(inner)(1.3), grad(plain)(1.3))
    assert_close(vmap(inner)(np.array([1.3, 0.4])), vmap(plain)(np.array([1.3, 0.4])))


def test_another_transformation_may_differentiate_by_what_a_part_holds_fixed() -> None:
    def f(x: Any, z: Any) -> Any:  # z is complex, and is summed
        return jnp.sum(bend(x * jnp.sum(z.real)) * jnp.abs(z))

    x, z = np.linspace(0, 1, 3), np.array([1.0 + 2j, 0.5j, 2.0])
    inner = lambda f, p: lambda z: jnp.sum(grad(f, preaccumulate=p)(x, z))
    assert_close(grad(inner(f, "auto"))(z), grad(inner(f, None))(z))


def test_what_is_not_differentiated_need_not_be_differentiable() -> None:
    def f(x: Any, y: Any) -> Any:
        fixed = [pure_callback(np.sin, ShapeDtypeStruct((), "float64"), z) for z in (lax.stop_gradient(x), y)]
        return bend(x) * fixed[0] * fixed[1]

    assert_close(grad(f, preaccumulate="auto")(0.7, 1.2), grad(f)(0.7, 1.2))


@custom_jvp
def with_a_faulty_rule(x: Any) -> Any:
    return jnp.sin(x)


@with_a_faulty_rule.defjvp
def _(primals: Any, tangents: Any) -> Any:
    raise ZeroDivisionError("within the rule")


def test_an_error_within_a_rule_comes_out() -> None:
    step = lambda c, _: (with_a_faulty_rule(c) * jnp.cos(c), None)
    inner = lambda x: lax.fori_loop(0, 3, lambda i, c: with_a_faulty_rule(c), x)
    for call in (
        lambda: grad(lambda x: jnp.exp(with_a_faulty_rule(x)), preaccumulate="auto")(0.5),
        lambda: grad(inner, preaccumulate="auto")(0.5),
        lambda: lax.scan(step, 0.5, None, 3, preaccumulate="auto"),
        lambda: lax.scan(lambda c, _: (inner(c), None), 0.5, None, 3, preaccumulate="auto"),
    ):
        with pytest.raises(ZeroDivisionError, match="within the rule"):
            call()


def test_an_error_within_the_derivative_of_an_operation_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*operands: Any, **params: Any) -> Any:
        raise ZeroDivisionError("within the table of partial derivatives")

    monkeypatch.setitem(elementwise.mul_p.more_rules, partials.edges.name, faulty)
    with pytest.raises(ZeroDivisionError, match="within the table"):
        grad(lambda x: bend(2.5 * x), preaccumulate="auto")(0.5)
    step = lambda c: lax.fori_loop(0, 3, lambda i, c: bend(1.5 * c), c)
    with pytest.raises(ZeroDivisionError, match="within the table"):
        lax.scan(lambda c, _: (step(c), None), 0.5, None, 3, preaccumulate="auto")


def test_what_refuses_its_derivative_is_in_no_part() -> None:
    host = lambda y: pure_callback(np.cos, ShapeDtypeStruct((), "float64"), y)
    opaque = Primitive("opaque_of_parts")  # which has no derivative
    opaque.def_impl(np.cos)
    opaque.def_abstract_eval(lambda aval: aval)
    for fixed in (host, opaque.bind):

        def f(c: Any, y: Any, choice: Any, fixed: Any = fixed) -> Any:
            return lax.scan(lambda c, _: (bend(c) * fixed(y), None), c, None, 3, preaccumulate=choice)[0]

        assert_close(f(0.5, 0.3, "auto"), f(0.5, 0.3, None))
        assert_close(grad(f)(0.5, 0.3, "auto"), grad(f)(0.5, 0.3, None))


def test_the_function_is_traced() -> None:
    with pytest.raises(ConcretizationTypeError, match='grad with preaccumulate="auto"'):
        grad(lambda x: x if x > 0 else -x, preaccumulate="auto")(1.0)
    with pullback.disable_jit():
        assert grad(lambda x: x if x > 0 else -x, preaccumulate="auto")(1.0) == 1.0


@pytest.mark.parametrize("choice", ["all", True, 3])
def test_there_is_one_choice(choice: Any) -> None:
    for call in (
        lambda: grad(bend, preaccumulate=choice),
        lambda: value_and_grad(bend, preaccumulate=choice),
        lambda: vjp(bend, 1.0, preaccumulate=choice),
        lambda: jacrev(bend, preaccumulate=choice),
        lambda: lax.scan(lambda c, x: (c, x), 0.0, np.ones(2), preaccumulate=choice),
        lambda: lax.fori_loop(0, 2, lambda i, c: c, 0.0, preaccumulate=choice),
        lambda: lax.while_loop(lambda c: c < 0, lambda c: c, 0.0, preaccumulate=choice),
    ):
        with pytest.raises(ArgumentError, match='preaccumulate must be "auto" or None, got'):
            call()


def test_it_is_pickled_with_its_choice() -> None:
    f = pickle.loads(pickle.dumps(grad(jnp.sin, preaccumulate="auto")))
    assert "sin" not in [eqn.primitive.name for eqn in make_jaxpr(f)(1.0).eqns][1:]
    assert_close(f(1.0), grad(jnp.sin)(1.0))


@pytest.mark.parametrize(
    ("step", "plain", "auto"),
    [
        (lambda c, w: c * jnp.sin(c), 3, 1),  # which keeps the carry, its sine and its cosine
        (lambda c, w: c * jnp.sin(w) * jnp.exp(jnp.cos(w)), 0, 0),  # factors that are computed once
    ],
    ids=["carry", "constants"],
)
def test_values_of_each_step_are_kept_for_each(step: Any, plain: int, auto: int) -> None:
    x, w = np.linspace(0.1, 1, 8), np.linspace(0.2, 0.3, 8)

    def kept(choice: Any) -> int:
        run = lambda x: lax.scan(lambda c, _: (step(c, w), None), x, None, 5, preaccumulate=choice)[0]
        return sum(aval.shape == (5, 8) for aval, _ in saved_residuals(run, x))

    assert (kept(None), kept("auto")) == (plain, auto)
