"""``jax._src.random.threefry2x32``: the bijection of the default generator."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.extend.random": "threefry2x32_p threefry_2x32 threefry_prng_impl"})
