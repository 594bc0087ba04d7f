"""Interpreters of users' own: of jaxprs, by their attributes in JAX's spelling, and of operations as they are bound."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import core, errors, extend, lax
from pullback.core import inspection
from pullback.core.trace import Primitive as AnyPrimitive
from pullback.extend.core import primitives
from pullback.interpreters import ad, batching, partial_eval

X = np.float32([0.5, -1.0, 2.0])


# Interpreters of jaxprs ----------------------------------------------------------------------------------------------


def run(jaxpr: Any, consts: Any, *args: Any) -> list[Any]:
    """The interpreter that JAX's tutorials teach, one operation after the other."""
    env: dict[Any, Any] = {}
    read = lambda v: v.val if isinstance(v, extend.core.Literal) else env[v]
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        with eqn.ctx.manager:
            out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.primitive.get_bind_params(eqn.params))
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return list(map(read, jaxpr.outvars))


@jax.custom_jvp
def with_rule(x: Any) -> Any:
    return jnp.sin(x)


with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), 7 * tangents[0]))


def varied(x: Any) -> Any:
    x = jax.jit(lambda y: y * 2 + jnp.float32([1, 2, 3]))(x)
    x = lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)
    x, _ = lax.scan(lambda c, i: (c * i, None), x, jnp.arange(1.0, 3.0))
    return lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, with_rule(x))


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, lambda f: lambda x: jax.vmap(f)(x[None])[0]])
def test_an_interpreter_of_jaxprs_computes_the_function(around: Callable[..., Any]) -> None:
    closed = jax.make_jaxpr(varied)(X)
    (out,) = (around(lambda x: run(closed.jaxpr, closed.consts, x)[0])(X),)
    np.testing.assert_allclose(out, varied(X), rtol=1e-6)
    np.testing.assert_allclose(
        jax.grad(lambda x: run(closed.jaxpr, closed.consts, x)[0].sum())(X), jax.grad(lambda x: varied(x).sum())(X)
    )


def test_an_interpreter_inverts() -> None:
    inverses: dict[Any, Any] = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh}

    def inverse(jaxpr: Any, y: Any) -> Any:
        env = dict(zip(jaxpr.outvars, [y], strict=True))
        for eqn in reversed(jaxpr.eqns):
            if eqn.primitive is primitives.jit_p:
                env[eqn.invars[0]] = inverse(eqn.params["jaxpr"].jaxpr, env[eqn.outvars[0]])
            else:
                env[eqn.invars[0]] = inverses[eqn.primitive](env[eqn.outvars[0]])
        return env[jaxpr.invars[0]]

    f = jax.jit(lambda x: jnp.exp(jnp.tanh(x)))
    np.testing.assert_allclose(inverse(jax.make_jaxpr(f)(X).jaxpr, f(X)), X, rtol=1e-5)


@pytest.mark.parametrize(
    ("f", "primitive", "names"),
    [
        (jax.jit(jnp.sin), "jit_p", {"jaxpr", "name"}),
        (lambda x: lax.scan(lambda c, y: (c, y), x, x), "scan_p",
         {"jaxpr", "length", "reverse", "num_consts", "num_carry", "unroll"}),
        (lambda x: lax.while_loop(lambda c: c[0] > 0, lambda c: c - 1, x), "while_p",
         {"cond_jaxpr", "cond_nconsts", "body_jaxpr", "body_nconsts"}),
        (lambda x: lax.switch(jnp.int32(x[0]), [jnp.sin, jnp.cos], x), "cond_p", {"branches"}),
        (with_rule, "custom_jvp_call_p", {"call_jaxpr"}),
        (jax.checkpoint(jnp.sin), "remat_p", {"jaxpr", "policy", "prevent_cse"}),
        (lambda x: x.reshape(1, 3) @ x, "dot_general_p", {"dimension_numbers"}),
        (lambda x: jnp.sum(x), "reduce_sum_p", {"axes"}),
    ],
)  # fmt: skip
def test_equations_have_the_parameters_of_jax(f: Any, primitive: str, names: set[str]) -> None:
    eqns = jax.make_jaxpr(f)(X).eqns
    (eqn,) = [eqn for eqn in eqns if eqn.primitive is getattr(primitives, primitive)]
    assert names <= eqn.params.keys()


