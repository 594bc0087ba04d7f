"""``jax.extend``: the names that ``pullback.extend`` lacks."""
