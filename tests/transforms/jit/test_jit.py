"""``jit``: every way of calling it, and its composition with the other transformations."""

from __future__ import annotations

import functools
import gc
import io
import logging
import pickle
import subprocess
import sys
import threading
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import (
    disable_jit,
    enable_x64,
    errors,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core.array import ArrayImpl, is_on_host
from pullback.core.config import override
from pullback.core.trace import Tracer
from tests.helpers import assert_elements_close

close = partial(assert_elements_close, rtol=1e-5)


def f(x: Any) -> Any:
    return jnp.sin(x) * x + 2.0


class Counter:
    """Counts how often Python runs a function, which is when it is traced."""

    def __init__(self, function: Any = f) -> None:
        self.function = function
        self.count = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.function(*args, **kwargs)


# Calling -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1.5, 2, np.float32(3), np.arange(4.0), np.ones((2, 0), np.float32)])
def test_value_dtype_and_weak_type_are_those_of_the_function(x: Any) -> None:
    out, expected = jit(f)(x), f(jnp.asarray(x) if isinstance(x, np.ndarray) else x)
    close(out, expected)
    assert out.weak_type == expected.weak_type


def test_it_is_traced_once_for_each_kind_of_arguments() -> None:
    g = Counter()
    compiled = jit(g)
    for _ in range(3):
        compiled(jnp.ones(3))
        compiled(np.ones(3, np.float32))
    assert g.count == 1
    compiled(jnp.ones(4))
    compiled(jnp.ones(3, jnp.int32))
    assert g.count == 3
    compiled(1.0)  # weakly typed
    compiled(np.float32(1))
    assert g.count == 5


def test_trees_in_and_out_and_keyword_arguments() -> None:
    @jit
    def g(a: Any, *, b: Any, c: Any = None) -> Any:
        return {"sum": a["x"] + b, "pair": (a["x"], [b, None])}

    out = g({"x": jnp.ones(2)}, b=3.0)
    close(out, {"sum": jnp.full(2, 4.0), "pair": (jnp.ones(2), [jnp.asarray(3.0), None])})
    assert isinstance(out["pair"], tuple)
    assert out["pair"][1][1] is None


def test_decorator_with_and_without_arguments_on_methods_partials_and_ufuncs() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @functools.partial(jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return self.scale * x

        @jit
        def __call__(self, x: Any) -> Any:  # self is a tree of nothing: see register_static
            return x + 1.0

    pullback.tree_util.register_static(Model)
    assert float(Model(3.0).apply(2.0)) == 6.0
    assert float(Model(3.0)(2.0)) == 3.0

    @jit(static_argnames="n")
    def power(x: Any, n: int = 2) -> Any:
        return x**n

    assert float(power(3.0)) == 9.0
    assert float(power(3.0, n=3)) == 27.0
    assert float(power(3.0, 3)) == 27.0
    assert float(jit(functools.partial(lambda a, b: a - b, 5.0))(2.0)) == 3.0
    close(jit(np.sin)(1.0), jnp.sin(1.0))
    assert power.__name__ == "power"


def test_static_arguments_by_position_name_and_default() -> None:
    g = Counter(lambda x, n, mode="a": x * n if mode == "a" else x - n)
    functools.update_wrapper(g, lambda x, n, mode="a": None)
    compiled = jit(g, static_argnums=(1,), static_argnames=("mode",))
    assert [float(compiled(2.0, 3)), float(compiled(2.0, n=3)), float(compiled(2.0, 3, mode="b"))] == [6, 6, -1]
    compiled(5.0, 3)
    assert g.count == 3
    times = jit(lambda x, n: x * n, static_argnums=1)
    assert [times(jnp.arange(2), n).dtype for n in (1, 1.0, True, 1j)] == ["int32", "float32", "int32", "complex64"]
    with pytest.raises(errors.StaticArgumentError, match="Pass an int instead, or do not declare"):
        compiled(2.0, jnp.array(3))
    with pytest.raises(errors.StaticArgumentError, match=r"static argument 1 must be hashable.*\[3\] of type list"):
        compiled(2.0, [3])
    with pytest.raises(errors.ArgumentError, match="not the name of an argument"):
        jit(lambda x: x, static_argnames="y")
    for name in ("x", "rest"):  # no call passes these by keyword
        with pytest.raises(ValueError, match="is not the name of an argument"):
            jit(lambda x, /, *rest, **more: x, static_argnames=name)


def test_positions_and_names_of_static_arguments_may_disagree() -> None:
    def traced(x, y):
        return jnp.array([isinstance(x, Tracer), isinstance(y, Tracer)])

    assert jit(traced, static_argnums=1)(1, y=2).tolist() == [True, False]
    assert jit(traced, static_argnums=1, static_argnames=())(1, y=2).tolist() == [True, True]
    assert jit(traced, static_argnums=(), static_argnames="y")(1, 2).tolist() == [True, True]
    assert jit(traced, static_argnums=1, static_argnames="x")(x=1, y=2).tolist() == [False, True]
    with pytest.raises(errors.ArgumentError, match="not a position"):
        jit(lambda x: x, static_argnums=3)


def test_closed_over_arrays_small_and_large() -> None:
    small, large = jnp.arange(3.0), jnp.arange(30000.0)
    compiled = jit(lambda x: (x + small, x * large.sum(), x + large[:3]))
    x = jnp.ones(3)
    close(compiled(x), (x + small, x * large.sum(), x + large[:3]))
    text = jit(lambda i: large[i]).lower(2).as_text()
    assert len(text) < 5000
    nested = jit(lambda x: jit(lambda y: y + large)(x).sum())
    close(nested(1.0), (1.0 + large).sum(), rtol=1e-4)


def test_a_result_that_is_an_argument_is_handed_through() -> None:
    x = jnp.arange(3.0)
    out = jit(lambda x, y: (x, y + 1, x))(x, 1.0)
    for y in (out[0], out[2]):  # arrays of their own, as they may be donated apart, without a copy
        assert y is not x
        assert np.asarray(y).ctypes.data == np.asarray(x).ctypes.data
    assert out[0] is not out[2]


def test_no_arguments_and_no_results() -> None:
    close(jit(lambda: jnp.arange(3))(), jnp.arange(3))
    assert jit(lambda x: None)(1.0) is None
    assert jit(lambda x: {})(1.0) == {}
    assert float(jit(lambda: 3.0)()) == 3.0


def test_unused_arguments_are_not_arguments_of_the_program() -> None:
    g = lambda x, y: x + 1.0
    assert "arg1" not in jit(g).lower(1.0, 2.0).as_text()
    assert "arg1" in jit(g, keep_unused=True).lower(1.0, 2.0).as_text()
    close(jit(g)(1.0, jnp.ones(1000)), jnp.asarray(2.0))
    none = jit(lambda x: jnp.arange(3.0))
    for _ in range(2):
        close(none(jnp.ones(2)), jnp.arange(3.0))
    close(jit(g, keep_unused=True)(1.0, jnp.ones(1000)), jnp.asarray(2.0))


def test_results_stay_on_the_device_until_they_are_looked_at() -> None:
    out = jit(f)(jnp.ones(5))
    assert not is_on_host(out)
    assert (out.shape, out.ndim, out.size, out.dtype) == ((5,), 1, 5, np.float32)
    close(out + 1, f(jnp.ones(5)) + 1)
    assert type(out) is ArrayImpl
    assert out.block_until_ready() is out
    assert out.is_ready()
    close(jit(f)(out), f(f(jnp.ones(5))))


def test_random_keys_go_in_and_out() -> None:
    key = pullback.random.key(3)
    split = jit(lambda k: pullback.random.split(k, 3))
    assert split(key).dtype == key.dtype
    np.testing.assert_array_equal(
        pullback.random.key_data(split(key)), pullback.random.key_data(pullback.random.split(key, 3))
    )
    draw = lambda k: pullback.random.normal(k, (5,))
    close(jit(draw)(key), draw(key))
    close(jit(lambda k: draw(k[1]))(split(key)), draw(pullback.random.split(key, 3)[1]))


def test_configuration_is_part_of_the_key() -> None:
    g = Counter(lambda x: x + 1.0)
    compiled = jit(g)
    assert compiled(1.0).dtype == np.float32
    with enable_x64():
        assert compiled(1.0).dtype == np.float64
    assert compiled(1.0).dtype == np.float32
    assert g.count == 2
    mixed = jit(lambda x, y: x + y)
    assert mixed(jnp.ones(2), jnp.arange(2)).dtype == np.float32
    with override("numpy_dtype_promotion", "strict"), pytest.raises(errors.PullbackError, match="promot"):
        mixed(jnp.ones(2), jnp.arange(2))
    assert mixed(jnp.ones((3, 2)), jnp.ones(2)).shape == (3, 2)
    with override("numpy_rank_promotion", "raise"), pytest.raises(errors.PullbackError, match="rank"):
        mixed(jnp.ones((3, 2)), jnp.ones(2))


def test_disable_jit_runs_python() -> None:
    g = jit(lambda x: "positive" if x > 0 else "negative")
    with disable_jit():
        assert g(1.0) == "positive"
    with pytest.raises(errors.TracerBoolConversionError):
        g(1.0)


def test_pickling_repr_and_caches() -> None:
    restored = pickle.loads(pickle.dumps(jit(f)))
    close(restored(1.0), f(1.0))
    assert "f at" in repr(restored)
    g = Counter()
    first, second = jit(g), jit(g)
    first(1.0)
    second(1.0)
    assert g.count == 1, "what was compiled is shared by all that jit made of a function"
    first.clear_cache()
    second(1.0)
    assert g.count == 2
    pullback.clear_caches()
    second(1.0)
    assert g.count == 3


# Donation ------------------------------------------------------------------------------------------------------------


def test_a_donated_array_is_gone() -> None:
    step = jit(lambda p, x: p - 0.1 * x, donate_argnums=0)
    p = jit(lambda: jnp.ones(1000))()
    out = step(p, jnp.ones(1000))
    close(out, jnp.full(1000, 0.9))
    assert p.is_deleted()
    assert p.shape == (1000,)
    for use in (lambda: p + 1, lambda: np.asarray(p), lambda: step(p, 1.0), lambda: jit(f)(p), lambda: float(p[0])):
        with pytest.raises(errors.DeletedArrayError, match="donated"):
            use()


def test_memory_that_somebody_looks_at_is_not_overwritten() -> None:
    step = jit(lambda p: p + 1.0, donate_argnames="p")
    p = jit(lambda: jnp.zeros(5000))()
    view = np.asarray(p)
    q = step(p=p)
    assert view[0] == 0.0
    host = jnp.zeros(5000)
    kept = np.asarray(host)
    step(p=host)
    assert kept[0] == 0.0
    assert float(q[0]) == 1.0


def test_an_array_that_is_donated_twice() -> None:
    x = jnp.ones(3)
    with pytest.raises(errors.ArgumentError, match="donated twice"):
        jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))(x, x)


