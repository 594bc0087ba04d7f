"""``jax.interpreters.pxla``: Orbax imports it, for a runtime of Google's (Pathways); there is nothing in it here."""
