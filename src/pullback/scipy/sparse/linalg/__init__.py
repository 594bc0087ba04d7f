"""Linear equations solved by iteration, with implicit derivatives: ``pullback.scipy.sparse.linalg``.

A matrix is an array, a sparse array such as ``experimental.sparse.BCOO``, or a function that multiplies by it; vectors
are arrays or trees of arrays. The derivative of a solution solves a linear equation with the same matrix, in both
modes, by the same method, also with respect to arrays that a function closes over.
"""

from pullback.core.faces import face
from pullback.scipy.sparse.linalg.cholesky import LDL, Cholesky, cholesky, ldl
from pullback.scipy.sparse.linalg.direct import Slogdet, SuperLU, factorized, slogdet, splu, spsolve
from pullback.scipy.sparse.linalg.entries import Entries
from pullback.scipy.sparse.linalg.exponential import expm_multiply
from pullback.scipy.sparse.linalg.general import bicgstab, gmres
from pullback.scipy.sparse.linalg.hermitian import cg, minres
from pullback.scipy.sparse.linalg.least_squares import LsmrResult, LsqrResult, lsmr, lsqr
from pullback.scipy.sparse.linalg.preconditioners import ichol, jacobi, spilu
from pullback.scipy.sparse.linalg.spectra import SvdsResult, eigsh, svds

__all__ = [
    "LDL", "Cholesky", "Entries", "LsmrResult", "LsqrResult", "Slogdet", "SuperLU", "SvdsResult", "bicgstab", "cg",
    "cholesky", "eigsh", "expm_multiply", "factorized", "gmres", "ichol", "jacobi", "ldl", "lsmr", "lsqr", "minres",
    "slogdet", "spilu", "splu", "spsolve", "svds",
]  # fmt: skip
face(globals())
