"""Chex: assertions about shapes, values and traces, `chexify`, and dataclasses that are trees."""

import functools
import json

import chex
import jax
import jax.numpy as jnp


@chex.dataclass(frozen=True)
class Particle:
    position: chex.Array
    velocity: chex.Array
    mass: float = 1.0


@jax.jit
@chex.assert_max_traces(n=1)
def move(particle, dt):
    chex.assert_equal_shape([particle.position, particle.velocity])
    chex.assert_rank(particle.position, 1)
    force = -particle.position / particle.mass
    return particle.replace(
        position=particle.position + dt * particle.velocity, velocity=particle.velocity + dt * force
    )


@chex.chexify
@jax.jit
def root(x):
    chex.assert_trees_all_close(x, jnp.abs(x))
    y = jnp.sqrt(x)
    chex.assert_tree_all_finite(y)
    return y


def refused(function, *args):
    try:
        function(*args)
        root.wait_checks()
    except (AssertionError, ValueError):
        return 1
    return 0


particle = Particle(position=jnp.array([1.0, 0.0]), velocity=jnp.array([0.0, 1.0]))
for _ in range(20):
    particle = move(particle, 0.1)
chex.assert_tree_all_finite(particle)
chex.assert_trees_all_equal_structs(particle, jax.tree.map(jnp.zeros_like, particle))
energy = jax.grad(lambda p: 0.5 * jnp.sum(p.velocity**2) + 0.5 * jnp.sum(p.position**2))(particle)

root(jnp.float32(4.0))
root.wait_checks()
figures = {
    "position": particle.position.tolist(),
    "gradient": energy.velocity.tolist(),
    "leaves": len(jax.tree.leaves(particle)),
    "root": float(root(jnp.float32(2.0))),
    "refused": [
        refused(root, jnp.float32(-1.0)),
        refused(root, jnp.float32(jnp.nan)),
        refused(functools.partial(chex.assert_shape, expected_shapes=(2, None)), jnp.ones((3, 2))),
        refused(chex.assert_trees_all_close, {"a": jnp.ones(2)}, {"a": jnp.ones(2) + 1e-3}),
        refused(chex.assert_scalar_non_negative, -1.0),
        refused(chex.assert_shape, jnp.ones((2, 3)), (2, None)),
    ],
}
print(json.dumps(figures))
