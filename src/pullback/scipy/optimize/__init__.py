"""Minima, roots and least squares, differentiated implicitly: ``pullback.scipy.optimize``.

Every function runs eagerly, under ``jit`` and under ``vmap``. Solutions are differentiated by the implicit function
theorem, in both modes and to any order, with respect to ``args`` and to arrays that the user's function closes over.
The iterations are not differentiated, and the starting point has no derivative. A derivative is correct only where
``success`` is true.
"""

from pullback.core.faces import face
from pullback.scipy.optimize.constraints import Bounds, LinearConstraint, NonlinearConstraint
from pullback.scipy.optimize.fixed_points import fixed_point
from pullback.scipy.optimize.least_squares import LeastSquaresResult, least_squares
from pullback.scipy.optimize.linear_programs import (
    LinprogResult,
    Marginals,
    MilpResult,
    linear_sum_assignment,
    linprog,
    milp,
)
from pullback.scipy.optimize.minimize import minimize
from pullback.scipy.optimize.problems import OptimizeResults
from pullback.scipy.optimize.quadratic_programs import QuadraticResult, solve_qp
from pullback.scipy.optimize.root import root
from pullback.scipy.optimize.scalar_minima import ScalarResult, minimize_scalar
from pullback.scipy.optimize.scalar_roots import RootResults, brentq, root_scalar

__all__ = [
    "Bounds", "LeastSquaresResult", "LinearConstraint", "LinprogResult", "Marginals", "MilpResult",
    "NonlinearConstraint", "OptimizeResults", "QuadraticResult", "RootResults", "ScalarResult", "brentq", "fixed_point",
    "least_squares", "linear_sum_assignment", "linprog", "milp", "minimize", "minimize_scalar", "root", "root_scalar",
    "solve_qp",
]  # fmt: skip
face(globals())
