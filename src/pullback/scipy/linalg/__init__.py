"""SciPy's linear algebra on Pullback's arrays: ``pullback.scipy.linalg``.

Matrices are the last two axes of an array; the axes in front of them broadcast. Arrays are immutable, and are not
searched for infinities and NaN: ``overwrite_a``, ``overwrite_b`` and ``check_finite`` have no effect.
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        ".decompositions": "eigh eigh_tridiagonal hessenberg polar qr qr_multiply rsf2csf schur svd",
        ".equations": "solve_continuous_lyapunov solve_discrete_lyapunov solve_sylvester",
        ".matrix_functions": "expm expm_frechet funm logm signm sqrtm",
        ".special_matrices": (
            "block_diag circulant companion convolution_matrix dft fiedler fiedler_companion hadamard hankel helmert "
            "hilbert invhilbert invpascal leslie pascal toeplitz"
        ),
        ".systems": "cho_factor cho_solve cholesky det inv lu lu_factor lu_solve solve solve_triangular",
    },
)
