"""``jax.experimental.pallas.triton``: JAX MD imports it, for GPU kernels; an empty module here."""
