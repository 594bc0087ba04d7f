"""``jax._src.interpreters.xla``: the names of ``jax.interpreters.xla``, each looked up when asked for."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.interpreters.xla",))
