"""``jax._src.interpreters``: the modules of ``jax.interpreters``."""
