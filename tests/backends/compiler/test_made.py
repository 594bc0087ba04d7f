"""Small arrays that a program makes of no operands are made before it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import hessian, jacfwd, jit, lax, make_jaxpr
from pullback.backends.compiler import made

X = np.linspace(0.5, 2.0, 12, dtype=np.float32).reshape(3, 4)

READ: dict[str, Callable[[Any], Any]] = {
    "a mask": lambda x: jnp.tril(x),
    "a basis": jacfwd(lambda x: jnp.sin(x) * x[0]),
    "a Hessian's": hessian(lambda x: jnp.sum(jnp.sin(x) * x[0])),
    "integers": lambda x: x * jnp.arange(1, 5),
    "what wraps around": lambda x: x + (lax.iota(np.uint8, 4) - np.uint8(2)).astype(np.float32),
    "used twice": lambda x: (jnp.tril(x), jnp.where(jnp.tri(3, 4, dtype=bool), x, 2.0)),
    "booleans": lambda x: jnp.where((jnp.arange(4) > 1) & ~(jnp.arange(4) == 3), x, 0),
    "returned too": lambda x: (x * jnp.arange(1, 5), jnp.arange(1, 5)),
}
LEFT: dict[str, Callable[[Any], Any]] = {
    "one operation": lambda x: x + lax.iota(np.float32, 4),
    "returned": lambda x: (x, jnp.eye(3)),
    "of floats": lambda x: x + jnp.sin(lax.iota(np.float32, 4)),
    "of an operand": lambda x: x + lax.iota(np.int32, 4) * jnp.argmax(x),
    "random": lambda x: x + jnp.arange(4)[jnp.argmax(x)],
}


def _captured(f: Callable[..., Any], x: Any) -> int:
    return len(made.read(make_jaxpr(f)(x)).consts)


@pytest.mark.parametrize("name", [*READ, *LEFT])
def test_small_arrays_are_read_and_have_the_same_elements(name: str) -> None:
    f = {**READ, **LEFT}[name]
    assert bool(_captured(f, X)) == (name in READ)
    got, expected = jit(f)(X), f(jnp.asarray(X))
    for a, b in zip(got if isinstance(got, tuple) else [got], expected if isinstance(expected, tuple) else [expected]):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_no_other_equation_needs_is_left_out() -> None:
    before = make_jaxpr(jnp.tril)(X)
    after = made.read(before)
    assert [eqn.primitive.name for eqn in after.jaxpr.eqns] == ["select_n"]
    assert len(before.jaxpr.eqns) > 1


def test_one_operation_that_something_else_needs_stays() -> None:
    closed = made.read(make_jaxpr(lambda x: (jnp.tril(x), x + lax.iota(np.int32, 4), lax.iota(np.int32, 4) * 2))(X))
    assert [eqn.primitive.name for eqn in closed.jaxpr.eqns] == ["select_n", "add", "iota", "mul"]


def test_large_arrays_are_computed_where_they_are_used() -> None:
    side = int(made.READ**0.5)
    assert _captured(jnp.tril, np.zeros((side, side), np.float32)) == 1
    assert _captured(jnp.tril, np.zeros((side, side + 1), np.float32)) == 0


def test_what_depends_on_the_device_is_not_made_before() -> None:
    closed = make_jaxpr(lambda x: x + lax.axis_index("i") * 2, axis_env=[("i", 4)])(X)
    assert made.read(closed) is closed
