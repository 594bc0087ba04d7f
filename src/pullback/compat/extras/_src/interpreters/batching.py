"""``jax._src.interpreters.batching``: the names of ``jax.interpreters.batching``, each looked up when asked for."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.interpreters.batching",))
