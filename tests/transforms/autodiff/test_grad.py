"""Derivatives: ``grad``, ``value_and_grad``, ``jvp``, ``vjp``, ``linearize`` and ``linear_transpose``."""

from __future__ import annotations

import pickle
import threading
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import (
    float0,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core import linear
from pullback.core.array import Array, ArrayImpl, as_array
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.trace import EVAL, state
from pullback.primitives import sums
from tests.helpers import assert_arrays_close as close

Point = namedtuple("Point", "x y")
x3 = as_array(np.array([0.5, -1.0, 2.0], np.float32))
m23 = as_array(np.arange(6, dtype=np.float32).reshape(2, 3) / 5 - 0.3)


def weighted(a: Any, b: Any, c: Any = 1.0, *, scale: Any = 1.0) -> Any:
    return scale * (a * a * b + c)


# Which arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, 12.0), (1, 4.0), (-1, 4.0), (-2, 12.0), ((0,), (12.0,)), ((1, 0), (4.0, 12.0)), ((-1, -2), (4.0, 12.0)),
     ([0, 1], (12.0, 4.0)), (np.int64(1), 4.0)],
)  # fmt: skip
def test_argnums(argnums: Any, expected: Any) -> None:
    close(grad(weighted, argnums)(2.0, 3.0), expected)
    close(value_and_grad(weighted, argnums)(2.0, 3.0), (13.0, expected))
    close(jacfwd(weighted, argnums)(2.0, 3.0), expected)
    close(jacrev(weighted, argnums)(2.0, 3.0), expected)


def test_keyword_arguments_pass_through() -> None:
    close(grad(weighted)(2.0, 3.0, scale=2.0), 24.0)
    close(grad(weighted)(2.0, b=3.0, scale=2), 24.0)
    close(jacrev(weighted)(x3, 3.0, scale=2.0), np.diag(12 * np.asarray(x3)))
    close(grad(lambda x, *, flag: x * x if flag else x)(3.0, flag=True), 6.0)


def test_arguments_that_are_not_chosen_may_be_anything() -> None:
    close(grad(lambda name, x, f: f(x) if name == "f" else x, 1)("f", 3.0, lambda v: v * v), 6.0)


# Auxiliary results -------------------------------------------------------------------------------------------------


def with_aux(x: Any) -> Any:
    """Aux of traced values, values that do not depend on x, things that are not arrays, and None."""
    return x * x, {"traced": [x + 1, jnp.sin(x)], "number": 3, "text": "t", "none": None, "point": Point(x, 2.0)}


AUX: dict[str, Callable[[], Any]] = {
    "grad": lambda: grad(with_aux, has_aux=True)(2.0),
    "jacfwd": lambda: jacfwd(with_aux, has_aux=True)(2.0),
    "jacrev": lambda: jacrev(with_aux, has_aux=True)(2.0),
    "hessian": lambda: (hessian(with_aux, has_aux=True)(2.0)[0] * 2.0, hessian(with_aux, has_aux=True)(2.0)[1]),
    "value_and_grad": lambda: (lambda r: (r[1], r[0][1]))(value_and_grad(with_aux, has_aux=True)(2.0)),
    "jvp": lambda: jvp(with_aux, (2.0,), (1.0,), has_aux=True)[1:],
    "vjp": lambda: (lambda r: (r[1](1.0)[0], r[2]))(vjp(with_aux, 2.0, has_aux=True)),
    "linearize": lambda: (lambda r: (r[1](1.0), r[2]))(linearize(with_aux, 2.0, has_aux=True)),
}


@pytest.mark.parametrize("name", AUX)
def test_aux_comes_out_concrete(name: str) -> None:
    derivative, aux = AUX[name]()
    close(derivative, 4.0)
    assert (aux["number"], aux["text"], aux["none"]) == (3, "t", None)
    close([*aux["traced"], aux["point"].x], [3.0, np.sin(2.0), 2.0])
    assert aux["point"].y == 2.0


def test_aux_of_nested_gradients() -> None:
    second, aux = grad(grad(lambda x: (x**3, {"x": x}), has_aux=True), has_aux=True)(2.0)
    close((second, aux), (12.0, {"x": 2.0}))
    close(vmap(grad(lambda x: (x**2, x), has_aux=True))(x3), (2 * np.asarray(x3), x3))


# Trees, and other dtypes -------------------------------------------------------------------------------------------


