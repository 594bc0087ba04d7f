"""Ordinary programs: what users write at the edges of transformations works, as in JAX."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import checkpoint, custom_jvp, custom_vjp, disable_jit, grad, jit, jvp, lax, linearize, tree, vjp, vmap
from pullback.custom_batching import custom_vmap
from pullback.errors import BatchAxisError, OperandError
from tests.helpers import plain

Function = Callable[..., Any]
XS = jnp.array([1.0, 2.0, 3.0])


COMPILED = pytest.mark.parametrize("compiled", [plain, jit], ids=["eager", "jit"])


# Copies of traced values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_of_traced_values(duplicate: Function) -> None:
    def f(x: Any) -> Any:
        return duplicate(x) * copy.deepcopy({"x": [x]})["x"][0]

    assert jvp(f, (2.0,), (1.0,))[1] == grad(f)(2.0) == grad(jit(f))(2.0) == linearize(f, 2.0)[1](1.0) == 4.0
    np.testing.assert_array_equal(vmap(f)(XS), np.square(XS))
    np.testing.assert_array_equal(jit(f)(XS), np.square(XS))


# What is not mapped may be anything ---------------------------------------------------------------------------------


class Options:
    scale = 2.0


@COMPILED
def test_arguments_that_are_not_mapped_need_not_be_arrays(compiled: Function) -> None:
    def rows(*first: Any) -> Function:
        return compiled(lambda xs: vmap(lambda f, x: f(x), in_axes=(None, 0))(first[0], xs))

    np.testing.assert_allclose(rows(jnp.sin)(XS), np.sin(XS), rtol=1e-6)
    named = vmap(lambda how, x: {"double": 2.0, "half": 0.5}[how] * x, (None, 0))
    np.testing.assert_array_equal(compiled(lambda xs: named("double", xs))(XS), 2.0 * np.asarray(XS))
    options = vmap(lambda o, x: o.scale * x, (None, 0))
    np.testing.assert_array_equal(compiled(lambda xs: options(Options(), xs))(XS), 2.0 * np.asarray(XS))
    trees = {"f": jnp.sin, "w": XS}
    for axes in ({"f": None, "w": 0}, {"f": None, "w": None}):
        f = vmap(lambda t, x: (t["f"](x) * t["w"]).sum(), (axes, 0))
        scale = np.asarray(XS) if axes["w"] == 0 else np.asarray(XS).sum()
        np.testing.assert_allclose(compiled(lambda xs, f=f: f(trees, xs))(XS), np.sin(XS) * scale, rtol=1e-6)
    assert grad(lambda w: vmap(lambda f, x: f(x) * w, (None, 0))(jnp.square, XS).sum())(1.0) == 14.0
    np.testing.assert_array_equal(vmap(lambda f, x: f(x), (None, 0), chunk_size=2)(jnp.square, XS), np.square(XS))


def test_what_is_mapped_must_be_an_array() -> None:
    with pytest.raises(OperandError, match=r"argument 0 \(f\): expected an array or a number, got .* of type ufunc"):
        vmap(lambda f, x: f(x), in_axes=0)(np.sin, XS)
    with pytest.raises(BatchAxisError, match=r"in_axes=.* must be a prefix"):
        vmap(lambda f, x: f(x), in_axes=((None, None), 0))(np.sin, XS)


# Branches that return numbers ---------------------------------------------------------------------------------------

RESULTS: dict[str, Any] = {
    "a float": 1.5,
    "an int": 2,
    "a bool": True,
    "a complex number": 1.0 + 2.0j,
    "a scalar of NumPy": np.float32(3.0),
    "an array of NumPy": np.arange(3, dtype=np.int32),
    "a wide array": np.ones(2),
    "nothing": None,
    "a tree": [1.0, (None, {"a": 2, "b": np.ones(2, np.float16)})],
}


def described(result: Any) -> Any:
    return tree.map(lambda x: (x.shape, x.dtype, x.weak_type, x.tolist()), result)


@pytest.mark.parametrize("what", RESULTS)
def test_branches_that_return_what_is_no_array(what: str) -> None:
    value = RESULTS[what]
    branches: dict[str, Function] = {
        "cond": lambda x: lax.cond(x > 0, lambda: value, lambda: value),
        "switch": lambda x: lax.switch(jnp.int32(1), [lambda: value] * 3),
        "switch of one": lambda x: lax.switch(0, [lambda: value]),
        "operands": lambda x: lax.cond(x > 0, lambda x: value, lambda x: value, x),
    }
    for f in branches.values():
        expected = described(jit(f)(1.0))
        assert described(f(1.0)) == expected
        assert described(vjp(f, 1.0)[0]) == expected
        assert described(vjp(lambda x, f=f: f(x) if x > 0 else x, 1.0)[0]) == expected
        with disable_jit():
            assert described(f(1.0)) == expected


@COMPILED
def test_one_branch_returns_a_number(compiled: Function) -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: 1.0, lambda x: x, x)

    x = jnp.float32(2.0)
    assert compiled(f)(x).dtype == compiled(f)(-x).dtype == jnp.float32
    assert (compiled(grad(f))(x), compiled(grad(f))(-x)) == (0.0, 1.0)
    np.testing.assert_array_equal(compiled(vmap(f))(jnp.array([2.0, -2.0])), [1.0, -2.0])


@COMPILED
def test_mapped_branches_that_return_numbers(compiled: Function) -> None:
    def weak(f: Function) -> list[Any]:
        return [compiled(vmap(f))(XS).weak_type, vmap(compiled(f))(XS).weak_type]

    assert weak(lambda x: lax.cond(x > 1, lambda: 2.0, lambda: 3.0)) == [True, True]
    assert weak(lambda x: lax.switch(jnp.asarray(x > 1).astype(int), [lambda: 2, lambda: 3])) == [True, True]
    assert weak(lambda x: lax.cond(x > 1, lambda: 2.0, lambda: jnp.float32(3.0))) == [False, False]


@COMPILED
def test_branches_are_given_arrays(compiled: Function) -> None:
    def f(flag: Any) -> Any:
        return lax.cond(
            flag, lambda x, y: x.sum() + y.mean(), lambda x, y: x.reshape(()) - y.max(), 2.0, np.arange(3.0)
        )

    assert (compiled(f)(True), compiled(f)(False)) == (3.0, 0.0)


def test_a_branch_that_returns_what_can_be_no_array() -> None:
    for compiled in (plain, jit):
        with pytest.raises(OperandError, match="got 'text' of type str"):
            compiled(lambda x: lax.cond(x > 0, lambda: "text", lambda: "text"))(1.0)


# Callables of every kind --------------------------------------------------------------------------------------------


def scaled(x: Any, a: Any = 1.0, *, b: Any = 1.0) -> Any:
    return a * b * x


class Scaled:
    def __call__(self, x: Any) -> Any:
        return 3.0 * x

    def method(self, x: Any) -> Any:
        return 3.0 * x

    @staticmethod
    def static(x: Any) -> Any:
        return 3.0 * x

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return 3.0 * x


CALLABLES: dict[str, Function] = {
    "a partial by keyword": partial(scaled, a=3.0),
    "a partial by a keyword alone": partial(lambda x, *, b: b * x, b=3.0),
    "a partial by position": partial(lambda a, x: a * x, 3.0),
    "a partial of a partial": partial(partial(scaled, a=1.5), b=2.0),
    "a partial of a transformed function": partial(jit(scaled), a=3.0),
    "an object": Scaled(),
    "a bound method": Scaled().method,
    "a static method": Scaled.static,
    "a method of a class": Scaled.of_class,
    "a bound built-in": jnp.float32(3.0).__mul__,
    "a built-in": abs,
    "a ufunc": np.positive,
    "a compiled function": jit(lambda x: 3.0 * x),
}


@pytest.mark.parametrize("what", CALLABLES)
def test_callables_of_every_kind_may_have_rules(what: str) -> None:
    g = CALLABLES[what]
    y = g(jnp.float32(2.0))
    slope = grad(g)(2.0)
    jvp_function = custom_jvp(g)
    jvp_function.defjvp(lambda p, t: (g(*p), 5.0 * t[0]))
    vjp_function = custom_vjp(g)
    vjp_function.defvjp(lambda x: (g(x), None), lambda _, ct: (5.0 * ct,))
    vmap_function = custom_vmap(g)
    vmap_function.def_vmap(lambda size, mapped, x: (7.0 * x, True))
    for f in (jvp_function, vjp_function, vmap_function, jit(g), checkpoint(g)):
        expected = 5.0 if f in (jvp_function, vjp_function) else slope
        assert f(2.0) == jit(f)(2.0) == y
        assert grad(f)(2.0) == jit(grad(f))(2.0) == expected
        assert jvp(f, (2.0,), (1.0,)) == (y, expected)
        factor = 7.0 / 2.0 if f is vmap_function else y / 2.0 / 2.0
        np.testing.assert_allclose(vmap(f)(XS), 2.0 * factor * np.asarray(XS), rtol=1e-6)


def test_what_a_partial_binds_is_not_an_argument_of_rules() -> None:
    f = custom_jvp(partial(lambda g, x, *, a: a * g(x), a=3.0), nondiff_argnums=(0,))
    f.defjvp(lambda g, p, t: (3.0 * g(*p), 5.0 * t[0]))
    assert grad(lambda x: f(jnp.sin, x))(2.0) == 5.0
    custom = custom_jvp(scaled)
    custom.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match="the arguments b are keyword-only"):
        custom(1.0, b=2.0)


# What backward rules give -------------------------------------------------------------------------------------------


@COMPILED
def test_a_backward_rule_may_give_a_list(compiled: Function) -> None:
    f = custom_vjp(lambda x, y: x * y["y"])
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: [5.0 * ct, None])
    assert compiled(grad(f))(2.0, {"y": 3.0}) == 5.0
    assert compiled(grad(f, (0, 1)))(2.0, {"y": 3.0}) == (5.0, {"y": 0.0})
    np.testing.assert_array_equal(compiled(vmap(grad(f)))(XS, {"y": XS}), [5.0] * 3)
    assert jvp(compiled(f), (2.0, {"y": 3.0}), (1.0, {"y": 1.0}))[1] == 5.0


DTYPES = ["bfloat16", "float16", "float32", "complex64"]


@COMPILED
@pytest.mark.parametrize("given", ["bfloat16", "float16", "float32", "int32", "bool", "number"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_backward_rule_may_give_numbers_of_another_precision(dtype: str, given: str, compiled: Function) -> None:
    def bwd(x: Any, ct: Any) -> Any:
        return (1.0,) if given == "number" else (jnp.ones(x.shape, given),)

    f = custom_vjp(lambda x: 2.0 * x)
    f.defvjp(lambda x: (f(x), x), bwd)
    for got in (compiled(grad(lambda x: f(x).real))(jnp.ones((), dtype)), vjp(compiled(f), jnp.ones((), dtype))[1]):
        ct = got(jnp.ones((), dtype))[0] if callable(got) else got
        assert (ct.dtype, ct.weak_type, ct) == (dtype, False, 1)
    mapped = compiled(vmap(grad(lambda x: f(x).real)))(jnp.ones(2, dtype))
    assert (mapped.dtype, mapped.tolist()) == (dtype, [1, 1])


def test_cotangents_of_another_precision_in_forward_mode() -> None:
    f = custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: ((3.0 * x.astype("float32") * ct.astype("float32")),))
    x = jnp.asarray(2.0, "bfloat16")
    y, t = jvp(f, (x,), (jnp.ones_like(x),))
    assert (y.dtype, t.dtype, t) == (x.dtype, x.dtype, 6)
