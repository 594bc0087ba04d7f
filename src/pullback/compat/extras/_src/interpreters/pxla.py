"""``jax._src.interpreters.pxla``: Flax (fp8) imports it, to make results of dtypes that there are not here."""
