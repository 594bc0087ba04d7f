"""``make_jaxpr``, ``eval_shape`` and ``ShapeDtypeStruct``."""

from __future__ import annotations

from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    ShapeDtypeStruct,
    closure_convert,
    eval_shape,
    grad,
    hessian,
    jit,
    jvp,
    linearize,
    make_jaxpr,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core.array import as_array, typeof
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.source import describe
from pullback.lax import cond, dynamic_slice, scan, while_loop
from tests.helpers import assert_elements_close

Point = namedtuple("Point", "x y")
x3 = as_array(np.array([0.5, -1.0, 2.0], np.float32))


close = partial(assert_elements_close, rtol=1e-5, atol=1e-6, dtypes=False)


def test_trees_in_and_out() -> None:
    def f(p: Any, q: Any) -> Any:
        return {"s": p["a"] + q.x, "n": None, "t": (q.y, 2.0, p["a"])}

    p, q = {"a": x3, "none": None}, Point(1.0, jnp.ones((2, 2)))
    closed, shape = make_jaxpr(f, return_shape=True)(p, q)
    assert [str(a) for a in closed.in_avals] == ["float32[3]", "float32[]", "float32[2,2]"]
    f32 = lambda *s, weak=False: ShapeDtypeStruct(s, "float32", weak_type=weak)
    assert shape == {"s": f32(3), "n": None, "t": (f32(2, 2), f32(weak=True), f32(3))}
    assert eval_shape(f, p, q) == shape
    for got, expected in zip(jaxpr_as_fun(closed)(*tree.leaves((p, q))), tree.leaves(f(p, q)), strict=True):
        close(got, expected)


def test_keywords_and_static_arguments() -> None:
    f = lambda x, n, *, y: x * n + y
    assert [str(a) for a in make_jaxpr(f)(1.0, 2, y=3.0).in_avals] == ["float32[]", "int32[]", "float32[]"]
    assert len(make_jaxpr(f, static_argnums=1)(1.0, 2, y=3.0).in_avals) == 2
    assert len(make_jaxpr(f, static_argnums=(-1,))(1.0, 2, y=3.0).in_avals) == 2
    assert len(make_jaxpr(lambda mode, x: x if mode == "a" else -x, (0,))("a", 1.0).in_avals) == 1
    assert len(make_jaxpr(lambda g, x: g(x), [0])(jnp.sin, 1.0).eqns) == 1
    assert "(2.0:f32[],)" in str(make_jaxpr(lambda: 2.0)())


def test_types_are_enough() -> None:
    struct = ShapeDtypeStruct((2, 3), "bfloat16")
    assert "b:bf16[2,3] = sin a" in str(make_jaxpr(jnp.sin)(struct))
    assert eval_shape(jnp.sum, ShapeDtypeStruct((10**9, 10**9), "float32")).shape == ()
    assert eval_shape(grad(lambda x: jnp.sum(x * x)), ShapeDtypeStruct((10**6, 10**6), "float32")).shape == (
        10**6,
        10**6,
    )
    assert eval_shape(hessian(lambda x: jnp.sum(x * x)), ShapeDtypeStruct((5,), "float32")).shape == (5, 5)
    assert eval_shape(vmap(jnp.dot, (0, None)), struct, ShapeDtypeStruct((3,), "bfloat16")).shape == (2,)


def test_structs() -> None:
    s = ShapeDtypeStruct([2, 3], np.float32)
    assert (s.shape, s.ndim, s.size, len(s)) == ((2, 3), 2, 6, 2)
    assert s == ShapeDtypeStruct((2, 3), "float32")
    assert hash(s) == hash(ShapeDtypeStruct((2, 3), "float32"))
    assert s != ShapeDtypeStruct((2, 3), "float16")
    assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    with pytest.raises(TypeError, match="no length"):
        len(ShapeDtypeStruct((), "float32"))


def test_constants() -> None:
    """Arrays that the function closes over are constants, once each; numbers are written into the program."""
    large = jnp.arange(4.0)
    closed = make_jaxpr(lambda x: x * large + large + 2.0 + jnp.asarray(3.0))(1.0)
    assert [typeof(c).shape for c in closed.consts] == [(4,)]
    assert closed.consts[0] is large
    close(jaxpr_as_fun(closed)(1.0)[0], 2 * np.arange(4) + 5)


scalar, weak, integer, flag = jnp.array(2.0, "float32"), jnp.asarray(2.0), jnp.array(3), jnp.array(True)
numpy_array, numpy_number = np.array(2.0, np.float32), np.float32(2)
CLOSED_OVER = {  # what a function closes over or makes -> whether its program has a constant for it
    "an array": (lambda x: x * scalar, True),
    "one whose type gives way": (lambda x: x * weak, True),
    "an integer": (lambda x: x * integer, True),
    "a boolean": (lambda x: jnp.where(flag, x, 0.0), True),
    "the result itself": (lambda x: scalar, True),
    "the same as it is": (lambda x: x * jnp.asarray(scalar), True),
    "what is computed of it": (lambda x: x * jnp.sin(scalar), True),
    "twice": (lambda x: x * scalar + scalar, True),
    "the start of a slice": (lambda x: dynamic_slice(jnp.broadcast_to(x, (5,)), (integer,), (2,)), True),
    "the body of a loop": (lambda x: scan(lambda c, _: (c * scalar, None), x, None, length=2)[0], True),
    "the test of a loop": (lambda x: while_loop(lambda c: c < scalar, lambda c: c + 1.0, x), True),
    "a branch": (lambda x: cond(x > 0, lambda x: x * scalar, lambda x: x, x), True),
    "a gradient": (grad(lambda x: x * x * scalar), True),
    "a number of Python": (lambda x: x * 2.0, False),
    "an array of NumPy": (lambda x: x * numpy_array, False),
    "a number of NumPy": (lambda x: x * numpy_number, False),
    "an array made meanwhile": (lambda x: x * jnp.array(2.0), False),
    "one of a dtype": (lambda x: x * jnp.array(2, "float32"), False),
    "a conversion": (lambda x: x * jnp.float32(2), False),
    "zero": (lambda x: x * jnp.zeros(()), False),
    "a full array": (lambda x: x * jnp.full((), 7.0), False),
    "a NumPy array made ours": (lambda x: x * jnp.asarray(numpy_array), False),
    "a loop with numbers": (lambda x: scan(lambda c, _: (c * jnp.array(2.0), None), x, None, length=2)[0], False),
    "a derivative": (lambda x: jvp(jnp.sin, (x,), (jnp.ones(()),)), False),
}


