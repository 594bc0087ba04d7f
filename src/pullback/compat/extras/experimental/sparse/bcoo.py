"""``jax.experimental.sparse.bcoo``: the module in which JAX defines these names of ``jax.experimental.sparse``."""

from pullback.experimental.sparse import (
    BCOO as BCOO,
)
from pullback.experimental.sparse import (
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim,
)
from pullback.experimental.sparse import (
    bcoo_concatenate as bcoo_concatenate,
)
from pullback.experimental.sparse import (
    bcoo_dot_general as bcoo_dot_general,
)
from pullback.experimental.sparse import (
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
)
from pullback.experimental.sparse import (
    bcoo_dynamic_slice as bcoo_dynamic_slice,
)
from pullback.experimental.sparse import (
    bcoo_extract as bcoo_extract,
)
from pullback.experimental.sparse import (
    bcoo_fromdense as bcoo_fromdense,
)
from pullback.experimental.sparse import (
    bcoo_gather as bcoo_gather,
)
from pullback.experimental.sparse import (
    bcoo_multiply_dense as bcoo_multiply_dense,
)
from pullback.experimental.sparse import (
    bcoo_multiply_sparse as bcoo_multiply_sparse,
)
from pullback.experimental.sparse import (
    bcoo_reduce_sum as bcoo_reduce_sum,
)
from pullback.experimental.sparse import (
    bcoo_reshape as bcoo_reshape,
)
from pullback.experimental.sparse import (
    bcoo_rev as bcoo_rev,
)
from pullback.experimental.sparse import (
    bcoo_slice as bcoo_slice,
)
from pullback.experimental.sparse import (
    bcoo_sort_indices as bcoo_sort_indices,
)
from pullback.experimental.sparse import (
    bcoo_squeeze as bcoo_squeeze,
)
from pullback.experimental.sparse import (
    bcoo_sum_duplicates as bcoo_sum_duplicates,
)
from pullback.experimental.sparse import (
    bcoo_todense as bcoo_todense,
)
from pullback.experimental.sparse import (
    bcoo_transpose as bcoo_transpose,
)
from pullback.experimental.sparse import (
    bcoo_update_layout as bcoo_update_layout,
)

__all__ = [
    "BCOO",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_gather",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
]
