"""The functions of ``derivatives`` under all compositions of two transformations, against dense derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import grad, hessian, jacfwd, jit, jvp, vjp, vmap
from pullback.derivatives import (
    forward_laplacian,
    gauss_newton,
    hessian_trace,
    hvp,
    jvp_from_vjp,
    laplacian,
    stochastic_diag,
    vjp_from_jvp,
)
from pullback.random import key
from tests.helpers import assert_close, random

pytestmark = pytest.mark.usefixtures("all_in_x64")

Function = Callable[[Any], Any]


def scalar(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * x[::-1]) + jnp.prod(x)


def model(x: Any) -> Any:
    return jnp.tanh(x[:, None] * jnp.asarray([1.0, 2.0])) @ jnp.asarray([0.5, 1.0])


def mixed(x: Any) -> Any:
    return jnp.sin(x) * jnp.sum(x**2)


ONES = jnp.ones(3)
SUBJECTS: dict[str, tuple[Function, Function]] = {
    "laplacian": (laplacian(mixed), lambda x: jnp.trace(hessian(mixed)(x), axis1=1, axis2=2)),
    "laplacian of a map": (
        laplacian(lambda x: vmap(jit(jnp.sin))(x) * x[0]),
        lambda x: jnp.trace(hessian(lambda x: jnp.sin(x) * x[0])(x), axis1=1, axis2=2),
    ),
    "forward_laplacian": (
        lambda x: forward_laplacian(scalar)(x).laplacian * forward_laplacian(scalar)(x).jacobian,
        lambda x: jnp.trace(hessian(scalar)(x)) * grad(scalar)(x),
    ),
    "hvp": (lambda x: hvp(scalar, (x,), (x**2,)), lambda x: hessian(scalar)(x) @ x**2),
    "gauss_newton": (
        lambda x: gauss_newton(model, lambda y: jnp.sum(jnp.exp(y)))(x) @ x,
        lambda x: (j := jacfwd(model)(x)).T @ (jnp.exp(model(x)) * (j @ x)),
    ),
    "hessian_trace": (
        lambda x: x * hessian_trace(lambda x: jnp.sum(jnp.sin(x)))(x, key(0), 2).value,
        lambda x: x * -jnp.sum(jnp.sin(x)),
    ),
    "stochastic_diag": (
        lambda x: stochastic_diag(jnp.diag(jnp.exp(x)), key(0), 2).value,
        jnp.exp,
    ),
    "jvp_from_vjp": (jvp_from_vjp(mixed), mixed),
    "vjp_from_jvp": (vjp_from_jvp(mixed), mixed),
    "vjp_from_jvp by a basis": (vjp_from_jvp(mixed, "basis"), mixed),
}

# Each makes a function from three numbers to three numbers of another one.
TRANSFORMATIONS: dict[str, Callable[[Function], Function]] = {
    "jit": jit,
    "vmap": lambda f: lambda x: vmap(f)(jnp.stack([x, x[::-1]])).sum(0),
    "forward": lambda f: lambda x: jvp(f, (x,), (jnp.cos(x),))[1],
    "reverse": lambda f: lambda x: vjp(f, x)[1](jnp.cos(x))[0],
}


@pytest.mark.parametrize("pair", list(itertools.product(TRANSFORMATIONS, repeat=2)), ids="-".join)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_under_two_transformations(subject: str, pair: tuple[str, str]) -> None:
    got, dense = SUBJECTS[subject]
    for name in pair:
        got = TRANSFORMATIONS[name](got)
        dense = dense if name == "jit" else TRANSFORMATIONS[name](dense)
    x = jnp.asarray(random(3))
    assert_close(got(x), dense(x), 1e-8)
