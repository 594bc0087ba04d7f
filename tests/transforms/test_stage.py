"""``make_jaxpr``, ``eval_shape`` and ``ShapeDtypeStruct``."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    ShapeDtypeStruct,
    eval_shape,
    grad,
    hessian,
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

Point = namedtuple("Point", "x y")
x3 = as_array(np.array([0.5, -1.0, 2.0], np.float32))


def close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-5, atol=1e-6)


def test_trees_in_and_out() -> None:
    def f(p: Any, q: Any) -> Any:
        return {"s": p["a"] + q.x, "n": None, "t": (q.y, 2.0, p["a"])}

    p, q = {"a": x3, "none": None}, Point(1.0, jnp.ones((2, 2)))
    closed, shape = make_jaxpr(f, return_shape=True)(p, q)
    assert [str(a) for a in closed.in_avals] == ["f32[3]", "f32[]", "f32[2,2]"]
    f32 = lambda *s, weak=False: ShapeDtypeStruct(s, "float32", weak_type=weak)
    assert shape == {"s": f32(3), "n": None, "t": (f32(2, 2), f32(weak=True), f32(3))}
    assert eval_shape(f, p, q) == shape
    for got, expected in zip(jaxpr_as_fun(closed)(*tree.leaves((p, q))), tree.leaves(f(p, q)), strict=True):
        close(got, expected)


def test_keywords_and_static_arguments() -> None:
    f = lambda x, n, *, y: x * n + y
    assert [str(a) for a in make_jaxpr(f)(1.0, 2, y=3.0).in_avals] == ["f32[]", "i32[]", "f32[]"]
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
    """Arrays that the function closes over are constants, once each; small ones are written into the program."""
    large = jnp.arange(4.0)
    closed = make_jaxpr(lambda x: x * large + large + 2.0 + jnp.asarray(3.0))(1.0)
    assert [typeof(c).shape for c in closed.consts] == [(4,)]
    assert closed.consts[0] is large
    close(jaxpr_as_fun(closed)(1.0)[0], 2 * np.arange(4) + 5)


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