def test_trees_of_arguments() -> None:
    def loss(p: Any) -> Any:
        return jnp.sum(p["w"] * p["p"].x) + p["p"].y ** 2 + sum(p["l"])

    params = {"w": x3, "p": Point(x3, 3.0), "none": None, "l": (1.0, 2.0), "empty": {}}
    expected = {"w": x3, "p": Point(x3, 6.0), "none": None, "l": (1.0, 1.0), "empty": {}}
    close(grad(loss)(params), expected)
    close(value_and_grad(loss)(params)[1], expected)
    assert type(grad(loss)(params)["p"]) is Point
    close(vjp(loss, params)[1](1.0), (expected,))
    close(grad(lambda p: 1.0)({}), {})
    close(grad(lambda p: 2.0)(None), None)


def test_gradients_have_the_dtype_and_shape_of_their_arguments() -> None:
    for dtype in ("float16", "bfloat16", "float32"):
        g = grad(lambda x: jnp.sum(x * x))(m23.astype(dtype))
        assert (g.dtype, g.shape) == (jnp.dtype(dtype), (2, 3))
    g16, g32 = grad(lambda x, y: jnp.sum(x * y), (0, 1))(x3.astype("float16"), x3)
    assert (g16.dtype, g32.dtype) == (np.float16, np.float32)
    assert grad(lambda x: x * 2)(1.0).weak_type
    assert grad(lambda x: x * jnp.float32(2))(1.0).weak_type
    assert not grad(lambda x: x * 2)(jnp.float32(1)).weak_type


def test_integers_and_booleans() -> None:
    f, i = jnp.asarray(2.0), jnp.asarray([1, 2])
    gf, gi, gb = grad(lambda f, i, b: f * jnp.sum(i) * b, (0, 1, 2), allow_int=True)(f, i, True)
    close(gf, 3.0)
    assert (gi.dtype, gi.shape, gb.dtype, gb.shape) == (float0, (2,), float0, ())
    assert grad(lambda p: p["f"] * p["i"], allow_int=True)({"f": 2.0, "i": 3})["i"].dtype == float0
    close(jvp(lambda f, i: f * i, (2.0, 3), (1.0, np.zeros((), float0))), (6.0, 3.0))
    out, t = jvp(lambda f: (f * 2.0, 7), (2.0,), (1.0,))
    close((out, t[0]), ((4.0, 7), 2.0))
    assert t[1].dtype == float0
    out, pull = vjp(lambda f, i: (f * i, i), 2.0, 3)
    gf, gi = pull((jnp.asarray(1.0), np.zeros((), float0)))
    close((out, gf), ((6.0, 3), 3.0))
    assert gi.dtype == float0
    close(grad(lambda x: jnp.where(x > 0, x * x, 0.0))(3.0), 6.0)
    close(grad(lambda x: jnp.floor(x) + x.astype(int))(2.5), 0.0)
    close(grad(lambda x, n: x**n)(2.0, 3), 12.0)


def test_holomorphic() -> None:
    z = jnp.asarray(3 + 4j)
    close(grad(jnp.sin, holomorphic=True)(z), -27.034945 - 3.8511531j)
    close(grad(grad(jnp.sin, holomorphic=True), holomorphic=True)(z), -np.sin(3 + 4j))
    close(value_and_grad(lambda v: v * v, holomorphic=True)(z), (-7 + 24j, 6 + 8j))
    close(grad(lambda v: jnp.real(v) ** 2 + jnp.imag(v) ** 2)(z), 6 - 8j)
    close(grad(jnp.conj, holomorphic=True)(z), 1 - 0j)


# Nesting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", range(1, 5))
def test_higher_orders(order: int) -> None:
    expected = [np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)][order % 4](0.7)
    reverse: Any = jnp.sin
    forward: Any = jnp.sin
    mixed: Any = jnp.sin
    for i in range(order):
        reverse = grad(reverse)
        forward = lambda x, f=forward: jvp(f, (x,), (1.0,))[1]
        mixed = grad(mixed) if i % 2 else (lambda x, f=mixed: linearize(f, x)[1](1.0))
    for f in (reverse, forward, mixed):
        close(f(0.7), expected)
        close(vmap(f)(jnp.full(2, 0.7)), np.full(2, expected))
        close(jaxpr_as_fun(make_jaxpr(f)(0.7))(0.7), [expected])


NEST: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "grad": grad,
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize("outer", NEST)
@pytest.mark.parametrize("inner", NEST)
def test_perturbations_are_not_confused(outer: str, inner: str) -> None:
    """d/dx of x * d/dy (x + y) is 1, and d/dx of x * d/dy (x * y) is 2x: Siskind and Pearlmutter 2005."""
    close(NEST[outer](lambda x: x * NEST[inner](lambda y: x + y)(1.0))(3.0), 1.0)
    close(NEST[outer](lambda x: x * NEST[inner](lambda y: x * y)(1.0))(3.0), 6.0)
    close(NEST[outer](lambda x: NEST[inner](lambda y: x * x * y)(x))(3.0), 6.0)


