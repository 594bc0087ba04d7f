"""``jax.interpreters``: the names that ``pullback.interpreters`` lacks."""