def test_every_primitive_has_its_name() -> None:
    for name in primitives.__all__:
        p = getattr(primitives, name)
        assert isinstance(p, AnyPrimitive)
    assert extend.core.primitives is primitives
    assert primitives.add_p is lax.add_p


@pytest.mark.parametrize("closed", [False, True])
def test_calls_of_programs(closed: bool) -> None:
    program = jax.make_jaxpr(lambda x, y: [jnp.sin(x) * y, y])(1.0, 2.0)
    p, held = (primitives.closed_call_p, program) if closed else (primitives.call_p, program.jaxpr)
    f = lambda x: p.bind(x, 3.0, call_jaxpr=held)[0]
    np.testing.assert_allclose(f(2.0), 3 * np.sin(2.0), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(2.0), 3 * np.cos(2.0), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f)(X), 3 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(jax.jit(f))))(X), 3 * np.cos(X), rtol=1e-6)
    g = lambda y: p.bind(2.0, y, call_jaxpr=held)[0]
    np.testing.assert_allclose(jax.linear_transpose(g, 1.0)(3.0)[0], 3 * np.sin(2.0), rtol=1e-6)
    (eqn,) = jax.make_jaxpr(f)(2.0).eqns
    assert eqn.primitive is p
    assert eqn.outvars[0].aval.shape == ()


# Attributes ----------------------------------------------------------------------------------------------------------


def test_attributes_of_programs() -> None:
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(X)
    jaxpr = closed.jaxpr
    doubled = closed.map_jaxpr(lambda j: j.replace(outvars=[*j.outvars, *j.outvars]))
    assert len(core.jaxpr_as_fun(doubled)(X)) == 2
    assert doubled.consts == closed.consts
    info = extend.core.DebugInfo("test", "f", ("x",), ("result",))
    assert jaxpr.debug_info.arg_names is None
    assert jaxpr.replace(debug_info=info, effects=frozenset()).debug_info is info
    assert closed.replace(jaxpr=jaxpr.replace(debug_info=info)).debug_info.func_src_info == "f"
    assert jaxpr.replace(debug_info=info).replace(invars=jaxpr.invars).debug_info is info
    assert jaxpr.effects == set()
    with pytest.raises(errors.ArgumentError, match="no attribute nothing"):
        jaxpr.replace(nothing=1)


def test_a_program_takes_results_and_equations_in_either_order() -> None:
    jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(X).jaxpr
    ours = core.Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns, jaxpr.outvars)
    theirs = core.Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, jaxpr.eqns, frozenset())
    assert str(ours) == str(theirs) == str(jaxpr)
    empty = core.Jaxpr([], jaxpr.invars, jaxpr.invars, [])
    assert empty.eqns == []
    assert empty.outvars == jaxpr.invars


def test_attributes_of_equations() -> None:
    sin, add = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(X).eqns
    again = sin.replace(primitive=lax.cos_p, source_info=add.source_info, effects=set(), ctx=sin.ctx)
    assert (again.primitive, again.made_at) == (lax.cos_p, add.made_at)
    assert sin.replace(params={}).made_at == sin.made_at
    built = extend.core.new_jaxpr_eqn(sin.invars, sin.outvars, lax.cos_p, {}, set(), sin.source_info)
    assert (built.made_at, built.primitive, built.invars) == (sin.made_at, lax.cos_p, sin.invars)
    new = extend.core.gensym()(sin.outvars[0].aval)
    assert isinstance(new, core.Var)
    dropped = core.DropVar(new.aval)
    assert (str(dropped), isinstance(dropped, core.Var)) == ("_", True)
    assert list(extend.core.jaxprs_in_params(sin.params)) == []