@pytest.mark.parametrize("outer", NEST)
@pytest.mark.parametrize("inner", NEST)
def test_python_control_flow_on_values(outer: str, inner: str) -> None:
    def piecewise(x: Any) -> Any:
        total = x * 0.0
        while total < 10:
            total = total + x * x if x > 0 and bool(x) else -x
        for _ in range(int(x)):
            total = total * float(lax.stop_gradient(x))
        return [total, x][int(x) - 3]

    close(NEST[inner](piecewise)(3.0), 2 * 2 * 3.0 * 27.0)
    close(NEST[outer](NEST[inner](piecewise))(3.0), 2 * 2 * 27.0)


def test_closures_over_outer_tracers_at_each_nesting() -> None:
    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            def h(z: Any) -> Any:
                return x * y * z * z

            return grad(h)(x) + y * jnp.sum(vmap(lambda w: w * x * y)(x3))

        return grad(g)(x)

    def expected(x: float) -> float:
        """grad(h)(x) = 2 x² y, and the sum is 1.5 x y: so that g(y) = 2 x² y + 1.5 x y², and g'(x) = 2 x² + 3 x²."""
        return 10 * x

    close(grad(f)(2.0), expected(2.0))
    close(vmap(grad(f))(x3), 10 * np.asarray(x3))
    close(jvp(f, (2.0,), (1.0,))[1], expected(2.0))


def test_grad_in_vmap_in_grad() -> None:
    def f(w: Any) -> Any:
        return jnp.sum(vmap(lambda x: grad(lambda v: jnp.sin(v * w))(x) ** 2)(x3))

    w, x = 0.7, np.asarray(x3)
    c, s = np.cos(x * w), np.sin(x * w)
    close(grad(f)(w), np.sum(2 * w * c**2 - 2 * w**2 * c * s * x))


# vjp, linearize and linear_transpose -------------------------------------------------------------------------------


def product(x: Any, p: Any) -> Any:
    return {"xy": jnp.sin(x) * p["y"], "x": x}


def test_vjp_functions_are_reusable() -> None:
    out, pull = vjp(product, x3, {"y": 2.0})
    s, c = np.sin(np.asarray(x3)), np.cos(np.asarray(x3))
    close(out, {"xy": 2 * s, "x": x3})
    for k in (1.0, 2.0, 3.0):
        ct = {"xy": jnp.full(3, k), "x": jnp.zeros(3)}
        close(pull(ct), (2 * k * c, {"y": k * np.sum(s)}))
    assert "pullback of product" in repr(pull)


def test_vjp_functions_are_pytrees() -> None:
    _, pull = vjp(product, x3, {"y": 2.0})
    ct = {"xy": jnp.ones(3), "x": x3}
    leaves, treedef = tree.flatten(pull)
    assert all(isinstance(x, ArrayImpl) for x in leaves)
    close(tree.unflatten(treedef, leaves)(ct), pull(ct))
    doubled = tree.unflatten(treedef, [2 * x for x in leaves])
    close(doubled({"xy": ct["xy"], "x": jnp.zeros(3)})[1], {"y": 2 * np.sum(np.sin(np.asarray(x3)))})
    assert tree.structure(pull) == tree.structure(vjp(product, 2 * x3, {"y": 1.0})[1])
    assert hash(treedef) == hash(tree.structure(pull))


def test_a_vjp_function_as_an_argument() -> None:
    _, pull = vjp(product, x3, {"y": 2.0})
    ct = {"xy": jnp.ones(3), "x": x3}
    closed = make_jaxpr(lambda f, c: f(c))(pull, ct)
    close(jaxpr_as_fun(closed)(*tree.leaves((pull, ct))), tree.leaves(pull(ct)))
    cts = {"xy": m23, "x": m23}
    rows = [pull({"xy": m23[i], "x": m23[i]}) for i in range(2)]
    close(vmap(lambda f, c: f(c), (None, 0))(pull, cts), tree.map(lambda *r: jnp.stack(r), *rows))
    close(vmap(pull)(cts), tree.map(lambda *r: jnp.stack(r), *rows))


def test_vjp_functions_as_results_of_vmap() -> None:
    """The residuals come out with an axis, over which the functions can be mapped again."""
    outs, pulls = vmap(lambda x: vjp(jnp.sin, x))(m23)
    close(outs, np.sin(np.asarray(m23)))
    expected = np.cos(np.asarray(m23)) * np.asarray(x3)
    close(vmap(lambda f: f(x3)[0])(pulls), expected)
    close(grad(lambda x: jnp.sum(vmap(lambda f: f(x3)[0])(vmap(lambda v: vjp(jnp.sin, v)[1])(x))))(m23),
          -np.sin(np.asarray(m23)) * np.asarray(x3))  # fmt: skip


