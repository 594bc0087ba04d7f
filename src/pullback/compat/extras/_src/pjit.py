"""``jax._src.pjit``: the primitive of a compiled function within another, for which Quax has a rule; ``auto_axes``."""

from pullback.core.faces import face as _face
from pullback.transforms.programs.jit_primitive import jit_p as jit_p

_face(
    globals(),
    {
        "pullback.compat.extras._src.sharding_impls": "UNSPECIFIED UnspecifiedValue",
        "pullback.sharding": "auto_axes explicit_axes reshard",
        "pullback": "jit",
    },
)
