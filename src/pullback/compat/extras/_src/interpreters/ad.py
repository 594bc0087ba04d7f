"""``jax._src.interpreters.ad``: the names of ``jax.interpreters.ad``, each looked up when asked for."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.interpreters.ad",))
