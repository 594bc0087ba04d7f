"""``jax.experimental.sparse.bcsr``: the module in which JAX defines these names of ``jax.experimental.sparse``."""

from pullback.experimental.sparse import (
    BCSR as BCSR,
)
from pullback.experimental.sparse import (
    bcsr_broadcast_in_dim as bcsr_broadcast_in_dim,
)
from pullback.experimental.sparse import (
    bcsr_concatenate as bcsr_concatenate,
)
from pullback.experimental.sparse import (
    bcsr_dot_general as bcsr_dot_general,
)
from pullback.experimental.sparse import (
    bcsr_extract as bcsr_extract,
)
from pullback.experimental.sparse import (
    bcsr_fromdense as bcsr_fromdense,
)
from pullback.experimental.sparse import (
    bcsr_sum_duplicates as bcsr_sum_duplicates,
)
from pullback.experimental.sparse import (
    bcsr_todense as bcsr_todense,
)

__all__ = [
    "BCSR",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
]
