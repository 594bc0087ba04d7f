"""``jax._src.random.philox2x32``: the bijection of the generator."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.primitives.random.ciphers": "philox2x32_p"})
