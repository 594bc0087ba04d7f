"""Twelve functions with sparse derivatives, in terms of a library's ``numpy`` and ``lax``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Problem(NamedTuple):
    """A function, and a point; of a ``hessian`` it returns a number."""

    function: Callable[[Any], Any]
    point: Any
    hessian: bool = False


def problems(jnp: Any, lax: Any) -> dict[str, Problem]:
    """The problems by name."""
    draw = np.random.default_rng(0)

    def point(*shape: int) -> Any:
        return draw.uniform(1, 2, shape).astype(np.float32)

    def laplacian(w: Any) -> Any:
        return jnp.roll(w, 1, 0) + jnp.roll(w, -1, 0) + jnp.roll(w, 1, 1) + jnp.roll(w, -1, 1) - 4 * w

    def slope(w: Any, axis: int) -> Any:
        return (jnp.roll(w, -1, axis) - jnp.roll(w, 1, axis)) * 0.5

    def brusselator(x: Any) -> Any:
        u, v = x[0], x[1]
        return jnp.stack([1 + u**2 * v - 4.4 * u + 0.1 * laplacian(u), 3.4 * u - u**2 * v + 0.1 * laplacian(v)])

    def heat(u: Any) -> Any:
        p = jnp.pad(u, 1)
        return (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u) * 0.1 + jnp.sin(u)

    def burgers(x: Any) -> Any:
        u, v = x[0], x[1]
        parts = [-u * slope(w, 0) - v * slope(w, 1) + 0.01 * laplacian(w) for w in (u, v)]
        return jnp.stack(parts)

    blocks = draw.normal(size=(50, 6, 6)).astype(np.float32)
    kernel = draw.normal(size=(2, 1, 3, 3)).astype(np.float32)
    weights = draw.normal(size=7).astype(np.float32)
    a, b = _lines(draw, 300)
    strength = point(len(a))

    def grid(angle: Any) -> Any:
        flow = strength * jnp.sin(angle[a] - angle[b])
        return jnp.zeros(300, np.float32).at[a].add(flow).at[b].add(-flow)

    def surface(u: Any) -> Any:
        q = jnp.pad(u, 1)
        return jnp.sum(jnp.sqrt(1 + (q[1:, :-1] - q[:-1, :-1]) ** 2 + (q[:-1, 1:] - q[:-1, :-1]) ** 2))

    return {
        "Brusselator": Problem(brusselator, point(2, 32, 32)),
        "heat": Problem(heat, point(32, 32)),
        "Burgers, 2D": Problem(burgers, point(2, 32, 32)),
        "banded": Problem(lambda x: x[2:-2] ** 2 * x[:-4] - x[1:-3] * x[3:-1] + x[4:], point(2000)),
        "arrow": Problem(lambda x: jnp.concatenate([jnp.sum(x**2)[None], x[1:] ** 2 * x[0]]), point(500)),
        "blocks": Problem(lambda x: jnp.tanh(jnp.einsum("bij,bj->bi", blocks, x.reshape(50, 6))), point(300)),
        "convolution": Problem(
            lambda x: jnp.tanh(lax.conv(x.reshape(1, 1, 24, 24), kernel, (1, 1), "SAME")), point(24, 24)
        ),
        "rolled": Problem(
            lambda x: sum(jnp.roll(x, k) * w for k, w in zip(range(-3, 4), weights, strict=True)) * x, point(1000)
        ),
        "scan": Problem(lambda x: lax.scan(lambda c, y: (y, jnp.sin(c) * y), x[0], x)[1], point(300)),
        "power grid": Problem(grid, point(300)),
        "Lorenz 96": Problem(lambda x: (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8, point(1000)),
        "minimal surface": Problem(surface, point(24, 24), hessian=True),
    }


def _lines(draw: Any, count: int) -> tuple[Any, Any]:
    """The ends of the lines of a power grid: a path through all its nodes, and half as many lines more."""
    path = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    lines = np.concatenate([path, draw.integers(0, count, (count // 2, 2))])
    lines = np.unique(np.sort(lines, axis=1), axis=0)
    lines = lines[lines[:, 0] != lines[:, 1]]
    return lines[:, 0], lines[:, 1]
