"""``jax._src.nn.functions``: the names of ``jax.nn``. sbijax takes ``glu``."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.nn",))
