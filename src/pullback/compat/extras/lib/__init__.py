"""``jax.lib``: without names, as in JAX; old releases of libraries import it."""
