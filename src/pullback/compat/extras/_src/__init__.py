"""``jax._src``: the private modules of JAX that libraries import, each name with the library that needs it."""
