"""Random programs with collectives, each with what NumPy computes on the stacked values of all indices.

A value of one index of the axis ``i`` has the shape (indices, 2), so that every collective takes it. Programs are
smooth almost everywhere, and take values of moderate size to values of moderate size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import checkpoint, jit, lax, tree

Draw = Callable[[Any], Any]
Stacked = np.ndarray[Any, Any]


@dataclass
class Step:
    """One operation: for the values of one index, and for the stacked values of all."""

    name: str
    each: Callable[..., Any]
    stacked: Callable[..., Stacked]
    operands: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{self.name}{self.operands}"


@dataclass
class Program:
    """A function of one index's value, which returns one; and what it is of all indices in NumPy."""

    size: int
    steps: list[Step]
    seed: int

    def __call__(self, x: Any) -> Any:
        return self._run(x, "each")

    def by_numpy(self, x: Stacked) -> Stacked:
        return self._run(x, "stacked")  # type: ignore[no-any-return]

    def _run(self, x: Any, way: str) -> Any:
        values = [x]
        for step in self.steps:
            values.append(getattr(step, way)(*[values[i] for i in step.operands]))
        return values[-1] + 0.5 * values[len(values) // 2]

    def point(self, seed: int = 0) -> Stacked:
        """Values of all indices."""
        return np.random.default_rng([self.seed, seed]).uniform(-1, 1, (self.size, self.size, 2))

    def __repr__(self) -> str:
        return f"Program({self.size} indices, {self.steps})"


def _to_all(reduce: Callable[[Stacked], Stacked]) -> Callable[[Stacked], Stacked]:
    return lambda x: np.broadcast_to(reduce(x), x.shape)


def _in_groups(x: Stacked, groups: list[list[int]]) -> Stacked:
    out = np.empty_like(x)
    for group in groups:
        out[group] = x[group].sum(0)
    return out


def permuted(x: Stacked, pairs: list[tuple[int, int]]) -> Stacked:
    out = np.zeros_like(x)
    for source, target in pairs:
        out[target] = x[source]
    return out


def _averaging(x: Any) -> Any:
    """Two steps of a loop in which the indices draw near to each other."""
    return lax.scan(lambda c, _: (jnp.sin(lax.pmean(c, "i")) + 0.5 * c, None), x, None, length=2)[0]


def _averaged(x: Stacked) -> Stacked:
    for _ in range(2):
        x = np.sin(x.mean(0)) + 0.5 * x
    return x


def _other_ways(x: Any) -> Any:
    return lax.cond(lax.axis_index("i") % 2 == 0, jnp.sin, lambda x: x * x, x)


def _went(x: Stacked) -> Stacked:
    even = (np.arange(len(x)) % 2 == 0)[:, None, None]
    return np.where(even, np.sin(x), x * x)


def _unary(n: int) -> dict[str, tuple[Callable[..., Any], Callable[..., Stacked]]]:
    """The operations of one value that take nothing drawn, for an axis of ``n`` indices."""
    weights = np.cos(np.arange(n, dtype=float))
    index = np.arange(n)[:, None, None] / n

    def spread(x: Any) -> Any:
        return x * weights[:, None]

    return {
        "sin": (jnp.sin, np.sin),
        "half square": (lambda x: 0.5 * x * x, lambda x: 0.5 * x * x),
        "reversed": (lambda x: x[::-1], lambda x: x[:, ::-1]),
        "psum": (lambda x: lax.psum(x, "i") / n, _to_all(lambda x: x.sum(0) / n)),
        "pmean of a product": (lambda x: lax.pmean(x * x, "i") * x, lambda x: (x * x).mean(0) * x),
        "pmax": (lambda x: lax.pmax(x, "i"), _to_all(lambda x: x.max(0))),
        "pmin": (lambda x: lax.pmin(x, "i") * x, lambda x: x.min(0) * x),
        "all_gather": (
            lambda x: jnp.tensordot(weights, lax.all_gather(x, "i"), 1) / n,
            _to_all(lambda x: np.tensordot(weights, x, 1) / n),
        ),
        "all_gather tiled": (
            lambda x: lax.all_gather(x[:1], "i", tiled=True),
            _to_all(lambda x: x[:, 0]),
        ),
        "psum_scatter": (
            lambda x: spread(lax.psum_scatter(x, "i") / n),
            lambda x: x.sum(0)[:, None] / n * weights[:, None],
        ),
        "psum_scatter tiled": (
            lambda x: spread(lax.psum_scatter(x, "i", scatter_dimension=0, tiled=True)) / n,
            lambda x: x.sum(0)[:, None] / n * weights[:, None],
        ),
        "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: np.swapaxes(x, 0, 1)),
        "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0) * x, lambda x: np.swapaxes(x, 0, 1) * x),
        "axis_index": (lambda x: x * (lax.axis_index("i") / n), lambda x: x * index),
        "in scan": (_averaging, _averaged),
        "in cond": (_other_ways, _went),
        "in checkpoint": (
            checkpoint(lambda x: jnp.sin(lax.pmean(jnp.sin(x), "i") * x)),
            lambda x: np.sin(np.sin(x).mean(0) * x),
        ),
        "in jit": (jit(lambda x: lax.pmean(x, "i") - x), lambda x: x.mean(0) - x),
    }


BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Stacked]]] = {
    "add": (lambda x, y: 0.5 * (x + y), lambda x, y: 0.5 * (x + y)),
    "mul": (lambda x, y: x * y, lambda x, y: x * y),
    "psum of a product": (lambda x, y: lax.pmean(x * y, "i"), lambda x, y: np.broadcast_to((x * y).mean(0), x.shape)),
}


