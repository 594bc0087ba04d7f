"""Decompositions and triangular systems under JAX's names: ``pullback.lax.linalg``."""

from pullback.primitives.checked_linalg import cholesky, lu, lu_pivots_to_permutation, triangular_solve
from pullback.primitives.linalg import cholesky_p, triangular_solve_p
from pullback.primitives.lu import lu_p, lu_pivots_to_permutation_p

__all__ = [
    "cholesky", "cholesky_p", "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p",
    "triangular_solve", "triangular_solve_p",
]  # fmt: skip
