"""Functions with derivative rules of their own, in every spelling."""

from functools import partial

import pullback
import pullback.numpy as jnp
from pullback import Array, custom_jvp, custom_vjp


@custom_vjp
def clipped(x: Array, limit: float) -> Array:
    return x * 1.0


def clipped_fwd(x: Array, limit: float) -> tuple[Array, float]:
    return x * 1.0, limit


def clipped_bwd(limit: float, ct: Array) -> tuple[Array, None]:
    return jnp.clip(ct, -limit, limit), None


clipped.defvjp(clipped_fwd, clipped_bwd)


@custom_jvp
def log1pexp(x: Array) -> Array:
    return jnp.log1p(jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return log1pexp(x), t * (1 - 1 / (1 + jnp.exp(x)))


@partial(custom_jvp, nondiff_argnums=(0,))
def power(n: int, x: Array) -> Array:
    return x**n


@power.defjvp
def power_jvp(n: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return power(n, x), n * x ** (n - 1) * t


def mistaken(x: Array) -> str:
    return log1pexp(x)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    x = jnp.array([1.0, 2.0])
    value, pull = pullback.vjp(lambda v: clipped(v, 0.5), x)
    (ct,) = pull(jnp.ones_like(value))
    assert ct.tolist() == [0.5, 0.5]
    print(clipped.__name__, pullback.grad(lambda v: log1pexp(v).sum())(x).shape)
    print(pullback.jacfwd(lambda v: power(3, v))(x).diagonal().tolist())
