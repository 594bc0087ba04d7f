"""Compiled and vectorised functions, with static arguments and axes."""

from collections.abc import Callable
from functools import partial

import pullback
import pullback.numpy as jnp
from pullback import Array, jit, lax, vmap


@jit(static_argnames=("degree",))
def polynomial(x: Array, degree: int) -> Array:
    total = jnp.zeros_like(x)
    for k in range(degree + 1):
        total += x**k
    return total


@partial(jit, static_argnums=(0, 2), donate_argnums=1)
def iterate(f: Callable[[Array], Array], x: Array, count: int) -> Array:
    found: Array = lax.fori_loop(0, count, lambda _, y: f(y), x)
    return found


def distance(x: Array, y: Array) -> Array:
    return jnp.sqrt(jnp.sum((x - y) ** 2))


def mistaken(x: Array) -> Array:
    return polynomial(x, "two")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    points = jnp.arange(6.0).reshape(3, 2)
    pairs = vmap(vmap(distance, in_axes=(None, 0)), in_axes=(0, None))(points, points)
    assert pairs.shape == (3, 3)
    assert (pairs == pairs.T).all()
    print(polynomial(jnp.array([1.0, 2.0]), degree=2).tolist())
    print(iterate(jnp.cos, jnp.asarray(1.0), 20).round(3))
    lowered = polynomial.lower(points, degree=1)
    text = lowered.as_text()
    assert "stablehlo" in text
    jaxpr = pullback.make_jaxpr(distance)(points[0], points[1])
    print(len(jaxpr.eqns) > 0, polynomial.__name__)
