"""Parts of the mixed load that run on eight devices: shardings, collectives, ``shard_map`` and ``pmap``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, grad, lax, pmap, shard_map, tree
from pullback.sharding import AxisType
from tests.soak import load as common

if TYPE_CHECKING:
    from tests.soak.load import Load, Part

SPECS = (P(), P("x"), P("y"), P("x", "y"), P(("x", "y")), P(None, "y"), P("y", "x"))
SHAPES = ((8, 8), (16, 8), (8, 24), (32, 16))


@cache
def grid() -> Any:
    return pullback.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)


@cache
def line() -> Any:
    return pullback.make_mesh((8,), ("x",), (AxisType.Auto,))


def put(x: Any, spec: P) -> Any:
    return pullback.device_put(x, NamedSharding(grid(), spec))


def sharded_training(load: Load, rng: Random) -> None:
    """Train a network whose batch is divided; the compiler adds the collectives."""
    width = rng.choice(common.WIDTHS)
    step = load.kept("adam", lambda: common.adam)
    state = load.models.pop(width, None) or put(common.initial(rng, width), P())
    for _ in range(3):
        x = common.numbers(rng, (rng.choice((8, 16, 32)), 2))
        y = np.sin(3 * x[:, :1]) * x[:, 1:]
        state, value = step(state, put(x, P("x")), put(y, P("x")))
        common.check(value)
    load.models[width] = state


def _averaged(parameters: Any, x: Any, y: Any) -> Any:
    value, g = pullback.value_and_grad(lambda p: lax.pmean(common.loss(p, x, y), "x"))(parameters)
    return tree.map(lambda p, g: p - 0.01 * g, parameters, g), value


def mapped_training(load: Load, rng: Random) -> None:
    """Train a network by ``shard_map``, with the collectives written out."""
    step = load.kept(
        "averaged", lambda: shard_map(_averaged, mesh=line(), in_specs=(P(), P("x"), P("x")), out_specs=P())
    )
    parameters = common.initial(rng, rng.choice(common.WIDTHS))[0]
    for _ in range(3):
        x = common.numbers(rng, (16, 2))
        parameters, value = step(parameters, x, x[:, :1])
        common.check(value)


def _ring(x: Any) -> Any:
    turn = [(i, (i + 1) % 8) for i in range(8)]
    return lax.fori_loop(0, 8, lambda i, s: (s[0] + s[1] * i, lax.ppermute(s[1], "x", turn)), (x * 0, x))[0]


COLLECTIVES: dict[str, tuple[Callable[[Any], Any], P]] = {
    "psum": (lambda x: lax.psum(x, "x"), P()),
    "pmax": (lambda x: lax.pmax(jnp.sin(x), "x"), P()),
    "all_gather": (lambda x: lax.all_gather(x, "x", tiled=True).sum(1) * lax.axis_index("x"), P("x")),
    "psum_scatter": (lambda x: lax.psum_scatter(x.T, "x", tiled=True), P("x")),
    "all_to_all": (lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x")),
    "ppermute": (lambda x: lax.ppermute(x, "x", [(i, 7 - i) for i in range(8)]), P("x")),
    "ring": (_ring, P("x")),
    "grad": (grad(lambda x: jnp.sum(lax.psum(jnp.sin(x), "x") ** 2)), P("x")),
}


def collectives(load: Load, rng: Random) -> None:
    """Run a collective, compiled or not."""
    name = rng.choice(list(COLLECTIVES))
    fun, out = COLLECTIVES[name]
    mapped = load.kept(name, lambda: shard_map(fun, mesh=line(), in_specs=P("x"), out_specs=out))
    common.check(mapped(common.numbers(rng, rng.choice(SHAPES))))


def resharding(load: Load, rng: Random) -> None:
    """Move an array from one sharding to another, and to the host."""
    x = put(common.numbers(rng, rng.choice(SHAPES)), rng.choice(SPECS))
    y = put(x, rng.choice(SPECS))
    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    for shard in y.addressable_shards:
        common.check(shard.data)
    common.check(pullback.device_put(y, pullback.devices()[rng.randrange(8)]))


def eager(load: Load, rng: Random) -> None:
    """Compute with sharded arrays, operation by operation."""
    x = put(common.numbers(rng, rng.choice(SHAPES)), rng.choice(SPECS))
    common.check(jnp.sin(x) * x + x.sum())
    common.check(grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))(x))
    common.check(jnp.sum(x @ x.T, axis=0))


def constrained(load: Load, rng: Random) -> None:
    """Compile a function of sharded arrays with constraints on what is within."""

    def product(x: Any) -> Any:
        y = lax.with_sharding_constraint(x @ x.T, NamedSharding(grid(), P("x", "y")))
        return jnp.sum(y * y, axis=0)

    run = load.kept("product", lambda: product)
    common.check(run(put(common.numbers(rng, rng.choice(SHAPES)), rng.choice(SPECS))))


def parallel(load: Load, rng: Random) -> None:
    """Run a function by ``pmap``."""
    run = load._functions.setdefault("pmap", pmap(lambda x: x - lax.pmean(jnp.sin(x), "i"), axis_name="i"))
    common.check(run(common.numbers(rng, (8, rng.choice((2, 5))))))


def new_programs(load: Load, rng: Random) -> None:
    """Compile new functions over the mesh, whose programs are sometimes known and sometimes new."""
    scale = rng.random() if rng.random() < 0.2 else rng.randrange(5) / 5
    fresh = load.jit(shard_map(lambda x: lax.psum(scale * x, "x"), mesh=line(), in_specs=P("x"), out_specs=P()))
    common.check(fresh(common.numbers(rng, (8, 3))))


MISTAKES: tuple[Callable[[], Any], ...] = (
    lambda: put(np.ones((3, 3), "float32"), P("x")),
    lambda: shard_map(lambda x: x, mesh=line(), in_specs=P("x"), out_specs=P("x"))(np.ones(9, "float32")),
    lambda: shard_map(lambda x: lax.psum(x, "z"), mesh=line(), in_specs=P("x"), out_specs=P())(np.ones(8, "float32")),
    lambda: pullback.jit(lambda x, y: x + y)(
        pullback.device_put(1.0, pullback.devices()[0]), pullback.device_put(1.0, pullback.devices()[1])
    ),
)


def wrong(load: Load, rng: Random) -> None:
    """Raise an error, and catch it."""
    mistake = rng.choice(MISTAKES)
    try:
        mistake()
    except Exception:
        return
    raise AssertionError("no error")


PARTS: dict[str, Part] = {
    part.__name__: part
    for part in (
        sharded_training, mapped_training, collectives, resharding, eager, constrained, parallel, new_programs, wrong,
    )
}  # fmt: skip
