"""``jax._src.source_info_util``: the names of ``jax.extend.source_info_util``."""

from pullback.core.faces import face as _face

_face(globals(), others=("pullback.compat.extras.extend.source_info_util",))
