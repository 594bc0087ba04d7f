"""A recurrent network by ``scan``, with dropout and checkpoints."""

from functools import partial

import pullback
import pullback.numpy as jnp
from pullback import Array, lax, nn, random
from pullback.ad_checkpoint import checkpoint_name

Weights = dict[str, Array]


def cell(weights: Weights, h: Array, x: Array) -> Array:
    z = checkpoint_name(h @ weights["hh"] + x @ weights["xh"], "sums")
    return nn.tanh(z)


@partial(pullback.checkpoint, static_argnums=(3,))
def run(weights: Weights, xs: Array, key: Array, rate: float) -> tuple[Array, Array]:
    kept = random.bernoulli(key, 1 - rate, xs.shape)
    inputs = jnp.where(kept, xs / (1 - rate), 0)

    def body(h: Array, x: Array) -> tuple[Array, Array]:
        h = cell(weights, h, x)
        return h, h.sum()

    last, sums = lax.scan(body, jnp.zeros(weights["hh"].shape[0]), inputs)
    return last, sums


def mistaken(weights: Weights, h: Array) -> Array:
    return cell(h, weights, h)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    a, b, c, d = random.split(random.key(1), 4)
    weights = {"hh": random.normal(a, (4, 4)) * 0.1, "xh": random.normal(b, (3, 4))}
    xs = random.normal(c, (7, 3))
    last, sums = run(weights, xs, d, 0.2)
    gradient = pullback.grad(lambda w: run(w, xs, d, 0.2)[0].sum())(weights)
    assert last.shape == (4,)
    assert sums.shape == (7,)
    print(sorted(gradient), lax.cumsum(sums).shape, lax.stop_gradient(sums).dtype)