def test_types() -> None:
    weak = core.ShapedArray((3,), np.dtype("float32"), weak_type=True)
    assert isinstance(weak, core.AbstractValue)
    assert (weak.str_short(), weak.str_short(short_dtypes=True)) == ("float32[3]", "f32[3]")
    assert (weak.ndim, weak.size) == (1, 3)
    assert not weak.strip_weak_type().weak_type
    assert weak.strip_weak_type().update_weak_type(True) == weak
    assert weak.to_tangent_aval().dtype == "float32"
    integer = core.ShapedArray([2, np.int64(3)], jnp.int32)
    assert integer == core.ShapedArray((2, 3), np.dtype("int32"))
    assert integer.to_tangent_aval().dtype == integer.to_ct_aval().dtype == jax.dtypes.float0
    assert core.ShapedArray((3,), "float32", sharding=None).sharding.spec == jax.P(None)
    assert integer.update(shape=(4,)).shape == (4,)


def test_mapped_types() -> None:
    aval = core.ShapedArray((2, 3), np.dtype("float32"))
    mapped, unmapped = extend.core.mapped_aval, extend.core.unmapped_aval
    assert mapped(3, 1, aval).shape == mapped(3, -1, aval).shape == (2,)
    assert mapped(5, None, aval) is aval is unmapped(5, None, aval)
    assert [unmapped(5, axis, aval).shape for axis in (0, 1, 2, -1)] == [(5, 2, 3), (2, 5, 3), (2, 3, 5), (2, 3, 5)]
    with pytest.raises(ValueError, match=r"axis 1 of .* is not of size 2"):
        mapped(2, 1, aval)


# Which interpreter is at work ----------------------------------------------------------------------------------------


def test_the_state_of_tracing_changes_with_each_transformation() -> None:
    state = extend.core.get_opaque_trace_state
    outside = state(convention="flax")
    assert outside == state()
    assert hash(outside) == hash(state())
    assert outside != 1
    found: list[Any] = []

    def f(x: Any) -> Any:
        found.append(state())
        assert found[-1] == state() != outside
        assert not inspection.trace_state_clean()
        return x

    for around in (jax.grad, jax.jit, jax.jit, lambda f: jax.vmap(f, axis_size=1, in_axes=None)):
        around(lambda x: f(x))(1.0)
    jax.vmap(jax.grad(f))(X)
    assert all(a != b for i, a in enumerate(found) for b in found[:i])
    assert copy.copy(found[0]) == found[0]
    assert "ended" in repr(found[1])
    with jax.debug_nans(True):
        assert state() == state()
    assert outside == state()
    assert inspection.trace_state_clean()


def test_what_is_at_work() -> None:
    unsafe = extend.core
    seen = []

    def look(x: Any) -> Any:
        seen.append((
            unsafe.unsafe_am_i_under_a_jit_DO_NOT_USE(), unsafe.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
            unsafe.unsafe_get_axis_names_DO_NOT_USE(), unsafe.nonempty_axis_env_DO_NOT_USE(),
        ))  # fmt: skip
        return x

    look(1)
    jax.jit(look)(1)
    jax.vmap(look, axis_name="i")(X)
    jax.jit(jax.vmap(lambda x: look(x)))(X)
    assert seen == [
        (False, False, [], False), (True, False, [], False), (False, True, ["i"], True), (True, True, [], False),
    ]  # fmt: skip


def test_values() -> None:
    concrete = extend.core.concrete_or_error
    assert concrete(None, "x") == "x"
    assert concrete(int, jnp.int32(3)) == 3
    with pytest.raises(errors.ConcretizationTypeError, match="the size of a batch"):
        jax.jit(lambda n: concrete(int, n, "the size of a batch"))(3)
    assert extend.core.valid_jaxtype(jnp.ones(2))
    assert not extend.core.valid_jaxtype(object())
    assert extend.core.primal_dtype_to_tangent_dtype("int32") == jax.dtypes.float0
    assert jax.jit(lambda x: 2 * x)(3) is not None


# Interpreters of operations ------------------------------------------------------------------------------------------


