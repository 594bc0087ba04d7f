"""Interpolation between values at points: ``pullback.scipy.interpolate``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.interpolate.bsplines import BSpline
from pullback.scipy.interpolate.fits import make_interp_spline, make_lsq_spline, make_smoothing_spline
from pullback.scipy.interpolate.grids import RegularGridInterpolator, interpn
from pullback.scipy.interpolate.hermite import Akima1DInterpolator, CubicHermiteSpline, PchipInterpolator
from pullback.scipy.interpolate.piecewise import CubicSpline, PPoly
from pullback.scipy.interpolate.radial import RBFInterpolator
from pullback.scipy.interpolate.scattered import LinearNDInterpolator, NearestNDInterpolator, griddata
from pullback.scipy.interpolate.vectors import interp1d

__all__ = [
    "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline", "LinearNDInterpolator",
    "NearestNDInterpolator", "PPoly", "PchipInterpolator", "RBFInterpolator", "RegularGridInterpolator", "griddata",
    "interp1d", "interpn", "make_interp_spline", "make_lsq_spline", "make_smoothing_spline",
]  # fmt: skip
face(globals())