def test_donation_in_later_calls() -> None:  # which go another way than the first
    step = jit(lambda p, x: {name: v + x for name, v in p.items()}, donate_argnums=0)
    made = jit(lambda: {"a": jnp.zeros(1000), "b": jnp.ones(1000)})
    one = made()["b"]
    step(made(), one)

    p = made()
    copied, view = jnp.copy(p["a"]), np.asarray(p["b"])
    for _ in range(2):
        q = step(p, one)
        assert p["a"].is_deleted()
        assert p["b"].is_deleted()
        with pytest.raises(errors.DeletedArrayError, match="donated"):
            step(p, one)
        p = q
    assert not one.is_deleted()
    assert copied[0] == 0.0
    assert view[0] == 1.0
    close(p["a"], jnp.full(1000, 2.0))
    close(p["b"], jnp.full(1000, 3.0))

    with pytest.raises(errors.ArgumentError, match="donated twice"):
        step({"a": one, "b": one}, p["a"])
    assert one[0] == 1.0
    out = step(p, p["a"])  # an operand too
    close(out["b"], jnp.full(1000, 5.0))
    on_host = {"a": jnp.asarray(np.ones(1000, "float32")), "b": one}
    close(step(on_host, out["a"])["a"], jnp.full(1000, 5.0))
    assert on_host["a"].is_deleted()


