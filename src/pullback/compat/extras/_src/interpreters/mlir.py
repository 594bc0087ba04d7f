"""``jax._src.interpreters.mlir``: the names of ``jax.interpreters.mlir``, each looked up when asked for."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.interpreters.mlir",))
