"""Decompositions and triangular systems under JAX's names: ``pullback.lax.linalg``."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        ".decompositions": (
            "EigImplementation EighImplementation SvdAlgorithm cholesky cholesky_update eig eigh hessenberg "
            "householder_product lu lu_pivots_to_permutation ormqr qdwh qr schur svd symmetric_product "
            "triangular_solve tridiagonal tridiagonal_solve"
        ),
        "pullback.primitives.linalg.eigen": "eig_p eigh_p",
        "pullback.primitives.linalg.householder": "householder_product_p ormqr_p",
        "pullback.primitives.linalg.lapack": "cholesky_p triangular_solve_p",
        "pullback.primitives.linalg.lu": "lu_p lu_pivots_to_permutation_p",
        "pullback.primitives.linalg.qr": "qr_p",
        "pullback.primitives.linalg.schur": "hessenberg_p schur_p tridiagonal_p",
        "pullback.primitives.linalg.svd": "svd_p",
        "pullback.primitives.linalg.tridiagonal": "cholesky_update_p tridiagonal_solve_p",
    },
)
