"""Interpolation between values at points: ``pullback.scipy.interpolate``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.interpolate.grids import RegularGridInterpolator
from pullback.scipy.interpolate.piecewise import CubicSpline, PPoly
from pullback.scipy.interpolate.vectors import interp1d

__all__ = ["CubicSpline", "PPoly", "RegularGridInterpolator", "interp1d"]
face(globals())
