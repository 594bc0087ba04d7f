"""A rule under ``vmap`` is run for each example: ``vmap`` is a loop, also where what a rule returns does not vary.

The functions take ``a``, which all examples share, and ``x``, of which each has its own. Their rules give a
cotangent of ``a`` that is a constant, or depends on the point, or on the cotangent; none need be true derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    checkpoint,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    grad,
    jit,
    jvp,
    lax,
    make_jaxpr,
    vmap,
)
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.custom_batching import custom_vmap
from pullback.custom_derivatives import custom_transpose, linear_call
from pullback.errors import CustomRuleError

Function = Callable[..., Any]
XS = jnp.array([1.0, 2.0, 3.0])
YS = jnp.array([0.5, -1.0])


def by_custom_vjp(cotangent: Function) -> Function:
    f = custom_vjp(lambda a, x: a * x)
    f.defvjp(lambda a, x: (a * x, (a, x)), lambda r, ct: (cotangent(*r, ct), r[0] * ct))
    return f


def by_custom_gradient(cotangent: Function) -> Function:
    return custom_gradient(lambda a, x: (a * x, lambda ct: (cotangent(a, x, ct), a * ct)))


def by_linear_call(cotangent: Function) -> Function:
    return lambda a, x: linear_call(lambda r, t: r * t, lambda r, ct: cotangent(1.0, r, ct), x, a)


def by_custom_transpose(cotangent: Function) -> Function:
    f = custom_transpose(lambda r, t: r * t)
    f.def_transpose(lambda r, ct: cotangent(1.0, r, ct))
    return lambda a, x: f(x, x, a)


KINDS = {f.__name__: f for f in (by_custom_vjp, by_custom_gradient, by_linear_call, by_custom_transpose)}

COTANGENTS: dict[str, Function] = {
    "a constant": lambda a, x, ct: jnp.ones(()),
    "a number": lambda a, x, ct: 1.0,
    "by the shared operand": lambda a, x, ct: 2.0 * jnp.ones(()) * a,
    "by the mapped operand": lambda a, x, ct: x,
    "by the cotangent": lambda a, x, ct: ct,
    "clipped": lambda a, x, ct: jnp.clip(ct, -1.5, 1.5),
}

AROUND: dict[str, Function] = {
    "plain": lambda f: f,
    "jit": jit,
    "checkpoint": checkpoint,
    "jit of checkpoint": lambda f: jit(checkpoint(f)),
    "in a branch": lambda f: lambda a, x: lax.cond(x < 100.0, f, lambda a, x: a * x, a, x),
    "in a scan": lambda f: lambda a, x: lax.scan(lambda c, _: (c + f(a, x), None), 0.0, None, length=1)[0],
    "in a jaxpr": lambda f: jaxpr_as_fun(make_jaxpr(f)(0.0, 0.0)),
}


def sums(f: Function) -> tuple[Function, Function]:
    """A sum over examples of the function, weighted so that their cotangents differ: by ``vmap``, and by a loop."""

    def one(a: Any, x: Any) -> Any:
        y = f(a, x)
        return x * (y[0] if isinstance(y, list) else y)

    return (lambda a: vmap(one, (None, 0))(a, XS).sum()), (lambda a: sum(one(a, x) for x in XS))


@pytest.mark.parametrize("cotangent", COTANGENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_cotangent_of_a_shared_operand_is_that_of_a_loop(kind: str, cotangent: str) -> None:
    mapped, looped = sums(KINDS[kind](COTANGENTS[cotangent]))
    expected = grad(looped)(2.0)
    np.testing.assert_allclose(grad(mapped)(2.0), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(grad(mapped))(2.0), expected, rtol=1e-6)
    np.testing.assert_allclose(grad(jit(mapped))(2.0), expected, rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(mapped))(YS), [grad(looped)(y) for y in YS], rtol=1e-6)


@pytest.mark.parametrize("around", AROUND)
def test_a_constant_cotangent_within_other_functions(around: str) -> None:
    mapped, looped = sums(AROUND[around](by_custom_vjp(COTANGENTS["a constant"])))
    assert grad(mapped)(2.0) == jit(grad(mapped))(2.0) == grad(looped)(2.0) == 3.0


def test_a_constant_cotangent_under_two_axes() -> None:
    f = by_custom_vjp(COTANGENTS["a constant"])
    both = vmap(vmap(f, (None, 0)), (None, 0))
    xs = jnp.ones((4, 3))
    assert grad(lambda a: both(a, xs).sum())(2.0) == 12.0
    np.testing.assert_array_equal(
        vmap(grad(lambda a, x: vmap(f, (None, 0))(a, x).sum()), (None, 0))(2.0, xs), [3.0] * 4
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_number_of_examples_that_a_small_type_does_not_have(dtype: str) -> None:
    f = by_custom_vjp(lambda a, x, ct: 0.0078125 * jnp.ones((), dtype))
    xs = jnp.ones(70_000, dtype)
    got = grad(lambda a: vmap(f, (None, 0))(a, xs)[0].astype("float32"))(jnp.ones((), dtype))
    assert got == jnp.asarray(70_000 / 128, dtype)
    assert got.dtype == dtype


def test_a_backward_rule_that_closes_over_a_mapped_value_alone() -> None:
    def one(a: Any, x: Any) -> Any:
        f = custom_vjp(lambda a: 2.0 * a)
        f.defvjp(lambda a: (f(a), None), lambda _, ct: (x * ct,))
        return x * f(a)

    # The cotangents of the examples were summed before the rule runs: no number can be right.
    with pytest.raises(CustomRuleError, match="closes over a mapped value"):
        grad(lambda a: vmap(one, (None, 0))(a, XS).sum())(2.0)


def test_a_residual_that_is_mapped_where_no_operand_is() -> None:
    def one(a: Any, x: Any) -> Any:
        f = custom_vjp(lambda a: 2.0 * a)
        f.defvjp(lambda a: (f(a), x), lambda x, ct: (x * ct,))
        return x * f(a)

    for compiled in (lambda f: f, jit):
        assert compiled(grad(lambda a: vmap(one, (None, 0))(a, XS).sum()))(2.0) == sum(x * x for x in XS)


# Results that do not vary -----------------------------------------------------------------------------------------


def pair_by_custom_vjp() -> Function:
    f = custom_vjp(lambda a, x: (2.0 * a, x * a))
    f.defvjp(lambda a, x: (f(a, x), (a, x)), lambda r, ct: (2.0 * ct[0] + r[1] * ct[1], r[0] * ct[1]))
    return f


def pair_by_custom_jvp() -> Function:
    f = custom_jvp(lambda a, x: (2.0 * a, x * a))
    f.defjvp(lambda p, t: (f(*p), (2.0 * t[0], p[1] * t[0] + p[0] * t[1])))
    return f


def pair_by_custom_gradient() -> Function:
    return custom_gradient(lambda a, x: ((2.0 * a, x * a), lambda ct: (2.0 * ct[0] + x * ct[1], a * ct[1])))


def pair_by_custom_vmap() -> Function:
    f = custom_vmap(lambda a, x: (2.0 * a, x * a))
    f.def_vmap(lambda size, mapped, a, x: ((2.0 * a, x * a), tuple(mapped)))
    return f


PAIRS = [pair_by_custom_vjp, pair_by_custom_jvp, pair_by_custom_gradient, pair_by_custom_vmap]


@pytest.mark.parametrize("compiled", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("pair", PAIRS)
def test_out_axes_none_for_a_result_that_does_not_vary(pair: Function, compiled: Function) -> None:
    def further(a: Any, x: Any) -> Any:
        first, second = pair()(a, x)
        return jnp.sin(first) + 1.0, second

    for f in (pair(), further):
        mapped = vmap(f, (None, 0), (None, 0))
        first, second = compiled(mapped)(2.0, XS)
        assert first.shape == ()
        assert first == f(2.0, 1.0)[0]
        np.testing.assert_array_equal(second, 2.0 * np.asarray(XS))
        expected = grad(lambda a, f=f: f(a, 1.0)[0])(2.0)
        np.testing.assert_allclose(compiled(grad(lambda a, m=mapped: m(a, XS)[0]))(2.0), expected, rtol=1e-6)
        np.testing.assert_allclose(jvp(compiled(mapped), (2.0, XS), (1.0, XS))[1][0], expected, rtol=1e-6)
        np.testing.assert_allclose(vmap(compiled(mapped), (0, None))(YS, XS)[0], [f(y, 1.0)[0] for y in YS], rtol=1e-6)


@pytest.mark.parametrize("compiled", [lambda f: f, jit], ids=["eager", "jit"])
def test_out_axes_none_is_refused_where_the_result_varies(compiled: Function) -> None:
    f = pair_by_custom_vjp()
    for which in (lambda a, x: f(a, x)[1], lambda a, x: f(a, x)[0] + x, lambda a, x: f(x, a)[0]):
        with pytest.raises(ValueError, match="out_axes is None for a result that depends on the mapped arguments"):
            compiled(vmap(which, (None, 0), None))(2.0, XS)


def test_a_result_that_does_not_vary_has_cotangents_that_do() -> None:
    # The value of one argument, with the derivative of the other.
    f = custom_vjp(lambda a, x: (a, x))
    f.defvjp(lambda a, x: ((a, x), None), lambda _, ct: (None, ct[0]))
    np.testing.assert_array_equal(grad(lambda xs: (XS * vmap(f, (None, 0))(2.0, xs)[0]).sum())(XS), XS)
