"""Two small libraries that show how to write others: ``stax`` for layers, and ``optimizers``."""

from pullback.core.faces import face as _face

_face(globals(), modules="optimizers stax")
