"""``jax._src.stages``: the names of ``jax.stages``, each looked up when asked for."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.stages",))
