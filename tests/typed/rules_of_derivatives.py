"""Rules for trees, for vmap, and for functions whose arguments are not differentiated."""

from functools import partial
from typing import Any

import pullback
import pullback.numpy as jnp
from pullback import Array
from pullback.custom_batching import custom_vmap
from pullback.scipy.special import logsumexp
from pullback.test_util import check_grads

Params = dict[str, Array]


@partial(pullback.custom_vjp, nondiff_argnums=(1,))
def fitted(params: Params, steps: int) -> Array:
    return params["w"] * steps


def fitted_fwd(params: Params, steps: int) -> tuple[Array, tuple[Params]]:
    return fitted(params, steps), (params,)


def fitted_bwd(steps: int, saved: tuple[Params], ct: Array) -> tuple[Params]:
    return ({"w": steps * ct},)


fitted.defvjp(fitted_fwd, fitted_bwd)


@pullback.custom_gradient
def straight_through(x: Array) -> tuple[Array, Any]:
    return jnp.round(x), lambda ct: (ct,)


@custom_vmap
def product(x: Array, y: Array) -> Array:
    return x @ y


@product.def_vmap
def product_of_many(size: int, mapped: list[bool], x: Array, y: Array) -> tuple[Array, bool]:
    return jnp.einsum("bij,jk->bik" if mapped[0] else "ij,jk->ik", x, y), mapped[0]


@jnp.vectorize
def angle(x: Array, y: Array) -> Array:
    return jnp.arctan2(x, y)


def mistaken(x: Array) -> str:
    return straight_through(x)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    gradient = pullback.grad(lambda p: fitted(p, 3))({"w": jnp.asarray(2.0)})
    assert gradient["w"] == 3
    slope = pullback.grad(lambda x: straight_through(x) ** 2)(1.4)
    many = pullback.vmap(product, in_axes=(0, None))(jnp.ones((4, 2, 3)), jnp.ones((3, 2)))
    check_grads(lambda x: logsumexp(x, axis=0), (jnp.arange(3.0),), order=1)
    largest, signs = logsumexp(jnp.arange(3.0), return_sign=True)
    out, pull, extra = pullback.vjp(lambda x: (x**2, x.shape), jnp.ones(2), has_aux=True)
    print(slope, many.shape, largest > 2, signs, angle(1.0, 1.0).shape, pull(out)[0].shape, extra)
    convert, constants = pullback.closure_convert(lambda x: x * slope, jnp.ones(2))
    print(convert(jnp.ones(2), *constants).shape, pullback.hessian(jnp.sum)(jnp.ones(2)).shape)
