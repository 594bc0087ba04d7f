"""``jax.experimental.pallas.ops.tpu``: kernels for TPUs, not supported here."""
