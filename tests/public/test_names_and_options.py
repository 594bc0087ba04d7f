"""Context managers, options and attributes that programs written for JAX use here and there."""

from __future__ import annotations

import gc
import logging
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, config, custom_jvp, custom_vjp, errors, grad, jit, lax, make_jaxpr, vmap
from pullback.core import jaxpr as core_jaxpr

X = jnp.arange(5.0)

# Leaks -------------------------------------------------------------------------------------------------------------

kept: list[Any] = []


@pytest.fixture
def little_to_search() -> None:
    """What is alive before the test need not be looked at by the garbage collector."""
    gc.collect()
    gc.freeze()


def keep(x: Any) -> Any:
    kept.append(x)
    return jnp.sum(x)


@pytest.mark.usefixtures("little_to_search")
@pytest.mark.parametrize(
    "call",
    [lambda: jit(keep)(X), lambda: grad(keep)(X), lambda: vmap(keep)(X), lambda: make_jaxpr(keep)(X),
     lambda: pullback.jvp(keep, (X,), (X,)), lambda: jit(grad(keep))(X), lambda: jit(vmap(keep))(X),
     lambda: lax.scan(lambda c, x: (c, keep(x)), 0.0, X)],
)  # fmt: skip
def test_leaks_are_found(call: Any) -> None:
    kept.clear()
    with pullback.checking_leaks():
        with pytest.raises(errors.UnexpectedTracerError, match=r"Leaked tracer: .* of type .* comes from"):
            call()
        kept.clear()
        jit(jnp.sin)(X)  # the next call is not blamed
    call()  # and nothing is looked for outside the block
    with pullback.check_tracer_leaks(True):  # what had leaked before is not blamed either
        grad(jnp.sin)(1.0)
    kept.clear()


@pytest.mark.usefixtures("little_to_search")
def test_what_does_not_leak() -> None:
    f = custom_vjp(jnp.sin)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * jnp.cos(x),))
    g = custom_jvp(jnp.sin)
    g.defjvps(lambda t, ans, x: t * jnp.cos(x))
    with pullback.checking_leaks():
        for h in (f, g, jnp.sin, pullback.checkpoint(jnp.sin), lambda x: lax.fori_loop(0, 2, lambda i, v: v * x, 1.0)):
            grad(h)(1.0), jit(grad(h))(1.0), pullback.hessian(h)(1.0), vmap(grad(h))(X), jit(vmap(h))(X)
            pullback.vjp(h, 1.0)[1](1.0), pullback.linearize(h, 1.0)[1](1.0), pullback.jvp(h, (1.0,), (1.0,))


# Checks ------------------------------------------------------------------------------------------------------------


def test_enable_checks_checks_programs(monkeypatch: Any) -> None:
    checked = []
    from pullback.transforms.traces import stage

    monkeypatch.setattr(stage, "check_jaxpr", lambda jaxpr, **_: checked.append(jaxpr))
    with pullback.enable_checks(False):
        make_jaxpr(jnp.sin)(1.0)
    assert not checked
    with pullback.enable_checks():
        make_jaxpr(jnp.sin)(1.0)
    assert len(checked) == 1


def test_kinds_of_keys() -> None:
    with pullback.default_prng_impl("threefry2x32"):
        pullback.random.key(0)
    with pytest.raises(ValueError, match=r"default_prng_impl must be one of \('threefry2x32', .*\), got 'dice'"):
        pullback.default_prng_impl("dice")


# Precision ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written"),
    [("float32", "HIGHEST"), ("highest", "HIGHEST"), ("tensorfloat32", "HIGH>"), ("bfloat16_3x", "HIGH>"),
     ("bfloat16", "DEFAULT"), ("default", "DEFAULT")],
)  # fmt: skip
def test_the_precision_of_products(name: str, written: str) -> None:
    f = jit(lambda x, y: x @ y)
    x = jnp.arange(4.0).reshape(2, 2)
    plain = f(x, x)
    assert "precision" not in f.lower(x, x).as_text()
    with pullback.default_matmul_precision(name):
        assert f"precision {written}" in f.lower(x, x).as_text()
        assert np.array_equal(f(x, x), plain)
    assert f._cache_size() == 2  # another program


def test_a_precision_that_is_none() -> None:
    with pytest.raises(errors.ArgumentError, match=r"default_matmul_precision must be one of .* got 'exact'"):
        pullback.default_matmul_precision("exact")


# Transfers ---------------------------------------------------------------------------------------------------------


