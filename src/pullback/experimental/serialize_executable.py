"""Compiled functions as bytes: ``jax.experimental.serialize_executable``."""

from typing import TYPE_CHECKING

from pullback.core.faces import face as _face

if TYPE_CHECKING:
    from pullback.export.executables import deserialize_and_load as deserialize_and_load
    from pullback.export.executables import serialize as serialize

_face(globals(), {"pullback.export.executables": "deserialize_and_load serialize"})