def test_donation_where_one_array_is_the_result() -> None:
    step = jit(lambda p: p + 1.0, donate_argnums=0)
    p = jit(lambda: jnp.zeros(3))()
    for _ in range(3):
        p, old = step(p), p
        assert old.is_deleted()
    close(p, jnp.full(3, 3.0))


def test_donated_keywords_in_any_order() -> None:
    step = jit(lambda *, rate, params: params - rate, donate_argnames="params")
    for order in (("rate", "params"), ("params", "rate")):
        given = {"rate": jit(lambda: jnp.ones(3))(), "params": jit(lambda: jnp.zeros(3))()}
        close(step(**{name: given[name] for name in order}), jnp.full(3, -1.0))
        assert given["params"].is_deleted()
        assert not given["rate"].is_deleted()


def test_a_donated_array_that_is_handed_through_stays() -> None:
    x = jnp.ones(3)
    same, other = jit(lambda x: (x, x + 1.0), donate_argnums=0)(x)
    assert not x.is_deleted()
    close(same, jnp.ones(3))
    close(other, jnp.full(3, 2.0))


def test_donation_that_cannot_be_used_warns() -> None:
    x = jnp.ones(3)
    with pytest.warns(UserWarning, match=r"^Some donated buffers were not usable: .*argument 0 \(x\) of type f32\[3\]"):
        jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert not x.is_deleted()


