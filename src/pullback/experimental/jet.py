"""Taylor mode, in JAX's place; see :mod:`pullback.derivatives`."""

from pullback.core.faces import face
from pullback.derivatives.jets import jet

__all__ = ["jet"]
face(globals())
