"""``jax._src.scipy.special``: the names of ``jax.scipy.special``. JAXNS takes ``gammaln``."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.scipy.special",))
