"""``jax.experimental.pallas``: custom kernels, not supported here; Keras imports its submodules."""
