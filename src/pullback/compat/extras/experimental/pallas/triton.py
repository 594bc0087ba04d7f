"""``jax.experimental.pallas.triton``: JAX MD imports it, for kernels on GPUs; there is nothing in it here."""
