"""``jax._src.numpy.lax_numpy``: the names of ``jax.numpy``, each looked up when asked for."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.numpy",))
