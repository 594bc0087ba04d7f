"""``jax.experimental.pallas.ops.tpu``: kernels of processors that there are not here."""