class Noted(core.Tracer):
    def __init__(self, trace: Any, value: Any) -> None:
        super().__init__(trace, jax.typeof(value))
        self.value = value


class Notes(core.Trace):
    """Writes down which operations run, and hands them on."""

    def __init__(self, parent: Any) -> None:
        super().__init__()
        self.parent_trace = parent
        self.names: list[str] = []

    def process_primitive(self, primitive: Any, tracers: Any, params: Any) -> Any:
        self.names.append(primitive.name)
        values = [t.value if isinstance(t, Noted) and t._trace is self else t for t in tracers]
        out = primitive.bind_with_trace(self.parent_trace, values, list(map(jax.typeof, tracers)), params)
        return jax.tree.map(lambda x: Noted(self, x), out)


def noted(f: Any, notes: list[Any]) -> Any:
    """A function, as it runs under an interpreter that writes its operations down."""

    def call(*args: Any) -> Any:
        with extend.core.take_current_trace() as parent:
            trace = Notes(parent)
            with extend.core.set_current_trace(trace):
                out = f(*(Noted(trace, x) for x in args))
        notes.append(trace.names)
        return jax.tree.map(lambda x: x.value if isinstance(x, Noted) else x, out)

    return call


def test_an_interpreter_sees_every_operation() -> None:
    notes: list[Any] = []
    f = lambda x: jnp.sin(x) * 2 + x.sum() + jnp.cos(jnp.ones(3))
    np.testing.assert_allclose(noted(f, notes)(X), f(X), rtol=1e-6)
    assert notes == [["sin", "mul", "reduce_sum", "add", "broadcast_in_dim", "cos", "add"]]
    assert inspection.trace_state_clean()
    g = noted(varied, notes)
    np.testing.assert_allclose(g(X), varied(X), rtol=1e-6)
    assert {"jit", "cond", "scan", "while"} <= set(notes[-1])


def test_an_interpreter_sees_operations_on_arrays_of_others() -> None:
    notes: list[Any] = []
    x = jnp.float32(X)
    out = noted(lambda: -(x + x), notes)()
    np.testing.assert_array_equal(out, -2 * X)
    assert notes == [["add", "neg"]]


def test_an_interpreter_under_transformations() -> None:
    notes: list[Any] = []
    f = lambda x: jnp.sin(x) * x
    g = noted(f, notes)
    np.testing.assert_allclose(jax.jit(g)(X), f(X), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(g))(X), jax.vmap(jax.grad(f))(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.jacrev(g))(X), jax.jacrev(f)(X), rtol=1e-6)
    assert notes == [["sin", "mul"]] * 3
    h = noted(jax.vmap(jax.grad(f)), notes)
    np.testing.assert_allclose(h(X), jax.vmap(jax.grad(f))(X), rtol=1e-6)
    assert "cos" in notes[-1]


def test_an_interpreter_ends_with_an_error() -> None:
    def fail(x: Any) -> Any:
        raise RuntimeError("within")

    with pytest.raises(RuntimeError, match="within"):
        noted(fail, [])(X)
    assert inspection.trace_state_clean()
    assert not [t for t in inspection.recorders if isinstance(t, Notes)]
    kept: list[Any] = []
    noted(lambda x: kept.append(x) or x, [])(X)
    with pytest.raises(errors.UnexpectedTracerError, match="leaked"):
        jnp.sin(kept[0])


def test_an_interpreter_without_its_method() -> None:
    class Empty(core.Trace):
        pass

    with extend.core.set_current_trace(Empty()), pytest.raises(NotImplementedError, match="Empty has no method"):
        lax.sin(1.0)
    with pytest.raises(errors.ArgumentError, match="takes an interpreter"), extend.core.set_current_trace(None):
        pass


# Primitives ----------------------------------------------------------------------------------------------------------


def test_the_implementation_of_a_primitive_can_be_called() -> None:
    p = core.Primitive("twice")
    p.def_impl(lambda x: x + x)
    p.def_abstract_eval(lambda x: x)
    closed = jax.make_jaxpr(lambda x: p.impl(x))(1.0)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["add"]
    assert p.impl(2) == 4


