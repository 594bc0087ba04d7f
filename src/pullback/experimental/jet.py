"""Taylor mode, under its name in JAX; see :mod:`pullback.derivatives`."""

from pullback.core.faces import face
from pullback.derivatives.jets import jet

__all__ = ["jet"]
face(globals())
