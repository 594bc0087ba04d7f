"""``jax._src.numpy``: the way to its modules."""