def test_an_implementation_updates_arrays() -> None:
    p = core.Primitive("put")
    p.def_impl(lambda x: x.at[1].set(7.0).astype("int32") / jnp.zeros(()))
    np.testing.assert_array_equal(p.bind(jnp.float32([0, 1, -2])), [np.nan, np.inf, -np.inf])
    with jax.debug_nans(False):
        assert (jnp.float32(0) / jnp.float32(1)) == 0


def test_an_operation_with_effects() -> None:
    p = core.Primitive("effectful")
    effect = type("Prints", (extend.core.Effect,), {})()
    p.def_effectful_abstract_eval(lambda x: (core.ShapedArray(x.shape, x.dtype), {effect}))
    closed = jax.make_jaxpr(lambda x: (p.bind(x), x)[1])(1.0)
    assert closed.effects == {"effectful"}
    assert [eqn.primitive for eqn in closed.eqns] == [p]


def test_transposes_by_name() -> None:
    aval = core.get_aval(jnp.float32(1))
    (ct,) = ad.get_primitive_transpose(lax.neg_p)(jnp.float32(2), ad.UndefinedPrimal(aval))
    assert ct == -2
    with pytest.raises(NotImplementedError, match="transpose"):
        ad.get_primitive_transpose(lax.floor_p)
    found = []
    jax.jvp(lambda x: found.append(x) or x, (1.0,), (1.0,))
    assert isinstance(found[0], ad.JVPTracer)
    assert found[0]._trace.main is found[0]._trace


def test_broadcast_takes_an_axis_of_a_mesh() -> None:
    assert batching.broadcast(jnp.ones(3), 2, 1, None).shape == (3, 2)


# Partial evaluation --------------------------------------------------------------------------------------------------

KNOWN, UNKNOWN = partial_eval.PartialVal.known, partial_eval.PartialVal.unknown
F3 = core.ShapedArray((3,), np.dtype("float32"))


def test_what_known_inputs_determine_is_computed() -> None:
    def f(a: Any, b: Any, c: Any) -> list[Any]:
        assert float(c) == 2.0  # known values can be looked at
        return [a + b, jnp.sin(a) * 2, c * b, b, a]

    ins = [KNOWN(jnp.ones(3)), UNKNOWN(F3), KNOWN(2.0)]
    jaxpr, outs, consts = partial_eval.trace_to_jaxpr_nounits(f, ins)
    assert [o.is_known() for o in outs] == [False, True, False, False, True]
    np.testing.assert_allclose(outs[1].get_known(), np.full(3, 2 * np.sin(1)), rtol=1e-6)
    assert outs[0] == (F3, None)
    assert outs[0].get_known() is None
    assert outs[1].get_aval() == F3
    results = core.eval_jaxpr(jaxpr, consts, X)
    np.testing.assert_allclose(results, [1 + X, 2 * X, X])
    assert not [eqn for eqn in jaxpr.eqns if eqn.primitive is lax.sin_p]


def test_results_that_are_to_be_unknown() -> None:
    f = lambda a, b: [a, b]
    ins = [KNOWN(jnp.ones(3)), UNKNOWN(F3)]
    for instantiate in (True, [True, False]):
        jaxpr, outs, consts = partial_eval.trace_to_jaxpr_nounits(f, ins, instantiate)
        assert [o.is_known() for o in outs] == [False, False]
        np.testing.assert_array_equal(core.eval_jaxpr(jaxpr, consts, X), [np.ones(3), X])
    with pytest.raises(AssertionError, match="expected 2 flags"):
        partial_eval.trace_to_jaxpr_nounits(f, ins, [True])


