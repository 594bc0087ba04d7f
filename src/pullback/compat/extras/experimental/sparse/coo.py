"""``jax.experimental.sparse.coo``: the module in which JAX defines these names of ``jax.experimental.sparse``."""

from pullback.experimental.sparse import (
    COO as COO,
)
from pullback.experimental.sparse import (
    coo_fromdense as coo_fromdense,
)
from pullback.experimental.sparse import (
    coo_matmat as coo_matmat,
)
from pullback.experimental.sparse import (
    coo_matvec as coo_matvec,
)
from pullback.experimental.sparse import (
    coo_todense as coo_todense,
)

__all__ = [
    "COO",
    "coo_fromdense",
    "coo_matmat",
    "coo_matvec",
    "coo_todense",
]
