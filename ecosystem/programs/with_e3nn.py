"""e3nn-jax: spherical harmonics and tensor products of irreducible representations, checked under a rotation."""

import json

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

HIDDEN = e3nn.Irreps("4x0e + 4x1o + 2e")


def messages(positions):
    edges = e3nn.IrrepsArray("1o", positions[:, None] - positions[None, :])
    harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", edges, normalize=False)
    distances = jnp.sqrt(jnp.sum(edges.array**2, -1) + 1e-6)
    radial = e3nn.bessel(distances, 4, 4.0) * e3nn.poly_envelope(5, 2)(distances / 4.0)[..., None]
    sums = e3nn.sum(e3nn.tensor_product(harmonics, e3nn.IrrepsArray("4x0e", radial)), axis=1)
    return e3nn.concatenate([sums, e3nn.tensor_square(sums[:, :16]).filter(HIDDEN)]).regroup()


def features(positions, weights):
    nodes = messages(positions)
    mixing = e3nn.FunctionalLinear(nodes.irreps, "8x0e + 4x1o")
    split = mixing.split_weights(weights[: mixing.num_weights])
    return e3nn.gate(jax.vmap(mixing, (None, 0))(split, nodes))


@jax.jit
def energy_and_forces(positions, weights):
    def energy(positions):
        nodes = features(positions, weights)
        return jnp.sum(nodes.filter("0e").array), nodes

    return jax.value_and_grad(energy, has_aux=True)(positions)


keys = jax.random.split(jax.random.key(0), 3)
positions = jax.random.normal(keys[0], (4, 3))
weights = jax.random.normal(keys[1], (1000,))
rotation = e3nn.rand_matrix(keys[2])
(energy, nodes), forces = energy_and_forces(positions, weights)
(turned_energy, turned), turned_forces = energy_and_forces(positions @ rotation.T, weights)
figures = {
    "energy": [float(energy), float(turned_energy)],
    "forces": forces[0].tolist(),
    "turned forces": (turned_forces @ rotation)[0].tolist(),
    "equivariant": bool(jnp.allclose(nodes.transform_by_matrix(rotation).array, turned.array, atol=1e-4)),
    "irreps": str(nodes.irreps) == "4x0e+4x1o",
    "features": nodes.array[0].tolist(),
    "harmonics": e3nn.spherical_harmonics("3o", e3nn.IrrepsArray("1o", positions[0]), True).array.tolist(),
    "Clebsch-Gordan": jnp.asarray(e3nn.clebsch_gordan(1, 1, 2))[:, :, 2].ravel().tolist(),
    "Wigner": jnp.asarray(e3nn.Irrep("2e").D_from_angles(0.1, 0.2, 0.3))[0].tolist(),
}
print(json.dumps(figures))
