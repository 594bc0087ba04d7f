"""References are read and written in compiled functions; trees are taken apart by path."""

import pullback
import pullback.numpy as jnp
from pullback import Array, lax, tree
from pullback.tree_util import keystr, tree_flatten_with_path, tree_map_with_path


def count(events: Array) -> Array:
    seen = pullback.new_ref(jnp.zeros(3, jnp.int32))

    def step(_: Array, event: Array) -> tuple[Array, None]:
        seen[event] += 1
        return event, None

    lax.scan(step, jnp.asarray(0), events)
    return pullback.freeze(seen)


@pullback.jit
def swap(cell: pullback.Ref, value: Array) -> Array:
    before = cell[...]
    cell[...] = value
    cell[0:1] = jnp.zeros(1)
    return before


def named(params: dict[str, list[Array]]) -> dict[str, tuple[int, ...]]:
    leaves, _ = tree_flatten_with_path(params)
    return {keystr(path, simple=True, separator="/"): leaf.shape for path, leaf in leaves}


def mistaken(params: dict[str, list[Array]]) -> dict[str, int]:
    return named(params)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    cell = pullback.new_ref(jnp.ones(2))
    first = swap(cell, jnp.full(2, 5.0))
    params = {"dense": [jnp.ones((2, 3)), jnp.zeros(3)]}
    doubled = tree_map_with_path(lambda path, x: 2 * x if len(path) else x, params)
    total = tree.reduce(lambda a, x: a + x.sum(), doubled, 0.0)
    flat, structure = tree.flatten(params)
    same = tree.unflatten(structure, flat)
    turned = tree.transpose(tree.structure([0, 0]), None, [params, params])
    print(count(jnp.array([0, 2, 2])).tolist(), first.tolist(), cell[...].tolist(), named(params))
    print(total, same["dense"][0].shape, len(turned["dense"][0]), tree.all(tree.map(jnp.all, same)))