def test_transfers_to_a_device() -> None:
    f = jit(lambda x: x + 1)
    host = np.ones(3, np.float32)
    with pullback.transfer_guard("disallow"):
        for x in (host, 1.0, np.float32(1)):
            with pytest.raises(errors.TransferGuardError, match=r"host-to-device transfer of f32.* is refused"):
                f(x)
        assert f(pullback.device_put(host)).tolist() == [2, 2, 2]
        assert float(f(X)[0]) == 1  # our own arrays move nowhere on a processor
        with pullback.transfer_guard("allow"):
            assert f(host).tolist() == [2, 2, 2]
        make_jaxpr(f)(1.0)
    with pullback.transfer_guard_device_to_host("disallow"):
        assert f(1.0) == 2
    assert f(host).tolist() == [2, 2, 2]


def test_transfers_are_logged(caplog: Any) -> None:
    with pullback.transfer_guard("log"), caplog.at_level(logging.WARNING):
        jit(lambda x: x + 1)(1.0)
    assert "host-to-device transfer of f32[], at " in caplog.text
    assert __file__ in caplog.text


def test_levels_of_the_guard() -> None:
    with pytest.raises(errors.ArgumentError, match=r"must be one of .* got 'never'"):
        pullback.transfer_guard("never")
    config.update("jax_transfer_guard", "disallow")
    try:
        with pytest.raises(RuntimeError, match="host-to-device"):
            jit(lambda x: x + 1)(1.0)
    finally:
        config.update("jax_transfer_guard", None)


# Computing while tracing -------------------------------------------------------------------------------------------


def test_what_is_computed_while_tracing() -> None:
    def f(x: Any) -> Any:
        with pullback.ensure_compile_time_eval():
            n = int(jnp.sum(jnp.arange(3)))
            w = jit(lambda a: 2 * a)(jnp.ones(2)).tolist()
            slope = float(grad(jnp.sin)(0.0))
            rows = vmap(jnp.sin)(jnp.zeros(2)).tolist()
            y = 3 * x  # traced: recorded
            by_x = grad(lambda u: u * x)(2.0)
        assert (n, w, slope, rows) == (3, [2, 2], 1, [0, 0])
        assert "Traced" in repr(y)
        return x * n + y + by_x

    assert jit(f)(2.0) == 14
    assert jit(grad(f))(2.0) == 7
    assert jit(vmap(f))(jnp.ones(2)).tolist() == [7, 7]
    with pytest.raises(errors.ConcretizationTypeError):
        jit(lambda x: int(jnp.sum(jnp.arange(3))) * x)(2.0)


# jit ---------------------------------------------------------------------------------------------------------------


def test_options_of_the_compiler() -> None:
    for level in (pullback.CompilerEffortLevel.O1, 39, "O0"):
        f = jit(lambda x: jnp.sin(x), compiler_options={"optimization_level": level, "memory_fitting_level": level})
        np.testing.assert_allclose(f(1.0), np.sin(1.0), rtol=1e-6)
    with pytest.raises(ValueError, match="optimization_level must be a CompilerEffortLevel, its name or number"):
        jit(jnp.sin, compiler_options={"optimization_level": "O9"})
    f = jit(lambda x: jnp.sin(x), compiler_options={"xla_embed_ir_in_executable": True})
    assert f(0.0) == 0
    with pytest.raises(errors.CompilationError, match="xla_no_such_option"):
        jit(lambda x: jnp.sin(x), compiler_options={"xla_no_such_option": 1})(0.0)
    with pytest.raises(errors.CompilationError, match="xla_no_such_option"):
        jit(lambda x: jnp.sin(x), compiler_options={"xla_no_such_option": 1}).lower(0.0).compile()
    for call in (lambda: jit(lambda x: f(x))(0.0), lambda: vmap(f)(X)):
        with pytest.raises(ValueError, match=r"compiler_options=.* Pass them to the outermost jit"):
            call()
    for bad in ([("a", 1)], {1: 2}, {"a": [1]}):
        with pytest.raises(errors.ArgumentError, match="jit: "):
            jit(jnp.sin, compiler_options=bad)


def test_a_backend() -> None:
    assert jit(lambda x: x + 1, backend="cpu")(1.0) == 2
    with pytest.raises(errors.ArgumentError, match="pass either device or backend"):
        jit(lambda x: x, device="cpu", backend="cpu")
    with pytest.raises(errors.BackendError):
        jit(lambda x: x, backend="abacus")(1.0)


# Types and programs ------------------------------------------------------------------------------------------------


