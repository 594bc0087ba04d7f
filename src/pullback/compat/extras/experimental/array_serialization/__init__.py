"""``jax.experimental.array_serialization``: arrays in files. Orbax and Flax's older checkpoints import it."""
