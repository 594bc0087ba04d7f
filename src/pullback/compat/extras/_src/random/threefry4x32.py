"""``jax._src.random.threefry4x32``: the bijection of the generator."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.primitives.random.ciphers": "threefry4x32_p"})
