"""``jax.experimental.sparse.csr``: the module in which JAX defines these names of ``jax.experimental.sparse``."""

from pullback.experimental.sparse import (
    CSC as CSC,
)
from pullback.experimental.sparse import (
    CSR as CSR,
)
from pullback.experimental.sparse import (
    csr_fromdense as csr_fromdense,
)
from pullback.experimental.sparse import (
    csr_matmat as csr_matmat,
)
from pullback.experimental.sparse import (
    csr_matvec as csr_matvec,
)
from pullback.experimental.sparse import (
    csr_todense as csr_todense,
)

__all__ = [
    "CSC",
    "CSR",
    "csr_fromdense",
    "csr_matmat",
    "csr_matvec",
    "csr_todense",
]
