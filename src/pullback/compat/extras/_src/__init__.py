"""``jax._src``: the private modules of JAX that libraries reach into, one for each; each name says who needs it."""
