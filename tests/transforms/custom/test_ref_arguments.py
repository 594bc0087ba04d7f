"""References to differentiated contents, as arguments of functions with derivative rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import custom_jvp, custom_vjp, errors, grad, jit, jvp, lax, new_ref, vjp, vmap


@custom_vjp
def cube(ref: Any) -> Any:
    return ref[...] ** 3


def cube_forward(ref: Any) -> Any:
    return cube(ref), ref[...]


def cube_backward(x: Any, ct: Any) -> Any:
    return (30 * x**2 * ct,)  # ten times the derivative


cube.defvjp(cube_forward, cube_backward)


def of_ref(x: Any) -> Any:
    return cube(new_ref(x))


def test_the_rule_returns_the_cotangent_of_the_content() -> None:
    assert float(cube(new_ref(2.0))) == 8.0
    y, pull = vjp(of_ref, 2.0)
    assert (float(y), float(pull(1.0)[0])) == (8.0, 120.0)
    for g in (jit(grad(of_ref)), grad(jit(of_ref)), grad(lambda x: jit(cube)(new_ref(x)))):
        assert float(g(2.0)) == 120.0
    np.testing.assert_array_equal(vmap(grad(of_ref))(jnp.arange(3.0)), [0, 30, 120])
    np.testing.assert_array_equal(grad(lambda x: vmap(of_ref)(x).sum())(jnp.arange(3.0)), [0, 30, 120])
    assert float(grad(grad(of_ref))(2.0)) == 120.0
    total = lambda x: lax.fori_loop(0, 3, lambda i, c: c + of_ref(x), 0.0)
    assert float(grad(total)(1.0)) == 90.0


def test_the_jvp_rule_has_the_tangent_of_the_content() -> None:
    @custom_jvp
    def twice(ref: Any, y: Any) -> Any:
        return 2 * ref[...] * y

    @twice.defjvp
    def twice_jvp(primals: Any, tangents: Any) -> Any:
        ref, y = primals
        t, s = tangents
        return twice(ref, y), 20 * t * y + 2 * ref[...] * s

    f = lambda x: twice(new_ref(x), x)
    assert [float(v) for v in jvp(f, (3.0,), (1.0,))] == [18.0, 66.0]
    assert float(grad(f)(3.0)) == float(jit(grad(f))(3.0)) == 66.0


def test_references_that_are_not_differentiated_are_passed_themselves() -> None:
    log = new_ref(0.0)

    @custom_vjp
    def noted(x: Any, ref: Any) -> Any:
        return x

    noted.defvjp(lambda x, ref: (x, ref), lambda ref, ct: (_store(ref, ct), None))

    def _store(ref: Any, ct: Any) -> Any:
        ref[...] = ct
        return ct

    assert float(grad(lambda x: 3 * noted(x, log))(1.0)) == 3.0
    assert float(log[...]) == 3.0


def test_a_rule_with_both_kinds_of_references() -> None:
    log = new_ref(0.0)

    @custom_vjp
    def f(ref: Any, out: Any) -> Any:
        return jnp.sin(ref[...])

    def backward(residuals: Any, ct: Any) -> Any:
        x, out = residuals
        out[...] = ct
        return ct * jnp.cos(x), None

    f.defvjp(lambda ref, out: (f(ref, out), (ref[...], out)), backward)
    np.testing.assert_allclose(grad(lambda x: 2 * f(new_ref(x), log))(1.0), 2 * np.cos(1), rtol=1e-6)
    assert float(log[...]) == 2.0


def test_writes_are_refused() -> None:
    @custom_vjp
    def f(ref: Any) -> Any:
        ref[...] = 2 * ref[...]
        return ref[...]

    f.defvjp(lambda ref: (f(ref), None), lambda _, ct: (ct,))
    with pytest.raises(errors.RefError, match="has derivative rules and writes to a reference"):
        grad(lambda x: f(new_ref(x)))(1.0)


def test_a_rule_may_call_the_compiled_function() -> None:
    def f(ref: Any) -> Any:
        return 2 * ref[...]

    rules = custom_vjp(f)
    compiled = jit(rules)
    rules.defvjp(lambda ref: (compiled(ref), None), lambda _, ct: (20 * ct,))
    assert float(compiled(new_ref(3.0))) == 6.0
    assert float(grad(lambda x: compiled(new_ref(x)))(3.0)) == 20.0


def test_a_compiled_function_leaves_what_it_only_reads() -> None:
    ref = new_ref(jnp.ones(2))
    before = ref[...]
    jit(lambda ref: ref[...] + 1)(ref)
    assert ref[...] is before
