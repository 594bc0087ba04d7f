"""``jax.experimental.pallas``: kernels of users' own, which there are not here; Keras imports modules below it."""
