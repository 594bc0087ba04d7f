"""Geometry: ``pullback.scipy.spatial``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.spatial import distance as distance
from pullback.scipy.spatial import transform as transform
from pullback.scipy.spatial.powers import distance_matrix, minkowski_distance, minkowski_distance_p, procrustes
from pullback.scipy.spatial.trees import KDTree

__all__ = [
    "KDTree", "distance", "distance_matrix", "minkowski_distance", "minkowski_distance_p", "procrustes", "transform",
]  # fmt: skip
face(globals())
