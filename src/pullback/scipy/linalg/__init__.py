"""SciPy's linear algebra on Pullback's arrays: ``pullback.scipy.linalg``.

Matrices are the last two axes of an array; the axes in front of them broadcast. Arrays are immutable, and are not
searched for infinities and NaN: ``overwrite_a``, ``overwrite_b`` and ``check_finite`` have no effect.
"""

from pullback.core.faces import face
from pullback.scipy.linalg.decompositions import (
    eigh,
    eigh_tridiagonal,
    hessenberg,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from pullback.scipy.linalg.equations import solve_continuous_lyapunov, solve_discrete_lyapunov, solve_sylvester
from pullback.scipy.linalg.matrix_functions import expm, expm_frechet, funm, logm, signm, sqrtm
from pullback.scipy.linalg.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from pullback.scipy.linalg.systems import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    inv,
    lu,
    lu_factor,
    lu_solve,
    solve,
    solve_triangular,
)  # fmt: skip

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det", "dft",
    "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard", "hankel",
    "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "logm", "lu", "lu_factor",
    "lu_solve", "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "signm", "solve",
    "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester", "solve_triangular", "sqrtm", "svd",
    "toeplitz",
]  # fmt: skip
face(globals())
