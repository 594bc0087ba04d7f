"""``jax._src.random.philox4x32``: the bijection of the generator."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.primitives.random.ciphers": "philox4x32_p"})
