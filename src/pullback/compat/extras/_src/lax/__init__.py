"""``jax._src.lax``: the modules whose public names are ``jax.lax``."""
