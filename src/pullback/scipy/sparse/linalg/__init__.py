"""Linear equations solved by iteration, with derivatives that do not look into it: ``pullback.scipy.sparse.linalg``.

A matrix is an array, a sparse array such as ``experimental.sparse.BCOO``, or a function that multiplies by it; vectors
are arrays or trees of arrays. The derivative of a solution solves a linear equation with the same matrix, in both
modes, by the same method; what a function closes over is differentiated with respect to.
"""

from pullback.core.faces import face
from pullback.scipy.sparse.linalg.general import bicgstab, gmres
from pullback.scipy.sparse.linalg.hermitian import cg, minres
from pullback.scipy.sparse.linalg.least_squares import LsqrResult, lsqr

__all__ = ["LsqrResult", "bicgstab", "cg", "gmres", "lsqr", "minres"]
face(globals())
