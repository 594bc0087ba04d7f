"""The exceptions of Pullback. See ``pullback.core.errors`` for the tree that they form."""

from pullback.core.errors import *  # noqa: F403
from pullback.core.faces import face as _face

_face(globals())
