"""A class with arrays, registered as a tree, with methods that are compiled."""

from __future__ import annotations

from functools import partial
from typing import Any

import pullback
import pullback.numpy as jnp
from pullback import Array, tree_util


@tree_util.register_pytree_node_class
class Filter:
    """A Kalman filter of one variable."""

    def __init__(self, mean: Array, variance: Array, noise: float = 0.1) -> None:
        self.mean = mean
        self.variance = variance
        self.noise = noise

    @pullback.jit
    def update(self, seen: Array) -> Filter:
        gain = self.variance / (self.variance + self.noise)
        return Filter(self.mean + gain * (seen - self.mean), (1 - gain) * self.variance, self.noise)

    @partial(pullback.jit, static_argnames="steps")
    def repeated(self, seen: Array, steps: int) -> Filter:
        found = self
        for _ in range(steps):
            found = found.update(seen)
        return found

    def tree_flatten(self) -> tuple[tuple[Array, Array], float]:
        return (self.mean, self.variance), self.noise

    @classmethod
    def tree_unflatten(cls, noise: float, children: Any) -> Filter:
        mean, variance = children
        return cls(mean, variance, noise)


def mistaken(filter: Filter) -> float:
    return filter.mean  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    first = Filter(jnp.zeros(()), jnp.ones(()))
    last = first.repeated(jnp.asarray(1.0), steps=5)
    assert last.variance < first.variance
    print(f"{last.mean:.2f}", len(pullback.tree.leaves(last)))
