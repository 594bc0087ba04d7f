"""``associative_scan``: against partial results in Python, under transformations, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, lax, make_jaxpr, vmap


@pytest.mark.parametrize("count", [*range(10), 31, 64, 100])
def test_sums_and_products_of_any_number(count: int) -> None:
    x = np.random.default_rng(count).uniform(0.5, 1.5, (count, 2)).astype(np.float32)
    assert np.allclose(lax.associative_scan(jnp.multiply, jnp.asarray(x)), np.cumprod(x, 0), rtol=1e-4)
    assert np.allclose(lax.associative_scan(jnp.add, jnp.asarray(x), reverse=True), x[::-1].cumsum(0)[::-1], rtol=1e-4)
    assert np.allclose(lax.associative_scan(jnp.add, jnp.asarray(x.T), axis=-1), x.T.cumsum(1), rtol=1e-4)


def test_the_order_is_kept_where_the_operation_does_not_commute() -> None:
    a = np.random.default_rng(0).normal(size=(11, 2, 2)).astype(np.float32)
    for wrap in (lambda f: f, jit):
        products = wrap(lambda a: lax.associative_scan(lambda first, then: then @ first, a))(jnp.asarray(a))
        back = wrap(lambda a: lax.associative_scan(lambda later, earlier: earlier @ later, a, reverse=True))(
            jnp.asarray(a)
        )
        forward, backward = np.eye(2), np.eye(2)
        for i in range(11):
            forward, backward = a[i] @ forward, a[10 - i] @ backward
            assert np.allclose(products[i], forward, rtol=1e-3, atol=1e-4)
            assert np.allclose(back[10 - i], backward, rtol=1e-3, atol=1e-4)


def test_linear_recurrences_as_pairs() -> None:
    def solve(a: Any, b: Any) -> Any:
        def combine(first: Any, then: Any) -> Any:
            return {"a": then["a"] * first["a"], "b": then["a"] * first["b"] + then["b"]}

        return lax.associative_scan(combine, {"a": a, "b": b})["b"]

    def plain(a: Any, b: Any) -> Any:
        return lax.scan(lambda y, ab: (ab[0] * y + ab[1],) * 2, 0.0, (a, b))[1]

    a, b = jnp.linspace(0.5, 1.2, 9), jnp.linspace(-1.0, 1.0, 9)
    assert np.allclose(solve(a, b), plain(a, b), rtol=1e-5)
    for f in (lambda g: grad(lambda a, b: g(a, b).sum(), (0, 1)), lambda g: lambda a, b: jvp(g, (a, b), (b, a))):
        for x, y in zip(f(solve)(a, b), f(plain)(a, b), strict=True):
            assert np.allclose(x, y, rtol=1e-4)
    many = vmap(solve, (0, None))(jnp.stack([a, b]), b)
    assert np.allclose(many[1], plain(b, b), rtol=1e-4, atol=1e-6)


def test_the_number_of_rounds_is_logarithmic() -> None:
    calls = []

    def combine(x: Any, y: Any) -> Any:
        calls.append(x.shape)
        return x + y

    make_jaxpr(lambda x: lax.associative_scan(combine, x))(jnp.ones(1024))
    assert len(calls) <= 2 * 10


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: lax.associative_scan(lambda x, y: x, {"a": jnp.ones(3), "b": jnp.ones(4)}),
        r"the same number of elements along axis 0, but elems\['a'\] has 3, elems\['b'\] has 4",
    ),
    (lambda: lax.associative_scan(jnp.add, jnp.ones(3), axis=1), r"elems of type f32\[3\] has no axis 1"),
    (
        lambda: lax.associative_scan(lambda x, y: (x, y), jnp.ones(3)),
        "must return a tree like elems, but elems is an array when it is given and a tuple when it is returned",
    ),
    (
        lambda: lax.associative_scan(lambda x, y: x.sum(), jnp.ones(3)),
        r"must return the types of its arguments, but elems is f32\[1\] when it is given and f32\[\] when",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.ControlFlowError, match=re.compile("associative_scan: .*" + message, re.DOTALL)):
        call()


def test_trees_of_nothing() -> None:
    assert lax.associative_scan(lambda x, y: x, ()) == ()
    with pytest.raises(errors.ArgumentError, match="associative_scan: fn must be a function, got 1"):
        lax.associative_scan(1, jnp.ones(3))  # type: ignore[arg-type]
