"""``jax.experimental.pallas.ops``: nothing in it here; see above."""
