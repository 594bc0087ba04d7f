"""``jax.extend``: what ``pullback.extend`` does not have."""
