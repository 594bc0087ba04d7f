"""``jax._src.ad_checkpoint``: ``checkpoint`` and its primitive, for which Oryx has a rule."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.extend.core.primitives": "remat_p"}, others=("pullback.ad_checkpoint",))
