"""``jit``: tracing, lowering, compiling and running functions, and the cache of compiled functions."""
