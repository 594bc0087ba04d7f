"""A user's operation, defined by public means, under all transformations; and what is said when a rule is missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, extend, grad, jacfwd, jacrev, jvp, linear_transpose, linearize, make_jaxpr, tree, vjp, vmap
from pullback.core.jaxpr import jaxpr_as_fun

RULES = ("host", "abstract_eval", "jvp", "transpose", "batch")


def define(without: str = "") -> Callable[[Any, Any, Any], Any]:
    """Multiplication and addition in one operation, x * y + z, of arrays of one shape."""
    p = extend.Primitive("multiply_add")

    def multiply_add(x: Any, y: Any, z: Any) -> Any:
        return p.bind(x, y, z)

    def host(x: Any, y: Any, z: Any) -> Any:
        return np.add(np.multiply(x, y), z)

    def abstract_eval(x: Any, y: Any, z: Any) -> Any:
        if not x.shape == y.shape == z.shape:
            raise ValueError(f"multiply_add takes arrays of one shape, got {x}, {y}, {z}")
        return extend.ShapedArray(x.shape, x.dtype)

    def jvp(primals: Any, tangents: Any) -> Any:
        x, y, z = primals
        tx, ty, tz = (extend.instantiate(t, p) for t, p in zip(tangents, primals, strict=True))
        return multiply_add(x, y, z), multiply_add(tx, y, multiply_add(x, ty, tz))

    def transpose(ct: Any, x: Any, y: Any, z: Any) -> Any:
        by_x = ct * y if extend.is_linear(x) else None
        by_y = ct * x if extend.is_linear(y) else None
        return by_x, by_y, ct if extend.is_linear(z) else None

    def batch(axis: extend.MappedAxis, args: Any, dims: Any) -> Any:
        fronted = [
            jnp.broadcast_to(a, (axis.size, *jnp.shape(a))) if d is None else jnp.moveaxis(a, d, 0)
            for a, d in zip(args, dims, strict=True)
        ]
        return multiply_add(*fronted), 0

    for rule in (host, abstract_eval, jvp, transpose, batch):
        if rule.__name__ != without:
            getattr(p, rule.__name__)(rule)
    return multiply_add


multiply_add = define()
w = jnp.asarray([0.3, -1.2, 0.7])


def with_primitive(x: Any) -> Any:
    return multiply_add(jnp.sin(x), x * x, multiply_add(x, w, x))


def with_operators(x: Any) -> Any:
    return jnp.sin(x) * (x * x) + (x * w + x)


# Each takes a function of a vector to one.
TRANSFORMATIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "jvp": lambda f: lambda x: jvp(f, (x,), (w,))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](w)[0],
    "grad": lambda f: grad(lambda x: jnp.sum(f(x) * w)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](w),
    "vmap": lambda f: lambda x: jnp.sum(vmap(f)(jnp.stack([x, x * w])), 0),
    "make_jaxpr": lambda f: lambda x: jaxpr_as_fun(make_jaxpr(f)(x))(x)[0],
    "jacfwd": lambda f: lambda x: jacfwd(f)(x) @ w,
    "jacrev": lambda f: lambda x: w @ jacrev(f)(x),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_one_transformation(name: str) -> None:
    t = TRANSFORMATIONS[name]
    np.testing.assert_allclose(t(with_primitive)(w), t(with_operators)(w), rtol=1e-5)


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(TRANSFORMATIONS, repeat=2)))
def test_two_transformations(outer: str, inner: str) -> None:
    both = lambda f: TRANSFORMATIONS[outer](TRANSFORMATIONS[inner](f))
    np.testing.assert_allclose(both(with_primitive)(w), both(with_operators)(w), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("axes", [a for a in itertools.product((0, 1, None), repeat=3) if a != (None,) * 3], ids=str)
def test_vmap_over_any_axes(axes: Any) -> None:
    args = [w if a is None else jnp.stack([w, 2 * w], a) for a in axes]
    expected = vmap(lambda x, y, z: x * y + z, axes)(*args)
    np.testing.assert_allclose(vmap(multiply_add, axes)(*args), expected, rtol=1e-6)


@pytest.mark.parametrize("argnums", [0, 1, 2, (0, 1), (0, 2), (0, 1, 2)], ids=str)
def test_any_arguments(argnums: Any) -> None:
    def of(operation: Any) -> Any:
        return grad(lambda x, y, z: jnp.sum(operation(x, y, z) ** 2), argnums)(w, 2 * w, 3 * w)

    for got, expected in zip(*map(tree.leaves, (of(multiply_add), of(lambda x, y, z: x * y + z))), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_it_shows_in_jaxprs() -> None:
    assert "multiply_add a b c" in str(make_jaxpr(multiply_add)(w, w, w))


def test_its_transpose() -> None:
    np.testing.assert_allclose(linear_transpose(lambda z: multiply_add(z, w, z), w)(w)[0], np.asarray(w * w + w))


# Missing rules -----------------------------------------------------------------------------------------------------

NEEDS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "host": {"evaluation": lambda f: f(w, w, w), "grad": lambda f: grad(lambda x: jnp.sum(f(x, x, x)))(w)},
    "abstract_eval": {"make_jaxpr": lambda f: make_jaxpr(f)(w, w, w), "vmap": lambda f: make_jaxpr(vmap(f))(w, w, w)},
    "jvp": {
        "jvp": lambda f: jvp(lambda x: f(x, w, w), (w,), (w,)),
        "grad": lambda f: grad(lambda x: jnp.sum(f(x, w, w)))(w),
        "jacfwd": lambda f: jacfwd(lambda x: f(x, w, w))(w),
        "linearize": lambda f: linearize(lambda x: f(x, w, w), w),
    },
    "transpose": {
        "vjp": lambda f: vjp(lambda x: f(x, w, w), w),
        "grad": lambda f: grad(lambda x: jnp.sum(f(x, w, w)))(w),
        "jacrev": lambda f: jacrev(lambda x: f(x, w, w))(w),
    },
    "batch": {"vmap": lambda f: vmap(f)(w, w, w), "jacfwd": lambda f: jacfwd(lambda x: f(x, w, w))(w)},
}


@pytest.mark.parametrize(("rule", "use"), [(r, u) for r in RULES for u in NEEDS[r]])
def test_a_missing_rule_is_named(rule: str, use: str) -> None:
    with pytest.raises(errors.MissingRuleError) as caught:
        NEEDS[rule][use](define(without=rule))
    assert isinstance(caught.value, NotImplementedError)
    assert f"the primitive 'multiply_add' has no {rule} rule" in str(caught.value)
    assert f"@multiply_add_p.{rule}" in str(caught.value)


def test_a_missing_transpose_rule_in_linear_transpose() -> None:
    with pytest.raises(NotImplementedError, match=r"multiply_add is not linear \(it has no transpose rule\)"):
        linear_transpose(lambda x: define(without="transpose")(x, w, x), w)


@pytest.mark.parametrize("rule", RULES)
def test_rules_that_are_not_needed_are_not_asked_for(rule: str) -> None:
    f = define(without=rule)
    if rule != "host":
        np.testing.assert_allclose(f(w, w, w), np.asarray(w * w + w))
    if rule in ("abstract_eval", "transpose", "batch"):
        np.testing.assert_allclose(jvp(lambda x: f(x, w, w), (w,), (w,))[1], np.asarray(w * w))
    if rule in ("host", "jvp", "transpose", "batch"):
        assert len(make_jaxpr(f)(w, w, w).eqns) == 1
    if rule in ("abstract_eval", "jvp", "transpose"):
        np.testing.assert_allclose(vmap(f)(w, w, w), np.asarray(w * w + w))


def test_the_shape_rule_explains_what_does_not_fit() -> None:
    for call in (lambda: multiply_add(w, w, w[:2]), lambda: make_jaxpr(multiply_add)(w, w, w[:2])):
        with pytest.raises(ValueError, match=r"one shape, got f32\[3\], f32\[3\], f32\[2\]"):
            call()


def test_jvp_rules_must_be_linear() -> None:
    def with_jvp(rule: Any) -> Any:
        p = extend.Primitive("twisted")
        p.host(np.sin)
        p.jvp(lambda primals, tangents: (p.bind(*primals), rule(*primals, *tangents)))
        return grad(p.bind)

    with pytest.raises(errors.NotLinearError, match="a jvp rule applied mul to tangents"):
        with_jvp(lambda x, t: t * t)(1.0)
    with pytest.raises(NotImplementedError, match="'sin' has no transpose rule"):
        with_jvp(lambda x, t: jnp.sin(t))(1.0)
    with pytest.raises(
        errors.NotLinearError, match=r"the jvp rule of twisted returned the tangent .* which is nonzero and does not"
    ):
        with_jvp(lambda x, t: jnp.cos(x))(1.0)


def test_several_results() -> None:
    p = extend.Primitive("sum_and_difference", multiple_results=True)
    p.host(lambda x, y: [np.add(x, y), np.subtract(x, y)])
    p.abstract_eval(lambda x, y: [extend.ShapedArray(x.shape, x.dtype)] * 2)

    @p.jvp
    def rule(primals: Any, tangents: Any) -> Any:
        return p.bind(*primals), p.bind(*(extend.instantiate(t, x) for t, x in zip(tangents, primals, strict=True)))

    @p.transpose
    def transpose(cts: Any, x: Any, y: Any) -> Any:
        a, b = (extend.instantiate(ct, x) for ct in cts)
        return a + b if extend.is_linear(x) else None, a - b if extend.is_linear(y) else None

    p.batch(lambda axis, args, dims: (p.bind(*args), [0, 0]))

    def f(x: Any) -> Any:
        s, d = p.bind(jnp.sin(x), x)
        return s * d

    def g(x: Any) -> Any:
        return (jnp.sin(x) + x) * (jnp.sin(x) - x)

    for outer, inner in itertools.product(TRANSFORMATIONS.values(), repeat=2):
        np.testing.assert_allclose(outer(inner(f))(w), outer(inner(g))(w), rtol=2e-5, atol=1e-5)
