"""``jax.experimental.pallas.ops``: an empty package; see ``pallas``."""
