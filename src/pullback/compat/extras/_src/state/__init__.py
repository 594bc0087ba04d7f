"""``jax._src.state``: the types of mutable references."""