def _drawn(draw: Draw, n: int) -> tuple[str, Callable[..., Any], Callable[..., Stacked]]:
    """A collective with parameters of its own."""
    kind = draw(st.sampled_from(["ppermute", "pshuffle", "pbroadcast", "groups"]))
    order = draw(st.permutations(range(n)))
    if kind == "ppermute":
        pairs = list(zip(order, draw(st.permutations(range(n))), strict=True))[: draw(st.integers(1, n))]
        return f"ppermute{pairs}", lambda x: lax.ppermute(x, "i", pairs), lambda x: permuted(x, pairs)
    if kind == "pshuffle":
        return f"pshuffle{order}", lambda x: lax.pshuffle(x, "i", order), lambda x: x[list(order)]
    if kind == "pbroadcast":
        source = order[0]
        return f"pbroadcast{source}", lambda x: lax.pbroadcast(x, "i", source), _to_all(lambda x: x[source])
    groups = [list(order[: n // 2]), list(order[n // 2 :])]
    return (
        f"psum{groups}",
        lambda x: lax.psum(x, "i", axis_index_groups=groups) / n,
        lambda x: _in_groups(x, groups) / n,
    )


@st.composite
def programs(draw: Draw, size: int = 4, max_steps: int = 6) -> Program:
    """Random programs over an axis of ``size`` indices (run them with 64-bit types enabled)."""
    unary = _unary(size)
    steps: list[Step] = []
    for count in range(1, draw(st.integers(2, max_steps)) + 1):
        kind = draw(st.integers(0, 5))
        if kind == 0:
            name = draw(st.sampled_from(sorted(BINARY)))
            (each, stacked), arity = BINARY[name], 2
        elif kind == 1:
            (name, each, stacked), arity = _drawn(draw, size), 1
        else:
            name = draw(st.sampled_from(sorted(unary)))
            (each, stacked), arity = unary[name], 1
        operands = tuple(draw(st.integers(max(0, count - 3), count - 1)) for _ in range(arity))
        steps.append(Step(name, each, stacked, operands))
    return Program(size, steps, draw(st.integers(0, 2**16)))


def near(got: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Assert that leaves have equal shapes, and elements within a part of the largest one, or of one."""
    for a, b in zip(tree.leaves(got), tree.leaves(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max(initial=0)))
