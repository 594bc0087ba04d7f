"""Clusters of observations: ``pullback.scipy.cluster``."""

from __future__ import annotations

from pullback.scipy.cluster import vq as vq

__all__ = ["vq"]
