"""Named scopes: in programs, in the compiler's names of operations, and in derivatives."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, make_jaxpr, masked_zeros, named_call, named_scope, vjp, vmap
from pullback.core.linear import LinearTrace
from pullback.core.source import BACKWARD, TANGENT, Scope
from pullback.core.trace import state
from pullback.transforms.traces.forward import JVPTrace
from pullback.transforms.traces.jaxprs import transpose_jaxpr


def model(x: Any) -> Any:
    with named_scope("encoder"):
        with named_scope("dense"):
            h = jnp.tanh(x)
        h = h * 3
    return jnp.sin(h)


def names(f: Any, *args: Any) -> list[str]:
    """The names of the operations of a compiled function, in order."""
    text = f.lower(*args).as_text(debug_info=True)
    legend = dict(re.findall(r'^#loc(\d+) = loc\("(.*)"\("', text, re.MULTILINE))
    return [legend[number] for number in re.findall(r"loc\(#loc(\d+)\)$", text, re.MULTILINE)]


def test_equations_carry_it() -> None:
    closed = make_jaxpr(model)(1.0)
    assert [eqn.scope for eqn in closed.eqns] == [Scope("encoder/dense"), Scope("encoder"), None]


def test_names_of_operations() -> None:
    assert names(jit(model), 1.0) == ["encoder/dense/tanh", "encoder/mul", "sin"]
    assert names(jit(lambda x: x + 1), 1.0) == ["add"]


def test_the_line_is_told_too() -> None:
    text = jit(model).lower(1.0).as_text(debug_info=True)
    assert re.search(r'loc\("encoder/dense/tanh"\(".*test_named_scope.py":\d+:0\)\)', text)
    assert "loc(" not in jit(model).lower(1.0).as_text()


def test_the_compiler_knows_it() -> None:
    text = jit(model).lower(jnp.ones(3)).compile().as_text()
    assert 'op_name="encoder/dense/tanh"' in text
    assert 'op_name="sin"' in text


def test_programs_within_programs() -> None:
    def f(x: Any) -> Any:
        with named_scope("outer"):
            return jit(model)(x)

    assert sorted(names(jit(f), 1.0)) == ["encoder/dense/tanh", "encoder/mul", "outer/jit(model)", "sin"]
    compiled = jit(f).lower(jnp.ones(3)).compile().as_text()
    assert "outer/jit(model)/encoder/dense/tanh" in compiled
    inlined = names(jit(lambda x: named_call(jit(model, inline=True), name="outer")(x)), 1.0)
    assert inlined == ["outer/encoder/dense/tanh", "outer/encoder/mul", "outer/sin"]


def test_a_traced_program_is_the_same_in_every_scope() -> None:
    g = jit(model)
    with named_scope("somewhere"):
        assert names(g, 1.0) == ["encoder/dense/tanh", "encoder/mul", "sin"]
    assert state.scope is None


@pytest.mark.parametrize("transform", [grad, lambda f: grad(jit(f)), lambda f: lambda x: grad(jit(f))(x) * 1])
def test_gradients(transform: Any) -> None:
    closed = make_jaxpr(jit(transform(lambda x: model(x) * 2)))(1.0)
    scopes: set[Any] = set()

    def collect(eqns: Any) -> None:
        for eqn in eqns:
            inner = eqn.params.get("jaxpr")
            if inner is not None:
                collect(inner.eqns)
            elif eqn.scope is not None:
                scopes.add(eqn.scope.label(eqn.primitive.name))

    collect(closed.eqns)
    assert {"encoder/dense/tanh", "jvp(encoder/dense)/sub", "transpose(encoder/dense)/mul"} <= scopes
    assert {"encoder/mul", "transpose(encoder)/mul"} <= scopes


def test_a_vjp_function_that_a_program_returns_has_its_scopes() -> None:
    pull = jit(lambda x: vjp(model, x)[1])(1.0)
    closed = make_jaxpr(pull)(1.0)
    scopes = {eqn.scope.label(eqn.primitive.name) for eqn in closed.eqns if eqn.scope is not None}
    assert scopes == {"transpose(encoder/dense)/mul", "transpose(encoder)/mul"}


def test_forward_derivatives_and_batches() -> None:
    tangents = names(jit(lambda x: jvp(model, (x,), (x,))), 1.0)
    assert tangents[0] == "encoder/dense/tanh"
    assert "jvp(encoder/dense)/mul" in tangents
    assert names(jit(vmap(model)), jnp.ones(3))[0] == "encoder/dense/tanh"


def test_forward_derivatives_with_masked_zeros() -> None:
    """What keeps zeros zero leaves operations in the scope and in the pass that they belong to."""

    def f(x: Any) -> Any:
        with named_scope("layer"):
            return jnp.tanh(x) * x

    with masked_zeros(True):
        eqns = make_jaxpr(lambda x, t: jvp(f, (x,), (t,)))(1.0, 2.0).eqns
    found = [eqn.scope.label(eqn.primitive.name) for eqn in eqns if eqn.scope is not None]
    assert len(found) == len(eqns)
    assert found.count("layer/tanh") == found.count("layer/mul") == 1
    assert found.count("jvp(layer)/masked_mul") == 3


def test_transposition_of_a_program_that_has_scopes() -> None:
    closed = make_jaxpr(lambda x: named_call(lambda x: x * 2, name="double")(x))(1.0)
    assert [eqn.scope for eqn in transpose_jaxpr(closed, [True]).eqns] == [Scope("double", BACKWARD)]


def test_programs_in_different_scopes_are_compiled_apart() -> None:
    def in_scope(name: str) -> Any:
        return jit(lambda x: named_call(jnp.tanh, name=name)(x))

    first, second = (in_scope(name).lower(jnp.ones(5)).compile().as_text() for name in ("first", "second"))
    assert 'op_name="first/tanh"' in first
    assert 'op_name="second/tanh"' in second


def test_as_a_decorator() -> None:
    @jit
    @named_scope("whole")
    def f(x: Any) -> Any:
        """Doubles."""
        return x * 2

    assert names(f, 1.0) == ["whole/mul"]
    assert f.__doc__ == "Doubles."
    assert names(f, jnp.ones(2)) == ["whole/mul"]
    assert names(jit(named_call(model)), 1.0)[0] == "model/encoder/dense/tanh"


def test_un_compiled_it_does_nothing() -> None:
    with named_scope("nothing"):
        assert JVPTrace.process.__name__ == LinearTrace.process.__name__ == "process"
        assert float(grad(model)(1.0)) == float(grad(model)(1.0))
    assert float(model(0.0)) == 0.0


def test_it_ends_with_an_error() -> None:
    def f(x: Any) -> Any:
        with named_scope("bad"):
            raise KeyError

    with pytest.raises(KeyError):
        jit(f)(1.0)
    assert state.scope is None
    assert JVPTrace.process.__name__ == LinearTrace.process.__name__ == "process"


def test_threads_have_their_own() -> None:
    found: list[Any] = []
    with named_scope("mine"):
        thread = threading.Thread(target=lambda: found.append((state.scope, names(jit(model), 1.0)[0])))
        thread.start()
        thread.join()
    assert found == [(None, "encoder/dense/tanh")]


@pytest.mark.parametrize("name", [3, None, ""])
def test_names_are_texts(name: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="named_scope takes a non-empty string"):
        named_scope(name)


def test_odd_names_survive() -> None:
    f = jit(lambda x: named_call(jnp.tanh, name='a "b"\\c\n')(x))
    assert float(f(0.0)) == 0.0


def test_scopes_within_scopes() -> None:
    assert Scope("b").within(Scope("a")) == Scope("a/b")
    assert Scope("b", TANGENT).within(Scope("", BACKWARD)) == Scope("b", BACKWARD)
    assert Scope("", TANGENT).within(Scope("a")) == Scope("a", TANGENT)
    assert Scope("a").within(None) == Scope("a")
    assert Scope("", TANGENT).label("mul") == "jvp/mul"
