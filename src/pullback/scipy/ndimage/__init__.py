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
from pullback.scipy.ndimage.grey_morphology import (
    black_tophat,
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    morphological_gradient,
    morphological_laplace,
    white_tophat,
)
from pullback.scipy.ndimage.ranks import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from pullback.scipy.ndimage.smoothing import gaussian_filter, gaussian_filter1d, uniform_filter, uniform_filter1d
from pullback.scipy.ndimage.transforms import map_coordinates

__all__ = [
    "black_tophat", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
    "gaussian_gradient_magnitude", "gaussian_laplace", "generic_gradient_magnitude", "generic_laplace", "grey_closing",
    "grey_dilation", "grey_erosion", "grey_opening", "laplace", "map_coordinates", "maximum_filter",
    "maximum_filter1d", "median_filter", "minimum_filter", "minimum_filter1d", "morphological_gradient",
    "morphological_laplace", "percentile_filter", "prewitt", "rank_filter", "sobel", "uniform_filter",
    "uniform_filter1d", "white_tophat",
]  # fmt: skip
face(globals())
