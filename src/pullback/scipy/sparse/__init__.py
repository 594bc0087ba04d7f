"""Sparse linear algebra, in ``linalg``; sparse arrays are in ``pullback.experimental.sparse``."""

from pullback.core.faces import face
from pullback.scipy.sparse import linalg as linalg

__all__ = ["linalg"]
face(globals())