@pytest.mark.parametrize("around", [
    jax.jit,
    lambda f: lambda a, b: lax.scan(lambda c, _: (tuple(f(*c)), None), (a, b), None, length=2)[0],
    lambda f: lambda a, b: lax.cond(True, f, f, a, b),
    jax.checkpoint,
    lambda f: lambda a, b: jax.vmap(f)(a, b),
    lambda f: lambda a, b: jax.jvp(f, (a, b), (a, b))[1],
])  # fmt: skip
def test_known_and_unknown_through_transformations(around: Any) -> None:
    f = around(lambda a, b: [jnp.sin(a), a * b])
    (jaxpr, outs, consts) = partial_eval.trace_to_jaxpr_nounits(f, [KNOWN(jnp.float32(X)), UNKNOWN(F3)])
    expected = f(X, 2 * X)
    np.testing.assert_allclose(outs[0].get_known(), expected[0], rtol=1e-6)
    np.testing.assert_allclose(core.eval_jaxpr(jaxpr, consts, 2 * X)[0], expected[1], rtol=1e-6)


def test_known_calls_with_rules_stay_known() -> None:
    def f(a: Any, b: Any) -> list[Any]:
        closes_over = jax.custom_jvp(lambda x: x * b)
        closes_over.defjvp(lambda primals, tangents: (closes_over(*primals), tangents[0]))
        return [with_rule(a), with_rule(b), closes_over(a)]

    _, outs, _ = partial_eval.trace_to_jaxpr_nounits(f, [KNOWN(1.0), UNKNOWN(F3)])
    assert [o.is_known() for o in outs] == [True, False, False]
    np.testing.assert_allclose(outs[0].get_known(), np.sin(1), rtol=1e-6)


def test_partial_evaluation_within_others() -> None:
    def g(x: Any) -> Any:
        jaxpr, outs, consts = partial_eval.trace_to_jaxpr_nounits(
            lambda a, b: [jnp.sin(a), a * b], [KNOWN(x), UNKNOWN(F3)]
        )
        return outs[0].get_known() + core.eval_jaxpr(jaxpr, consts, X)[0]

    np.testing.assert_allclose(jax.jit(g)(X), np.sin(X) + X * X, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: jax.jit(g)(x * jnp.ones(3)).sum()))(X),
                               3 * np.cos(X) + X.sum(), rtol=1e-5)  # fmt: skip


def test_errors_within_partial_evaluation_leave_nothing_behind() -> None:
    with pytest.raises(errors.ConcretizationTypeError, match="partial evaluation"):
        partial_eval.trace_to_jaxpr_nounits(lambda a: [float(a)], [UNKNOWN(core.get_aval(1.0))])
    assert inspection.trace_state_clean()
    with pytest.raises(errors.ArgumentError, match="expected a function"):
        partial_eval.trace_to_jaxpr_nounits(1, [])
    with pytest.raises(errors.ArgumentError, match="PartialVal takes a pair of a type"):
        partial_eval.PartialVal((1, 2))


def test_programs_of_flat_functions() -> None:
    class Wrapped:
        def call_wrapped(self, x: Any, y: Any) -> list[Any]:
            return [x + 1, jnp.sin(jnp.float32(X))]

    jaxpr, avals, consts = partial_eval.trace_to_jaxpr_dynamic(Wrapped(), [F3, F3])
    assert [a.shape for a in avals] == [(3,), (3,)]
    np.testing.assert_allclose(core.eval_jaxpr(jaxpr, consts, X, X)[0], X + 1)
    smaller, _, consts = partial_eval.trace_to_jaxpr_dynamic(Wrapped(), [F3, F3], keep_inputs=[True, False])
    np.testing.assert_allclose(core.eval_jaxpr(smaller, consts, X), [X + 1, np.sin(X)], rtol=1e-6)
    with pytest.raises(errors.ArgumentError, match="the program needs the inputs"):
        partial_eval.trace_to_jaxpr_dynamic(Wrapped(), [F3, F3], keep_inputs=[False, True])
    found = []
    partial_eval.trace_to_jaxpr_dynamic(lambda x: [found.append(x) or x], [F3])
    assert isinstance(found[0], partial_eval.DynamicJaxprTracer)