def test_structs_like_arrays() -> None:
    assert ShapeDtypeStruct.like(X) == ShapeDtypeStruct((5,), "float32")
    assert ShapeDtypeStruct.like(np.ones((2, 3), np.int8)) == ShapeDtypeStruct((2, 3), "int8")
    assert ShapeDtypeStruct.like(ShapeDtypeStruct((2,), bool)) == ShapeDtypeStruct((2,), bool)
    assert ShapeDtypeStruct.like(1.0).weak_type
    assert ShapeDtypeStruct.like(1.0).update(shape=(2,), weak_type=False) == ShapeDtypeStruct((2,), "float32")
    with pytest.raises(errors.OperandError, match="'a' of type str"):
        ShapeDtypeStruct.like("a")
    with pytest.raises(errors.ArgumentError, match="no attribute size"):
        ShapeDtypeStruct.like(1.0).update(size=3)


def test_attributes_of_programs() -> None:
    closed = make_jaxpr(lambda x: jnp.sin(x) + X)(X)
    jaxpr = closed.jaxpr
    assert (closed.invars, closed.outvars, closed.constvars) == (jaxpr.invars, jaxpr.outvars, jaxpr.constvars)
    assert closed.effects == jaxpr.effects == jaxpr.eqns[0].effects == frozenset()
    assert (jaxpr.in_avals, jaxpr.out_avals) == (closed.in_avals, closed.out_avals)
    cos = jaxpr.eqns[0].replace(primitive=lax.cos_p)
    changed = closed.replace(jaxpr=jaxpr.replace(eqns=[cos, *jaxpr.eqns[1:]]))
    assert np.array_equal(core_jaxpr.jaxpr_as_fun(changed)(X)[0], jnp.cos(X) + X)
    assert np.array_equal(core_jaxpr.jaxpr_as_fun(closed.replace(consts=[2 * X]))(X)[0], jnp.sin(X) + 2 * X)
    assert str(closed) == closed.pretty_print()
    for x in (closed, jaxpr, jaxpr.eqns[0]):
        with pytest.raises(errors.ArgumentError, match="replace: no attribute nothing"):
            x.replace(nothing=1)


def test_where_an_equation_comes_from() -> None:
    def f(x: Any) -> Any:
        with pullback.named_scope("layer"):
            return jnp.sin(x)

    closed = make_jaxpr(f)(1.0)
    info = closed.eqns[0].source_info
    assert (info.file_name, info.function_name, info.line) == (__file__, "f", f.__code__.co_firstlineno + 2)
    assert info.name_stack == "layer"
    assert f"sin a # from {__file__}:{info.line} (f)" in closed.pretty_print(source_info=True)
    assert "sin a # layer" in closed.pretty_print(name_stack=True)


def test_effects_of_programs() -> None:
    def f(x: Any) -> Any:
        pullback.debug.print("{}", x)
        return x

    assert make_jaxpr(f)(1.0).effects == make_jaxpr(jit(f))(1.0).effects != frozenset()


def test_named_axes_of_programs() -> None:
    assert "sin" in str(make_jaxpr(jnp.sin, axis_env=[("i", 4)])(1.0))
    seen: list[Any] = []
    make_jaxpr(lambda x: (seen.append(list(core_jaxpr.state.axes.values())), x)[1], axis_env=[("i", 4), ("j", 2)])(1.0)
    assert [(axis.name, axis.size) for axis in seen[0]] == [("i", 4), ("j", 2)]
    assert core_jaxpr.state.axes == {}
    for bad in ("i", [("i",)], [("i", -1)], [("i", 2), ("i", 3)], [("i", "a")], 3):
        with pytest.raises(errors.ArgumentError, match="axis_env must be a list of pairs"):
            make_jaxpr(jnp.sin, axis_env=bad)


def test_trees_by_keyword() -> None:
    t = pullback.tree
    outer, inner = t.structure([0, 0]), t.structure({"a": 0})
    for transpose in (t.transpose, pullback.tree_util.tree_transpose):
        out = transpose(outer_treedef=outer, inner_treedef=inner, pytree_to_transpose=[{"a": 1}, {"a": 2}])
        assert out == {"a": [1, 2]}


