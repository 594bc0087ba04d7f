"""Arrays whose rows have unequal lengths: sequences, neighbours of nodes, events of trajectories.

``docs/ragged.md`` says how they are stored, and what computes with them.
"""

from pullback.core.faces import face as _face
from pullback.ragged.rows import vmap as vmap

_face(
    globals(),
    {
        ".arrays": "Ragged elementwise",
        ".rows": "concatenate contract dot_product_attention vmap",
    },
)
