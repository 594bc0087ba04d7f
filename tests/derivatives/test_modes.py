"""Forward mode from reverse mode, and reverse mode from forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import custom_vjp, errors, grad, hessian, jacfwd, jacrev, jit, jvp, pure_callback, vjp, vmap
from pullback.derivatives import jvp_from_vjp, vjp_from_jvp
from pullback.extend import Primitive
from pullback.test_util import check_rule
from tests.helpers import assert_close, random

pytestmark = pytest.mark.usefixtures("all_in_x64")

METHODS = ["transpose", "basis"]


def f(params: Any, y: Any, n: Any) -> Any:
    return {"a": jnp.sin(params["x"]) * y, "n": n + 1, "b": jnp.sum(params["x"]) ** 2}


POINT = {"x": random(3)}, random(3), 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_both_are_the_derivatives_of_the_function(method: str, chunk_size: int | None) -> None:
    zero = np.zeros((), pullback.float0)
    tangents = {"x": jnp.asarray(random(3) + 1)}, jnp.ones(3), zero
    expected_out, expected = jvp(f, POINT, tangents)
    out, got = jvp(jvp_from_vjp(f, method, chunk_size), POINT, tangents)
    assert_close(out, expected_out)
    assert_close({k: got[k] for k in "ab"}, {k: expected[k] for k in "ab"})
    assert got["n"].dtype == pullback.float0
    cotangent = {"a": jnp.asarray(random(3)), "n": zero, "b": jnp.asarray(2.0)}
    for g in (vjp_from_jvp(f, method, chunk_size), jvp_from_vjp(f, "transpose")):
        _, pull = vjp(g, *POINT)
        for ours, theirs in zip(pull(cotangent)[:2], vjp(f, *POINT)[1](cotangent)[:2], strict=True):
            assert_close(ours, theirs)


@pytest.mark.parametrize("change", [jvp_from_vjp, vjp_from_jvp])
@pytest.mark.parametrize("method", METHODS)
def test_under_other_transformations(change: Any, method: str) -> None:
    g = lambda x: jnp.sum(jnp.tanh(x) ** 2)
    h = change(g, method)
    x = jnp.asarray(random(3))
    assert_close(jit(jacfwd(h))(x), grad(g)(x))
    assert_close(vmap(jacfwd(h))(jnp.stack([x, -x])), vmap(grad(g))(jnp.stack([x, -x])))
    if (change, method) != (jvp_from_vjp, "basis"):
        assert_close(jit(vmap(jacrev(h)))(jnp.stack([x, -x])), vmap(grad(g))(jnp.stack([x, -x])))
        assert_close(hessian(h)(x), hessian(g)(x))


def test_a_backward_rule_on_the_host_serves_forward_mode() -> None:
    @custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    def backward(x: Any, ct: Any) -> tuple[Any]:
        return (pure_callback(lambda x, ct: 3 * x**2 * ct, x, x, ct, vmap_method="expand_dims"),)

    cube.defvjp(lambda x: (cube(x), x), backward)
    x = jnp.asarray(random(3))
    with pytest.raises(errors.PullbackError):
        jvp(cube, (x,), (x,))
    assert_close(jvp(jvp_from_vjp(cube, "basis"), (x,), (x,))[1], 3 * x**3)


def primitive_with_forward_mode_alone() -> Primitive:
    """The cube, whose jvp rule binds an operation that has no transpose, and neither has batching rules."""
    cube, slope = Primitive("host_cube"), Primitive("host_cube_slope")
    cube.host(lambda x: x**3)
    slope.host(lambda x, t: 3 * x**2 * t)
    cube.jvp(lambda primals, tangents: (cube.bind(*primals), slope.bind(primals[0], tangents[0])))
    for p in (cube, slope):
        p.abstract_eval(lambda x, *_: x)
    return cube


def test_a_primitive_with_a_rule_of_forward_mode_alone() -> None:
    cube = primitive_with_forward_mode_alone()
    x = jnp.asarray(random(3))
    with pytest.raises(errors.MissingRuleError, match=r"host_cube_slope.* has no transpose rule"):
        grad(lambda x: cube.bind(x).sum())(x)
    with pytest.raises(errors.MissingRuleError, match=r"host_cube_slope.* has no batch rule"):
        grad(lambda x: vjp_from_jvp(cube.bind, "basis")(x).sum())(x)
    whole = vjp_from_jvp(cube.bind, "basis", chunk_size=1)
    assert_close(grad(lambda x: whole(x).sum())(x), 3 * x**2)


def test_rules_are_right_by_the_check_of_rules() -> None:
    check_rule(vjp_from_jvp(lambda x, y: jnp.sin(x) * y, "basis"), random(3), random(3))
    check_rule(jvp_from_vjp(lambda x, y: jnp.sin(x) * y), random(3), random(3))


def test_refusals() -> None:
    with pytest.raises(errors.ArgumentError, match=r"method must be one of \('transpose', 'basis'\), got 'both'"):
        jvp_from_vjp(jnp.sin, "both")
    with pytest.raises(errors.NotDifferentiableError, match='method="basis" does not support'):
        jvp(jvp_from_vjp(jnp.sin, "basis"), (1j,), (1j,))
    assert_close(jvp(jvp_from_vjp(jnp.sin), (1j,), (2.0 + 1j,))[1], jnp.cos(1j) * (2.0 + 1j))


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_of_results_without_numbers(chunk_size: int | None) -> None:
    f = jvp_from_vjp(lambda x: x > 0, "basis", chunk_size)
    out, tangent = jvp(f, (random(3),), (jnp.ones(3),))
    assert_close(out, jnp.asarray(random(3) > 0))
    assert tangent.dtype == pullback.float0
    g = vjp_from_jvp(lambda n, x: n * x, "basis", chunk_size)
    (cotangent,) = vjp(lambda n: g(n, 2), jnp.arange(3))[1](np.zeros(3, pullback.float0))
    assert cotangent.dtype == pullback.float0
