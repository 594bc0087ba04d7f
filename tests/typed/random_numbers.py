"""Keys of every kind, and indices of every kind."""

import numpy as np

import pullback.numpy as jnp
from pullback import Array, random


def shuffled(key: Array, table: Array) -> tuple[Array, Array]:
    order = random.permutation(key, table.shape[0])
    return table[order], order


def pieces(x: Array) -> dict[str, Array]:
    return {
        "row": x[0],
        "columns": x[:, [0, 2]],
        "mask": x[x[:, 0] > 2],
        "new": x[None, ..., -1],
        "numpy": x[np.array([1, 0]), 1],
        "range": x[slice(0, 2), ::2],
        "updated": x.at[1, 2].add(1.0).at[:, 0].set(0.0),
    }


def mistaken(key: Array) -> Array:
    return random.normal(key, shape="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def main() -> None:
    key = random.PRNGKey(0)
    table = jnp.arange(12.0).reshape(4, 3)
    rows, order = shuffled(random.fold_in(key, 2), table)
    draws = [
        random.gamma(key, 2.0, (3,)),
        random.categorical(key, jnp.zeros((2, 3)), axis=-1),
        random.multivariate_normal(key, jnp.zeros(2), jnp.eye(2), (5,)),
        random.truncated_normal(key, -1, 1, (2,), jnp.float32),
        random.bits(key, (2,), "uint8"),
        random.t(key, 3.0),
    ]
    parts = pieces(table)
    unique, counts = jnp.unique(jnp.array([1, 2, 2]), return_counts=True)
    rows_, columns = jnp.nonzero(table > 5)
    grid, _ = jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ij")
    mean, weight = jnp.average(table, axis=0, weights=jnp.ones(4), returned=True)
    print(rows.shape, order.dtype, [d.shape for d in draws], sorted(parts), unique, counts.max(), rows_.size)
    print(columns[0], grid.shape, mean.shape, weight.shape, jnp.finfo(jnp.float32).bits, jnp.iinfo("int8").max)
    print(
        jnp.array([[1, 2], (3, 4)]).sum(),
        jnp.logaddexp.reduce(jnp.zeros(2)),
        jnp.result_type(table, 1),
        np.sin(table).shape,
    )
