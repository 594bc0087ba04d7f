"""``jax._src.lib``: what JAX takes from ``jaxlib``."""
