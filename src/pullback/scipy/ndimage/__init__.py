"""Images of any number of axes: filters, splines, geometry, morphology and measurements: ``pullback.scipy.ndimage``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.ndimage.binary_morphology import (
    binary_closing,
    binary_dilation,
    binary_erosion,
    binary_fill_holes,
    binary_hit_or_miss,
    binary_opening,
    binary_propagation,
    distance_transform_edt,
    generate_binary_structure,
    iterate_structure,
)
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
from pullback.scipy.ndimage.measurements import (
    center_of_mass,
    extrema,
    find_objects,
    label,
    maximum,
    maximum_position,
    mean,
    minimum,
    minimum_position,
    standard_deviation,
    sum_labels,
    variance,
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
from pullback.scipy.ndimage.splines import spline_filter, spline_filter1d
from pullback.scipy.ndimage.transforms import (
    affine_transform,
    geometric_transform,
    map_coordinates,
    rotate,
    shift,
    zoom,
)

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes",
    "binary_hit_or_miss", "binary_opening", "binary_propagation", "black_tophat", "center_of_mass", "convolve",
    "convolve1d", "correlate", "correlate1d", "distance_transform_edt", "extrema", "find_objects", "gaussian_filter",
    "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "generate_binary_structure",
    "generic_gradient_magnitude", "generic_laplace", "geometric_transform", "grey_closing", "grey_dilation",
    "grey_erosion", "grey_opening", "iterate_structure", "label", "laplace", "map_coordinates", "maximum",
    "maximum_filter", "maximum_filter1d", "maximum_position", "mean", "median_filter", "minimum", "minimum_filter",
    "minimum_filter1d", "minimum_position", "morphological_gradient", "morphological_laplace", "percentile_filter",
    "prewitt", "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d", "standard_deviation",
    "sum_labels", "uniform_filter", "uniform_filter1d", "variance", "white_tophat", "zoom",
]  # fmt: skip
face(globals())