# Composition ---------------------------------------------------------------------------------------------------------


def g(x: Any, y: Any) -> Any:
    return jnp.sum(jnp.sin(x) * y**2) + jnp.max(x)


X, Y = jnp.arange(3.0), jnp.asarray([0.5, -1.0, 2.0])


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: grad(f, argnums=(0, 1)),
        lambda f: value_and_grad(f),
        lambda f: hessian(f),
        lambda f: jacfwd(jacrev(f, argnums=1)),
        lambda f: lambda x, y: jvp(f, (x, y), (y, x)),
        lambda f: lambda x, y: vjp(f, x, y)[1](2.0),
        lambda f: lambda x, y: linearize(f, x, y)[1](y, x),
        lambda f: vmap(f, in_axes=(0, None)),
        lambda f: vmap(grad(f), in_axes=(None, 0)),
        lambda f: grad(lambda x, y: vmap(f)(x, y).sum()),
    ],
)
def test_transformations_commute_with_jit(transform: Any) -> None:
    expected = transform(g)(X, Y)
    close(transform(jit(g))(X, Y), expected)
    close(jit(transform(g))(X, Y), expected)
    close(jit(transform(jit(g)))(X, Y), expected)
    closed = make_jaxpr(transform(jit(g)))(X, Y)
    close(pullback.core.jaxpr.jaxpr_as_fun(closed)(X, Y), pullback.tree.leaves(expected))


def test_nothing_is_traced_again_by_a_second_transformation() -> None:
    h = Counter(g)
    compiled = jit(h)
    for _ in range(2):
        grad(compiled)(X, Y)
        hessian(compiled)(X, Y)
        vmap(compiled)(X[:, None], Y[:, None])
    assert h.count == 2  # vectors, and the examples of vmap


def test_jit_of_a_pullback() -> None:
    def branching(x: Any) -> Any:
        return x**2 if x > 3 else jnp.pi * x

    _, pull = vjp(branching, 1.0)
    assert float(jit(pull)(1.0)[0]) == pytest.approx(3.1415927)
    back = jit(lambda x: vjp(jnp.sin, x))(2.0)
    assert float(back[1](1.0)[0]) == pytest.approx(np.cos(2.0), rel=1e-6)


def test_captured_tracers() -> None:
    def outer(x: Any) -> Any:
        inner = jit(lambda y: y * x)
        return inner(3.0) + inner(x)

    assert float(grad(outer)(2.0)) == 7.0
    close(vmap(outer)(X), 3 * X + X**2)
    assert float(jit(grad(outer))(2.0)) == 7.0
    close(jit(vmap(grad(outer)))(X), 3 + 2 * X)


def test_inline_shows_the_operations() -> None:
    inner = jit(f, inline=True)
    assert "jit" not in str(make_jaxpr(lambda x: inner(x))(1.0))
    assert "jit" in str(make_jaxpr(lambda x: jit(f)(x))(1.0))


def test_functions_of_nested_programs_are_written_once() -> None:
    inner = jit(lambda x: jnp.tanh(x) + 1.0)
    text = jit(lambda x: inner(inner(inner(x)))).lower(1.0).as_text()
    assert text.count("stablehlo.tanh") == 1
    assert text.count("func.call") == 3


# Ahead of time -------------------------------------------------------------------------------------------------------


