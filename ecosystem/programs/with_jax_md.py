"""JAX-MD: soft spheres at constant energy, which is kept; neighbour lists, a thermostat, and minimisation."""

import json

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from jax_md import energy, minimize, partition, quantity, simulate, space  # noqa: E402

keys = jax.random.split(jax.random.key(0), 3)
size, number = 4.0, 20
displacement, shift = space.periodic(size)
start = jax.random.uniform(keys[0], (number, 2), maxval=size)
soft = jax.jit(energy.soft_sphere_pair(displacement))

descend, step = minimize.fire_descent(soft, shift)
relaxed = jax.lax.fori_loop(0, 100, lambda _, state: step(state), descend(start)).position

begin, advance = simulate.nve(soft, shift, dt=0.01)
state = begin(keys[1], relaxed, kT=0.1)


def total(state):
    return soft(state.position) + quantity.kinetic_energy(momentum=state.momentum, mass=state.mass)


@jax.jit
def run(state):
    return jax.lax.scan(lambda state, _: (advance(state), total(state)), state, None, length=200)


final, energies = run(state)
assert jnp.ptp(energies) < 1e-3 * jnp.abs(energies[0])

neighbors, energy_of = energy.lennard_jones_neighbor_list(displacement, size, r_cutoff=1.5, dr_threshold=0.2)
listed = neighbors.allocate(relaxed)
listed = jax.jit(neighbors.update)(final.position, listed)
warm, steer = simulate.nvt_nose_hoover(soft, shift, dt=0.01, kT=0.2)
heated = jax.jit(lambda state: jax.lax.fori_loop(0, 50, lambda _, state: steer(state), state))(
    warm(keys[2], relaxed, kT=0.1)
)
figures = {
    "relaxed": float(soft(relaxed)),
    "energies": energies[::50].tolist(),
    "positions": final.position[:3].tolist(),
    "neighbours": int(partition.neighbor_list_mask(listed).sum()),
    "Lennard-Jones": float(jax.jit(energy_of)(final.position, neighbor=listed)),
    "heated": float(quantity.temperature(momentum=heated.momentum, mass=heated.mass)),
}
print(json.dumps(figures))
