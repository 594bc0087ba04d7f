"""``jax._src.numpy``: the package of its modules."""
