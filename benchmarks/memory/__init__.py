"""Budgets of memory, measured: temporaries in the compiler's count, and times, beside those of JAX's policies."""
