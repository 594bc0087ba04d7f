"""``jax._src.interpreters.ad``: the names of ``jax.interpreters.ad``, each looked up when asked for."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {"pullback.experimental.hijax": "GradAccum NullAccum RefAccum ValAccum"},
    others=("pullback.interpreters.ad",),
)
