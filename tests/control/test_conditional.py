"""``cond`` and ``switch``: what they give, what their programs look like and cost, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    debug,
    disable_jit,
    effects_barrier,
    errors,
    grad,
    jit,
    jvp,
    lax,
    make_jaxpr,
    named_scope,
    pure_callback,
    vmap,
)
from pullback.control import conditional
from pullback.core import tree
from pullback.core.errors import ControlFlowError
from pullback.core.jaxpr import subjaxprs
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.trace import state

Function = Callable[..., Any]


def count(jaxpr: Any) -> int:
    """All equations of a program, with those of its programs."""
    return sum(1 + sum(map(count, subjaxprs(eqn))) for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns)


# What they give ------------------------------------------------------------------------------------------------------


def test_the_branch_is_chosen_un_compiled_and_compiled() -> None:
    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda x: {"a": jnp.sin(x)}, lambda x: {"a": x**2}, x)["a"]

    def g(i: Any, x: Any) -> Any:
        return lax.switch(i, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], x)

    for wrap in (lambda h: h, jit):
        for p, expected in (
            (True, np.sin(3.0)),
            (False, 9.0),
            (jnp.asarray(1), np.sin(3.0)),
            (0.0, 9.0),
            (-2, np.sin(3.0)),
        ):
            assert np.allclose(wrap(f)(p, 3.0), expected)
        for i, expected in ((0, 3), (1, 6), (2, 9), (-5, 3), (7, 9), (np.uint8(200), 9), (np.int8(-128), 3)):
            assert float(wrap(g)(i, 3.0)) == expected


def test_the_forms_with_an_operand() -> None:
    assert float(lax.cond(True, lambda x: x + 1, lambda x: x, operand=2.0)) == 3
    assert lax.cond(False, lambda x: None, lambda x: x, operand=None) is None
    assert float(lax.cond(False, 1.0, lambda x: x, 5.0, lambda x: -x)) == -5
    assert float(jit(lambda p: lax.cond(p, 1.0, lambda x: x, 5.0, lambda x: -x))(True)) == 1
    assert float(lax.switch(1, [jnp.sin, jnp.cos], operand=0.0)) == 1
    assert float(lax.switch(5, [jnp.cos], 0.0)) == 1


def test_un_compiled_only_the_chosen_branch_runs_as_python() -> None:
    def one(x: Any) -> Any:
        return x if x > 1 else -x  # on its value

    def other(x: Any) -> Any:
        assert not state.trace.eager  # traced, to see what it returns
        return 2.0 * x

    assert float(lax.cond(True, one, other, 0.5)) == -0.5
    assert float(grad(lambda x: lax.cond(x > 0, one, other, x))(0.5)) == -1
    assert float(grad(lambda x: lax.switch(x.astype(int), [one, other], x))(0.5)) == -1
    with disable_jit():
        assert float(jit(lambda x: lax.cond(x > 0, one, other, x))(0.5)) == -0.5


UNLIKE: dict[str, tuple[Function, ...]] = {
    "dtypes": (lambda x: x, lambda x: 1),
    "shapes": (lambda x: jnp.ones(3) * x, lambda x: jnp.ones(2)),
    "trees": (lambda x: (x, x), lambda x: [x, x]),
    "keys": (lambda x: {"a": x}, lambda x: {"b": x}),
    "nothing": (lambda x: x, lambda x: None),
    "booleans": (lambda x: 1, lambda x: True),
    "of three": (lambda x: x, lambda x: x + 1, lambda x: x.astype(int)),
}


@pytest.mark.parametrize("branches", UNLIKE.values(), ids=UNLIKE)
def test_branches_are_compared_eager_as_compiled(branches: tuple[Function, ...]) -> None:
    def calls(i: int) -> dict[str, Function]:
        some: dict[str, Function] = {"switch": lambda x: lax.switch(i, branches, x)}
        if len(branches) == 2:
            some["cond"] = lambda x: lax.cond(i == 1, branches[1], branches[0], x)
        return some

    for i in range(len(branches)):
        for call in calls(i).values():
            with pytest.raises(ControlFlowError) as compiled:
                jit(call)(0.5)
            for eager in (call, lambda x, call=call: grad(lambda x: tree.leaves(call(x))[0])(x), call):
                with pytest.raises(ControlFlowError, match=re.escape(str(compiled.value))):
                    eager(0.5)


def test_the_result_has_the_type_that_all_branches_return() -> None:
    strong = jnp.ones((), "float32")
    first_strong, first_weak = [lambda x: strong, lambda x: x, lambda x: 1.0], [lambda x: x, lambda x: strong]
    for branches, weak in ((first_strong, False), (first_weak, True)):  # as in JAX
        for i in range(len(branches)):
            for _ in range(2):  # compared, and remembered
                out = lax.switch(i, branches, 2.0)
                assert (out.dtype, out.weak_type) == (np.float32, weak)
                assert jit(lambda x, i=i, branches=branches: lax.switch(i, branches, x))(2.0).weak_type is weak
    check = lambda x, p: lax.cond(p, lambda: pure_callback(lambda x: x, strong, x), lambda: x)  # as error_if's
    assert jit(check)(2.0, False).weak_type
    assert float(jit(grad(lambda x: lax.cond(x > 0, lambda: strong * x, lambda: x)))(2.0)) == 1
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type


def test_branches_are_traced_once_for_functions_and_types() -> None:
    traced: list[Any] = []

    def other(x: Any) -> Any:
        traced.append(x.shape)
        return x

    def call(x: Any, scale: Any) -> Any:
        return lax.cond(True, lambda x: x * scale, lambda x: other(x) * scale, x)  # other functions in each call

    x = jnp.ones(3)
    for i in range(4):
        np.testing.assert_array_equal(call(x, jnp.full(3, i)), jnp.full(3, float(i)))
    assert traced == [(3,)]
    call(jnp.ones((2, 3)), jnp.ones(3))
    assert traced == [(3,), (2, 3)]
    with pytest.raises(ControlFlowError, match=r"the result is f32\[3\] from false_fun .*f32\[2,3\]"):
        lax.cond(True, lambda x: x * jnp.ones((2, 1)), lambda x: other(x), x)


def test_functions_that_seem_to_be_those_of_before() -> None:
    class Of:
        def __init__(self, result: Any) -> None:
            self.result = result

    holder = Of(1.0)
    call = lambda i: lax.switch(i, [lambda: holder.result, lambda: holder.result])
    assert float(call(0)) == 1
    holder.result = (2, jnp.ones(3))  # the functions are the same, and what they return is not
    number, array = call(1)
    assert (number.dtype, array.shape) == (np.int32, (3,))
    holder.result = {"a": 1}
    assert call(0)["a"].dtype == np.int32


def test_an_operand_that_all_branches_hand_through_is_not_mapped() -> None:
    def f(i: Any, b: Any, c: Any) -> Any:
        return lax.switch(i, [lambda b, c: (b, c, 1.0), lambda b, c: (b, c + 1, 2.0)], b, c)

    i, b = jnp.arange(3), jnp.arange(2)
    outs = vmap(f, (0, None, None), (None, 0, 0))(i, b, 5.0)
    np.testing.assert_array_equal(outs[0], b)
    np.testing.assert_array_equal(outs[1], [5.0, 6.0, 6.0])
    np.testing.assert_array_equal(outs[2], [1.0, 2.0, 2.0])
    np.testing.assert_array_equal(jit(vmap(f, (0, None, None), (None, 0, 0)))(i, b, 5.0)[0], b)
    with pytest.raises(errors.BatchAxisError, match="out_axes is None for a result that depends on the mapped"):
        vmap(f, (0, None, None), (None, None, 0))(i, b, 5.0)
    with pytest.raises(errors.BatchAxisError, match="out_axes is None for a result that depends on the mapped"):
        vmap(f, (0, None, 0), (None, None, 0))(i, b, jnp.ones(3))


def test_many_operations_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * 2, lambda x: x, x)

    x = jnp.ones((3, 2))
    run = jit(f).trace(x).jaxpr
    monkeypatch.setattr(conditional, "INTERPRETED", 0)
    from pullback.core.jaxpr import jaxpr_as_fun

    assert np.allclose(jaxpr_as_fun(run)(x)[0], f(x))


def test_weakly_typed_results_take_the_dtype_of_the_others() -> None:
    def f(p: Any) -> Any:
        return lax.cond(p, lambda: 1, lambda: jnp.float32(2))

    assert (jit(f)(True).dtype, float(jit(f)(True))) == (np.float32, 1)
    assert not jit(f)(True).weak_type
    assert jit(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0))(True).weak_type


# Batches -------------------------------------------------------------------------------------------------------------


def test_gradients_stay_finite_where_a_branch_that_is_not_taken_is_singular() -> None:
    xs = jnp.asarray([-1.0, 0.0, 2.0])

    def f(w: Any, x: Any) -> Any:
        return lax.cond(x > 0, lambda x: jnp.log(w * x), lambda x: 0.0, x)

    def total(w: Any, xs: Any) -> Any:
        return vmap(f, (None, 0))(w, xs).sum()

    for wrap in (lambda h: h, jit):
        assert np.allclose(wrap(grad(total))(3.0, xs), 1 / 3)
        assert np.allclose(wrap(grad(total))(3.0, -abs(xs)), 0)  # no example takes the branch
        assert np.allclose(wrap(grad(total, 1))(3.0, xs), [0, 0, 0.5])
        assert np.allclose(wrap(vmap(grad(f, 1), (None, 0)))(3.0, xs), [0, 0, 0.5])
        assert np.allclose(wrap(jvp)(lambda w: total(w, xs), (3.0,), (1.0,))[1], 1 / 3) if wrap is not jit else True
        two = vmap(lambda w, xs: grad(total)(w, xs))
        both = jnp.asarray([[1.0, -1.0, 2.0], [-1.0, -2.0, -3.0]])
        assert np.allclose(wrap(two)(jnp.asarray([3.0, 4.0]), both), [2 / 3, 0])


def test_a_choice_that_all_examples_share_stays_a_choice() -> None:
    closed = make_jaxpr(vmap(lambda x, p: lax.cond(p, jnp.sin, jnp.cos, x), (0, None)))(jnp.ones(3), True)
    assert [eqn.primitive for eqn in closed.eqns].count(lax.cond_p) == 1
    closed = make_jaxpr(vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)))(jnp.ones(3))
    assert lax.cond_p not in [eqn.primitive for eqn in closed.eqns]


def test_what_is_not_differentiated_is_not_guarded() -> None:
    def f(x: Any) -> Any:
        return vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(x)

    forward = jit(f).lower(jnp.ones(3)).as_text()
    assert "dynamic_slice" not in forward
    assert forward.count("stablehlo.select") == 1


# Programs ------------------------------------------------------------------------------------------------------------


def test_how_it_is_printed() -> None:
    closed = make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0)
    assert str(closed) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:bool[] = gt a 0.0:f32[]\n"
        "    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b\n"
        "    d:f32[] = cond[\n"
        "      branches=(\n"
        "        { lambda ; e:f32[]. let f:f32[] = cos e in (f,) }\n"
        "        { lambda ; g:f32[]. let h:f32[] = sin g in (h,) }\n"
        "      )\n"
        "    ] c a\n"
        "  in (d,) }"
    )
    check_jaxpr(closed)


def test_a_known_predicate_leaves_one_branch_in_the_compiled_program() -> None:
    text = jit(lambda x: lax.cond(True, jnp.sin, jnp.cos, x)).lower(1.0).as_text()
    assert "sine" in text
    assert "cosine" not in text
    assert "case" not in text


def test_what_is_not_needed_is_left_out() -> None:
    def f(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(p, lambda: (jnp.sin(x), jnp.tanh(y)), lambda: (x, y))[0]

    lowered = jit(f).lower(True, 1.0, 2.0).as_text()
    assert "tanh" not in lowered
    assert "%arg2" not in lowered


def test_residuals_of_the_same_type_are_one() -> None:
    def f(p: Any, x: Any) -> Any:
        return lax.switch(p, [lambda x: jnp.sin(jnp.sin(x)), jnp.exp, lambda x: jnp.tanh(x) ** 2], x).sum()

    closed = make_jaxpr(grad(f, 1))(1, jnp.ones(3))
    first = next(eqn for eqn in closed.eqns if eqn.primitive is lax.cond_p)
    assert len(first.outvars) <= 3  # the result, and the residuals of that branch which has the most


def nested(depth: int) -> Function:
    if depth == 0:
        return lambda x: jnp.sin(x) * x
    inner = nested(depth - 1)
    return lambda x: lax.cond(x > depth, lambda x: inner(jnp.sin(x) * x), lambda x: jnp.cos(x) * x, x)


@pytest.mark.slow
def test_gradients_of_nested_choices_do_not_grow_exponentially() -> None:
    sizes = {depth: count(make_jaxpr(grad(nested(depth)))(1.0)) for depth in (2, 4, 8, 12)}
    assert sizes[12] - sizes[8] <= 1.1 * (sizes[8] - sizes[4])
    second = {depth: count(make_jaxpr(grad(grad(nested(depth))))(1.0)) for depth in (4, 8, 12)}
    assert second[12] - second[8] <= 1.1 * (second[8] - second[4])
    lowered = {depth: len(jit(grad(nested(depth))).lower(1.0).as_text()) for depth in (4, 8, 12)}
    assert lowered[12] < 6 * lowered[4]
    x = 12.5
    assert np.allclose(jit(grad(nested(12)))(x), grad(nested(12))(x), rtol=1e-5)


# Effects -------------------------------------------------------------------------------------------------------------


def test_effects_of_the_branch_that_is_taken() -> None:
    seen: list[str] = []

    def note(name: str) -> Function:
        def branch(x: Any) -> Any:
            debug.callback(lambda: seen.append(name))
            return x * 2

        return branch

    def f(p: Any, x: Any) -> Any:
        debug.callback(lambda: seen.append("before"))
        x = lax.cond(p, note("yes"), note("no"), x)
        debug.callback(lambda: seen.append("after"))
        return lax.cond(p, lambda x: x, note("again"), x)

    for g in (f, jit(f), grad(f, 1), jit(grad(f, 1)), grad(jit(f), 1)):
        for p, expected in ((True, ["before", "yes", "after"]), (False, ["before", "no", "after", "again"])):
            seen.clear()
            g(p, 1.0)
            effects_barrier()
            assert seen == expected


def test_effects_of_branches_without_results() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        lax.cond(x > 0, lambda x: debug.callback(lambda x: seen.append(float(x)), x), lambda x: None, x)
        return x * x

    for g in (f, jit(f), grad(f), jit(grad(f)), grad(jit(f)), grad(grad(jit(f)))):
        seen.clear()
        g(-2.0)
        g(2.0)
        effects_barrier()
        assert seen == [2.0]


def test_scopes_are_kept() -> None:
    def f(x: Any) -> Any:
        with named_scope("choice"):
            return lax.cond(x > 0, lambda x: jnp.sin(x) * x, lambda x: x, x)

    text = jit(grad(f)).lower(1.0).as_text(debug_info=True)
    assert '"choice/cond"' in text
    assert '"transpose(choice)/cond"' in text


# What they refuse ----------------------------------------------------------------------------------------------------


def staged(f: Function) -> Callable[[], Any]:
    return lambda: make_jaxpr(f)(True)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        staged(lambda p: lax.cond(p, lambda: {"a": 1.0}, lambda: {"a": jnp.ones(2)})),
        r"cond: the branches must return the same types, but the result\['a'\] is f32\[2\] from false_fun \(.*test_con"
        r"ditional.py:\d+\) and f32\[\] from true_fun \(.*\): the shapes differ\. Reshape one of them",
    ),
    (
        staged(lambda p: lax.cond(p, lambda: jnp.int32(1), lambda: jnp.float32(2))),
        r"is f32\[\] from false_fun .* and i32\[\] from true_fun .*: the dtypes differ\. Convert one of them",
    ),
    (staged(lambda p: lax.cond(p, lambda: 1, lambda: 2.0)), "the dtypes differ"),
    (
        staged(lambda p: lax.cond(p, lambda: (1, 2), lambda: 1)),
        r"cond: the branches must return the same tree, but the result is an array from false_fun .* and a tuple from "
        r"true_fun",
    ),
    (
        staged(lambda p: lax.switch(p * 1, [lambda: {"a": 1}, lambda: {"a": 1}, lambda: {"b": 1}])),
        r"switch: the branches .* the result is a dict of \['a'\] from branches\[0\] .* and a dict of \['b'\] from "
        r"branches\[2\]",
    ),
    (
        lambda: lax.cond(jnp.ones(2) > 0, abs, abs, 1.0),
        r"cond: the predicate must be a scalar boolean, .* bool\[2\]\.",
    ),
    (
        lambda: lax.switch(1.5, [abs, abs], 1.0),
        r"switch: the index must be a scalar integer, got one of type f32\[\]",
    ),
    (lambda: lax.switch(jnp.ones(2, int), [abs, abs], 1.0), r"the index must be a scalar integer, .* i32\[2\]"),
    (lambda: lax.switch(0, []), r"switch takes a sequence of at least one function, got \[\]"),
    (lambda: lax.cond(True, abs, abs, 1.0, operand=2.0), "takes positional operands or the keyword operand"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.ControlFlowError, match=re.compile(message, re.DOTALL)) as raised:
        call()
    assert isinstance(raised.value, TypeError)


def test_what_is_no_array_and_no_function() -> None:
    with pytest.raises(errors.OperandError, match="cond: the predicate: expected an array or a number, got 'a'"):
        lax.cond("a", abs, abs, 1.0)
    with pytest.raises(errors.OperandError, match=r"cond: operands\[0\]\['k'\]: expected an array"):
        jit(lambda p: lax.cond(p, lambda x: 1, lambda x: 2, {"k": "v"}))(True)
    with pytest.raises(errors.ArgumentError, match="cond: true_fun must be a function, got 1"):
        lax.cond(True, 1, abs)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match=r"switch: branches\[0\] must be a function, got 1"):
        lax.switch(0, [1])  # type: ignore[list-item]
