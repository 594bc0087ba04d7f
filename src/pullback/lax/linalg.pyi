# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.lax.decompositions import EigImplementation as EigImplementation
from pullback.lax.decompositions import EighImplementation as EighImplementation
from pullback.lax.decompositions import SvdAlgorithm as SvdAlgorithm
from pullback.lax.decompositions import cholesky as cholesky
from pullback.lax.decompositions import cholesky_update as cholesky_update
from pullback.lax.decompositions import eig as eig
from pullback.lax.decompositions import eigh as eigh
from pullback.lax.decompositions import hessenberg as hessenberg
from pullback.lax.decompositions import householder_product as householder_product
from pullback.lax.decompositions import lu as lu
from pullback.lax.decompositions import lu_pivots_to_permutation as lu_pivots_to_permutation
from pullback.lax.decompositions import ormqr as ormqr
from pullback.lax.decompositions import qdwh as qdwh
from pullback.lax.decompositions import qr as qr
from pullback.lax.decompositions import schur as schur
from pullback.lax.decompositions import svd as svd
from pullback.lax.decompositions import symmetric_product as symmetric_product
from pullback.lax.decompositions import triangular_solve as triangular_solve
from pullback.lax.decompositions import tridiagonal as tridiagonal
from pullback.lax.decompositions import tridiagonal_solve as tridiagonal_solve
from pullback.primitives.linalg.eigen import eig_p as eig_p
from pullback.primitives.linalg.eigen import eigh_p as eigh_p
from pullback.primitives.linalg.householder import householder_product_p as householder_product_p
from pullback.primitives.linalg.householder import ormqr_p as ormqr_p
from pullback.primitives.linalg.lapack import cholesky_p as cholesky_p
from pullback.primitives.linalg.lapack import triangular_solve_p as triangular_solve_p
from pullback.primitives.linalg.lu import lu_p as lu_p
from pullback.primitives.linalg.lu import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from pullback.primitives.linalg.qr import qr_p as qr_p
from pullback.primitives.linalg.schur import hessenberg_p as hessenberg_p
from pullback.primitives.linalg.schur import schur_p as schur_p
from pullback.primitives.linalg.schur import tridiagonal_p as tridiagonal_p
from pullback.primitives.linalg.svd import svd_p as svd_p
from pullback.primitives.linalg.tridiagonal import cholesky_update_p as cholesky_update_p
from pullback.primitives.linalg.tridiagonal import tridiagonal_solve_p as tridiagonal_solve_p

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
    "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "householder_product",
    "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr",
    "ormqr_p", "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "triangular_solve",
    "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve", "tridiagonal_solve_p",
]
