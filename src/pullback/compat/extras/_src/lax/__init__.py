"""``jax._src.lax``: the private modules of ``jax.lax``."""
