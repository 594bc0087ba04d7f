"""Attention by einsum, mapped over axes of the user's choice."""

from collections.abc import Callable

import pullback
import pullback.numpy as jnp
from pullback import Array, nn, random


def heads(x: Array, weight: Array) -> Array:
    return jnp.einsum("sd,dhk->hsk", x, weight)


def attention(x: Array, query: Array, key: Array, value: Array) -> Array:
    q, k, v = heads(x, query), heads(x, key), heads(x, value)
    scores = jnp.einsum("hqk,hsk->hqs", q, k) / jnp.sqrt(k.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return jnp.einsum(weights, [0, 1, 2], v, [0, 2, 3], [1, 0, 3]).reshape(x.shape[0], -1)


def each(f: Callable[[Array, float], Array], x: Array) -> Array:
    return pullback.vmap(f, in_axes=(0, None), out_axes=-1)(x, 2.0)


def mistaken(x: Array) -> Array:
    return each(x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    keys = random.split(random.key(0), 4)
    batch = random.normal(keys[0], (2, 5, 6))
    weights = [random.normal(k, (6, 3, 2)) for k in keys[1:]]
    mapped = pullback.vmap(attention, in_axes=(0, None, None, None))
    out = mapped(batch, *weights)
    assert out.shape == (2, 5, 6)
    path, report = jnp.einsum_path("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 4)), optimize="greedy")
    scaled = each(lambda row, c: c * row, batch[0])
    inner = nn.dot_product_attention(batch[:, :, None], batch[:, :, None], batch[:, :, None], is_causal=True)
    print(len(path), bool(report), scaled.shape, inner.shape, jnp.tensordot(batch, weights[0], axes=1).shape)
    jacobian = pullback.jacfwd(attention)(batch[0], *weights)
    print(jacobian.shape, jnp.linalg.norm(out, ord="fro", axis=(1, 2)).shape, jnp.pad(out[0], ((0, 1), (0, 0))).shape)
