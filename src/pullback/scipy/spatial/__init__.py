"""Geometry: ``pullback.scipy.spatial``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.spatial import transform as transform

__all__ = ["transform"]
face(globals())