def test_stages() -> None:
    struct = pullback.ShapeDtypeStruct((3,), jnp.float32)
    traced = jit(f).trace(struct)
    assert traced.out_info.shape == (3,)
    assert "sin" in str(traced.jaxpr)
    lowered = traced.lower()
    assert "stablehlo.sine" in lowered.as_text()
    assert "test_jit.py" in lowered.as_text(debug_info=True)
    assert "HloModule" in lowered.as_text("hlo")
    assert lowered.cost_analysis()["flops"] > 0
    compiled = lowered.compile()
    close(compiled(jnp.ones(3)), f(jnp.ones(3)))
    assert "HloModule" in compiled.as_text()
    assert compiled.memory_analysis().argument_size_in_bytes == 12
    assert compiled.cost_analysis()["bytes accessed"] > 0
    with pytest.raises(errors.ArgumentError, match=r"argument 0 \(x\) must be f32\[3\], but is f32\[4\]"):
        compiled(jnp.ones(4))
    with pytest.raises(errors.ArgumentError, match="cannot be transformed"):
        grad(lambda x: compiled(x).sum())(jnp.ones(3))
    with pytest.raises(errors.CompilationError, match="no_such_option"):
        lowered.compile(compiler_options={"no_such_option": 1})
    assert jit(f).eval_shape(struct).shape == (3,)


# Explaining, and errors ----------------------------------------------------------------------------------------------


