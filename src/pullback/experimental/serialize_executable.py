"""Compiled functions as bytes: ``jax.experimental.serialize_executable``."""

from pullback.core.faces import face as _face

_face(globals(), {"pullback.export.executables": "deserialize_and_load serialize"})
