"""Random walks and Monte Carlo from explicit keys."""

import pullback.numpy as jnp
from pullback import Array, jit, lax, random, vmap


def walk(key: Array, steps: int) -> Array:
    return jnp.cumsum(random.rademacher(key, (steps,)))


@jit
def estimate_pi(key: Array) -> Array:
    points = random.uniform(key, (2000, 2), minval=-1, maxval=1)
    return 4 * jnp.mean(jnp.linalg.norm(points, axis=-1) < 1)


def metropolis(key: Array, start: Array, count: int) -> Array:
    def step(x: Array, k: Array) -> tuple[Array, Array]:
        propose, accept = random.split(k)
        new = x + random.normal(propose, x.shape)
        ratio = jnp.exp(0.5 * (x**2 - new**2))
        x = jnp.where(random.uniform(accept, x.shape) < ratio, new, x)
        return x, x

    samples: Array = lax.scan(step, start, random.split(key, count))[1]
    return samples


def mistaken() -> Array:
    return random.normal(42, (3,))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    key = random.key(7)
    walks = vmap(lambda k: walk(k, 10))(random.split(key, 5))
    order = random.permutation(random.fold_in(key, 1), 10)
    counts = jnp.bincount(random.choice(key, 3, (20,)), length=3)
    chain = metropolis(key, jnp.zeros(4), 50)
    assert walks.shape == (5, 10)
    assert sorted(order.tolist()) == list(range(10))
    assert counts.sum() == 20
    print(chain.shape, abs(float(estimate_pi(key)) - 3.14) < 0.3, random.key_data(key).dtype)
