"""``jax._src.nn``: the modules of ``jax.nn``."""