@pytest.mark.parametrize("what", CLOSED_OVER)
def test_scalar_arrays_that_were_there_before_are_constants_and_others_literals(what: str) -> None:
    """As in JAX 0.10.2."""
    function, constant = CLOSED_OVER[what]
    closed = make_jaxpr(function)(1.5)
    assert [typeof(c).shape for c in closed.consts] == [()] * constant
    assert len(closed.jaxpr.constvars) == constant
    for got, expected in zip(jaxpr_as_fun(closed)(1.5), tree.leaves(function(1.5)), strict=True):
        close(got, expected)
    again = make_jaxpr(jaxpr_as_fun(closed))(1.5)  # constants stay constants, and literals literals
    assert len(again.consts) == constant


def test_what_is_made_of_a_function_has_the_scalar_arrays_that_it_closes_over() -> None:
    f = lambda x: jnp.sin(x) * scalar
    assert jit(f).trace(1.5).jaxpr.consts == [scalar]
    assert closure_convert(f, 1.5)[1] == closure_convert(lambda x: x * numpy_number * jnp.array(2.0), 1.5)[1] == []
    inner = make_jaxpr(lambda x: jit(f)(x))(1.5)
    assert (inner.consts, inner.eqns[0].params["jaxpr"].consts) == ([], [scalar])
    linear = make_jaxpr(linearize(f, 1.5)[1])(1.0)
    assert len(linear.consts) == 2  # the cosine too


def test_a_loop_of_another_scalar_array_is_the_same_program() -> None:
    def program(a: Any) -> Any:
        return make_jaxpr(lambda x: scan(lambda c, _: (c * a, None), x, None, length=2)[0])(1.5)

    first, second = program(jnp.array(2.0)), program(jnp.array(3.0))
    assert first.eqns[0].params["jaxpr"] is second.eqns[0].params["jaxpr"]


def test_scalar_arrays_of_other_threads_are_constants() -> None:
    def f(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:  # which records nothing itself
            return x * pool.submit(jnp.array, 2.0).result()

    assert len(make_jaxpr(f)(1.5).consts) == 1


def test_equations_know_their_lines() -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        return jnp.cos(y)

    first = f.__code__.co_firstlineno
    for closed in (make_jaxpr(f)(1.0), make_jaxpr(vmap(f))(x3)):
        assert [describe(e.made_at) for e in closed.eqns] == [f"{__file__}:{first + k} (f)" for k in (1, 2)]
    lines = {describe(e.made_at) for e in make_jaxpr(grad(f))(1.0).eqns[:2]}
    assert lines <= {f"{__file__}:{first + 1} (f)"}


def test_nothing_is_computed() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return x / 0.0

    make_jaxpr(f)(1.0)
    eval_shape(f, 1.0)
    assert len(calls) == 2
    assert not any(hasattr(x, "_value") for x in calls)


def test_the_gradient_of_a_product() -> None:
    """One multiplication that nothing uses, and one by the literal 1.0."""
    closed = make_jaxpr(grad(lambda x, y: x * y))(2.0, 3.0)
    assert [e.primitive.name for e in closed.eqns] == ["mul", "mul"]
    assert "_:f32[] = mul a b" in str(closed)
    assert "c:f32[] = mul 1.0:f32[] b" in str(closed)


def f_of(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * x)


COMPOSED: dict[str, Any] = {
    "grad": grad(f_of),
    "value_and_grad": value_and_grad(f_of),
    "hessian": hessian(f_of),
    "jvp": lambda x: jvp(f_of, (x,), (x,)),
    "vjp": lambda x: vjp(f_of, x)[1](2.0),
    "linearize": lambda x: linearize(f_of, x)[1](x),
    "vmap": vmap(lambda v: f_of(v) * v),
    "vmap of grad": vmap(grad(f_of)),
    "the vjp function itself": lambda x: vjp(f_of, x)[1],
}


@pytest.mark.parametrize("name", COMPOSED)
def test_staged_and_evaluated(name: str) -> None:
    f = COMPOSED[name]
    closed = make_jaxpr(f)(x3)
    check_jaxpr(closed)
    for got, expected in zip(jaxpr_as_fun(closed)(x3), tree.leaves(f(x3)), strict=True):
        close(got, expected)
    again = make_jaxpr(jaxpr_as_fun(closed))(x3)
    assert len(again.eqns) == len(closed.eqns)


def test_staging_within_staging() -> None:
    def outer(x: Any) -> Any:
        inner = make_jaxpr(lambda y: y * x)(2.0)
        assert len(inner.consts) == 1
        return jaxpr_as_fun(inner)(3.0)[0]

    close(jaxpr_as_fun(make_jaxpr(outer)(5.0))(5.0)[0], 15.0)
    close(grad(outer)(5.0), 3.0)
    close(vmap(outer)(x3), 3 * np.asarray(x3))
