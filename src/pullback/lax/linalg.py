"""Decompositions and triangular systems under JAX's names: ``pullback.lax.linalg``."""

from pullback.primitives.checked_linalg import cholesky, triangular_solve
from pullback.primitives.linalg import cholesky_p, triangular_solve_p

__all__ = ["cholesky", "cholesky_p", "triangular_solve", "triangular_solve_p"]
