"""Geometry: ``pullback.scipy.spatial``."""

from __future__ import annotations

from pullback.scipy.spatial import transform as transform

__all__ = ["transform"]
