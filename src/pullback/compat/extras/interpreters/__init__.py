"""``jax.interpreters``: what ``pullback.interpreters`` does not have."""
