"""``jax._src.nn.initializers``: the names of ``jax.nn.initializers``."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.nn.initializers",))
