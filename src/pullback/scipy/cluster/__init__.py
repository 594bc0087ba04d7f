"""Clusters of observations: ``pullback.scipy.cluster``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.cluster import vq as vq

__all__ = ["vq"]
face(globals())