def test_a_vjp_function_is_differentiable_in_its_cotangent() -> None:
    _, pull = vjp(jnp.sin, x3)
    close(jacrev(lambda ct: pull(ct)[0])(x3), np.diag(np.cos(np.asarray(x3))))
    close(jvp(lambda ct: pull(ct)[0], (x3,), (m23[0],))[1], np.cos(np.asarray(x3)) * np.asarray(m23[0]))


def test_linearize_is_reusable() -> None:
    out, push = linearize(product, x3, {"y": 2.0})
    close(out, product(x3, {"y": 2.0}))
    for k in (1.0, -2.0):
        tangents = (k * x3, {"y": k})
        close(push(*tangents), jvp(product, (x3, {"y": 2.0}), tangents)[1])
    close(vmap(push)(m23, {"y": jnp.ones(2)})["x"], m23)
    leaves, treedef = tree.flatten(push)
    close(tree.unflatten(treedef, leaves)(x3, {"y": 1.0}), push(x3, {"y": 1.0}))
    close(
        linear_transpose(push, x3, {"y": 1.0})({"xy": x3, "x": x3}),
        vjp(product, x3, {"y": 2.0})[1]({"xy": x3, "x": x3}),
    )
    assert "derivative of product" in repr(push)


def test_linearize_runs_the_function_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return jnp.sin(x)

    _, push = linearize(f, 1.0)
    _, pull = vjp(f, 1.0)
    for _ in range(3):
        push(1.0)
        pull(1.0)
    value_and_grad(f)(1.0)
    assert len(calls) == 3


def test_linear_transpose_of_trees() -> None:
    def linear(p: Any, q: Any) -> Any:
        return [2.0 * p["a"] + q, jnp.sum(p["b"]), jnp.zeros(2)]

    p = {"a": x3, "b": m23}
    back = linear_transpose(linear, p, x3)
    close(back([x3, 3.0, jnp.ones(2)]), ({"a": 2 * np.asarray(x3), "b": np.full((2, 3), 3.0)}, x3))
    twice = linear_transpose(lambda c: back([c, 0.0, jnp.zeros(2)]), x3)
    close(twice((p, x3))[0], linear(p, x3)[0])


def test_linear_transpose_needs_only_types() -> None:
    from pullback import ShapeDtypeStruct

    back = linear_transpose(lambda x: x @ m23.T, ShapeDtypeStruct((4, 3), "float32"))
    close(back(jnp.ones((4, 2)))[0], np.ones((4, 2)) @ np.asarray(m23))
    close(vmap(lambda v: linear_transpose(lambda x: x * v, 1.0)(2.0)[0])(x3), 2 * np.asarray(x3))


def test_linear_functions_that_look_affine() -> None:
    """Constants that are zero, or that only choose, leave a function linear."""
    close(linear_transpose(lambda x: x + 0.0, 1.0)(3.0)[0], 3.0)
    close(linear_transpose(lambda x: jnp.concatenate([x, jnp.zeros(2)]), x3)(jnp.arange(5.0))[0], np.arange(3.0))
    close(linear_transpose(lambda x: jnp.where(x3 > 0, x, 0.0), x3)(x3)[0], np.maximum(np.asarray(x3), 0))
    close(linear_transpose(lambda x: x.at[0].set(0.0), x3)(jnp.ones(3))[0], np.array([0.0, 1.0, 1.0]))
    outside = np.array([0, 7])  # where a result is NaN, and has no derivative
    close(linear_transpose(lambda x: jnp.take(x, outside), x3)(jnp.ones(2))[0], np.array([1.0, 0.0, 0.0]))


# State -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [*NEST, "vmap", "make_jaxpr", "linear_transpose", "jacrev", "vmap with a name"])
def test_exceptions_leave_the_state_as_it_was(run: str) -> None:
    class Mine(Exception):
        pass

    def raises(x: Any) -> Any:
        raise Mine

    def caught(x: Any) -> Any:
        with pytest.raises(Mine):
            calls[run]()
        return x * x

    calls: dict[str, Callable[[], Any]] = {
        "vmap": lambda: vmap(raises)(x3),
        "vmap with a name": lambda: vmap(raises, axis_name="i")(x3),
        "make_jaxpr": lambda: make_jaxpr(raises)(1.0),
        "linear_transpose": lambda: linear_transpose(raises, 1.0),
        "jacrev": lambda: jacrev(raises)(x3),
        **{name: (lambda nest=nest: nest(raises)(1.0)) for name, nest in NEST.items()},
    }
    with pytest.raises(Mine):
        calls[run]()
    assert state.trace is EVAL
    assert state.axes == {}
    close(grad(caught)(3.0), 6.0)
    close(vmap(caught)(x3), np.asarray(x3) ** 2)


