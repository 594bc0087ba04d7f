"""``jax._src.image``: the module of ``jax.image``."""
