"""``jax._src.export``: what ``jax.export`` is made of."""