def test_threads_do_not_disturb_each_other() -> None:
    x = np.asarray(x3)
    jobs: list[tuple[Callable[[Any], Any], Any]] = [
        (grad(lambda v: jnp.sum(jnp.sin(v))), np.cos(x)),
        (vmap(grad(jnp.sin)), np.cos(x)),
        (hessian(lambda v: jnp.sum(v**3)), np.diag(6 * x)),
        (jacfwd(jnp.sin), np.diag(np.cos(x))),
        (lambda v: jvp(jnp.sin, (v,), (v,))[1], np.cos(x) * x),
        (lambda v: jaxpr_as_fun(make_jaxpr(grad(lambda u: jnp.sum(u * u)))(v))(v)[0], 2 * x),
        (lambda v: linearize(jnp.sin, v)[1](v), np.cos(x) * x),
        (vmap(lambda v: v * v, axis_name="i"), x**2),
    ]
    failures: list[Any] = []
    start = threading.Barrier(len(jobs))

    def work(f: Callable[[Any], Any], expected: Any) -> None:
        try:
            start.wait()
            for _ in range(50):
                close(f(x3), expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


def test_arguments_are_left_alone() -> None:
    params = {"w": [1.0, x3]}
    grad(lambda p: jnp.sum(p["w"][0] * p["w"][1]))(params)
    assert params["w"][0] == 1.0
    assert params["w"][1] is x3
    assert isinstance(x3, Array)


def test_residuals_that_are_arguments() -> None:
    def layer(weights: Any, x: Any) -> Any:
        return jnp.tanh(x @ weights["w"]) + weights["b"]

    weights, x = {"w": jnp.ones((3, 3)), "b": jnp.ones(3)}, jnp.ones((2, 3))
    for forward in (lambda w, x: vjp(layer, w, x), pullback.jit(lambda w, x: vjp(layer, w, x))):
        out, pull = forward(weights, x)
        kept = pull.args_res
        np.testing.assert_array_equal(kept[0]["w"], weights["w"])
        np.testing.assert_array_equal(kept[1], x)
        assert str(kept[0]["b"]) == "NotNeeded()"
        assert [r.shape for r in pull.opaque_residuals] == [(2, 3)]
        assert pull(out)[0]["b"].shape == (3,)
    assert pickle.loads(pickle.dumps(pull)).args_res[0]["b"] == kept[0]["b"] != 0
    assert hash(kept[0]["b"]) == hash(type(kept[0]["b"])())


# Shapes on the tape --------------------------------------------------------------------------------------------------


def test_shapes_of_elementwise_operations_need_no_abstract_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule has several, such as those of a quotient. Operands broadcast to one another in turn."""

    def layer_norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    x, row, column, weights = (jnp.asarray(np.random.default_rng(0).random(s)) for s in ((3, 4), 4, (3, 1), (2, 3, 4)))
    functions: list[Any] = [layer_norm, lambda x: x / x.sum(0), lambda x: x ** x.sum(-1, keepdims=True)]
    functions += [lambda x: row / x[:, :1] + column / x[0], lambda x: x[0, 0] / x, lambda x: 2 / x[None] * weights]
    expected = [jit(grad(lambda x, f=f: (f(x) * weights).sum()))(x) for f in functions]
    monkeypatch.setattr(linear, "infer", lambda *_: pytest.fail("types were inferred"))
    monkeypatch.setattr(sums, "types_of_values", {})  # sums ask for types once a class of values has been registered
    for f, wanted in zip(functions, expected, strict=True):
        np.testing.assert_allclose(grad(lambda x, f=f: (f(x) * weights).sum())(x), wanted, rtol=1e-5, atol=1e-5)


def test_shapes_that_none_of_the_operands_has_are_found() -> None:
    column, row = jnp.ones((3, 1)), jnp.ones((1, 4))
    gradient = grad(lambda c, r: jnp.sum((c / r) / (r / c)), (0, 1))(column, row)
    assert [g.shape for g in gradient] == [(3, 1), (1, 4)]
    np.testing.assert_array_equal(gradient[0], np.full((3, 1), 8))
    np.testing.assert_array_equal(gradient[1], np.full((1, 4), -6))
