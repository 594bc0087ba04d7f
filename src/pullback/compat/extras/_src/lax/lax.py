"""``jax._src.lax.lax``: the names of ``jax.lax``, found when asked for. JAX's page on primitives imports it."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.lax",))
