"""``jax._src.checkify``: the names of ``jax.experimental.checkify``, for Flax NNX."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.experimental.checkify",))
