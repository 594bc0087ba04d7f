"""Metadata for the compiler: what operations and calls of programs are marked with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import checkpoint, custom_vjp, export, grad, jit, jvp, lax, make_jaxpr, new_ref, value_and_grad, vmap
from pullback.backends.hlo.builder import Builder
from pullback.backends.hlo.frontend import mark
from pullback.backends.hlo.module import Module
from pullback.errors import ArgumentError, OperandError
from pullback.experimental.scheduling_groups import scheduling_group
from pullback.experimental.xla_metadata import (
    fuse_limit,
    must_fuse_call,
    set_xla_metadata,
    xla_metadata_call,
    xla_metadata_call2,
)
from tests.helpers import assert_close as assert_near

Function = Callable[..., Any]
MARK = '{mhlo.frontend_attributes = {n = "1"}}'


def assert_close(got: Any, expected: Any) -> None:
    assert_near(got, expected, 1e-6, dtypes=False)


def text(f: Function, *args: Any) -> str:
    return jit(f).lower(*args).as_text()


def line(f: Function, operation: str, *args: Any) -> str:
    """The one line of a program that has an operation."""
    (found,) = [x for x in text(f, *args).splitlines() if f"stablehlo.{operation}" in x]
    return found


# Contexts ------------------------------------------------------------------------------------------------------------


def test_operations_in_a_context_are_marked_and_others_are_not() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(stage="loss", level=3, last=True, rate=0.5):
            y = jnp.sin(x)
        return jnp.cos(y)

    marks = '{mhlo.frontend_attributes = {last = "true", level = "3", rate = "0.5", stage = "loss"}}'
    assert marks in line(f, "sine", 1.0)
    assert "frontend" not in line(f, "cosine", 1.0)
    assert_close(jit(f)(1.0), f(1.0))


def test_inner_values_count_and_none_removes_a_value() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(a="1", b="2"), set_xla_metadata(a="3", b=None):
            return jnp.sin(x)

    assert '{mhlo.frontend_attributes = {a = "3"}}' in line(f, "sine", 1.0)


def test_a_function_is_traced_anew_in_another_context() -> None:
    f = jit(jnp.sin)
    plain = f.lower(1.0).as_text()
    with set_xla_metadata(a="b"):
        marked = f.lower(1.0).as_text()
    assert "frontend" not in plain
    assert '{a = "b"}' in marked
    assert f.lower(1.0).as_text() == plain


def test_branches_bodies_and_functions_within_are_marked() -> None:
    @set_xla_metadata(a="b")
    @jit
    def f(x: Any) -> Any:
        y = lax.cond(x < 0, jnp.sin, jnp.cos, x)
        z = lax.while_loop(lambda y: y < 3, lambda y: jnp.exp(y), y)
        return jit(jnp.tanh)(z)

    shown = f.lower(1.0).as_text()  # a decorated function has its methods
    for operation in ("sine", "cosine", "exponential", "tanh"):
        (found,) = [x for x in shown.splitlines() if f"stablehlo.{operation} " in x]
        assert '{a = "b"}' in found
    assert_close(f(1.0), jnp.tanh(jnp.exp(jnp.exp(jnp.cos(1.0)))))


@pytest.mark.parametrize("inside", [True, False])
def test_derivatives_are_marked_as_what_they_come_from(inside: bool) -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(a="b"):
            return jnp.sin(x) ** 2

    def in_context(x: Any) -> Any:
        with set_xla_metadata(a="b"):
            return grad(lambda x: jnp.sin(x) ** 2)(x)

    shown = line(in_context if inside else grad(f), "cosine", 1.0)
    assert '{a = "b"}' in shown
    assert '{a = "b"}' in line(vmap(f), "sine", jnp.ones(3))


def test_equations_have_their_metadata() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(a="b", n=1):
            return jnp.sin(x) + 1

    eqns = make_jaxpr(f)(1.0).eqns
    assert [eqn.ctx.xla_metadata for eqn in eqns] == [{"a": "b", "n": 1}] * 2
    assert make_jaxpr(jnp.sin)(1.0).eqns[0].ctx.xla_metadata is None

    def again(x: Any) -> Any:
        with eqns[0].ctx.manager:
            return jnp.cos(x)

    assert '{a = "b", n = "1"}' in line(again, "cosine", 1.0)


def test_exported_programs_keep_the_marks() -> None:
    exported = export.export(jit(set_xla_metadata(a="b")(lambda x: jnp.sin(x))))(1.0)
    assert 'a = "b"' in exported.mlir_module()


def test_marks_of_equal_regions_stay_apart() -> None:
    def block(x: Any) -> Any:
        for i in range(40):
            x = jnp.sin(x * (i + 1.5)) + jnp.cos(x) * jnp.exp(-x)
        return x

    def f(x: Any) -> Any:
        with set_xla_metadata(a="1"):
            x = block(x)
        with set_xla_metadata(a="2"):
            return block(block(x))

    shown = text(f, jnp.ones(3))
    assert '{a = "1"}' in shown
    assert '{a = "2"}' in shown


# Values --------------------------------------------------------------------------------------------------------------


def test_the_operation_of_a_value_is_marked() -> None:
    def f(x: Any) -> Any:
        return set_xla_metadata({"y": jnp.sin(x), "x": x}, a="b")["y"] * 2

    assert '{a = "b"}' in line(f, "sine", 1.0)
    assert text(f, 1.0).count("frontend") == 1
    assert_close(f(1.0), 2 * jnp.sin(1.0))
    assert_close(grad(f)(1.0), 2 * jnp.cos(1.0))
    assert '{a = "b"}' in line(vmap(f), "sine", jnp.ones(3))


def test_a_backward_rule_marks_its_cotangent() -> None:
    f = custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (set_xla_metadata(jnp.exp(x) * ct, a="b"),))
    assert text(grad(f), 1.0).count('{a = "b"}') == 1


# Calls ---------------------------------------------------------------------------------------------------------------


def test_a_call_is_marked_in_both_passes() -> None:
    f = xla_metadata_call(a="b")(lambda x: jnp.sin(x))
    assert text(grad(f), 1.0).count('{mhlo.frontend_attributes = {a = "b"}}') == 2
    assert_close(jit(grad(f))(1.0), jnp.cos(1.0))
    assert_close(f(1.0), jnp.sin(1.0))


@pytest.mark.parametrize("drop", [True, False])
def test_calls_of_derivatives_have_their_own_metadata(drop: bool) -> None:
    f = xla_metadata_call2(jnp.sin, {"a": "x"}, ad_metadata="drop" if drop else {"a": "y"})
    shown = text(value_and_grad(f), 1.0)
    assert (shown.count('a = "x"'), shown.count('a = "y"')) == (1, 0 if drop else 1)
    assert text(lambda x: jvp(f, (x,), (x,)), 1.0).count('a = "x"') == 1
    assert_close(jit(grad(f))(1.0), jnp.cos(1.0))


@pytest.mark.parametrize("keyword", [False, True])
def test_equal_calls_share_a_function(keyword: bool) -> None:
    @xla_metadata_call(inlineable="false")
    def g(x: Any) -> Any:
        return x * 2

    def f(x: Any) -> Any:
        return jnp.sum(g(x=g(x=x)) if keyword else g(g(x)))

    x = jnp.arange(8.0)
    for run in (f, grad(f), grad(checkpoint(f))):
        assert text(run, x).count("func.func private @xla_metadata_call") == 1
    assert 'inlineable="false"' in jit(f).lower(x).compile().as_text()
    assert_close(jit(grad(f))(x), 4 * jnp.ones(8))


def test_a_call_sees_what_it_closes_over_and_writes_references() -> None:
    def f(x: Any) -> Any:
        ref = new_ref(x)
        y = x + 2

        @xla_metadata_call(a="b")
        def g(z: Any) -> Any:
            ref[...] = z * y
            return {"z": ref[...] + 1}

        return g(x)["z"] + ref[...]

    assert_close(jit(f)(3.0), 31.0)
    assert_close(jit(grad(f))(3.0), 16.0)
    assert_close(jit(vmap(f))(jnp.array([3.0, 1.0])), jnp.array([31.0, 7.0]))
    assert text(f, 3.0).count('{a = "b"}') == 1


def test_groups_and_fusions() -> None:
    @scheduling_group(name="outer")
    def f(x: Any) -> Any:
        with fuse_limit():
            y = jnp.cos(x)
        return scheduling_group("inner")(jnp.sin)(x) + must_fuse_call("1")(jnp.square)(y)

    shown = text(f, 1.0)
    for found in ('scheduling_group = "outer"', 'scheduling_group = "inner"', 'MUST_FUSE = "1"', 'FUSE_LIMIT = "true"'):
        assert found in shown
    assert_close(jit(f)(1.0), f(1.0))


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xla_metadata_call(jnp.sin, bad=object()), "metadata values must be"),
        (lambda: set_xla_metadata(bad=[1]), "metadata values must be"),
        (lambda: xla_metadata_call2(jnp.sin, "none"), "metadata must be a dict"),
        (lambda: xla_metadata_call2(jnp.sin, {"a": "b"}, ad_metadata="other"), "ad_metadata must be"),
        (lambda: xla_metadata_call2(3, {"a": "b"}), "expected a callable"),
        (lambda: scheduling_group(3), "a string"),
        (lambda: must_fuse_call("one"), "a string of digits"),
        (lambda: set_xla_metadata(a="b")(3), "set_xla_metadata"),
    ],
)
def test_bad_metadata_is_an_error(call: Function, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_values_that_are_no_arrays_are_errors() -> None:
    with pytest.raises(OperandError):
        set_xla_metadata("x", a="b")
    with pytest.raises(OperandError, match="xla_metadata_call"):
        jit(lambda x: xla_metadata_call(lambda y: y, a="b")("x"))(1.0)


# Lines of programs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%1 = stablehlo.sine %0 : t loc(#loc1)", f"%1 = stablehlo.sine %0 {MARK} : t loc(#loc1)"),
        ('%1 = "a.b"(%0) : (t) -> t', f'%1 = "a.b"(%0) {MARK} : (t) -> t'),
        ('%1 = "a.b"(%0) {k = "}"} : (t) -> t', f'%1 = "a.b"(%0) {{k = "}}", {MARK[1:]} : (t) -> t'),
        (
            '%1 = "a.b"(%0) {mhlo.frontend_attributes = {m = "}, "}, k = 1} : (t) -> t',
            '%1 = "a.b"(%0) {mhlo.frontend_attributes = {n = "1", m = "}, "}, k = 1} : (t) -> t',
        ),
        (
            '%1:2 = "a.b"(%0) {mhlo.frontend_attributes = {n = "2"}} : (t) -> (t, t)',
            '%1:2 = "a.b"(%0) {mhlo.frontend_attributes = {n = "2"}} : (t) -> (t, t)',
        ),
        (
            '%1 = "a.b"(%0) ({\n%2 = x {mhlo.frontend_attributes = {m = "1"}} : t\n}) : (t) -> t',
            '%1 = "a.b"(%0) ({\n%2 = x {mhlo.frontend_attributes = {m = "1"}} : t\n}) '
            '{mhlo.frontend_attributes = {n = "1"}} : (t) -> t',
        ),
        ("%11 = stablehlo.sine %1 : t", "%11 = stablehlo.sine %1 : t"),
    ],
)  # fmt: skip
def test_attributes_are_added_to_a_line(before: str, after: str) -> None:
    hlo = Builder(Module("m", "cpu", lambda *args: None))
    hlo.lines = [before]
    value = hlo.argument((), jnp.float32(0).dtype)
    value.name = "%1#0"
    mark(hlo, [value], [("n", 1)])
    assert hlo.lines == [after]


def test_names_and_texts_are_quoted() -> None:
    assert 'frontend_attributes = {"a b" = "say \\22x\\22"}' in text(
        lambda x: set_xla_metadata(jnp.sin(x), **{"a b": 'say "x"'}), 1.0
    ).replace('\\"', "\\22")
