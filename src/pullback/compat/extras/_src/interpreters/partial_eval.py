"""``jax._src.interpreters.partial_eval``: the names of ``jax.interpreters.partial_eval``, each looked up when used."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.interpreters.partial_eval",))
