"""Collectives over the devices of a mesh, and over axes that vmap names."""

from functools import partial

import pullback
import pullback.numpy as jnp
from pullback import Array, lax
from pullback.sharding import Mesh, NamedSharding
from pullback.sharding import PartitionSpec as P


def normalised(mesh: Mesh, x: Array) -> Array:
    @pullback.shard_map(mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    def by_parts(part: Array) -> Array:
        total = lax.psum(part.sum(), "data")
        largest = lax.pmax(part.max(), axis_name="data")
        return part / total + 0 * largest

    return by_parts(x)


def gradient(mesh: Mesh, weight: Array, x: Array) -> dict[str, Array]:
    def local(w: Array, part: Array) -> dict[str, Array]:
        own = {"w": (part @ w)[None].mean()}
        return lax.pmean(own, ("data",))

    return pullback.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=P())(weight, x)


@partial(pullback.vmap, axis_name="i")
def centred(x: Array) -> Array:
    shifted = lax.ppermute(x, "i", [(0, 1), (1, 0)])
    everyone = lax.all_gather(x, "i")
    return x - lax.pmean(x, "i") + 0 * (shifted + everyone.sum() + lax.axis_index("i"))


def mistaken(mesh: Mesh, x: Array) -> str:
    return normalised(mesh, x)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    mesh = pullback.make_mesh((1,), ("data",))
    placed = pullback.device_put(jnp.arange(1.0, 5.0), NamedSharding(mesh, P("data")))
    shares = normalised(mesh, placed)
    assert abs(shares.sum() - 1) < 1e-6
    with pullback.set_mesh(mesh):
        doubled = pullback.jit(lambda v: lax.with_sharding_constraint(2 * v, P("data")))(placed)
    print(doubled.shape, gradient(mesh, jnp.ones(2), jnp.ones((4, 2)))["w"], centred(jnp.array([1.0, 3.0])).tolist())
    zeros = jnp.zeros(4, device=pullback.devices()[0])
    print(zeros.sharding.device_set == {zeros.device}, lax.broadcast(zeros, (2,)).shape)
