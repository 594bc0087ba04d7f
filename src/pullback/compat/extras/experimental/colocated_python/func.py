"""``jax.experimental.colocated_python.func``: Orbax imports it, and patches it for a runtime of Google's (Pathways)."""
