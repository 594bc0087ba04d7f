"""What the body of a loop, or a step that is written again and again, may hold."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax, nn, random

X = np.random.default_rng(0).normal(size=12).astype(np.float32)

BODIES: dict[str, Any] = {
    "scatter": lambda i, y: y.at[i].set(0.5 * i),
    "scatter, repeated": lambda i, y: y.at[jnp.array([0, 1, 1])].add(1.0),
    "scatter, multiplied": lambda i, y: y.at[jnp.array([0, 1, 1])].multiply(1.1),
    "gather": lambda i, y: y[(y * 3).astype(int) % y.size],
    "sort": lambda i, y: jnp.sort(y),
    "median": lambda i, y: y - jnp.median(y),
    "cumsum": lambda i, y: jnp.cumsum(y) * 0.01,
    "cumprod": lambda i, y: jnp.cumprod(y) * 0.01,
    "cummax": lambda i, y: lax.cummax(y),
    "associative_scan": lambda i, y: lax.associative_scan(jnp.add, y) * 0.01,
    "convolve": lambda i, y: jnp.convolve(y, y[:5], mode="same") * 0.1,
    "dot": lambda i, y: y * (y @ y) * 0.01,
    "outer": lambda i, y: jnp.outer(y, y).sum(0) * 0.01,
    "cholesky": lambda i, y: jnp.linalg.cholesky(jnp.eye(4) + jnp.outer(y[:4], y[:4])).sum() * y,
    "solve": lambda i, y: y.at[:4].set(jnp.linalg.solve(jnp.eye(4) * 3 + jnp.outer(y[:4], y[:4]), y[:4])),
    "random": lambda i, y: y + random.normal(random.fold_in(random.key(0), i), y.shape),
    "argmax": lambda i, y: y + jnp.argmax(y),
    "top_k": lambda i, y: y + lax.top_k(y, 2)[0][0],
    "cond": lambda i, y: lax.cond(i > 3, jnp.sin, jnp.cos, y),
    "switch": lambda i, y: lax.switch(i % 3, [jnp.sin, jnp.cos, jnp.tanh], y),
    "while_loop": lambda i, y: lax.while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, c[1] * 0.9), (0, y))[1],
    "scan": lambda i, y: lax.scan(lambda c, x: (c + x, c * x), 0.0, y)[1],
    "complex": lambda i, y: jnp.abs(jnp.exp(1j * y)).astype(y.dtype),
    "bfloat16": lambda i, y: (y.astype(jnp.bfloat16) * 2).astype(y.dtype),
    "int": lambda i, y: ((y * 10).astype(int) // 3 % 7).astype(y.dtype),
    "population_count": lambda i, y: lax.population_count((y * 9).astype(jnp.uint32)).astype(y.dtype),
    "special": lambda i, y: lax.erf(y) + lax.lgamma(jnp.abs(y) + 1) + lax.digamma(jnp.abs(y) + 1) + lax.erf_inv(y / 99),
    "dynamic_slice": lambda i, y: lax.dynamic_update_slice(y, lax.dynamic_slice(y, (i,), (2,)) * 2, (i + 1,)),
    "pad": lambda i, y: jnp.pad(y, 2)[2:-2] * 0.9,
    "reverse": lambda i, y: jnp.sin(y) + y[::-1],
    "transpose": lambda i, y: y + jnp.sin(y.reshape(4, 3).T.reshape(-1)),
    "softmax": lambda i, y: nn.softmax(y) * y,
    "nextafter": lambda i, y: jnp.nextafter(y, y + 1),
}
