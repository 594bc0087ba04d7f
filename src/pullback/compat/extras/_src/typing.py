"""``jax._src.typing``: the names of ``jax.typing``, and others of annotations."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.core.array": "Array"}, others=("pullback.typing",))
