"""``jax._src.random``: the names of ``jax.random``. Evermore takes ``Shape`` for annotations."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.core.types": "Shape"}, others=("pullback.random",))
