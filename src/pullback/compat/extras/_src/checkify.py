"""``jax._src.checkify``: Flax NNX takes from here what ``jax.experimental.checkify`` has."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.experimental.checkify",))
