"""``functools.partial`` of transformations as decorators, and decorators with options.

Pyright and ty know the types of a function under ``partial(jit, ...)``, so that they find the first mistake. To mypy
and pyrefly such a function takes and returns anything; ``jit(static_argnums=...)`` keeps types for all of them.
"""

import functools
from functools import partial

import pullback.numpy as jnp
from pullback import Array, checkpoint, grad, jit, vmap


@partial(jit, static_argnums=(1,))
def power(x: Array, n: int) -> Array:
    return x**n


@jit(static_argnums=(1,))
def root(x: Array, n: int) -> Array:
    return x ** (1 / n)


@functools.partial(vmap, in_axes=(0, None))
def scaled(x: Array, factor: Array) -> Array:
    return x * factor


@partial(checkpoint, static_argnums=(1,))
def series(x: Array, count: int) -> Array:
    return sum((x**k for k in range(1, count)), start=jnp.ones_like(x))


def mistaken_partial(x: Array) -> Array:
    out: Array = power(x, "two")  # pyright: ignore[reportArgumentType]
    return out


def mistaken(x: Array) -> Array:
    return root(x, "two")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    x = jnp.array([1.0, 4.0, 9.0])
    powers: Array = power(x, 2)
    print(powers.tolist(), root(x, 2).round(4).tolist())
    print(scaled(x, jnp.asarray(2.0)).tolist())
    print(grad(lambda y: series(y, 3))(2.0))
