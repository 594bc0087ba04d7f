"""Sparse arrays: ``BCOO`` and ``BCSR``, with batch, sparse and dense axes, as values of all transformations.

``docs/sparse.md`` says how they are stored, and what computes with them.
"""

from pullback.core.faces import face as _face
from pullback.experimental.sparse import methods as _methods
from pullback.experimental.sparse.sparsify import sparsify as sparsify  # which is the name of the module too

_face(
    globals(),
    {
        "pullback.core.errors": "SparseEfficiencyError SparseEfficiencyWarning",
        ".compressed": (
            "bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_sum_duplicates "
            "bcsr_todense coo_fromdense coo_matmat coo_matvec coo_todense csr_fromdense csr_matmat csr_matvec "
            "csr_todense"
        ),
        ".creation": "empty eye random_bcoo",
        ".derivatives": "grad jacfwd jacobian jacrev value_and_grad",
        ".formats": "BCOO BCSR COO CSC CSR JAXSparse",
        ".layouts": "bcoo_fromdense bcoo_sort_indices bcoo_sum_duplicates bcoo_todense bcoo_update_layout",
        ".products": "bcoo_dot_general bcoo_dot_general_sampled bcoo_extract bcoo_multiply_dense bcoo_multiply_sparse",
        ".sparsify": "todense",
        ".structure": (
            "bcoo_broadcast_in_dim bcoo_concatenate bcoo_dynamic_slice bcoo_gather bcoo_reduce_sum bcoo_reshape "
            "bcoo_rev bcoo_slice bcoo_squeeze bcoo_transpose"
        ),
    },
    modules="linalg",
)
