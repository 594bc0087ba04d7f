"""The transformations that users call: derivatives, ``vmap``, and tracing."""
