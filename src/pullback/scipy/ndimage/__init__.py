"""Images of any number of axes: filters, splines, geometry, morphology and measurements: ``pullback.scipy.ndimage``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.ndimage.correlations import convolve, convolve1d, correlate, correlate1d
from pullback.scipy.ndimage.derivatives import (
    gaussian_gradient_magnitude,
    gaussian_laplace,
    generic_gradient_magnitude,
    generic_laplace,
    laplace,
    prewitt,
    sobel,
)
from pullback.scipy.ndimage.smoothing import gaussian_filter, gaussian_filter1d, uniform_filter, uniform_filter1d
from pullback.scipy.ndimage.transforms import map_coordinates

__all__ = [
    "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
    "gaussian_gradient_magnitude", "gaussian_laplace", "generic_gradient_magnitude", "generic_laplace", "laplace",
    "map_coordinates", "prewitt", "sobel", "uniform_filter", "uniform_filter1d",
]  # fmt: skip
face(globals())