# Indices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "compiled"])
def test_negative_indices_may_be_out_of_range(how: Any) -> None:
    def get(i: Any, mode: Any) -> Any:
        return how(lambda x: x.at[i].get(mode=mode, wrap_negative_indices=False))(X)

    def set_(i: Any, mode: Any) -> Any:
        return how(lambda x: x.at[i].set(9.0, mode=mode, wrap_negative_indices=False))(X).tolist()

    for i in (-1, jnp.array(-1), np.int32(-1), jnp.int8(-1)):
        assert np.isnan(get(i, "fill"))
        assert get(i, "clip") == get(i, None) == 0
        assert set_(i, "drop") == set_(i, None) == X.tolist()
        assert set_(i, "clip") == [9, 1, 2, 3, 4]
    assert set_(jnp.array([-1, 1]), None) == [0, 9, 2, 3, 4]
    assert X.at[-1].set(9.0).tolist() == [0, 1, 2, 3, 9]
    for name in ("add", "multiply", "divide", "power", "min", "max"):
        assert getattr(X.at[-1], name)(9.0, wrap_negative_indices=False).tolist() == X.tolist()
    assert X.at[-1].apply(jnp.cos, wrap_negative_indices=False).tolist() == X.tolist()
    i = jnp.array([-1, 1, 7])
    taken = how(lambda x: jnp.take_along_axis(x, i, 0, wrap_negative_indices=False))(X)
    np.testing.assert_array_equal(taken, [np.nan, 1, np.nan])


def test_negative_starts() -> None:
    two = jnp.full(2, 9.0)
    calls = {
        "dynamic_slice": lambda i, **k: lax.dynamic_slice(X, (i,), (2,), **k),
        "dynamic_slice_in_dim": lambda i, **k: lax.dynamic_slice_in_dim(X, i, 2, **k),
        "dynamic_index_in_dim": lambda i, **k: lax.dynamic_index_in_dim(X, i, **k),
        "dynamic_update_slice": lambda i, **k: lax.dynamic_update_slice(X, two, (i,), **k),
        "dynamic_update_slice_in_dim": lambda i, **k: lax.dynamic_update_slice_in_dim(X, two, i, 0, **k),
        "dynamic_update_index_in_dim": lambda i, **k: lax.dynamic_update_index_in_dim(X, 9.0, i, 0, **k),
    }
    for call in calls.values():
        size = (
            call(0).shape[0] if call(0).shape[0] < 5 else 2 if call is not calls["dynamic_update_index_in_dim"] else 1
        )
        assert call(-size).tolist() == call(5 - size).tolist()
        assert call(2, allow_negative_indices=False).tolist() == call(2).tolist()
        with pytest.raises(errors.ShapeError, match="the index -1 is negative, but allow_negative_indices is False"):
            call(-1, allow_negative_indices=False)
        traced = jit(lambda i: call(i, allow_negative_indices=False))(-1)  # noqa: B023
        assert traced.tolist() == call(0).tolist()
    m = jnp.arange(6.0).reshape(2, 3)
    assert lax.dynamic_slice(m, (-1, 0), (1, 1), allow_negative_indices=(True, False)) == 3
    with pytest.raises(errors.ShapeError, match="a bool, or one for each axis"):
        lax.dynamic_slice(m, (0, 0), (1, 1), allow_negative_indices=(True,))


def test_shapes_that_broadcast() -> None:
    assert lax.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert lax.broadcast_shapes((), [4]) == (4,)
    assert lax.broadcast_shapes() == ()
    with pytest.raises(errors.ShapeError, match="incompatible shapes"):
        lax.broadcast_shapes((2,), (3,))
    with pytest.raises(errors.ShapeError, match="takes shapes"):
        lax.broadcast_shapes("ab", (3,))


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "maximum", "equal", "bitwise_or", "logical_and", "logaddexp", "negative"]
)
def test_out_and_where_are_refused(name: str) -> None:
    f = getattr(jnp, name)
    x = jnp.arange(3)
    operands = (x,) if name == "negative" else (x, x)
    for option in ({"out": x}, {"where": x > 1}):
        with pytest.raises(errors.UnsupportedArgumentError, match=rf"{name}: the argument {next(iter(option))}"):
            f(*operands, **option)
    assert np.array_equal(f(*operands, out=None, where=None), f(*operands))
    g = custom_jvp(f)  # whose rules take all arguments by position
    g.defjvp(lambda xs, ts: (f(*xs), f(*xs)))
    assert np.array_equal(g(*operands), f(*operands))


def test_a_star_brings_the_names_that_are_imported_late_too() -> None:
    names: dict[str, Any] = {}
    exec("from pullback import *", names)
    assert {"grad", "lax", "tree", "random", "nn", "custom_vjp", "checkpoint"} <= names.keys()
    assert set(names) - {"__builtins__"} == {name for name in dir(pullback) if not name.startswith("_")}
