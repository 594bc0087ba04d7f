"""``jax.interpreters.pxla``: Orbax imports it, for a runtime of Google's (Pathways); an empty module here."""
