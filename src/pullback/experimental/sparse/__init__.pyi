# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.core.errors import SparseEfficiencyError as SparseEfficiencyError
from pullback.core.errors import SparseEfficiencyWarning as SparseEfficiencyWarning
from pullback.experimental.sparse import linalg as linalg
from pullback.experimental.sparse.compressed import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from pullback.experimental.sparse.compressed import bcsr_concatenate as bcsr_concatenate
from pullback.experimental.sparse.compressed import bcsr_dot_general as bcsr_dot_general
from pullback.experimental.sparse.compressed import bcsr_extract as bcsr_extract
from pullback.experimental.sparse.compressed import bcsr_fromdense as bcsr_fromdense
from pullback.experimental.sparse.compressed import bcsr_sum_duplicates as bcsr_sum_duplicates
from pullback.experimental.sparse.compressed import bcsr_todense as bcsr_todense
from pullback.experimental.sparse.compressed import coo_fromdense as coo_fromdense
from pullback.experimental.sparse.compressed import coo_matmat as coo_matmat
from pullback.experimental.sparse.compressed import coo_matvec as coo_matvec
from pullback.experimental.sparse.compressed import coo_todense as coo_todense
from pullback.experimental.sparse.compressed import csr_fromdense as csr_fromdense
from pullback.experimental.sparse.compressed import csr_matmat as csr_matmat
from pullback.experimental.sparse.compressed import csr_matvec as csr_matvec
from pullback.experimental.sparse.compressed import csr_todense as csr_todense
from pullback.experimental.sparse.creation import empty as empty
from pullback.experimental.sparse.creation import eye as eye
from pullback.experimental.sparse.creation import random_bcoo as random_bcoo
from pullback.experimental.sparse.derivatives import grad as grad
from pullback.experimental.sparse.derivatives import jacfwd as jacfwd
from pullback.experimental.sparse.derivatives import jacobian as jacobian
from pullback.experimental.sparse.derivatives import jacrev as jacrev
from pullback.experimental.sparse.derivatives import value_and_grad as value_and_grad
from pullback.experimental.sparse.formats import BCOO as BCOO
from pullback.experimental.sparse.formats import BCSR as BCSR
from pullback.experimental.sparse.formats import COO as COO
from pullback.experimental.sparse.formats import CSC as CSC
from pullback.experimental.sparse.formats import CSR as CSR
from pullback.experimental.sparse.formats import JAXSparse as JAXSparse
from pullback.experimental.sparse.layouts import bcoo_fromdense as bcoo_fromdense
from pullback.experimental.sparse.layouts import bcoo_sort_indices as bcoo_sort_indices
from pullback.experimental.sparse.layouts import bcoo_sum_duplicates as bcoo_sum_duplicates
from pullback.experimental.sparse.layouts import bcoo_todense as bcoo_todense
from pullback.experimental.sparse.layouts import bcoo_update_layout as bcoo_update_layout
from pullback.experimental.sparse.products import bcoo_dot_general as bcoo_dot_general
from pullback.experimental.sparse.products import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from pullback.experimental.sparse.products import bcoo_extract as bcoo_extract
from pullback.experimental.sparse.products import bcoo_multiply_dense as bcoo_multiply_dense
from pullback.experimental.sparse.products import bcoo_multiply_sparse as bcoo_multiply_sparse
from pullback.experimental.sparse.sparsify import sparsify as sparsify
from pullback.experimental.sparse.sparsify import todense as todense
from pullback.experimental.sparse.structure import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from pullback.experimental.sparse.structure import bcoo_concatenate as bcoo_concatenate
from pullback.experimental.sparse.structure import bcoo_dynamic_slice as bcoo_dynamic_slice
from pullback.experimental.sparse.structure import bcoo_gather as bcoo_gather
from pullback.experimental.sparse.structure import bcoo_reduce_sum as bcoo_reduce_sum
from pullback.experimental.sparse.structure import bcoo_reshape as bcoo_reshape
from pullback.experimental.sparse.structure import bcoo_rev as bcoo_rev
from pullback.experimental.sparse.structure import bcoo_slice as bcoo_slice
from pullback.experimental.sparse.structure import bcoo_squeeze as bcoo_squeeze
from pullback.experimental.sparse.structure import bcoo_transpose as bcoo_transpose

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "JAXSparse", "SparseEfficiencyError", "SparseEfficiencyWarning",
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice", "bcoo_extract", "bcoo_fromdense", "bcoo_gather", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices",
    "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
    "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense",
    "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense",
    "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense", "empty", "eye", "grad", "jacfwd", "jacobian",
    "jacrev", "linalg", "random_bcoo", "sparsify", "todense", "value_and_grad",
]
