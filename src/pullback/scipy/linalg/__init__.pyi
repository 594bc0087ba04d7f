# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.scipy.linalg.decompositions import eigh as eigh
from pullback.scipy.linalg.decompositions import eigh_tridiagonal as eigh_tridiagonal
from pullback.scipy.linalg.decompositions import hessenberg as hessenberg
from pullback.scipy.linalg.decompositions import polar as polar
from pullback.scipy.linalg.decompositions import qr as qr
from pullback.scipy.linalg.decompositions import qr_multiply as qr_multiply
from pullback.scipy.linalg.decompositions import rsf2csf as rsf2csf
from pullback.scipy.linalg.decompositions import schur as schur
from pullback.scipy.linalg.decompositions import svd as svd
from pullback.scipy.linalg.equations import solve_continuous_lyapunov as solve_continuous_lyapunov
from pullback.scipy.linalg.equations import solve_discrete_lyapunov as solve_discrete_lyapunov
from pullback.scipy.linalg.equations import solve_sylvester as solve_sylvester
from pullback.scipy.linalg.matrix_functions import expm as expm
from pullback.scipy.linalg.matrix_functions import expm_frechet as expm_frechet
from pullback.scipy.linalg.matrix_functions import funm as funm
from pullback.scipy.linalg.matrix_functions import logm as logm
from pullback.scipy.linalg.matrix_functions import signm as signm
from pullback.scipy.linalg.matrix_functions import sqrtm as sqrtm
from pullback.scipy.linalg.special_matrices import block_diag as block_diag
from pullback.scipy.linalg.special_matrices import circulant as circulant
from pullback.scipy.linalg.special_matrices import companion as companion
from pullback.scipy.linalg.special_matrices import convolution_matrix as convolution_matrix
from pullback.scipy.linalg.special_matrices import dft as dft
from pullback.scipy.linalg.special_matrices import fiedler as fiedler
from pullback.scipy.linalg.special_matrices import fiedler_companion as fiedler_companion
from pullback.scipy.linalg.special_matrices import hadamard as hadamard
from pullback.scipy.linalg.special_matrices import hankel as hankel
from pullback.scipy.linalg.special_matrices import helmert as helmert
from pullback.scipy.linalg.special_matrices import hilbert as hilbert
from pullback.scipy.linalg.special_matrices import invhilbert as invhilbert
from pullback.scipy.linalg.special_matrices import invpascal as invpascal
from pullback.scipy.linalg.special_matrices import leslie as leslie
from pullback.scipy.linalg.special_matrices import pascal as pascal
from pullback.scipy.linalg.special_matrices import toeplitz as toeplitz
from pullback.scipy.linalg.systems import cho_factor as cho_factor
from pullback.scipy.linalg.systems import cho_solve as cho_solve
from pullback.scipy.linalg.systems import cholesky as cholesky
from pullback.scipy.linalg.systems import det as det
from pullback.scipy.linalg.systems import inv as inv
from pullback.scipy.linalg.systems import lu as lu
from pullback.scipy.linalg.systems import lu_factor as lu_factor
from pullback.scipy.linalg.systems import lu_solve as lu_solve
from pullback.scipy.linalg.systems import solve as solve
from pullback.scipy.linalg.systems import solve_triangular as solve_triangular

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det",
    "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard",
    "hankel", "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "logm", "lu",
    "lu_factor", "lu_solve", "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "signm", "solve",
    "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester", "solve_triangular", "sqrtm", "svd",
    "toeplitz",
]