def test_retraces_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    compiled = jit(lambda x, y, n=1: x + y * n, static_argnames="n")
    with pullback.explain_cache_misses(), caplog.at_level(logging.WARNING):
        compiled(1.0, jnp.ones(3))
        compiled(1.0, jnp.ones(4))
        compiled(1.0, jnp.ones(4), n=2)
        compiled(np.float32(1.0), jnp.ones(4))
        compiled(1.0, jnp.ones(4))
    assert len(caplog.messages) == 4
    assert "first time" in caplog.messages[0]
    assert "argument 1 (y): f32[4], it was f32[3]" in caplog.messages[1]
    assert "the static argument n: 2, it was None" in caplog.messages[2]
    assert "argument 0 (x): f32[], strongly typed, it was f32[], weakly typed" in caplog.messages[3]
    assert "test_jit.py" in caplog.messages[1]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x if x > 0 else -x, errors.TracerBoolConversionError, "jnp.where"),
        (lambda x: list(range(x)), errors.TracerIntegerConversionError, "must be static"),
        (lambda x: float(x), errors.ConcretizationTypeError, "astype"),
        (lambda x: np.asarray(x), errors.TracerArrayConversionError, "pullback.numpy"),
        (lambda x: jnp.zeros(x), errors.TracerIntegerConversionError, "must be static"),
        (lambda x: [1, 2, 3][x], errors.TracerIntegerConversionError, "jnp.take"),
        (lambda x: "text", errors.OperandError, "returned something that is not an array"),
    ],
)
def test_what_python_cannot_do_with_a_traced_value(function: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        jit(function)(3)
    assert "test_jit.py" in str(caught.value)


def test_the_arguments_that_a_value_depends_on_are_named() -> None:
    def f(a: Any, b: Any, *, c: Any) -> Any:
        y = a["w"] * 2.0
        return c if y + c > 0 else b

    with pytest.raises(errors.TracerBoolConversionError) as caught:
        jit(f)({"w": 1.0}, 2.0, c=3.0)
    assert "It depends on argument 0 (a['w']) and argument c." in str(caught.value)
    with pytest.raises(errors.TracerBoolConversionError, match=r"It depends on argument 0 \(a\['w'\]\) and argument c"):
        make_jaxpr(f)({"w": 1.0}, 2.0, c=3.0)


def test_arguments_that_are_no_arrays() -> None:
    with pytest.raises(errors.OperandError, match=r"argument 1 \(n\).*static_argnums"):
        jit(lambda x, n: x)(1.0, "text")
    with pytest.raises(errors.OperandError, match="static"):
        jit(lambda x: x)(object())
    with pytest.raises(errors.ArgumentError, match="jit: fun must be a function"):
        jit(3)


def test_a_leaked_value_is_named() -> None:
    kept: list[Any] = []
    jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(errors.UnexpectedTracerError, match="leaked"):
        kept[0] + 1


# Memory and threads --------------------------------------------------------------------------------------------------


def test_caches_keep_nothing_alive() -> None:
    class Big:
        pass

    x = jnp.arange(1000.0)
    y = ArrayImpl(np.arange(1000.0, dtype=np.float32))

    def local(a: Any) -> Any:
        return a + 1.0

    dead = weakref.ref(y), weakref.ref(local)
    out = jit(local)(y)
    jit(local)(x)
    del y, local, out
    gc.collect()
    assert dead[0]() is None
    assert dead[1]() is None


def test_the_cache_of_a_function_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.transforms.jit import caches as module

    monkeypatch.setattr(module, "MOST_KINDS", 8)
    compiled = jit(lambda x: x + 1.0)
    for n in range(20):
        assert compiled(jnp.ones(n)).shape == (n,)
    assert compiled._cache_size() <= 8


def test_threads() -> None:
    compiled = jit(lambda x: jnp.sin(x) * 2.0)
    failures: list[Any] = []

    def work(seed: int) -> None:
        try:
            for i in range(30):
                x = jnp.full(3 + (i + seed) % 5, float(seed))
                np.testing.assert_allclose(compiled(x), np.sin(np.asarray(x)) * 2, rtol=1e-6)
                np.testing.assert_allclose(grad(lambda x: compiled(x).sum())(x), np.cos(np.asarray(x)) * 2, rtol=1e-6)
                np.testing.assert_allclose(vmap(compiled)(x), np.sin(np.asarray(x)) * 2, rtol=1e-6)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


@pytest.mark.slow
def test_memory_stays_flat_over_many_calls() -> None:
    program = """
import resource
import pullback.numpy as jnp
from pullback import jit
f = jit(lambda d: {"a": d["a"] + 1.0, "b": d["b"] * 2.0})
d = {"a": jnp.ones(10), "b": jnp.ones(3)}
def run(n):
    global d
    for _ in range(n):
        d = f(d)
        d["b"] = jnp.ones(3)
    d["a"].block_until_ready()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
run(5000)
before = run(5000)
print(run(20000) - before)
"""
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert grown < 400_000


def test_memory_stays_flat_over_calls_from_deep_down_a_stack() -> None:
    program = """
import resource
import pullback.numpy as jnp
from pullback import jit
f = jit(lambda x: x + 1)
x = f(jnp.ones(3))
def deep(n):
    return deep(n - 1) if n else f(x)
def run(n):
    for _ in range(n):
        deep(20)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
run(5000)
before = run(5000)
print(run(40000) - before)
"""
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert grown < 2_000_000


def test_importing_and_differentiating_do_not_import_the_compiler() -> None:
    program = """
import sys
import pullback
from pullback import grad
import pullback.numpy as jnp
assert round(float(grad(jnp.tanh)(2.0)), 6) == 0.070651
assert "jaxlib" not in sys.modules, [m for m in sys.modules if m.startswith("jaxlib")]
assert "jax" not in sys.modules
for dtype in ("float32", "bfloat16", "int8", "bool"):
    print(pullback.jit(lambda x: x + x)(jnp.ones(3, dtype)))
assert "jaxlib" in sys.modules
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_gradient_on_a_device_takes_the_weak_type_of_its_argument_where_it_is() -> None:
    two = jnp.ones(()) * 2
    gradient = grad(jit(lambda x: x * two))(3.0)
    assert not is_on_host(gradient)  # it was not fetched
    assert gradient.weak_type
    assert float(gradient) == 2.0
    assert not grad(jit(lambda x: x * two))(jnp.float32(3.0)).weak_type


def test_a_first_program_needs_no_modules_for_several_processes() -> None:
    program = """
import sys
import pullback.numpy as jnp
from pullback import grad, jit
jit(grad(lambda x: jnp.tanh(x).sum()))(jnp.ones(3))
assert not {"asyncio", "ssl", "json"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_calls_of_programs_with_captured_arrays() -> None:
    """Captured arrays are arguments of the program, after the others; the second call goes a quicker way."""
    a, b = jnp.arange(100.0), jnp.full(100, 7.0)
    f = jit(lambda x: x * a - b)
    x = jnp.ones(100)
    for _ in range(3):
        np.testing.assert_array_equal(f(x), np.arange(100) - 7)
    b.delete()
    with pytest.raises(errors.DeletedArrayError):
        f(x)


def test_what_the_steps_say_of_the_arguments() -> None:
    f = jit(lambda x, y, n: {"a": (x["b"] + y) * n, "c": y + n}, static_argnums=2, donate_argnums=1)
    given = {"b": jnp.ones((2, 3))}, jnp.ones(3, "int32"), 4
    traced = f.trace(*given)
    (x, y), named = traced.args_info
    assert (x["b"].shape, x["b"].dtype, x["b"].donated) == ((2, 3), np.float32, False)
    assert (y.shape, y.dtype, y.donated, named) == ((3,), np.int32, True, {})
    lowered = traced.lower(lowering_platforms=("cpu",))
    compiled = traced.lower().compile()
    for step in (lowered, compiled):
        assert step.args_info == traced.args_info
        assert step.in_tree == traced.in_tree == pullback.tree.structure((({"b": 0}, 0), {}))
        assert [a.shape for a in pullback.tree.leaves(step.in_avals)] == [(2, 3), (3,)]
        assert step.donate_argnums == (1,)
    with pytest.raises(
        ValueError, match=r"shardings of <lambda> determine the devices \[.*\], but device_assignment is \[\]"
    ):
        lowered.compile(device_assignment=[])
    assert lowered.compile(device_assignment=pullback.devices()[:1]).in_tree == compiled.in_tree
    hlo = lowered.compiler_ir("hlo")
    assert hlo.as_hlo_text() == hlo == lowered.as_text("hlo")
    assert hlo.startswith("HloModule")
    module = lowered.compiler_ir()
    assert "stablehlo" in module
    assert module == lowered.as_text() == pickle.loads(pickle.dumps(module))
    (main,) = module.body.operations
    names = [op.OPERATION_NAME for op in main.body.blocks[0].operations]
    assert names[-1] == "func.return"
    assert "stablehlo.add" in names
    written = io.StringIO()
    module.operation.print(file=written, enable_debug_info=True)
    assert "test_jit.py" in written.getvalue()
    assert not hasattr(module, "no_such_attribute")
    assert not hasattr(module, "_private")


def test_what_is_no_function_to_compile() -> None:
    def numbers(n: Any) -> Any:
        yield n

    with pytest.raises(errors.ArgumentError, match=r"a generator function, .*numbers at .*Return a list"):
        jit(numbers)
    with pytest.raises(errors.ArgumentError, match="staticmethod arguments are not supported"):
        jit(staticmethod(jnp.sin))


def test_types_of_results_have_the_shardings_that_are_asked_for() -> None:
    sharding = pullback.sharding.SingleDeviceSharding(pullback.devices()[0])
    f = jit(lambda x: (x, 2 * x), out_shardings=(None, sharding))
    first, second = f.eval_shape(jnp.ones(3))
    assert (first.sharding, second.sharding, second.shape) == (None, sharding, (3,))


def test_a_traced_array_has_the_sharding_of_its_value_or_of_its_type() -> None:
    seen: list[Any] = []

    @jit
    def f(x: Any) -> Any:
        seen.append(hasattr(x, "sharding"))
        with pytest.raises(AttributeError, match=r"jax.typeof\(x\).sharding"):
            x.sharding  # noqa: B018
        return x

    f(1.0)
    pullback.grad(f)(1.0)
    assert seen[0] is False
    one = jnp.ones(())
    pullback.grad(lambda x: (seen.append(x.sharding), x)[1])(one)
    assert seen[-1] == one.sharding


def test_shardings_that_do_not_go_together() -> None:
    mesh = pullback.make_mesh((1,), ("i",), (pullback.sharding.AxisType.Auto,))
    free, rows = (pullback.NamedSharding(mesh, pullback.P(entry)) for entry in (pullback.P.UNCONSTRAINED, "i"))
    for option in ("in_shardings", "out_shardings"):
        with pytest.raises(errors.ShardingError, match=f"{option}: unconstrained axes are not allowed"):
            jit(jnp.sin, **{option: free})
        for where in ({"device": pullback.devices()[0]}, {"backend": "cpu"}):
            with pytest.raises(errors.ArgumentError, match=f"either {next(iter(where))} or {option}"):
                jit(jnp.sin, **{option: rows}, **where)
    with pytest.raises(errors.ShardingError, match="None instead of a sharding"):
        pullback.lax.with_sharding_constraint((1.0, 2.0), (rows, None))
    for sharding in (pullback.NamedSharding(mesh, pullback.P(None, "i")), pullback.P(None, "i")):
        with pytest.raises(errors.ShardingError, match="rank at least 2, but was applied to a value of rank 1"):
            pullback.ShapeDtypeStruct((3,), "float32", sharding=sharding)
