"""Eleven programs of single or double precision, from a few numbers to arrays of 160,000."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import nn
from tests.analysis.precision_cases import CASES, point


class Program(NamedTuple):
    """A function and its arguments.

    Attributes:
      name: what it is.
      function: the function, as ``precision`` takes it.
      eager: the same without compilation, which is what its time is compared with.
      args: its arguments.
      dtype: their dtype.
    """

    name: str
    function: Callable[..., Any]
    eager: Callable[..., Any]
    args: tuple[Any, ...]
    dtype: str


def _elementwise(x: Any, y: Any) -> Any:
    return jnp.tanh(x * y + jnp.exp(-x)) / (1 + jnp.sin(y)) - jnp.sqrt(jnp.abs(x))


def _softmax_loss(x: Any) -> Any:
    return -jnp.mean(jnp.log(nn.softmax(x)[:, 0]))


def _mlp(weights: Any, x: Any) -> Any:
    for w, b in weights:
        x = jnp.tanh(x @ w + b)
    return jnp.mean(x * x)


def _thirty(x: Any) -> Any:
    for _ in range(6):
        x = (jnp.sin(x) * 1.5 + x) / (1 + x * x)
    return x


def _quadratic(a: Any, b: Any, c: Any) -> Any:
    return (-b - jnp.sqrt(b * b - 4 * a * c)) / (2 * a)


def _energy(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * jnp.exp(-x) + jnp.log(1 + x * x))


def _steps(x: Any) -> Any:
    for _ in range(50):
        x = x + 0.01 * jnp.sin(x)
    return x


def _likelihood(mean: Any, scale: Any, x: Any) -> Any:
    return -jnp.sum(jnp.log(scale) + 0.5 * ((x - mean) / scale) ** 2)


def _layers(rng: Any, *widths: int) -> Any:
    return [(rng.normal(size=(m, n)) / m**0.5, np.zeros(n)) for m, n in itertools.pairwise(widths)]


def programs() -> list[Program]:
    """Return the eleven programs in both precisions; call this and run them where doubles are enabled."""
    rng = np.random.default_rng(0)
    positive = partial(rng.uniform, 0.5, 2.0)
    small = (_layers(rng, 8, 16, 16, 1), rng.normal(size=(8, 8)))
    large = (_layers(rng, 128, 256, 128), rng.normal(size=(256, 128)))
    gradient = pullback.grad(_mlp)
    data = (0.3, 1.2, rng.normal(size=1000))
    many = (positive(160_000), positive(160_000))
    rows: list[tuple[str, Any, Any, tuple[Any, ...]]] = [
        ("eight elementwise operations on 160,000 elements", _elementwise, None, many),
        ("gradient of a softmax of 400 by 400", pullback.grad(_softmax_loss), None, (rng.normal(size=(400, 400)),)),
        ("gradient of an MLP of 256 by 128", gradient, None, large),
        ("gradient of a log-likelihood of 1,000", pullback.grad(_likelihood, (0, 1)), None, data),
        ("30 operations on 100 elements", _thirty, None, (positive(100),)),
        ("gradient of a sum over 100 elements", pullback.grad(_energy), None, (positive(100),)),
        ("30 operations on a number", _thirty, None, (0.7,)),
        ("root of a quadratic", _quadratic, None, (1.0, -3.0, 2.0)),
        ("loop of 50 steps on a number", _steps, None, (0.7,)),
        ("gradient of an MLP of 8 by 16", gradient, None, small),
        ("the same, compiled", pullback.jit(gradient), gradient, small),
    ]  # fmt: skip
    return [
        Program(name, function, eager or function, _as(dtype, args), dtype)
        for dtype in ("float32", "float64")
        for name, function, eager, args in rows
    ]


def _as(dtype: str, args: Any) -> Any:
    return pullback.tree.map(lambda x: jnp.asarray(x, dtype), args)


class _Functions:
    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name) if hasattr(jnp, name) else getattr(pullback.scipy.special, name)


def cases() -> list[Program]:
    """Return the classical cases of the tests."""
    names = _Functions()
    return [
        Program(each.name, function, function, tuple(map(jnp.asarray, point(each))), each.dtype)
        for each in CASES
        for function in [partial(each.function, names)]
    ]
