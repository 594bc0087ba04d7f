"""Functions with rules, and what the tests of such functions share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import custom_jvp, custom_vjp, jit, jvp
from tests.helpers import assert_elements_close, plain

Function = Callable[..., Any]

x3 = jnp.asarray([0.0, 1.0, 2.0])
ones4 = jnp.ones(4)


COMPILED = pytest.mark.parametrize("compiled", [plain, jit], ids=["eager", "jit"])
"""What is done to a function before it is run."""


close = partial(assert_elements_close, rtol=1e-5, atol=1e-6, dtypes=False)


def along(f: Function, *tangents: Any) -> Function:
    """The tangent of the result, in a direction of ones if none is given."""
    return lambda *xs: jvp(f, xs, tangents or tuple(jnp.ones_like(x) for x in xs))[1]


# Functions with rules ----------------------------------------------------------------------------------------------


@custom_jvp
def sine_times_jvp(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


@sine_times_jvp.defjvp
def _sine_times_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (x_dot, y_dot) = primals, tangents
    return sine_times_jvp(x, y), jnp.cos(x) * x_dot * y + jnp.sin(x) * y_dot


@custom_jvp
def sine_times_jvps(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


sine_times_jvps.defjvps(
    lambda x_dot, ans, x, y: jnp.cos(x) * x_dot * y,
    lambda y_dot, ans, x, y: jnp.sin(x) * y_dot,
)


@custom_vjp
def sine_times_vjp(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


def _sine_times_fwd(x: Any, y: Any) -> Any:
    return sine_times_vjp(x, y), (jnp.cos(x), jnp.sin(x), y)


def _sine_times_bwd(residuals: Any, ct: Any) -> Any:
    cos_x, sin_x, y = residuals
    return cos_x * ct * y, sin_x * ct


sine_times_vjp.defvjp(_sine_times_fwd, _sine_times_bwd)


def log1pexp(x: Any) -> Any:
    return jnp.log(1.0 + jnp.exp(x))


def clipped(low: Any, high: Any) -> Any:
    """The identity, with a gradient that is clipped."""

    @functools.partial(custom_vjp, nondiff_argnums=(0, 1))
    def clip_gradient(low: Any, high: Any, x: Any) -> Any:
        return x

    clip_gradient.defvjp(lambda low, high, x: (x, None), lambda low, high, _, ct: (jnp.clip(ct, low, high),))
    return functools.partial(clip_gradient, low, high)


def doubled(kind: str) -> Any:
    """2x, with rules that say 3."""
    f: Any
    if kind == "custom_jvp":
        f = custom_jvp(lambda x: 2.0 * x)
        f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0]))
    else:
        f = custom_vjp(lambda x: 2.0 * x)
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (3.0 * ct,))
    return f
