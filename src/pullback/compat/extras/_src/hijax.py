"""``jax._src.hijax``: the names of ``jax.experimental.hijax``."""

from pullback.core.faces import face as _face
from pullback.core.types import AbstractValue as Ty

LoType = Ty
_face(globals(), others=("pullback.compat.extras.experimental.hijax", "pullback.experimental.hijax"))
