"""``jax._src.lax.lax``: the names of ``jax.lax``, with its primitives."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.lax",))
